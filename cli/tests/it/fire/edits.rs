//! SIGKILL of `run` at random moments while the manifest is edited: values are added, removed and brought back. A reader
//! lists and reads all parts meanwhile, and never sees a row twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::long;
use crate::random::Random;
use crate::rows::{self, Row};
use crate::sandbox::Sandbox;
use crate::sweeps::synthetic;

const FOLDERS: [&str; 2] = ["edited", "edited@left"];

/// A manifest of a random range of seeds.
fn manifest(random: &mut Random) -> String {
    let (from, count) = (1 + random.below(40), 1 + random.below(60));
    let seeds = format!("from = {from}, count = {count}");
    synthetic("edited", 1).replace("from = 1, count = 1", &seeds).replace("seeds", "tables = [\"jobs\"]\nseeds")
}

fn by_task(rows: Vec<Row>) -> BTreeMap<String, Row> {
    rows.into_iter().map(|row| (row["task_id"].to_string(), row)).collect()
}

#[test]
fn kills_between_edits_lose_and_double_no_row() {
    let kills = if long() { 50 } else { 6 };
    let mut random = Random::new();
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let args = ["run", "edited.toml", "--data", "data", "--quiet", "--show", "0"];
    let (ended, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                // A part that is deleted between the listing and its reading is an error of this attempt.
                let Some(seen) = rows::try_ids(&data, &FOLDERS) else { continue };
                assert_eq!(seen.len(), seen.iter().collect::<BTreeSet<_>>().len(), "a row is visible twice");
                looks.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..kills {
            sandbox.write("edited.toml", manifest(&mut random));
            let mut run = sandbox.start(&args);
            std::thread::sleep(random.ms_below(if long() { 1500 } else { 700 }));
            if run.runs() {
                run.signal("KILL");
            }
            drop(run);
        }
        sandbox.run(&args).exits(0);
        ended.store(true, Ordering::Relaxed);
    });
    sandbox.run(&["run", "edited.toml", "--data", "fresh", "--quiet", "--show", "0"]).exits(0);
    let table = rows::read(&data, "edited", "tasks");
    let left = rows::read(&data, "edited@left", "tasks");
    let fresh = by_task(rows::read(&sandbox.path("fresh"), "edited", "tasks"));
    println!(
        "{kills} edits, each ended by kill -9, and {} looks of a reader: {} rows equal the undisturbed run, {} rows left",
        looks.load(Ordering::Relaxed),
        table.len(),
        left.len()
    );
    assert_eq!(table.len(), fresh.len());
    assert!(by_task(table).keys().eq(fresh.keys()), "the table has other tasks than the manifest");
    assert!(by_task(left).keys().all(|task| !fresh.contains_key(task)), "a row that is back is not in the table");
    let jobs = |folder: &str| rows::read(&data, folder, "jobs").len();
    assert_eq!(jobs("edited"), 60 * fresh.len());
}
