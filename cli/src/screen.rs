//! Output of commands: text and tables for people, JSON for programs. A closed pipe is not an error.
//!
//! Texts have names, values and messages of others: manifests, logs, rows, files, workers. Everything that this program
//! writes passes a function here, or the log's (`log.rs`), which shows characters that could steer a terminal as escapes.
//! Only [`write_styled`], [`print_styled`] and [`in_colours`] take texts with escapes of terminals, which must be this
//! program's own.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::AutoStream;
use anstream::stream::RawStream;
use clap::ColorChoice;
use powersweep::Notes;
use powersweep_experiments::plain::plain;
use serde_json::{Value as Json, json};

use crate::exit::{Exit, Failure, Outcome, failure};
use crate::fitted::Table;

pub use powersweep_dataset::words::{count, duration, memory, number};

/// Prints a text for people to standard output. A terminal does not break its sentences inside a word. A closed pipe does
/// not change the command's result.
pub fn print(text: &str) -> Outcome {
    print_whole(&wrapped(text, comfy_table::Table::new().width()))
}

/// Prints a text, such as a document in JSON, whose lines stay whole.
pub fn print_whole(text: &str) -> Outcome {
    write(&format!("{text}\n")).map(|_| Exit::Done)
}

/// Prints a text that programs read, such as a script: where no terminal shows it, byte for byte.
pub fn print_exact(text: &str) -> Outcome {
    match io::stdout().is_terminal() {
        true => print_whole(text),
        false => print_styled(text),
    }
}

/// Prints a text of this program with its own escapes to standard output.
pub fn print_styled(text: &str) -> Outcome {
    write_styled(&format!("{text}\n")).map(|_| Exit::Done)
}

/// Writes a text for people, or documents in JSON, to standard output without a newline; false if its reader has closed the
/// pipe.
pub fn write(text: &str) -> Result<bool, Failure> {
    write_styled(&plain(text))
}

/// Writes a text of this program with its own escapes to standard output, without a newline; false if its reader has closed
/// the pipe.
pub fn write_styled(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(failure!(Failure, "cannot write to standard output: {error}")),
    }
}

/// Prints a line to standard error; `eprintln!` would panic on a closed pipe.
pub fn note(text: &str) {
    write_note(text, || json!({ "level": "NOTE", "message": text }));
}

/// Prints the error that ends the program, in the form of a note.
pub fn ending(failure: &Failure) {
    let text = format!("powersweep: {}", failure.message.trim_end());
    write_note(&text, || json!({ "level": "ERROR", "message": text, "exit_code": Exit::Of(failure.kind).code() }));
}

/// Prints the notes of a request to standard error.
pub fn notes() -> Notes {
    Notes::to(|text| note(&format!("powersweep: {text}")))
}

fn write_note(text: &str, as_json: impl Fn() -> Json) {
    let line = match NOTES_AS_JSON.load(Ordering::Relaxed) {
        true => plain(&as_json().to_string()).into_owned(),
        false => wrapped(&coloured(&plain(text.trim_end())), comfy_table::Table::new().use_stderr().width()),
    };
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// A part of a message, and this part in colours.
static COLOURED: Mutex<Option<(String, String)>> = Mutex::new(None);

/// Returns a part of a message, which [`note`] and [`ending`] show in colours. A message itself has no colours: they would
/// look like those that a stranger's text has.
pub fn in_colours(part: &str, colours: impl FnOnce() -> String) -> String {
    if has_color(&io::stderr()) {
        *COLOURED.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
            Some((plain(part.trim_end()).into_owned(), only_colours(colours().trim_end())));
    }
    part.to_owned()
}

fn coloured(message: &str) -> Cow<'_, str> {
    match &*COLOURED.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some((part, colours)) if message.contains(part) => message.replacen(part, colours, 1).into(),
        _ => message.into(),
    }
}

/// The text with its colours and fonts, and with other control characters of terminals shown as escapes.
fn only_colours(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let mut shown = plain(pieces.next().unwrap_or_default()).into_owned();
    for piece in pieces {
        let code = piece.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(piece.len());
        let begin = if piece[code..].starts_with('m') { "\u{1b}[" } else { "\\u001b[" };
        shown += begin;
        shown += &plain(piece);
    }
    shown
}

/// Notes are not wrapped on narrower terminals.
const WIDTH_MIN: u16 = 20;

/// Lines that a terminal of this width does not break inside a word.
fn wrapped(text: &str, width: Option<u16>) -> String {
    match width {
        // A terminal that does not know its width says 0.
        Some(width) if width >= WIDTH_MIN => {
            text.split('\n').map(|line| wrapped_at(line, width.into())).collect::<Vec<_>>().join("\n")
        }
        _ => text.to_owned(),
    }
}

/// A line in lines of at most this width. Commands stay whole, so that they can be copied, and lines of a drawing or a table
/// stay unchanged.
fn wrapped_at(line: &str, width: usize) -> String {
    let sentence = line.trim_start();
    let is_kept = [" | ", "  "].iter().any(|mark| sentence.contains(mark));
    if line.chars().count() <= width || is_kept {
        return line.to_owned();
    }
    let indent = &line[..line.len() - sentence.len()];
    let (text, command) = match sentence.split_once(": powersweep ") {
        Some((text, _)) => sentence.split_at(text.len() + 2),
        None => (sentence, ""),
    };
    let in_quotes = text.split('`').enumerate();
    let kept: Vec<String> =
        in_quotes.map(|(at, part)| if at % 2 == 1 { part.replace(' ', "\u{a0}") } else { part.to_owned() }).collect();
    let text = kept.join("`") + &command.replace(' ', "\u{a0}");
    let options = textwrap::Options::new(width)
        .initial_indent(indent)
        .subsequent_indent(indent)
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
    textwrap::wrap(&text, options).join("\n").replace('\u{a0}', " ")
}

/// Whether [`note`] writes JSON, like the log.
static NOTES_AS_JSON: AtomicBool = AtomicBool::new(false);

/// Chooses the form of [`note`].
pub fn write_notes_as_json(json: bool) {
    NOTES_AS_JSON.store(json, Ordering::Relaxed);
}

/// Version of the documents in JSON. A document may get more fields under the same version; a removed field, or another
/// meaning of one, raises the version.
pub const JSON_VERSION: u64 = 1;

/// A document for programs: an object, to which the version is added.
pub fn versioned(mut document: Json) -> Json {
    document["version"] = JSON_VERSION.into();
    document
}

/// Prints a document for programs, which must be an object.
pub fn print_json(document: Json) -> Outcome {
    print_whole(&indented(&versioned(document)))
}

/// Indented JSON.
pub fn indented(value: &Json) -> String {
    serde_json::to_string_pretty(value).expect("JSON values always serialise")
}

/// Decides when text is coloured: by `--color`, else by the environment, else by the configuration, else `auto`. Returns
/// the decision, in which `auto` stands for the environment's.
pub fn choose_color(flag: Option<ColorChoice>, configured: Option<ColorChoice>) -> ColorChoice {
    let choice = match (flag, color_variable()) {
        (Some(choice), _) => choice,
        (None, Some(_)) => ColorChoice::Auto,
        (None, None) => configured.unwrap_or_default(),
    };
    let global = match choice {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    global.write_global();
    choice
}

/// The variable of the environment that decides about colours in place of a terminal, and its choice.
pub fn color_variable() -> Option<(&'static str, &'static str)> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_forced = |name: &str| is_set(name) && std::env::var_os(name).is_some_and(|value| value != "0");
    match (is_set("NO_COLOR"), is_forced("CLICOLOR_FORCE")) {
        (true, _) => Some(("NO_COLOR", "never")),
        (false, true) => Some(("CLICOLOR_FORCE", "always")),
        (false, false) => None,
    }
}

/// Whether text on this stream is coloured; [`choose_color`] has decided.
pub fn has_color<S: RawStream>(stream: &S) -> bool {
    AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// Whether text on this stream can be drawn over: it is a terminal that can move its cursor.
pub fn redraws(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// An empty table, which fits the terminal.
pub fn table() -> Table {
    Table::new()
}

#[cfg(test)]
mod tests {
    use powersweep_dataset::words::range;

    use super::*;

    #[test]
    fn only_one_thing_is_singular() {
        assert_eq!((count(1, "task"), count(0, "task")), ("1 task".to_owned(), "0 tasks".to_owned()));
    }

    #[test]
    fn the_text_between_colours_has_no_other_escapes() {
        let text = "\u{1b}[1m\u{1b}[38;5;9merror\u{1b}[0m: a\u{1b}[2Jb\u{9b}c\u{1b}]0;d\u{7}";
        let shown = "\u{1b}[1m\u{1b}[38;5;9merror\u{1b}[0m: a\\u001b[2Jb\\u009bc\\u001b]0;d\\u0007";
        assert_eq!(only_colours(text), shown);
    }

    #[test]
    fn notes_are_wrapped_between_words_and_commands_stay_whole() {
        let note = "powersweep: the rows differ in seed alone; `powersweep results my-sweep --rows 40` shows them";
        let lines = wrapped_at(note, 40);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines[..2], ["powersweep: the rows differ in seed", "alone;"]);
        assert_eq!(lines[2], "`powersweep results my-sweep --rows 40`");
        let offer = "to run this sweep there: powersweep submit sweep.toml --data results/data";
        assert_eq!(wrapped_at(offer, 30).lines().last(), Some("powersweep submit sweep.toml --data results/data"));
        assert_eq!(wrapped_at("  3 | bsld_threshold = 2", 10), "  3 | bsld_threshold = 2");
    }

    #[test]
    fn remaining_times_are_ranges() {
        assert_eq!(range(3.2, 9.0), "3 s to 9 s");
        assert_eq!(range(50.0, 400.0), "50 s to 7 min");
        assert_eq!(range(7_300.0, 7_400.0), "2 h");
        assert_eq!(range(6_000.0, 1e6), "2 h to 12 days");
    }

    #[test]
    fn durations_have_one_or_two_units() {
        assert_eq!(duration(0.42), "0.4 s");
        assert_eq!(duration(200.0), "3 min 20 s");
        assert_eq!(duration(7500.0), "2 h 5 min");
    }
}
