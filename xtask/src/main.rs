//! Project chores: `cargo xtask tidy` checks the house rules, `cargo xtask docs` writes the generated documents anew,
//! `cargo xtask recipe` follows the recipes for new parts in a copy of the tree.

mod recipe;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let result = match task.as_deref() {
        Some("tidy") => tidy::run(&root()),
        Some("docs") => docs(),
        Some("recipe") => target().and_then(|target| recipe::run(&root(), &target)),
        _ => Err("usage: cargo xtask tidy | docs | recipe".to_owned()),
    };
    match result {
        Ok(message) => {
            println!("{message}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> PathBuf {
    // Asked at run time: with a target folder that clones share, the binary may have been built in another one.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let own = Path::new(&own);
    own.parent().expect("xtask lies below the workspace").to_owned()
}

/// The target folder that this program was built in: it lies in its `debug`.
fn target() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
    own.ancestors().nth(2).map(Path::to_owned).ok_or_else(|| format!("{} is in no target folder", own.display()))
}

/// Regenerates what a test otherwise compares: the tests own the generators, so that there is one of each.
fn docs() -> Result<String, String> {
    let status = Command::new(env!("CARGO"))
        // The whole workspace, so that cargo uses what `cargo test --workspace` has built or will need.
        .args(["test", "--quiet", "--workspace", "--locked", "--test", "it", "documented"])
        .env("POWERSWEEP_REGENERATE", "1")
        .current_dir(root())
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok("generated documents are written".to_owned()) } else { Err("cargo failed".to_owned()) }
}
