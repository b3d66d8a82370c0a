//! What came out: column tables, Arrow batches, the Parquet dataset.
//!
//! Each table (`tasks`, `jobs`, `series`, `failures`) is a list of [`columns::Column`]s that comes from one declaration a column:
//! the farm's facts in [`identity`], the axes from the registered components in [`axes`], the metrics from the engine's own
//! records. Axes and metrics are columns of `tasks` alone: rows of the other tables have its `task_id`. Schema, arrays and documentation follow from them, and depend on this build alone, never on a manifest.
//!
//! | step | module |
//! |---|---|
//! | rows -> Arrow batch | [`tasks::Builder`], [`jobs::Builder`], [`series::Builder`], [`failures::Builder`] |
//! | rows of another table beside columns of their tasks | [`join`] |
//! | batch -> bytes on the wire and back | [`wire`] |
//! | columns whose rows are all equal -> one row | [`folded`] |
//! | batches -> one Parquet part with its footer | [`part`] |
//! | parts of workers -> one part | [`merge`] |
//! | where files lie | [`layout`] |
//!
//! This crate does no input or output and owns no clock.

pub mod axes;
mod builder;
pub mod columns;
mod error;
pub mod failures;
pub mod folded;
pub mod identity;
pub mod jobs;
pub mod join;
pub mod layout;
pub mod merge;
pub mod part;
mod rows;
pub mod series;
pub mod tasks;
pub mod wire;

pub use error::ResultsError;
pub use rows::Rows;
