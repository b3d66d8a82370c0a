//! No file of the tree depends on one machine or refers to a page outside the tree.

use super::File;

/// In halves, so that this file does not contain them.
const WORDS: &[(&str, &str)] = &[
    ("/work", "/shared"),
    ("/work", "/main"),
    ("/work", "/wt"),
    ("/root", "/"),
    ("/tmp/", "venv"),
    ("static.crates", ".io"),
    ("DESIGN", ".md"),
    ("MODELS", ".md"),
];

pub(super) fn check(file: &File, violations: &mut Vec<String>) {
    for (half, rest) in WORDS {
        let word = format!("{half}{rest}");
        for (number, _) in file.text.lines().enumerate().filter(|(_, line)| line.contains(&word)) {
            violations.push(format!("{}:{}: `{word}` does not exist in other clones", file.name, number + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_machine_are_found_with_their_line() {
        let mut found = Vec::new();
        check(&File { name: "x.md".into(), text: concat!("fine\nsee /work", "/shared\n").into() }, &mut found);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("x.md:2: "), "{found:?}");
    }
}
