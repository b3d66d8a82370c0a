//! The tasks that a search may run, by group and candidate.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use powersweep_dataset::{Error, failure};
use powersweep_engine::Value;
use powersweep_engine::seeds::{self, Dependence};
use powersweep_engine::spec::{Role, Section};
use powersweep_experiments::reading::add_new;
use powersweep_experiments::{Decoder, Derivation, Over, Sweep, TaskSpec};

/// Maximum number of tasks of the full grid: each is held with its id.
const TASKS_MAX: u64 = 1_000_000;

use super::found::Values;

/// The labels, the components and the parameters of tasks.
pub(crate) type Attributes = [BTreeMap<String, Value>; 3];

/// Conditions of an `[[exclude]]` table.
pub(crate) type Rule = Vec<(String, Vec<Value>)>;

/// Positions that a rule names: the values of all axes but the first, the rung (none without rungs), and the seeds (none stand for
/// all).
type Line<'a> = (&'a [usize], Option<usize>, Vec<usize>);

/// The full grid: every group with every candidate and every seed.
pub(crate) struct Grid {
    pub(crate) axes: Vec<Over>,
    /// A value for each axis; the last axis is the fastest.
    pub(crate) candidates: Vec<Vec<Value>>,
    /// Of each candidate the positions of its values in the axes.
    pub(crate) positions: Vec<Vec<usize>>,
    pub(crate) groups: Vec<Group>,
    /// Groups without these parameters, or with fixed ones.
    pub(crate) left_out: Vec<Values>,
    seeds: Vec<u64>,
    /// Labels of the workloads on which candidates run one after the other; empty if each workload has groups of its own.
    rungs: Vec<String>,
}

/// Greatest number of workloads that are rungs.
pub(super) const RUNGS_MAX: usize = 3;

/// Tasks that differ in the candidate and the seed alone. Each has an answer of its own.
pub(crate) struct Group {
    /// What tells it from the others: labels, components and parameters with their values.
    pub(crate) name: Values,
    /// The dependence of the seeds of its tasks.
    pub(crate) seeds: Dependence,
    /// Of each candidate the tasks, by rung and seed; none where the manifest excludes the candidate.
    pub(crate) tasks: Vec<Vec<Task>>,
}

impl Group {
    /// Whether its seeds are draws from one log.
    pub(super) fn is_drawn(&self) -> bool {
        matches!(self.seeds, Dependence::Resampled(_))
    }
}

/// A task of the grid.
pub(crate) struct Task {
    pub(crate) id: String,
    /// Position of its seed.
    pub(crate) seed: usize,
    /// Position of its workload among the rungs; 0 without rungs.
    pub(super) rung: usize,
}

/// A group while the tasks are read.
struct Found {
    attributes: Attributes,
    group: Group,
    fixed: bool,
}

impl Grid {
    /// The grid of the sweep of all candidates.
    pub(crate) fn of(sweep: &Sweep, axes: Vec<Over>, rungs: &[String]) -> Result<Grid, Error> {
        check_rungs(sweep, rungs)?;
        if sweep.task_count() > TASKS_MAX {
            let count = sweep.task_count();
            return Err(failure!(Usage, "the full grid has {count} tasks, more than {TASKS_MAX}: give a greater step"));
        }
        let positions = positions(&axes);
        let value = |(axis, at): (&Over, &usize)| axis.values[*at].clone();
        let candidates: Vec<Vec<Value>> = positions.iter().map(|at| axes.iter().zip(at).map(value).collect()).collect();
        let places: HashMap<String, usize> =
            candidates.iter().enumerate().map(|(at, values)| (key(values.iter()), at)).collect();
        let (mut known, mut found): (HashMap<String, usize>, Vec<Found>) = (HashMap::new(), Vec::new());
        let (mut seeds, mut of_seed): (Vec<u64>, HashMap<u64, usize>) = (Vec::new(), HashMap::new());
        let mut decoder = Decoder::new(sweep.clone());
        let mut next = sweep.next_included(0);
        let mut last: Option<(TaskSpec, usize, Option<usize>)> = None;
        while let Some(task) = next.and_then(|index| decoder.task(index)) {
            next = sweep.next_included(task.index + 1);
            let rung = rungs.iter().position(|label| **label == *task.workload);
            // A task that differs from the last one in the seed alone has its group and its candidate.
            let of_last =
                last.filter(|(last, ..)| last.sim.shares_choices(&task.sim)).map(|(_, at, place)| (at, place));
            let (at, candidate) = of_last.unwrap_or_else(|| {
                let mut attributes = attributes(&task, |name| axes.iter().any(|axis| axis.name == name));
                if rung.is_some() {
                    forget_workload(&mut attributes, &task);
                }
                let identity = format!("{:?}{attributes:?}", task.digest.filter(|_| rung.is_none()));
                let at = *known.entry(identity).or_insert_with(|| {
                    let tasks = candidates.iter().map(|_| Vec::new()).collect();
                    let group = Group { name: Values::default(), seeds: Dependence::Alike, tasks };
                    found.push(Found { attributes, group, fixed: false });
                    found.len() - 1
                });
                let of_group = &mut found[at].group.seeds;
                *of_group = seeds::dependence(&task.sim).max(*of_group);
                let values: Option<Vec<&Value>> = axes.iter().map(|axis| value_of(&task, axis.name)).collect();
                (at, values.and_then(|values| places.get(&key(values.into_iter())).copied()))
            });
            let seed = *of_seed.entry(task.sim.seed).or_insert_with(|| {
                seeds.push(task.sim.seed);
                seeds.len() - 1
            });
            let (id, rung) = (task.task_id.to_string(), rung.unwrap_or(0));
            match candidate {
                Some(candidate) => found[at].group.tasks[candidate].push(Task { id, seed, rung }),
                None => found[at].fixed = true,
            }
            last = Some((task, at, candidate));
        }
        let all: Vec<&Attributes> = found.iter().map(|found| &found.attributes).collect();
        for (at, name) in names(&all).into_iter().enumerate() {
            found[at].group.name = name;
        }
        let is_fixed = |found: &Found| {
            let candidates = found.group.tasks.iter().filter(|tasks| !tasks.is_empty()).count();
            found.fixed || (candidates < 2 && found.group.tasks.len() > 1)
        };
        let (fixed, groups): (Vec<Found>, Vec<Found>) = found.into_iter().partition(is_fixed);
        let left_out = fixed.into_iter().map(|found| found.group.name).collect();
        let mut groups: Vec<Group> = groups.into_iter().map(|found| found.group).collect();
        let all_tasks = groups.iter_mut().flat_map(|group| &mut group.tasks);
        all_tasks.for_each(|tasks| tasks.sort_by_key(|task| (task.rung, task.seed)));
        let is_twice = |pair: &[Task]| (pair[0].rung, pair[0].seed) == (pair[1].rung, pair[1].seed);
        let twice =
            groups.iter().flat_map(|group| &group.tasks).flat_map(|tasks| tasks.windows(2)).find(|pair| is_twice(pair));
        if let Some(pair) = twice.filter(|_| !rungs.is_empty()) {
            let rung = &rungs[pair[0].rung];
            return Err(failure!(
                Usage,
                "the workload {rung} varies in more than the seed: as a rung it has one value of each parameter"
            ));
        }
        Ok(Grid { axes, candidates, positions, groups, left_out, seeds, rungs: rungs.to_vec() })
    }

    /// Takes the dependence of draws from a log from their rows: those have the counts of jobs.
    pub(super) fn draw(&mut self, drawn: &HashMap<String, Dependence>) {
        for group in self.groups.iter_mut().filter(|group| group.is_drawn()) {
            let of_rows = group.tasks.iter().flatten().filter_map(|task| drawn.get(&task.id)).max().copied();
            if let Some(of_rows @ Dependence::Resampled(_)) = of_rows {
                group.seeds = of_rows;
            }
        }
    }

    /// Number of workloads on which candidates run one after the other; 1 without rungs.
    pub(super) fn rungs(&self) -> usize {
        self.rungs.len().max(1)
    }

    /// Number of tasks of all groups that take part.
    pub(crate) fn tasks(&self) -> usize {
        self.groups.iter().flat_map(|group| &group.tasks).map(Vec::len).sum()
    }

    /// The values and exclusions of a manifest that has these tasks and no others.
    pub(crate) fn derivation(&self, wanted: &HashSet<String>) -> Derivation<'_> {
        let has = |task: &Task| wanted.contains(&task.id);
        let mut used: Vec<Vec<usize>> = vec![Vec::new(); self.axes.len()];
        for (candidate, places) in self.positions.iter().enumerate() {
            if self.groups.iter().any(|group| group.tasks[candidate].iter().any(has)) {
                for (used, place) in used.iter_mut().zip(places) {
                    add_new(used, [*place]);
                }
            }
        }
        used.iter_mut().for_each(|places| places.sort_unstable());
        // Each rule without its group, as a line and values of the first axis, and the groups that it applies to.
        let mut rules: BTreeMap<(Line<'_>, Vec<usize>), Vec<usize>> = BTreeMap::new();
        for (at, group) in self.groups.iter().enumerate() {
            let mut of_line: BTreeMap<Line<'_>, Vec<usize>> = BTreeMap::new();
            for (candidate, places) in self.positions.iter().enumerate() {
                let is_in = places.iter().zip(&used).all(|(place, used)| used.contains(place));
                for rung in 0..self.rungs() {
                    let tasks = || group.tasks[candidate].iter().filter(|task| task.rung == rung);
                    let lacking: Vec<usize> = tasks().filter(|task| !has(task)).map(|task| task.seed).collect();
                    if is_in && !lacking.is_empty() {
                        let seeds = if lacking.len() == tasks().count() { Vec::new() } else { lacking };
                        let rung = (!self.rungs.is_empty()).then_some(rung);
                        of_line.entry((&places[1..], rung, seeds)).or_default().push(places[0]);
                    }
                }
            }
            for rule in of_line {
                rules.entry(rule).or_default().push(at);
            }
        }
        let mut exclude: Vec<Rule> = self.left_out.iter().map(conditions).collect();
        for (((line, rung, seeds), firsts), groups) in rules {
            let mut rule = self.rule(&used, line, &seeds, &firsts);
            let label = rung.map(|rung| ("workload".to_owned(), vec![Value::Text(self.rungs[rung].clone())]));
            rule.extend(label);
            match groups.len() == self.groups.len() && !rule.is_empty() {
                true => exclude.push(rule),
                false => exclude.extend(groups.iter().map(|group| {
                    conditions(&self.groups[*group].name).into_iter().chain(rule.iter().cloned()).collect::<Rule>()
                })),
            }
        }
        let values = self
            .axes
            .iter()
            .zip(used)
            .map(|(axis, used)| (axis.name, used.into_iter().map(|place| axis.values[place].clone()).collect()));
        let values = values.collect();
        Derivation { values, exclude, ..Derivation::default() }
    }

    /// A rule on candidates of one line and seeds. No seeds stand for all.
    fn rule(&self, used: &[Vec<usize>], line: &[usize], seeds: &[usize], firsts: &[usize]) -> Rule {
        let mut rule = Vec::new();
        let places = std::iter::once(firsts).chain(line.iter().map(std::slice::from_ref));
        for ((axis, used), places) in self.axes.iter().zip(used).zip(places) {
            if places.len() < used.len() {
                rule.push((axis.name.to_owned(), places.iter().map(|place| axis.values[*place].clone()).collect()));
            }
        }
        if !seeds.is_empty() {
            rule.push(("seed".to_owned(), seeds.iter().map(|at| self.seed(*at)).collect()));
        }
        rule
    }

    /// The seed at a position.
    pub(crate) fn seed(&self, at: usize) -> Value {
        Value::Int(i64::try_from(self.seeds[at]).unwrap_or(i64::MAX))
    }
}

/// Refuses rungs that are not all workloads of the manifest, each once.
fn check_rungs(sweep: &Sweep, rungs: &[String]) -> Result<(), Error> {
    if rungs.is_empty() {
        return Ok(());
    }
    let labels: Vec<String> = sweep
        .blocks()
        .into_iter()
        .filter(|block| block.section == "workloads")
        .map(|block| block.label.to_string())
        .collect();
    let is_each_once = labels.iter().all(|label| rungs.iter().filter(|rung| *rung == label).count() == 1);
    if !is_each_once || rungs.len() != labels.len() || !(2..=RUNGS_MAX).contains(&rungs.len()) {
        return Err(failure!(
            Usage,
            "--rungs names every workload of the manifest once, from the shortest to the whole one, and there are two or {RUNGS_MAX}: \
             the manifest has {}",
            labels.join(", ")
        ));
    }
    Ok(())
}

/// Removes what a task has of its workload.
fn forget_workload([labels, roles, params]: &mut Attributes, task: &TaskSpec) {
    labels.remove("workload");
    let of_workload = |role: Role| role.section() == Section::Workloads;
    for choice in task.sim.choices().filter(|choice| of_workload(choice.component().role)) {
        roles.remove(choice.component().role.key());
        choice.values().for_each(|(name, _)| _ = params.remove(name));
    }
}

/// The conditions that choose a group.
pub(crate) fn conditions(name: &Values) -> Rule {
    name.0.iter().map(|(name, value)| (name.clone(), vec![value.clone()])).collect()
}

/// All combinations of positions of values in the axes.
fn positions(axes: &[Over]) -> Vec<Vec<usize>> {
    axes.iter().fold(vec![Vec::new()], |all, axis| {
        all.iter().flat_map(|one| (0..axis.values.len()).map(move |at| [&one[..], &[at]].concat())).collect()
    })
}

fn key<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    values.map(|value| format!("{value:?};")).collect()
}

pub(crate) fn value_of<'a>(task: &'a TaskSpec, name: &str) -> Option<&'a Value> {
    task.sim.choices().find_map(|choice| choice.get(name))
}

/// The labels, the components and the parameters of a task without those of these names.
pub(crate) fn attributes(task: &TaskSpec, without: impl Fn(&str) -> bool) -> Attributes {
    let labels = [("workload", &task.workload), ("platform", &task.platform), ("policy", &task.policy)];
    let labels = labels.map(|(name, label)| (name.to_owned(), Value::Text(label.to_string())));
    let roles = task
        .sim
        .choices()
        .map(|choice| (choice.component().role.key().to_owned(), Value::Text(choice.component().name.to_owned())));
    let params = task.sim.choices().flat_map(|choice| choice.values());
    let params = params.filter(|(name, _)| !without(name));
    [
        labels.into_iter().collect(),
        roles.collect(),
        params.map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
    ]
}

/// What tells each group from the others: the labels that vary, then what varies among groups of equal labels.
pub(crate) fn names(found: &[&Attributes]) -> Vec<Values> {
    let mut names: Vec<Values> = vec![Values::default(); found.len()];
    // Groups that are not told apart yet.
    let mut classes: Vec<Vec<usize>> = vec![(0..found.len()).collect()];
    let of = |at: usize, kind: usize| &found[at][kind];
    for kind in 0..3 {
        for class in std::mem::take(&mut classes) {
            let mut keys: BTreeSet<&String> = class.iter().flat_map(|at| of(*at, kind).keys()).collect();
            keys.retain(|key| class.iter().any(|at| of(*at, kind).get(*key) != of(class[0], kind).get(*key)));
            let mut parts: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
            for at in &class {
                let own = of(*at, kind);
                names[*at].0.extend(keys.iter().filter_map(|key| Some(((*key).clone(), own.get(*key)?.clone()))));
                let part = keys.iter().map(|key| format!("{:?}", own.get(*key))).collect();
                parts.entry(part).or_default().push(*at);
            }
            classes.extend(parts.into_values());
        }
    }
    names
}
