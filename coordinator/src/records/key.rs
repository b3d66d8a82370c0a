//! Keys of records.

use powersweep_experiments::Digest;
use powersweep_proto::v1::LeaseId;
use powersweep_results::Table;
use uuid::Uuid;

use super::Record;

/// The key of a record: at most one record of a key exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "variants and fields are those of `Record`")]
pub enum Key {
    Epoch,
    Experiment { name: String },
    Earlier { experiment: String, generation: u64 },
    DoneChunk { experiment: String, generation: u64, chunk: u32 },
    Rows { experiment: String, table: Table, seq: u64 },
    Header { experiment: String, table: Table, seq: u64 },
    Intent { part_id: Uuid },
    Totals { experiment: String, table: Table },
    Failure { experiment: String, generation: u64, index: u64 },
    Lease { id: LeaseId },
    Log { digest: Digest },
    Covered { experiment: String, table: Table },
    Leaving { experiment: String },
    GenerationFloor,
    Split { experiment: String },
}

impl Record {
    /// The record's key.
    pub fn key(&self) -> Key {
        match self {
            Record::Epoch(_) => Key::Epoch,
            Record::Experiment(r) => Key::Experiment { name: r.name.clone() },
            Record::Earlier(r) => Key::Earlier { experiment: r.experiment.clone(), generation: r.generation },
            Record::DoneChunk(r) => {
                Key::DoneChunk { experiment: r.experiment.clone(), generation: r.generation, chunk: r.chunk }
            }
            Record::Rows(r) => Key::Rows { experiment: r.experiment.clone(), table: r.table(), seq: r.seq },
            Record::Header(r) => Key::Header { experiment: r.experiment.clone(), table: r.table(), seq: r.seq },
            Record::Intent(r) => Key::Intent { part_id: *r.part_id },
            Record::Totals(r) => Key::Totals { experiment: r.experiment.clone(), table: r.table() },
            Record::Failure(r) => r.key(),
            Record::Lease(r) => Key::Lease { id: r.id },
            Record::Log(r) => Key::Log { digest: *r.digest },
            Record::Covered(r) => Key::Covered { experiment: r.experiment.clone(), table: r.table() },
            Record::Leaving(r) => Key::Leaving { experiment: r.experiment.clone() },
            Record::GenerationFloor(_) => Key::GenerationFloor,
            Record::Split(r) => Key::Split { experiment: r.experiment.clone() },
        }
    }
}
