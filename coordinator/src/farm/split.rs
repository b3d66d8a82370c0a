//! The state of a split: see [`super::splitting`].

use std::collections::BTreeMap;
use std::time::Duration;

use powersweep_results::Table;
use uuid::Uuid;

use super::ClientId;
use super::tables::{Progress, TableRows};
use crate::records::{Fragment, SplitPart, SplitRecord};

/// The split of an experiment. Whether one is due is in the experiment's record.
#[derive(Debug, Default)]
pub(super) struct Split {
    /// By table: records of rows below this number may have rows of tasks that left, and are published first.
    pub(super) rows_before: BTreeMap<Table, u64>,
    pub(super) attempt: Option<Attempt>,
    /// Why the last attempt failed.
    pub(super) trouble: String,
    /// Clients that wait for the deletion of the rows that left.
    pub(super) prunes: Vec<ClientId>,
}

/// Preparing or carrying out one split.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) id: Uuid,
    pub(super) generation: u64,
    /// Once the split is prepared.
    pub(super) record: Option<SplitRecord>,
    pub(super) progress: Progress,
}

impl Split {
    /// A split whose record is durable.
    pub(super) fn of(record: SplitRecord) -> Split {
        let attempt = Attempt {
            id: *record.id,
            generation: record.generation,
            record: Some(record),
            progress: Progress::RetryAt(Duration::ZERO),
        };
        Split { attempt: Some(attempt), ..Split::default() }
    }
}

impl TableRows {
    /// Counts the fragments of a part instead of the part.
    pub(super) fn split(&mut self, part: &SplitPart) {
        let rows_of = |fragment: Option<Fragment>| fragment.map_or(0, |fragment| fragment.rows);
        let moved = rows_of(part.moved);
        let own = if part.is_left { part.moved } else { part.kept };
        if part.is_left {
            self.left_rows = self.left_rows.saturating_sub(moved);
            self.rows_in_parts += moved;
        } else {
            self.left_rows += moved;
            self.rows_in_parts = self.rows_in_parts.saturating_sub(moved);
            self.parts = self.parts.saturating_sub(1);
            self.bytes_in_parts = self.bytes_in_parts.saturating_sub(part.old.bytes);
        }
        self.parts += u64::from(own.is_some());
        self.bytes_in_parts += own.map_or(0, |fragment| fragment.bytes);
    }
}
