//! What a simulation gives besides its summary, on request.
use crate::batch::job_record::JobRecord;
use crate::queues::QueueSummary;
use crate::series::SeriesPoint;
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
    /// Points of the series that the components of the spec record, in order of series, level and x.
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

    pub(crate) fn clear(&mut self) {
        self.jobs.iter_mut().for_each(Vec::clear);
        self.series.iter_mut().for_each(Vec::clear);
    }
}
