//! Rules of Rust source files, line by line. `cargo fmt` makes indentation regular, so that it shows where a function
//! or a test module ends. The compiler finds public items without documentation.

use super::File;

/// Maximum number of lines of a source file: a longer one seldom has one subject.
const FILE_LINES: usize = 500;
/// Maximum number of lines of a function.
const FUNCTION_LINES: usize = 80;

/// Names of modules and folders that do not name their contents.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "manager", "helper", "helpers", "misc"];

/// Unfinished work, in halves so that this file does not contain it.
const UNFINISHED: &[(&str, &str)] = &[("todo", "!("), ("unimplemented", "!("), ("dbg", "!("), ("#[ign", "ore")];

/// Folders whose logic never waits, and owns no clock, file, socket, thread or random source.
const LOGIC: &[&str] = &[
    "engine/src/",
    "experiments/src/",
    "inputs/src/joblogs/",
    "inputs/src/signals/",
    "inputs/src/table/",
    "results/src/",
    "coordinator/src/farm/",
    "worker/src/session/",
];

/// Names of functions and syntax that wait, or that give another value at each call.
const WAITING: &[&str] = &[
    "std::thread",
    "std::net",
    "std::fs",
    "std::env",
    "Instant::now",
    "SystemTime",
    "tokio::",
    "async fn",
    "async move",
    ".await",
    "Uuid::new_v4",
    "Uuid::now_v7",
];

pub(super) fn check(file: &File, violations: &mut Vec<String>) {
    let name = &file.name;
    let parts: Vec<&str> = name.trim_end_matches(".rs").split('/').collect();
    if let Some(empty) = parts.iter().find(|part| EMPTY_NAMES.contains(part)) {
        violations.push(format!("{name}:1: `{empty}` does not name the contents of a module"));
    }
    let lines = file.text.lines().count();
    if lines > FILE_LINES {
        violations.push(format!("{name}:{FILE_LINES}: {lines} lines, the ceiling is {FILE_LINES}"));
    }
    let stem = parts.last().copied().unwrap_or_default();
    let of_tests = parts.iter().any(|part| matches!(*part, "tests" | "benches")) || stem.ends_with("_tests");
    let logic = !of_tests && LOGIC.iter().any(|folder| name.starts_with(folder));
    let mut tests = Tests::new();
    let mut function = Function::default();
    for (number, line) in file.text.lines().enumerate() {
        let code = line.trim_start();
        if code.is_empty() || code.starts_with("//") {
            continue;
        }
        let at = format!("{name}:{}", number + 1);
        let indent = line.len() - code.len();
        let in_tests = tests.at(code, indent) || of_tests;
        if let Some((begin, length)) = function.ended(code, indent, number + 1)
            && length > FUNCTION_LINES
            && !in_tests
        {
            violations.push(format!("{name}:{begin}: a function of {length} lines, the ceiling is {FUNCTION_LINES}"));
        }
        if !in_tests && code.contains(concat!(".unwrap", "()")) {
            violations.push(format!("{at}: `unwrap` outside tests; give the reason by `expect`, or return an error"));
        }
        // A test that takes minutes names the section that runs it.
        let is_elsewhere = code.contains(".ci/full");
        let unfinished = UNFINISHED.iter().map(|(half, rest)| format!("{half}{rest}"));
        for word in unfinished.filter(|word| code.contains(word) && !is_elsewhere) {
            violations.push(format!("{at}: `{word}` is unfinished work"));
        }
        for word in WAITING.iter().filter(|word| logic && !in_tests && code.contains(*word)) {
            violations.push(format!("{at}: `{word}` in logic that never waits; pass the value as an argument"));
        }
    }
}

/// Follows which lines belong to an item below `#[cfg(test)]`.
pub(super) enum Tests {
    /// Ordinary code.
    Outside,
    /// After the attribute, before its item.
    Attribute,
    /// Inside an item that ends with `}` at this indentation.
    Item(usize),
}

impl Tests {
    pub(super) fn new() -> Tests {
        Tests::Outside
    }

    /// Whether this line of code belongs to tests.
    pub(super) fn at(&mut self, code: &str, indent: usize) -> bool {
        match self {
            Tests::Outside if code.starts_with("#[cfg(test)]") => *self = Tests::Attribute,
            Tests::Outside => return false,
            Tests::Attribute if code.starts_with("#[") => {}
            // `mod tests;`, or an item of one line
            Tests::Attribute if code.ends_with(';') || code.ends_with('}') => *self = Tests::Outside,
            Tests::Attribute => *self = Tests::Item(indent),
            Tests::Item(depth) if *depth == indent && code.starts_with('}') => *self = Tests::Outside,
            Tests::Item(_) => {}
        }
        true
    }
}

/// Follows the outermost function around a line.
#[derive(Default)]
struct Function {
    /// Its first line and indentation.
    open: Option<(usize, usize)>,
}

impl Function {
    /// First line and length of the function that ends with this line.
    fn ended(&mut self, code: &str, indent: usize, number: usize) -> Option<(usize, usize)> {
        match self.open {
            None if begins_function(code) && !code.ends_with(';') && !code.ends_with('}') => {
                self.open = Some((number, indent));
            }
            Some((begin, depth)) if indent == depth && code.starts_with('}') => {
                self.open = None;
                return Some((begin, number - begin + 1));
            }
            // A declaration over several lines has no body.
            Some((_, depth)) if indent == depth && code.ends_with(';') => self.open = None,
            _ => {}
        }
        None
    }
}

fn begins_function(code: &str) -> bool {
    let mut words = code.split_whitespace();
    words.find(|word| !(word.starts_with("pub") || matches!(*word, "const" | "async" | "extern" | "\"C\"")))
        == Some("fn")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(&File { name: name.into(), text: text.into() }, &mut found);
        found
    }

    #[track_caller]
    fn only(found: Vec<String>, expected: &str) {
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected), "{found:?}");
    }

    #[test]
    fn names_and_ceilings() {
        assert!(found("a/src/x.rs", "fn a() {}\n").is_empty());
        only(found("a/src/helper.rs", ""), "does not name the contents");
        only(found("a/src/utils/x.rs", ""), "`utils` does not");
        assert!(found("a/src/x.rs", &"// x\n".repeat(500)).is_empty());
        only(found("a/src/x.rs", &"// x\n".repeat(501)), "501 lines");
        let body = |lines: usize| "    b();\n".repeat(lines);
        assert!(found("a/src/x.rs", &format!("fn a() {{\n{}}}\n", body(78))).is_empty());
        for head in ["fn a()", "pub(crate) const fn a()", "pub async fn a()"] {
            only(found("a/src/x.rs", &format!("{head} {{\n{}}}\n", body(79))), "a/src/x.rs:1: a function of 81 lines");
        }
        only(found("a/src/x.rs", &format!("fn a(\n    x: u8,\n) {{\n{}}}\n", body(79))), "83 lines");
        assert!(found("a/tests/x.rs", &format!("fn a() {{\n{}}}\n", body(90))).is_empty());
    }

    #[test]
    fn unfinished_and_careless_lines() {
        let unwrap = concat!("fn a() { b.unwrap", "(); }\n");
        only(found("a/src/x.rs", unwrap), "outside tests");
        assert!(found("a/tests/x.rs", unwrap).is_empty());
        assert!(found("a/src/x.rs", &format!("#[cfg(test)]\nmod tests {{\n    {unwrap}}}\n")).is_empty());
        only(found("a/src/x.rs", &format!("#[cfg(test)]\nmod tests;\n{unwrap}")), "a/src/x.rs:3: ");
        only(found("a/src/x.rs", &format!("#[cfg(test)]\nmod tests {{\n}}\n{unwrap}")), "a/src/x.rs:4: ");
        only(found("a/tests/x.rs", concat!("todo", "!()\n")), "unfinished");
        only(found("a/tests/x.rs", concat!("#[ign", "ore]\n")), "unfinished");
    }

    #[test]
    fn logic_never_waits() {
        for code in ["let now = Instant::now();\n", "async fn a() {}\n", "use std::fs;\n", "tokio::spawn(a);\n"] {
            only(found("engine/src/x.rs", code), "never waits");
            only(found("coordinator/src/farm/x.rs", code), "never waits");
            assert!(found("coordinator/src/service/x.rs", code).is_empty());
            assert!(found("engine/tests/it/x.rs", code).is_empty());
        }
    }
}
