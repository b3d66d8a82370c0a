//! The allocations of one launcher, and what became of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Seconds;
use crate::back_off::BackOff;
use crate::queue::{Entry, Phase};

/// A worker that fails within this time of its start counts against its node and the launcher's pause (s).
const SHORT_LIFE_S: Seconds = 60;
/// A submission may be missing in the queue for this time (s).
const INVISIBLE_S: Seconds = 60;
/// The queue's answer may be this much younger than its question (s): the longest time of one command.
const ANSWER_S: Seconds = 60;
/// Answers of the queue without an allocation after which it counts as ended.
const MISSING_MAX: u32 = 3;
/// Bad starts that exclude a node.
const BAD_STARTS_MAX: usize = 2;
/// Time for which a bad start counts (s).
const BAD_START_S: Seconds = 24 * 60 * 60;
/// Ended allocations that are kept, with their logs.
const ENDED_KEPT: usize = 20;

#[cfg(test)]
mod tests;

/// One element of an array job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// Where it is between submission and end.
    pub phase: Phase,
    /// The batch system's word for it, or how its end was noticed.
    pub state: String,
    /// Why it waits.
    pub reason: String,
    /// Its nodes.
    pub nodes: String,
    /// When it was submitted.
    pub submitted_at: Seconds,
    /// When it got its nodes the last time.
    pub started_at: Option<Seconds>,
    /// When it ended.
    pub ended_at: Option<Seconds>,
    /// Whether its worker is connected.
    pub connected: bool,
    /// Answers of the queue in a row that lacked it.
    missing: u32,
}

impl Allocation {
    fn new(now: Seconds) -> Allocation {
        Allocation {
            phase: Phase::Submitted,
            state: String::new(),
            reason: String::new(),
            nodes: String::new(),
            submitted_at: now,
            started_at: None,
            ended_at: None,
            connected: false,
            missing: 0,
        }
    }

    /// Whether it is submitted, queued or running.
    pub fn is_alive(&self) -> bool {
        !matches!(self.phase, Phase::Ended | Phase::Failed)
    }
}

/// Counters since the launcher's first start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Queries of the queue.
    pub queries: u64,
    /// Queries without a usable answer.
    pub unanswered: u64,
    /// Accepted submissions, each of one array job.
    pub submissions: u64,
    /// Refused submissions.
    pub refusals: u64,
    /// Allocations in accepted submissions.
    pub allocations: u64,
    /// Slot time of connected workers (s).
    pub slot_s: f64,
    /// Slot time without a task of connected workers (s).
    pub idle_slot_s: f64,
}

/// An array job whose submission got no answer: it may exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Doubtful {
    count: u64,
    at: Seconds,
}

/// The allocations of one launcher.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// Allocations by name.
    pub allocations: BTreeMap<String, Allocation>,
    /// Waits after failures.
    pub back_off: BackOff,
    /// Counters since the first start.
    pub counts: Counters,
    doubtful: Vec<Doubtful>,
    /// Times of bad starts by node.
    bad_starts: BTreeMap<String, Vec<Seconds>>,
    /// States that this build does not know, each noted once.
    unknown_states: BTreeSet<String>,
    /// The largest array job that was not refused; `None` before a refusal.
    array_max: Option<u64>,
}

/// What was noticed, for the user.
pub type Notes = Vec<String>;

impl Fleet {
    /// Allocations that wait: queued, submitted and not seen yet, or submitted without an answer.
    pub fn waiting(&self) -> u64 {
        let waits = |a: &&Allocation| matches!(a.phase, Phase::Submitted | Phase::Queued);
        self.allocations.values().filter(waits).count() as u64 + self.doubtful.iter().map(|d| d.count).sum::<u64>()
    }

    /// Allocations that wait or run.
    pub fn alive(&self) -> u64 {
        let running = self.allocations.values().filter(|a| a.phase == Phase::Running);
        self.waiting() + running.count() as u64
    }

    /// The largest array job that may be tried.
    pub fn array_max(&self) -> u64 {
        self.array_max.unwrap_or(u64::MAX)
    }

    // ---- submissions

    /// The batch system accepted an array job with the elements 1 to `count`.
    pub fn submitted(&mut self, job: &str, count: u64, now: Seconds) {
        for element in 1..=count {
            self.allocations.entry(format!("{job}_{element}")).or_insert_with(|| Allocation::new(now));
        }
        self.counts.submissions += 1;
        self.counts.allocations += count;
        self.back_off.accepted();
        self.array_max = None;
    }

    /// The batch system refused an array job. The next one is half as large: a limit on submitted jobs refuses whole arrays.
    pub fn submission_refused(&mut self, count: u64, reason: &str, now: Seconds) {
        self.counts.refusals += 1;
        self.back_off.refused(reason, now);
        self.array_max = Some((count / 2).max(1));
    }

    /// A submission got no answer. Its elements count until the queue shows what became of them.
    pub fn submission_unknown(&mut self, count: u64, reason: &str, now: Seconds) {
        self.submission_refused(count, reason, now);
        self.doubtful.push(Doubtful { count, at: now });
    }

    // ---- workers

    /// These allocations have a connected worker. It is better evidence than the queue's answer.
    pub fn connected<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, now: Seconds) {
        let names: BTreeSet<&str> = names.into_iter().collect();
        for (name, allocation) in &mut self.allocations {
            allocation.connected = names.contains(name.as_str());
            if !allocation.connected {
                continue;
            }
            if allocation.phase != Phase::Running {
                allocation.phase = Phase::Running;
                "worker connected".clone_into(&mut allocation.state);
                allocation.ended_at = None;
                allocation.started_at = Some(now);
            }
            if allocation.started_at.is_some_and(|at| now.saturating_sub(at) >= SHORT_LIFE_S) {
                self.back_off.lived();
            }
        }
    }

    // ---- the queue

    /// The queue answered a query that was sent at `asked_at`.
    pub fn answered(&mut self, entries: &[Entry], asked_at: Seconds) -> Notes {
        let mut notes = Notes::new();
        let listed: BTreeMap<&str, &Entry> = entries.iter().map(|entry| (entry.name.as_str(), entry)).collect();
        if let Some(name) = self.contradiction(&listed).map(str::to_owned) {
            self.counts.unanswered += 1;
            notes.push(format!(
                "the queue lists no allocation, but the worker of {name} is connected: this answer is not believed"
            ));
            return notes;
        }
        self.doubtful.retain(|doubtful| asked_at < doubtful.at + INVISIBLE_S);
        for entry in entries {
            self.listed(entry, asked_at, &mut notes);
        }
        let alive = self.allocations.iter().filter(|(name, a)| a.is_alive() && !listed.contains_key(name.as_str()));
        let missing: Vec<String> = alive.map(|(name, _)| name.clone()).collect();
        for name in missing {
            self.not_listed(&name, asked_at, &mut notes);
        }
        self.forget_old();
        notes
    }

    /// An allocation whose worker is connected, if the queue lists none of those that live.
    fn contradiction(&self, listed: &BTreeMap<&str, &Entry>) -> Option<&str> {
        let mut alive = self.allocations.iter().filter(|(_, a)| a.is_alive());
        if alive.clone().any(|(name, _)| listed.contains_key(name.as_str())) {
            return None;
        }
        alive.find(|(_, a)| a.connected).map(|(name, _)| name.as_str())
    }

    fn listed(&mut self, entry: &Entry, asked_at: Seconds, notes: &mut Notes) {
        let Some(phase) = entry.phase else {
            if self.unknown_states.insert(entry.state.clone()) {
                notes.push(format!(
                    "allocation {} is in the unknown state {:?}: it counts as before",
                    entry.name, entry.state
                ));
            }
            return;
        };
        let ends = matches!(phase, Phase::Ended | Phase::Failed);
        if ends && !self.allocations.contains_key(&entry.name) {
            // Of an earlier launcher, or long ago.
            return;
        }
        let allocation = self.allocations.entry(entry.name.clone()).or_insert_with(|| Allocation::new(asked_at));
        let was_alive = allocation.is_alive();
        allocation.missing = 0;
        if allocation.connected && phase != Phase::Running {
            // The answer is older than the connection, or wrong.
            return;
        }
        if ends && entry.ends_at.is_some_and(|at| at > asked_at + ANSWER_S) {
            // An end in the future is the time limit of a job that still has its nodes: the state is wrong.
            return;
        }
        allocation.phase = phase;
        allocation.state.clone_from(&entry.state);
        allocation.reason.clone_from(&entry.reason);
        allocation.nodes.clone_from(&entry.nodes);
        if phase != Phase::Queued {
            allocation.started_at = entry.started_at.or(allocation.started_at);
        }
        allocation.ended_at = ends.then(|| entry.ends_at.unwrap_or(asked_at));
        if ends && was_alive {
            self.ended(&entry.name, entry.cannot_start, notes);
        }
    }

    fn not_listed(&mut self, name: &str, asked_at: Seconds, notes: &mut Notes) {
        let allocation = self.allocations.get_mut(name).expect("it was just found");
        if allocation.connected || asked_at < allocation.submitted_at + INVISIBLE_S {
            return;
        }
        allocation.missing += 1;
        if allocation.missing < MISSING_MAX {
            return;
        }
        allocation.phase = Phase::Ended;
        "left the queue".clone_into(&mut allocation.state);
        allocation.ended_at = Some(asked_at);
        self.ended(name, None, notes);
    }

    fn ended(&mut self, name: &str, cannot_start: Option<u8>, notes: &mut Notes) {
        let allocation = &self.allocations[name];
        notes.push(format!("allocation {name} has ended ({})", allocation.state));
        if allocation.phase != Phase::Failed {
            return;
        }
        if let Some(code) = cannot_start {
            // Every node has the same program.
            self.back_off.cannot_start(name, code, allocation.ended_at.unwrap_or_default());
            return;
        }
        let lived_s = allocation.ended_at.zip(allocation.started_at).map(|(end, start)| end.saturating_sub(start));
        if lived_s.is_some_and(|lived_s| lived_s >= SHORT_LIFE_S) {
            return;
        }
        let at = allocation.ended_at.unwrap_or_default();
        self.back_off.short_lived(name, at);
        if !allocation.nodes.is_empty() {
            self.bad_starts.entry(allocation.nodes.clone()).or_default().push(at);
        }
    }

    /// The queue's answer to the last query, after the launcher has ended: what it lacks has ended, and no worker is known.
    pub fn settle(&mut self, entries: &[Entry], asked_at: Seconds) {
        self.allocations.values_mut().for_each(|allocation| allocation.connected = false);
        self.answered(entries, asked_at);
        for (name, allocation) in &mut self.allocations {
            let is_listed = entries.iter().any(|entry| entry.name == *name);
            if allocation.is_alive() && !is_listed && asked_at >= allocation.submitted_at + INVISIBLE_S {
                allocation.phase = Phase::Ended;
                "left the queue".clone_into(&mut allocation.state);
            }
        }
    }

    /// Forgets failures of workers and refused submissions: their reason was mended.
    pub fn forget_failures(&mut self) {
        self.bad_starts.clear();
        self.back_off = BackOff::default();
    }

    /// Nodes on which two workers failed at once within a day.
    pub fn excluded(&self, now: Seconds) -> Vec<&str> {
        let recent = |starts: &Vec<Seconds>| starts.iter().filter(|at| **at + BAD_START_S > now).count();
        let bad = self.bad_starts.iter().filter(|(_, starts)| recent(starts) >= BAD_STARTS_MAX);
        bad.map(|(node, _)| node.as_str()).collect()
    }

    /// Keeps the last ended allocations only.
    fn forget_old(&mut self) {
        let ended =
            self.allocations.iter().filter_map(|(name, a)| a.ended_at.filter(|_| !a.is_alive()).map(|at| (at, name)));
        let mut ended: Vec<(Seconds, String)> = ended.map(|(at, name)| (at, name.clone())).collect();
        ended.sort_unstable();
        ended.truncate(ended.len().saturating_sub(ENDED_KEPT));
        for (_, name) in ended {
            self.allocations.remove(&name);
        }
    }
}
