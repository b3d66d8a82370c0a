//! The house rules that a machine can check. Raise a ceiling in [`EXCEPTIONS`], with a reason, rather than split what
//! belongs together.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines that a source file may have: above it, a file is seldom one room.
const FILE_LINES: usize = 500;
/// Lines that a function may have.
const FUNCTION_LINES: usize = 80;

/// Files with a ceiling of their own, and why.
const EXCEPTIONS: &[(&str, usize, &str)] = &[];

/// Module names that say nothing.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "manager", "helper", "helpers", "misc"];

/// Checks the whole tree; the error lists every violation with file and line.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    let mut violations = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/");
        check(&name, &text, &mut violations);
    }
    if violations.is_empty() {
        Ok(format!("tidy: {} files keep the house rules", files.len()))
    } else {
        Err(format!("{}\ntidy: {} violations", violations.join("\n"), violations.len()))
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), ".git" | "target" | "data" | "node_modules" | ".venv") {
                collect(&path, files)?;
            }
        } else if ["rs", "py", "sh", "toml", "md", "yml", "sql", "proto"]
            .iter()
            .any(|e| name.ends_with(&format!(".{e}")))
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

fn check(name: &str, text: &str, violations: &mut Vec<String>) {
    // Strings that tie the tree to one machine. Put together here so that this file does not contain them.
    for (part, rest) in
        [("/work", "/shared"), ("/work", "/main"), ("/work", "/wt"), ("/root", "/."), ("static.crates", ".io")]
    {
        let needle = format!("{part}{rest}");
        for (number, line) in text.lines().enumerate().filter(|(_, line)| line.contains(&needle)) {
            let _ = line;
            violations.push(format!("{name}:{}: names one machine or host (`{needle}`)", number + 1));
        }
    }
    if !name.ends_with(".rs") {
        return;
    }
    let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".rs");
    if EMPTY_NAMES.contains(&stem) {
        violations.push(format!("{name}: a module's name says what is in it"));
    }
    let ceiling = EXCEPTIONS.iter().find(|(file, ..)| *file == name).map_or(FILE_LINES, |(_, lines, _)| *lines);
    let lines = text.lines().count();
    if lines > ceiling {
        violations.push(format!("{name}: {lines} lines, the ceiling is {ceiling}"));
    }
    let is_test_file =
        name.contains("/tests/") || name.contains("/benches/") || stem == "tests" || stem.ends_with("_tests");
    check_lines(name, text, is_test_file, violations);
}

fn check_lines(name: &str, text: &str, is_test_file: bool, violations: &mut Vec<String>) {
    let mut in_tests = is_test_file;
    let mut function: Option<(usize, usize)> = None;
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let code = line.trim_start();
        let indent = line.len() - code.len();
        in_tests |= code.starts_with("#[cfg(test)]");
        if code.starts_with("//") {
            continue;
        }
        if !in_tests && code.contains(concat!(".unwrap", "()")) {
            violations
                .push(format!("{name}:{number}: `unwrap` outside tests; say why it cannot fail, or return an error"));
        }
        for word in
            [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!("), concat!("#[ign", "ore")]
        {
            if code.contains(word) {
                violations.push(format!("{name}:{number}: `{word}` is unfinished work"));
            }
        }
        match function {
            None if starts_function(code) && !code.ends_with(';') && !code.ends_with('}') => {
                function = Some((number, indent))
            }
            Some((start, depth)) if indent == depth && code.starts_with('}') => {
                let length = number - start + 1;
                if length > FUNCTION_LINES && !in_tests {
                    violations
                        .push(format!("{name}:{start}: a function of {length} lines, the ceiling is {FUNCTION_LINES}"));
                }
                function = None;
            }
            Some((_, depth)) if indent == depth && code.ends_with(';') => function = None,
            _ => {}
        }
    }
}

fn starts_function(code: &str) -> bool {
    let code = code.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ").trim_start_matches("pub ");
    let code = code.trim_start_matches("const ").trim_start_matches("async ");
    code.starts_with("fn ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(name: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(name, text, &mut found);
        found
    }

    #[test]
    fn the_tree_is_tidy() {
        run(&crate::root()).unwrap();
    }

    #[test]
    fn each_rule_can_fail() {
        assert_eq!(violations("a/src/x.rs", "fn a() {}\n"), Vec::<String>::new());
        assert!(violations("a/src/helper.rs", "")[0].contains("says what is in it"));
        assert!(violations("a/src/x.rs", &"// x\n".repeat(501))[0].contains("501 lines"));
        assert!(
            violations("a/src/x.rs", &format!("fn a() {{\n{}}}\n", "    b();\n".repeat(90)))[0].contains("92 lines")
        );
        assert!(violations("a/src/x.rs", concat!("fn a() { b.unwrap", "(); }\n"))[0].contains("outside tests"));
        assert!(violations("a/tests/x.rs", concat!("fn a() { b.unwrap", "(); }\n")).is_empty());
        assert!(violations("a/src/x.rs", concat!("todo", "!()\n"))[0].contains("unfinished"));
        assert!(violations("x.md", concat!("see /work", "/shared\n"))[0].contains("one machine"));
    }
}
