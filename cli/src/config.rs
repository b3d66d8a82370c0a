//! Configuration files: defaults of options.
//!
//! Flags come first, then variables of the environment. Then each key has its value from the first of these files that
//! has the key: `./powersweep.toml`, `$XDG_CONFIG_HOME/powersweep/config.toml` (the user's), and
//! `/etc/powersweep/config.toml` (the machine's). A relative path starts in the folder of its file.

mod keys;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PathBufValueParser, Resettable, StringValueParser, TypedValueParser};
use clap::{Arg, ColorChoice, Command, ValueEnum, ValueHint};
use powersweep::{Notes, user};
use powersweep_experiments::reading::{kind, suggestion};
use powersweep_experiments::{ManifestErrors, Problem};
use rustix::process::geteuid;
use toml::de::DeTable;

use crate::exit::{Failure, failure};
use crate::inputs;

pub use keys::KEYS;
use keys::Key;

/// The file of the current folder.
const HERE: &str = "powersweep.toml";

/// The file of the machine.
const MACHINE: &str = "/etc/powersweep/config.toml";

/// Keys of manifests, which are TOML files, too.
const MANIFEST_KEYS: [&str; 6] = ["version", "name", "workloads", "platforms", "policies", "seeds"];

/// A value of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub key: &'static Key,
    /// The texts that an option would have; several for a list.
    pub values: Vec<String>,
    /// File and line.
    pub origin: String,
}

/// The settings of all files.
#[derive(Debug, Default)]
pub struct Config {
    settings: Vec<Setting>,
    /// The files in the order of their precedence, each with the reason why it was not read.
    pub files: Vec<(PathBuf, Option<&'static str>)>,
}

impl Config {
    /// Reads the files. A file with a problem is an error; the file of another user is reported and ignored.
    pub fn read(notes: &Notes) -> Result<Config, Failure> {
        let mut config = Config::default();
        for path in files() {
            let text = text(&path, notes)?;
            if let Some(text) = &text {
                config.add(settings(&path, text)?);
            }
            let why_not = match text {
                Some(_) => None,
                None if path.exists() => Some("ignored: another user could have written it"),
                None => Some("not there"),
            };
            config.files.push((path, why_not));
        }
        Ok(config)
    }

    /// Adds the settings of a file whose keys no earlier file has.
    fn add(&mut self, settings: Vec<Setting>) {
        let known: Vec<&str> = self.settings.iter().map(|setting| setting.key.name).collect();
        self.settings.extend(settings.into_iter().filter(|setting| !known.contains(&setting.key.name)));
    }

    /// The setting of a key.
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key.name == key)
    }

    /// When to colour.
    pub fn color(&self) -> Option<ColorChoice> {
        let setting = self.get(keys::COLOR)?;
        ColorChoice::from_str(&setting.values.concat(), false).ok()
    }

    /// The command line with these settings as the defaults of its options, in all commands.
    pub fn apply(&self, command: Command) -> Command {
        let has = |command: &Command, name: &str| command.get_arguments().any(|arg| arg.get_id() == name);
        // `--color` is needed before the command line is parsed.
        let settings = self.settings.iter().filter(|setting| setting.key.name != keys::COLOR);
        let command = settings.fold(command, |command, setting| match has(&command, setting.key.name) {
            true => command.mut_arg(setting.key.name, |arg| with_default(arg, setting)),
            false => command,
        });
        let inner: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
        inner.into_iter().fold(command, |command, name| command.mut_subcommand(name, |inner| self.apply(inner)))
    }
}

/// The command line in which a path may begin with `~/`, and a variable that is empty counts as not set.
pub fn forgiving(command: Command) -> Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let arg = |arg: Arg| match arg.get_env().is_some_and(is_empty) {
        true => expanding(arg.env(Resettable::Reset)),
        false => expanding(arg),
    };
    command.mut_args(arg).mut_subcommands(forgiving)
}

fn expanding(arg: Arg) -> Arg {
    let expanded = |path: PathBuf| user::expanded(&path);
    match arg.get_value_hint() {
        ValueHint::AnyPath => arg.value_parser(PathBufValueParser::new().map(expanded)),
        _ if arg.get_id() == "data" => arg.value_parser(
            StringValueParser::new().map(|data| user::expanded(data.as_ref()).to_string_lossy().into_owned()),
        ),
        _ => arg,
    }
}

fn with_default(arg: Arg, setting: &Setting) -> Arg {
    // clap keeps texts for the whole run, as this program keeps its settings.
    let values = setting.values.iter().map(|value| -> &'static str { value.clone().leak() });
    arg.default_values(values)
}

/// The files, the first of which decides.
fn files() -> Vec<PathBuf> {
    let user = user::base_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("powersweep/config.toml"));
    [Some(PathBuf::from(HERE)), user, Some(PathBuf::from(MACHINE))].into_iter().flatten().collect()
}

/// The text of a file; `None` if there is none, or if another user could have written it.
fn text(path: &Path, notes: &Notes) -> Result<Option<String>, Failure> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    use std::os::unix::fs::MetadataExt;
    let shown = path.display();
    let unreadable = |error: std::io::Error| failure!(Usage, "cannot read the configuration {shown}: {error}");
    let metadata = match std::fs::metadata(path) {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(None),
        found => found.map_err(unreadable)?,
    };
    let is_trusted = [0, geteuid().as_raw()].contains(&metadata.uid()) && metadata.mode() & 0o002 == 0;
    if !is_trusted {
        let reason = "another user could have written it: a configuration must belong to you or root, and must not be \
                      writable by everybody";
        notes.say(&format!("the configuration {shown} is ignored: {reason}"));
        return Ok(None);
    }
    powersweep::inputs::text(&shown.to_string(), "configuration").map(Some)
}

/// The settings of a file, or all its problems.
fn settings(path: &Path, text: &str) -> Result<Vec<Setting>, Failure> {
    let mut problems = Vec::new();
    let settings = parsed(path, text, &mut problems);
    if problems.is_empty() {
        return Ok(settings);
    }
    let file = path.display().to_string();
    Err(inputs::problems(&file, &ManifestErrors::new(&file, &Arc::from(text), problems)))
}

fn parsed(path: &Path, text: &str, problems: &mut Vec<Problem>) -> Vec<Setting> {
    let (table, errors) = DeTable::parse_recoverable(text);
    problems.extend(errors.iter().map(|error| Problem::syntax(text, error)));
    if !errors.is_empty() {
        return Vec::new();
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut settings = Vec::new();
    for (name, value) in table.get_ref() {
        let text_name = name.get_ref().as_ref();
        let Some(key) = KEYS.iter().find(|key| key.name == text_name) else {
            problems.push(unknown_key(text_name, name.span()));
            continue;
        };
        match key.texts(value.get_ref(), folder) {
            Ok(values) => {
                let line = text[..name.span().start].matches('\n').count() + 1;
                settings.push(Setting { key, values, origin: format!("{}:{line}", path.display()) });
            }
            Err(expected) => {
                let message = format!("`{text_name}` cannot be {}", kind(value.get_ref()));
                problems.push(Problem::new(value.span(), message, format!("expected {expected}")));
            }
        }
    }
    settings
}

fn unknown_key(name: &str, span: std::ops::Range<usize>) -> Problem {
    let problem = Problem::new(span, format!("a configuration has no key `{name}`"), "unknown key");
    match MANIFEST_KEYS.contains(&name) {
        true => problem.help("this is a key of manifests: if the file is a manifest, give it another name"),
        false => problem.help(suggestion(name, KEYS.iter().map(|key| key.name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<Setting> {
        settings(Path::new(path), text).map_err(|failure| failure.message).expect("it is right")
    }

    #[test]
    fn the_first_file_with_a_key_decides() {
        let mut config = Config::default();
        config.add(of("powersweep.toml", "slots = 2\n"));
        config.add(of("/home/u/.config/powersweep/config.toml", "\nslots = 3\ndata = \"data\"\n"));
        config.add(of("/etc/powersweep/config.toml", "data = \"s3://bucket\"\ncache_size = \"1GiB\"\n"));
        let found = |key: &str| config.get(key).map(|found| (found.values.concat(), found.origin.clone()));
        let setting = |value: &str, origin: &str| Some((value.to_owned(), origin.to_owned()));
        assert_eq!(found("slots"), setting("2", "powersweep.toml:1"));
        let user = "/home/u/.config/powersweep";
        assert_eq!(found("data"), setting(&format!("{user}/data"), &format!("{user}/config.toml:3")));
        assert_eq!(found("cache_size"), setting("1GiB", "/etc/powersweep/config.toml:2"));
        assert_eq!(found("coordinator"), None);
    }

    #[test]
    fn every_problem_is_reported_with_its_place() {
        let text = "slot = 2\ndata = 3\nslots = -1\ncolor = \"blue\"\nworkloads = 1\ncache_size = \"big\"\n";
        let failure = settings(Path::new("powersweep.toml"), text).map(|found| found.len()).expect_err("it is wrong");
        for said in [
            "6 problems in powersweep.toml",
            "powersweep.toml:1:1",
            "did you mean `slots`?",
            "`data` cannot be 3",
            "`slots` cannot be -1",
            "expected \"auto\", \"always\" or \"never\"",
            "this is a key of manifests",
            "powersweep.toml:6:14",
        ] {
            assert!(failure.message.contains(said), "{said:?} in\n{}", failure.message);
        }
        let failure = settings(Path::new("c.toml"), "data = \n").map(|found| found.len()).expect_err("it is wrong");
        assert!(failure.message.contains("this is not TOML"), "{}", failure.message);
    }
}
