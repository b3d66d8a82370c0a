//! Which columns a figure draws.

use powersweep_dataset::Frame;

use super::code::{few, is_ordered};
use crate::Result;
use crate::rows::{drawable, with_texts};

/// Which columns a figure draws, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Axes {
    /// Column along the horizontal axis.
    pub x: String,
    /// Column along the vertical axis.
    pub y: String,
    /// Columns with the lower and the upper end of the interval around `y`, null where there is none.
    pub interval: Option<(String, String)>,
    /// Columns with the ends of the interval around `x`, which Pareto fronts and points show.
    pub interval_x: Option<(String, String)>,
    /// Column whose values have different colours, dashes or shapes.
    pub colour: Option<String>,
    /// All values of the column of colours, in their order. A value has one colour in all figures of some of them. Empty:
    /// the values of the rows.
    pub levels: Vec<String>,
    /// Column whose values have panels of their own.
    pub facet: Option<String>,
    /// Columns of the path of a point of a Pareto front, and of its place on the path: points of one path are joined.
    pub joined: Option<(String, String)>,
    /// Column with a limit of `y`, which points show as a dashed line.
    pub limit: Option<String>,
    /// Column with a value for the points that are encircled: the answers of a search.
    pub answer: Option<String>,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// Whether each panel has a horizontal scale of its own.
    pub free_x: bool,
    /// Whether each panel has a vertical scale of its own.
    pub free_y: bool,
    /// Whether points have axes from 0 on, and a dotted line where both columns are equal.
    pub diagonal: bool,
    /// Column with a name for rows that were published elsewhere, and without a value for the others: bars and lines show
    /// published rows as points that the legend names.
    pub published: Option<String>,
}

impl Axes {
    /// Two axes, without colours and panels.
    pub fn of(x: &str, y: &str) -> Axes {
        Axes { x: x.to_owned(), y: y.to_owned(), ..Axes::default() }
    }

    /// The scales that each panel has for itself.
    pub(crate) fn free(&self) -> Vec<&'static str> {
        let has_panels = self.facet.is_some();
        let all = [(self.free_x, "x"), (self.free_y, "y")].into_iter();
        all.filter_map(|(is_free, name)| (is_free && has_panels).then_some(name)).collect()
    }

    /// The columns whose values are names: colour and panels.
    pub(super) fn names(&self) -> Vec<&str> {
        self.colour.iter().chain(&self.facet).map(String::as_str).collect()
    }

    /// The rows with a number in these columns, names as texts.
    pub(super) fn rows(&self, table: &Frame, numbers: &[&str], names: &[&str]) -> Result<Frame> {
        let names: Vec<&str> = self.names().into_iter().chain(names.iter().copied()).collect();
        for name in &names {
            table.column(name)?;
        }
        if let Some(facet) = &self.facet {
            few(&table.column(facet)?, crate::look::PANELS_MAX)?;
        }
        Ok(with_texts(&drawable(table, numbers)?, &names))
    }

    /// The rows with a value of `x` and a number of `y`. Values that are no numbers of an axis are names along it.
    pub(super) fn rows_along(&self, table: &Frame, is_number: bool) -> Result<Frame> {
        let x = table.column(&self.x)?;
        if is_number {
            return self.rows(table, &[&self.x, &self.y], &[]);
        }
        let known = if is_ordered(&x) { table.kept(|row| !x.cell(row).is_null()) } else { table.clone() };
        self.rows(&known, &[&self.y], &[&self.x])
    }
}
