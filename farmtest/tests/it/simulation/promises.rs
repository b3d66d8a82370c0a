//! Checks each message of a coordinator against the durable state at that moment.

use powersweep_coordinator::records::Removal;
use powersweep_proto::v1;

use super::catalogue::{decode, generation, log_of};
use super::worker::{Said, says_removed};
use super::world::World;

impl World {
    /// Notes the tasks of a hand-in that are not in the manifest now. Returns the number of its rows.
    pub(super) fn note_unwanted(&mut self, c: usize, link: u64, hand_in: &v1::HandIn) -> u32 {
        let tasks = decode(&hand_in.rows);
        let count = tasks.len() as u32;
        let farm = self.coordinators[c].farm();
        let sweep = farm.and_then(|farm| farm.sweep(&hand_in.experiment));
        if let Some(sweep) = sweep.filter(|_| self.disk.histories.is_present(&hand_in.experiment, hand_in.generation)) {
            let first = sweep.next_included(0).and_then(|index| sweep.task(index)).expect("no sweep is empty");
            let log = first.digest.unwrap_or(log_of(0));
            let present = generation(sweep.manifest().text(), log);
            let worker = &mut self.workers[self.links[link as usize].worker];
            worker.unwanted.extend(tasks.into_iter().filter(|task| present.tasks().all(|fact| fact.id != *task)));
        }
        count
    }

    /// An acknowledged task has a durable row in the history of its experiment, unless the task has left the manifest.
    /// A hand-in of an experiment that is being removed is refused.
    pub(super) fn check_ack(&mut self, link: u64, ack: &v1::Ack) {
        let worker = &self.workers[self.links[link as usize].worker];
        for Said { experiment, generation, tasks } in ack.ids.iter().filter_map(|id| worker.said.get(id)) {
            let history = self.disk.histories.of(experiment, *generation).expect("it was leased");
            for task in tasks {
                if self.disk.histories.get(history).rows.contains(task) {
                    self.acknowledged.push((history, *task));
                    continue;
                }
                // It had left the manifest when its row arrived.
                let unwanted = worker.unwanted.contains(task);
                assert!(unwanted, "task {task} of {experiment} is acknowledged and has no durable row");
            }
        }
        for rejected in ack.rejected.iter().filter(|rejected| says_removed(&rejected.reason)) {
            let Some(said) = worker.said.get(&rejected.id) else { continue };
            let leaves = self.disk.is_or_was_leaving(&said.experiment, said.generation);
            assert!(leaves, "a hand-in of {} is refused: {}", said.experiment, rejected.reason);
        }
    }

    /// Each epoch belongs to one life.
    pub(super) fn check_welcome(&mut self, c: usize, welcome: &v1::Welcome) {
        let life = (c, self.coordinators[c].life());
        let owner = *self.epochs.entry(welcome.epoch).or_insert(life);
        assert_eq!(owner, life, "two lives announce epoch {}", welcome.epoch);
    }

    /// Each row that was acknowledged before is visible in its experiment's folder or the folder for rows that left, or in
    /// a part that is being split, unless its user erased the experiment or pruned the row.
    pub(super) fn check_acknowledged(&self, before: usize, name: Option<&str>) {
        for (history, task) in &self.acknowledged[..before] {
            let history = self.disk.histories.get(*history);
            let erased = history.end == Some(Removal::Erase);
            // A row that left the manifest may have been pruned.
            let kept = history.rows.contains(task);
            if !erased && kept && name.is_none_or(|name| history.name == name) {
                let shown = self.disk.is_shown(&history.name, *task);
                assert!(shown, "task {task} of {} was acknowledged and is not visible", history.name);
            }
        }
    }
}
