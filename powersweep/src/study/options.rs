//! Requests to a study, and its answers.

use std::sync::Arc;
use std::time::Duration;

use powersweep_dataset::Error;
use powersweep_engine::Value;
use powersweep_experiments::ManifestErrors;
use powersweep_inputs::library::{Library, ParsedLogs};

use super::ToldGroup;
use crate::find::Values;
use crate::inputs::{self, LOGS_BYTES};
use crate::run::RunOptions;

/// The metrics of a study, and how the tasks of its points run.
#[derive(Clone)]
pub struct StudyOptions {
    /// The manifest's name in messages.
    pub file: String,
    /// The metrics: columns of `tasks` or `accounts`.
    pub metrics: Vec<String>,
    /// Conditions that choose rows of `accounts`, such as `signal=grid`.
    pub only: Vec<String>,
    /// Where the files of the manifest are searched for.
    pub library: Library,
    /// Keeps the parsed logs.
    pub logs: Arc<ParsedLogs>,
    /// How tasks run in this process, if no coordinator runs them.
    pub run: RunOptions,
    /// Makes an error of the problems of a manifest.
    pub problems: fn(&str, &ManifestErrors) -> Error,
}

impl Default for StudyOptions {
    fn default() -> StudyOptions {
        StudyOptions {
            file: "the manifest".to_owned(),
            metrics: Vec::new(),
            only: Vec::new(),
            library: Library::new(Vec::new(), None),
            logs: Arc::new(ParsedLogs::new(LOGS_BYTES)),
            run: RunOptions::default(),
            problems: inputs::problems,
        }
    }
}

/// A point to simulate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// The design of points; `None` for the only one.
    pub design: Option<String>,
    /// A value for each parameter of the design.
    pub values: Vec<(String, Value)>,
}

/// The points for which [`Study::tell`](super::Study::tell) waits, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Number of points; fewer are told if no more were asked for.
    pub least: usize,
    /// The longest wait; `None` for no limit.
    pub limit: Option<Duration>,
}

/// A point that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The number that [`Study::ask`](super::Study::ask) gave; `None` of a point that this process did not ask for.
    pub number: Option<usize>,
    /// Its design.
    pub design: String,
    /// Its values, as its rows have them.
    pub values: Values,
    /// The means of the metrics over the seeds: one group, unless something else varies in the manifest.
    pub groups: Vec<ToldGroup>,
    /// Why tasks of the point failed for good; the means are then those of the other tasks.
    pub failure: Option<String>,
}
