//! The manifest: TOML text, checked completely, and the levels of variants that it describes.
//!
//! ```
//! let text = r#"
//! version = 1
//! name = "thresholds"                       # becomes a folder of the results
//! seeds = { from = 1, count = 3 }           # replications
//!
//! [workloads.synthetic]                     # a named block; the label becomes a column
//! source = "lublin"
//! job_number_from = [0, 500]
//! job_number_to = [500, 1000]
//! zip = [["job_number_from", "job_number_to"]]   # these advance together
//!
//! [platforms.cluster]                       # optional: the defaults
//! size_factor = { from = 1.0, to = 1.5, step = 0.1 }   # exact decimals: six values
//!
//! [policies.slow]
//! gear_rule = ["top", "bsld"]               # components can be axes, too
//! bsld_threshold = [1.5, 2, 3]              # applies to `bsld` only: 1 + 3 combinations
//!
//! [[exclude]]                               # all conditions must hold
//! gear_rule = "top"
//! size_factor = [1.1, 1.2]
//! "#;
//! let manifest = powersweep_experiments::Manifest::parse("thresholds.toml", text)?;
//! let sweep = powersweep_experiments::Sweep::new(manifest, Default::default()).expect("it needs no log");
//! assert_eq!((sweep.index_count(), sweep.task_count()), (2 * 6 * 4 * 3, 2 * (6 * 4 - 2) * 3));
//! # Ok::<(), powersweep_experiments::ManifestErrors>(())
//! ```
//!
//! Blocks of a section are alternatives: a sweep runs every workload on every platform under every policy. At the top,
//! `zip = [["workload", "platform"]]` pairs blocks one by one instead, in the order of the text.
//!
//! All problems are reported at once, except after a problem of TOML syntax, which makes the keys unreliable. The
//! module does not access the file system: the caller gives the text and the file name for messages.

pub(crate) mod block;
pub(crate) mod combos;
mod design_level;
pub(crate) mod design_range;
pub(crate) mod designs;
pub(crate) mod exclude;
mod facility;
pub(crate) mod places;
pub(crate) mod sections;
pub(crate) mod signal_keys;
mod signal_points;
pub(crate) mod signals;
pub(crate) mod top;
pub(crate) mod unique;
pub(crate) mod until;
pub(crate) mod values;
mod zip;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use powersweep_engine::workload::{LOG_IMPORT, LogFormat};

use crate::Digest;
use crate::designs::{Design, DesignPoints};
use crate::errors::{ManifestErrors, Problem};
use crate::exclusion::{Exclusion, Rule};
use crate::limits::TaskLimits;
use crate::names::add_new;
use crate::signals::Signal;
use crate::space::{LEVELS, LOG, Level, MODULE};

use self::until::Until;

/// Greatest size of a manifest (bytes).
pub const TEXT_MAX: usize = 1 << 20;
/// Greatest number of combinations of components that one block may make.
pub(crate) const VARIANTS_MAX: u64 = 10_000;

/// A manifest: parsed, checked, and cheap to clone.
#[derive(Debug, Clone)]
pub struct Manifest(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) name: Arc<str>,
    pub(crate) description: String,
    pub(crate) tables: Tables,
    pub(crate) series: Option<Vec<&'static str>>,
    pub(crate) limits: TaskLimits,
    pub(crate) text: Arc<str>,
    /// The text as it was written.
    pub(crate) source: Arc<str>,
    /// The places of the files that are not called by them.
    pub(crate) places: BTreeMap<String, String>,
    pub(crate) levels: [Level; LEVELS],
    pub(crate) logs: Vec<LogRef>,
    pub(crate) signals: Vec<Signal>,
    pub(crate) designs: Vec<Arc<Design>>,
    pub(crate) until: Option<Until>,
    /// Names of the policy modules.
    pub(crate) modules: BTreeSet<String>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) exclusion: Exclusion,
}

/// The optional result tables that a manifest asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tables {
    /// One row for each simulated job.
    pub jobs: bool,
    /// One row for each point of a series.
    pub series: bool,
    /// One row for each task and signal: written if the manifest has signals.
    pub accounts: bool,
}

impl Tables {
    /// Their names, in messages and as folders.
    pub const NAMES: [&str; 3] = ["jobs", "series", "accounts"];
    /// Those that a manifest lists under `tables`.
    pub const LISTED: [&str; 2] = ["jobs", "series"];

    /// Whether the manifest asks for this table; `None` if there is no optional table of this name.
    pub fn asked(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "jobs" => Some(&mut self.jobs),
            "series" => Some(&mut self.series),
            "accounts" => Some(&mut self.accounts),
            _ => None,
        }
    }

    /// Names of the tables that the manifest asks for.
    pub fn names(mut self) -> impl Iterator<Item = &'static str> {
        Tables::NAMES.into_iter().filter(move |name| self.asked(name).is_some_and(|asked| *asked))
    }
}

/// A file that a manifest needs: a log, a signal or a policy module.
#[derive(Debug, Clone)]
pub struct FileRef {
    /// Its name in the state, in rows and messages: the place, without the folder of an absolute path, and without what may
    /// be secret in a URL.
    pub name: String,
    /// Name on the search path, path or URL, as the manifest was written.
    pub place: String,
    /// The format of a log; `None` for another file.
    pub format: Option<&'static LogFormat>,
    /// SHA-256 of the file as downloaded, where the manifest gives it.
    pub sha256: Option<Digest>,
    /// Arguments of `powersweep import` that make the log from the file, where the manifest gives them.
    pub import: Option<String>,
}

impl FileRef {
    /// A file that is no log.
    pub fn plain(name: &str, sha256: Option<Digest>) -> FileRef {
        FileRef { name: name.to_owned(), place: name.to_owned(), format: None, sha256, import: None }
    }
}

/// A log that a manifest needs.
#[derive(Debug, Clone)]
pub struct LogRef {
    /// Its name, as in [`FileRef`].
    pub log: String,
    /// The format that the manifest's source names.
    pub format: &'static LogFormat,
    /// SHA-256 of the file as downloaded, where the manifest gives it.
    pub sha256: Option<Digest>,
    /// Arguments of `powersweep import` that make the log from the file, where the manifest gives them.
    pub import: Option<String>,
}

impl Manifest {
    /// Reads and checks a manifest. `file` is the name shown in messages.
    pub fn parse(file: &str, text: &str) -> Result<Manifest, ManifestErrors> {
        let written = read(file, text)?;
        let files = written.files();
        let names = places::public_names(files.iter().map(|file| file.name.as_str()));
        if names.is_empty() {
            return Ok(Manifest(Arc::new(written)));
        }
        let inner = read(file, &places::replaced(text, &names))?;
        let places = names.into_iter().map(|(place, name)| (name, place)).collect();
        Ok(Manifest(Arc::new(Inner { source: text.into(), places, ..inner })))
    }

    /// The experiment's name: a folder of the results.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The description; empty if there is none.
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// The logs that it needs, each once, ordered by name.
    pub fn logs(&self) -> Vec<LogRef> {
        self.0.logs.clone()
    }

    /// The signals, in the order of their labels and combinations.
    pub fn signals(&self) -> &[Signal] {
        &self.0.signals
    }

    /// The points of the design with this label.
    pub fn design(&self, label: &str) -> Option<DesignPoints> {
        self.designs().find(|design| design.label() == label)
    }

    /// The designs, in the order of their names.
    pub fn designs(&self) -> impl Iterator<Item = DesignPoints> + '_ {
        self.0.designs.iter().cloned().map(DesignPoints)
    }

    /// The conditions until which seeds are added; `None` if the seeds are fixed.
    pub fn until(&self) -> Option<&Until> {
        self.0.until.as_ref()
    }

    /// The names of the policy modules that it needs.
    pub fn modules(&self) -> &BTreeSet<String> {
        &self.0.modules
    }

    /// The files that it needs, each once: logs, then files of signals, then policy modules, each ordered by name.
    pub fn files(&self) -> Vec<FileRef> {
        self.0.files()
    }

    /// The optional tables it asks for.
    pub fn tables(&self) -> Tables {
        self.0.tables
    }

    /// Whether a series of this name has rows in the table `series`. A manifest that names no series records all.
    pub fn records(&self, series: &str) -> bool {
        self.0.series.as_ref().is_none_or(|chosen| chosen.contains(&series))
    }

    /// The limits of each task.
    pub fn limits(&self) -> TaskLimits {
        self.0.limits
    }

    /// The text that the state and the rows have: the text that it was read from, with the names of files in place of absolute
    /// paths and of URLs with secrets.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The exact text it was read from.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }
}

impl Inner {
    fn files(&self) -> Vec<FileRef> {
        let place = |name: &str| self.places.get(name).map_or(name, String::as_str).to_owned();
        let logs = self.logs.iter();
        let logs = logs.map(|log| FileRef {
            name: log.log.clone(),
            place: place(&log.log),
            format: Some(log.format),
            sha256: log.sha256,
            import: log.import.clone(),
        });
        let plain = |name: &str, sha256| FileRef { place: place(name), ..FileRef::plain(name, sha256) };
        let signals: BTreeMap<&str, Option<Digest>> =
            self.signals.iter().map(|signal| (&*signal.file, signal.sha256)).collect();
        let signals = signals.into_iter().map(|(name, sha256)| plain(name, sha256));
        let modules = self.modules.iter().map(|name| plain(name, None));
        logs.chain(signals).chain(modules).collect()
    }
}

/// Reads and checks a text.
fn read(file: &str, text: &str) -> Result<Inner, ManifestErrors> {
    let shared: Arc<str> = text.into();
    let mut problems = Vec::new();
    match top::read(&shared, &mut problems) {
        Some(inner) if problems.is_empty() => Ok(inner),
        _ => {
            if problems.is_empty() {
                problems.push(Problem::new(0..0, "the manifest cannot be used", "this is a bug: please report it"));
            }
            Err(ManifestErrors::new(file, &shared, problems))
        }
    }
}

/// The formats, digests and readings that a manifest gives for a log.
#[derive(Default)]
struct Given {
    formats: Vec<&'static LogFormat>,
    sums: Vec<String>,
    imports: BTreeSet<Option<String>>,
}

/// The names of the policy modules of a level of policies.
fn modules(level: &Level) -> BTreeSet<String> {
    level.variants.iter().flat_map(|variant| variant.texts(MODULE)).collect()
}

/// The logs of a level of workloads.
fn logs(level: &Level) -> BTreeMap<String, Given> {
    let mut logs: BTreeMap<String, Given> = BTreeMap::new();
    for variant in &level.variants {
        let Some(format) = variant.choices.iter().find_map(LogFormat::of) else { continue };
        let digit = |name: &str| variant.column(name).map(|(digit, _)| digit);
        let [names, sums, imports] = [LOG, "log_sha256", LOG_IMPORT.name].map(|name| variant.texts(name));
        let zipped = |name: &str| digit(LOG).is_some() && digit(LOG) == digit(name);
        for (row, log) in names.into_iter().enumerate() {
            let known = logs.entry(log).or_default();
            if !known.formats.iter().any(|other| std::ptr::eq(*other, format)) {
                known.formats.push(format);
            }
            let imports = if zipped(LOG_IMPORT.name) { &imports[row..=row] } else { &imports[..] };
            if imports.is_empty() {
                known.imports.insert(None);
            }
            known.imports.extend(imports.iter().cloned().map(Some));
            let sums = if zipped("log_sha256") { &sums[row..=row] } else { &sums[..] };
            add_new(&mut known.sums, sums.iter().cloned());
        }
    }
    logs
}
