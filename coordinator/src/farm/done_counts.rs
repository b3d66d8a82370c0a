//! How many tasks each worker process has finished, and their slot time: a task counts once its row is durable, and once only.

use std::collections::BTreeMap;

use uuid::Uuid;

/// Maximum number of processes that are kept beside the connected workers.
const KEPT_MAX: usize = 65_536;

/// Tasks of one worker in a batch.
#[derive(Debug, Clone)]
struct Counted {
    tasks: u64,
    seconds: f64,
    /// One of them: an experiment, its generation, the index. A batch is durable as a whole, so that this task says whether all
    /// of them are done.
    example: (String, u64, u64),
}

/// Finished tasks by process.
#[derive(Debug, Default)]
pub(super) struct DoneCounts {
    durable: BTreeMap<Uuid, (u64, f64)>,
    /// Of the next batch.
    waiting: BTreeMap<Uuid, Counted>,
    /// Of the batch whose write has begun.
    in_flight: BTreeMap<Uuid, Counted>,
}

impl DoneCounts {
    /// The next batch has rows of this many tasks that were not done, with this one among them. They took this slot time (s).
    pub(super) fn add(&mut self, worker: Uuid, (tasks, seconds): (u64, f64), example: (&str, u64, u64)) {
        let (experiment, generation, index) = example;
        let new = || Counted { tasks: 0, seconds: 0.0, example: (experiment.to_owned(), generation, index) };
        let counted = self.waiting.entry(worker).or_insert_with(new);
        (counted.tasks, counted.seconds) = (counted.tasks + tasks, counted.seconds + seconds);
    }

    /// The next batch is taken.
    pub(super) fn committing(&mut self) {
        self.in_flight = std::mem::take(&mut self.waiting);
    }

    /// The batch in flight is durable.
    pub(super) fn committed(&mut self) {
        for (worker, counted) in std::mem::take(&mut self.in_flight) {
            let (tasks, seconds) = self.durable.entry(worker).or_default();
            (*tasks, *seconds) = (*tasks + counted.tasks, *seconds + counted.seconds);
        }
    }

    /// Number of tasks whose rows are durable, and their slot time (s).
    pub(super) fn of(&self, worker: Uuid) -> (u64, f64) {
        self.durable.get(&worker).copied().unwrap_or_default()
    }

    /// The counts after a failed write, once the state was loaded again. Nobody knows whether a failed batch is durable, but the
    /// loaded state: `is_done` asks it about an experiment, a generation and an index.
    pub(super) fn after_failure(mut self, is_done: impl Fn(&str, u64, u64) -> bool) -> DoneCounts {
        self.in_flight
            .retain(|_, Counted { example: (name, generation, index), .. }| is_done(name, *generation, *index));
        self.committed();
        DoneCounts { durable: self.durable, ..DoneCounts::default() }
    }

    /// Forgets workers that are not known if there are too many.
    pub(super) fn bound(&mut self, is_known: impl Fn(Uuid) -> bool) {
        if self.durable.len() > KEPT_MAX {
            self.durable.retain(|worker, _| is_known(*worker));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_unknown_workers_are_forgotten_when_there_are_too_many() {
        let mut counts = DoneCounts::default();
        let worker = |number: usize| Uuid::from_u128(number as u128);
        (0..=KEPT_MAX).for_each(|number| counts.add(worker(number), (1, 2.5), ("e", 1, 0)));
        counts.committing();
        assert_eq!(counts.of(worker(7)), (0, 0.0), "its row is not durable");
        counts.committed();
        counts.bound(|known| known == worker(7));
        assert_eq!((counts.of(worker(7)), counts.of(worker(8))), ((1, 2.5), (0, 0.0)));
    }
}
