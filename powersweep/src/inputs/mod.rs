//! What a sweep reads: its manifest, and the logs, signals and modules that the manifest names.

mod files;
pub mod ledgers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use powersweep_dataset::words::count;
use powersweep_dataset::{Error, Kind, OrKind, failure};
use powersweep_engine::workload::swf::SwfLog;
use powersweep_engine::workload::{FORMATS, LogFormat};
use powersweep_experiments::reading::unknown;
use powersweep_experiments::{
    Digest, FileRef, Manifest, ManifestErrors, Sweep, TaskSpec, manifests, place_in, with_points,
};
use powersweep_inputs::joblogs::{self, JobLog, Ledger, Settings};
use powersweep_inputs::ledger::{Effect, Rule as _};
use powersweep_inputs::library::{Library, LoadError, LogBytes};
use powersweep_inputs::points;

pub use self::files::{Files, ManifestFiles};
use crate::user;

/// Maximum size of a manifest or a file of claims (bytes). The parser refuses larger texts, too.
pub const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Memory for the parsed logs of a manifest whose tasks do not run (bytes).
pub const LOGS_BYTES: usize = 1 << 30;

/// The text of the manifest in the file of this name, with the points of its designs; if no such file exists, that of the
/// shipped manifest. The first value names the text in errors.
///
/// # Errors
/// There is neither, or the file cannot be read.
pub fn manifest_text(name: &str) -> Result<(String, Cow<'static, str>), Error> {
    // A pipe is read, too.
    if Path::new(name).metadata().is_ok_and(|found| !found.is_dir()) {
        let folder = folder_of(name);
        let manifest = text(name, "manifest")?;
        let points = |place: &str| {
            let file = folder.join(place).to_string_lossy().into_owned();
            if !Path::new(&file).exists() {
                let library = Library::new(Vec::new(), None).with_base(&folder);
                let missing = library.load_file_of(&FileRef::plain(place, None)).err();
                let reason = missing.map(|error| error.to_string()).unwrap_or_default();
                return Err(failure!(Usage, "{}", located(&reason, &manifest, place)));
            }
            points::lines(&bytes(&file, "file of points")?).map_err(|problem| failure!(Usage, "{file}: {problem}"))
        };
        return Ok((name.to_owned(), with_points(&manifest, points)?.into()));
    }
    if let Some(text) = manifests::find(name) {
        return Ok((format!("{name} (shipped)"), text.into()));
    }
    let shipped: Vec<&str> = manifests::builtin().iter().map(|(name, _)| *name).collect();
    let reason = if name.ends_with(".toml") || name.contains(std::path::is_separator) {
        format!("there is no manifest file {name}; the shipped manifests are {}", shipped.join(", "))
    } else {
        unknown("manifest (neither a file nor a shipped one)", name, &shipped)
    };
    Err(failure!(Usage, "{reason}"))
}

/// A message about a file with the line and the block of the manifest that names it, before the cause; unchanged if the cause is
/// in a line of the file.
fn located(message: &str, manifest: &str, place: &str) -> String {
    let Some((line, block)) = place_in(manifest, place) else { return message.to_owned() };
    let (what, cause) = message.split_once(": ").map_or((message, None), |(what, cause)| (what, Some(cause)));
    // Two lines of two files would mislead.
    if cause.is_some_and(|cause| cause.starts_with("line ")) {
        return message.to_owned();
    }
    let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
    format!("{what} (line {line}, {block}){cause}")
}

/// The text of an input file; `kind` names its content, such as "manifest".
///
/// # Errors
/// The file cannot be read, is larger than [`TEXT_BYTES_MAX`], or is no text.
pub fn text(name: &str, kind: &str) -> Result<String, Error> {
    String::from_utf8(bytes(name, kind)?).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        failure!(Usage, "cannot read the {kind} {name}: line {line} is no text in UTF-8: save the file as UTF-8")
    })
}

fn bytes(name: &str, kind: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = File::open(name).and_then(|file| file.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| failure!(Usage, "cannot read the {kind} {name}: {error}"))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(failure!(Usage, "{name} is too large to be a {kind}: it has more than {TEXT_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}

/// All problems of a file, each on lines of its own.
pub fn problems(file: &str, errors: &ManifestErrors) -> Error {
    failure!(Usage, "{} in {file}\n{errors}", count(errors.problems().len() as u64, "problem"))
}

/// The folder of a manifest or file of claims, where its relative paths start; empty (the current folder) for shipped ones.
pub fn folder_of(name: &str) -> PathBuf {
    let path = Path::new(name);
    let folder = path.parent().filter(|_| path.is_file());
    folder.map(Path::to_owned).unwrap_or_default()
}

/// `$XDG_CACHE_HOME/powersweep` or `~/.cache/powersweep`; none if neither variable has an absolute path.
pub fn default_cache() -> Option<PathBuf> {
    user::base_folder("XDG_CACHE_HOME", ".cache").map(|folder| folder.join("powersweep"))
}

/// The format of a log for which no source is chosen.
///
/// # Errors
/// There is no such log, or its name tells no format.
pub fn format(library: &Library, name: &str) -> Result<&'static LogFormat, Error> {
    library.format(name, FORMATS).map_err(not_loaded)
}

/// Loads one log.
///
/// # Errors
/// The log cannot be had, or has another digest.
pub fn log(library: &Library, format: &LogFormat, name: &str, sha256: Option<Digest>) -> Result<LogBytes, Error> {
    library.load(format, name, sha256).map_err(not_loaded)
}

fn not_loaded(error: LoadError) -> Error {
    let hint = match &error {
        // Without a search path, the error has its own hint. A path is not searched for.
        LoadError::NotFound { log, places, .. } if !places.is_empty() && !log.contains(std::path::is_separator) => {
            "\nset POWERSWEEP_TRACES or --traces to the folder with the file"
        }
        LoadError::UnknownFormat { .. } => "\nrename the file, or choose the format by `simulate -s source=SOURCE`",
        _ => "",
    };
    failure!(Workload, "{error}{hint}")
}

/// Loads one file of a manifest. A job log of a real system becomes a log, whose digest stands for it.
///
/// # Errors
/// The file cannot be had, or is no job log of its format.
pub fn file(library: &Library, file: &FileRef) -> Result<LogBytes, Error> {
    file_and_ledger(library, file).map(|(bytes, _)| bytes)
}

/// [`file`], and what happened to the rows of a job log of a real system.
fn file_and_ledger(library: &Library, file: &FileRef) -> Result<(LogBytes, Option<Ledger>), Error> {
    let loaded = library.load_file_of(file).map_err(not_loaded)?;
    let Some(import) = &file.import else { return Ok((loaded, None)) };
    let settings = Settings::parse(import)
        .map_err(|reason| failure!(Usage, "log {}: log_import = \"{import}\": {reason}", file.name))?;
    let log = job_log(&loaded.bytes, &loaded.origin.to_string(), &settings)?;
    let bytes = log.swf_without_origin().into_bytes();
    Ok((LogBytes { digest: Digest::of(&bytes), bytes, origin: loaded.origin }, Some(log.ledger)))
}

/// Reads a job log of a real system that has jobs. `name`: for messages.
///
/// # Errors
/// It is no job log of the format, or has no usable job: which rules dropped its rows.
pub fn job_log(bytes: &[u8], name: &str, settings: &Settings) -> Result<JobLog, Error> {
    let log = joblogs::read(bytes, name, settings).or_kind(Kind::Workload)?;
    if log.records.is_empty() {
        let rows = count(log.ledger.read, "row");
        return Err(failure!(Workload, "{name}: no job is left of {rows}: {}", why_empty(&log.ledger)));
    }
    Ok(log)
}

/// The rules that dropped all rows, in words.
fn why_empty(ledger: &Ledger) -> String {
    let rules = ledger.rules().filter(|(rule, _)| rule.effect() == Effect::Dropped);
    let why: Vec<String> = rules
        .map(|(rule, count)| {
            format!("{} by {} ({}, line {} first)", count.rows, rule.name(), rule.sentence(), count.first_line)
        })
        .collect();
    if why.is_empty() { "the file has a header only".to_owned() } else { why.join("; ") }
}

/// Parses a log.
///
/// # Errors
/// The log does not follow its format.
pub fn parsed(format: &LogFormat, bytes: &LogBytes) -> Result<SwfLog, Error> {
    format.read(&bytes.bytes, &bytes.origin.to_string()).or_kind(Kind::Workload)
}

/// The sweep of a manifest whose files have these digests.
///
/// # Errors
/// The manifest names a file that has no digest.
pub fn sweep(manifest: &Manifest, digests: &BTreeMap<String, Digest>) -> Result<Sweep, Error> {
    Sweep::new(manifest.clone(), digests.clone()).or_kind(Kind::Usage)
}

/// The task of an index.
///
/// # Errors
/// The sweep has no task of this index: why.
pub fn task(sweep: &Sweep, index: u64) -> Result<TaskSpec, Error> {
    sweep.task(index).ok_or_else(|| {
        let reason = if index < sweep.index_count() {
            sweep.why_excluded(index).to_owned()
        } else {
            format!("indices end at {}", sweep.index_count().saturating_sub(1))
        };
        failure!(Usage, "{} has no task {index}: {reason}", sweep.manifest().name())
    })
}
