//! The points of a study, each once, with their tasks.

use std::collections::{BTreeMap, HashMap, HashSet};

use powersweep_dataset::{Cell, Error, failure};
use powersweep_engine::Value;
use powersweep_experiments::{Decoder, DesignPoints, Manifest, Sweep};

use crate::find::Values;
use crate::find::grid::{Attributes, attributes, names};

/// The rows that are there: by task the values of the columns.
pub(super) type Rows = HashMap<String, Vec<Cell>>;

/// The failure of a point that has no task.
const LEFT_OUT: &str = "an [[exclude]] of the manifest leaves this point out";

/// All points that the study knows.
#[derive(Default)]
pub(super) struct Book {
    /// The designs of listed points.
    pub(super) designs: Vec<DesignPoints>,
    pub(super) entries: Vec<Entry>,
    /// By design and values, the number of the entry.
    known: HashMap<(usize, String), usize>,
    /// By task, the number of its entry.
    of_task: HashMap<String, usize>,
    /// By the number of a combination, what it has beside the point.
    groups: BTreeMap<u64, Attributes>,
    /// The names of the groups.
    names: BTreeMap<u64, Values>,
}

/// A point.
pub(super) struct Entry {
    pub(super) design: usize,
    pub(super) values: Vec<Value>,
    /// Number of the combination and id of each task.
    tasks: Vec<(u64, String)>,
    /// Whether the tasks are known.
    pub(super) is_placed: bool,
    /// Number of tasks that have neither a row nor failed for good.
    pub(super) left: usize,
    /// Why tasks failed: the first reason, and the number of tasks.
    pub(super) failure: Option<(String, usize)>,
}

/// Where a point's tasks agree in everything but the seed.
#[derive(Debug, Clone, PartialEq)]
pub struct ToldGroup {
    /// The values that tell it from the other groups.
    pub group: Values,
    /// Number of seeds that have rows which satisfy the conditions.
    pub seeds: usize,
    /// The mean of each metric over the seeds; `None` where a row has no value.
    pub means: Vec<Option<f64>>,
}

impl Book {
    pub(super) fn of(manifest: &Manifest) -> Book {
        Book { designs: manifest.designs().filter(DesignPoints::is_listed).collect(), ..Book::default() }
    }

    /// The design of this name. Without a name, the only one.
    pub(super) fn design(&self, label: Option<&str>) -> Result<usize, Error> {
        let labels = || self.designs.iter().map(DesignPoints::label).collect::<Vec<_>>().join(", ");
        match label {
            None if self.designs.len() == 1 => Ok(0),
            None => Err(failure!(Usage, "the manifest has several designs of points: name one of {}", labels())),
            Some(label) => {
                self.designs.iter().position(|design| design.label() == label).ok_or_else(|| {
                    failure!(Usage, "the manifest has no design of points `{label}`: it has {}", labels())
                })
            }
        }
    }

    /// The values of a point in the order of its design, checked.
    pub(super) fn checked(&self, design: usize, given: &[(String, Value)]) -> Result<Vec<Value>, Error> {
        let of = &self.designs[design];
        let wrong = |reason: &str| failure!(Usage, "a point of the design `{}`: {reason}", of.label());
        let known = |name: &str| of.parameters().any(|parameter| parameter == name);
        if let Some((name, _)) = given.iter().find(|(name, _)| !known(name)) {
            let names: Vec<&str> = of.parameters().collect();
            return Err(wrong(&format!("it has no parameter `{name}`; its parameters are {}", names.join(", "))));
        }
        let value = |(at, parameter): (usize, &str)| {
            let value = given.iter().find(|(name, _)| name == parameter).map(|(_, value)| value.clone());
            let value = value.ok_or_else(|| wrong(&format!("`{parameter}` has no value")))?;
            of.checked(at, value).map_err(|reason| wrong(&reason))
        };
        of.parameters().enumerate().map(value).collect()
    }

    /// The number of a point, and whether it is new.
    pub(super) fn enter(&mut self, design: usize, values: Vec<Value>) -> (usize, bool) {
        let number = self.entries.len();
        let found = *self.known.entry((design, line(&values))).or_insert(number);
        if found == number {
            self.entries.push(Entry { design, values, tasks: Vec::new(), is_placed: false, left: 0, failure: None });
        }
        (found, found == number)
    }

    /// Enters the points of a manifest that has the same designs; returns the numbers of the new ones.
    pub(super) fn enter_all(&mut self, manifest: &Manifest) -> Result<Vec<usize>, Error> {
        let mut new = Vec::new();
        for design in manifest.designs().filter(DesignPoints::is_listed) {
            let at = self.design(Some(design.label()))?;
            let names: Vec<String> = design.parameters().map(str::to_owned).collect();
            for point in 0..design.points_count() {
                let given: Vec<_> = names.iter().cloned().zip(design.values(point)).collect();
                let (number, is_new) = self.enter(at, self.checked(at, &given)?);
                new.extend(is_new.then_some(number));
            }
        }
        Ok(new)
    }

    /// By the names of the designs, the lines of these points after a line of the parameters.
    pub(super) fn lines(&self, points: impl Iterator<Item = usize>) -> BTreeMap<String, String> {
        let mut texts: Vec<String> = self.designs.iter().map(header).collect();
        for point in points.map(|point| &self.entries[point]) {
            texts[point.design] += &line(&point.values);
        }
        self.designs.iter().map(|design| design.label().to_owned()).zip(texts).collect()
    }

    /// Finds the tasks of these points, of which some may have ended. `sweep` has these points alone, in this order.
    pub(super) fn find_tasks(&mut self, sweep: &Sweep, points: &[usize], ended: &HashSet<String>) -> Result<(), Error> {
        let mut by_design: Vec<Vec<usize>> = vec![Vec::new(); self.designs.len()];
        for point in points {
            by_design[self.entries[*point].design].push(*point);
        }
        let mut decoder = Decoder::new(sweep.clone());
        let mut next = sweep.next_included(0);
        while let Some(index) = next {
            next = sweep.next_included(index + 1);
            let found = sweep.points_of(index);
            let listed: Vec<_> = found
                .points
                .iter()
                .filter_map(|point| Some((self.designs.iter().position(|d| *d.label() == *point.design)?, point)))
                .collect();
            let (design, point) = match listed[..] {
                [] => continue,
                [one] => one,
                [(_, one), (_, other), ..] => {
                    return Err(failure!(
                        Usage,
                        "tasks have points of the designs `{}` and `{}`: give the blocks of a task one design of points",
                        one.design,
                        other.design
                    ));
                }
            };
            let Some(task) = decoder.task(index) else { continue };
            if !point.is_whole {
                return Err(failure!(
                    Usage,
                    "a task of the policy `{}` lacks parameters of the design `{}`, so that different points would be one task: \
                     give each combination of components a block and a design of its own",
                    task.policy,
                    point.design
                ));
            }
            let number = by_design[design][usize::try_from(point.point).unwrap_or(usize::MAX)];
            let id = task.task_id.to_string();
            let names: Vec<&str> = self.designs[design].parameters().collect();
            self.groups.entry(found.combination).or_insert_with(|| attributes(&task, |name| names.contains(&name)));
            self.of_task.insert(id.clone(), number);
            let entry = &mut self.entries[number];
            entry.left += usize::from(!ended.contains(&id));
            entry.tasks.push((found.combination, id));
        }
        for point in points {
            let entry = &mut self.entries[*point];
            entry.is_placed = true;
            if entry.tasks.is_empty() {
                entry.failure = Some((LEFT_OUT.to_owned(), 1));
            }
        }
        if self.names.len() < self.groups.len() {
            let all: Vec<&Attributes> = self.groups.values().collect();
            self.names = self.groups.keys().copied().zip(names(&all)).collect();
        }
        Ok(())
    }

    /// Counts a task as ended, once.
    pub(super) fn end_task(&mut self, task: &str, ended: &mut HashSet<String>) {
        if ended.insert(task.to_owned())
            && let Some(point) = self.of_task.get(task)
        {
            self.entries[*point].left -= 1;
        }
    }

    /// Whether the tasks of a point are known and have ended.
    pub(super) fn has_ended(&self, point: usize) -> bool {
        let entry = &self.entries[point];
        entry.is_placed && entry.left == 0
    }

    /// The tasks of points that have not ended, each with the number of its point.
    pub(super) fn tasks_of_open(&self) -> impl Iterator<Item = (usize, &str)> {
        let open = self.entries.iter().enumerate().filter(|(_, entry)| entry.left > 0);
        open.flat_map(|(number, entry)| entry.tasks.iter().map(move |(_, id)| (number, id.as_str())))
    }

    /// The groups of a point with their means.
    pub(super) fn groups(&self, point: usize, rows: &Rows, metrics: usize) -> Vec<ToldGroup> {
        let entry = &self.entries[point];
        let mut found: BTreeMap<u64, Vec<&Vec<Cell>>> = BTreeMap::new();
        for (combination, id) in &entry.tasks {
            let own = found.entry(*combination).or_default();
            own.extend(rows.get(id));
        }
        let mean = |rows: &[&Vec<Cell>], at: usize| {
            let values: Option<Vec<f64>> = rows.iter().map(|row| row[at].number().filter(|v| !v.is_nan())).collect();
            values.filter(|values| !values.is_empty()).and_then(|mut values| {
                values.sort_unstable_by(f64::total_cmp);
                powersweep_dataset::stats::mean(&values)
            })
        };
        let group = |(combination, rows): (u64, Vec<&Vec<Cell>>)| ToldGroup {
            group: self.names[&combination].clone(),
            seeds: rows.len(),
            means: (0..metrics).map(|at| mean(&rows, at)).collect(),
        };
        found.into_iter().map(group).collect()
    }
}

/// The line of the parameters of a design.
fn header(design: &DesignPoints) -> String {
    design.parameters().collect::<Vec<_>>().join(",") + "\n"
}

/// The line of a point: values that give the same values again when they are read.
fn line(values: &[Value]) -> String {
    let cell = |value: &Value| match value {
        Value::Real(value) if *value == f64::INFINITY => "unlimited".to_owned(),
        Value::Real(value) => format!("{value:?}"),
        value => value.to_string(),
    };
    values.iter().map(cell).collect::<Vec<_>>().join(",") + "\n"
}
