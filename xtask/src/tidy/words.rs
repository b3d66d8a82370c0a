//! Retired names and phrases do not come back: one concept has one name (the glossary of ARCHITECTURE.md), and a
//! sentence names its noun.
//!
//! A term is retired by a line in [`NAMES`] or [`PHRASES`]. Folders that still use it are exceptions; an exception that
//! is no longer needed is a violation, so that the lists become strict.

use super::File;

/// A retired name: an identifier, or a path that ends in `::`.
struct Name {
    retired: &'static str,
    instead: &'static str,
    /// Where the name is still in use.
    still_in: &'static [&'static str],
}

const NAMES: &[Name] = &[
    Name { retired: "Desk", instead: "owner record", still_in: &[] },
    Name { retired: "Gate", instead: "the name of the mechanism", still_in: &[] },
    Name { retired: "LogDigest", instead: "Digest", still_in: &[] },
    Name { retired: "StagedPart", instead: "Upload", still_in: &[] },
    Name { retired: "Touch", instead: "the name of the mechanism", still_in: &[] },
    Name { retired: "Vigil", instead: "stall detector", still_in: &[] },
    Name { retired: "Wheel", instead: "the name of the mechanism", still_in: &[] },
    Name { retired: "queueing::", instead: "queues::", still_in: &["engine/tests/"] },
    Name { retired: "registry::", instead: "spec:: (types) or components:: (the list)", still_in: &[] },
    Name { retired: "unrolled", instead: "unpublished", still_in: &[] },
];

/// Retired phrases, with the way to say it.
const PHRASES: &[(&str, &str)] = &[
    ("anew", "again, or a new NOUN"),
    ("as it is", "unchanged"),
    ("at hand", "the place of the noun"),
    ("goes away", "is deleted, or ends"),
    ("nothing of", "no NOUN"),
    ("so many", "the number"),
    ("what is there", "the noun"),
    ("what nobody", "the noun"),
    ("who wants", "the user, the caller"),
    ("whoever", "the user, the caller"),
];

/// Folders in which [`PHRASES`] still occur.
const UNREAD: &[&str] = &["cli/", "engine/", "proto/", "results/", "worker/"];

/// This file has all retired terms.
const OWN: &str = "xtask/src/tidy/words.rs";

pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    check_terms(NAMES, UNREAD, files, violations);
    if files.iter().any(|file| file.name == OWN) {
        check_exceptions(NAMES, UNREAD, files, violations);
    }
}

fn check_terms(names: &[Name], unread: &[&str], files: &[File], violations: &mut Vec<String>) {
    for file in files.iter().filter(|file| file.name != OWN) {
        for Name { retired, instead, still_in } in names {
            if !is_below(file, still_in) {
                let lines = file.text.lines().enumerate().filter(|(_, line)| has_word(line, retired));
                violations.extend(lines.map(|(number, _)| found(file, number + 1, retired, instead)));
            }
        }
        if !is_below(file, unread) {
            violations.extend(phrases(&file.text).map(|(number, (retired, say))| found(file, number, retired, say)));
        }
    }
}

fn found(file: &File, number: usize, retired: &str, instead: &str) -> String {
    format!("{}:{number}: `{retired}` is a retired term; use: {instead}", file.name)
}

fn check_exceptions(names: &[Name], unread: &[&str], files: &[File], violations: &mut Vec<String>) {
    for Name { retired, still_in, .. } in names {
        for path in *still_in {
            if !files.iter().any(|file| is_below(file, &[path]) && has_word(&file.text, retired)) {
                violations.push(format!("{OWN}:1: `{retired}` is gone from {path}: remove the exception"));
            }
        }
    }
    for path in unread {
        if !files.iter().any(|file| is_below(file, &[path]) && phrases(&file.text).next().is_some()) {
            violations.push(format!("{OWN}:1: {path} has no retired phrase: remove it from UNREAD"));
        }
    }
}

fn is_below(file: &File, paths: &[&str]) -> bool {
    paths.iter().any(|path| file.name.starts_with(path))
}

/// The retired phrases of a text, also those that run over the end of a line, with the lines of their beginnings.
fn phrases(text: &str) -> impl Iterator<Item = (usize, (&'static str, &'static str))> {
    let lines: Vec<String> = text.lines().map(|line| sentence(line).to_lowercase()).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let next = lines.get(at + 1).map_or("", String::as_str);
        let both = format!("{line} {next}");
        for &(phrase, say) in PHRASES {
            // A phrase that is whole in the next line is reported there.
            if has_word(line, phrase) || (has_word(&both, phrase) && !has_word(next, phrase)) {
                found.push((at + 1, (phrase, say)));
            }
        }
    }
    found.into_iter()
}

/// A line without indentation, comment marks and the mark of a string that goes on.
fn sentence(line: &str) -> &str {
    line.trim_start().trim_start_matches(['/', '!', '#', '-', '*', ' ']).trim_end_matches('\\').trim_end()
}

/// Whether a text has this word, name or phrase, and not only as a piece of another.
fn has_word(text: &str, word: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(in_word) && (word.ends_with(':') || !after.is_some_and(in_word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> Vec<File> {
        files.iter().map(|(name, text)| File { name: (*name).to_owned(), text: (*text).to_owned() }).collect()
    }

    const OLD: Name = Name { retired: "Old", instead: "New", still_in: &["a/", "b/"] };

    fn found(pages: &[(&str, &str)]) -> Vec<String> {
        let names = [OLD, Name { retired: "old::", instead: "new::", still_in: &[] }];
        let mut found = Vec::new();
        check_terms(&names, &["b/"], &files(pages), &mut found);
        found.iter().map(|line| line.replace(" is a retired term; use:", "")).collect()
    }

    #[test]
    fn retired_names_are_found_as_whole_names() {
        let text = "use crate::old::Entry;\nlet old = Old::new();\nstruct OldOf;\nlet my_old = 1;\nuse my_old::x;\n";
        assert_eq!(found(&[("c/x.rs", text)]), ["c/x.rs:2: `Old` New", "c/x.rs:1: `old::` new::"]);
        assert!(found(&[("a/x.rs", "struct Old;\n")]).is_empty(), "an exception");
    }

    #[test]
    fn retired_phrases_are_found_across_lines() {
        let text = "/// Placed anew.\n/// Whoever\n/// asks. For so\n///   many, somany\n";
        let lines = found(&[("c/x.rs", text)]);
        let starts = ["c/x.rs:1: `anew`", "c/x.rs:2: `whoever`", "c/x.rs:3: `so many`"];
        assert!(lines.iter().map(String::as_str).zip(starts).all(|(line, start)| line.starts_with(start)), "{lines:?}");
        assert_eq!(lines.len(), starts.len());
        assert!(found(&[("b/x.rs", text)]).is_empty(), "an exception");
    }

    #[test]
    fn exceptions_that_are_not_needed_are_found() {
        let files = files(&[("a/x.rs", "struct Old;\n"), ("b/x.rs", "// anew\n"), ("c/x.rs", "struct New;\n")]);
        let mut found = Vec::new();
        check_exceptions(&[OLD], &["b/", "c/"], &files, &mut found);
        let gone = format!("{OWN}:1: `Old` is gone from b/: remove the exception");
        assert_eq!(found, [gone, format!("{OWN}:1: c/ has no retired phrase: remove it from UNREAD")]);
    }
}
