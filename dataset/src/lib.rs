//! Answers from the rows of experiments: which rows, grouped how, with which statistic, beside which baseline.
//!
//! | step | module |
//! |---|---|
//! | where the tables of an experiment are | [`tables`]: one trait, [`Datasets`] |
//! | the rows of one table, batch by batch | [`reading`] |
//! | rows that satisfy conditions, with columns of their tasks | [`source`], [`condition`] |
//! | the columns in which rows differ | [`scan`] |
//! | the first rows of an order; a page of them | [`order`], [`page`] |
//! | rows with axes and measures in memory | [`rows`] |
//! | groups with statistics; ratios to a baseline; intervals over replicates | [`grouped`], [`group`], [`baseline`], [`stats`], [`replicates`] |
//! | a small table of answers: sorted, cut, pivoted, as text | [`frame`], [`column`], [`text`] |
//! | comparisons, Pareto fronts, searches, calibration | [`compare`], [`best`], [`search`], [`calibration`] |
//! | means of combinations with their front, and the effect of each axis | [`survey`] |
//! | shares of variance and elementary effects of parameters | [`sensitivity`] |
//! | long names in little room | [`labels`] |
//! | when tasks ran: ended tasks, busy and idle slots over time; a slot for each task | [`activity`], [`lanes`] |
//! | rows for other tools; one sorted copy of a table | [`writing`], [`partial`], [`sorted_copy`] |
//!
//! This crate knows no coordinator, state or network: rows come through the trait [`tables::Tables`]. Results do not depend
//! on the order in which rows arrive: values are sorted before they are added.

pub mod activity;
pub mod baseline;
pub mod best;
pub mod calibration;
pub mod cell;
pub mod column;
pub mod compare;
pub mod condition;
pub mod dependence;
mod error;
pub mod frame;
pub mod group;
pub mod grouped;
pub mod hypervolume;
pub mod labels;
pub mod lanes;
mod notes;
pub mod order;
pub mod page;
pub mod partial;
pub mod planned;
pub mod reading;
pub mod replicates;
pub mod rows;
pub mod scan;
pub mod search;
pub mod sensitivity;
pub mod sorted_copy;
pub mod source;
pub mod stats;
pub mod subject;
pub mod survey;
pub mod tables;
pub mod text;
pub mod titles;
pub mod words;
pub mod writing;

pub use cell::Cell;
pub use column::Column;
pub use compare::Comparison;
pub use condition::{Condition, Op};
pub use error::{Error, Kind, OrKind};
pub use frame::Frame;
pub use group::grouped;
pub use notes::Notes;
pub use reading::Reading;
pub use replicates::Interval;
pub use rows::{Axis, Rows};
pub use stats::{Stat, student_t};
pub use tables::Datasets;
