//! The value of a selection: rows, groups, operations.

use std::collections::BTreeMap;

use powersweep_dataset::replicates::{Interval, Replicates, SEED};
use powersweep_engine::Value;
use powersweep_results::Table;

use crate::rows::{Needed, Rows, shown};
use crate::selection::{Aggregate, Conditions, ELEMENT, MANIFEST, Selection};

/// The keys that a selection inherits from the selection around it.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) manifest: String,
    pub(crate) table: Table,
    pub(crate) column: Option<String>,
    pub(crate) conditions: Conditions,
    pub(crate) by: Vec<String>,
    pub(crate) aggregate: Aggregate,
}

/// Values by group. The keys are the cells of the columns `by`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Groups<V = f64> {
    pub(crate) by: Vec<String>,
    pub(crate) values: BTreeMap<Vec<String>, V>,
}

impl Scope {
    /// The scope around a claim's value: the conditions of the repetition only.
    pub(crate) fn outermost(manifest: &str, fixed: &[(String, Value)], paired: &[String]) -> Scope {
        let named = fixed.iter().find(|(name, _)| name == MANIFEST);
        Scope {
            manifest: named.map_or_else(|| manifest.to_owned(), |(_, name)| name.to_string()),
            table: Table::Tasks,
            column: None,
            conditions: conditions(fixed),
            by: paired.to_vec(),
            aggregate: Aggregate::Only,
        }
    }

    /// The scope of a claim's value: the conditions of the repetition hold together with the conditions of its `runs`.
    pub(crate) fn of_value(&self, selection: &Selection) -> Scope {
        let mut inner = self.within(selection);
        for (column, values) in &self.conditions {
            if !selection.conditions.contains_key(column) {
                inner.conditions.insert(column.clone(), values.clone());
            }
        }
        inner.by = selection.by.clone().unwrap_or_default();
        inner.by.extend(self.by.iter().filter(|name| !selection.by.iter().flatten().any(|by| by == *name)).cloned());
        inner
    }

    /// The scope of a selection inside a selection of this scope.
    pub(crate) fn within(&self, selection: &Selection) -> Scope {
        let mut conditions = match &selection.of_runs {
            None => self.conditions.clone(),
            Some(runs) => {
                let mut conditions = runs.clone();
                let kept = self.conditions.iter().filter(|(column, _)| selection.same.contains(column));
                conditions.extend(kept.map(|(column, values)| (column.clone(), values.clone())));
                conditions
            }
        };
        conditions.extend(selection.conditions.clone());
        let kept = |name: &&String| selection.runs.is_none() || selection.same.contains(name);
        let by = selection.by.clone().unwrap_or_else(|| self.by.iter().filter(kept).cloned().collect());
        Scope {
            manifest: selection.manifest.clone().unwrap_or_else(|| self.manifest.clone()),
            table: selection.rows(self.table),
            column: selection.column.clone().or_else(|| self.column.clone()),
            conditions,
            by,
            aggregate: selection.aggregate.unwrap_or(self.aggregate),
        }
    }

    /// Adds the columns that a selection of this scope reads.
    pub(crate) fn need(&self, selection: &Selection, needed: &mut Needed) {
        let columns = needed.entry((self.manifest.clone(), self.table)).or_default();
        let read = self.conditions.keys().chain(&self.by).chain(&self.column);
        columns.extend(read.filter(|name| *name != ELEMENT).cloned());
        for inner in [&selection.divided_by, &selection.minus].into_iter().flatten() {
            self.within(inner).need(inner, needed);
        }
    }

    /// The value of a selection of this scope.
    pub(crate) fn value(&self, selection: &Selection, rows: &Rows) -> Result<Groups, String> {
        let mut groups = self.aggregated(rows)?;
        if let Some(inner) = &selection.divided_by {
            groups.with(&self.within(inner).value(inner, rows)?, |a, b| a / b)?;
        }
        if let Some(inner) = &selection.minus {
            groups.with(&self.within(inner).value(inner, rows)?, |a, b| a - b)?;
        }
        groups.values.values_mut().for_each(|value| *value = selection.changed(*value));
        for step in selection.then.iter().flatten() {
            groups = groups.reduced(step.aggregate, &step.over)?;
        }
        if let Some(value) = groups.values.values().find(|value| !value.is_finite()) {
            return Err(format!("the value is {value}"));
        }
        Ok(groups)
    }

    /// The means of a selection of this scope with their 95% intervals over the seeds, by these columns. The scope is grouped by them
    /// and by the seed. With `divided_by`, the value is the ratio of two means, with `minus` their difference; rows are paired by
    /// the columns of the selection. An interval without a bound is left out.
    pub(crate) fn intervals(
        &self,
        selection: &Selection,
        rows: &Rows,
        by: &[String],
    ) -> Result<Groups<Interval>, String> {
        let found = rows.values(&self.manifest, self.table, &self.conditions, &self.by, self.column.as_deref())?;
        if found.is_empty() {
            return Err(self.lacks_rows());
        }
        let partners = match selection.divided_by.as_deref().or(selection.minus.as_deref()) {
            Some(inner) => Some(self.within(inner).value(inner, rows)?),
            None => None,
        };
        let (kept, seed) = (positions(&self.by, by)?, position(&self.by, SEED)?);
        let shared = partners.as_ref().map(|partners| positions(&self.by, &partners.by)).transpose()?;
        let mut pairs: BTreeMap<Vec<String>, Vec<(i64, f64, f64)>> = BTreeMap::new();
        for (key, values) in found {
            let cells = |places: &[usize]| places.iter().map(|at| key[*at].clone()).collect::<Vec<_>>();
            let partner = match partners.as_ref().zip(shared.as_ref()) {
                Some((partners, shared)) => partners.partner(&cells(shared))?,
                None => 0.0,
            };
            let seed = key[seed].parse().map_err(|_| format!("`{}` is no seed", key[seed]))?;
            pairs.entry(cells(&kept)).or_default().extend(values.into_iter().map(|value| (seed, partner, value)));
        }
        let interval = |pairs: Vec<(i64, f64, f64)>| {
            let replicates = Replicates::of_pairs(pairs.into_iter(), rows.method(&self.manifest));
            let found = match (&selection.divided_by, &selection.minus) {
                (Some(_), _) => replicates.ratio(),
                (None, Some(_)) => replicates.difference(),
                (None, None) => replicates.mean(),
            };
            let changed = |end| selection.changed(end);
            let bounded = found.ends.filter(|(low, high)| low.is_finite() && high.is_finite());
            let ends = bounded.map(|(low, high)| (changed(low), changed(high)));
            Interval { value: changed(found.value), ends: ends.map(|(one, other)| (one.min(other), one.max(other))) }
        };
        let values = pairs.into_iter().map(|(key, pairs)| (key, interval(pairs))).collect();
        Ok(Groups { by: by.to_vec(), values })
    }

    fn aggregated(&self, rows: &Rows) -> Result<Groups, String> {
        let column = self.column.as_deref();
        let found = rows.values(&self.manifest, self.table, &self.conditions, &self.by, column)?;
        if found.is_empty() && self.aggregate != Aggregate::COUNT {
            return Err(self.lacks_rows());
        }
        let mut values = BTreeMap::new();
        for (key, cells) in found {
            let value = self.aggregate.of(cells).map_err(|why| format!("{why}: {}", self.place()))?;
            values.insert(key, value);
        }
        if values.is_empty() && self.by.is_empty() {
            values.insert(Vec::new(), 0.0);
        }
        Ok(Groups { by: self.by.clone(), values })
    }

    fn lacks_rows(&self) -> String {
        format!("there is no row in the {}", self.place())
    }

    fn place(&self) -> String {
        format!("{} of {} with {}", self.table, self.manifest, shown(&self.conditions))
    }
}

/// The conditions that a repetition adds.
fn conditions(fixed: &[(String, Value)]) -> Conditions {
    let columns = fixed.iter().filter(|(column, _)| column != MANIFEST);
    columns.map(|(column, value)| (column.clone(), vec![value.clone()])).collect()
}

impl Groups {
    /// Combines each group with the group of `other` that has the same key, in the columns by which `other` is grouped.
    fn with(&mut self, other: &Groups, of: impl Fn(f64, f64) -> f64) -> Result<(), String> {
        let positions = positions(&self.by, &other.by)?;
        for (key, value) in &mut self.values {
            let shared: Vec<String> = positions.iter().map(|&i| key[i].clone()).collect();
            *value = of(*value, other.partner(&shared)?);
        }
        Ok(())
    }

    /// The value of the group with this key.
    fn partner(&self, key: &[String]) -> Result<f64, String> {
        self.values.get(key).copied().ok_or_else(|| format!("there is no row to compare with for {}", key.join(", ")))
    }

    /// Aggregates the groups that differ in the columns `over` only; all groups if there are none.
    fn reduced(&self, aggregate: Aggregate, over: &[String]) -> Result<Groups, String> {
        if let Some(name) = over.iter().find(|name| !self.by.contains(name)) {
            return Err(not_grouped(name));
        }
        let kept: Vec<usize> =
            (0..self.by.len()).filter(|&i| !over.is_empty() && !over.contains(&self.by[i])).collect();
        let mut merged: BTreeMap<Vec<String>, Vec<f64>> = BTreeMap::new();
        let mut in_order: Vec<(&Vec<String>, &f64)> = self.values.iter().collect();
        if aggregate == Aggregate::GreatestChange {
            let along = (0..self.by.len()).find(|i| !kept.contains(i)).unwrap_or_default();
            let place = |key: &Vec<String>| key[along].parse().unwrap_or(f64::NAN);
            in_order.sort_by(|(a, _), (b, _)| place(a).total_cmp(&place(b)));
        }
        for (key, value) in in_order {
            merged.entry(kept.iter().map(|&i| key[i].clone()).collect()).or_default().push(*value);
        }
        let values = merged.into_iter().map(|(key, values)| Ok((key, aggregate.of(values)?)));
        Ok(Groups {
            by: kept.iter().map(|&i| self.by[i].clone()).collect(),
            values: values.collect::<Result<_, String>>()?,
        })
    }
}

/// The position of a column among those by which a value is grouped.
fn position(by: &[String], name: &str) -> Result<usize, String> {
    by.iter().position(|own| own == name).ok_or_else(|| not_grouped(name))
}

fn positions(by: &[String], names: &[String]) -> Result<Vec<usize>, String> {
    names.iter().map(|name| position(by, name)).collect()
}

fn not_grouped(name: &str) -> String {
    format!("the value is not grouped by `{name}`")
}
