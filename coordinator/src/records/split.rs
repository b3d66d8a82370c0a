//! The records of splits.

use powersweep_results::Table;
use uuid::Uuid;

use super::Stored;

/// The write-ahead record of a split. After an edit of the manifest, parts can have rows of tasks that left, and parts of
/// the folder for rows that left can have rows of tasks that are back. A split replaces each such part by at most two
/// fragments: one in the same folder, one in the other. The fragments are in the staging folder before this record is
/// durable. Open until a commit deletes it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SplitRecord {
    /// Experiment.
    #[prost(string, tag = "1")]
    pub experiment: String,
    /// Id of the attempt (UUIDv7), also the folder of the fragments.
    #[prost(message, required, tag = "2")]
    pub id: Stored<Uuid>,
    /// Generation whose manifest decided which rows stay.
    #[prost(uint64, tag = "3")]
    pub generation: u64,
    /// The parts to replace.
    #[prost(message, repeated, tag = "4")]
    pub parts: Vec<SplitPart>,
}

/// A part to replace.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SplitPart {
    /// Table.
    #[prost(enumeration = "Table", tag = "1")]
    pub table: i32,
    /// Whether the part is in the folder for rows that left.
    #[prost(bool, tag = "2")]
    pub is_left: bool,
    /// The part.
    #[prost(message, required, tag = "3")]
    pub old: Fragment,
    /// Its rows that stay in the folder; `None` if there are none.
    #[prost(message, optional, tag = "4")]
    pub kept: Option<Fragment>,
    /// Its rows that move to the other folder; `None` if there are none.
    #[prost(message, optional, tag = "5")]
    pub moved: Option<Fragment>,
}

/// A part or fragment.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Fragment {
    /// Its id (UUIDv7), in its name and its footer.
    #[prost(message, required, tag = "1")]
    pub part_id: Stored<Uuid>,
    /// Number of its rows.
    #[prost(uint64, tag = "2")]
    pub rows: u64,
    /// Its size in bytes.
    #[prost(uint64, tag = "3")]
    pub bytes: u64,
}
