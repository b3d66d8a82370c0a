//! The farm under faults, with real processes. Every test prints the number of faults, and ends with the same check: the
//! dataset equals the dataset of an undisturbed run, row for row.
//!
//! `cargo test` runs short versions; `POWERSWEEP_LONG=1` with `--include-ignored` runs the full ones, each a section of
//! `.ci/full`.
//! `POWERSWEEP_SEED` repeats the moments of a run.

mod crowd;
mod disk;
mod drains;
mod edits;
mod farm;
mod journal;
mod kills;
mod network;
mod nfs;
mod owners;
mod proxy;
mod relay;
mod s3;
mod shared_files;
mod slurm;

use std::process::{Command, Stdio};

use crate::random::Random;

/// Whether the full versions run.
fn long() -> bool {
    std::env::var_os("POWERSWEEP_LONG").is_some_and(|value| !value.is_empty() && value != "0")
}

/// A random number of tasks between two faults. Workers also finish tasks during a fault, and the sweep must not end
/// before the last fault: so the number is a small part of the sweep.
fn step(random: &mut Random, tasks: u32, faults: u64) -> u64 {
    random.below(1 + u64::from(tasks) * 4 / 10 / faults)
}

/// Whether this process may mount and make network namespaces; prints the reason otherwise.
pub(crate) fn is_root(test: &str) -> bool {
    let id = Command::new("id").arg("-u").output().expect("id is there");
    let root = id.stdout == b"0\n";
    if !root {
        println!("skipped: {test} needs root");
    }
    root
}

/// Runs a program, which must succeed; returns its output.
#[track_caller]
fn system(program: &str, args: &[&str]) -> String {
    try_system(program, args).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a program; an error has its output.
fn try_system(program: &str, args: &[&str]) -> Result<String, String> {
    let line = format!("{program} {}", args.join(" "));
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{line}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
