//! Retired names and phrases do not come back: one concept has one name (the glossary of ARCHITECTURE.md), and a
//! sentence names its noun.
//!
//! A term is retired by a line in [`NAMES`] or [`PHRASES`]. A doc comment stands alone: it does not begin with one of
//! [`OPENINGS`], which point at another item.

use super::File;

/// Retired names (identifiers, or paths that end in `::`), with the name to use.
const NAMES: &[(&str, &str)] = &[
    ("Desk", "owner record"),
    ("Gate", "the name of the mechanism"),
    ("LogDigest", "Digest"),
    ("StagedPart", "Upload"),
    ("Touch", "the name of the mechanism"),
    ("Vigil", "stall detector"),
    ("Wheel", "the name of the mechanism"),
    ("queueing::", "queues::"),
    ("unrolled", "unpublished"),
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

/// Words that begin no doc comment, with the way to begin.
const OPENINGS: &[(&str, &str)] = &[
    ("The same", "the noun, and what differs"),
    ("Most", "the maximum number or size of NOUN"),
    ("Like", "what the item is or does"),
    ("See the module", "what the item is"),
];

/// Folders and files whose doc comments are not yet checked for [`OPENINGS`].
const OPENINGS_NOT_CHECKED: &[&str] = &["cli/", "engine/src/batch/policy/backfill/"];

/// This file has all retired terms.
const OWN: &str = "xtask/src/tidy/words.rs";

pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    check_terms(NAMES, files, violations);
    let is_checked = |file: &&File| OPENINGS_NOT_CHECKED.iter().all(|folder| !file.name.starts_with(folder));
    files.iter().filter(|file| file.is("rs")).filter(is_checked).for_each(|file| openings(file, violations));
}

/// Doc comments that begin with one of [`OPENINGS`].
fn openings(file: &File, violations: &mut Vec<String>) {
    let mut before = None;
    for (number, line) in (1..).zip(file.text.lines()) {
        let doc = doc(line);
        let begins = doc.filter(|_| before.is_none());
        before = doc;
        let found = OPENINGS.iter().find(|(opening, _)| begins.is_some_and(|text| begins_with(text, opening)));
        if let Some((opening, instead)) = found {
            let place = format!("{}:{number}", file.name);
            violations.push(format!("{place}: a doc comment begins with `{opening}`; begin with: {instead}"));
        }
    }
}

/// The text of a line of a doc comment.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim_start)
}

fn begins_with(text: &str, opening: &str) -> bool {
    text.strip_prefix(opening).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

fn check_terms(names: &[(&str, &str)], files: &[File], violations: &mut Vec<String>) {
    for file in files.iter().filter(|file| file.name != OWN) {
        let mut report = |line: usize, retired: &str, instead: &str| {
            violations.push(format!("{}:{line}: `{retired}` is a retired term; use: {instead}", file.name));
        };
        for (retired, instead) in names {
            let lines = file.text.lines().zip(1..).filter(|(line, _)| has_word(line, retired));
            lines.for_each(|(_, number)| report(number, retired, instead));
        }
        phrases(&file.text).for_each(|(number, (retired, instead))| report(number, retired, instead));
    }
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

    fn found(text: &str) -> Vec<String> {
        let names = [("Old", "New"), ("old::", "new::")];
        let file = File { name: "x.rs".to_owned(), text: text.to_owned() };
        let mut found = Vec::new();
        check_terms(&names, &[file], &mut found);
        found.iter().map(|line| line.replace(" is a retired term; use:", "")).collect()
    }

    #[test]
    fn doc_comments_that_point_elsewhere_are_found() {
        let docs = "//! Most rules.\n\n/// The same.\nconst A: u8 = 1;\n/// One rule.\n/// Most are short.\nconst B: u8 = 1;\n\
                    /// Likely\n// Like this\n    /// Like `A`.\n";
        let lines = |name: &str| {
            let mut found = Vec::new();
            check(&[File { name: name.to_owned(), text: docs.to_owned() }], &mut found);
            found.iter().map(|line| line.split(':').nth(1).map(str::to_owned)).collect::<Option<Vec<_>>>()
        };
        assert_eq!(lines("x.rs").as_deref(), Some(&["1", "3", "10"].map(str::to_owned)[..]));
        assert_eq!(lines("cli/src/x.rs").as_deref(), Some(&[][..]));
        assert_eq!(lines("x.md").as_deref(), Some(&[][..]));
    }

    #[test]
    fn retired_names_are_found_as_whole_names() {
        let text = "use crate::old::Entry;\nlet old = Old::new();\nstruct OldOf;\nlet my_old = 1;\nuse my_old::x;\n";
        assert_eq!(found(text), ["x.rs:2: `Old` New", "x.rs:1: `old::` new::"]);
    }

    #[test]
    fn retired_phrases_are_found_across_lines() {
        let lines = found("/// Placed anew.\n/// Whoever\n/// asks. For so\n///   many, somany\n");
        let starts = ["x.rs:1: `anew`", "x.rs:2: `whoever`", "x.rs:3: `so many`"];
        assert!(lines.iter().map(String::as_str).zip(starts).all(|(line, start)| line.starts_with(start)), "{lines:?}");
        assert_eq!(lines.len(), starts.len());
    }
}
