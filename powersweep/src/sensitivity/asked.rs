//! The tasks that the manifest asks for, beside the rows of an analysis.

use std::collections::{HashMap, HashSet};

use powersweep_dataset::grouped::{SIGNAL, SIGNAL_INDEX};
use powersweep_dataset::planned::Planned;
use powersweep_dataset::{Cell, Condition, Datasets, Error, Rows, failure};
use powersweep_experiments::Manifest;
use powersweep_experiments::signals::Signal;

/// Where the rows are from.
pub(super) struct Scope<'a> {
    pub(super) datasets: &'a Datasets,
    pub(super) experiment: &'a str,
    /// Whether all tasks of the manifest have rows.
    pub(super) is_complete: bool,
    pub(super) only: &'a [Condition],
}

/// Rows of an analysis, and what the manifest says of them.
pub(super) struct Asked {
    /// The rows, then one without values for each cell of a grid that has none.
    pub(super) rows: Rows,
    /// Number of the rows that are there.
    pub(super) real: usize,
    /// The seeds that the manifest asks for in all cells of a grid; `None` if all seeds of the rows count.
    pub(super) seeds: Option<HashSet<i64>>,
    /// Sentences about groups of a design without a row.
    pub(super) refused: Vec<String>,
}

impl Asked {
    /// The rows of a grid, or of a design whose points are in groups by these columns. Several signals have cells of their own, which
    /// the tasks of the manifest do not tell.
    pub(super) async fn of(
        rows: Rows,
        planned: Option<Planned>,
        scope: &Scope<'_>,
        groups: Option<&Vec<&str>>,
    ) -> Result<Asked, Error> {
        let mut asked = Asked { real: rows.len(), rows, seeds: None, refused: Vec::new() };
        let Some(planned) = planned else { return Ok(asked) };
        asked.seeds = groups.is_none().then(|| planned.seeds_of_all());
        if scope.is_complete {
            return Ok(asked);
        }
        let planned = planned.beside_rows(scope.datasets, scope.experiment, scope.only).await?;
        match groups {
            Some(groups) => {
                let said = |of| format!("{of} has no row: its tasks failed or have not run.");
                asked.refused.extend(planned.without_rows(groups).into_iter().map(said));
            }
            None if asked.rows.axis(SIGNAL).is_none_or(|axis| axis.values().len() == 1) => {
                asked.rows = asked.rows.with_missing(&planned);
            }
            None => {}
        }
        Ok(asked)
    }
}

/// Rows of `accounts` with the values that the signals have of designs in a key of their blocks; other rows without a value.
pub(super) fn with_key(rows: Rows, manifest: &Manifest, key: &str) -> Rows {
    let value = |signal: &Signal| {
        let values = signal.points.iter().flat_map(|points| &points.values);
        values.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value.to_string())
    };
    let known: HashMap<(&str, i64), String> = manifest
        .signals()
        .iter()
        .filter_map(|signal| Some(((&*signal.label, i64::try_from(signal.index).ok()?), value(signal)?)))
        .collect();
    let [signals, indices] = [SIGNAL, SIGNAL_INDEX].map(|name| rows.axis(name));
    let texts: Vec<Option<String>> = (0..rows.len())
        .map(|row| match (signals?.cell(row), indices?.cell(row)) {
            (Cell::Text(label), Cell::Int(index)) => known.get(&(label.as_str(), *index)).cloned(),
            _ => None,
        })
        .collect();
    rows.with_texts(key, texts.into_iter())
}

/// The error of two rows of one point or combination with one seed.
pub(super) fn several(of: &str, rows: &Rows, [one, other]: [u32; 2]) -> Error {
    let differ = rows.axes().iter().filter(|axis| axis.code(one as usize) != axis.code(other as usize));
    let differ: Vec<&str> = differ.map(|axis| axis.name()).collect();
    let differ = if differ.is_empty() { "a column that is no axis".to_owned() } else { differ.join(", ") };
    failure!(
        Usage,
        "a {of} has several rows with one seed, which differ in {differ}: choose rows by a condition, or have indices for \
         each of its values"
    )
}
