//! The tables and their names.

use std::fmt;

/// A table of the dataset, by its folder name. The numbers are in stored keys and values, and are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
pub enum Table {
    /// One row a finished task.
    Tasks = 0,
    /// One row a failed attempt.
    Failures = 1,
    /// One row a simulated job.
    Jobs = 2,
    /// One row a point of a series.
    Series = 3,
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
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
