//! A client: does one thing after another, and asks again until it is answered.

use std::collections::{BTreeMap, VecDeque};

use powersweep_coordinator::farm::{Action, Event, Reply, Submission};

use super::catalogue::{LOG, generation};
use super::world::{Happening, World};

/// It asks again when there is no answer for so long.
const PATIENCE_US: u64 = 5_000_000;

/// One thing to do.
#[derive(Debug, Clone)]
pub(super) enum Wish {
    Submit { manifest: String, dry_run: bool },
    PutLog,
    Flush { experiment: String },
    Control { experiment: String, action: Action },
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) wishes: VecDeque<Wish>,
    /// Requests on their way, those given up too: what was asked, and how many rows were acknowledged before.
    asked: BTreeMap<u64, (Wish, usize)>,
    /// The request whose answer is waited for.
    waiting: Option<u64>,
    last: u64,
}

impl Client {
    pub(super) fn new(wishes: Vec<Wish>) -> Client {
        Client { wishes: wishes.into(), ..Client::default() }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_none() && self.wishes.is_empty()
    }
}

impl World {
    pub(super) fn client_acts(&mut self) {
        if self.client.waiting.is_some() {
            return;
        }
        let Some(wish) = self.client.wishes.front().cloned() else { return };
        self.client.last += 1;
        let id = self.client.last;
        let delay = self.network_delay();
        self.client.asked.insert(id, (wish, 0));
        self.client.waiting = Some(id);
        let alive: Vec<usize> = (0..self.coordinators.len()).filter(|&c| self.coordinators[c].is_alive()).collect();
        if !alive.is_empty() {
            let c = alive[alive.len() - 1 - usize::from(!self.quiet && alive.len() > 1 && self.random.one_in(3))];
            self.after(delay, Happening::ClientAsks { c, id });
        }
        self.after(PATIENCE_US, Happening::ClientGivesUp { id });
    }

    pub(super) fn client_asks(&mut self, c: usize, id: u64) {
        let acknowledged = self.acknowledged.len();
        if !self.coordinators[c].is_up() {
            return;
        }
        let Some((wish, before)) = self.client.asked.get_mut(&id) else { return };
        *before = acknowledged;
        let wish = wish.clone();
        self.note(|| format!("client asks coordinator {c}: {wish:?}"));
        self.coordinators[c].clients.insert(id);
        match wish {
            Wish::Submit { manifest, dry_run } => {
                let known = generation(&manifest);
                let (sweep, digests) = (known.sweep.clone(), known.digests.clone());
                let submission = Submission { sweep, digests, dry_run, restart: false, priority: None };
                self.farm_event(c, Event::Submit { client: id, submission });
            }
            Wish::Flush { experiment } => self.farm_event(c, Event::Flush { client: id, experiment }),
            Wish::Control { experiment, action } => {
                self.farm_event(c, Event::Control { client: id, experiment, action });
            }
            Wish::PutLog => {
                self.disk.logs.insert(LOG);
                let event = Event::LogStored { client: id, digest: LOG, bytes: 1, name: String::new() };
                self.farm_event(c, event);
            }
        }
    }

    pub(super) fn answer_client(&mut self, id: u64, reply: Reply) {
        let (wish, before) = self.client.asked[&id].clone();
        match (&reply, &wish) {
            (Reply::Submitted(reply), Wish::Submit { dry_run: false, .. }) => {
                let durable = self.disk.experiments.get(&reply.experiment);
                let promised = durable.is_some_and(|record| record.generation >= reply.generation);
                assert!(promised, "a submit of {} is answered and not durable", reply.experiment);
            }
            (Reply::Flushed(_), Wish::Flush { experiment }) => {
                let missing = self.acknowledged[..before]
                    .iter()
                    .find(|(name, task)| name == experiment && !self.disk.is_shown(name, *task));
                assert_eq!(missing, None, "a flush is answered before a row was visible");
            }
            _ => {}
        }
        self.answered(id, reply);
    }

    fn answered(&mut self, id: u64, reply: Reply) {
        // The answer may be lost on its way.
        if self.quiet || !self.random.one_in(10) {
            let delay = self.network_delay();
            self.after(delay, Happening::ClientHears { id, reply });
        }
    }

    pub(super) fn client_hears(&mut self, id: u64, reply: Reply) {
        if self.client.waiting != Some(id) {
            return;
        }
        self.client.waiting = None;
        let wish = self.client.wishes.pop_front().expect("it waits for an answer to the first");
        match (reply, &wish) {
            (Reply::Submitted(reply), Wish::Submit { dry_run: false, .. }) if !reply.missing_logs.is_empty() => {
                self.client.wishes.push_front(Wish::PutLog);
            }
            // An experiment that is not there yet.
            (Reply::Submitted(_) | Reply::Flushed(_) | Reply::LogStored | Reply::NotFound(_), _) => {}
            (Reply::Controlled(_) | Reply::Refused(_), Wish::Control { .. }) => {}
            // Storage stalled: it asks again.
            (Reply::Refused(reason), Wish::Submit { .. }) if reason.contains("when storage works") => {
                self.client.wishes.push_front(wish.clone());
            }
            (other, _) => panic!("{wish:?} is answered with {other:?}"),
        }
        let most = if self.quiet { 1_000 } else { 8_000_000 };
        let delay = self.random.delay_us(1_000, most);
        self.after(delay, Happening::ClientActs);
    }

    pub(super) fn client_gives_up(&mut self, id: u64) {
        if self.client.waiting == Some(id) {
            self.client.waiting = None;
            self.client_acts();
        }
    }
}
