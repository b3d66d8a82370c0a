//! Project chores: `cargo xtask tidy` checks the house rules, `cargo xtask docs` regenerates documents, `cargo xtask
//! recipe` follows the examples of new components in a copy of the tree, `cargo xtask book` builds the guide as a book,
//! `cargo xtask sbom TARGET` prints the bill of materials of a release.

mod book;
mod paths;
mod recipe;
mod sbom;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The target whose bill of materials is printed by default.
const RELEASED: &str = "x86_64-unknown-linux-musl";

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let result = match task.as_deref() {
        Some("tidy") => tidy::run(&root()),
        Some("docs") => docs(std::env::args().skip(2)),
        Some("book") => target().and_then(|target| book::run(&root(), &target)),
        Some("recipe") => target().and_then(|target| recipe::run(&root(), &target)),
        Some("sbom") => sbom::run(&root(), &std::env::args().nth(2).unwrap_or_else(|| RELEASED.to_owned())),
        _ => Err("usage: cargo xtask tidy | docs [OPTIONS OF CARGO TEST] | book | recipe | sbom [TARGET]".to_owned()),
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
    // Read at run time: clones that share a target folder also share this binary.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let own = Path::new(&own);
    own.parent().expect("xtask lies below the workspace").to_owned()
}

/// The target folder that this program was built in: its binary is in the folder's `debug`.
fn target() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("the path of this program is unknown: {error}"))?;
    own.ancestors().nth(2).map(Path::to_owned).ok_or_else(|| format!("{} is in no target folder", own.display()))
}

/// cargo without the variables that describe this package: the build script of `ring` watches them, so that `ring` and
/// half of the workspace would be built again.
fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|start| name.to_string_lossy().starts_with(start)) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Regenerates documents by the tests that otherwise compare them: each generator exists once, in its test. `options`:
/// those of an earlier `cargo test --workspace`, such as `--features cloud`, so that cargo shares its builds.
fn docs(options: impl Iterator<Item = String>) -> Result<String, String> {
    let status = cargo()
        .args(["test", "--quiet", "--workspace", "--locked", "--test", "it", "--lib"])
        .args(options)
        .args(["--", "documented", "is_up_to_date"])
        .env("POWERSWEEP_REGENERATE", "1")
        .current_dir(root())
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok("generated documents are written".to_owned()) } else { Err("cargo failed".to_owned()) }
}
