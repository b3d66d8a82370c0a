//! One task from its index to its row, on a slot's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use powersweep_engine::workload::WorkloadError;
use powersweep_engine::{Details, Limits, SimError, simulate};
use powersweep_experiments::{Decoder, Sweep, Tables};
use powersweep_proto::v1::FailureKind;
use powersweep_results::identity::RunFacts;

use super::batch::Row;
use super::clock::{Clock, Phase};
use super::panics;
use crate::logs::{LogError, Logs};
use crate::options::TaskLimits;
use crate::session::{ExperimentKey, TaskRef};

/// What a worker knows of one generation of an experiment.
#[derive(Debug, Clone)]
pub(crate) struct Experiment {
    pub(crate) key: ExperimentKey,
    pub(crate) sweep: Sweep,
    pub(crate) tables: Tables,
    /// The experiment's limits and the worker's own, whichever is less.
    pub(crate) limits: TaskLimits,
}

/// How a task ended.
pub(crate) enum Outcome {
    Row(Box<Row>),
    /// Not a task of the sweep, nor are the indices below `next`.
    Excluded {
        next: u64,
    },
    /// It was told to stop.
    Stopped,
    Failed {
        kind: FailureKind,
        message: String,
    },
}

impl Outcome {
    fn failed(kind: FailureKind, message: impl ToString) -> Outcome {
        Outcome::Failed { kind, message: message.to_string() }
    }
}

/// What a slot needs to run tasks.
pub(crate) struct Runner<'a> {
    pub(crate) worker: &'a str,
    pub(crate) logs: &'a Logs,
    pub(crate) clock: &'a Clock,
    pub(crate) stop: Arc<AtomicBool>,
    /// Rows of the last task for the optional tables that its experiment has.
    pub(crate) details: Details,
}

impl Runner<'_> {
    /// Runs one task of the experiment whose sweep `decoder` decodes. The slot's clock is in [`Phase::Store`] afterwards.
    pub(crate) fn run(&mut self, experiment: &Experiment, decoder: &mut Decoder, task: &TaskRef) -> Outcome {
        let started_at_us = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_micros() as i64);
        let begun = Instant::now();
        self.clock.enter(Phase::Parse);
        let outcome = panics::catch(|| self.attempt(experiment, decoder, task, begun, started_at_us));
        self.clock.enter(Phase::Store);
        match outcome {
            Ok(outcome) => outcome,
            Err(panic) => Outcome::failed(FailureKind::Panic, panic),
        }
    }

    fn attempt(
        &mut self,
        experiment: &Experiment,
        decoder: &mut Decoder,
        task: &TaskRef,
        begun: Instant,
        started_at_us: i64,
    ) -> Outcome {
        let Some(spec) = decoder.task(task.index) else {
            return Outcome::Excluded { next: experiment.sweep.next_included(task.index).unwrap_or(u64::MAX) };
        };
        let workload = match self.logs.workload(&spec, &self.stop) {
            Ok(workload) => workload,
            Err(LogError::Stopped) => return Outcome::Stopped,
            Err(e @ LogError::Workload(WorkloadError::TooLarge { .. })) => {
                return Outcome::failed(FailureKind::MemoryLimit, e);
            }
            Err(e @ LogError::Workload(_)) => return Outcome::failed(FailureKind::Invalid, e),
            Err(e @ (LogError::Swf(_) | LogError::Fetch { .. })) => return Outcome::failed(FailureKind::Workload, e),
        };
        let parse = self.clock.enter(Phase::Engine);

        let deadline = experiment.limits.deadline;
        let late = || deadline.is_some_and(|d| begun.elapsed() >= d);
        let deadline_passed = || self.stop.load(Ordering::Relaxed) || late();
        let limits = Limits {
            max_events: experiment.limits.max_events.unwrap_or(u64::MAX),
            max_bytes: experiment.limits.max_bytes.unwrap_or(usize::MAX),
            deadline_passed: &deadline_passed,
        };
        self.details.jobs = experiment.tables.jobs.then(|| self.details.jobs.take().unwrap_or_default());
        self.details.series = experiment.tables.series.then(|| self.details.series.take().unwrap_or_default());
        let result = simulate(&spec.sim, &workload, &limits, &mut self.details);
        let engine = self.clock.enter(Phase::Store);
        let measured = match result {
            Ok(measured) => measured,
            Err(SimError::Deadline) if !late() => return Outcome::Stopped,
            Err(e) => return failure(&e, deadline),
        };
        let facts = RunFacts {
            attempt: task.attempt,
            worker: self.worker.to_owned(),
            started_at_us,
            wall_ms: ms(begun.elapsed()),
            engine_ms: ms(engine),
            parse_ms: ms(parse),
        };
        Outcome::Row(Box::new(Row { spec, counts: workload.counts, measured, facts }))
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn failure(error: &SimError, deadline: Option<Duration>) -> Outcome {
    let kind = match error {
        SimError::Invalid(_) | SimError::TooWide { .. } | SimError::Empty(_) | SimError::Starved { .. } => {
            FailureKind::Invalid
        }
        SimError::Policy { .. } => FailureKind::Policy,
        SimError::Deadline => {
            let seconds = deadline.unwrap_or_default().as_secs_f64();
            return Outcome::failed(FailureKind::Deadline, format!("not finished within {seconds} s"));
        }
        SimError::EventLimit(_) => FailureKind::EventLimit,
        SimError::MemoryLimit(_) => FailureKind::MemoryLimit,
    };
    Outcome::failed(kind, error)
}
