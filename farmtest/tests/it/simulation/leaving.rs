//! How a coordinator process deletes or moves the parts of an experiment: one request to storage at a time.

use std::collections::VecDeque;

use powersweep_coordinator::farm::{Event, PublishFailure};
use powersweep_coordinator::records::Removal;
use powersweep_results::Table;
use powersweep_results::layout::base_name;
use uuid::Uuid;

use super::disk::Place;
use super::world::{Happening, World};

/// One request to storage.
#[derive(Debug)]
enum Step {
    ListParts(Table),
    ListUploads(Table),
    /// A durable write: it fails for all but the newest owner.
    Own,
    Part(Place),
    Upload(Uuid),
}

/// An attempt to delete or move an experiment's parts, with its remaining steps.
#[derive(Debug)]
pub(super) struct Attempt {
    experiment: String,
    removal: Removal,
    steps: VecDeque<Step>,
}

impl World {
    pub(super) fn leave(&mut self, c: usize, experiment: String, removal: Removal) {
        let erases = removal == Removal::Erase;
        let lists = |table| {
            let uploads = erases.then_some(Step::ListUploads(table));
            std::iter::once(Step::ListParts(table)).chain(uploads)
        };
        // The listed objects are appended.
        let steps = Table::ALL.into_iter().flat_map(lists).chain([Step::Own]).collect();
        let life = self.coordinators[c].life();
        let delay = self.storage_delay();
        self.coordinators[c].at_work += 1;
        self.after(delay, Happening::Leave { c, life, attempt: Attempt { experiment, removal, steps } });
    }

    pub(super) fn leave_step(&mut self, c: usize, life: u64, mut attempt: Attempt) {
        let alive = self.coordinators[c].is_alive();
        // A process that died may have sent this request before its death; it sends no other one.
        if !alive && self.random.one_in(2) {
            return;
        }
        let away = self.now_us < self.storage_away_until_us;
        let Some(step) = attempt.steps.pop_front() else { return };
        let fenced = matches!(step, Step::Own) && c + 1 != self.coordinators.len();
        let fails = away || fenced || !self.quiet && self.random.one_in(4 * self.rates.publish_fails);
        if !away && (!fails || self.random.one_in(2)) {
            self.note(|| format!("coordinator {c}, {} leaves: {step:?}", attempt.experiment));
            self.carry_out(step, &mut attempt);
        }
        if !alive {
            return;
        }
        let delay = self.storage_delay();
        let experiment = attempt.experiment.clone();
        if fails {
            let result = Err(PublishFailure { reason: "simulated".to_owned(), retryable: true });
            self.after(delay, Happening::Left { c, life, experiment, result });
        } else if attempt.steps.is_empty() {
            self.after(delay, Happening::Left { c, life, experiment, result: Ok(()) });
        } else {
            self.after(delay, Happening::Leave { c, life, attempt });
        }
    }

    fn carry_out(&mut self, step: Step, attempt: &mut Attempt) {
        match step {
            Step::ListParts(table) => {
                let parts = self.disk.parts.keys();
                let found = parts.filter(|(folder, of, _)| base_name(folder) == attempt.experiment && *of == table);
                let found = found.cloned();
                found.map(Step::Part).for_each(|step| attempt.steps.push_back(step));
            }
            Step::ListUploads(table) => {
                let uploads = self.disk.staging.iter().filter(|_| table == Table::Jobs);
                let found = uploads.filter(|(_, (experiment, _))| *experiment == attempt.experiment);
                found.map(|(id, _)| Step::Upload(*id)).for_each(|step| attempt.steps.push_back(step));
            }
            Step::Own => {}
            Step::Part(place) => self.disk.take_away(&place, &attempt.removal),
            Step::Upload(part_id) => self.disk.take_upload_away(&part_id),
        }
    }

    pub(super) fn left(&mut self, c: usize, life: u64, experiment: String, result: Result<(), PublishFailure>) {
        self.coordinators[c].at_work -= 1;
        if self.coordinators[c].life() == life {
            self.farm_event(c, Event::RemovalDone { experiment, result });
        }
    }
}
