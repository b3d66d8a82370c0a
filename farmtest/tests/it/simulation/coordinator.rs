//! A coordinator process: the real farm, with a model of the service's driver.

use std::collections::BTreeSet;
use std::time::Duration;

use powersweep_coordinator::farm::{Config, Content, Effect, Event, Farm, Now, PublishFailure};
use powersweep_coordinator::publish::Visible;
use powersweep_coordinator::records::Intent;
use powersweep_coordinator::store::{Batch, ModelStore, StoreError};
use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as ToWorker;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use prost::Message;

use super::disk::{Disk, Shown};
use super::world::{Happening, World};

/// A commit that takes longer pauses dispatch, as in the driver.
const STALL_AFTER_US: u64 = 2_000_000;
const TICK_US: u64 = 700_000;

/// No batch's token.
const FENCED: u64 = u64::MAX;

/// The stage of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Loading,
    Up,
    Dead,
}

/// A batch that was given to the store and is not confirmed to the farm.
#[derive(Debug)]
struct InFlight {
    token: u64,
    /// Until it is durable.
    batch: Option<Batch>,
    since_us: u64,
}

/// A simulated coordinator process.
#[derive(Debug)]
pub(super) struct Coordinator {
    stage: Stage,
    store: ModelStore,
    farm: Option<Farm>,
    life: u64,
    conns: BTreeSet<u64>,
    pub(super) clients: BTreeSet<u64>,
    in_flight: Option<InFlight>,
    /// A batch that failed with an error and may be durable nevertheless: the next load decides.
    limbo: Option<Batch>,
    commit_planned: bool,
    stalled: bool,
    started_us: u64,
    /// Parts and removals that it has begun. A farm is not loaded again before they end.
    pub(super) at_work: usize,
    /// It was told to end.
    stopping: bool,
    closing: bool,
}

impl Coordinator {
    pub(super) fn is_alive(&self) -> bool {
        self.stage != Stage::Dead
    }

    pub(super) fn is_up(&self) -> bool {
        self.stage == Stage::Up
    }

    pub(super) fn farm(&self) -> Option<&Farm> {
        self.farm.as_ref()
    }

    /// Counts the farms of this process.
    pub(super) fn life(&self) -> u64 {
        self.life
    }
}

impl World {
    /// A process starts and takes the state over from any other owner.
    pub(super) fn start_coordinator(&mut self) {
        let store = self.disk.take_over();
        let random = &mut self.random;
        self.disk.clean_staging(|| random.one_in(3));
        let c = self.coordinators.len();
        self.coordinators.push(Coordinator {
            stage: Stage::Loading,
            store,
            farm: None,
            life: 0,
            conns: BTreeSet::new(),
            clients: BTreeSet::new(),
            in_flight: None,
            limbo: None,
            commit_planned: false,
            stalled: false,
            started_us: self.now_us,
            at_work: 0,
            stopping: false,
            closing: false,
        });
        let delay = self.storage_delay();
        self.after(delay, Happening::Load { c, life: 0 });
        self.after(TICK_US, Happening::Tick { c });
    }

    /// The process ends at once. Its requests to storage may still be carried out.
    pub(super) fn kill_coordinator(&mut self, c: usize) {
        let dead = &mut self.coordinators[c];
        if !dead.is_alive() {
            return;
        }
        dead.stage = Stage::Dead;
        dead.farm = None;
        let unsure = dead.in_flight.take().and_then(|in_flight| in_flight.batch);
        let limbo = dead.limbo.take();
        let conns = std::mem::take(&mut dead.conns);
        for batch in limbo.into_iter().chain(unsure) {
            match self.random.below(3) {
                0 => drop(self.apply(c, &batch)),
                1 => {
                    let delay = self.random.delay_us(1_000, 8_000_000);
                    self.after(delay, Happening::LateBatch { c, batch });
                }
                _ => {}
            }
        }
        // If its machine failed, too, the workers get no end of their connections.
        for link in conns {
            if self.random.one_in(3) { self.break_link(link) } else { self.farm_closes(link) }
        }
        if !self.coordinators.iter().any(Coordinator::is_alive) {
            let delay = if self.quiet { 1_000 } else { self.random.delay_us(1_000, 4_000_000) };
            self.after(delay, Happening::StartCoordinator);
        }
    }

    /// The newest living process.
    pub(super) fn newest(&self) -> Option<usize> {
        self.coordinators.iter().rposition(Coordinator::is_alive)
    }

    /// The process that took over last, if it lives. An older process may not know yet that it lost the state.
    pub(super) fn owner(&self) -> Option<usize> {
        let last = self.coordinators.len().checked_sub(1)?;
        self.coordinators[last].is_alive().then_some(last)
    }

    fn farm_now(&self, c: usize) -> Now {
        let wall_us = 1_700_000_000_000_000 + self.now_us as i64 + self.wall_offset_us;
        Now { mono: Duration::from_micros(self.now_us - self.coordinators[c].started_us), wall_us }
    }

    pub(super) fn load(&mut self, c: usize, life: u64) {
        if self.coordinators[c].stage != Stage::Loading || self.coordinators[c].life != life {
            return;
        }
        if self.coordinators[c].at_work > 0 || self.now_us < self.storage_away_until_us {
            return self.after(1_000_000, Happening::Load { c, life });
        }
        // A batch in doubt becomes durable or not before the state is read.
        if let Some(batch) = self.coordinators[c].limbo.take()
            && self.random.one_in(2)
        {
            let _ = self.apply(c, &batch);
        }
        match Disk::load(&self.coordinators[c].store) {
            Ok(loaded) => {
                let seed = self.random.below(u64::MAX);
                let farm = Farm::recover(self.config.clone(), loaded, seed, self.farm_now(c));
                let coordinator = &mut self.coordinators[c];
                coordinator.farm = Some(farm);
                coordinator.stage = Stage::Up;
                coordinator.stalled = false;
                let (stopping, closing) = (coordinator.stopping, coordinator.closing);
                if stopping {
                    self.farm_event(c, if closing { Event::Close } else { Event::Stop });
                }
                self.plan_commit(c);
            }
            Err(error) => {
                assert!(error.is_lost_ownership(), "{error}");
                self.kill_coordinator(c);
            }
        }
    }

    /// Gives an event to the farm and carries out the effects; the process may die after each effect.
    pub(super) fn farm_event(&mut self, c: usize, event: Event) {
        if !self.coordinators[c].is_up() {
            return;
        }
        let now = self.farm_now(c);
        let farm = self.coordinators[c].farm.as_mut().expect("it is up");
        let mut effects = Vec::new();
        farm.handle(event, now, &mut effects);
        if let Some(decisions) = &mut self.decisions {
            decisions.look(farm, now, &effects);
        }
        if let Err(broken) = farm.check() {
            panic!("{broken}");
        }
        for effect in effects {
            if !self.coordinators[c].is_up() {
                return;
            }
            self.effect(c, effect);
            if !self.quiet && self.random.one_in(self.rates.crash_after_effect) {
                self.note(|| format!("coordinator {c} dies after an effect"));
                return self.kill_coordinator(c);
            }
        }
        self.plan_commit(c);
    }

    /// Events that arrive close together share a batch.
    fn plan_commit(&mut self, c: usize) {
        if std::mem::replace(&mut self.coordinators[c].commit_planned, true) {
            return;
        }
        let delay = if self.random.one_in(2) { 0 } else { self.random.delay_us(50, 3_000) };
        self.after(delay, Happening::StartCommit { c });
    }

    pub(super) fn start_commit(&mut self, c: usize) {
        let now_us = self.now_us;
        let coordinator = &mut self.coordinators[c];
        coordinator.commit_planned = false;
        if !coordinator.is_up() {
            return;
        }
        let Some((token, batch)) = coordinator.farm.as_mut().expect("it is up").take_commit() else { return };
        assert!(coordinator.in_flight.is_none(), "one batch at a time");
        if let Some(decisions) = &mut self.decisions {
            decisions.commit(&batch);
        }
        coordinator.in_flight = Some(InFlight { token, batch: Some(batch), since_us: now_us });
        let life = coordinator.life;
        let (applied, answered) = (self.storage_delay(), self.storage_delay());
        let fails = !self.quiet && self.random.one_in(self.rates.commit_fails);
        // A failed commit is durable nevertheless, lost, or in doubt.
        let applies = !fails || self.random.one_in(3);
        if applies {
            self.after(applied, Happening::CommitApplies { c, life, token });
        }
        self.after(applied + answered, Happening::CommitAnswered { c, life, token, ok: !fails });
    }

    /// Duration of one storage request: now and then long enough to pause dispatch.
    pub(super) fn storage_delay(&mut self) -> u64 {
        if self.quiet {
            return 500;
        }
        let wait = self.storage_away_until_us.saturating_sub(self.now_us);
        let stalls = self.random.one_in(self.rates.commit_stalls);
        wait + if stalls { self.random.delay_us(500_000, 8_000_000) } else { self.random.delay_us(200, 30_000) }
    }

    fn apply(&mut self, c: usize, batch: &Batch) -> Result<(), StoreError> {
        let store = self.coordinators[c].store.again();
        self.disk.commit(&store, batch)
    }

    pub(super) fn commit_applies(&mut self, c: usize, life: u64, token: u64) {
        if self.coordinators[c].life != life {
            return;
        }
        let in_flight = self.coordinators[c].in_flight.as_mut().filter(|in_flight| in_flight.token == token);
        let Some(batch) = in_flight.and_then(|in_flight| in_flight.batch.take()) else { return };
        if let Err(error) = self.apply(c, &batch) {
            assert!(error.is_lost_ownership(), "{error}");
            // It continues until the answer arrives.
            self.note(|| format!("coordinator {c} is fenced"));
            self.coordinators[c].in_flight.as_mut().expect("just seen").token = FENCED;
            let delay = self.storage_delay();
            self.after(delay, Happening::StopOwner { c });
        }
    }

    pub(super) fn late_batch(&mut self, c: usize, batch: &Batch) {
        let fenced = self.apply(c, batch).is_err();
        self.note(|| format!("a late batch of coordinator {c}: fenced {fenced}"));
    }

    pub(super) fn commit_answered(&mut self, c: usize, life: u64, token: u64, ok: bool) {
        let coordinator = &mut self.coordinators[c];
        if coordinator.life != life || !coordinator.is_up() {
            return;
        }
        if coordinator.in_flight.as_ref().is_none_or(|in_flight| in_flight.token != token) {
            return;
        }
        let in_flight = coordinator.in_flight.take().expect("just seen");
        if ok {
            assert!(in_flight.batch.is_none(), "the store confirmed a batch that it does not have");
            self.farm_event(c, Event::Committed { token });
            self.watch_storage(c);
        } else {
            coordinator.limbo = in_flight.batch;
            self.reload(c);
        }
    }

    fn reload(&mut self, c: usize) {
        let coordinator = &mut self.coordinators[c];
        coordinator.life += 1;
        coordinator.stage = Stage::Loading;
        coordinator.farm = None;
        coordinator.clients.clear();
        let life = coordinator.life;
        for link in std::mem::take(&mut coordinator.conns) {
            self.farm_closes(link);
        }
        let delay = self.storage_delay();
        self.after(delay, Happening::Load { c, life });
    }

    fn watch_storage(&mut self, c: usize) {
        let now_us = self.now_us;
        let coordinator = &mut self.coordinators[c];
        if !coordinator.is_up() {
            return;
        }
        let since = coordinator.in_flight.as_ref().map(|in_flight| in_flight.since_us);
        let stalled = since.is_some_and(|since| now_us - since > STALL_AFTER_US);
        let before = std::mem::replace(&mut coordinator.stalled, stalled);
        if stalled || before {
            self.farm_event(c, Event::Storage { stalled: stalled.then(|| "slow".to_owned()) });
        }
    }

    pub(super) fn tick(&mut self, c: usize) {
        if !self.coordinators[c].is_alive() {
            return;
        }
        self.after(TICK_US, Happening::Tick { c });
        self.watch_storage(c);
        self.farm_event(c, Event::Tick);
        self.advance_ending(c);
    }

    /// An orderly shutdown: drain, close, end.
    pub(super) fn stop_coordinator(&mut self, c: usize) {
        if !std::mem::replace(&mut self.coordinators[c].stopping, true) {
            self.farm_event(c, Event::Stop);
        }
    }

    fn advance_ending(&mut self, c: usize) {
        let coordinator = &self.coordinators[c];
        let Some(farm) = coordinator.farm.as_ref().filter(|_| coordinator.stopping) else { return };
        if !coordinator.closing {
            if !farm.has_workers() && !farm.is_busy() || self.random.one_in(6) {
                self.coordinators[c].closing = true;
                self.farm_event(c, Event::Close);
            }
        } else if farm.is_settled() || self.random.one_in(20) {
            self.note(|| format!("coordinator {c} ends orderly"));
            self.kill_coordinator(c);
        }
    }

    fn effect(&mut self, c: usize, effect: Effect) {
        let life = self.coordinators[c].life;
        match effect {
            Effect::Send { conn, message } => {
                if !self.coordinators[c].conns.contains(&conn) {
                    return;
                }
                match &message {
                    ToWorker::Ack(ack) => self.check_ack(conn, ack),
                    ToWorker::Welcome(welcome) => self.check_welcome(c, welcome),
                    _ => {}
                }
                self.note(|| format!("coordinator {c} sends over {conn}: {}", brief(&message)));
                self.send_down(conn, message);
            }
            Effect::Close { conn } => {
                if self.coordinators[c].conns.remove(&conn) {
                    self.farm_closes(conn);
                }
            }
            Effect::Reply { client, reply } => {
                if self.coordinators[c].clients.remove(&client) {
                    self.answer_client(client, reply);
                }
            }
            Effect::Publish { intent } => {
                let delay = self.storage_delay();
                self.coordinators[c].at_work += 1;
                self.after(delay, Happening::Publish { c, life, intent });
            }
            Effect::Remove { experiment, removal } => self.leave(c, experiment, removal),
            Effect::PrepareSplit { experiment, id, sweeps } => self.prepare_split(c, experiment, id, &sweeps),
            Effect::Split { record } => self.split(c, &record),
            Effect::Prune { experiment, id } => self.prune(c, experiment, id),
            Effect::DiscardFragments { split } => {
                let delay = self.storage_delay();
                self.after(delay, Happening::DiscardFragments { split });
            }
            Effect::Discard { part_id, .. } => {
                if self.quiet || !self.random.one_in(5) {
                    let delay = self.storage_delay();
                    self.after(delay, Happening::Discard { part_id });
                }
            }
        }
    }

    pub(super) fn publish(&mut self, c: usize, life: u64, intent: &Intent) {
        let owns = c + 1 == self.coordinators.len();
        let of_the_present = owns && self.coordinators[c].is_up() && self.coordinators[c].life == life;
        // A process that died may have sent the request before its death.
        if !self.coordinators[c].is_alive() && self.random.one_in(2) {
            return;
        }
        let away = self.now_us < self.storage_away_until_us;
        let fails = away || !self.quiet && self.random.one_in(self.rates.publish_fails);
        let failure = |reason: &str, retryable| Err(PublishFailure { reason: reason.to_owned(), retryable });
        let mut result = if fails { failure("simulated", true) } else { Ok(1) };
        if !away
            && (!fails || self.random.one_in(2))
            && let Shown::Gone(what) = self.disk.publish(intent, of_the_present)
        {
            // An erased experiment loses its uploads before the record that a new owner reads.
            let late = !of_the_present || self.disk.is_erased(&intent.experiment);
            assert!(late, "{what} was deleted before part {} was visible", *intent.part_id);
            result = failure(what, false);
        }
        let delay = self.storage_delay();
        self.after(delay, Happening::Published { c, life, part_id: *intent.part_id, result });
    }

    pub(super) fn published(&mut self, c: usize, life: u64, part_id: uuid::Uuid, result: Result<u64, PublishFailure>) {
        self.coordinators[c].at_work -= 1;
        if self.coordinators[c].life == life {
            self.farm_event(c, Event::Published { part_id, result: result.map(Visible::whole) });
        }
    }

    pub(super) fn attach(&mut self, link: u64) {
        let c = self.links[link as usize].coordinator;
        if self.coordinators[c].is_up() {
            self.coordinators[c].conns.insert(link);
        } else if self.coordinators[c].is_alive() {
            self.farm_closes(link);
        }
    }

    pub(super) fn farm_hears(&mut self, link: u64, bytes: &[u8]) {
        if !self.arrives_up(link) {
            return;
        }
        let c = self.links[link as usize].coordinator;
        let body = v1::WorkerMessage::decode(bytes).expect("just encoded").body.expect("it has one");
        let rows = match &body {
            ToFarm::HandIn(hand_in) => self.note_unwanted(c, link, hand_in),
            _ => 0,
        };
        let content = Content::of_rows(rows);
        self.farm_event(c, Event::Message { conn: link, address: "simulated".into(), body, content });
    }

    pub(super) fn farm_sees_end(&mut self, link: u64, abrupt: bool) {
        let state = &mut self.links[link as usize];
        let c = state.coordinator;
        if std::mem::replace(&mut state.farm_open, false) && self.coordinators[c].is_up() {
            self.coordinators[c].conns.remove(&link);
            self.farm_event(c, Event::Disconnected { conn: link, abrupt });
        }
    }
}

fn brief(message: &ToWorker) -> String {
    let mut text = format!("{message:?}");
    text.truncate(300);
    text
}

/// The farm's settings: short time-outs, so that many of them fit into seconds of virtual time.
pub(super) fn config() -> Config {
    Config {
        heartbeat: Duration::from_secs(2),
        silence: Duration::from_secs(8),
        absence: Duration::from_secs(4),
        lease_work: Duration::from_millis(600),
        lease_work_with_tables: Duration::from_secs(3),
        retry_after: Duration::from_millis(200),
        part_rows: 12,
        part_rows_waiting: 24,
        part_age: Duration::from_secs(10),
        ..Config::default()
    }
}
