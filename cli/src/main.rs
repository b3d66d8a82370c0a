//! The binary `powersweep`.

use std::process::ExitCode;

/// Many threads allocate and free large batches of rows; jemalloc returns the free memory to the system. The library has
/// no allocator: a module that is loaded into Python must not replace the allocator of that process.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    powersweep_cli::main(std::env::args_os().collect(), None).into()
}
