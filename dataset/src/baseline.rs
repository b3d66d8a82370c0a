//! The partner of each row in a baseline.
//!
//! A row is compared with the row of the baseline that has the same workload, machine, seed and so on. These are the columns in
//! which the rows of the baseline differ from each other, all columns of what no condition is about, and the label of blocks that
//! the conditions divide: a baseline whose rows have one seed, because others failed, is no partner of another seed. With the
//! same seed, both simulate the same jobs (common random numbers), and the ratio varies less than its two parts.

use std::collections::{BTreeSet, HashMap};

use crate::error::{Error, usage};
use crate::subject::{LABELS, subject};
use crate::{Axis, Cell, Condition, Rows};

/// Values of a column in a message.
const VALUES_SHOWN: usize = 8;

/// The pairs of a baseline.
#[derive(Debug)]
pub struct Baseline {
    /// For each row its row of the baseline.
    pub of: Vec<Option<usize>>,
    /// The columns by which rows are paired.
    pub by: Vec<String>,
}

impl Baseline {
    /// Number of rows without a partner.
    pub fn lacking(&self) -> usize {
        self.of.iter().filter(|base| base.is_none()).count()
    }
}

/// Finds the row of the baseline of each row. The baseline are the rows that satisfy all conditions; `rows` must have the
/// columns of the conditions among its axes, and all columns in which rows may differ.
pub fn pairs(rows: &Rows, conditions: &[Condition]) -> Result<Baseline, Error> {
    let text = || conditions.iter().map(|condition| condition.column.as_str()).collect::<Vec<_>>().join(", ");
    let is_named = |axis: &Axis| conditions.iter().any(|condition| condition.column == axis.name());
    let named: Vec<&Axis> = rows.axes().iter().filter(|axis| is_named(axis)).collect();
    let is_base = |row: usize| {
        named.iter().all(|axis| {
            let mut own = conditions.iter().filter(|condition| condition.column == axis.name());
            own.all(|condition| condition.holds(axis.cell(row)))
        })
    };
    let base: Vec<usize> = (0..rows.len()).filter(|row| is_base(*row)).collect();
    let Some(&first) = base.first() else {
        let found = |axis: &&Axis| {
            // Rows come in the order in which tasks ended.
            let mut values: Vec<&Cell> = axis.values().iter().collect();
            values.sort_by(|one, other| one.order(other));
            let values = values.into_iter().take(VALUES_SHOWN).map(Cell::exact).collect::<Vec<_>>().join(", ");
            let more = if axis.values().len() > VALUES_SHOWN { ", ..." } else { "" };
            format!("{} is {values}{more}", axis.name())
        };
        let found = named.iter().map(found).collect::<Vec<_>>().join("; ");
        return Err(usage(format!("no row is in the baseline; in the rows, {found}")));
    };
    let differs = |axis: &Axis| base.iter().any(|row| axis.code(*row) != axis.code(first));
    let is_other = |axis: &Axis| {
        let about = subject(axis.name());
        about.is_some() && conditions.iter().all(|condition| subject(&condition.column) != about)
    };
    // A block has rows inside and outside of the baseline: it has partners of its own.
    let is_divided = |axis: &Axis| {
        let of_base: BTreeSet<u32> = base.iter().map(|row| axis.code(*row)).collect();
        LABELS.contains(&axis.name()) && (0..rows.len()).any(|row| of_base.contains(&axis.code(row)) && !is_base(row))
    };
    let is_key = |axis: &&Axis| !is_named(axis) && (differs(axis) || is_other(axis) || is_divided(axis));
    let by: Vec<&Axis> = rows.axes().iter().filter(is_key).collect();
    let key = |row: usize| by.iter().map(|axis| axis.code(row)).collect::<Vec<_>>();
    let mut known = HashMap::new();
    for row in base {
        if known.insert(key(row), row).is_some() {
            let more = "add a condition, so that one row is left for each of the others";
            return Err(usage(format!("two rows of the baseline differ in {} alone: {more}", text())));
        }
    }
    let of = (0..rows.len()).map(|row| known.get(&key(row)).copied()).collect();
    Ok(Baseline { of, by: by.iter().map(|axis| axis.name().to_owned()).collect() })
}
