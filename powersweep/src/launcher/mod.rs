//! A launcher asks the coordinator what waits, and a batch system for allocations.

pub mod batch;
mod folder;
mod pbs;
pub mod slurm;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use powersweep_coordinator::owner::host;
use powersweep_dataset::words::count;
use powersweep_dataset::{Error, Notes, failure};
use powersweep_launch::{Need, Room, Seconds, System, Want, WorkerJob};
use powersweep_proto::client::{Address, Client};
use powersweep_proto::v1;
use tokio_util::sync::CancellationToken;

use self::batch::{BatchError, BatchSystem, commands};
pub use self::folder::{Folder, Lock, SlotTime, Source, State, Trouble};
use crate::place::connection;

/// Interval of questions to the coordinator.
const LOOK: Duration = Duration::from_secs(2);
/// Longest time between two queries of a queue in which nothing changes.
const POLL_MAX: Duration = Duration::from_secs(600);
/// Longest time of a question to the coordinator.
const ASK_TIMEOUT: Duration = Duration::from_secs(20);

/// Seconds since 1970.
pub fn now() -> Seconds {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// The state in a launcher's folder; `None` if no launcher has used the folder. After the launcher's end, the queue says what has
/// become of its allocations, or the second value why it does not.
///
/// # Errors
/// The state cannot be read.
pub async fn present(folder: &Folder) -> Result<Option<(State, Option<String>)>, Error> {
    let Some(mut state) = folder.read()? else { return Ok(None) };
    if folder.is_locked() || state.fleet.alive() == 0 {
        return Ok(Some((state, None)));
    }
    let asked_at = now();
    let unknown = match commands(state.system).list(&state.name, &mut state.banners, true).await {
        Ok(entries) => {
            state.fleet.settle(&entries, asked_at);
            None
        }
        Err(error) => Some(format!("states are those of {}: {error}", utc(state.written_at))),
    };
    Ok(Some((state, unknown)))
}

/// What a launcher asks for.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The batch system.
    pub system: System,
    /// The jobs of workers.
    pub job: WorkerJob,
    /// The room for them.
    pub room: Room,
    /// Least time between two queries.
    pub poll: Duration,
    /// The launcher ends after this time without work.
    pub until_idle: Option<Duration>,
    /// The job in which a coordinator runs that ends with this launcher.
    pub coordinator_job: Option<String>,
    /// Whether excluded nodes and pauses after failures are forgotten.
    pub forget_failures: bool,
}

/// A launcher that runs.
pub struct Launcher {
    plan: Plan,
    batch: &'static dyn BatchSystem,
    folder: Folder,
    address: Address,
    notes: Notes,
    state: State,
    connection: Option<Client>,
    /// When the queue was asked, and the time until it is asked again.
    asked: Option<Instant>,
    poll: Duration,
    /// Allocations with a worker at the last look.
    connected: usize,
    idle_since: Option<Instant>,
    told: String,
}

/// Why a launcher ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By a signal.
    Interrupted,
    /// By `launch stop`.
    Stopped,
    /// No task has waited for the given time, and no allocation is left.
    Idle,
}

impl Launcher {
    /// A launcher that continues from the folder's state.
    pub fn new(plan: Plan, folder: Folder, address: Address, notes: Notes) -> Result<Launcher, Error> {
        let mut state = folder.read()?.unwrap_or_default();
        folder.take_stop();
        state.name.clone_from(&plan.job.request.name);
        state.launcher = format!("process {} on {}", std::process::id(), host());
        state.ended = false;
        if state.system != plan.system && state.fleet.alive() > 0 {
            let (was, is) = (state.system.name(), plan.system.name());
            return Err(failure!(
                Refused,
                "the folder has allocations of {was} that may still run: end them before workers come from {is}, or give \
                 another --folder"
            ));
        }
        state.system = plan.system;
        state.coordinator_job.clone_from(&plan.coordinator_job);
        if plan.forget_failures {
            state.fleet.forget_failures();
        }
        let poll = plan.poll;
        Ok(Launcher {
            batch: commands(plan.system),
            plan,
            folder,
            address,
            notes,
            state,
            connection: None,
            asked: None,
            poll,
            connected: 0,
            idle_since: None,
            told: String::new(),
        })
    }

    /// Runs until something ends it.
    pub async fn run(mut self, stop: &CancellationToken) -> (End, State) {
        loop {
            let folder = self.folder.clone();
            // A question that hangs does not keep the launcher from its end.
            let status = tokio::select! {
                status = self.ask() => status,
                () = stop.cancelled() => None,
                () = folder.asked_to_stop(LOOK) => None,
            };
            let end = match self.told_to_end(stop) {
                None => self.act(status, stop).await,
                end => end,
            };
            if let Some(end) = end.or_else(|| self.told_to_end(stop)) {
                self.state.ended = true;
                self.save();
                return (end, self.state);
            }
            self.save();
            tokio::select! {
                () = tokio::time::sleep(LOOK.min(self.plan.poll)) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    fn told_to_end(&self, stop: &CancellationToken) -> Option<End> {
        match stop.is_cancelled() {
            true => Some(End::Interrupted),
            false => self.folder.take_stop().then_some(End::Stopped),
        }
    }

    /// Writes the state. A full disk is no reason to leave the allocations alone.
    fn save(&mut self) {
        self.state.written_at = now();
        self.state.excluded = match self.batch.excludes_nodes() {
            true => self.state.fleet.excluded(now()).into_iter().map(str::to_owned).collect(),
            false => Vec::new(),
        };
        let written = self.folder.write(&self.state);
        self.tried(Source::Folder, written.map_err(|error| error.message));
    }

    /// Asks coordinator and queue; returns the coordinator's status.
    async fn ask(&mut self) -> Option<v1::StatusReply> {
        let status = self.ask_coordinator().await;
        if let Some(status) = &status {
            self.see_workers(status);
        }
        self.ask_queue().await;
        status
    }

    /// Submits what is needed. Returns why the launcher ends.
    async fn act(&mut self, status: Option<v1::StatusReply>, stop: &CancellationToken) -> Option<End> {
        let Some(status) = status else {
            "the coordinator does not answer".clone_into(&mut self.state.why);
            return None;
        };
        let demand = status.demand.unwrap_or_default();
        let works = demand.waiting_tasks > 0 || demand.leased_tasks > 0 || self.state.fleet.alive() > 0;
        self.submit(&need(&demand), stop).await;
        self.idle_since = if works { None } else { self.idle_since.or(Some(Instant::now())) };
        let idle = self.plan.until_idle.zip(self.idle_since).is_some_and(|(limit, since)| since.elapsed() >= limit);
        idle.then_some(End::Idle)
    }

    // ---- the coordinator

    /// The status of the coordinator; `None` while it does not answer.
    async fn ask_coordinator(&mut self) -> Option<v1::StatusReply> {
        let asking = async {
            if self.connection.is_none() {
                self.connection = Some(connection::connect(&self.address).await.map_err(|failure| failure.message)?);
            }
            let connection = self.connection.as_mut().expect("it was just made");
            connection::status(connection, v1::StatusRequest::default())
                .await
                .map_err(|status| status.message().to_owned())
        };
        let answer = tokio::time::timeout(ASK_TIMEOUT, asking).await.unwrap_or_else(|_| Err("no answer".to_owned()));
        if answer.is_err() {
            // The next attempt reads the access file again: the coordinator may have moved.
            self.connection = None;
        }
        let answer = answer.map_err(|reason| format!("the coordinator does not answer: {reason}"));
        self.tried(Source::Coordinator, answer)
    }

    fn see_workers(&mut self, status: &v1::StatusReply) {
        let known = |worker: &&v1::WorkerStatus| self.state.fleet.allocations.contains_key(&worker.allocation);
        let ours: Vec<&v1::WorkerStatus> =
            status.workers.iter().filter(|worker| worker.connected).filter(known).collect();
        let times: BTreeMap<String, SlotTime> = ours.iter().map(|worker| slot_time(worker)).collect();
        let names: Vec<&str> = ours.iter().map(|worker| worker.allocation.as_str()).collect();
        let fleet = &mut self.state.fleet;
        for (worker, now) in &times {
            let before = self.state.counted.get(worker).copied().unwrap_or_default();
            fleet.counts.slot_s += (now.all_s - before.all_s).max(0.0);
            fleet.counts.idle_slot_s += (now.idle_s - before.idle_s).max(0.0);
        }
        self.state.counted = times;
        fleet.connected(names.iter().copied(), now());
        if names.len() != self.connected {
            self.connected = names.len();
            self.poll = self.plan.poll;
        }
    }

    // ---- the batch system

    /// Asks the queue if it is time to, and if there is something to ask about.
    async fn ask_queue(&mut self) {
        let due = self.asked.is_none_or(|at| at.elapsed() >= self.poll);
        let first = self.asked.is_none();
        if !due || !first && self.state.fleet.alive() == 0 {
            return;
        }
        let (asked_at, before) = (now(), self.state.fleet.allocations.clone());
        self.asked = Some(Instant::now());
        self.state.fleet.counts.queries += 1;
        let is_expected = self.state.fleet.alive() > 0;
        let answer = self.batch.list(&self.state.name, &mut self.state.banners, is_expected).await;
        match self.tried(Source::Queue, answer.map_err(|error| error.to_string())) {
            Some(mut entries) => {
                for entry in &mut entries {
                    entry.cannot_start = self.folder.cannot_start(&entry.name);
                }
                for note in self.state.fleet.answered(&entries, asked_at) {
                    self.notes.say(&note);
                }
                self.folder.sweep(&self.state.fleet);
            }
            None => self.state.fleet.counts.unanswered += 1,
        }
        let same = before == self.state.fleet.allocations;
        self.poll = if same { (self.poll * 2).min(POLL_MAX.max(self.plan.poll)) } else { self.plan.poll };
    }

    async fn submit(&mut self, need: &Need, stop: &CancellationToken) {
        let want = Want::of(need, &self.plan.room, &self.state.fleet, now());
        self.say(&want);
        if want.count == 0 {
            return;
        }
        let text = self.batch.script(&self.plan.job, None);
        let written = self.folder.write_script("worker.sh", &text).map_err(|error| error.message);
        let Some(script) = self.tried(Source::Folder, written) else { return };
        let script = script.display().to_string();
        let excluded = self.state.fleet.excluded(now());
        let submitted = tokio::select! {
            submitted = self.batch.submit(&script, want.count, &excluded) => submitted,
            () = stop.cancelled() => Err(BatchError::Abandoned(self.plan.system.submits_by())),
        };
        match &submitted {
            Ok(job) => {
                self.state.fleet.submitted(job, want.count, now());
                self.poll = self.plan.poll;
                let kept = self.folder.write_script(&format!("{job}.sh"), &text);
                self.tried(Source::Folder, kept.map_err(|error| error.message));
                self.notes.say(&format!("submitted {} as job {job}", count(want.count, "allocation")));
            }
            Err(error @ (BatchError::Hangs(_) | BatchError::Abandoned(_) | BatchError::Answer(_))) => {
                self.state.fleet.submission_unknown(want.count, &error.to_string(), now());
            }
            Err(error) => self.state.fleet.submission_refused(want.count, &error.to_string(), now()),
        }
        self.tried(Source::Submission, submitted.map_err(|error| error.to_string()));
    }

    // ---- words

    fn say(&mut self, want: &Want) {
        let unknown = self.state.troubles.get(&Source::Queue).filter(|trouble| trouble.until.is_none());
        self.state.why = match unknown {
            Some(trouble) => {
                format!("the queue is unknown since {}; by its last answer, {}", utc(trouble.since), want.why)
            }
            None => want.why.clone(),
        };
        let pause = self.state.fleet.back_off.pause(now()).filter(|pause| pause.long);
        let told = pause.map(|pause| format!("{}; the next submission is tried at {}", pause.reason, utc(pause.until)));
        let told = told.unwrap_or_default();
        if told != self.told && !told.is_empty() {
            self.notes.say(&format!("paused: {told}"));
        }
        self.told = told;
    }

    /// Notes whether something worked: its trouble begins, goes on or has ended.
    fn tried<T>(&mut self, source: Source, result: Result<T, String>) -> Option<T> {
        let open = self.state.troubles.get_mut(&source).filter(|trouble| trouble.until.is_none());
        match (result, open) {
            (Ok(value), open) => {
                if let Some(trouble) = open {
                    trouble.until = Some(now());
                }
                Some(value)
            }
            (Err(text), Some(trouble)) if trouble.text == text => None,
            (Err(text), open) => {
                self.notes.say(&text);
                let since = open.map_or_else(now, |trouble| trouble.since);
                self.state.troubles.insert(source, Trouble { text, since, until: None });
                None
            }
        }
    }
}

/// A worker's id and its slot time.
fn slot_time(worker: &v1::WorkerStatus) -> (String, SlotTime) {
    let spent = worker.spent.unwrap_or_default();
    let id = worker.worker_id.iter().map(|byte| format!("{byte:02x}")).collect();
    (id, SlotTime { all_s: spent.slot_s(), idle_s: spent.idle_s })
}

fn need(demand: &v1::Demand) -> Need {
    Need {
        tasks: demand.waiting_tasks,
        unmeasured: demand.unmeasured_tasks,
        slot_s: demand.waiting_s,
        shortest_s: demand.shortest_s,
        slots: demand.slots,
        blocked: demand.blocked.clone(),
    }
}

/// A time in words.
pub fn utc(at: Seconds) -> String {
    let time = i64::try_from(at).ok().and_then(|at| chrono::DateTime::from_timestamp(at, 0));
    time.map_or_else(|| at.to_string(), |time| time.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}
