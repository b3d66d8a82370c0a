//! Tables and their names.

use std::fmt;

/// A table of the dataset. The numbers are in stored keys and values; a number is never used for another table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
pub enum Table {
    /// One row for each finished task.
    Tasks = 0,
    /// One row for each failed attempt.
    Failures = 1,
    /// One row for each simulated job.
    Jobs = 2,
    /// One row for each point of a series.
    Series = 3,
    /// One row for each task and signal.
    Accounts = 4,
}

impl Table {
    /// All tables.
    pub const ALL: [Table; 5] = [Table::Tasks, Table::Failures, Table::Jobs, Table::Series, Table::Accounts];

    /// The tables whose rows come as uploads of workers.
    pub const OPTIONAL: [Table; 3] = [Table::Jobs, Table::Series, Table::Accounts];

    /// The folder's name.
    pub fn name(self) -> &'static str {
        match self {
            Table::Tasks => "tasks",
            Table::Failures => "failures",
            Table::Jobs => "jobs",
            Table::Series => "series",
            Table::Accounts => "accounts",
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
