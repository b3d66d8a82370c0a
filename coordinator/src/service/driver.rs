//! The one task that owns the farm: events in, effects out, one commit at a time.
//!
//! It takes as many waiting events as there are before it commits, so that many hand-ins share one durable write.
//! After a failed commit it drops the farm, closes all streams, loads the state again and goes on; workers reconnect.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use powersweep_proto::client::chain;
use powersweep_proto::v1;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::dataset_work::DatasetWork;
use super::pace::Pace;
use super::requests::Requests;
use super::{ServeError, ServeOptions};
use crate::farm::{ClientId, Config, ConnId, Effect, Event, Farm, Now, PublishFailure, Reply, Request};
use crate::owner::Lost;
use crate::store::{Store, StoreError};

/// Events that may wait for the driver: then streams are read no further.
const WAITING_MAX: usize = 512;
/// Events taken before effects are carried out.
const BURST_MAX: usize = 256;
/// Messages that may wait for one worker; one that does not read them is disconnected.
const MESSAGES_MAX: usize = 4096;
/// How often time passes for the farm.
const TICK: Duration = Duration::from_millis(250);
/// A commit that takes longer pauses dispatch.
const STALL_AFTER: Duration = Duration::from_secs(2);
/// Wait between attempts to load the state after storage failed.
const RELOAD_AFTER: Duration = Duration::from_secs(1);
/// How long finished rows may take to become parts at the end.
const CLOSE_LIMIT: Duration = Duration::from_secs(60);
/// The same where storage does not answer, and how long the last write may then take.
const STALLED_CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// Wait until stalled storage is asked again, at first and at most; each question may cost a thread for good.
const ASK_AFTER: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(600));
/// Bytes of rows that wait for a commit at which no more are taken in: flow control then holds the workers back.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// Messages to one worker.
pub(super) type Outbox = mpsc::Sender<Result<v1::FarmMessage, Status>>;

/// What the services ask of the driver.
pub(super) enum Command {
    /// A worker's stream, before its first message.
    Attach { conn: ConnId, outbox: Outbox },
    /// An event.
    Event(Event),
    /// A request that changes the state.
    Request { request: Request, reply: oneshot::Sender<Reply> },
    /// A request that only reads the state.
    Status { request: v1::StatusRequest, reply: oneshot::Sender<v1::StatusReply> },
}

/// What the driver's own tasks report, with the life of the farm that they worked for.
enum Done {
    Commit { life: u64, token: u64, result: Result<(), StoreError> },
    Part { life: u64, part_id: uuid::Uuid, result: Result<u64, PublishFailure> },
    Left { life: u64, experiment: String, result: Result<(), PublishFailure> },
    Trouble { life: u64, trouble: Option<String> },
}

/// How far a shutdown is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    Draining { until: Instant },
    Closing { since: Instant },
}

/// What the services send; questions are answered also while no command is taken in.
struct Inbox {
    commands: mpsc::Receiver<Command>,
    questions: mpsc::Receiver<Command>,
}

struct Driver {
    store: Arc<dyn Store>,
    config: Config,
    farm: Farm,
    /// Counts the farms of this process: results for an earlier one are dropped.
    life: u64,
    started: Instant,
    conns: HashMap<ConnId, Outbox>,
    clients: HashMap<ClientId, oneshot::Sender<Reply>>,
    next_client: ClientId,
    done: mpsc::UnboundedSender<Done>,
    effects: Vec<Effect>,
    commit_since: Option<Instant>,
    pace: Pace,
    stalled: bool,
    /// What is wrong with stalled storage, and when it was asked last.
    trouble: Option<String>,
    asked: Option<(Instant, Duration)>,
    work: DatasetWork,
    ending: Ending,
    drain_limit: Duration,
}

/// Loads the state and starts the driver.
pub(super) async fn start(
    options: &ServeOptions,
    lost: Option<watch::Receiver<Option<Lost>>>,
    shutdown: CancellationToken,
) -> Result<(JoinHandle<Result<(), ServeError>>, Requests), ServeError> {
    let (commands, receiver) = mpsc::channel(WAITING_MAX);
    let (questions, asked) = mpsc::channel(WAITING_MAX);
    let (done, finished) = mpsc::unbounded_channel();
    let started = Instant::now();
    let loaded = options.store.load().await?;
    let farm = Farm::recover(options.config.clone(), loaded, seed(), now(started));
    let driver = Driver {
        store: Arc::clone(&options.store),
        config: options.config.clone(),
        farm,
        life: 1,
        started,
        conns: HashMap::new(),
        clients: HashMap::new(),
        next_client: 0,
        done,
        effects: Vec::new(),
        commit_since: None,
        pace: Pace::new(started),
        stalled: false,
        trouble: None,
        asked: None,
        work: DatasetWork::new(Arc::clone(&options.store)),
        ending: Ending::No,
        drain_limit: options.drain_limit,
    };
    let log_source = options.log_source.clone();
    let requests = Requests { commands, questions, store: Arc::clone(&options.store), log_source };
    Ok((tokio::spawn(driver.run(Inbox { commands: receiver, questions: asked }, finished, lost, shutdown)), requests))
}

/// Ends when ownership is lost; never where there is none.
async fn lost_ownership(lost: Option<watch::Receiver<Option<Lost>>>) -> Lost {
    if let Some(mut lost) = lost
        && let Ok(found) = lost.wait_for(Option::is_some).await
        && let Some(lost) = found.clone()
    {
        return lost;
    }
    std::future::pending().await
}

/// Any number that no other owner had.
fn seed() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0
}

fn now(started: Instant) -> Now {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Now { mono: started.elapsed(), wall_us: i64::try_from(since.as_micros()).unwrap_or(i64::MAX) }
}

impl Driver {
    async fn run(
        mut self,
        mut inbox: Inbox,
        mut finished: mpsc::UnboundedReceiver<Done>,
        lost: Option<watch::Receiver<Option<Lost>>>,
        shutdown: CancellationToken,
    ) -> Result<(), ServeError> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut burst = Vec::with_capacity(BURST_MAX);
        let lost = lost_ownership(lost);
        tokio::pin!(lost);
        loop {
            let next_commit = self.start_commit();
            tokio::select! {
                biased;
                // Nothing more is written: the state is another's.
                lost = &mut lost => return Err(ServeError::TakenOver(lost)),
                Some(done) = finished.recv() => {
                    if let Some(error) = self.done(done) {
                        self.reload(error, &mut inbox).await?;
                    }
                }
                Some(question) = inbox.questions.recv() => self.command(question),
                taken = inbox.commands.recv_many(&mut burst, BURST_MAX), if self.takes_more() => {
                    if taken == 0 {
                        // Nobody can ask any more: the server is gone.
                        shutdown.cancel();
                    }
                    for command in burst.drain(..) {
                        self.command(command);
                    }
                }
                () = tokio::time::sleep_until(next_commit.unwrap_or_else(Instant::now).into()), if next_commit.is_some() => {}
                _ = tick.tick() => {
                    self.watch_storage();
                    self.event(Event::Tick);
                }
                () = shutdown.cancelled(), if self.ending == Ending::No => {
                    self.ending = Ending::Draining { until: Instant::now() + self.drain_limit };
                    self.event(Event::Stop);
                }
            }
            if self.advance_ending() {
                break;
            }
        }
        self.conns.clear();
        self.close().await
    }

    /// Whether events are taken in: not while the rows of earlier ones pile up behind a commit that takes long.
    fn takes_more(&self) -> bool {
        self.commit_since.is_none() || self.farm.waiting_bytes() < WAITING_BYTES_MAX
    }

    /// Closes the store, without waiting for ever for storage that does not answer.
    async fn close(&self) -> Result<(), ServeError> {
        let limit = if self.stalled { STALLED_CLOSE_LIMIT } else { CLOSE_LIMIT };
        match tokio::time::timeout(limit, self.store.close()).await {
            Ok(result) => Ok(result?),
            Err(_) => {
                let waited = format!("it has not confirmed the last writes for {} s", limit.as_secs());
                let trouble = self.store.trouble().await.map(|trouble| format!(": {trouble}"));
                let reason = waited + &trouble.unwrap_or_default();
                Err(ServeError::Unfinished { data: self.config.data.clone(), reason })
            }
        }
    }

    /// Moves a shutdown on; true when everything is done.
    fn advance_ending(&mut self) -> bool {
        let late = |until: Instant| Instant::now() >= until;
        if let Ending::Draining { until } = self.ending
            && (!self.farm.has_workers() && !self.farm.is_busy() || late(until))
        {
            self.ending = Ending::Closing { since: Instant::now() };
            self.event(Event::Close);
        }
        // Looked at in the same round: where nothing is left to do, no event but the next tick would come.
        match self.ending {
            Ending::No | Ending::Draining { .. } => false,
            Ending::Closing { since } => {
                let limit = if self.stalled { STALLED_CLOSE_LIMIT } else { CLOSE_LIMIT };
                let late = late(since + limit);
                if late && !self.farm.is_settled() {
                    tracing::warn!("some rows are not in parts yet: the next start puts them there");
                }
                self.farm.is_settled() || late
            }
        }
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
            Command::Event(event) => {
                if let Event::Disconnected { conn, .. } = event {
                    self.conns.remove(&conn);
                }
                self.event(event);
            }
            Command::Request { request, reply } => {
                self.next_client += 1;
                let client = self.next_client;
                self.clients.insert(client, reply);
                self.event(Event::Request { client, request });
            }
            Command::Status { request, reply } => {
                let _ = reply.send(self.farm.status(&request, now(self.started)));
            }
        }
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Send { conn, message } => {
                let Some(outbox) = self.conns.get(&conn) else { return };
                if outbox.try_send(Ok(v1::FarmMessage { body: Some(message) })).is_err() {
                    // It reads nothing, or is gone; its reader reports the end of the stream.
                    self.conns.remove(&conn);
                }
            }
            Effect::Close { conn } => drop(self.conns.remove(&conn)),
            Effect::Reply { client, reply } => {
                if let Some(waiting) = self.clients.remove(&client) {
                    let _ = waiting.send(reply);
                }
            }
            Effect::Publish { intent } => {
                let (done, life, part_id) = (self.done.clone(), self.life, *intent.part_id);
                self.work.publish(intent, move |result| {
                    let _ = done.send(Done::Part { life, part_id, result });
                });
            }
            Effect::Leave { experiment, fate } => {
                let (done, life) = (self.done.clone(), self.life);
                self.work.leave(experiment, fate, move |experiment, result| {
                    let _ = done.send(Done::Left { life, experiment, result });
                });
            }
            Effect::Discard { experiment, table, part_id } => self.work.discard(experiment, table, part_id),
        }
    }

    /// Starts a commit if there is something to commit, or says when it may start.
    fn start_commit(&mut self) -> Option<Instant> {
        if !self.farm.wants_commit() {
            return None;
        }
        let now = Instant::now();
        if self.pace.next() > now {
            return Some(self.pace.next());
        }
        let (token, batch) = self.farm.take_commit()?;
        self.pace.started(now);
        self.commit_since = Some(now);
        let (store, done, life) = (Arc::clone(&self.store), self.done.clone(), self.life);
        tokio::spawn(async move {
            let result = store.commit(batch).await;
            let _ = done.send(Done::Commit { life, token, result });
        });
        None
    }

    /// Takes in what a task of the driver reports; an error if the state must be loaded again.
    fn done(&mut self, done: Done) -> Option<StoreError> {
        match done {
            Done::Commit { life, token, result } if life == self.life => {
                self.commit_since = None;
                match result {
                    Ok(()) => self.event(Event::Committed { token }),
                    Err(error) => return Some(error),
                }
                self.watch_storage();
            }
            Done::Part { life, part_id, result } if life == self.life => {
                if let Err(failure) = &result {
                    tracing::warn!("part {part_id} could not be published: {}", failure.reason);
                }
                self.event(Event::Published { part_id, result });
            }
            Done::Left { life, experiment, result } if life == self.life => {
                if let Err(failure) = &result {
                    tracing::warn!("the parts of {experiment} could not be taken away: {}", failure.reason);
                }
                self.event(Event::Left { experiment, result });
            }
            Done::Trouble { life, trouble } if life == self.life => {
                self.trouble = trouble;
                self.watch_storage();
            }
            Done::Commit { .. } | Done::Part { .. } | Done::Left { .. } | Done::Trouble { .. } => {}
        }
        None
    }

    /// Pauses dispatch while a commit takes too long.
    fn watch_storage(&mut self) {
        let waited = self.commit_since.map(|since| since.elapsed()).unwrap_or_default();
        let stalled = waited > STALL_AFTER;
        if stalled {
            let mut reason = format!("storage has not confirmed a write for {} s", waited.as_secs());
            self.trouble.iter().for_each(|trouble| reason = format!("{reason}: {trouble}"));
            if !self.stalled {
                tracing::warn!("{reason}; nothing is handed out until it does");
            }
            self.event(Event::Storage { stalled: Some(reason) });
            self.ask_storage();
        } else if self.stalled {
            tracing::warn!("storage works again");
            (self.trouble, self.asked) = (None, None);
            self.event(Event::Storage { stalled: None });
        }
        self.stalled = stalled;
    }

    /// Asks what is wrong with the storage.
    fn ask_storage(&mut self) {
        let wait = match self.asked {
            Some((at, wait)) if at.elapsed() < wait => return,
            Some((_, wait)) => (wait * 2).min(ASK_AFTER.1),
            None => ASK_AFTER.0,
        };
        self.asked = Some((Instant::now(), wait));
        let (store, done, life) = (Arc::clone(&self.store), self.done.clone(), self.life);
        tokio::spawn(async move {
            let trouble = store.trouble().await;
            trouble.iter().for_each(|trouble| tracing::warn!("storage: {trouble}"));
            let _ = done.send(Done::Trouble { life, trouble });
        });
    }

    /// Drops the state in memory and loads what is durable. Streams are closed: workers come back and are adopted.
    async fn reload(&mut self, mut error: StoreError, inbox: &mut Inbox) -> Result<(), ServeError> {
        tracing::warn!("a write failed, the state is loaded again: {}", chain(&error));
        self.life += 1;
        self.conns.clear();
        self.clients.clear();
        self.commit_since = None;
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
                    self.farm = Farm::recover(self.config.clone(), loaded, seed(), now(self.started));
                    match self.ending {
                        Ending::No => {}
                        Ending::Draining { .. } => self.event(Event::Stop),
                        Ending::Closing { .. } => self.event(Event::Close),
                    }
                    self.stalled = false;
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

    /// Answers questions from the state as it was, until something is over. False if nobody can ask any more.
    async fn answer_until(&mut self, over: impl Future, inbox: &mut Inbox) -> bool {
        tokio::pin!(over);
        loop {
            tokio::select! {
                _ = &mut over => return true,
                Some(question) = inbox.questions.recv() => self.command(question),
                command = inbox.commands.recv() => match command {
                    // Dropped senders tell the askers that nothing was stored.
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
