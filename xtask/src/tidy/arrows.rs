//! Arrows between crates go one way: this file lists the allowed dependencies of each crate. Tests may depend on any
//! crate.

use super::File;

/// Each crate with the crates of this workspace that it may depend on, with blanks between them.
const MAY_USE: &[(&str, &str)] = &[
    ("arrow", ""),
    ("engine", ""),
    ("experiments", "engine"),
    ("results", "engine experiments"),
    ("dataset", "engine experiments results"),
    ("claims", "engine experiments results dataset"),
    ("inputs", "engine experiments"),
    ("proto", "engine experiments"),
    ("coordinator", "engine experiments results proto"),
    ("worker", "engine experiments results inputs proto"),
    ("launch", ""),
    ("dashboard", "dataset claims proto"),
    ("figures", "dataset"),
    (
        "powersweep",
        "engine experiments results inputs proto coordinator worker dataset claims launch figures dashboard",
    ),
    (
        "cli",
        "powersweep engine experiments results inputs proto coordinator worker dataset claims launch dashboard figures",
    ),
    ("python", "powersweep cli"),
    ("farmtest", ""),
    ("xtask", ""),
    // Modules: a workspace of its own.
    ("sdk", ""),
    ("sdk/policy", ""),
    ("sdk/examples/easy", "policy"),
];

/// External crates that would break "logic never waits", by the crate that must not depend on them.
const FOREIGN: &[(&str, &[&str])] = &[
    ("engine", &["tokio", "arrow", "parquet", "tonic", "rand", "object_store"]),
    ("experiments", &["tokio", "arrow", "parquet", "tonic", "rand", "object_store"]),
    ("results", &["tokio", "tonic", "rand"]),
    ("dataset", &["tonic", "rand"]),
    ("claims", &["tokio", "parquet", "tonic", "rand", "object_store"]),
    ("figures", &["tokio", "arrow", "parquet", "tonic", "rand", "object_store"]),
    // Files and downloads: `inputs/src/library/` blocks. Its readers of bytes are checked in `source.rs`.
    ("inputs", &["tokio", "tonic", "rand", "object_store"]),
];

pub(super) fn check(file: &File, violations: &mut Vec<String>) {
    let Some(folder) = file.name.strip_suffix("/Cargo.toml") else { return };
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == folder) else {
        violations
            .push(format!("{}:1: list the allowed dependencies of this crate in xtask/src/tidy/arrows.rs", file.name));
        return;
    };
    let foreign = FOREIGN.iter().find(|(name, _)| *name == folder).map_or(&[][..], |(_, names)| names);
    let mut section = "";
    for (number, line) in file.text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
        }
        // `[dependencies]`, `[build-dependencies]`, `[target.….dependencies]`, `[dependencies.name]`
        let of_tests = section.split('.').any(|part| part == "dev-dependencies");
        if of_tests || !section.split('.').any(|part| part.ends_with("dependencies")) {
            continue;
        }
        let used = match line.strip_prefix('[') {
            Some(_) => section.rsplit('.').next(),
            None => line.split(['.', '=', ' ']).next(),
        };
        let used = used.unwrap_or_default().trim_matches('"');
        // The library in the folder `powersweep` has the name of the whole.
        let ours = if used == "powersweep" { Some(used) } else { used.strip_prefix("powersweep-") };
        if ours.is_some_and(|name| !allowed.split(' ').any(|allowed| allowed == name)) || foreign.contains(&used) {
            violations.push(format!("{}:{}: {folder} must not depend on {used}", file.name, number + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(&File { name: name.into(), text: text.into() }, &mut found);
        found
    }

    #[test]
    fn arrows_against_the_order_are_found() {
        assert!(found("results/Cargo.toml", "[dependencies]\npowersweep-engine.workspace = true\n").is_empty());
        assert!(found("engine/Cargo.toml", "[dev-dependencies]\npowersweep-results.workspace = true\n").is_empty());
        for text in [
            "[dependencies]\npowersweep-results.workspace = true\n",
            "[dependencies]\npowersweep-cli = { path = \"../cli\" }\n",
            "[dependencies]\npowersweep.workspace = true\n",
            "[build-dependencies]\ntokio.workspace = true\n",
            "[target.'cfg(unix)'.dependencies]\ntokio = \"1\"\n",
            "[package]\n[dependencies.powersweep-worker]\n",
        ] {
            let found = found("engine/Cargo.toml", text);
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].starts_with("engine/Cargo.toml:2: engine must not depend on "), "{found:?}");
        }
        assert!(found("new/Cargo.toml", "")[0].contains("arrows.rs"));
    }
}
