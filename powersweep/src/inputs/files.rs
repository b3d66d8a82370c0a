//! The files of a manifest, which are read before anything runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use powersweep_coordinator::LogSource;
use powersweep_dataset::{Error, Kind, Notes, OrKind, failure};
use powersweep_engine::wasm::Module;
use powersweep_engine::workload::LogFormat;
use powersweep_experiments::reading::add_new;
use powersweep_experiments::signals::Signal;
use powersweep_experiments::{Digest, FileRef, Manifest};
use powersweep_inputs::ReadError;
use powersweep_inputs::library::{Library, LogBytes, ParsedLogs};
use powersweep_inputs::signals::{self, Loaded};
use powersweep_results::part::LEDGERS_BYTES_MAX;
use powersweep_worker::task::{FileSource, TaskError};
use serde_json::{Value as Json, json};

use super::{file, file_and_ledger, ledgers, located, parsed};
use crate::parallel::on_all_cores;

/// The files of a manifest, which were read; none for a manifest without files.
#[derive(Clone, Default)]
pub struct Files {
    /// SHA-256 of each file, by its name in the manifest.
    pub digests: BTreeMap<String, Digest>,
    /// What happened to the rows of job logs and signals, as the results have it: a JSON array with an object for each
    /// reading of a file; empty without one.
    pub ledgers: String,
    /// The signals with their content.
    pub signals: Vec<Loaded>,
    /// The files, for workers that connect.
    pub source: Option<Arc<LogSource>>,
    /// Parsed logs, so that a worker of this process reads none again.
    pub parsed: Option<Arc<ParsedLogs>>,
}

/// What one file has.
#[derive(Default)]
struct Content {
    digest: Option<Digest>,
    ledger: Option<Json>,
    /// The content of a file that signals read.
    bytes: Vec<u8>,
}

impl Files {
    /// Reads every file of a manifest, so that a damaged one is refused before an experiment is pinned to its bytes. `logs`
    /// keeps the parsed logs.
    ///
    /// # Errors
    /// A file cannot be had, or its content cannot be read.
    pub fn read(
        manifest: &Manifest,
        library: &Library,
        logs: Option<&Arc<ParsedLogs>>,
        notes: &Notes,
    ) -> Result<Files, Error> {
        let found = read_all(manifest, library, logs.map(|logs| &**logs), notes)?;
        let bytes = |file: &str| found.get(file).map(|content| content.bytes.as_slice()).unwrap_or_default();
        let signals = Loaded::all(manifest.signals(), |signal| Ok::<_, ReadError>(bytes(&signal.file)));
        let signals = signals.map_err(|_| {
            let read = |signal: &Signal| signals::read(bytes(&signal.file), &signal.file, &signal.reading);
            all_of(manifest.signals().iter().filter_map(|signal| read(signal).err()).map(|error| error.to_string()))
        })?;
        let digests: BTreeMap<String, Digest> =
            found.iter().filter_map(|(name, content)| Some((name.clone(), content.digest?))).collect();
        let mut all: Vec<Json> = found.into_values().filter_map(|content| content.ledger).collect();
        all.extend(ledgers::of_signals(&signals));
        let (files, known, library) = (manifest.files(), digests.clone(), library.clone());
        let source = move |digest: Digest| {
            let is_it = |file: &&FileRef| known.get(&file.name) == Some(&digest);
            let found = file(&library, files.iter().find(is_it)?).ok()?;
            (found.digest == digest).then_some(found.bytes)
        };
        Ok(Files {
            ledgers: stored(&all, notes),
            digests,
            signals,
            source: Some(Arc::new(source)),
            parsed: logs.cloned(),
        })
    }
}

/// The ledgers as the results have them; empty if they are too long, which a note says.
fn stored(ledgers: &[Json], notes: &Notes) -> String {
    if ledgers.is_empty() {
        return String::new();
    }
    let text = json!(ledgers).to_string();
    if text.len() <= LEDGERS_BYTES_MAX {
        return text;
    }
    notes.say(&format!(
        "the ledgers of {} files are too long for the results: `powersweep import` and `powersweep plan` show them",
        ledgers.len()
    ));
    String::new()
}

/// Reads the files of a manifest on several threads.
fn read_all(
    manifest: &Manifest,
    library: &Library,
    logs: Option<&ParsedLogs>,
    notes: &Notes,
) -> Result<BTreeMap<String, Content>, Error> {
    let files = manifest.files();
    let found = on_all_cores(&files, |needed| content(manifest, library, needed, logs, notes));
    if found.iter().filter(|content| content.is_err()).count() > 1 {
        return Err(all_of(found.into_iter().filter_map(|content| content.err()).map(|error| error.message)));
    }
    files.into_iter().zip(found).map(|(file, content)| Ok((file.name, content?))).collect()
}

/// One error of the problems of several files, each once. A cause that all of them have stands once, behind all files.
fn all_of(problems: impl Iterator<Item = String>) -> Error {
    let mut different: Vec<String> = Vec::new();
    add_new(&mut different, problems);
    let parts: Vec<(&str, &str)> = different.iter().filter_map(|problem| problem.split_once(": ")).collect();
    match parts[..] {
        [(_, cause), _, ..] if parts.len() == different.len() && parts.iter().all(|(_, other)| *other == cause) => {
            let files: Vec<&str> = parts.iter().map(|(file, _)| *file).collect();
            failure!(Workload, "{}: {cause}", files.join(", "))
        }
        _ => failure!(Workload, "{}", different.join("\n")),
    }
}

fn content(
    manifest: &Manifest,
    library: &Library,
    needed: &FileRef,
    logs: Option<&ParsedLogs>,
    notes: &Notes,
) -> Result<Content, Error> {
    let (bytes, ledger) = file_and_ledger(library, needed).map_err(|mut error| {
        error.message = located(&error.message, manifest.source(), &needed.place);
        error
    })?;
    let changes = ledger.as_ref().map(ledgers::changes).filter(|changes| !changes.is_empty());
    if let Some(changes) = changes {
        notes.say(&format!("log {}: {changes}; `powersweep import` explains each", needed.name));
    }
    let ledger = ledger.map(|ledger| ledgers::of_file(&needed.name, &ledger));
    let digest = Some(bytes.digest);
    let Some(format) = needed.format else {
        if manifest.modules().contains(&needed.name) {
            Module::new(&needed.name, &bytes.bytes).or_kind(Kind::Usage)?;
        }
        return Ok(Content { digest, ledger, bytes: bytes.bytes });
    };
    let log = parsed(format, &bytes)?;
    if let Some(logs) = logs {
        logs.insert(bytes.digest, format, log);
    }
    Ok(Content { digest, ledger, bytes: Vec::new() })
}

/// The files of a manifest on this machine, for tasks that run without a worker.
#[derive(Debug)]
pub struct ManifestFiles {
    files: Vec<FileRef>,
    library: Library,
}

impl ManifestFiles {
    /// `files`: those that a manifest names. `library`: that of the manifest.
    pub fn new(files: Vec<FileRef>, library: Library) -> ManifestFiles {
        ManifestFiles { files, library }
    }
}

impl FileSource for ManifestFiles {
    fn bytes(&self, _: Option<&'static LogFormat>, name: &str, digest: &Digest) -> Result<Vec<u8>, TaskError> {
        let failed = |reason: String| TaskError::File { file: name.to_owned(), digest: *digest, reason };
        let named = self.files.iter().find(|file| file.name == name).cloned();
        let loaded: Result<LogBytes, Error> = file(&self.library, &named.unwrap_or_else(|| FileRef::plain(name, None)));
        match loaded.map_err(|error| failed(error.message))? {
            loaded if loaded.digest == *digest => Ok(loaded.bytes),
            loaded => Err(failed(format!("{} has the digest {}", loaded.origin, loaded.digest))),
        }
    }
}
