//! The command line: parse, run, exit code.

/// The system allocator took a quarter of the CPU time. The allocator of musl, in static binaries, is even
/// slower.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    undrift::cli::main()
}
