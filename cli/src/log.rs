//! Log messages on standard error, and the filter POWERSWEEP_LOG.

use std::fmt::{self, Debug};
use std::io::{self, Write};

use powersweep_experiments::plain::plain;
use powersweep_experiments::reading::hint;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Cli, Command, LogFormat};
use crate::screen;

/// The variable with the filter.
const VARIABLE: &str = "POWERSWEEP_LOG";

/// The levels of a directive.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Starts the log: warnings by default, also information from `serve` and `worker`. Warnings about failed tasks would
/// break the progress bar of commands that run tasks in this process and list failed ones at their end. Broken directives of the filter are
/// reported.
pub fn start(cli: &Cli, ansi: bool) {
    let default = match (cli.verbose, &cli.command) {
        // Errors of the state's database are reported in the words of the command.
        (0, Command::Serve(_) | Command::Worker(_)) | (1, _) => "powersweep=info,slatedb=off,warn",
        (0, Command::Run(_) | Command::Check(_) | Command::Find(_) | Command::Reproduce(_) | Command::Shard(_)) => {
            "powersweep_worker::slots=error,slatedb=off,tiny_skia=error,warn"
        }
        // The library that draws PNGs warns of lines without a length, such as the error bar of equal values.
        (0, _) => "tiny_skia=error,slatedb=off,warn",
        _ => "debug",
    };
    let wanted = std::env::var_os(VARIABLE).unwrap_or_default();
    let (filter, broken) = filter(&wanted.to_string_lossy(), default);
    let json = cli.log_format == LogFormat::Json;
    screen::write_notes_as_json(json);
    let lines = (!json).then(|| {
        let fields = debug_fn(field).delimited(" ");
        tracing_subscriber::fmt::layer().fmt_fields(fields).with_ansi(ansi).with_writer(std::io::stderr)
    });
    let objects = json.then(|| {
        tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(|| Objects(std::io::stderr()))
    });
    tracing_subscriber::registry().with(lines).with(objects).with(filter).init();
    for directive in broken {
        screen::note(&format!("powersweep: {VARIABLE}: {directive}"));
    }
}

/// Writes a message or a field of a line. They have texts of others: the library leaves many characters as they are. A field
/// stays on its line, so that it looks like no other line.
fn field(out: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    let text = format!("{value:?}");
    match field.name() {
        "message" => write!(out, "{}", plain(&text)),
        name => write!(out, "{}={}", name.trim_start_matches("r#"), plain(&text).replace('\n', "\\n")),
    }
}

/// Standard error for lines in JSON.
struct Objects(io::Stderr);

impl Write for Objects {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // The layer writes whole lines.
        self.0.write_all(plain(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The filter of the directives that are right, and why the other ones are not. Without a right one, the default.
///
/// This filter has targets and levels only. A filter with spans and fields would need a regular expression engine.
fn filter(wanted: &str, default: &str) -> (Targets, Vec<String>) {
    let directives = wanted.split(',').map(str::trim).filter(|directive| !directive.is_empty());
    let (right, broken): (Vec<&str>, Vec<&str>) = directives.partition(|directive| is_directive(directive));
    let text = if right.is_empty() { default.to_owned() } else { right.join(",") };
    let filter = text.parse().expect("each directive has been parsed");
    (filter, broken.into_iter().map(why_broken).collect())
}

/// Whether the text is `LEVEL` or `TARGET=LEVEL`. A target alone would turn every mistyped level into a target.
fn is_directive(text: &str) -> bool {
    let is_level = text.parse::<LevelFilter>().is_ok();
    is_level || (text.contains('=') && text.parse::<Targets>().is_ok())
}

fn why_broken(directive: &str) -> String {
    let level = directive.rsplit('=').next().unwrap_or_default();
    let hint = hint(level, LEVELS).map_or_else(String::new, |hint| format!("; {hint}"));
    let expected = format!("expected LEVEL or TARGET=LEVEL, with a level of {}", LEVELS.join(", "));
    format!("`{directive}` is ignored: {expected}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_directives_are_named_and_the_others_count() {
        let of = |text: &str| {
            let (filter, broken) = filter(text, "warn");
            (filter.to_string(), broken)
        };
        for text in ["", ",", "warn"] {
            assert_eq!(of(text), ("warn".to_owned(), Vec::new()), "{text}");
        }
        assert_eq!(of("powersweep_worker::journal=trace").0, "powersweep_worker::journal=trace");
        let (filter, broken) = of("powersweep=debgu, error");
        assert_eq!((filter.as_str(), broken.len()), ("error", 1));
        assert!(broken[0].starts_with("`powersweep=debgu` is ignored: expected LEVEL or TARGET=LEVEL"), "{broken:?}");
        assert!(broken[0].ends_with("did you mean `debug`?"), "{broken:?}");
        for text in ["debgu", "powersweep", "a=b=c", "=loud"] {
            assert_eq!((of(text).0.as_str(), of(text).1.len()), ("warn", 1), "{text}");
        }
    }
}
