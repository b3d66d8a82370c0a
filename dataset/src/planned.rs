//! The tasks that a manifest asks for, beside the rows that are there: combinations whose tasks all failed have no row that could
//! name them.

use std::collections::{BTreeMap, HashMap, HashSet};

use powersweep_engine::Value;
use powersweep_experiments::{Decoder, Digest, Manifest, Sweep, TaskSpec};
use powersweep_results::{Table, tasks};

use crate::reading::Reading;
use crate::scan::{self, LABELS, SEED};
use crate::words::count;
use crate::{Cell, Condition, Datasets, Error, Rows, source};

/// Tasks of a larger sweep are not compared with its rows.
const TASKS_MAX: u64 = 1 << 20;
/// Combinations that a note names.
const NAMED: usize = 5;

/// The combinations of a manifest that satisfy conditions.
#[derive(Debug)]
pub struct Planned {
    /// The columns that tell them apart.
    pub columns: Vec<String>,
    /// The combinations, in the order of their tasks.
    pub combinations: Vec<Combination>,
}

/// Tasks that differ in the seed alone.
#[derive(Debug)]
pub struct Combination {
    /// The values of the columns.
    pub cells: Vec<Cell>,
    /// The seeds that the manifest asks for.
    pub seeds: Vec<i64>,
    /// Those of them that have a row.
    pub found: HashSet<i64>,
}

impl Planned {
    /// The combinations of the manifest of the rows; `None` if it is not known, has too many, or a condition is on something that a
    /// task has only once it has run.
    pub fn of(manifest: Option<&Manifest>, only: &[Condition]) -> Option<Planned> {
        let sweep = sweep(manifest?, &BTreeMap::new()).filter(|sweep| sweep.task_count() <= TASKS_MAX)?;
        let known: HashSet<String> = scan::candidates().into_iter().collect();
        let is_known = |column: &str| known.contains(column);
        let is_metric = |column: &str| !is_known(column) && tasks::schema().column_with_name(column).is_some();
        if only.iter().any(|condition| is_metric(&condition.column)) {
            return None;
        }
        let columns = varying(&sweep);
        let mut combinations: Vec<Combination> = Vec::new();
        each(&sweep, |task, is_new| {
            let seed = task.sim.seed.cast_signed();
            let own = |condition: &&Condition| condition.column == SEED;
            let holds_seed = only.iter().filter(own).all(|condition| condition.holds(&Cell::Int(seed)));
            if is_new {
                let values: HashMap<&str, Cell> = attributes(task).collect();
                let cell = |name: &str| values.get(name).cloned().unwrap_or(Cell::Null);
                let mut others =
                    only.iter().filter(|condition| is_known(&condition.column) && condition.column != SEED);
                let seeds = Vec::new();
                let cells = match others.all(|condition| condition.holds(&cell(&condition.column))) {
                    true => columns.iter().map(|name| cell(name)).collect(),
                    false => Vec::new(),
                };
                combinations.push(Combination { cells, seeds, found: HashSet::new() });
            }
            combinations.last_mut().filter(|_| holds_seed).into_iter().for_each(|of| of.seeds.push(seed));
        });
        combinations.retain(|of| of.cells.len() == columns.len() && !of.seeds.is_empty());
        Some(Planned { columns, combinations })
    }

    /// These combinations with the seeds that have rows.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub async fn beside_rows(
        mut self,
        datasets: &Datasets,
        experiment: &str,
        only: &[Condition],
    ) -> Result<Planned, Error> {
        let reading = datasets.read(experiment, Table::Tasks).await?;
        let names: Vec<&str> = self.columns.iter().map(String::as_str).chain([SEED]).collect();
        let of_tasks = only.iter().filter(|condition| tasks::schema().column_with_name(&condition.column).is_some());
        let rows = source::rows(datasets, &reading, [&names, &[]], of_tasks.cloned().collect()).await?;
        let axes = rows.axes();
        let texts: Vec<Vec<String>> = axes.iter().map(|axis| axis.values().iter().map(Cell::exact).collect()).collect();
        let mut known: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
        for (at, of) in self.combinations.iter().enumerate() {
            known.entry(of.cells.iter().map(Cell::exact).collect()).or_default().push(at);
        }
        for row in 0..rows.len() {
            let key: Vec<String> =
                (0..self.columns.len()).map(|at| texts[at][axes[at].code(row) as usize].clone()).collect();
            if let (Some(places), Cell::Int(seed)) = (known.get(&key), axes[self.columns.len()].cell(row)) {
                for at in places {
                    self.combinations[*at].found.insert(*seed);
                }
            }
        }
        Ok(self)
    }

    /// The combinations without a row.
    pub fn missing(&self) -> impl Iterator<Item = &Combination> {
        self.combinations.iter().filter(|of| of.found.is_empty())
    }

    /// The seeds that the manifest asks for in all combinations; the others are not missing where they are not there.
    pub fn seeds_of_all(&self) -> HashSet<i64> {
        let mut all = self.combinations.iter().map(|of| of.seeds.iter().copied().collect::<HashSet<i64>>());
        let first = all.next().unwrap_or_default();
        all.fold(first, |kept, of| kept.into_iter().filter(|seed| of.contains(seed)).collect())
    }

    /// The values of these columns that no combination with a row has, as conditions.
    pub fn without_rows(&self, by: &[&str]) -> Vec<String> {
        let mut groups: BTreeMap<String, bool> = BTreeMap::new();
        for of in &self.combinations {
            let own = self.values(of, by).map(|(name, cell)| format!("{name}={}", cell.exact()));
            let text = own.collect::<Vec<_>>().join(", ");
            *groups.entry(text).or_default() |= !of.found.is_empty();
        }
        groups.into_iter().filter(|(_, has_rows)| !has_rows).map(|(text, _)| text).collect()
    }

    /// Sentences about the tasks without rows: the combinations that have none, and how many groups by these columns lack seeds.
    /// `is_whole`: no part is missing.
    pub fn said(&self, by: &[&str], is_whole: bool) -> Vec<String> {
        let mut said = Vec::new();
        let cause =
            if is_whole { "failed or have not run" } else { "failed, have not run, or have a row in a missing file" };
        let missing = self.missing().count();
        if missing > 0 {
            let of = count(self.combinations.len() as u64, "combination");
            let mut names = self.names_of_missing(NAMED + 1);
            let more = if names.len() > NAMED { ", …" } else { "" };
            names.truncate(NAMED);
            let has = if missing == 1 { "has" } else { "have" };
            said.push(format!("{missing} of {of} {has} no row, since the tasks {cause}: {}{more}", names.join("; ")));
        }
        let mut groups: BTreeMap<Vec<String>, bool> = BTreeMap::new();
        for of in self.combinations.iter().filter(|of| !of.found.is_empty()) {
            let own = self.values(of, by).map(|(_, cell)| cell.exact());
            *groups.entry(own.collect()).or_default() |= of.found.len() < of.seeds.len();
        }
        let lacking = groups.values().filter(|lacks| **lacks).count();
        if lacking > 0 {
            said.push(format!(
                "{lacking} of {} lack seeds that the manifest has, since tasks {cause}: their means are over fewer \
                 inputs; compare equal seeds by a condition such as seed<=2",
                count(groups.len() as u64, "combination")
            ));
        }
        said
    }

    /// The values of a combination in these columns, with the names of the columns.
    fn values<'a>(&'a self, of: &'a Combination, by: &'a [&str]) -> impl Iterator<Item = (&'a String, &'a Cell)> {
        self.columns.iter().zip(&of.cells).filter(|(name, _)| by.contains(&name.as_str()))
    }

    /// Names of combinations without a row, the first `most` that differ: a value that has a row in no combination, else all values
    /// of the combination.
    fn names_of_missing(&self, most: usize) -> Vec<String> {
        let mut with_rows: Vec<HashSet<String>> = vec![HashSet::new(); self.columns.len()];
        for of in self.combinations.iter().filter(|of| !of.found.is_empty()) {
            with_rows.iter_mut().zip(&of.cells).for_each(|(known, cell)| known.extend([cell.exact()]));
        }
        let mut names = Vec::new();
        for of in self.missing() {
            let text = |at: usize| format!("{}={}", self.columns[at], of.cells[at].exact());
            let valued = || (0..self.columns.len()).filter(|at| !of.cells[*at].is_null());
            let alone = valued().find(|at| !with_rows[*at].contains(&of.cells[*at].exact()));
            let name = alone.map_or_else(|| valued().map(text).collect::<Vec<_>>().join(", "), text);
            if !names.contains(&name) {
                names.push(name);
            }
            if names.len() == most {
                break;
            }
        }
        names
    }
}

/// The manifest of rows; `None` where it is not known. Rows of an earlier version may have a manifest that is none today.
///
/// # Errors
/// The rows cannot be read.
pub async fn manifest(reading: &Reading) -> Result<Option<Manifest>, Error> {
    Ok(reading.manifest().await?.and_then(|text| Manifest::parse("the manifest of the rows", &text).ok()))
}

/// Whether all tasks of a manifest have rows, if there are this many.
pub fn is_complete(manifest: &Manifest, rows: u64) -> bool {
    sweep(manifest, &BTreeMap::new()).is_none_or(|sweep| rows >= sweep.task_count())
}

/// The sweep of a manifest with the known digests of its logs, in hexadecimal digits. Other files are told apart by their names:
/// combinations do not depend on their contents.
pub(crate) fn sweep(manifest: &Manifest, log_digests: &BTreeMap<String, String>) -> Option<Sweep> {
    let known = |name: &str| log_digests.get(name).and_then(|digest| digest.parse().ok());
    let digests = manifest.files().into_iter().map(|file| {
        let digest = known(&file.name).unwrap_or_else(|| Digest::of(file.name.as_bytes()));
        (file.name, digest)
    });
    Sweep::new(manifest.clone(), digests.collect()).ok()
}

impl Rows {
    /// These rows, and one without a value for each combination that has none. Columns that do not tell combinations apart have the
    /// value of the rows.
    pub fn with_missing(mut self, planned: &Planned) -> Rows {
        let has_seed =
            |rows: &Rows, seed: i64| rows.axis(SEED).is_some_and(|axis| axis.values().contains(&Cell::Int(seed)));
        for of in planned.missing() {
            let seed = of.seeds.iter().find(|seed| has_seed(&self, **seed)).or(of.seeds.first()).copied();
            self.add_empty(|name, only| match planned.columns.iter().position(|column| column == name) {
                Some(at) => of.cells[at].clone(),
                None if name == SEED => seed.map_or(Cell::Null, Cell::Int),
                None => only.cloned().unwrap_or(Cell::Null),
            });
        }
        self
    }
}

/// Calls `each` with all tasks in their order, and with whether a task has other choices than the last one.
fn each(sweep: &Sweep, mut each: impl FnMut(&TaskSpec, bool)) {
    let mut decoder = Decoder::new(sweep.clone());
    let mut last: Option<TaskSpec> = None;
    let mut next = sweep.next_included(0);
    while let Some(task) = next.and_then(|index| decoder.task(index)) {
        next = sweep.next_included(task.index + 1);
        each(&task, !last.as_ref().is_some_and(|last| last.sim.shares_choices(&task.sim)));
        last = Some(task);
    }
}

/// The labels, components and parameters that tell the combinations of a sweep apart: those that vary, without what the labels
/// determine.
fn varying(sweep: &Sweep) -> Vec<String> {
    /// The first value of a column, by labels, and whether there is another one: at all, or beside equal labels.
    #[derive(Default)]
    struct Seen {
        first: Option<Cell>,
        by_labels: HashMap<usize, Cell>,
        varies: bool,
        varies_beside_labels: bool,
    }
    let (mut labels, mut seen): (HashMap<_, usize>, BTreeMap<&str, Seen>) = Default::default();
    each(sweep, |task, is_new| {
        let next = labels.len();
        let key = (task.workload.clone(), task.platform.clone(), task.policy.clone());
        let label = *labels.entry(key).or_insert(next);
        for (name, value) in attributes(task).filter(|_| is_new) {
            let column = seen.entry(name).or_default();
            column.varies |= *column.first.get_or_insert_with(|| value.clone()) != value;
            column.varies_beside_labels |= *column.by_labels.entry(label).or_insert_with(|| value.clone()) != value;
        }
    });
    let tells = |name: &String| {
        let of = seen.get(name.as_str());
        of.is_some_and(|of| of.varies && (LABELS.contains(&name.as_str()) || of.varies_beside_labels))
    };
    scan::candidates().into_iter().filter(tells).collect()
}

/// The labels, components and parameters of a task.
fn attributes(task: &TaskSpec) -> impl Iterator<Item = (&'static str, Cell)> {
    let labels = LABELS.into_iter().zip([&task.workload, &task.platform, &task.policy]);
    let labels = labels.map(|(name, label)| (name, Cell::Text(label.to_string())));
    let chosen = || task.sim.choices().filter(|choice| task.sim.applies(choice.component().role));
    let roles = chosen().map(|choice| (choice.component().role.key(), Cell::Text(choice.component().name.to_owned())));
    let params = chosen().flat_map(|choice| choice.values());
    labels.chain(roles).chain(params.map(|(name, value)| (name, cell(value))))
}

fn cell(value: &Value) -> Cell {
    match value {
        Value::Bool(value) => Cell::Bool(*value),
        Value::Int(value) => Cell::Int(*value),
        Value::Real(value) => Cell::Real(*value),
        Value::Text(text) => Cell::Text(text.clone()),
        Value::Reals(values) => Cell::List(values.clone()),
    }
}
