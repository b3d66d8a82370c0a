//! One task from its index to its row, on a slot's thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use powersweep_engine::energy::EnergySplit;
use powersweep_engine::workload::{Workload, WorkloadError};
use powersweep_engine::{Account, Details, Limits, Measured, SimError, SimSpec, simulate};
use powersweep_experiments::{Decoder, Sweep, Tables};
use powersweep_inputs::signals::{Accounts, PlaceError};
use powersweep_proto::v1::FailureKind;
use powersweep_results::identity::{Micros, RunFacts};

use super::batch::Row;
use super::clock::{Clock, Phase};
use super::{lock, panics};
use crate::logs::{LogError, Logs};
use crate::modules::{ModuleError, Modules};
use crate::options::{TaskHook, TaskLimits, processor_time};
use crate::session::{ExperimentKey, TaskRef};
use crate::signals::Signals;

/// One generation of an experiment.
#[derive(Debug)]
pub(crate) struct Experiment {
    pub(crate) key: ExperimentKey,
    pub(crate) sweep: Sweep,
    pub(crate) tables: Tables,
    /// The lesser of the experiment's limits and the worker's own.
    pub(crate) limits: TaskLimits,
    /// The signals, once a task needs them.
    pub(crate) signals: Signals,
    /// The policy modules, once a task needs them.
    pub(crate) modules: Modules,
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

impl Outcome {
    fn failed(kind: FailureKind, message: impl ToString) -> Outcome {
        Outcome::Failed { kind, message: message.to_string() }
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
        let started_at = Micros(SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_micros() as i64));
        let begun = Instant::now();
        self.clock.enter(Phase::Parse);
        let outcome = panics::catch(|| self.attempt(experiment, decoder, task, begun, started_at));
        *lock(self.overdue) = None;
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
        started_at: Micros,
    ) -> Outcome {
        let Some(mut spec) = decoder.task(task.index) else {
            return Outcome::Excluded { next: experiment.sweep.next_included(task.index).unwrap_or(u64::MAX) };
        };
        let workload = match self.logs.workload(&spec, &self.stop) {
            Ok(workload) => workload,
            Err(LogError::Stopped) => return Outcome::Stopped,
            Err(e @ LogError::Workload(WorkloadError::TooLarge { .. })) => {
                let message = format!("{e}: a worker started with a larger --workload-memory can make it");
                return Outcome::failed(FailureKind::Memory, message);
            }
            Err(e @ LogError::Workload(_)) => return Outcome::failed(FailureKind::Spec, e),
            Err(e) => return Outcome::failed(FailureKind::Workload, e),
        };
        let accounts = match self.accounts(experiment, &workload) {
            Ok(accounts) => accounts,
            Err(outcome) => return outcome,
        };
        if let Some(accounts) = &accounts {
            accounts.place(&mut spec.sim);
        }
        if let Err(outcome) = self.place_module(experiment, &mut spec.sim) {
            return outcome;
        }
        let parse = self.clock.enter(Phase::Engine);

        let limits = &experiment.limits;
        let max_bytes = match limits.bytes_left(&workload) {
            Ok(bytes) => bytes,
            Err(message) => return Outcome::failed(FailureKind::Memory, message),
        };
        let deadline = limits.deadline;
        // Fetching the log, which may come over a slow network, does not count towards the deadline.
        // Asking for the time costs a trivial task a twentieth of its own time.
        let limit = deadline.map(|deadline| (processor_time(), deadline));
        let late = || limit.is_some_and(|(began, most)| processor_time().saturating_sub(began) >= most);
        if let Some(deadline) = deadline {
            *lock(self.overdue) = Overdue::after(Instant::now(), deadline);
        }
        if let Some(TaskHook(hook)) = self.hook {
            hook(&experiment.key.name, task.index);
        }
        let deadline_passed = || self.stop.load(Ordering::Relaxed) || late();
        let within =
            Limits { max_events: limits.max_events.unwrap_or(u64::MAX), max_bytes, deadline_passed: &deadline_passed };
        self.details.jobs = experiment.tables.jobs.then(|| self.details.jobs.take().unwrap_or_default());
        self.details.series = experiment.tables.series.then(|| self.details.series.take().unwrap_or_default());
        self.details.energy = accounts.as_ref().map(|accounts| EnergySplit::new(accounts.edges()));
        let result = simulate(&spec.sim, &workload, &within, &mut self.details);
        let engine = self.clock.enter(Phase::Store);
        let measured = match result {
            Ok(measured) => measured,
            Err(SimError::Deadline) if !late() => return Outcome::Stopped,
            Err(e) => return Outcome::failed(kind(&e), limits.words(&e)),
        };
        if let Some(points) = &mut self.details.series {
            let manifest = experiment.sweep.manifest();
            points.retain(|point| manifest.records(point.series));
        }
        let accounts = match weighed(accounts.as_deref(), &spec.sim, &self.details, &measured) {
            Ok(accounts) => accounts,
            Err(e) => return Outcome::failed(FailureKind::Spec, e),
        };
        let facts = RunFacts {
            attempt: task.attempt,
            worker: self.worker.to_owned(),
            started_at,
            wall_ms: ms(begun.elapsed()),
            engine_ms: ms(engine),
            parse_ms: ms(parse),
        };
        Outcome::Row(Box::new(Row { spec, counts: workload.counts, measured, facts, accounts }))
    }

    /// Gives a spec the module that its policy names.
    fn place_module(&self, experiment: &Experiment, sim: &mut SimSpec) -> Result<(), Outcome> {
        experiment.modules.place(&experiment.sweep, sim, self.logs, &self.stop).map_err(|e| match &e {
            ModuleError::Bytes(error) if matches!(**error, LogError::Stopped) => Outcome::Stopped,
            ModuleError::Bytes(_) => Outcome::failed(FailureKind::Workload, e),
            ModuleError::Module(_) => Outcome::failed(FailureKind::Spec, e),
        })
    }

    /// The signals of a task; `None` for an experiment without signals.
    fn accounts(&self, experiment: &Experiment, workload: &Workload) -> Result<Option<Arc<Accounts>>, Outcome> {
        if !experiment.tables.accounts {
            return Ok(None);
        }
        experiment.signals.accounts(&experiment.sweep, workload, self.logs, &self.stop).map(Some).map_err(|e| match e {
            LogError::Stopped => Outcome::Stopped,
            LogError::Place(_) => Outcome::failed(FailureKind::Spec, e),
            _ => Outcome::failed(FailureKind::Workload, e),
        })
    }
}

/// The rows of `accounts` of a finished task.
fn weighed(
    signals: Option<&Accounts>,
    sim: &SimSpec,
    details: &Details,
    measured: &Measured,
) -> Result<Vec<Account>, PlaceError> {
    match (signals, &details.energy, measured.jobs()) {
        (Some(signals), Some(energy), Some(summary)) => signals.of(sim, &energy.cells, summary.machine_procs),
        // Queues have no energy of a machine.
        _ => Ok(Vec::new()),
    }
}

/// A task that still runs at `at` has taken twice its deadline, by the wall clock: its thread cannot be asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overdue {
    pub(crate) at: Instant,
    pub(crate) deadline: Duration,
}

impl Overdue {
    /// `None` if the instant is beyond the clock's range.
    fn after(begin: Instant, deadline: Duration) -> Option<Overdue> {
        let at = begin.checked_add(deadline.checked_mul(2)?)?;
        Some(Overdue { at, deadline })
    }

    /// The same with time in which the process stood still.
    pub(crate) fn later(self, still: Duration) -> Option<Overdue> {
        Some(Overdue { at: self.at.checked_add(still)?, ..self })
    }
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
        | SimError::Starved { .. } => FailureKind::Spec,
        SimError::Policy { .. } => FailureKind::Policy,
        SimError::Deadline => FailureKind::Deadline,
        SimError::EventLimit(_) => FailureKind::Events,
        SimError::MemoryLimit(_) => FailureKind::Memory,
    }
}
