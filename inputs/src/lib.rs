//! Inputs of tasks.
//!
//! - [`library`] finds logs and other files by name, path or URL, and caches them on disk and in memory.
//! - [`joblogs`] reads job logs of real systems as logs in the Standard Workload Format.
//! - [`signals`] reads values over time, such as carbon intensity and price.
//! - [`points`] reads the points of a design.
//! - [`ReadError`] says why one of them refuses a file; [`ledger`] counts what they did to rows.
//! - `table` has what they share: tables of text and of Parquet, and the times in their cells.
//!
//! The readers `joblogs` and `signals` take bytes and settings. They have no knowledge of files, network, clocks or tasks;
//! `library` alone opens files and connections.

mod error;
pub mod joblogs;
pub mod ledger;
pub mod library;
pub mod points;
pub mod signals;
mod table;

pub use error::{Place, Problem, ReadError};
