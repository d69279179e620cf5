//! The program `undrift`. It calls the command line of the library.

/// The allocator of the program. With the system allocator, allocation took a quarter of the CPU
/// time. The allocator of musl, which static binaries use, is even slower.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    undrift::cli::main()
}
