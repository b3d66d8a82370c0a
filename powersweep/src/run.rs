//! A sweep that runs in this process: coordinator and worker, with the protocol of many machines.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use powersweep_coordinator::store::Location;
use powersweep_coordinator::{owner, shards as stored_shards};
use powersweep_dataset::{Error, Kind, failure};
use powersweep_experiments::{Digest, Manifest, Shard, Sweep};
use powersweep_inputs::library::ParsedLogs;
use powersweep_proto::access::Role;
use powersweep_proto::v1;
use powersweep_proto::v1::control_request::Action;
use powersweep_worker::{WorkerError, WorkerOptions, WorkerReport};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::farm::{CoordinatorOptions, LocalCoordinator, OneSweep, explained};
use crate::inputs::{self, Files};
use crate::place::{Place, access, connection, shards, stored};
use crate::submit::{end_of, submission};

/// Interval of the looks at the status.
const INTERVAL: Duration = Duration::from_millis(20);
/// Failures in a status.
const FAILURES: u32 = 10;
/// Maximum number of stuck threads: each occupies a core.
const STUCK_TASKS_MAX: usize = 16;
/// Part of the time limit, as 1 in N, in which a shard publishes its rows after its last task; and its bounds.
const END_SHARE: u32 = 20;
const END_MIN: Duration = Duration::from_secs(3);
const END_MAX: Duration = Duration::from_secs(60);

/// How a sweep runs in this process.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Address to listen on, for status requests and more workers; a free port of the loopback interface by default.
    pub listen: SocketAddr,
    /// Tasks that run at the same time; by default one for each core.
    pub slots: usize,
    /// Folders with workload logs.
    pub search_path: Vec<PathBuf>,
    /// Starts without rows: an existing experiment and its rows are renamed to NAME@N.
    pub restart: bool,
    /// Changes the experiment although another user submitted it.
    pub replace: bool,
    /// Takes the data over from a coordinator that still seems to run.
    pub take_over: bool,
    /// Set for one shard of the sweep.
    pub shard: Option<ShardOptions>,
    /// Ends the run: running tasks are handed back.
    pub stop: CancellationToken,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            listen: ([127, 0, 0, 1], 0).into(),
            slots: std::thread::available_parallelism().map_or(1, usize::from),
            search_path: Vec::new(),
            restart: false,
            replace: false,
            take_over: false,
            shard: None,
            stop: CancellationToken::new(),
        }
    }
}

/// How one shard of a sweep runs.
#[derive(Debug, Clone, Copy)]
pub struct ShardOptions {
    /// The shard.
    pub shard: Shard,
    /// When the process began, from which the time limit counts.
    pub began: Instant,
    /// How long running tasks may continue after a stop.
    pub drain_limit: Duration,
    /// The shard ends after this time.
    pub time_limit: Option<Duration>,
    /// Retries the tasks of this shard that failed for good.
    pub retry_failed: bool,
}

impl ShardOptions {
    /// Compares this shard with the others, and returns the sweep of all of them.
    async fn pinned(
        &self,
        location: &Location,
        sweep: &Sweep,
        digests: &BTreeMap<String, Digest>,
    ) -> Result<Sweep, Error> {
        let pinned = stored_shards::pin(location, sweep, digests, self.shard.of()).await;
        let pinned = pinned.map_err(|error| shards::refused(&error))?;
        // The texts may differ in comments; each shard's state has the pinned text.
        pinned.sweep().map_err(|reason| failure!(Refused, "{reason}"))
    }

    /// Time until the worker must have stopped.
    fn worker_limit(&self) -> Option<Duration> {
        let limit = self.time_limit?;
        let ending = (limit / END_SHARE).clamp(END_MIN, END_MAX);
        Some(limit.saturating_sub(ending + self.began.elapsed()))
    }

    /// Explains that another process runs the shard.
    async fn owned(&self, mut error: Error, location: &Location, experiment: &str) -> Error {
        if error.kind == Kind::Owned {
            let owner = owner::look(&location.shard(experiment, self.shard)).await.ok().flatten();
            let record = owner.and_then(|owner| owner.record);
            let by = record.map_or_else(String::new, |owner| format!(" in process {} on {}", owner.pid, owner.host));
            error.message = format!(
                "{experiment}: shard {} runs already{by}. If that process is certainly lost, --take-over takes its place",
                self.shard
            );
        }
        error
    }
}

/// The state of a sweep that runs.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The experiment, or the share of a shard.
    pub experiment: v1::ExperimentStatus,
    /// Why the storage takes no rows at present.
    pub storage_stalled: Option<String>,
}

/// A sweep that runs in this process.
pub struct Running {
    coordinator: LocalCoordinator,
    worker: Option<Worker>,
    place: Place,
    sweep: Sweep,
    submitted: v1::SubmitReply,
    options: RunOptions,
    /// Whether the status was asked for at least once.
    looked: bool,
    storage_stalled: Option<String>,
    /// The last state, or why there is none.
    ended: Option<Result<v1::ExperimentStatus, Error>>,
}

type Ended = Result<Result<WorkerReport, WorkerError>, JoinError>;

/// A worker of this process.
pub(crate) struct Worker {
    task: JoinHandle<Result<WorkerReport, WorkerError>>,
    stop: CancellationToken,
}

impl Worker {
    /// Starts a worker of a coordinator. `name` is in the rows.
    pub(crate) fn start(
        coordinator: &LocalCoordinator,
        options: &RunOptions,
        name: String,
        parsed: Option<Arc<ParsedLogs>>,
    ) -> Worker {
        let mut worker = WorkerOptions::new(coordinator.address(Role::Worker), options.slots, name);
        if let Some(shard) = &options.shard {
            worker.drain_limit = shard.drain_limit;
            worker.time_limit = shard.worker_limit();
        }
        worker.trusts_paths = true;
        worker.search_path = options.search_path.clone();
        worker.parsed = parsed;
        let stop = CancellationToken::new();
        Worker { task: tokio::spawn(working(worker, stop.clone())), stop }
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it once its finished rows are handed in.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}

impl Place {
    /// Runs a sweep in the data folder or object store: starts a coordinator in this process, submits the manifest, and
    /// starts a worker. Rows that are there are kept. [`Running::next`] follows the sweep, [`Running::end`] ends it.
    ///
    /// # Errors
    /// Another process owns the data, or the manifest is refused.
    pub async fn run(&self, manifest: &Manifest, files: Files, options: RunOptions) -> Result<Running, Error> {
        let mut sweep = inputs::sweep(manifest, &files.digests)?;
        if let Some(shard) = &options.shard {
            sweep = shard.pinned(&self.location()?, &sweep, &files.digests).await?.shard(shard.shard);
        }
        let experiment = sweep.manifest().name().to_owned();
        let started = LocalCoordinator::start(
            CoordinatorOptions {
                listen: options.listen,
                take_over: options.take_over,
                local: Some(OneSweep::of(&experiment, &files)),
                shard: options.shard.map(|shard| shard.shard),
                ..CoordinatorOptions::on_loopback(&self.data, self.notes.clone())
            },
            &options.stop,
        );
        let coordinator = match (started.await, &options.shard) {
            (Ok(coordinator), _) => coordinator,
            (Err(error), Some(shard)) => return Err(shard.owned(error, &self.location()?, &experiment).await),
            (Err(error), None) => return Err(error),
        };
        let submitted = submit(&coordinator, sweep.manifest(), &files, &options).await;
        let mut running = Running {
            coordinator,
            worker: None,
            place: self.clone(),
            sweep,
            submitted: v1::SubmitReply::default(),
            options,
            looked: false,
            storage_stalled: None,
            ended: None,
        };
        match submitted {
            Ok(reply) => running.submitted = reply,
            Err(error) => {
                running.ended = Some(Err(error));
                return Err(running.end().await.err().unwrap_or_else(|| failure!(Failure, "nothing was submitted")));
            }
        }
        let name = if running.options.shard.is_some() { worker_name() } else { local_worker_name() };
        running.worker = Some(Worker::start(&running.coordinator, &running.options, name, files.parsed));
        Ok(running)
    }
}

/// Submits the manifest, resumes a paused experiment, and retries failed tasks of a shard if asked to.
async fn submit(
    coordinator: &LocalCoordinator,
    manifest: &Manifest,
    files: &Files,
    options: &RunOptions,
) -> Result<v1::SubmitReply, Error> {
    let RunOptions { restart, replace, .. } = *options;
    let request = v1::SubmitRequest { restart, replace, ..submission(manifest, files) };
    let refused = |status| connection::refused(&status);
    let mut reply = coordinator.handle().requests().submit(request).await.map_err(refused)?;
    let experiment = reply.experiment.clone();
    let control = async |action| {
        let request = v1::ControlRequest { experiment: experiment.clone(), action: Some(action), any_owner: false };
        coordinator.handle().requests().control(request).await.map_err(refused)
    };
    if reply.state() == v1::ExperimentState::Paused {
        // No other coordinator serves this data.
        let resumed = control(Action::Resume(v1::Resume {})).await?;
        reply.state = resumed.state;
    }
    if options.shard.is_some_and(|shard| shard.retry_failed) && reply.failed > 0 {
        let retried = control(Action::Retry(v1::Retry::default())).await?;
        (reply.to_run, reply.failed) = (retried.to_run, reply.failed - retried.tasks);
    }
    Ok(reply)
}

/// Runs a worker. A task that ignores its deadline ends the worker; another worker then starts beside the stuck thread,
/// which ends with this process.
async fn working(options: WorkerOptions, stop: CancellationToken) -> Result<WorkerReport, WorkerError> {
    let mut stuck = 0;
    loop {
        let report = powersweep_worker::run(options.clone(), stop.clone()).await?;
        stuck += report.stuck_tasks;
        if report.stuck_tasks == 0 || stop.is_cancelled() || stuck > STUCK_TASKS_MAX {
            return Ok(report);
        }
        tracing::warn!("a task ignores its deadline: its thread stays stuck, and another worker starts");
    }
}

impl Running {
    /// The sweep, or the share of a shard.
    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// What the submit has found: tasks, rows that are there, tasks to run.
    pub fn submitted(&self) -> &v1::SubmitReply {
        &self.submitted
    }

    /// The next state of the sweep; `None` once no task is left to run.
    ///
    /// # Errors
    /// The sweep was stopped, cancelled or deleted, or cannot go on. [`Running::end`] must be called nevertheless.
    pub async fn next(&mut self) -> Result<Option<Progress>, Error> {
        match &self.ended {
            Some(Ok(_)) => return Ok(None),
            Some(Err(error)) => return Err(error.clone()),
            None => {}
        }
        let looked = self.look().await;
        if let Err(error) = &looked {
            self.ended = Some(Err(error.clone()));
        }
        looked.map(Some)
    }

    /// Waits until the next look at the status is due.
    async fn wait(&self) -> Result<(), Error> {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => Ok(()),
            () = self.options.stop.cancelled() => Err(match &self.storage_stalled {
                Some(reason) => failure!(
                    Storage,
                    "interrupted while storage was stalled ({reason}); finished tasks are kept. Run the same command to \
                     continue"
                ),
                None => failure!(Interrupted, "interrupted; finished tasks are kept. Run the same command to continue"),
            }),
            () = self.coordinator.lost() => {
                Err(failure!(Fenced, "another coordinator has taken the data over; this run has stopped"))
            }
        }
    }

    async fn look(&mut self) -> Result<Progress, Error> {
        if std::mem::replace(&mut self.looked, true) {
            self.wait().await?;
        }
        let name = self.sweep.manifest().name();
        let request = v1::StatusRequest { experiment: name.to_owned(), max_failures: FAILURES, ..Default::default() };
        let reply =
            self.coordinator.handle().requests().status(request).await.map_err(|status| match status.code() {
                tonic::Code::NotFound => failure!(Cancelled, "{name} was deleted by another command"),
                _ => connection::refused(&status),
            })?;
        self.storage_stalled = reply.storage_stalled.then_some(reply.storage_reason);
        let Some(experiment) = reply.experiments.into_iter().next() else {
            return Err(failure!(Failure, "the coordinator lost {name}: please report this bug"));
        };
        if let Some(ended) = end_of(experiment.clone()) {
            self.ended = Some(Ok(ended?));
        } else if let Some(worker) = self.worker.take_if(|worker| worker.has_ended()) {
            return Err(self.worker_ended(worker.task.await));
        }
        Ok(Progress { experiment, storage_stalled: self.storage_stalled.clone() })
    }

    fn worker_ended(&self, ended: Ended) -> Error {
        let has_limit = self.options.shard.is_some_and(|shard| shard.time_limit.is_some());
        match ended {
            Ok(Ok(_)) if has_limit => failure!(
                Interrupted,
                "the time limit ends before the tasks of this shard; finished tasks are kept. Run the same command to \
                 continue"
            ),
            Ok(Ok(report)) => failure!(Failure, "the worker ended early: {}", report.reason),
            Ok(Err(error)) => Error::new(kind_of(&error), error.to_string()),
            Err(error) => failure!(Failure, "the worker ended early: {error}"),
        }
    }

    /// Ends worker and coordinator, which publishes the finished rows, and returns the last state. Failed tasks are no error.
    ///
    /// # Errors
    /// The sweep has not ended, or its rows could not be published.
    pub async fn end(self) -> Result<v1::ExperimentStatus, Error> {
        let Running { coordinator, worker, place, sweep, options, ended, .. } = self;
        let location = place.location()?;
        let closing_all = async {
            if let Some(worker) = worker {
                worker.end().await;
            }
            coordinator.end().await
        };
        let closed = explained(closing_all, &place.notes).await;
        let ended = ended.unwrap_or_else(|| {
            Err(failure!(
                Interrupted,
                "ended before all tasks had run; finished tasks are kept. Run the same command to continue"
            ))
        });
        // An error that ended the sweep comes before one of the end itself.
        let finished = match ended {
            Err(error) if error.kind != Kind::Interrupted => return Err(error),
            ended => closed.and(ended)?,
        };
        let name = sweep.manifest().name();
        let state = options.shard.map_or_else(|| location.clone(), |shard| location.shard(name, shard.shard));
        match stored::missing(&location, &stored::read(&state).await?, name).await? {
            Some(missing) => Err(failure!(Storage, "{missing}")),
            None => Ok(finished),
        }
    }
}

/// A name for the worker of a sweep that runs in this process.
pub(crate) fn local_worker_name() -> String {
    format!("local-{}", std::process::id())
}

/// Digits of the digest of a machine's name.
const MACHINE_DIGITS: usize = 6;

/// A name for a worker: the process id, and digits by which workers of one machine are known. It is in published rows, and does
/// not have the host's name.
pub fn worker_name() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|h| !h.is_empty());
    let host = host.or_else(|| std::fs::read_to_string("/etc/hostname").ok().map(|h| h.trim().to_owned()));
    let machine = Digest::of(host.unwrap_or_default().as_bytes()).to_string();
    format!("worker-{}-{}", &machine[..MACHINE_DIGITS], std::process::id())
}

/// The kind of a worker's error.
pub fn kind_of(error: &WorkerError) -> Kind {
    match error {
        WorkerError::Options(_) => Kind::Usage,
        WorkerError::Access(error) => access::refused(error).kind,
        WorkerError::Unreachable { .. } => Kind::Network,
        WorkerError::Refused { .. } | WorkerError::Protocol { .. } => Kind::Refused,
        WorkerError::Thread { .. } => Kind::Failure,
    }
}
