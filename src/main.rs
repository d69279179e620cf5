//! The command line: parse, run, exit code.

/// A quarter of the processor time went into the system's allocator; that of musl, in static binaries, is slower still.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    undrift::cli::main()
}
