//! What a store reads back.

use super::*;

/// The whole state but the bytes of unpublished rows. Every list is in key order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loaded {
    /// Epoch of the last owner; 0 if there was none.
    pub epoch: u64,
    /// Experiments by name.
    pub experiments: Vec<ExperimentRecord>,
    /// Replaced manifests.
    pub earlier: Vec<EarlierRecord>,
    /// Done chunks.
    pub done: Vec<DoneChunk>,
    /// Unpublished rows, without the rows.
    pub rows: Vec<RowsHeader>,
    /// Publish intents that recovery must repeat.
    pub intents: Vec<Intent>,
    /// What has been published.
    pub totals: Vec<Totals>,
    /// Failure states.
    pub failures: Vec<FailureRecord>,
    /// Leases.
    pub leases: Vec<LeaseRecord>,
    /// Logs.
    pub logs: Vec<LogRecord>,
    /// Tasks that optional tables cover.
    pub covered: Vec<CoveredRecord>,
    /// Experiments that are being deleted or set aside.
    pub leaving: Vec<LeavingRecord>,
    /// Greatest generation of any experiment that left; 0 if none did.
    pub generation_floor: u64,
}

impl Loaded {
    /// Adds what was read in key order. Rows keep their header only.
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
            Record::GenerationFloor(generation) => self.generation_floor = generation,
        }
    }
}
