//! Points that are listed in the manifest, as comma-separated values.

use powersweep_engine::Value;
use powersweep_engine::spec::{Param, Type};

use super::kind::{Generator, Kind, RANGES_MAX};
use super::range::{Range, Scale};

/// The name of the kind.
pub(crate) const NAME: &str = "points";

pub(super) static KIND: Kind = Kind {
    name: NAME,
    doc: "Points of a file of comma-separated values or Parquet, or of the text `points`: a line of parameters, then a line for each \
          point. For points of another program, and for the points that a paper lists.",
    count: "the lines of the points",
    extension: "more lines keep the old points",
    keys: &["points", "file"],
    points: |settings| Some(settings.count),
    ranges_max: RANGES_MAX,
    build: |_| Box::new(Listed { columns: Vec::new(), lens: Vec::new() }),
};

#[derive(Debug)]
struct Listed {
    columns: Vec<Vec<u32>>,
    /// Number of different values of each column.
    lens: Vec<u64>,
}

/// The points whose values have these positions in their ranges.
pub(super) fn generator(ranges: &[Range], columns: Vec<Vec<u32>>) -> Box<dyn Generator> {
    let len = |range: &Range| if let Scale::Listed(values) = &range.scale { values.len() } else { 1 };
    Box::new(Listed { columns, lens: ranges.iter().map(len).collect() })
}

impl Generator for Listed {
    fn coordinate(&self, point: u64, dimension: usize) -> f64 {
        let position = self.columns[dimension][usize::try_from(point).expect("listed")];
        (f64::from(position) + 0.5) / self.lens[dimension] as f64
    }
}

/// The value of a parameter in a cell.
pub(crate) fn value(param: &Param, cell: &str) -> Option<Value> {
    let given = match param.ty {
        Type::Bool => Value::Bool(cell.parse().ok()?),
        Type::Int { .. } => Value::Int(cell.parse().ok()?),
        Type::Real { .. } => cell.parse().map_or_else(|_| Value::Text(cell.to_owned()), Value::Real),
        Type::OneOf(_) | Type::Locator => Value::Text(cell.to_owned()),
        Type::Reals { .. } => Value::Reals(vec![cell.parse().ok()?]),
        _ => return None,
    };
    param.check(given).ok()
}

/// The lines of points of a text, which may begin with a line `# FILE`.
pub(crate) struct Lines<'a> {
    text: &'a str,
    /// The file of the lines; none for lines of the manifest.
    file: Option<&'a str>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Lines<'a> {
        let named = text.strip_prefix("# ").map(|rest| rest.split_once('\n').unwrap_or((rest, "")));
        named.map_or(Lines { text, file: None }, |(file, text)| Lines { text, file: Some(file) })
    }

    /// The text of lines with the name of their file.
    pub(crate) fn of_file(file: &str, lines: &str) -> String {
        format!("# {}\n{lines}", file.replace(char::is_control, " "))
    }

    /// Where the lines stand, for messages.
    pub(crate) fn place(&self) -> &'a str {
        self.file.unwrap_or("the points")
    }

    /// Where a line of points stands: the row of a file of Parquet, whose header is no row, else the line.
    pub(crate) fn at(&self, line: usize) -> String {
        match self.file.filter(|file| file.to_ascii_lowercase().ends_with(".parquet")) {
            Some(file) => format!("row {} of {file}", line.saturating_sub(1)),
            None => format!("line {line} of {}", self.place()),
        }
    }

    /// The header and the lines, each with its number from 1, or its first cell with a quotation mark that does not enclose the
    /// whole of it; empty lines are left out.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (usize, Result<Vec<&'a str>, &'a str>)> {
        (1..)
            .zip(self.text.lines())
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(at, line)| (at, line.split(',').map(|cell| unquoted(cell.trim())).collect()))
    }
}

/// A cell without the quotation marks around it.
fn unquoted(cell: &str) -> Result<&str, &str> {
    let inner = cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')).unwrap_or(cell);
    if inner.contains('"') { Err(cell) } else { Ok(inner) }
}
