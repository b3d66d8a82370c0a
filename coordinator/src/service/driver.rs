//! The task that owns the farm: events in, effects out, one commit at a time.
//!
//! All waiting events are handled before the next commit, so that many hand-ins share one durable write. After a failed
//! commit, the driver drops the farm, closes all streams and loads the state again; workers reconnect.

mod ending;
mod stalls;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use powersweep_experiments::plain::chain;
use powersweep_proto::clocks::now_us;
use powersweep_proto::v1;
use powersweep_results::part::Origin;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use self::ending::Ending;
use super::command::{Command, Outbox};
use super::dataset_work::DatasetWork;
use super::metrics::Counters;
use super::pace::Pace;
use super::refusals::Refusals;
use super::requests::Requests;
use super::{ServeError, ServeOptions};
use crate::farm::{ClientId, Config, ConnId, Effect, Event, Farm, Now, Reply};
use crate::store::{Store, StoreError};

/// Events that may wait for the driver; with more, streams are not read.
const WAITING_MAX: usize = 512;
/// Maximum number of events handled before the next commit.
const BURST_MAX: usize = 256;
/// Status requests may take this share of the driver's time, as 1 in N: with a flood of them, hand-ins still are taken in.
const STATUS_SHARE: u32 = 5;
/// Messages that may wait for one worker; a worker that does not read them is disconnected.
const MESSAGES_MAX: usize = 4096;
/// Interval of [`Event::Tick`].
const TICK: Duration = Duration::from_millis(250);
/// Wait between attempts to load the state after storage failed.
const RELOAD_AFTER: Duration = Duration::from_secs(1);
/// Back-pressure: while more bytes of rows wait for a commit, no event is taken in, and flow control stops the workers.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// A report of one of the driver's tasks.
enum Report {
    /// The commit of this token.
    Commit { token: u64, result: Result<(), StoreError> },
    /// To pass to the farm.
    Event(Box<Event>),
    /// The result of a probe of the storage.
    Trouble(Option<String>),
}

/// The service's messages; status requests are answered also while no other command is taken in.
struct Inbox {
    commands: mpsc::Receiver<Command>,
    questions: mpsc::Receiver<Command>,
}

struct Driver {
    store: Arc<dyn Store>,
    config: Config,
    farm: Farm,
    /// Number of the farm in this process: reports for an earlier farm are dropped.
    life: u64,
    started: Instant,
    conns: HashMap<ConnId, Outbox>,
    clients: HashMap<ClientId, oneshot::Sender<Reply>>,
    next_client: ClientId,
    /// Reports, each with the number of its farm.
    reports: mpsc::UnboundedSender<(u64, Report)>,
    effects: Vec<Effect>,
    commit_since: Option<Instant>,
    pace: Pace,
    stalled: bool,
    health: watch::Sender<bool>,
    counters: Arc<Counters>,
    /// Uploads that storage refused.
    refusals: Arc<Refusals>,
    /// The fault of stalled storage, as far as a probe found it.
    trouble: Option<String>,
    /// Time of the last probe, and wait until the next.
    probed: Option<(Instant, Duration)>,
    work: DatasetWork,
    ending: Ending,
    /// The shutdown was noticed.
    told_to_end: bool,
    drain_limit: Duration,
    /// Callers that wait for the end, to start another version.
    upgrades: Vec<oneshot::Sender<Result<v1::PrepareUpgradeReply, Status>>>,
    /// When status requests are answered next.
    answers_at: Instant,
}

/// Loads the state and starts the driver.
pub(super) async fn start(
    options: &ServeOptions,
    counters: Arc<Counters>,
    health: watch::Sender<bool>,
    shutdown: CancellationToken,
) -> Result<(JoinHandle<Result<(), ServeError>>, Requests), ServeError> {
    let (commands, receiver) = mpsc::channel(WAITING_MAX);
    let (questions, asked) = mpsc::channel(WAITING_MAX);
    let (reports, reported) = mpsc::unbounded_channel();
    let started = Instant::now();
    let loaded = options.store.load().await?;
    let farm = Farm::recover(options.config.clone(), loaded, seed(), now(started));
    let refusals = Arc::new(Refusals::default());
    let driver = Driver {
        store: Arc::clone(&options.store),
        config: options.config.clone(),
        farm,
        life: 1,
        started,
        conns: HashMap::new(),
        clients: HashMap::new(),
        next_client: 0,
        reports,
        effects: Vec::new(),
        commit_since: None,
        pace: Pace::new(started),
        stalled: false,
        health,
        counters,
        refusals: Arc::clone(&refusals),
        trouble: None,
        probed: None,
        work: DatasetWork::new(Arc::clone(&options.store)),
        ending: Ending::No,
        told_to_end: false,
        drain_limit: options.drain_limit,
        upgrades: Vec::new(),
        answers_at: started,
    };
    let log_source = options.log_source.clone();
    let (limits, uploads, store) = (Arc::default(), Arc::default(), Arc::clone(&options.store));
    let config = Arc::new(options.config.clone());
    let requests = Requests { commands, questions, store, limits, uploads, log_source, refusals, config };
    Ok((tokio::spawn(driver.run(Inbox { commands: receiver, questions: asked }, reported, shutdown)), requests))
}

/// A number that no other owner had.
fn seed() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0
}

fn now(started: Instant) -> Now {
    Now { mono: started.elapsed(), wall_us: now_us() }
}

impl Driver {
    async fn run(
        mut self,
        mut inbox: Inbox,
        mut reported: mpsc::UnboundedReceiver<(u64, Report)>,
        shutdown: CancellationToken,
    ) -> Result<(), ServeError> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut burst = Vec::with_capacity(BURST_MAX);
        let mut asked = Vec::with_capacity(BURST_MAX);
        loop {
            let next_commit = self.start_commit();
            let answers_at = Some(self.answers_at).filter(|at| *at > Instant::now());
            tokio::select! {
                biased;
                Some((life, report)) = reported.recv() => {
                    if life == self.life
                        && let Some(error) = self.report(report)
                    {
                        self.reload(error, &mut inbox).await?;
                    }
                }
                // Before the queues, which may never be empty.
                _ = tick.tick() => {
                    self.watch_storage();
                    self.event(Event::Tick);
                }
                1.. = inbox.questions.recv_many(&mut asked, BURST_MAX), if answers_at.is_none() => {
                    self.answer(&mut asked);
                }
                taken = inbox.commands.recv_many(&mut burst, BURST_MAX), if self.takes_more() => {
                    if taken == 0 {
                        // All senders are dropped: the server has ended.
                        shutdown.cancel();
                    }
                    for command in burst.drain(..) {
                        self.command(command);
                    }
                }
                () = tokio::time::sleep_until(next_commit.unwrap_or_else(Instant::now).into()), if next_commit.is_some() => {}
                () = tokio::time::sleep_until(answers_at.unwrap_or_else(Instant::now).into()), if answers_at.is_some() => {}
                () = shutdown.cancelled(), if !self.told_to_end => {
                    self.told_to_end = true;
                    self.drain(self.drain_limit);
                }
            }
            if self.advance_ending() {
                break;
            }
        }
        self.conns.clear();
        let unpublished = self.farm.unpublished();
        self.close().await?;
        for reply in self.upgrades.drain(..) {
            let _ = reply.send(Ok(v1::PrepareUpgradeReply { unpublished: unpublished.clone() }));
        }
        Ok(())
    }

    /// Whether events are taken in: not while many rows of earlier ones wait behind a slow commit.
    fn takes_more(&self) -> bool {
        self.commit_since.is_none() || self.farm.waiting_bytes() < WAITING_BYTES_MAX
    }

    fn event(&mut self, event: Event) {
        let now = now(self.started);
        let mut effects = std::mem::take(&mut self.effects);
        self.farm.handle(event, now, &mut effects);
        for effect in effects.drain(..) {
            self.effect(effect);
        }
        self.effects = effects;
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Attach { conn, outbox } => drop(self.conns.insert(conn, outbox)),
            Command::Event { event, room: _room } => {
                if let Event::Disconnected { conn, .. } = *event {
                    self.conns.remove(&conn);
                }
                self.event(*event);
            }
            Command::Request { request, reply } => {
                self.next_client += 1;
                let client = self.next_client;
                self.clients.insert(client, reply);
                self.event(Event::Request { client, request });
            }
            Command::Read(read) => read(&self.farm),
            Command::PrepareUpgrade { limit, reply } => self.prepare_upgrade(limit, reply),
            Command::Status { request, reply } => {
                let _ = reply.send(self.farm.status(&request, now(self.started)));
            }
        }
    }

    /// Answers status requests. Equal ones have the same answer, which is made once.
    fn answer(&mut self, asked: &mut Vec<Command>) {
        let begun = Instant::now();
        let mut made: Vec<(v1::StatusRequest, v1::StatusReply)> = Vec::new();
        for question in asked.drain(..) {
            let Command::Status { request, reply } = question else { continue };
            let known = made.iter().find(|(other, _)| *other == request).map(|(_, answer)| answer.clone());
            let answer = known.unwrap_or_else(|| self.farm.status(&request, now(self.started)));
            made.push((request, answer.clone()));
            let _ = reply.send(answer);
        }
        self.answers_at = Instant::now() + begun.elapsed() * (STATUS_SHARE - 1);
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Send { conn, message } => {
                let Some(outbox) = self.conns.get(&conn) else { return };
                if outbox.try_send(Ok(v1::FarmMessage { body: Some(message) })).is_err() {
                    // The worker reads no messages, or the stream has ended, which its reader reports.
                    self.conns.remove(&conn);
                }
            }
            Effect::Close { conn } => drop(self.conns.remove(&conn)),
            Effect::Reply { client, reply } => {
                if let Some(waiting) = self.clients.remove(&client) {
                    let _ = waiting.send(reply);
                }
            }
            work => {
                let origin = match &work {
                    Effect::Publish { intent } => self.farm.origin(&intent.experiment),
                    _ => Origin::default(),
                };
                let report = self.reporter();
                self.work.start(work, origin, move |event| report(Report::Event(Box::new(event))));
            }
        }
    }

    /// Sends a report of a task of the present farm.
    fn reporter(&self) -> impl FnOnce(Report) + Send + use<> {
        let (reports, life) = (self.reports.clone(), self.life);
        move |report| drop(reports.send((life, report)))
    }

    /// Starts a commit if the farm wants one, or returns when it may start.
    fn start_commit(&mut self) -> Option<Instant> {
        if !self.farm.wants_commit() {
            return None;
        }
        let now = Instant::now();
        if self.pace.next() > now {
            return Some(self.pace.next());
        }
        let (row_bytes, (token, batch)) = (self.farm.waiting_bytes(), self.farm.take_commit()?);
        self.counters.committed_row_bytes.inc_by(row_bytes as u64);
        self.pace.started(now);
        self.commit_since = Some(now);
        let (store, report) = (Arc::clone(&self.store), self.reporter());
        tokio::spawn(async move {
            let result = store.commit(batch).await;
            report(Report::Commit { token, result });
        });
        None
    }

    /// Handles a report of one of the driver's tasks; an error if the state must be loaded again.
    fn report(&mut self, report: Report) -> Option<StoreError> {
        match report {
            Report::Commit { token, result } => {
                self.counters.committed(self.commit_since.take(), result.is_ok());
                match result {
                    Ok(()) => self.event(Event::Committed { token }),
                    Err(error) => return Some(error),
                }
                self.watch_storage();
            }
            Report::Event(event) => {
                self.counters.event(&event);
                match &*event {
                    Event::Published { part_id, result: Err(failure) } => {
                        tracing::warn!("part {part_id} could not be published: {}", failure.reason);
                    }
                    Event::RemovalDone { experiment, result: Err(failure) } => {
                        tracing::warn!("the parts of {experiment} could not be removed: {}", failure.reason);
                    }
                    Event::SplitPrepared { experiment, result: Err(failure), .. }
                    | Event::SplitDone { experiment, result: Err(failure), .. }
                    | Event::Pruned { experiment, result: Err(failure), .. } => {
                        tracing::warn!("rows of {experiment} that left could not be moved: {}", failure.reason);
                    }
                    _ => {}
                }
                self.event(*event);
            }
            Report::Trouble(trouble) => {
                self.trouble = trouble;
                self.watch_storage();
            }
        }
        None
    }

    /// Drops the state in memory and loads the durable state. Streams are closed: workers reconnect.
    async fn reload(&mut self, mut error: StoreError, inbox: &mut Inbox) -> Result<(), ServeError> {
        tracing::warn!("a write failed, the state is loaded again: {}", chain(&error));
        self.life += 1;
        self.conns.clear();
        self.clients.clear();
        self.commit_since = None;
        self.set_stalled(true);
        let reason = Some(format!("storage failed: {}", chain(&error)));
        self.farm.handle(Event::Storage { stalled: reason }, now(self.started), &mut Vec::new());
        if !error.is_retryable() {
            return Err(error.into());
        }
        let work = std::mem::replace(&mut self.work, DatasetWork::new(Arc::clone(&self.store)));
        if !self.answer_until(work.end(), inbox).await {
            return Err(error.into());
        }
        loop {
            error = match self.store.load().await {
                Ok(loaded) => {
                    let mut farm = Farm::recover(self.config.clone(), loaded, seed(), now(self.started));
                    farm.continue_counts(&mut self.farm);
                    self.farm = farm;
                    match self.ending {
                        Ending::No => {}
                        Ending::Draining { .. } => self.event(Event::Stop),
                        Ending::Closing { .. } => self.event(Event::Close),
                    }
                    self.set_stalled(false);
                    return Ok(());
                }
                Err(error) if !error.is_retryable() => return Err(error.into()),
                Err(error) => error,
            };
            tracing::warn!("the state cannot be loaded yet: {}", chain(&error));
            if !self.answer_until(tokio::time::sleep(RELOAD_AFTER), inbox).await {
                return Err(error.into());
            }
        }
    }

    /// Answers status requests from the old state until `end` is ready. False if all senders are dropped.
    async fn answer_until(&mut self, end: impl Future, inbox: &mut Inbox) -> bool {
        tokio::pin!(end);
        loop {
            tokio::select! {
                _ = &mut end => return true,
                Some(question) = inbox.questions.recv() => self.command(question),
                command = inbox.commands.recv() => match command {
                    // A dropped reply channel tells the client that its request was not stored.
                    Some(_) => {}
                    None => return false,
                }
            }
        }
    }
}

/// A channel to a worker.
pub(super) fn outbox() -> (Outbox, mpsc::Receiver<Result<v1::FarmMessage, Status>>) {
    mpsc::channel(MESSAGES_MAX)
}
