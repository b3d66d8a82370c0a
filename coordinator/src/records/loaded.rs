//! The state as a store reads it back.

use super::*;

/// The state without unpublished rows, of which it has the headers. Every list is in key order.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs, reason = "the lists are named after the variants of `Record`")]
pub struct Loaded {
    /// Epoch of the last owner; 0 if there was none.
    pub epoch: u64,
    pub experiments: Vec<ExperimentRecord>,
    pub earlier: Vec<EarlierRecord>,
    pub done: Vec<DoneChunk>,
    pub rows: Vec<RowsHeader>,
    pub intents: Vec<Intent>,
    pub totals: Vec<Totals>,
    pub failures: Vec<FailureRecord>,
    pub leases: Vec<LeaseRecord>,
    pub logs: Vec<LogRecord>,
    pub covered: Vec<CoveredRecord>,
    pub leaving: Vec<LeavingRecord>,
    pub splits: Vec<SplitRecord>,
    /// Greatest generation of any deleted or renamed experiment; 0 if there was none.
    pub generation_floor: u64,
}

impl Loaded {
    /// Adds a record; records come in key order. Of rows only the header is kept.
    pub(crate) fn add(&mut self, record: Record) {
        match record {
            Record::Epoch(epoch) => self.epoch = epoch,
            Record::Experiment(r) => self.experiments.push(r),
            Record::Earlier(r) => self.earlier.push(r),
            Record::DoneChunk(r) => self.done.push(r),
            Record::Rows(r) => self.rows.push(r.header()),
            Record::Header(r) => self.rows.push(r),
            Record::Intent(r) => self.intents.push(r),
            Record::Totals(r) => self.totals.push(r),
            Record::Failure(r) => self.failures.push(r),
            Record::Lease(r) => self.leases.push(r),
            Record::Log(r) => self.logs.push(r),
            Record::Covered(r) => self.covered.push(r),
            Record::Leaving(r) => self.leaving.push(r),
            Record::Split(r) => self.splits.push(r),
            Record::GenerationFloor(generation) => self.generation_floor = generation,
        }
    }
}
