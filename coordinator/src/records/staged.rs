//! Optional tables, whose rows come as whole objects.

use super::Table;
use uuid::Uuid;

/// An object of an optional table that belongs to tasks with durable rows, and is in no published part yet. It lies
/// below the staging prefix until the intent that names it is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadRecord {
    /// Experiment.
    pub experiment: String,
    /// Table: [`Table::Jobs`] or [`Table::Series`].
    pub table: Table,
    /// Its id (UUIDv7), in its name and its footer.
    pub part_id: Uuid,
    /// Rows in it.
    pub rows: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was accepted, microseconds since 1970 UTC (for rolling by age).
    pub received_us: i64,
}

/// How many tasks were handed in with what an optional table has of them. Done tasks beyond that ran before the table
/// was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoveredRecord {
    /// Experiment.
    pub experiment: String,
    /// Table: [`Table::Jobs`] or [`Table::Series`].
    pub table: Table,
    /// Tasks, those that left the manifest since included.
    pub tasks: u64,
}
