//! Names and stored numbers of the tables.

use std::fmt;

/// A table of the dataset, by its folder name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// One row a finished task.
    Tasks,
    /// One row a failed attempt.
    Failures,
    /// One row a simulated job.
    Jobs,
    /// One row a point of a series.
    Series,
}

impl Table {
    /// All tables.
    pub const ALL: [Table; 4] = [Table::Tasks, Table::Failures, Table::Jobs, Table::Series];

    /// The folder's name.
    pub fn name(self) -> &'static str {
        match self {
            Table::Tasks => "tasks",
            Table::Failures => "failures",
            Table::Jobs => "jobs",
            Table::Series => "series",
        }
    }

    /// The table of a folder name.
    pub fn from_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Number in stored keys and values; never reused.
    pub(crate) fn code(self) -> u8 {
        match self {
            Table::Tasks => 1,
            Table::Failures => 2,
            Table::Jobs => 3,
            Table::Series => 4,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.code() == code)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
