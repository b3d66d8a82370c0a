//! Requests to a study, and its answers.

use std::time::Duration;

use powersweep_engine::Value;

use super::ToldGroup;
use crate::derived::DerivedOptions;
use crate::find::Values;

/// The metrics of a study, and how the tasks of its points run.
#[derive(Clone, Default)]
pub struct StudyOptions {
    /// The metrics: columns of `tasks` or `accounts`.
    pub metrics: Vec<String>,
    /// Conditions that choose rows, such as `signal=grid`. A point ends with its tasks, whatever rows they choose.
    pub only: Vec<String>,
    /// The manifest's name and files, and how tasks run.
    pub manifest: DerivedOptions,
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
    /// Its values, as its rows have them; of a parameter that is a list, its only number.
    pub values: Values,
    /// The means of the metrics over the seeds: one group, unless something else varies in the manifest.
    pub groups: Vec<ToldGroup>,
    /// Why tasks of the point failed for good; the means are then those of the other tasks.
    pub failure: Option<String>,
}
