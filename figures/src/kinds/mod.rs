//! The kinds of figures. Each file builds the spec of one kind from rows that the caller has aggregated.

mod axes;
mod bars;
mod cdf;
mod code;
mod effect;
mod gantt;
mod heatmap;
mod limits;
mod lines;
mod parallel;
mod pareto;
mod points;
mod processors;
mod published;
mod replicates;
mod scales;
mod stacked;
mod steps;

pub use axes::Axes;
pub use bars::bars;
pub use cdf::cdf;
pub use effect::effect;
pub use gantt::{Gantt, gantt};
pub use heatmap::heatmap;
pub(crate) use limits::Limits;
pub use lines::lines;
pub use parallel::parallel;
pub use pareto::{Better, pareto};
pub use points::points;
pub use replicates::By;
pub use stacked::stacked;
pub use steps::steps;
