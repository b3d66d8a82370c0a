//! Manifests and sweeps: a manifest becomes a lazy sequence of tasks.
//!
//! [`Manifest::parse`] reads TOML and reports every problem at once. [`Sweep::new`] adds the digests of the logs;
//! [`Sweep::task`] decodes task `i` from its index, so that a sweep of 10^9 tasks needs no more memory than one of ten.
//! [`identity`] defines when two tasks are the same.
//!
//! Pure: no file system, clock, thread or network. The caller finds the logs and gives their digests.

pub mod canonical;
mod decimal;
mod derive;
pub mod designs;
mod difference;
mod digest;
mod errors;
mod exclusion;
pub mod identity;
pub mod limits;
pub mod manifest;
pub mod manifests;
mod mapping;
mod names;
mod over;
mod overlap;
mod pins;
pub mod plain;
mod plan;
pub mod schema;
pub mod settings;
mod shard;
pub mod signals;
mod space;
mod sweep;
mod units;
pub mod url;
mod values;
mod warnings;

/// Helpers for readers of other TOML files.
pub mod reading {
    pub use crate::manifest::values::{integer, kind};
    pub use crate::names::{add_new, hint, instead_of, suggestion, unknown};
    pub use crate::units::{converted, unit_in};
}

pub use derive::Derivation;
pub use designs::{DesignPoints, PointRange};
pub use difference::{difference, shown_differences};
pub use digest::{Digest, DigestError, DigestWriter};
pub use errors::{ManifestErrors, Problem, SweepError};
pub use limits::TaskLimits;
pub use manifest::designs::{with_lines, with_points};
pub use manifest::places::place_in;
pub use manifest::until::{Precision, Until};
pub use manifest::{FileRef, LogRef, Manifest, TEXT_MAX, Tables};
pub use mapping::Mapping;
pub use over::Over;
pub use pins::component_id;
pub use plan::{AxisSummary, AxisValue, BlockSummary, DesignSummary, RangeSummary};
pub use shard::Shard;
pub use sweep::{Decoder, Sweep, TaskKind, TaskPoint, TaskPoints, TaskSpec};
pub use warnings::Warning;
