//! The threads that run tasks, one a slot, and the state that they share with the agent.
//!
//! Slots take tasks from the [`Session`] and hand rows in to it without messages between threads. Three kinds of threads
//! use the pool: slots; the flusher, which hands in the batch of a slot that is busy with a long task; and the agent's
//! runtime, which `wake` of [`Pool::new`] tells that there is a message to send. No lock is held while a task runs or
//! rows are encoded.

mod batch;
mod clock;
mod panics;
mod runner;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::{Add, Sub};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use powersweep_engine::Details;
use powersweep_experiments::{Decoder, Tables};
use powersweep_proto::v1;

use crate::JOURNAL;
use crate::logs::Logs;
use crate::options::{TaskHook, WorkerError, WorkerOptions};
use crate::session::{ExperimentKey, Session, Take, TaskRef};
use batch::{Batch, Row};
use clock::{Clock, Phase, by_field};
pub(crate) use runner::Experiment;
use runner::{Outcome, Overdue, Runner};

/// Stack of a slot's thread. The engine does not recurse, but some policies solve small linear programs.
const STACK_BYTES: usize = 4 << 20;

/// Time beyond a batch's age after which the flusher hands it in: until then its slot may do so between two short tasks.
const FLUSHER_GRACE: Duration = Duration::from_millis(5);

struct Slot {
    batch: Mutex<Batch>,
    clock: Clock,
    /// When its task is given up.
    overdue: Mutex<Option<Overdue>>,
    /// The file with the processor time of its thread, if the system has one.
    thread: OnceLock<Option<PathBuf>>,
    /// The clock's times that earlier batches reported.
    reported: Mutex<v1::TimeSpent>,
}

/// The state that slots and agent share.
pub(crate) struct Pool {
    name: String,
    session: Mutex<Session>,
    /// Signalled when a slot may have something to do: at a lease, space in the outbox, the end.
    work: Condvar,
    experiments: RwLock<HashMap<ExperimentKey, Arc<Experiment>>>,
    logs: Logs,
    hook: Option<TaskHook>,
    slots: Vec<Slot>,
    flusher: Mutex<Flusher>,
    flush: Condvar,
    /// Tells the agent that there is a message to send.
    wake: Box<dyn Fn() + Send + Sync>,
    started: Instant,
}

#[derive(Default)]
struct Flusher {
    /// A batch got its first row since the flusher checked the batches.
    has_new_batch: bool,
    closed: bool,
}

impl Pool {
    /// A pool without threads yet.
    pub(crate) fn new(
        options: &WorkerOptions,
        session: Session,
        logs: Logs,
        wake: Box<dyn Fn() + Send + Sync>,
    ) -> Pool {
        let slot = || Slot {
            batch: Mutex::default(),
            clock: Clock::new(),
            overdue: Mutex::default(),
            thread: OnceLock::new(),
            reported: Mutex::default(),
        };
        Pool {
            name: options.name.clone(),
            session: Mutex::new(session),
            work: Condvar::new(),
            experiments: RwLock::default(),
            logs,
            hook: options.before_task.clone(),
            slots: (0..options.slots).map(|_| slot()).collect(),
            flusher: Mutex::default(),
            flush: Condvar::new(),
            wake,
            started: Instant::now(),
        }
    }

    /// Gives up tasks that have taken twice their deadline. The thread of such a task cannot be stopped: its
    /// slot is lost.
    pub(crate) fn give_up_overdue(&self) {
        for (number, slot) in self.slots.iter().enumerate() {
            // The lock is held while the task is given up, so that its slot cannot start another one.
            let mut overdue = lock(&slot.overdue);
            let Some(task) = overdue.as_mut() else { continue };
            if !task.is_late(Instant::now(), || runner::processor_time_of(slot.thread.get()?.as_deref()?)) {
                continue;
            }
            let deadline = task.deadline;
            *overdue = None;
            let seconds = deadline.as_secs_f64();
            tracing::error!("slot {number}: its task ignores its deadline of {seconds} s and is given up");
            let message = format!("it took twice its deadline of {seconds} s without checking it");
            self.session().give_up(number, message);
        }
    }

    /// This process stood still: that is no time of the tasks.
    pub(crate) fn stood_still(&self, still: Duration) {
        for slot in &self.slots {
            let mut overdue = lock(&slot.overdue);
            *overdue = overdue.and_then(|overdue| overdue.later(still));
        }
    }

    /// Time since the pool was made: the session's clock.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// The session, locked.
    pub(crate) fn session(&self) -> MutexGuard<'_, Session> {
        lock(&self.session)
    }

    /// Changes the session in a way that may concern waiting slots.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Session) -> T) -> T {
        let result = change(&mut self.session());
        self.work.notify_all();
        result
    }

    /// Adds a generation of an experiment; it has to be known before its first lease. The time that slots without a lease have
    /// waited until now is no time of a new experiment.
    pub(crate) fn add_experiment(&self, experiment: Experiment) {
        let mut all = self.experiments.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = all.insert(experiment.key.clone(), Arc::new(experiment)).is_none();
        drop(all);
        if is_new && !self.session().has_leases() {
            for slot in &self.slots {
                lock(&slot.reported).idle_s = slot.clock.spent().idle_s;
            }
        }
    }

    fn experiment(&self, key: &ExperimentKey) -> Option<Arc<Experiment>> {
        self.experiments.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Time of all slots since the pool was made.
    pub(crate) fn spent(&self) -> v1::TimeSpent {
        self.slots.iter().map(|slot| slot.clock.spent()).fold(v1::TimeSpent::default(), |a, b| by_field(a, b, f64::add))
    }

    /// Starts the threads. They end when the session drains and their task is over; the flusher with [`Pool::close`].
    pub(crate) fn start(self: &Arc<Pool>) -> Result<Vec<JoinHandle<()>>, WorkerError> {
        let spawn = |slot: usize, name: String, body: Box<dyn FnOnce() + Send>| {
            let thread = Builder::new().name(name).stack_size(STACK_BYTES).spawn(body);
            thread.map_err(|source| WorkerError::Thread { slot, source })
        };
        let mut threads = Vec::with_capacity(self.slots.len() + 1);
        for slot in 0..self.slots.len() {
            let pool = Arc::clone(self);
            threads.push(spawn(slot, format!("slot-{slot}"), Box::new(move || pool.serve(slot)))?);
        }
        let pool = Arc::clone(self);
        threads.push(spawn(self.slots.len(), "flusher".to_owned(), Box::new(move || pool.flush_aged()))?);
        Ok(threads)
    }

    /// Ends the flusher.
    pub(crate) fn close(&self) {
        lock(&self.flusher).closed = true;
        self.flush.notify_all();
        self.work.notify_all();
    }

    // ---- a slot's thread

    fn serve(&self, slot: usize) {
        let stop = self.session().stop_flag(slot);
        let Slot { clock, overdue, thread, .. } = &self.slots[slot];
        thread.get_or_init(runner::file_of_this_thread);
        let mut runner = Runner {
            worker: &self.name,
            logs: &self.logs,
            clock,
            stop,
            overdue,
            hook: self.hook.as_ref(),
            details: Details::default(),
        };
        let mut experiment: Option<(Arc<Experiment>, Decoder)> = None;
        while let Some(task) = self.next(slot) {
            if experiment.as_ref().is_none_or(|(e, _)| e.key != task.experiment) {
                experiment = self.experiment(&task.experiment).map(|e| {
                    let decoder = Decoder::new(e.sweep.clone());
                    (e, decoder)
                });
            }
            let generation = task.experiment.generation;
            tracing::trace!(target: JOURNAL, lease = %task.lease, generation, index = task.index, "started");
            let outcome = match &mut experiment {
                Some((experiment, decoder)) => runner.run(experiment, decoder, &task),
                // The coordinator sends experiments before their leases; without one the task is handed back.
                None => Outcome::Stopped,
            };
            match outcome {
                Outcome::Row(row) => {
                    let tables = experiment.as_ref().map(|(e, _)| e.tables).unwrap_or_default();
                    // Before the row is in the batch, because then the flusher may hand it in and the answer may arrive at once.
                    let wanted = self.session().finished(slot);
                    if wanted {
                        self.keep(slot, &task, &row, &runner.details, tables);
                    }
                }
                Outcome::Excluded { next } => self.session().excluded(slot, next),
                Outcome::Stopped => {
                    self.session().stopped(slot);
                    (self.wake)();
                }
                Outcome::Failed { kind, message } => {
                    let TaskRef { lease, experiment, index, attempt } = &task;
                    let experiment = experiment.name.as_ref();
                    tracing::warn!(experiment, task = index, attempt, %lease, "task failed: {message}");
                    self.session().failed(slot, kind, message);
                    (self.wake)();
                }
            }
        }
        clock.enter(Phase::Idle);
    }

    /// The next task of a slot; waits for one. `None` at the end.
    fn next(&self, slot: usize) -> Option<TaskRef> {
        let mut session = self.session();
        loop {
            let take = session.take(slot);
            if let Take::Task(task) = take {
                return Some(task);
            }
            // The slot has no task: its batch is handed in now.
            if lock(&self.slots[slot].batch).has_rows() {
                drop(session);
                self.hand_in(slot);
                session = self.session();
                continue;
            }
            match take {
                Take::Stop => return None,
                Take::Full => self.slots[slot].clock.enter(Phase::Store),
                Take::Idle | Take::Task(_) => self.slots[slot].clock.enter(Phase::Idle),
            };
            session = self.work.wait(session).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn keep(&self, slot: usize, task: &TaskRef, row: &Row, details: &Details, tables: Tables) {
        if !lock(&self.slots[slot].batch).accepts(&task.experiment) {
            self.hand_in(slot);
        }
        let mut batch = lock(&self.slots[slot].batch);
        let first = batch.push(task, row, details, tables);
        let (due, half) = (batch.is_due(), batch.half_due_rows());
        drop(batch);
        if due || half.is_some_and(|rows| rows >= self.session().queued_tasks() / self.slots.len() as u64) {
            self.hand_in(slot);
        } else if first {
            lock(&self.flusher).has_new_batch = true;
            self.flush.notify_one();
        }
    }

    // ---- hand-ins

    /// Hands in a slot's batch, if the batch has rows.
    fn hand_in(&self, slot: usize) {
        let slot = &self.slots[slot];
        let mut batch = lock(&slot.batch);
        let now = slot.clock.spent();
        let before = std::mem::replace(&mut *lock(&slot.reported), now);
        batch.spend(by_field(now, before, f64::sub));
        let Some(taken) = batch.take() else { return };
        drop(batch);
        match panics::catch(|| taken.encode()) {
            Ok(Ok(batch)) => self.session().hand_in(batch),
            Ok(Err(e)) => self.session().unencodable(&taken.experiment, &taken.done, &e.to_string()),
            Err(panic) => self.session().unencodable(&taken.experiment, &taken.done, &panic),
        }
        (self.wake)();
    }

    /// The flusher's thread.
    fn flush_aged(&self) {
        loop {
            let mut next: Option<Duration> = None;
            for slot in 0..self.slots.len() {
                let due_in = lock(&self.slots[slot].batch).due_in(FLUSHER_GRACE);
                match due_in {
                    Some(Duration::ZERO) => self.hand_in(slot),
                    Some(due_in) => next = Some(next.map_or(due_in, |n| n.min(due_in))),
                    None => {}
                }
            }
            let mut flusher = lock(&self.flusher);
            if flusher.closed {
                return;
            }
            if !flusher.has_new_batch {
                flusher = match next {
                    Some(wait) => self.flush.wait_timeout(flusher, wait).unwrap_or_else(PoisonError::into_inner).0,
                    None => self.flush.wait(flusher).unwrap_or_else(PoisonError::into_inner),
                };
            }
            flusher.has_new_batch = false;
        }
    }
}

/// Locks. After a panic the guarded state is usable, because every step leaves it consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
