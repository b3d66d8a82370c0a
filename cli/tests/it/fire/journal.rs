//! The workers' logs: started tasks, and tasks that a coordinator acknowledged.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::path::PathBuf;

/// Counts over all workers of a farm with one experiment, whose manifest may have been edited.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Starts of tasks.
    pub(super) started: u64,
    /// Tasks that were started.
    pub(super) tasks: u64,
    /// Tasks that a worker saw acknowledged.
    pub(super) acknowledged: u64,
    /// Starts of a task after its acknowledgement.
    pub(super) again: u64,
    /// The number of `again` by another worker under the same coordinator: only a straggler's copy that was leased before
    /// the acknowledgement is allowed.
    pub(super) copies: u64,
    /// The number of `again` under a lease of a later coordinator: the acknowledged row was lost.
    pub(super) again_after_kill: u64,
}

/// The first acknowledgement of a task: time, epoch of the coordinator, worker.
#[derive(Clone)]
struct Acknowledged {
    at: String,
    epoch: u64,
    worker: usize,
}

struct Started<T> {
    at: String,
    task: T,
    epoch: u64,
    worker: usize,
}

/// Reads the logs of all workers, also of killed ones. `task` returns the identity of a task from generation and index:
/// an edit changes the indices.
pub(super) fn read<T: Eq + Hash>(logs: &[PathBuf], task: impl Fn(u64, u64) -> T) -> Counts {
    let mut started = Vec::new();
    let mut answers = Vec::new();
    let mut generations: HashMap<String, u64> = HashMap::new();
    for (worker, log) in logs.iter().enumerate() {
        let text = std::fs::read(log).expect("the log is there");
        for line in String::from_utf8_lossy(&text).split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let Some((head, event)) = line.trim_end().split_once("powersweep_worker::journal: ") else { continue };
            // The times have equal lengths and come from one clock, so that texts compare like times.
            let at = head.split_whitespace().next().expect("a line begins with its time").to_owned();
            let lease = word(event, "lease=").to_owned();
            match event.split_whitespace().next() {
                Some("started") => {
                    let generation = number(word(event, "generation="));
                    let epoch = number(lease.split('.').next().expect("a lease has an epoch"));
                    let task = task(generation, number(word(event, "index=")));
                    started.push(Started { at, task, epoch, worker });
                    generations.insert(lease, generation);
                }
                Some("acknowledged") => {
                    let new = Acknowledged { at, epoch: number(word(event, "epoch=")), worker };
                    answers.push((new, lease, indices(event)));
                }
                _ => {}
            }
        }
    }
    let mut acknowledged: HashMap<T, Acknowledged> = HashMap::new();
    for (new, lease, indices) in answers {
        let generation = generations[&lease];
        for index in indices {
            let first = acknowledged.entry(task(generation, index)).or_insert_with(|| new.clone());
            if new.at < first.at {
                *first = new.clone();
            }
        }
    }
    count(&started, &acknowledged)
}

fn count<T: Eq + Hash>(started: &[Started<T>], acknowledged: &HashMap<T, Acknowledged>) -> Counts {
    let tasks: HashSet<&T> = started.iter().map(|s| &s.task).collect();
    let again = |s: &Started<T>| acknowledged.get(&s.task).filter(|a| s.at > a.at);
    let again_where = |wanted: fn(&Started<T>, &Acknowledged) -> bool| {
        started.iter().filter(|s| again(s).is_some_and(|a| wanted(s, a))).count() as u64
    };
    Counts {
        started: started.len() as u64,
        tasks: tasks.len() as u64,
        acknowledged: acknowledged.len() as u64,
        again: again_where(|_, _| true),
        copies: again_where(|s, a| s.worker != a.worker && s.epoch == a.epoch),
        again_after_kill: again_where(|s, a| s.epoch > a.epoch),
    }
}

fn word<'a>(event: &'a str, key: &str) -> &'a str {
    let (_, value) = event.split_once(key).unwrap_or_else(|| panic!("no {key} in {event:?}"));
    value.split_whitespace().next().unwrap_or_default()
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word:?} is not a number"))
}

fn indices(event: &str) -> Vec<u64> {
    let inside = event.split_once("indices=[").and_then(|(_, rest)| rest.split_once(']'));
    let (list, _) = inside.expect("an acknowledgement lists its tasks");
    list.split(',').map(|index| index.trim().parse().expect("an index is a number")).collect()
}

#[test]
fn starts_after_an_acknowledgement_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |second: u32| format!("2026-01-01T00:00:{second:02}.000000Z TRACE powersweep_worker::journal:");
    let write = |name: &str, lines: &[String]| {
        let path = folder.path().join(name);
        std::fs::write(&path, lines.concat()).expect("it is writable");
        path
    };
    let first = write(
        "a",
        &[
            format!("{} started lease=1.1 generation=1 index=1\n", at(1)),
            format!("{} started lease=1.1 generation=1 index=2\n", at(2)),
            format!("{} started lease=1.1 generation=1 index=3\n", at(3)),
            format!("{} acknowledged epoch=1 lease=1.1 indices=[1, 2]\n", at(4)),
            "torn".to_owned(),
        ],
    );
    let second = write(
        "b",
        &[
            // A copy that began before the acknowledgement, one after it, one of the next coordinator, and a task without
            // an acknowledgement.
            format!("{} started lease=1.1 generation=1 index=1\n", at(3)),
            format!("{} started lease=1.1 generation=1 index=1\n", at(5)),
            format!("{} started lease=2.1 generation=1 index=2\n", at(6)),
            format!("{} started lease=2.1 generation=1 index=3\n", at(6)),
            format!("{} acknowledged epoch=2 lease=2.1 indices=[2]\n", at(7)),
            // An edit put two tasks before all others: task 1 again, and a new task with index 1.
            format!("{} started lease=2.2 generation=2 index=3\n", at(8)),
            format!("{} started lease=2.2 generation=2 index=1\n", at(8)),
        ],
    );
    let expected = Counts { started: 9, tasks: 4, acknowledged: 2, again: 3, copies: 1, again_after_kill: 2 };
    assert_eq!(read(&[first, second], |generation, index| index + 4 - 2 * generation), expected);
}
