//! The table of exit codes is the same in docs/errors.md and in `--help`.

use std::path::PathBuf;

use crate::sandbox::Sandbox;

/// `code` and meaning of every exit code in `--help`.
fn of_the_binary() -> Vec<(u8, String)> {
    let help = Sandbox::new().run(&["--help"]).exits(0).stdout;
    let table = help.split("Exit codes:\n").nth(1).expect("--help ends in the exit codes");
    table
        .lines()
        .map(|line| {
            let (code, meaning) = line.trim_start().split_once("  ").expect("code, two spaces, meaning");
            (code.parse().expect("a code"), meaning.to_owned())
        })
        .collect()
}

/// `code` and meaning of every exit code in the guide.
fn of_the_guide() -> Vec<(u8, String)> {
    let page = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../docs/errors.md");
    let text = std::fs::read_to_string(page).expect("docs/errors.md exists");
    let table = text.split("| code | meaning |\n|---|---|\n").nth(1).expect("docs/errors.md has the table");
    table
        .lines()
        .map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "))
        .map(|(code, meaning)| (code.parse().expect("a code"), meaning.to_owned()))
        .collect()
}

#[test]
fn guide_and_help_have_the_same_exit_codes() {
    let binary = of_the_binary();
    assert_eq!(binary.len(), 13);
    assert_eq!(binary, of_the_guide());
}
