//! The names of records.

use super::{Record, Table};
use powersweep_experiments::Digest;
use powersweep_proto::v1::LeaseId;
use uuid::Uuid;

/// Names a record: at most one record of a key exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// [`Record::Epoch`].
    Epoch,
    /// [`Record::Experiment`].
    Experiment {
        /// Name.
        name: String,
    },
    /// [`Record::Earlier`].
    Earlier {
        /// Experiment.
        experiment: String,
        /// Generation.
        generation: u64,
    },
    /// [`Record::DoneChunk`].
    DoneChunk {
        /// Experiment.
        experiment: String,
        /// Generation.
        generation: u64,
        /// Chunk.
        chunk: u32,
    },
    /// [`Record::Rows`].
    Rows {
        /// Experiment.
        experiment: String,
        /// Table.
        table: Table,
        /// Number.
        seq: u64,
    },
    /// [`Record::Header`].
    Header {
        /// Experiment.
        experiment: String,
        /// Table.
        table: Table,
        /// Number.
        seq: u64,
    },
    /// [`Record::Intent`].
    Intent {
        /// Part.
        part_id: Uuid,
    },
    /// [`Record::Totals`].
    Totals {
        /// Experiment.
        experiment: String,
        /// Table.
        table: Table,
    },
    /// [`Record::Failure`].
    Failure {
        /// Experiment.
        experiment: String,
        /// Generation.
        generation: u64,
        /// Task.
        index: u64,
    },
    /// [`Record::Lease`].
    Lease {
        /// Id.
        id: LeaseId,
    },
    /// [`Record::Log`].
    Log {
        /// Digest.
        digest: Digest,
    },
    /// [`Record::Covered`].
    Covered {
        /// Experiment.
        experiment: String,
        /// Table.
        table: Table,
    },
    /// [`Record::Leaving`].
    Leaving {
        /// Experiment.
        experiment: String,
    },
    /// [`Record::GenerationFloor`].
    GenerationFloor,
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
        }
    }
}
