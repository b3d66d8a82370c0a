//! Rows of a file, as its form gave them.

use powersweep_experiments::signals::{Form, Quantity, Reading};

use crate::error::{Place, Problem, shortened};
use crate::signals::clock::Clock;
use crate::signals::ledger::Rule;
use crate::signals::unit::{self, Unit};

/// A row of a file, or of the series that is made from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Its time (µs): since 1970 UTC, since 1970 by the file's clock, or from the simulated time 0.
    pub time_us: i64,
    /// Its value in the unit of the quantity; NaN where the file has none.
    pub value: f64,
    /// The number of its line or row in the file, from 1.
    pub line: u32,
    /// Whether the file says that its value is an estimate.
    pub estimated: bool,
}

/// The rows of a file, and what they mean.
#[derive(Debug)]
pub(crate) struct Table {
    pub form: Form,
    pub rows: Vec<Row>,
    /// The place of a row's number.
    pub place: fn(u64) -> Place,
    pub clock: Clock,
    /// Name of the column of times.
    pub time_column: String,
    /// The column of values.
    pub column: ValueColumn,
    /// Where the file says which values are estimates: how many it flags, and how many more it takes from an estimate.
    pub estimates: Option<(u64, u64)>,
    /// Zone of the grid that the file names.
    pub zone: Option<String>,
    /// Whether times are the ends of the intervals of their values.
    pub is_end: bool,
    /// Rows and lines that were dropped, by rule and line.
    pub dropped: Vec<(Rule, u64)>,
}

/// The column of values.
#[derive(Debug)]
pub(crate) struct ValueColumn {
    pub quantity: Quantity,
    pub name: String,
    pub unit: Unit,
}

impl ValueColumn {
    /// The unit is that of the setting, else of the column's name, else the `usual` one of the form.
    pub(crate) fn new(name: &str, reading: &Reading, usual: Option<&str>) -> Result<ValueColumn, Problem> {
        let quantity = reading.quantity;
        let unit = match &reading.unit {
            Some(text) => Unit::of_setting(quantity, text)?,
            None => Unit::in_name(quantity, name).or_else(|| Unit::parse(quantity, usual?)).ok_or_else(|| {
                let (column, examples) = (shortened(name), Unit::examples(quantity));
                Problem::Content(format!("column {column:?} has no unit in its name: set `unit`, such as {examples}"))
            })?,
        };
        if unit.contradicts(quantity, name) {
            let reason = format!(
                "{:?} contradicts the name of the column, {:?}: leave it out; where the name is wrong, or for an exchange rate, \
                 write a factor before the unit, such as \"1 {}\"",
                unit.text,
                shortened(name),
                unit.text
            );
            return Err(Problem::setting("unit", reason));
        }
        Ok(ValueColumn { quantity, name: name.to_owned(), unit })
    }

    /// Checks a unit that the file states beside its values; a text that is no unit of the quantity does not matter.
    pub(crate) fn check_unit(&self, stated: &str) -> Result<(), String> {
        match Unit::parse(self.quantity, stated) {
            Some(stated) if self.unit.differs(&stated) => Err(format!(
                "is another unit than {:?}: where the file is wrong, or for an exchange rate, write a factor before the unit, such \
                 as \"1 {}\"",
                self.unit.text, self.unit.text
            )),
            _ => Ok(()),
        }
    }

    /// A value in the unit of the quantity, or why it is refused.
    pub(crate) fn convert(&self, value: f64) -> Result<f64, String> {
        let converted = self.unit.convert(value);
        match unit::objection(self.quantity, &self.unit, converted) {
            Some(reason) => Err(reason),
            None => Ok(converted),
        }
    }
}
