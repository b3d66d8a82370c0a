//! Gives the binary its version and the commit that it is built from. Without git, `POWERSWEEP_COMMIT` may name the commit.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=POWERSWEEP_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    // The log of HEAD grows with each commit and checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
        println!("cargo:rerun-if-changed={log}");
    }
    let named = std::env::var("POWERSWEEP_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = named.or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    let version = env!("CARGO_PKG_VERSION");
    let build = commit.map_or_else(|| version.to_owned(), |commit| format!("{version} ({commit})"));
    println!("cargo:rustc-env=POWERSWEEP_BUILD={build}");
}

/// What git says; `None` without git or outside of a repository.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
