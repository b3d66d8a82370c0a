//! How a coordinator process splits parts after an edit: one request to storage at a time.

use std::collections::{BTreeSet, VecDeque};

use powersweep_coordinator::farm::{Event, PublishFailure};
use powersweep_coordinator::records::{Fragment, SplitPart, SplitRecord};
use powersweep_coordinator::split::Sweeps;
use powersweep_results::Table;
use powersweep_results::layout::left_name;
use uuid::Uuid;

use super::disk::Place;
use super::world::{Happening, World};

/// One request to storage.
#[derive(Debug, Clone)]
enum Step {
    /// Reads the parts and stages the fragments, in one request.
    Prepare(BTreeSet<Uuid>),
    /// A durable write: it fails for all but the newest owner.
    Own,
    Remove(Place),
    Show(Uuid, Place),
    ListLeft,
    RemoveLeft(Place),
}

/// The report at the end of the steps.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Prepare,
    Split,
    Prune,
}

/// An attempt to split an experiment's parts, with its remaining steps.
#[derive(Debug)]
pub(super) struct SplitAttempt {
    kind: Kind,
    experiment: String,
    id: Uuid,
    steps: VecDeque<Step>,
    prepared: Vec<SplitPart>,
}

impl World {
    pub(super) fn prepare_split(&mut self, c: usize, experiment: String, id: Uuid, sweeps: &Sweeps) {
        let sweep = &sweeps.present;
        let present = (0..sweep.index_count()).filter_map(|index| Some(sweep.task(index)?.task_id)).collect();
        self.begin_split(c, Kind::Prepare, experiment, id, [Step::Prepare(present)]);
    }

    pub(super) fn split(&mut self, c: usize, record: &SplitRecord) {
        let mut steps = vec![Step::Own];
        for part in &record.parts {
            let (here, there) = folders(&record.experiment, part.is_left);
            let place = |folder: &str, id: Uuid| (folder.to_owned(), part.table(), id);
            steps.push(Step::Remove(place(&here, *part.old.part_id)));
            for (folder, fragment) in [(here, part.kept), (there, part.moved)] {
                steps.extend(fragment.map(|fragment| Step::Show(*record.id, place(&folder, *fragment.part_id))));
            }
        }
        self.begin_split(c, Kind::Split, record.experiment.clone(), *record.id, steps);
    }

    pub(super) fn prune(&mut self, c: usize, experiment: String, id: Uuid) {
        self.begin_split(c, Kind::Prune, experiment, id, [Step::ListLeft, Step::Own]);
    }

    fn begin_split(
        &mut self,
        c: usize,
        kind: Kind,
        experiment: String,
        id: Uuid,
        steps: impl IntoIterator<Item = Step>,
    ) {
        let life = self.coordinators[c].life();
        let delay = self.storage_delay();
        self.coordinators[c].at_work += 1;
        let steps = steps.into_iter().collect();
        let attempt = SplitAttempt { kind, experiment, id, steps, prepared: Vec::new() };
        self.after(delay, Happening::Split { c, life, attempt });
    }

    pub(super) fn split_step(&mut self, c: usize, life: u64, mut attempt: SplitAttempt) {
        let alive = self.coordinators[c].is_alive();
        // A process that died may have sent this request before its death; it sends no other one.
        if !alive && self.random.one_in(2) {
            return;
        }
        let away = self.now_us < self.storage_away_until_us;
        let Some(step) = attempt.steps.pop_front() else { return };
        let owns = c + 1 == self.coordinators.len();
        let fenced = matches!(step, Step::Own) && !owns;
        let fails = away || fenced || !self.quiet && self.random.one_in(4 * self.rates.publish_fails);
        if !away && (!fails || self.random.one_in(2)) {
            self.note(|| format!("coordinator {c}, split of {}: {step:?}", attempt.experiment));
            self.carry_out_split(step, owns, &mut attempt);
        }
        if !alive {
            return;
        }
        let delay = self.storage_delay();
        let result = match (fails, attempt.steps.is_empty()) {
            (true, _) => Err(PublishFailure { reason: "simulated".to_owned(), retryable: true }),
            (false, true) => Ok(()),
            (false, false) => return self.after(delay, Happening::Split { c, life, attempt }),
        };
        self.after(delay, Happening::SplitEnds { c, life, attempt, result });
    }

    fn carry_out_split(&mut self, step: Step, owns: bool, attempt: &mut SplitAttempt) {
        match step {
            Step::Prepare(present) => self.stage_fragments(attempt, &present),
            Step::Own => {}
            Step::Remove(place) => self.disk.remove_old(&place),
            Step::Show(split, place) => self.disk.show_fragment(split, &place, owns),
            Step::ListLeft => {
                let left = left_name(&attempt.experiment);
                let found = self.disk.parts.keys().filter(|(folder, ..)| *folder == left).cloned();
                found.map(Step::RemoveLeft).for_each(|step| attempt.steps.push_back(step));
            }
            Step::RemoveLeft(place) => self.disk.remove_left(&place, &attempt.experiment),
        }
    }

    /// The oracle of a split: rows stay if the present manifest has their task, whatever their index.
    fn stage_fragments(&mut self, attempt: &mut SplitAttempt, present: &BTreeSet<Uuid>) {
        attempt.prepared.clear();
        for is_left in [false, true] {
            let (here, _) = folders(&attempt.experiment, is_left);
            let of_folder = self.disk.parts.iter().filter(|((folder, ..), _)| *folder == here);
            let parts: Vec<(Place, Vec<Uuid>)> =
                of_folder.map(|(place, tasks)| (place.clone(), tasks.clone())).collect();
            for ((_, table, part_id), tasks) in parts {
                let (moved, kept): (Vec<Uuid>, Vec<Uuid>) =
                    tasks.iter().partition(|task| present.contains(*task) == is_left);
                if moved.is_empty() {
                    continue;
                }
                let old = Fragment { part_id: part_id.into(), rows: tasks.len() as u64, bytes: 1 };
                let (kept, moved) = (self.stage(attempt.id, kept), self.stage(attempt.id, moved));
                attempt.prepared.push(SplitPart { table: table.into(), is_left, old, kept, moved });
            }
        }
    }

    fn stage(&mut self, split: Uuid, tasks: Vec<Uuid>) -> Option<Fragment> {
        let rows = tasks.len() as u64;
        let part_id = Uuid::from_u64_pair(self.random.below(u64::MAX), self.random.below(u64::MAX));
        let fragments = self.disk.fragments.entry(split).or_default();
        (rows > 0).then(|| {
            fragments.insert(part_id, tasks);
            Fragment { part_id: part_id.into(), rows, bytes: 1 }
        })
    }

    pub(super) fn split_ends(
        &mut self,
        c: usize,
        life: u64,
        attempt: SplitAttempt,
        result: Result<(), PublishFailure>,
    ) {
        self.coordinators[c].at_work -= 1;
        if self.coordinators[c].life() != life {
            return;
        }
        let SplitAttempt { kind, experiment, id, prepared, .. } = attempt;
        let event = match kind {
            Kind::Prepare => Event::SplitPrepared { experiment, id, result: result.map(|()| prepared) },
            Kind::Split => Event::SplitDone { experiment, id, result },
            Kind::Prune => Event::Pruned { experiment, id, result },
        };
        self.farm_event(c, event);
    }
}

/// The folder of a part, and the folder for its rows that move.
fn folders(experiment: &str, is_left: bool) -> (String, String) {
    let (own, left) = (experiment.to_owned(), left_name(experiment));
    if is_left { (left, own) } else { (own, left) }
}

/// The fragments of a table's part.
pub(super) fn fragments_of(part: &SplitPart, experiment: &str) -> Vec<Place> {
    let (here, there) = folders(experiment, part.is_left);
    let place = |folder: String, fragment: Fragment| (folder, part.table(), *fragment.part_id);
    let kept = part.kept.map(|fragment| place(here, fragment));
    kept.into_iter().chain(part.moved.map(|fragment| place(there, fragment))).collect()
}

/// The part that a split replaces.
pub(super) fn old_of(part: &SplitPart, experiment: &str) -> Place {
    let (here, _) = folders(experiment, part.is_left);
    (here, Table::try_from(part.table).expect("a table"), *part.old.part_id)
}
