//! What can go wrong with a figure.

use powersweep_dataset::failure;
use thiserror::Error;

/// An error of a figure. Trying again does not help, except after [`FigureError::Stopped`].
#[derive(Debug, Error)]
pub enum FigureError {
    /// A column that the figure names is not in its table.
    #[error(transparent)]
    NoColumn(#[from] powersweep_dataset::Error),
    /// A column of texts is used as numbers.
    #[error("`{0}` has texts, and this axis needs numbers: name a column such as wait_s_mean, or swap the axes")]
    NotNumbers(String),
    /// Nothing can be drawn.
    #[error("there is nothing to draw: {0}")]
    Empty(String),
    /// A column that is told apart by colour, panel or line has too many values.
    #[error("`{column}` has {count} values, and a figure tells at most {most} apart: choose some of them")]
    TooMany {
        /// Name of the column.
        column: String,
        /// Number of its values.
        count: usize,
        /// Number of values that a figure tells apart.
        most: usize,
    },
    /// The style is no JSON object.
    #[error("a style is a JSON object with keys of the Vega-Lite config, such as {{\"axis\": {{\"grid\": false}}}}")]
    Style,
    /// The caller stopped the drawing.
    #[error("the figure took too long and was stopped: draw fewer rows, by conditions")]
    Stopped,
    /// The drawing needs more memory than it may have.
    #[error("the figure needs more than {0} MiB: draw fewer rows, by conditions")]
    Memory(usize),
    /// Vega or Vega-Lite refused the spec.
    #[error("the figure cannot be drawn: {0}")]
    Drawing(String),
    /// A drawing cannot be converted into the format.
    #[error("the figure cannot be written as {format}: {reason}")]
    Format {
        /// The format.
        format: &'static str,
        /// The reason of the library.
        reason: String,
    },
}

/// A result with [`FigureError`].
pub type Result<T> = std::result::Result<T, FigureError>;

/// An error of the question, unless the drawing itself has failed.
impl From<FigureError> for powersweep_dataset::Error {
    fn from(error: FigureError) -> powersweep_dataset::Error {
        match error {
            FigureError::NoColumn(error) => error,
            FigureError::Drawing(_) | FigureError::Format { .. } | FigureError::Stopped | FigureError::Memory(_) => {
                failure!(Failure, "{error}")
            }
            _ => failure!(Usage, "{error}"),
        }
    }
}
