//! Rows of results: column tables, Arrow batches, the Parquet dataset.
//!
//! Each table (`tasks`, `jobs`, `series`, `accounts`, `failures`) ([`Table`]) is a list of [`columns::Column`]s with one declaration each: the
//! keys of the task in [`identity`], the axes from the list of components in [`axes`], all others from fields of records.
//! Schema, arrays and documentation follow from the declarations, and depend on this build alone, never on a manifest.
//! Axes and metrics are columns of `tasks` alone: rows of the other tables have its `task_id`.
//!
//! | step | module |
//! |---|---|
//! | largest cells and rows | [`bounds`] |
//! | rows -> Arrow batch | [`tasks::Builder`], [`jobs::Builder`], [`series::Builder`], [`accounts::Builder`], [`failures::Builder`] |
//! | rows of another table joined with columns of their tasks | [`join`] |
//! | batch -> bytes on the wire and back | [`wire`] |
//! | rows of hand-ins that are in no part yet | [`unpublished`] |
//! | columns whose rows are all equal -> one row | [`folded`] |
//! | batches -> one Parquet part with its footer | [`part`] |
//! | parts of workers -> one part | [`merge`] |
//! | a part -> rows that stay and rows that left | [`split`] |
//! | paths of the dataset | [`layout`] |
//!
//! This crate does no input or output and owns no clock.

pub mod accounts;
pub mod axes;
pub mod bounds;
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
pub mod split;
mod table;
pub mod tasks;
pub mod unpublished;
pub mod wire;

pub use error::ResultsError;
pub use rows::Rows;
pub use table::Table;
