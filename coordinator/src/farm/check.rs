//! The invariants as code: tests call this after every step.

use powersweep_results::Table;

use super::Farm;
use super::index_set::IndexSet;

impl Farm {
    /// The first invariant that does not hold, as an error.
    pub fn check(&self) -> Result<(), String> {
        for (name, experiment) in &self.experiments {
            let mut leased: std::collections::BTreeMap<u64, u32> = Default::default();
            for lease in self.leases.values().filter(|lease| lease.grant.experiment == *name) {
                for index in lease.open.iter() {
                    *leased.entry(index).or_default() += 1;
                }
            }
            let expected: IndexSet = leased.keys().copied().collect();
            ensure(expected == experiment.leased, || format!("{name}: leased set differs from the leases"))?;
            let twice: Vec<(u64, u32)> = leased.into_iter().filter(|(_, leases)| *leases > 1).collect();
            let noted: Vec<(u64, u32)> = experiment.duplicated.iter().map(|(i, n)| (*i, *n)).collect();
            ensure(twice == noted, || format!("{name}: duplicates are {twice:?}, noted {noted:?}"))?;
            for (set, state) in [(&experiment.done, "done"), (&experiment.failed, "failed")] {
                let both = experiment.leased.iter().find(|&index| set.contains(index));
                ensure(both.is_none(), || format!("{name}: task {both:?} is leased and {state}"))?;
                let pending = set.iter().find(|&index| experiment.pending.holds(index));
                ensure(pending.is_none(), || format!("{name}: task {pending:?} is pending and {state}"))?;
            }
            let both = experiment.leased.iter().find(|&index| experiment.pending.holds(index));
            ensure(both.is_none(), || format!("{name}: task {both:?} is leased and pending"))?;
            let both = experiment.done.iter().find(|&index| experiment.failed.contains(index));
            ensure(both.is_none(), || format!("{name}: task {both:?} is done and failed"))?;
            self.check_counts(name)?;
        }
        self.check_workers()
    }

    /// No task below the cursor is in no set and no group; no task is in two groups; rows and done tasks match.
    fn check_counts(&self, name: &str) -> Result<(), String> {
        let experiment = &self.experiments[name];
        let Some(sweep) = &experiment.sweep else { return Ok(()) };
        let mut in_groups = IndexSet::new();
        let cursor = experiment.pending.cursor();
        for index in experiment.pending.groups().flat_map(|group| group.indices.iter()) {
            ensure(in_groups.insert(index), || format!("{name}: task {index} is in two groups"))?;
            ensure(index < cursor, || format!("{name}: task {index} is in a group and above the cursor"))?;
        }
        let mut at = 0;
        while let Some(index) = sweep.next_included(at).filter(|&index| index < cursor) {
            let known = !experiment.closed().is_pending(index) || in_groups.contains(index);
            ensure(known, || format!("{name}: task {index} is lost"))?;
            at = index + 1;
        }
        let tasks = experiment.tables.get(&Table::Tasks);
        let rows = tasks.map_or(0, |t| t.unpublished_rows + t.publishing_rows + t.rows_in_parts + t.left_rows);
        let done = experiment.done.len() + experiment.extra();
        ensure(rows == done, || format!("{name}: {rows} rows for {done} done tasks"))?;
        for table in Table::OPTIONAL {
            let covered = experiment.tables.get(&table).map_or(0, |t| t.covered);
            ensure(covered <= done, || format!("{name}: {table} covers {covered} tasks, {done} are done"))?;
        }
        Ok(())
    }

    fn check_workers(&self) -> Result<(), String> {
        for (id, worker) in &self.workers {
            let open: u64 = worker.leases.iter().filter_map(|lease| self.leases.get(lease)).map(|l| l.open.len()).sum();
            ensure(open == worker.outstanding, || {
                format!("worker {id}: {} tasks counted, {open} open", worker.outstanding)
            })?;
            ensure(worker.leases.iter().all(|lease| self.leases.contains_key(lease)), || {
                format!("worker {id} has a lease that the farm does not have")
            })?;
        }
        let slots: u64 = self.workers.values().filter(|w| w.conn.is_some()).map(|w| u64::from(w.slots)).sum();
        ensure(slots == self.slots, || format!("{} slots counted, {slots} connected", self.slots))?;
        let orphan = self
            .leases
            .iter()
            .find(|(id, l)| !self.workers.get(&l.grant.worker).is_some_and(|w| w.leases.contains(id)));
        ensure(orphan.is_none(), || format!("lease {orphan:?} has no worker"))?;
        ensure(self.leases.values().all(|lease| !lease.open.is_empty()), || "a lease without open tasks".to_owned())
    }
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}
