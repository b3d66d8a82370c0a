//! Helpers that the tests of coordinator, workers and faults share; the tests are in `tests/`, here and in `cli/`.

pub mod dataset;
pub mod sweeps;

use std::path::PathBuf;

/// The `powersweep` that benches start: POWERSWEEP_BIN, else the one beside the bench; `None` if it does not exist.
pub fn bench_binary() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("powersweep"));
    std::env::var_os("POWERSWEEP_BIN").map(PathBuf::from).or_else(beside).filter(|path| path.is_file())
}
