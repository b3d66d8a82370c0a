//! Texts for terminals and logs: those of strangers made safe, and errors with their causes.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character can change what a terminal shows elsewhere, or the order in which it shows characters.
fn is_unsafe(c: char) -> bool {
    let reorders = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}');
    c.is_control() && !matches!(c, '\n' | '\t') || reorders || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Whether a name has only characters that can be shown, on one line.
pub fn is_plain_name(name: &str) -> bool {
    !name.chars().any(|c| is_unsafe(c) || matches!(c, '\n' | '\t'))
}

/// The text with escapes in place of control characters. The escapes are those of JSON: a document in JSON keeps its values.
/// Newlines and tabs stay.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\r' => out.push_str("\\r"),
            c if is_unsafe(c) => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// An error with its causes: the message of a transport error alone says little.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let words = error.to_string();
        // Some errors repeat the text of their cause.
        match said.last_mut() {
            Some(last) if last.contains(&words) => {}
            Some(last) if words.starts_with(last.as_str()) => *last = words,
            _ => said.push(words),
        }
        next = error.source();
    }
    said.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_terminals_are_shown_and_other_texts_stay() {
        assert_eq!(plain("a\u{1b}[2Jb\r\u{9b}0m\u{7}"), "a\\u001b[2Jb\\r\\u009b0m\\u0007");
        assert_eq!(plain("safe\u{202e}txt"), "safe\\u202etxt");
        assert!(matches!(plain("two\nlines\tof grün, 日本"), Cow::Borrowed(_)));
        assert!(is_plain_name("node-7.例") && !is_plain_name("a\u{1b}]0;x\u{7}") && !is_plain_name("a\nb"));
    }
}
