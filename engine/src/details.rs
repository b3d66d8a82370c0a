//! The results of a simulation: its summary, and tables on request.
use crate::batch::job_record::JobRecord;
use crate::energy::EnergySplit;
use crate::queues::QueueSummary;
use crate::series::SeriesPoint;
use crate::summary::Summary;

/// The summary of one simulation, by model. Fields of the same name share a column of the results.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// Rigid jobs on counted procs.
    Jobs(Box<Summary>),
    /// Jobs of one proc on named servers.
    Queues(Box<QueueSummary>),
}

impl Measured {
    /// Number of simulated jobs: of queues, those that were completed.
    pub fn jobs_count(&self) -> u64 {
        match self {
            Measured::Jobs(summary) => summary.jobs_count,
            Measured::Queues(summary) => summary.jobs_count,
        }
    }

    /// The summary of rigid jobs; `None` for queues.
    pub fn jobs(&self) -> Option<&Summary> {
        match self {
            Measured::Jobs(summary) => Some(summary),
            Measured::Queues(_) => None,
        }
    }

    /// The summary of queues; `None` for rigid jobs.
    pub fn queues(&self) -> Option<&QueueSummary> {
        match self {
            Measured::Queues(summary) => Some(summary),
            Measured::Jobs(_) => None,
        }
    }
}

/// Optional tables. The caller asks for a table by `Some`; the simulation clears and fills it. After an error it is empty.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// One record for each job, in order of submit and tie rule.
    pub jobs: Option<Vec<JobRecord>>,
    /// Points of the series that the spec's components record, in order of series, level and x.
    pub series: Option<Vec<SeriesPoint>>,
    /// The energy of batch jobs' machine, split at the changes of signals.
    pub energy: Option<EnergySplit>,
}

impl Details {
    pub(crate) fn clear(&mut self) {
        self.jobs.iter_mut().for_each(Vec::clear);
        self.series.iter_mut().for_each(Vec::clear);
        self.energy.iter_mut().for_each(|energy| energy.cells.clear());
    }
}
