//! Inputs of commands: manifests and logs.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use powersweep::user;
use powersweep_engine::workload::swf::SwfLog;
use powersweep_engine::workload::{FORMATS, LogFormat};
use powersweep_experiments::reading::unknown;
use powersweep_experiments::{Digest, FileRef, Manifest, ManifestErrors, Sweep, TaskSpec, manifests};
use powersweep_inputs::joblogs::{self, Count, Effect, JobLog, Ledger, Rule, Settings};
use powersweep_inputs::library::{Library, LoadError, LogBytes, ParsedLogs};
use powersweep_results::part::LEDGERS_BYTES_MAX;
use powersweep_worker::task::{FileSource, TaskError};
use serde_json::{Value as Json, json};

use crate::args::{LogArgs, ReadingArgs};
use crate::exit::{Failure, Kind, OrKind, failure};
use crate::{ledgers, modules, screen, signals};

/// Maximum size of a manifest or a file of claims (bytes). The parser refuses larger texts, too.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// The name that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// The manifest in the file of this name, or on standard input; if no such file exists, the shipped manifest of this name.
pub fn manifest(name: &str) -> Result<Manifest, Failure> {
    if name == STANDARD_INPUT {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(TEXT_BYTES_MAX + 1).read_to_string(&mut text);
        read.map_err(|error| failure!(Usage, "cannot read the manifest on standard input: {error}"))?;
        return parse("standard input", &text);
    }
    if Path::new(name).is_file() {
        return parse(name, &text(name, "manifest")?);
    }
    if let Some(text) = manifests::find(name) {
        return parse(&format!("{name} (shipped)"), text);
    }
    let shipped: Vec<&str> = manifests::builtin().iter().map(|(name, _)| *name).collect();
    let reason = if name.ends_with(".toml") || name.contains(std::path::is_separator) {
        format!("there is no manifest file {name}; the shipped manifests are {}", shipped.join(", "))
    } else {
        unknown("manifest (neither a file nor a shipped one)", name, &shipped)
    };
    Err(failure!(Usage, "{reason}"))
}

/// The manifest of this text; `file` names it in errors.
pub fn parse(file: &str, text: &str) -> Result<Manifest, Failure> {
    Manifest::parse(file, text).map_err(|errors| problems(file, &errors))
}

/// The text of an input file; `kind` names its content, such as "manifest".
pub fn text(name: &str, kind: &str) -> Result<String, Failure> {
    let size = std::fs::metadata(name).map(|m| m.len()).unwrap_or(0);
    if size > TEXT_BYTES_MAX {
        return Err(failure!(Usage, "{name} is too large to be a {kind}: it has {size} bytes"));
    }
    std::fs::read_to_string(name).map_err(|error| failure!(Usage, "cannot read the {kind} {name}: {error}"))
}

/// All problems of a file. A terminal, or a reader of colours, gets a drawing of each problem's place.
pub fn problems(file: &str, errors: &ManifestErrors) -> Failure {
    let count = errors.problems().len();
    let is_drawn = std::io::stderr().is_terminal() || screen::has_color(&std::io::stderr());
    let shown = if is_drawn { errors.drawn() } else { errors.to_string() };
    failure!(Usage, "{} in {file}\n{shown}", screen::count(count as u64, "problem"))
}

/// The log library of a manifest: relative paths start in the manifest's folder. `name`: as [`manifest`] takes it.
pub fn library_of(name: &str, args: &LogArgs) -> Library {
    library(args).with_base(folder_of(name))
}

/// The folder of a manifest or file of claims; empty (the current folder) for shipped ones.
pub fn folder_of(name: &str) -> PathBuf {
    let path = Path::new(name);
    let folder = path.parent().filter(|_| path.is_file());
    folder.map(Path::to_owned).unwrap_or_default()
}

/// The log library of the command line, whose relative paths start in the current folder.
pub fn library(args: &LogArgs) -> Library {
    let folders = args.traces.iter().filter(|p| !p.as_os_str().is_empty()).cloned().collect();
    Library::new(folders, args.cache.clone().or_else(default_cache)).with_cache_limit(args.cache_size)
}

/// `$XDG_CACHE_HOME/powersweep` or `~/.cache/powersweep`; none if neither variable has an absolute path.
pub fn default_cache() -> Option<PathBuf> {
    user::base_folder("XDG_CACHE_HOME", ".cache").map(|folder| folder.join("powersweep"))
}

/// The format of a log of the command line for which no source is chosen.
pub fn format(library: &Library, name: &str) -> Result<&'static LogFormat, Failure> {
    library.format(name, FORMATS).map_err(not_loaded)
}

/// Loads one log of a manifest or of the command line.
pub fn log(library: &Library, format: &LogFormat, name: &str, sha256: Option<Digest>) -> Result<LogBytes, Failure> {
    library.load(format, name, sha256).map_err(not_loaded)
}

fn not_loaded(error: LoadError) -> Failure {
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
pub fn file(library: &Library, file: &FileRef) -> Result<LogBytes, Failure> {
    file_and_ledger(library, file).map(|(bytes, _)| bytes)
}

/// [`file`], and what happened to the rows of a job log of a real system.
fn file_and_ledger(library: &Library, file: &FileRef) -> Result<(LogBytes, Option<Ledger>), Failure> {
    let loaded = library.load_file_of(file).map_err(not_loaded)?;
    let Some(import) = &file.import else { return Ok((loaded, None)) };
    let settings = ReadingArgs::parse(import)
        .map_err(|reason| failure!(Usage, "log {}: log_import = \"{import}\": {reason}", file.name))?;
    let log = job_log(&loaded.bytes, &loaded.origin.to_string(), &settings)?;
    let bytes = log.swf_without_origin().into_bytes();
    Ok((LogBytes { digest: Digest::of(&bytes), bytes, origin: loaded.origin }, Some(log.ledger)))
}

/// Reads a job log of a real system that has jobs. `name`: for messages.
pub fn job_log(bytes: &[u8], name: &str, settings: &Settings) -> Result<JobLog, Failure> {
    let log = joblogs::read(bytes, name, settings).or_kind(Kind::Workload)?;
    if log.records.is_empty() {
        let rows = screen::count(log.ledger.read, "row");
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

fn changes(ledger: &Ledger) -> String {
    let one = |(rule, count): (Rule, Count)| format!("{} {} ({})", count.rows, rule.effect().word(), rule.name());
    ledger.rules().map(one).collect::<Vec<_>>().join(", ")
}

/// Parses a log.
pub fn parsed(format: &LogFormat, bytes: &LogBytes) -> Result<SwfLog, Failure> {
    format.read(&bytes.bytes, &bytes.origin.to_string()).or_kind(Kind::Workload)
}

/// The files of a manifest, all of which were read.
#[derive(Debug, Default)]
pub struct Files {
    /// SHA-256 of each file, by its name in the manifest.
    pub digests: BTreeMap<String, Digest>,
    /// What happened to the rows of job logs and signals: an object for each reading of a file.
    ledgers: Vec<Json>,
}

impl Files {
    /// The ledgers as the results have them: a JSON array; empty without one, or if it is too long, which a note says.
    pub fn ledgers(&self) -> String {
        if self.ledgers.is_empty() {
            return String::new();
        }
        let text = json!(self.ledgers).to_string();
        if text.len() <= LEDGERS_BYTES_MAX {
            return text;
        }
        screen::note(&format!(
            "the ledgers of {} files are too long for the results: `powersweep import` and `powersweep plan` show them",
            self.ledgers.len()
        ));
        String::new()
    }
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
        let loaded = file(&self.library, &named.unwrap_or_else(|| FileRef::plain(name, None)));
        match loaded.map_err(|failure| failed(failure.message))? {
            loaded if loaded.digest == *digest => Ok(loaded.bytes),
            loaded => Err(failed(format!("{} has the digest {}", loaded.origin, loaded.digest))),
        }
    }
}

/// The digest of every file that a manifest needs. Each file is also read, so that a damaged one is refused before an
/// experiment is pinned to its bytes. `memory` keeps the parsed logs: a worker of this process then reads no log again.
pub fn files(manifest: &Manifest, library: &Library, memory: Option<&ParsedLogs>) -> Result<Files, Failure> {
    let files = manifest.files();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeMap::new());
    let read_files = || {
        while let Some(needed) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let read = file_and_ledger(library, needed).and_then(|(bytes, ledger)| {
                let changes = ledger.as_ref().map(changes).filter(|changes| !changes.is_empty());
                if let Some(changes) = changes {
                    screen::note(&format!("log {}: {changes}; `powersweep import` explains each", needed.name));
                }
                let mut ledgers: Vec<Json> =
                    ledger.iter().map(|ledger| ledgers::of_job_log(&needed.name, ledger)).collect();
                match needed.format {
                    Some(format) => {
                        let log = parsed(format, &bytes)?;
                        if let Some(memory) = memory {
                            memory.insert(bytes.digest, format, log);
                        }
                    }
                    None => {
                        ledgers.extend(signals::check(manifest, &needed.name, &bytes)?);
                        modules::check(manifest, &needed.name, &bytes)?;
                    }
                }
                Ok((bytes.digest, ledgers))
            });
            found.lock().unwrap_or_else(PoisonError::into_inner).insert(&needed.name, read);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..std::thread::available_parallelism().map_or(1, usize::from).min(files.len()) {
            scope.spawn(read_files);
        }
        read_files();
    });
    let (mut digests, mut ledgers) = (BTreeMap::new(), Vec::new());
    for (name, read) in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let (digest, of_file) = read?;
        digests.insert(name.clone(), digest);
        ledgers.extend(of_file);
    }
    Ok(Files { digests, ledgers })
}

/// The sweep of a manifest whose logs are known.
pub fn sweep(manifest: &Manifest, digests: &BTreeMap<String, Digest>) -> Result<Sweep, Failure> {
    Sweep::new(manifest.clone(), digests.clone()).or_kind(Kind::Usage)
}

/// The task of an index, or why there is none.
pub fn task(sweep: &Sweep, index: u64) -> Result<TaskSpec, Failure> {
    sweep.task(index).ok_or_else(|| {
        let reason = if index < sweep.index_count() {
            "an [[exclude]] or zip of the manifest leaves this combination out".to_owned()
        } else {
            format!("indices end at {}", sweep.index_count().saturating_sub(1))
        };
        failure!(Usage, "{} has no task {index}: {reason}", sweep.manifest().name())
    })
}
