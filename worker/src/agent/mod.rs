//! The gRPC loop: connects, greets, carries messages between the coordinator and the [`Session`], and ends the worker.
//!
//! Slots keep computing while no coordinator answers; their rows wait in the session.
//!
//! [`Session`]: crate::session::Session

mod announced;
mod connect;
mod direct;
#[cfg(feature = "cloud")]
mod http;
mod refused;
mod stall_detector;
mod transfer;
mod usage;

use std::sync::Arc;
use std::time::{Duration, Instant};

use powersweep_proto::client::{Client, words};
use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as FromFarm;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use powersweep_results::columns::fingerprint;
use powersweep_results::tasks;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;
use uuid::Uuid;

use crate::logs::Logs;
use crate::options::{WorkerError, WorkerOptions, WorkerReport};
use crate::session::{Identity, Session, Upload};
use crate::slots::Pool;
use connect::{BackOff, Coordinator};
use direct::Direct;
use stall_detector::StallDetector;
use transfer::LogRequest;
use usage::{Usage, memory_bytes};

/// Capacity of the queue to the transport. Small, because queued messages are sent again after a lost connection.
const OUTBOUND_MESSAGES: usize = 16;
/// Time-out of the answer to the greeting.
const GREETING_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of uploads at the same time.
const UPLOADS_MAX: usize = 2;
/// Time that a drained worker waits for its last acknowledgements beyond its drain limit.
const LAST_ACKS_WAIT: Duration = Duration::from_secs(2);
/// Interval of checks for tasks that ignore their deadline; a check takes one lock for each slot.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);
/// Least and greatest interval of heartbeats (s), whatever interval the coordinator asks for.
const HEARTBEAT_BOUNDS_S: (f64, f64) = (0.05, 60.0);

/// The versions that this build's rows depend on; the coordinator compares them with its own.
pub fn versions() -> v1::Versions {
    powersweep_proto::versions(env!("CARGO_PKG_VERSION"), fingerprint(&tasks::schema()))
}

/// Runs a worker until `shutdown` is cancelled (it drains: queued tasks go back, running ones may finish within
/// [`WorkerOptions::drain_limit`]) or one of its own limits is reached. When the coordinator ends, the worker waits
/// for the next one at the addresses of its access.
///
/// Needs a tokio runtime with time and IO. Slots are threads of their own and do not block it.
pub async fn run(options: WorkerOptions, shutdown: CancellationToken) -> Result<WorkerReport, WorkerError> {
    if options.slots == 0 || options.slots > 4096 {
        return Err(WorkerError::Options(format!("{} slots: a worker has 1 to 4096", options.slots)));
    }
    let ending = options.drain_limit + LAST_ACKS_WAIT;
    if let Some(limit) = options.time_limit.filter(|limit| *limit <= ending) {
        let (limit, ending) = (limit.as_secs_f64(), ending.as_secs_f64());
        let message = format!(
            "a time limit of {limit} s leaves no time to work: the drain limit and the last hand-in take {ending} s of it"
        );
        return Err(WorkerError::Options(message));
    }
    let coordinator = Coordinator::new(&options.coordinator)?;
    let worker_id = Uuid::new_v4();
    let identity = Identity {
        name: options.name.clone(),
        worker_id,
        allocation: options.allocation.clone(),
        versions: versions(),
    };
    let (requests, log_requests) = mpsc::unbounded_channel();
    let logs = Logs::new(&options, transfer::from_coordinator(requests))?;
    let wake = Arc::new(Notify::new());
    let waker = Arc::clone(&wake);
    let session = Session::new(identity, options.slots);
    let wake_agent = Box::new(move || waker.notify_one());
    let pool = Arc::new(Pool::new(&options, session, logs, wake_agent));
    let threads = pool.start()?;

    let clients = watch::Sender::new(None);
    let now = Instant::now();
    let mut agent = Agent {
        options,
        coordinator,
        pool: Arc::clone(&pool),
        wake,
        shutdown,
        log_requests,
        clients,
        back_off: BackOff::new(worker_id),
        direct: Arc::default(),
        last_contact: now,
        last_busy: now,
        last_watch: now,
        started: now,
        refused_since: None,
        usage: Usage::new(),
    };
    let end = StopSlots(Arc::clone(&pool));
    let result = agent.run().await;
    // Dropping the agent ends waiting log requests, so that their slots can end.
    drop(agent);
    drop(end);
    if tokio::time::timeout(LAST_ACKS_WAIT, ended(&threads)).await.is_err() {
        tracing::warn!("a task does not stop; its thread is left behind");
    }
    result.map(|reason| report(&pool, reason))
}

/// Stops the slots when the worker ends, also if the caller drops its future.
struct StopSlots(Arc<Pool>);

impl Drop for StopSlots {
    fn drop(&mut self) {
        let now = self.0.now();
        self.0.change(|s| s.drain(now, Duration::ZERO, "the worker ends"));
        self.0.close();
    }
}

/// Waits until all threads have ended.
async fn ended(threads: &[std::thread::JoinHandle<()>]) {
    while !threads.iter().all(std::thread::JoinHandle::is_finished) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn report(pool: &Pool, reason: String) -> WorkerReport {
    let spent = pool.spent();
    let session = pool.session();
    WorkerReport {
        tasks_acknowledged: session.tasks_acknowledged,
        tasks_rejected: session.tasks_rejected,
        failures: session.failures,
        unacknowledged: session.unacknowledged(),
        stuck_tasks: session.lost_slots(),
        spent,
        reason,
    }
}

struct Agent {
    options: WorkerOptions,
    coordinator: Coordinator,
    pool: Arc<Pool>,
    wake: Arc<Notify>,
    shutdown: CancellationToken,
    log_requests: mpsc::UnboundedReceiver<LogRequest>,
    clients: watch::Sender<Option<Client>>,
    back_off: BackOff,
    direct: Arc<Direct>,
    last_contact: Instant,
    last_busy: Instant,
    last_watch: Instant,
    started: Instant,
    /// When the coordinator refused this worker, which has rows.
    refused_since: Option<Instant>,
    usage: Usage,
}

/// An accepted connection.
struct Link {
    client: Client,
    outbound: mpsc::Sender<v1::WorkerMessage>,
    inbound: Streaming<v1::FarmMessage>,
    heartbeat: Duration,
}

/// The reason for which a connection was not accepted.
enum NoLink {
    Retry(String),
    Final(WorkerError),
}

/// The end of a connection.
enum Ended {
    /// This process stood still, and its leases may have expired.
    StoodStill,
    /// The worker is done, with the reason.
    Drained(String),
    Lost(String),
}

impl Agent {
    /// Runs until the worker ends; returns the reason.
    async fn run(&mut self) -> Result<String, WorkerError> {
        loop {
            if let Some(reason) = self.is_over() {
                return Ok(reason);
            }
            let cause = match self.link_or_drain().await {
                Some(Ok(link)) => {
                    self.clients.send_replace(Some(link.client.clone()));
                    let ended = self.converse(link).await;
                    self.clients.send_replace(None);
                    self.pool.session().disconnected();
                    self.last_contact = Instant::now();
                    match ended {
                        Ok(Ended::StoodStill) => {
                            self.pool.session().stood_still();
                            continue;
                        }
                        Ok(Ended::Drained(reason)) => return Ok(reason),
                        Ok(Ended::Lost(cause)) => {
                            self.refused_since = None;
                            cause
                        }
                        Err(error) => self.keep_rows(error)?,
                    }
                }
                Some(Err(NoLink::Final(error))) => self.keep_rows(error)?,
                Some(Err(NoLink::Retry(cause))) => {
                    // Slots may wait for the answer that did not come.
                    self.pool.change(Session::disconnected);
                    cause
                }
                // The worker must check first whether it ends.
                None => continue,
            };
            self.check_contact(&cause)?;
            let pause = self.back_off.pause();
            tracing::info!("no connection to {} ({cause}); trying again in {pause:.1?}", self.coordinator.reached());
            self.idle_for(pause).await;
        }
    }

    fn check_contact(&self, cause: &str) -> Result<(), WorkerError> {
        let away = self.last_contact.elapsed();
        match self.options.connect_limit {
            Some(limit) if away >= limit => Err(WorkerError::Unreachable {
                endpoints: self.coordinator.reached().to_owned(),
                seconds: away.as_secs_f64(),
                cause: cause.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    // ---- the end

    /// Begins to drain if there is a reason. Returns the reason when the drain is complete.
    fn is_over(&mut self) -> Option<String> {
        let pool = Arc::clone(&self.pool);
        let now = pool.now();
        if self.last_watch.elapsed() >= WATCH_INTERVAL {
            self.last_watch = Instant::now();
            pool.give_up_overdue();
        }
        let mut session = pool.session();
        // A coordinator whose storage is slow leases no more tasks to a worker that waits for its acknowledgements.
        if !session.is_settled() {
            self.last_busy = Instant::now();
        }
        if session.draining().is_none() {
            let due = |limit: Option<Duration>, since: Instant| limit.is_some_and(|l| since.elapsed() >= l);
            let time_limit =
                self.options.time_limit.map(|l| l.saturating_sub(self.options.drain_limit + LAST_ACKS_WAIT));
            let reason = if self.shutdown.is_cancelled() {
                Some("asked to stop")
            } else if session.lost_slots() > 0 {
                Some("a task ignores its deadline")
            } else if due(time_limit, self.started) {
                Some("its time limit is near")
            } else if due(self.options.idle_limit, self.last_busy) {
                Some("nothing to do for its idle limit")
            } else {
                None
            };
            if let Some(reason) = reason {
                session.drain(now, self.options.drain_limit, reason);
                drop(session);
                // Wakes the slots that wait for work.
                pool.change(|_| ());
                session = pool.session();
            }
        }
        session.tick(now);
        let (reason, stop_at) = session.draining()?;
        let over = session.is_settled() || now >= stop_at + LAST_ACKS_WAIT;
        over.then(|| reason.to_owned())
    }

    /// Time until [`Agent::is_over`] must be asked again.
    fn next_check(&self) -> Duration {
        // Limits of a worker are seconds or more; users wait for a drain, so it is checked often.
        let draining = self.pool.session().draining().is_some();
        Duration::from_millis(if draining { 20 } else { 250 })
    }

    /// Waits, and serves requests for logs meanwhile. Returns early if the worker ends.
    async fn idle_for(&mut self, pause: Duration) {
        let until = tokio::time::Instant::now() + pause;
        let draining = self.pool.session().draining().is_some();
        loop {
            let check = tokio::time::sleep(self.next_check());
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                () = self.shutdown.cancelled(), if !draining => return,
                Some(request) = self.log_requests.recv() => self.serve_log(request),
                () = check => if self.is_over().is_some() { return },
            }
        }
    }

    // ---- connecting

    /// One attempt to connect; `None` if the worker must check first whether it ends.
    async fn link_or_drain(&mut self) -> Option<Result<Link, NoLink>> {
        let draining = self.pool.session().draining().is_some();
        let shutdown = self.shutdown.clone();
        tokio::select! {
            link = self.link() => Some(link),
            () = shutdown.cancelled(), if !draining => None,
            // A drain is limited; an attempt to connect must not outlast it.
            () = tokio::time::sleep(LAST_ACKS_WAIT), if draining => None,
        }
    }

    async fn link(&mut self) -> Result<Link, NoLink> {
        let mut client = self.coordinator.connect().await.map_err(NoLink::Retry)?;
        let (outbound, messages) = mpsc::channel(OUTBOUND_MESSAGES);
        let left = self.options.time_limit.map(|l| l.saturating_sub(self.started.elapsed()).as_secs_f64());
        let hello = self.pool.session().hello(left);
        outbound.try_send(message(ToFarm::Hello(hello))).expect("the channel is new");
        let answer = async {
            let mut inbound = client.work(ReceiverStream::new(messages)).await?.into_inner();
            let first = inbound.message().await?;
            Ok::<_, tonic::Status>((first, inbound))
        };
        let answer = tokio::time::timeout(GREETING_TIMEOUT, answer).await;
        let (first, inbound) = match answer.map_err(|_| NoLink::Retry("no answer to the greeting".to_owned()))? {
            Ok(answer) => answer,
            Err(status) if self.coordinator.denies(&status) => return Err(NoLink::Final(self.refused(words(&status)))),
            Err(status) => return Err(NoLink::Retry(words(&status))),
        };
        match first.and_then(|m| m.body) {
            Some(FromFarm::Welcome(welcome)) => {
                self.pool.change(|s| s.welcome(&welcome));
                self.direct.offer(welcome.direct_uploads);
                let (least, most) = HEARTBEAT_BOUNDS_S;
                let heartbeat = Duration::from_secs_f64(welcome.heartbeat_s.clamp(least, most));
                tracing::info!(
                    "connected to {} (epoch {}, protocol {})",
                    self.coordinator.reached(),
                    welcome.epoch,
                    welcome.protocol
                );
                Ok(Link { client, outbound, inbound, heartbeat })
            }
            Some(FromFarm::Refused(refused)) if refused.r#final => Err(NoLink::Final(self.refused(refused.reason))),
            Some(FromFarm::Refused(refused)) => Err(NoLink::Retry(refused.reason)),
            _ => Err(NoLink::Retry("the answer to the greeting is neither a welcome nor a refusal".to_owned())),
        }
    }

    fn refused(&self, reason: String) -> WorkerError {
        WorkerError::Refused { endpoint: self.coordinator.reached().to_owned(), reason }
    }

    // ---- a connection

    /// Carries messages both ways until the connection or the worker ends.
    async fn converse(&mut self, mut link: Link) -> Result<Ended, WorkerError> {
        let mut heartbeat = tokio::time::interval(link.heartbeat);
        heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut uploads: JoinSet<(Upload, bool)> = JoinSet::new();
        let mut pending: Option<v1::WorkerMessage> = None;
        let shutdown = self.shutdown.clone();
        let mut stalls = StallDetector::begin();
        loop {
            if let Some(still) = stalls.look() {
                tracing::warn!(
                    "this process stood still for {still:.1?}: the coordinator is asked which leases continue"
                );
                self.pool.stood_still(still);
                return Ok(Ended::StoodStill);
            }
            if let Some(reason) = self.is_over() {
                self.say_goodbye(link, pending, &reason).await;
                return Ok(Ended::Drained(reason));
            }
            if self.pool.session().is_released() {
                self.say_goodbye(link, pending, "the coordinator ends").await;
                return Ok(Ended::Lost("the coordinator ended".to_owned()));
            }
            self.start_uploads(&link.client, &mut uploads);
            if pending.is_none() {
                pending = self.pool.session().next_message().map(message);
            }
            let draining = self.pool.session().draining().is_some();
            let check = tokio::time::sleep(self.next_check());
            tokio::select! {
                received = link.inbound.message() => match received {
                    Ok(Some(m)) => self.receive(m)?,
                    Ok(None) => return Ok(Ended::Lost("the coordinator closed the connection".to_owned())),
                    Err(status) if self.coordinator.denies(&status) => return Err(self.refused(words(&status))),
                    Err(status) => return Ok(Ended::Lost(words(&status))),
                },
                permit = link.outbound.reserve(), if pending.is_some() => match (permit, pending.take()) {
                    (Ok(permit), Some(m)) => permit.send(m),
                    _ => return Ok(Ended::Lost("the connection is closed".to_owned())),
                },
                _ = heartbeat.tick(), if pending.is_none() => {
                    let (processors, memory_bytes) = (self.usage.processors(), memory_bytes());
                    let heartbeat = self.pool.session().heartbeat(self.pool.spent());
                    pending = Some(message(ToFarm::Heartbeat(v1::Heartbeat { processors, memory_bytes, ..heartbeat })));
                }
                () = self.wake.notified(), if pending.is_none() => {}
                Some(done) = uploads.join_next() => {
                    if let Ok((upload, ok)) = done {
                        self.pool.session().uploaded(&upload, ok);
                    }
                }
                Some(request) = self.log_requests.recv() => self.serve_log(request),
                () = shutdown.cancelled(), if !draining => {}
                () = check => {}
            }
        }
    }

    fn start_uploads(&self, client: &Client, uploads: &mut JoinSet<(Upload, bool)>) {
        while uploads.len() < UPLOADS_MAX {
            let Some(upload) = self.pool.session().next_upload() else { return };
            uploads.spawn(transfer::upload(client.clone(), upload, Arc::clone(&self.direct)));
        }
    }

    fn serve_log(&self, request: LogRequest) {
        tokio::spawn(transfer::answer(request, self.clients.subscribe()));
    }

    fn receive(&mut self, message: v1::FarmMessage) -> Result<(), WorkerError> {
        self.last_contact = Instant::now();
        match message.body {
            Some(FromFarm::Experiment(experiment)) => {
                let experiment = self.read_experiment(experiment)?;
                self.pool.add_experiment(experiment);
            }
            Some(FromFarm::Lease(lease)) => {
                // Not at the welcome: a coordinator that shuts down welcomes workers, too.
                self.back_off.reset();
                self.pool.change(|s| s.lease(lease));
            }
            Some(FromFarm::Ack(ack)) => {
                for rejected in &ack.rejected {
                    tracing::info!("hand-in {} was rejected: {}", rejected.id, rejected.reason);
                }
                let rejected: Vec<u64> = ack.rejected.iter().map(|r| r.id).collect();
                self.pool.change(|s| {
                    s.acknowledged(&ack.ids);
                    s.rejected(&rejected);
                });
            }
            Some(FromFarm::Revoke(revoke)) => self.pool.change(|s| s.revoked(&revoke)),
            Some(FromFarm::Drain(drain)) => {
                tracing::info!("{} releases this worker: {}", self.coordinator.reached(), drain.reason);
                self.pool.change(Session::pause);
            }
            Some(FromFarm::Refused(refused)) => return Err(self.refused(refused.reason)),
            // Later protocol versions may say more than this build knows; a second welcome has no meaning.
            Some(FromFarm::Welcome(_)) | None => {}
        }
        Ok(())
    }

    /// Sends the pending message and the goodbye, then waits until the coordinator closes the stream.
    async fn say_goodbye(&self, mut link: Link, pending: Option<v1::WorkerMessage>, reason: &str) {
        let goodbye = message(ToFarm::Goodbye(v1::Goodbye { reason: reason.to_owned() }));
        let last = async {
            for m in pending.into_iter().chain([goodbye]) {
                link.outbound.send(m).await.ok();
            }
            drop(link.outbound);
            while let Ok(Some(_)) = link.inbound.message().await {}
        };
        tokio::time::timeout(Duration::from_secs(1), last).await.ok();
    }
}

fn message(body: ToFarm) -> v1::WorkerMessage {
    v1::WorkerMessage { body: Some(body) }
}
