//! A launcher asks the coordinator what waits, and Slurm for allocations.

mod folder;
pub mod slurm;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use powersweep_coordinator::owner::host;
use powersweep_dataset::words::count;
use powersweep_dataset::{Error, Notes};
use powersweep_launch::slurm::WorkerJob;
use powersweep_launch::{Need, Room, Seconds, Want};
use powersweep_proto::client::{Address, Client};
use powersweep_proto::v1;
use tokio_util::sync::CancellationToken;

pub use self::folder::{Folder, Lock, SlotTime, State};
use self::slurm::BatchError;
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

/// What a launcher asks for.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The jobs of workers.
    pub job: WorkerJob,
    /// The room for them.
    pub room: Room,
    /// Least time between two queries.
    pub poll: Duration,
    /// The launcher ends after this time without work.
    pub until_idle: Option<Duration>,
}

/// A launcher that runs.
pub struct Launcher {
    plan: Plan,
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
        let poll = plan.poll;
        Ok(Launcher {
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
    pub async fn run(mut self, stop: &CancellationToken) -> Result<(End, State), Error> {
        loop {
            let end = self.step().await?;
            let end = if self.folder.take_stop() { Some(End::Stopped) } else { end };
            if let Some(end) = end.or_else(|| stop.is_cancelled().then_some(End::Interrupted)) {
                self.state.ended = true;
                self.save()?;
                return Ok((end, self.state));
            }
            self.save()?;
            tokio::select! {
                () = tokio::time::sleep(LOOK.min(self.plan.poll)) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    fn save(&mut self) -> Result<(), Error> {
        self.state.written_at = now();
        self.state.excluded = self.state.fleet.excluded(now()).into_iter().map(str::to_owned).collect();
        self.folder.write(&self.state)
    }

    async fn step(&mut self) -> Result<Option<End>, Error> {
        let status = self.ask_coordinator().await;
        if let Some(status) = &status {
            self.see_workers(status);
        }
        self.ask_queue().await;
        let Some(status) = status else {
            "the coordinator does not answer".clone_into(&mut self.state.why);
            return Ok(None);
        };
        let demand = status.demand.unwrap_or_default();
        let works = demand.waiting_tasks > 0 || demand.leased_tasks > 0 || self.state.fleet.alive() > 0;
        self.submit(&need(&demand)).await?;
        self.idle_since = if works { None } else { self.idle_since.or(Some(Instant::now())) };
        let idle = self.plan.until_idle.zip(self.idle_since).is_some_and(|(limit, since)| since.elapsed() >= limit);
        Ok(idle.then_some(End::Idle))
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
        match answer {
            Ok(status) => Some(status),
            Err(reason) => {
                // The next attempt reads the access file again: the coordinator may have moved.
                self.connection = None;
                self.trouble(format!("the coordinator does not answer: {reason}"));
                None
            }
        }
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

    // ---- Slurm

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
        match slurm::queue(&self.state.name).await {
            Ok(entries) => {
                for note in self.state.fleet.answered(&entries, asked_at) {
                    self.notes.say(&note);
                }
                self.folder.sweep(&self.state.fleet);
            }
            Err(error) => {
                self.state.fleet.counts.unanswered += 1;
                self.trouble(error.to_string());
            }
        }
        let same = before == self.state.fleet.allocations;
        self.poll = if same { (self.poll * 2).min(POLL_MAX.max(self.plan.poll)) } else { self.plan.poll };
    }

    async fn submit(&mut self, need: &Need) -> Result<(), Error> {
        let want = Want::of(need, &self.plan.room, &self.state.fleet, now());
        self.say(&want);
        if want.count == 0 {
            return Ok(());
        }
        let text = self.plan.job.script();
        let script = self.folder.write_script("worker.sh", &text)?.display().to_string();
        let array = format!("--array=1-{}", want.count);
        let excluded = self.state.fleet.excluded(now());
        let exclude = (!excluded.is_empty()).then(|| format!("--exclude={}", excluded.join(",")));
        let arguments: Vec<&str> =
            std::iter::once(array.as_str()).chain(exclude.as_deref()).chain([script.as_str()]).collect();
        match slurm::submit(&arguments).await {
            Ok(job) => {
                self.state.fleet.submitted(&job, want.count, now());
                self.state.trouble.clear();
                self.poll = self.plan.poll;
                self.folder.write_script(&format!("{job}.sh"), &text)?;
                self.notes.say(&format!("submitted {} as job {job}", count(want.count, "allocation")));
            }
            Err(error @ (BatchError::Hangs(_) | BatchError::Answer(_))) => {
                self.state.fleet.submission_unknown(want.count, &error.to_string(), now());
                self.trouble(error.to_string());
            }
            Err(error) => {
                self.state.fleet.submission_refused(want.count, &error.to_string(), now());
                self.trouble(error.to_string());
            }
        }
        Ok(())
    }

    // ---- words

    fn say(&mut self, want: &Want) {
        self.state.why.clone_from(&want.why);
        let pause = self.state.fleet.back_off.pause(now()).filter(|pause| pause.long);
        let told = pause.map(|pause| format!("{}; the next submission is tried at {}", pause.reason, utc(pause.until)));
        let told = told.unwrap_or_default();
        if told != self.told && !told.is_empty() {
            self.notes.say(&format!("paused: {told}"));
        }
        self.told = told;
    }

    fn trouble(&mut self, text: String) {
        if self.state.trouble != text {
            self.notes.say(&text);
        }
        self.state.trouble = text;
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
