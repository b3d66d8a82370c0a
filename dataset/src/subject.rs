//! The subject of a column: a block of the manifest, the seed, or a key of a row.

use powersweep_engine::components::COMPONENTS;
use powersweep_engine::spec::{Role, Section};
use powersweep_results::Table;

use crate::replicates::SEED;

/// Columns with the names of a manifest's blocks.
pub const LABELS: [&str; 3] = ["workload", "platform", "policy"];
/// The column that tells the signals of `accounts` apart.
pub const SIGNAL: &str = "signal";
/// The number of a combination of the lists in a signal's block.
pub const SIGNAL_INDEX: &str = "signal_index";

/// The columns of a table, beside its task, that tell its rows apart.
pub fn keys(table: Table) -> &'static [&'static str] {
    match table {
        Table::Jobs => &["job_id"],
        Table::Series => &["series", "level", "x"],
        Table::Accounts => &[SIGNAL, SIGNAL_INDEX],
        Table::Tasks | Table::Failures => &[],
    }
}

/// The subject of a column: of a component or a parameter the label of its block, of a label, the seed or a key of a row the column
/// itself. `None` for columns that do not tell tasks apart, such as metrics.
pub fn subject(column: &str) -> Option<&str> {
    let label = |section: Section| match section {
        Section::Workloads => LABELS[0],
        Section::Platforms => LABELS[1],
        Section::Policies => LABELS[2],
        Section::Statistics => "statistics",
    };
    let has = |role: &Role| {
        let mut params = COMPONENTS.iter().filter(|of| of.role == *role).flat_map(|of| of.params);
        role.key() == column || params.any(|param| param.name == column)
    };
    match column {
        SIGNAL | SIGNAL_INDEX => Some(SIGNAL),
        SEED => Some(SEED),
        _ if LABELS.contains(&column) || Table::ALL.iter().any(|table| keys(*table).contains(&column)) => Some(column),
        _ => Role::ALL.iter().find(|role| has(role)).map(|role| label(role.section())),
    }
}
