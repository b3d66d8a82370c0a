//! What a sweep would run, before it runs.

use std::cell::RefCell;
use std::sync::Arc;

use powersweep_coordinator::plan::{self, TaskState};
use powersweep_coordinator::records::Loaded;
use powersweep_coordinator::shards::ShardState;
use powersweep_coordinator::store::Location;
use powersweep_dataset::{Error, Kind, failure};
use powersweep_engine::batch::physics::{Demand, Finding, FindingKind, Place as Block};
use powersweep_engine::workload::{Workload, WorkloadError};
use powersweep_experiments::{Manifest, Sweep, TaskSpec, Warning};
use powersweep_inputs::library::ParsedLogs;
use powersweep_inputs::signals::{Accounts, Loaded as Signal};
use powersweep_proto::v1;
use powersweep_results::Table;
use powersweep_worker::task::TaskError;

use crate::inputs::{self, Files};
use crate::place::{Place, connection, shards, stored};
use crate::replicate;
use crate::submit::submission;

/// The tasks of a sweep that would run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What a submit would find: tasks, rows that are there, tasks to run.
    pub reply: v1::SubmitReply,
    /// The data, if a coordinator serves it.
    pub served: Option<Location>,
}

/// Whether a task would run, and why.
#[derive(Debug, Clone)]
pub struct TaskPlan {
    /// The task.
    pub task: TaskSpec,
    /// Whether it would run.
    pub runs: bool,
    /// The reason in a sentence.
    pub reason: String,
}

impl Place {
    /// What a run or submit of a manifest would find. Nothing changes. A note says that rows are missing.
    ///
    /// # Errors
    /// The manifest would be refused, or who should answer does not.
    pub async fn plan(&self, manifest: &Manifest, files: &Files) -> Result<Plan, Error> {
        let sweep = inputs::sweep(manifest, &files.digests)?;
        if let Some(until) = manifest.until() {
            replicate::checked(until, &sweep)?;
        }
        if self.names_coordinator() {
            let mut farm = self.connect().await?;
            let request = v1::SubmitRequest { dry_run: true, ..submission(manifest, files) };
            let reply = farm.submit(request).await.map_err(|status| connection::refused(&status))?.into_inner();
            // An experiment that the coordinator does not know has no rows yet.
            let whole = self.datasets_at(&farm).read_whole(manifest.name(), Table::Tasks).await;
            if let Some(missing) = whole.err().filter(|error| error.kind == Kind::Storage) {
                self.notes.say(&missing.message);
            }
            return Ok(Plan { reply, served: None });
        }
        let location = self.location()?;
        if let Some(record) = shards::find(&location, manifest.name()).await? {
            let states = shards::states(&location, &record).await?;
            let reply = shards::submission(&location, &record, states, &sweep, &files.digests)?;
            return Ok(Plan { reply, served: None });
        }
        let loaded = self.loaded(&location, manifest.name()).await?;
        let served = stored::owner_endpoint(&location).await?.is_some();
        let reply = plan::submission(loaded, None, &sweep, &files.digests);
        let reply = reply.map_err(|reason| failure!(Refused, "{reason}"))?;
        Ok(Plan { reply, served: served.then_some(location) })
    }

    /// Whether one task of a sweep would run with the data of this place.
    ///
    /// # Errors
    /// The sweep has no task of this index, or the state cannot be read.
    pub async fn plan_task(&self, sweep: &Sweep, index: u64) -> Result<TaskPlan, Error> {
        let location = self.location()?;
        let name = sweep.manifest().name();
        let loaded = match shards::find(&location, name).await? {
            Some(record) => {
                let has_task = |state: &ShardState| !sweep.shard(state.shard).is_excluded(index);
                let states = shards::states(&location, &record).await?;
                states.into_iter().find(has_task).map(|state| state.loaded).unwrap_or_default()
            }
            None => self.loaded(&location, name).await?,
        };
        let task = inputs::task(sweep, index)?;
        let (runs, reason) = verdict(&plan::task_state(&loaded, &task), &location);
        Ok(TaskPlan { task, runs, reason })
    }

    /// The stored state. A note says that it was lost, if the experiment has rows without a state, or that rows are missing.
    async fn loaded(&self, location: &Location, experiment: &str) -> Result<Loaded, Error> {
        let loaded = stored::read(location).await?;
        if stored::has_rows_alone(location, &loaded, experiment).await? {
            self.notes
                .say(&format!("{location} has rows of {experiment} but no state of it: run `powersweep adopt` first"));
        }
        stored::missing(location, &loaded, experiment).await?.iter().for_each(|missing| self.notes.say(missing));
        Ok(loaded)
    }
}

fn verdict(state: &TaskState, location: &Location) -> (bool, String) {
    let times = |n: u32| if n == 1 { "once".to_owned() } else { format!("{n} times") };
    match state {
        TaskState::NewExperiment => (true, format!("this experiment has no results in {location} yet")),
        TaskState::New => (true, "the last manifest that was run did not have this task".to_owned()),
        TaskState::Missing => (true, "its row is missing".to_owned()),
        TaskState::Done => (false, format!("its row is in {location}")),
        TaskState::Failed(failure) if failure.quarantined => {
            (false, format!("it failed {}, last: {}", times(failure.attempts), failure.message))
        }
        TaskState::Failed(failure) => {
            (true, format!("it failed {} and will be tried again: {}", times(failure.attempts), failure.message))
        }
    }
}

/// The workload of a task whose log is among the parsed ones.
///
/// # Errors
/// The log is not there ([`TaskError::Stopped`]), or the workload cannot be built.
pub(crate) fn workload(task: &TaskSpec, logs: &ParsedLogs) -> Result<Arc<Workload>, TaskError> {
    let log = task.log.as_deref().unwrap_or_default();
    logs.workload(&task.sim, task.digest, log, || Err(TaskError::Stopped))
}

/// The warnings about a sweep whose files were read.
pub fn warnings(sweep: &Sweep, signals: &[Signal], logs: &ParsedLogs) -> Vec<Warning> {
    let demand = |task: &TaskSpec| match workload(task, logs) {
        Ok(workload) => Some(Demand::of(&workload)),
        // A worker may have more memory.
        Err(TaskError::Stopped | TaskError::Workload(WorkloadError::TooLarge { .. })) => None,
        Err(error) => Some(Demand::lacking(error.to_string())),
    };
    let of_signal = |signal: &Signal, demand: &Demand| {
        let place = Block::Signal(signal.signal.label.to_string());
        if let Err(error) = signal.check(demand.unix_start_s, demand.span_s) {
            let (message, help) = (error.to_string(), "the task fails".to_owned());
            return Some(Finding { kind: FindingKind::SignalElsewhere, about: "file", place, message, help });
        }
        let message = signal.elsewhere(demand.unix_start_s, demand.span_s.0)?;
        let help = "`anchor` chooses the calendar time of the workload's second 0".to_owned();
        Some(Finding { kind: FindingKind::SignalRepeats, about: "beyond", place, message, help })
    };
    // The signals on the time of the last workload: most workloads of a sweep begin at one time.
    let placed: RefCell<Option<(Option<i64>, Option<Accounts>)>> = RefCell::new(None);
    sweep.warnings(demand, |sim, demand| {
        let mut placed = placed.borrow_mut();
        let begin = demand.unix_start_s;
        if sim.signal_labels().next().is_some() && placed.as_ref().is_none_or(|(known, _)| *known != begin) {
            // `of_signal` says why signals have no place.
            *placed = Some((begin, Accounts::new(signals, begin).ok()));
        }
        if let Some((_, Some(accounts))) = placed.as_ref().filter(|(known, _)| *known == begin) {
            accounts.place(sim);
        }
        signals.iter().filter_map(|signal| of_signal(signal, demand)).collect()
    })
}
