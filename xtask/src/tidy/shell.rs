//! Shell scripts parse: `bash -n` accepts them.

use std::path::Path;
use std::process::Command;

use super::File;

pub(super) fn check(root: &Path, files: &[File], violations: &mut Vec<String>) {
    for file in files.iter().filter(|file| is_script(file)) {
        // Without bash the scripts cannot run either.
        let Ok(output) = Command::new("bash").arg("-n").arg(root.join(&file.name)).output() else { return };
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            violations.push(complaint(&file.name, words.lines().next().unwrap_or("bash cannot parse it")));
        }
    }
}

fn is_script(file: &File) -> bool {
    let first = file.text.lines().next().unwrap_or_default();
    file.is("sh") || (first.starts_with("#!") && first.ends_with("bash"))
}

/// `path: line N: words` as `name:N: words`.
fn complaint(name: &str, words: &str) -> String {
    let after = words.split_once(": line ").and_then(|(_, rest)| rest.split_once(": "));
    match after {
        Some((line, words)) => format!("{name}:{line}: {words}"),
        None => format!("{name}:1: {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_known_by_name_or_first_line() {
        let file = |name: &str, text: &str| File { name: name.into(), text: text.into() };
        assert!(is_script(&file("a.sh", "")));
        assert!(is_script(&file("run", "#!/bin/bash\n")));
        assert!(is_script(&file("run", "#!/usr/bin/env bash\n")));
        assert!(!is_script(&file("a.py", "#!/usr/bin/env python3\n")));
    }

    #[test]
    fn complaints_name_the_line() {
        assert_eq!(complaint("run", "/x/run: line 7: syntax error"), "run:7: syntax error");
        assert_eq!(complaint("run", "no such file"), "run:1: no such file");
    }
}
