//! A client: makes one request after the other, and repeats each until it is answered.

use powersweep_experiments::Digest;
use std::collections::{BTreeMap, VecDeque};

use powersweep_coordinator::farm::{Action, Event, Reply, Request, Submission};
use powersweep_proto::v1;

use super::catalogue::{generation, log_of};
use super::world::{Happening, World};

/// It repeats a request that has no answer after this time.
const PATIENCE_US: u64 = 5_000_000;

/// The service's refusal of a submit where the state does not know the experiment of existing parts.
const PARTS_OF_UNKNOWN: &str = "the data has rows of it";

/// Refusals of a submit after which the client repeats it.
const AGAIN: [&str; 3] = ["when storage works", "is being removed", PARTS_OF_UNKNOWN];

/// One request to make.
#[derive(Debug, Clone)]
pub(super) enum Wish {
    /// `pin`: the content of its log.
    Submit {
        manifest: String,
        pin: u8,
        dry_run: bool,
        restart: bool,
    },
    PutLog {
        digest: Digest,
    },
    Flush {
        experiment: String,
    },
    Control {
        experiment: String,
        action: Action,
    },
}

impl Wish {
    fn experiment(&self) -> &str {
        match self {
            Wish::Flush { experiment } | Wish::Control { experiment, .. } => experiment,
            Wish::Submit { .. } | Wish::PutLog { .. } => "",
        }
    }

    fn deletes(&self) -> bool {
        matches!(self, Wish::Control { action: Action::Delete(_), .. })
    }
}

/// A request on its way.
#[derive(Debug, Clone)]
struct Asked {
    wish: Wish,
    /// Number of rows that were acknowledged before it arrived.
    acknowledged: usize,
    /// The history of its experiment when it arrived.
    history: Option<usize>,
}

/// A simulated client.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) wishes: VecDeque<Wish>,
    /// All requests, also those given up.
    asked: BTreeMap<u64, Asked>,
    /// The request that waits for its answer.
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
        self.client.asked.insert(id, Asked { wish, acknowledged: 0, history: None });
        self.client.waiting = Some(id);
        let alive: Vec<usize> = (0..self.coordinators.len()).filter(|&c| self.coordinators[c].is_alive()).collect();
        if !alive.is_empty() {
            let c = alive[alive.len() - 1 - usize::from(!self.quiet && alive.len() > 1 && self.random.one_in(3))];
            self.after(delay, Happening::ClientAsks { c, id });
        }
        self.after(PATIENCE_US, Happening::ClientGivesUp { id });
    }

    pub(super) fn client_asks(&mut self, c: usize, id: u64) {
        if !self.coordinators[c].is_up() {
            return;
        }
        let Some(request) = self.client.asked.get_mut(&id) else { return };
        request.acknowledged = self.acknowledged.len();
        request.history = self.disk.histories.number_of(request.wish.experiment());
        let wish = request.wish.clone();
        self.note(|| format!("client asks coordinator {c}: {wish:?}"));
        self.coordinators[c].clients.insert(id);
        let request = match wish {
            Wish::Submit { manifest, pin, dry_run, restart } => {
                let known = generation(&manifest, log_of(pin));
                let (sweep, digests) = (known.sweep.clone(), known.digests.clone());
                if !dry_run && self.has_parts_of_unknown(c, sweep.manifest().name()) {
                    self.coordinators[c].clients.remove(&id);
                    return self.answered(id, Reply::Refused(PARTS_OF_UNKNOWN.to_owned()));
                }
                Request::Submit(Submission { dry_run, restart, replace: true, ..Submission::new(sweep, digests) })
            }
            Wish::Flush { experiment } => Request::Flush(experiment),
            Wish::Control { experiment, action } => Request::Control { experiment, action, by: None },
            Wish::PutLog { digest } => {
                self.disk.logs.insert(digest);
                Request::LogStored { digest, bytes: 1 }
            }
        };
        self.farm_event(c, Event::Request { client: id, request });
    }

    /// Whether parts exist of an experiment that a coordinator does not know: the service refuses such a submit.
    fn has_parts_of_unknown(&self, c: usize, name: &str) -> bool {
        let request = v1::StatusRequest { experiment: name.to_owned(), max_failures: 0, ..Default::default() };
        let farm = self.coordinators[c].farm().expect("it is up");
        let unknown = farm.status(&request, Default::default()).experiments.is_empty() && self.disk.has_parts(name);
        // An outdated owner does not know later experiments.
        assert!(!unknown || c + 1 < self.coordinators.len(), "parts of {name} were left behind");
        unknown
    }

    pub(super) fn answer_client(&mut self, id: u64, reply: Reply) {
        let Asked { wish, acknowledged, history } = self.client.asked[&id].clone();
        match (&reply, &wish) {
            (Reply::Submitted(reply), Wish::Submit { dry_run: false, .. }) => {
                let durable = self.disk.histories.of(&reply.experiment, reply.generation);
                assert!(durable.is_some(), "a submit of {} is answered before it is durable", reply.experiment);
                let aside =
                    reply.set_aside.is_empty() || self.disk.histories.all().iter().any(|h| h.name == reply.set_aside);
                assert!(aside, "{} is reported as renamed, and is not", reply.set_aside);
            }
            (Reply::Flushed(_), Wish::Flush { experiment }) => {
                self.check_acknowledged(acknowledged, Some(experiment));
            }
            (Reply::Controlled(_), Wish::Control { experiment, .. }) if wish.deletes() => {
                let there = history.is_some() && self.disk.histories.number_of(experiment) == history;
                assert!(!there, "{experiment} is reported as deleted, and is not");
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
                let digests = reply.missing_logs.iter().map(|digest| digest[..].try_into().expect("32 bytes"));
                digests.for_each(|digest| self.client.wishes.push_front(Wish::PutLog { digest }));
            }
            // `NotFound`: the experiment is not submitted yet.
            (Reply::Submitted(_) | Reply::Flushed(_) | Reply::LogStored | Reply::NotFound(_), _) => {}
            (Reply::Controlled(_), Wish::Control { .. }) => {}
            (Reply::Refused(_), Wish::Control { .. }) if !wish.deletes() => {}
            // Storage stalled, an experiment is not removed yet, or an outdated owner answers.
            (Reply::Refused(reason), Wish::Submit { .. }) if AGAIN.iter().any(|again| reason.contains(again)) => {
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
