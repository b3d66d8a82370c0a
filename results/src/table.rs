//! The kinds of tables of an experiment's dataset.

use std::fmt;

use arrow::datatypes::SchemaRef;

use crate::columns::Column;
use crate::{accounts, failures, jobs, series, tasks};

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
    /// All tables, in the order of the documentation.
    pub const ALL: [Table; 5] = [Table::Tasks, Table::Jobs, Table::Series, Table::Accounts, Table::Failures];

    /// The tables that a manifest asks for. Their rows come as uploads of workers.
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

    /// Meaning of a row.
    pub fn row(self) -> &'static str {
        match self {
            Table::Tasks => "one finished task (one simulation)",
            Table::Jobs => "one simulated job of one task; written when the manifest asks for it",
            Table::Series => "one point of a series or distribution of one task; written when the manifest asks for it",
            Table::Accounts => "one task under one signal; written when the manifest has signals",
            Table::Failures => "one failed attempt at a task",
        }
    }

    /// Whether only manifests that ask for the table have rows in it.
    pub fn is_optional(self) -> bool {
        Table::OPTIONAL.contains(&self)
    }

    /// The columns in order.
    pub fn columns(self) -> Vec<Column> {
        match self {
            Table::Tasks => tasks::columns(),
            Table::Failures => failures::columns(),
            Table::Jobs => jobs::columns(),
            Table::Series => series::columns(),
            Table::Accounts => accounts::columns(),
        }
    }

    /// The Arrow schema.
    pub fn schema(self) -> SchemaRef {
        match self {
            Table::Tasks => tasks::schema(),
            Table::Failures => failures::schema(),
            Table::Jobs => jobs::schema(),
            Table::Series => series::schema(),
            Table::Accounts => accounts::schema(),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
