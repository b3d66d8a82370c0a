//! Committed descriptions of the columns match the build.
//!
//! `POWERSWEEP_REGENERATE=1 cargo test -p powersweep-results --test it documented` rewrites them.

use std::fmt::Write as _;
use std::path::PathBuf;

use powersweep_results::{Table, columns};

fn check(file: &str, generated: &str, meaning: &str) {
    let path = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join(file);
    if std::env::var_os("POWERSWEEP_REGENERATE").is_some_and(|v| v == "1") {
        std::fs::write(&path, generated).expect("the repository is writable");
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if committed != generated {
        let differs = generated.lines().find(|line| !committed.contains(line));
        let removed = committed.lines().find(|line| !generated.contains(line));
        panic!(
            "{file} differs from this build's columns.\n  first new line:  {}\n  first removed line: {}\n{meaning}\n\
             If the change is meant, run `cargo xtask docs`, or\n  POWERSWEEP_REGENERATE=1 cargo test -p \
             powersweep-results --test it documented",
            differs.unwrap_or("(order only)"),
            removed.unwrap_or("(order only)"),
        );
    }
}

#[test]
fn columns_md_is_up_to_date() {
    check("../docs/reference/columns.md", &columns::markdown(), "It is generated; do not edit it.");
}

#[test]
fn the_schema_is_the_expected_one() {
    let mut text = String::new();
    for table in Table::ALL {
        for column in table.columns() {
            let null = if column.nullable { " null" } else { "" };
            let _ = writeln!(text, "{}.{} {}{null}", table.name(), column.name, column.type_name());
        }
    }
    check(
        "tests/it/schema.txt",
        &text,
        "Readers rely on names and types: a removed or renamed column breaks their queries, and an experiment that is \
         running is pinned to its schema.",
    );
}
