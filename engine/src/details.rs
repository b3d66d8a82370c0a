//! What a simulation gives besides its summary, on request.
use crate::JobRecord;
use crate::queueing::QueueSummary;
use crate::series::SERIES;
use crate::summary::Summary;

/// The summary of one simulation: batch jobs or a queueing model. Fields of one name are one column of the results.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// Rigid jobs on counted procs.
    Jobs(Box<Summary>),
    /// One-proc tasks on named machines.
    Queues(Box<QueueSummary>),
}

impl Measured {
    /// The summary of rigid jobs, if it is one.
    pub fn jobs(&self) -> Option<&Summary> {
        match self {
            Measured::Jobs(summary) => Some(summary),
            Measured::Queues(_) => None,
        }
    }

    /// The summary of a queueing model, if it is one.
    pub fn queues(&self) -> Option<&QueueSummary> {
        match self {
            Measured::Queues(summary) => Some(summary),
            Measured::Jobs(_) => None,
        }
    }
}

/// Optional tables: `Some` asks for one; it is cleared, then filled, and left empty on errors.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// One record a job in order of (submit, tie rule).
    pub jobs: Option<Vec<JobRecord>>,
    /// Points of the series that the parts of the spec record, in order of series, level and x.
    pub series: Option<Vec<SeriesPoint>>,
}

impl Details {
    /// Asks for the records of jobs alone.
    pub fn jobs() -> Details {
        Details { jobs: Some(Vec::new()), series: None }
    }

    /// Asks for the series alone.
    pub fn series() -> Details {
        Details { jobs: None, series: Some(Vec::new()) }
    }

    /// Whether every point belongs to a declared series.
    pub(crate) fn declared(&self) -> bool {
        let known = |point: &SeriesPoint| SERIES.iter().any(|series| series.name == point.series);
        self.series.iter().flatten().all(known)
    }

    pub(crate) fn clear(&mut self) {
        if let Some(jobs) = &mut self.jobs {
            jobs.clear();
        }
        if let Some(series) = &mut self.series {
            series.clear();
        }
    }
}

crate::record! {
/// One point of a series or of a distribution: a row of the `series` table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesPoint {
    /// Name of the series; each is listed below with its unit and what `x` and `level` are.
    pub series: &'static str,
    /// What the series is split by, such as a gear index, a week or a class; null for a series that is not split.
    pub level: Option<i64>,
    /// Abscissa: an instant of the workload's clock (s), from which a step function holds its value; or the value at
    /// which a distribution is taken.
    pub x: f64,
    /// Ordinate, in the unit that the name of the series ends in.
    pub value: f64,
}
}
