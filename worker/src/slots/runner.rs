//! One task from its index to its row, on a slot's thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use powersweep_engine::workload::WorkloadError;
use powersweep_engine::{Details, SimError};
use powersweep_experiments::{Decoder, Sweep, Tables};
use powersweep_proto::clocks::now_us;
use powersweep_proto::v1::FailureKind;
use powersweep_results::identity::{Micros, RunFacts};

use super::batch::Row;
use super::clock::{Clock, Phase};
use super::{lock, panics};
use crate::logs::{FilesOfTask, Logs};
use crate::options::{TaskHook, TaskLimits};
use crate::session::{ExperimentKey, TaskRef};
use crate::task::{Inputs, Prepared, Ran, TaskError, details_for, keep_recorded, processor_time};

/// One generation of an experiment.
#[derive(Debug)]
pub(crate) struct Experiment {
    pub(crate) key: ExperimentKey,
    pub(crate) sweep: Sweep,
    pub(crate) tables: Tables,
    /// The lesser of the experiment's limits and the worker's own.
    pub(crate) limits: TaskLimits,
    pub(crate) inputs: Inputs,
}

/// The end of a task.
pub(crate) enum Outcome {
    Row(Box<Row>),
    /// The index is excluded from the sweep, and so are those after it below `next`.
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

impl From<TaskError> for Outcome {
    fn from(error: TaskError) -> Outcome {
        let mut message = error.to_string();
        let kind = match error {
            TaskError::Stopped => return Outcome::Stopped,
            TaskError::Workload(WorkloadError::TooLarge { .. }) => {
                message += ": a worker started with a larger --workload-memory can make it";
                FailureKind::Memory
            }
            TaskError::File { .. } | TaskError::Log(_) | TaskError::Signal(_) => FailureKind::Workload,
            TaskError::Workload(_) | TaskError::Place(_) | TaskError::Module(_) => FailureKind::Spec,
            TaskError::Simulation { error, .. } => kind(&error),
        };
        Outcome::Failed { kind, message }
    }
}

/// Runs the tasks of one slot.
pub(crate) struct Runner<'a> {
    pub(crate) worker: &'a str,
    pub(crate) logs: &'a Logs,
    pub(crate) clock: &'a Clock,
    pub(crate) stop: Arc<AtomicBool>,
    /// When the running task is given up. Written here, read by [`super::Pool::give_up_overdue`].
    pub(crate) overdue: &'a Mutex<Option<Overdue>>,
    pub(crate) hook: Option<&'a TaskHook>,
    /// Rows of the last task for the optional tables that its experiment has.
    pub(crate) details: Details,
}

impl Runner<'_> {
    /// Runs one task of the experiment whose sweep `decoder` decodes. The slot's clock is in [`Phase::Store`] afterwards.
    pub(crate) fn run(&mut self, experiment: &Experiment, decoder: &mut Decoder, task: &TaskRef) -> Outcome {
        let started_at = Micros(now_us());
        let begun = Instant::now();
        self.clock.enter(Phase::Parse);
        let outcome = panics::catch(|| self.attempt(experiment, decoder, task, begun, started_at));
        *lock(self.overdue) = None;
        self.clock.enter(Phase::Store);
        match outcome {
            Ok(outcome) => outcome.unwrap_or_else(Outcome::from),
            Err(panic) => Outcome::Failed { kind: FailureKind::Panic, message: panic },
        }
    }

    fn attempt(
        &mut self,
        experiment: &Experiment,
        decoder: &mut Decoder,
        task: &TaskRef,
        begun: Instant,
        started_at: Micros,
    ) -> Result<Outcome, TaskError> {
        let Some(spec) = decoder.task(task.index) else {
            return Ok(Outcome::Excluded { next: experiment.sweep.next_included(task.index).unwrap_or(u64::MAX) });
        };
        let files = FilesOfTask { logs: self.logs, stop: &self.stop };
        let prepared = experiment.inputs.prepare(spec, &self.logs.parsed, &files)?;
        let parse = self.clock.enter(Phase::Engine);
        let limits = experiment.limits.begin();
        if let Some(deadline) = experiment.limits.deadline {
            *lock(self.overdue) = Overdue::after(Instant::now(), deadline);
        }
        if let Some(TaskHook(hook)) = self.hook {
            hook(&experiment.key.name, task.index);
        }
        details_for(experiment.tables, &mut self.details);
        let ran = prepared.run(&limits, &|| self.stop.load(Ordering::Relaxed), &mut self.details);
        let engine = self.clock.enter(Phase::Store);
        let Ran { measured, accounts } = ran?;
        keep_recorded(experiment.sweep.manifest(), &mut self.details);
        let facts = RunFacts {
            attempt: task.attempt,
            worker: self.worker.to_owned(),
            started_at,
            wall_ms: ms(begun.elapsed()),
            engine_ms: ms(engine),
            parse_ms: ms(parse),
        };
        let Prepared { task: spec, workload, .. } = prepared;
        Ok(Outcome::Row(Box::new(Row { spec, counts: workload.counts, measured, facts, accounts })))
    }
}

/// Deadlines after which a task is given up whose thread had no processor: it may wait for ever.
const BLOCKED_DEADLINES: u32 = 20;

/// When a task has ignored its deadline: its thread cannot be asked. As the deadline, this counts processor time, which other
/// programs of the machine can take away for long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overdue {
    pub(crate) deadline: Duration,
    /// When to look at the task.
    at: Instant,
    begun: Instant,
    /// Processor time of its thread before the task.
    before: Duration,
}

impl Overdue {
    /// Of a task that begins on this thread. `None` if the instant is beyond the clock's range.
    fn after(begun: Instant, deadline: Duration) -> Option<Overdue> {
        let at = begun.checked_add(deadline.checked_mul(2)?)?;
        Some(Overdue { deadline, at, begun, before: processor_time() })
    }

    /// Whether the task has taken twice its deadline. `processor_time`: of its thread; by the clock where it is not known.
    pub(crate) fn is_late(&mut self, now: Instant, processor_time: impl FnOnce() -> Option<Duration>) -> bool {
        if now < self.at {
            return false;
        }
        let Some(spent) = processor_time() else { return true };
        let left = (self.deadline * 2).saturating_sub(spent.saturating_sub(self.before));
        let is_blocked = now.saturating_duration_since(self.begun) >= self.deadline.saturating_mul(BLOCKED_DEADLINES);
        if left.is_zero() || is_blocked {
            return true;
        }
        // Its thread cannot have it sooner.
        self.at = now + left;
        false
    }

    /// The later end of a task whose process stood still for a time.
    pub(crate) fn later(self, still: Duration) -> Option<Overdue> {
        Some(Overdue { at: self.at.checked_add(still)?, begun: self.begun.checked_add(still)?, ..self })
    }
}

/// The processor time of a thread as the system shows it to other threads, by the file `schedstat` of the thread.
pub(crate) fn processor_time_of(file: &Path) -> Option<Duration> {
    let text = std::fs::read_to_string(file).ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// The file of the calling thread; `None` where the system has none.
pub(crate) fn file_of_this_thread() -> Option<PathBuf> {
    let thread = std::fs::read_link("/proc/thread-self").ok()?;
    Some(Path::new("/proc").join(thread).join("schedstat")).filter(|file| processor_time_of(file).is_some())
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn kind(error: &SimError) -> FailureKind {
    match error {
        SimError::Invalid(_)
        | SimError::TooWide { .. }
        | SimError::NeedTooLarge { .. }
        | SimError::Empty(_)
        | SimError::NotCovered { .. }
        | SimError::Starved { .. } => FailureKind::Spec,
        SimError::Policy { .. } => FailureKind::Policy,
        SimError::Deadline => FailureKind::Deadline,
        SimError::EventLimit(_) => FailureKind::Events,
        SimError::MemoryLimit(_) => FailureKind::Memory,
    }
}
