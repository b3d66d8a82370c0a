//! The kinds of figures. Each file builds the spec of one kind from rows that the caller has aggregated.

mod bars;
mod cdf;
mod code;
mod effect;
mod gantt;
mod heatmap;
mod lines;
mod parallel;
mod pareto;
mod processors;
mod scales;
mod steps;

pub use bars::bars;
pub use cdf::cdf;
pub use effect::effect;
pub use gantt::{Gantt, gantt};
pub use heatmap::heatmap;
pub use lines::lines;
pub use parallel::parallel;
pub use pareto::{Better, pareto};
pub use steps::steps;

use crate::error::Result;
use crate::table::Table;

/// Which columns a figure draws, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Axes {
    /// Column along the horizontal axis.
    pub x: String,
    /// Column along the vertical axis.
    pub y: String,
    /// Columns with the lower and the upper end of the interval around `y`, null where there is none.
    pub interval: Option<(String, String)>,
    /// Column whose values have different colours, dashes or shapes.
    pub colour: Option<String>,
    /// Column whose values have panels of their own.
    pub facet: Option<String>,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
}

impl Axes {
    /// Two axes, without colours and panels.
    pub fn of(x: &str, y: &str) -> Axes {
        Axes { x: x.to_owned(), y: y.to_owned(), ..Axes::default() }
    }

    /// The columns whose values are names: colour and panels.
    fn names(&self) -> Vec<&str> {
        self.colour.iter().chain(&self.facet).map(String::as_str).collect()
    }

    /// The rows with a number in these columns, names as texts.
    fn rows(&self, table: &Table, numbers: &[&str], names: &[&str]) -> Result<Table> {
        let names: Vec<&str> = self.names().into_iter().chain(names.iter().copied()).collect();
        for name in &names {
            table.column(name)?;
        }
        if let Some(facet) = &self.facet {
            code::few(table.column(facet)?, crate::look::PANELS_MAX)?;
        }
        Ok(table.drawable(numbers)?.with_texts(&names))
    }
}
