//! What workers wrote down: which tasks they started, and which ones a coordinator acknowledged.

use std::collections::HashMap;
use std::path::PathBuf;

/// Counts over all workers of a farm with one experiment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Starts of tasks.
    pub(super) started: u64,
    /// Tasks that were started.
    pub(super) tasks: u64,
    /// Tasks that a worker saw acknowledged.
    pub(super) acknowledged: u64,
    /// Starts of a task after a worker had its acknowledgement, for whatever reason.
    pub(super) again: u64,
    /// Those under a lease of a later coordinator than the one that acknowledged: it had forgotten them.
    pub(super) again_after_kill: u64,
}

/// The first acknowledgement of a task: when, and by the coordinator of which epoch.
#[derive(Clone)]
struct Acknowledged {
    at: String,
    epoch: u64,
}

struct Started {
    at: String,
    index: u64,
    epoch: u64,
}

/// Reads the logs of all workers, also of those that were killed.
pub(super) fn read(logs: &[PathBuf]) -> Counts {
    let mut acknowledged: HashMap<u64, Acknowledged> = HashMap::new();
    let mut started = Vec::new();
    for log in logs {
        let text = std::fs::read(log).expect("the log is there");
        for line in String::from_utf8_lossy(&text).split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let Some((head, event)) = line.trim_end().split_once("powersweep_worker::journal: ") else { continue };
            // Times of one machine's clock, all of one length.
            let at = head.split_whitespace().next().expect("a line begins with its time").to_owned();
            let epoch = number(event, "epoch=").expect("events have an epoch");
            match event.split_whitespace().next() {
                Some("started") => {
                    let index = number(event, "index=").expect("a task has an index");
                    started.push(Started { at, index, epoch });
                }
                Some("acknowledged") => {
                    for index in indices(event) {
                        let new = Acknowledged { at: at.clone(), epoch };
                        let first = acknowledged.entry(index).or_insert_with(|| new.clone());
                        if new.at < first.at {
                            *first = new;
                        }
                    }
                }
                _ => {}
            }
        }
    }
    count(&started, &acknowledged)
}

fn count(started: &[Started], acknowledged: &HashMap<u64, Acknowledged>) -> Counts {
    let mut tasks: Vec<u64> = started.iter().map(|s| s.index).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let again = |s: &&Started| acknowledged.get(&s.index).is_some_and(|a| s.at > a.at);
    let forgotten = |s: &&Started| acknowledged.get(&s.index).is_some_and(|a| s.at > a.at && s.epoch > a.epoch);
    Counts {
        started: started.len() as u64,
        tasks: tasks.len() as u64,
        acknowledged: acknowledged.len() as u64,
        again: started.iter().filter(again).count() as u64,
        again_after_kill: started.iter().filter(forgotten).count() as u64,
    }
}

fn number(event: &str, key: &str) -> Option<u64> {
    let (_, rest) = event.split_once(key)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
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
            format!("{} started index=1 attempt=1 epoch=1\n", at(1)),
            format!("{} started index=2 attempt=1 epoch=1\n", at(2)),
            format!("{} started index=3 attempt=1 epoch=1\n", at(3)),
            format!("{} acknowledged epoch=1 indices=[1, 2]\n", at(4)),
            "torn".to_owned(),
        ],
    );
    let second = write(
        "b",
        &[
            // A duplicate that began before, one after the acknowledgement, one of the next coordinator, one unanswered.
            format!("{} started index=1 attempt=1 epoch=1\n", at(3)),
            format!("{} started index=1 attempt=1 epoch=1\n", at(5)),
            format!("{} started index=2 attempt=2 epoch=2\n", at(6)),
            format!("{} started index=3 attempt=2 epoch=2\n", at(6)),
            format!("{} acknowledged epoch=2 indices=[2]\n", at(7)),
        ],
    );
    let expected = Counts { started: 7, tasks: 3, acknowledged: 2, again: 2, again_after_kill: 1 };
    assert_eq!(read(&[first, second]), expected);
}
