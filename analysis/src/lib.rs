//! Answers from the rows of an experiment: which rows, grouped how, with which statistic, beside which baseline.
//!
//! All of it works on record batches in memory and knows no files. A caller filters batches by [`Condition`]s and collects
//! the rest in [`Rows`]; [`grouped`] makes a [`Frame`] of it, which can be sorted, cut, pivoted and written as text.
//!
//! Results do not depend on the order in which rows arrive: values are sorted before they are added.

pub mod baseline;
pub mod best;
pub mod calibration;
pub mod cell;
pub mod compare;
pub mod condition;
pub mod frame;
pub mod group;
pub mod rows;
pub mod search;
pub mod stats;
pub mod text;

pub use baseline::ratios;
pub use cell::Cell;
pub use compare::{Comparison, Interval};
pub use condition::{Condition, Op};
pub use frame::Frame;
pub use group::grouped;
pub use rows::{Axis, Rows};
pub use stats::{Stat, student_t};

/// Why a question has no answer. Each text says what to ask instead.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct AnalysisError(pub String);
