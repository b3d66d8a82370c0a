//! The lazy sweep: from an index to its task, and from a task to its index.

use std::collections::BTreeMap;
use std::sync::Arc;

use powersweep_engine::spec::Role;
use powersweep_engine::{Choice, SimSpec, Value};
use uuid::Uuid;

use crate::errors::SweepError;
use crate::exclusion::Exclusion;
use crate::shard::{Shard, Share};
use crate::signals::Signal;
use crate::space::{self, DESIGN_LEVEL, Designed, LEVELS, LOG, Level, SEED_LEVEL, Variant};
use crate::{Digest, Manifest, identity, overlap};

/// One task: its simulation, and the values that identify it in its row.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSpec {
    /// The experiment's name.
    pub experiment: Arc<str>,
    /// Its index in the sweep of this manifest. In an edited manifest it may have another index.
    pub index: u64,
    /// Its id. Equal simulations have equal ids in all sweeps.
    pub task_id: Uuid,
    /// Label of its workload block.
    pub workload: Arc<str>,
    /// Label of its platform block.
    pub platform: Arc<str>,
    /// Label of its policy block.
    pub policy: Arc<str>,
    /// Digest of its log; `None` for a generated workload.
    pub digest: Option<Digest>,
    /// Name of its log in the manifest; `None` for a generated workload.
    pub log: Option<Arc<str>>,
    /// The simulation.
    pub sim: SimSpec,
}

/// Tasks of one workload and one policy, which cost about the same for each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskKind {
    /// The workload: a number for its block and components.
    pub workload: usize,
    /// The policy: a number for its block and components.
    pub policy: usize,
    /// Jobs that its source generates; `None` for another source.
    pub jobs: Option<u64>,
}

/// The points of designs that one task has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPoints {
    /// Number of the combination of everything but the points of designs and the seed. It does not change with the points.
    pub combination: u64,
    /// A point of each design that the blocks of the task use.
    pub points: Vec<TaskPoint>,
}

/// The point of one design that a task has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPoint {
    /// The design.
    pub design: Arc<str>,
    /// Number of the point, from 0.
    pub point: u64,
    /// Whether the task has all parameters of the design. A task that lacks some has the first of the points that differ in
    /// these alone.
    pub is_whole: bool,
}

/// With more variants in a section, kinds are told apart by blocks alone.
const KINDS_MAX: usize = 100;

/// The tasks of a manifest by index, decoded on demand. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sweep(Arc<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    manifest: Manifest,
    /// Digest and name of every log.
    logs: BTreeMap<String, (Digest, Arc<str>)>,
    /// Digest of the file of every signal and of every policy module.
    others: BTreeMap<Arc<str>, Digest>,
    /// By label, the digest of content and settings of the signals that policies can read.
    signal_ids: BTreeMap<Arc<str>, Digest>,
    /// Number of indices below one position of each level.
    strides: [u64; LEVELS],
    index_count: u64,
    /// The tasks of one shard; `None` for all.
    share: Option<Share>,
}

impl Sweep {
    /// The sweep of a manifest. `digests` must hold every log of [`Manifest::logs`].
    pub fn new(manifest: Manifest, mut digests: BTreeMap<String, Digest>) -> Result<Sweep, SweepError> {
        let mut logs = BTreeMap::new();
        let mut others = BTreeMap::new();
        for file in manifest.files() {
            let digest =
                digests.remove(&file.name).ok_or_else(|| SweepError::MissingDigest { log: file.name.clone() })?;
            let shared: Arc<str> = file.name.as_str().into();
            match file.format {
                Some(_) => _ = logs.insert(file.name, (digest, shared)),
                None => _ = others.insert(shared, digest),
            }
        }
        same_file(&manifest, &logs)?;
        same_module(&manifest, &others)?;
        let id = |signal: &Signal| Digest::of(format!("{} {}", others[&signal.file], signal.canonical()).as_bytes());
        let signal_ids = manifest.signals().iter().map(|signal| (signal.label.clone(), id(signal))).collect();
        let mut strides = [1; LEVELS];
        for at in (0..SEED_LEVEL).rev() {
            strides[at] = strides[at + 1] * manifest.inner().levels[at + 1].count;
        }
        let index_count = strides[0] * manifest.inner().levels[0].count;
        Ok(Sweep(Arc::new(Inner { manifest, logs, others, signal_ids, strides, index_count, share: None })))
    }

    /// This sweep with the tasks of one shard: other indices count as excluded.
    #[must_use]
    pub fn shard(&self, shard: Shard) -> Sweep {
        let share = Some(Share::new(shard, self.exclusion()));
        Sweep(Arc::new(Inner { share, ..Inner::clone(&self.0) }))
    }

    fn exclusion(&self) -> &Exclusion {
        &self.0.manifest.inner().exclusion
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    pub(crate) fn levels(&self) -> &[Level; LEVELS] {
        &self.0.manifest.inner().levels
    }

    /// Number of indices below one position of a level.
    pub(crate) fn stride(&self, level: usize) -> u64 {
        self.0.strides[level]
    }

    /// The digest of a log or a module that a value names.
    pub(crate) fn digest_of(&self, log: &Value) -> Option<Digest> {
        match log {
            Value::Text(log) => self.0.logs.get(log).map(|(digest, _)| *digest).or_else(|| self.module_digest(log)),
            _ => None,
        }
    }

    /// The digest of a policy module.
    pub fn module_digest(&self, name: &str) -> Option<Digest> {
        self.0.others.get(name).copied()
    }

    /// The digest of a signal's file.
    pub fn signal_digest(&self, signal: &Signal) -> Option<Digest> {
        self.0.others.get(&signal.file).copied()
    }

    /// Number of indices: the full product, with the excluded indices.
    pub fn index_count(&self) -> u64 {
        self.0.index_count
    }

    /// Number of tasks: indices that are not excluded.
    pub fn task_count(&self) -> u64 {
        self.0.share.as_ref().map_or_else(|| self.exclusion().included(), Share::tasks)
    }

    /// Whether an index is excluded; false beyond the last index.
    pub fn is_excluded(&self, index: u64) -> bool {
        index < self.0.index_count
            && (self.exclusion().contains(index) || self.0.share.as_ref().is_some_and(|share| !share.covers(index)))
    }

    /// Why an index has no task, of those for which [`Sweep::is_excluded`] holds.
    pub fn why_excluded(&self, index: u64) -> &'static str {
        if !self.exclusion().contains(index) {
            return "it is in another shard";
        }
        let positions = self.positions(index);
        let place = |at: usize| self.levels()[at].locate(positions[at]);
        let (points, offset) = place(DESIGN_LEVEL);
        let level = &self.levels()[DESIGN_LEVEL];
        if space::points_of(level, (0..DESIGN_LEVEL).map(|at| &self.levels()[at].variants[place(at).0])) != points {
            return "its points of designs are those of other blocks";
        }
        let variant = &level.variants[points];
        let mut designs = variant.designed.iter().map(|designed| &designed.points).zip(variant.positions(offset));
        if designs.clone().any(|(points, _)| points.design.is_empty) {
            return "a design has no points yet";
        }
        if designs.any(|(points, point)| points.repeated.binary_search(&point).is_ok()) {
            return "its point of a design is equal to an earlier one";
        }
        "an [[exclude]] or zip of the manifest leaves this combination out"
    }

    /// The first index at or after `from` that is a task.
    pub fn next_included(&self, from: u64) -> Option<u64> {
        match &self.0.share {
            Some(share) => share.next(from, self.exclusion()),
            None => self.exclusion().next(from),
        }
    }

    /// Number of tasks with indices in a range.
    pub fn tasks_in(&self, range: std::ops::Range<u64>) -> u64 {
        let below = |index| match &self.0.share {
            Some(share) => share.tasks_below(index, self.exclusion()),
            None => self.exclusion().included_below(index),
        };
        below(range.end).saturating_sub(below(range.start))
    }

    /// The task of an index; `None` if it is excluded or beyond the last.
    pub fn task(&self, index: u64) -> Option<TaskSpec> {
        Decoder::new(self.clone()).task(index)
    }

    /// The kind of the task of an index below [`Sweep::index_count`].
    pub fn kind(&self, index: u64) -> TaskKind {
        let place = |at: usize| {
            let level = &self.levels()[at];
            let (variant, offset) = level.locate(index / self.0.strides[at] % level.count);
            let number = if level.variants.len() <= KINDS_MAX { variant } else { level.variants[variant].block };
            (number, &level.variants[variant], offset)
        };
        let (workload, variant, offset) = place(0);
        let (policy, ..) = place(2);
        let designed = || {
            let choices = space::choices(self.levels(), &self.positions(index));
            let jobs =
                choices.iter().find_map(|choice| choice.opt_int(powersweep_engine::workload::jobs_param(choice)?));
            jobs.and_then(|jobs| u64::try_from(jobs).ok())
        };
        let is_designed = !variant.designed.is_empty();
        TaskKind { workload, policy, jobs: if is_designed { designed() } else { variant.generated_jobs(offset) } }
    }

    /// The position of each level.
    fn positions(&self, index: u64) -> [u64; LEVELS] {
        std::array::from_fn(|at| index / self.0.strides[at] % self.levels()[at].count)
    }

    /// Whether the manifest has designs.
    pub(crate) fn has_designs(&self) -> bool {
        self.levels()[DESIGN_LEVEL].variants.iter().any(|variant| !variant.designed.is_empty())
    }

    /// The task of an included index, without its seed and its id.
    fn seedless(&self, index: u64) -> TaskSpec {
        let mut sim = SimSpec::new();
        let positions = self.positions(index);
        space::choices(self.levels(), &positions).into_iter().for_each(|choice| sim.choose(choice));
        let label = |at: usize| {
            let level = &self.levels()[at];
            level.variants[level.locate(positions[at]).0].label.clone()
        };
        let read: Vec<Arc<str>> = sim.signal_labels().map(|(_, label)| label.into()).collect();
        for label in read {
            if let Some(id) = self.0.signal_ids.get(&label) {
                sim.name_signal(&label, *id.as_bytes());
            }
        }
        if let Some(digest) = sim.module_name().and_then(|name| self.module_digest(name)) {
            sim.name_module(*digest.as_bytes());
        }
        let log = sim.choice(Role::Source).opt_text(LOG).map(|log| self.0.logs[log].clone());
        let digest = log.as_ref().map(|(digest, _)| *digest);
        let [workload, platform, policy] = [0, 1, 2].map(label);
        TaskSpec {
            experiment: self.0.manifest.inner().name.clone(),
            index,
            task_id: Uuid::nil(),
            workload,
            platform,
            policy,
            digest,
            log: log.map(|(_, name)| name),
            sim,
        }
    }

    /// The points of designs that the task of an included index has.
    pub fn points_of(&self, index: u64) -> TaskPoints {
        let level = &self.levels()[DESIGN_LEVEL];
        let place = index / self.0.strides[DESIGN_LEVEL];
        let (variant, offset) = level.locate(place % level.count);
        let variant = &level.variants[variant];
        let point = |(designed, point): (&Designed, u64)| {
            let design = &designed.points.design;
            TaskPoint {
                design: design.label.clone(),
                point,
                is_whole: designed.points.ranges.len() == design.ranges.len(),
            }
        };
        let points = variant.designed.iter().zip(variant.positions(offset)).map(point).collect();
        TaskPoints { combination: place / level.count, points }
    }

    /// The seed at a position of the fastest level.
    fn seed(&self, position: u64) -> u64 {
        let level = &self.levels()[SEED_LEVEL];
        let (variant, offset) = level.locate(position);
        match level.variants[variant].digits[0].columns[0].values.get(offset) {
            Value::Int(seed) => seed.unsigned_abs(),
            other => unreachable!("seeds are integers, which the manifest's reader checks: {other:?}"),
        }
    }

    /// The index of the same simulation in this sweep, whatever its labels and the name of its log; `None` if the sweep
    /// lacks it or excludes it.
    pub fn index_of(&self, task: &TaskSpec) -> Option<u64> {
        let seed = Value::Int(i64::try_from(task.sim.seed).ok()?);
        let seed = self.levels()[SEED_LEVEL].variants[0].digits[0].columns[0].values.position(&seed)?;
        let index = self.index_without_seed(task)? + seed;
        (!self.is_excluded(index)).then_some(index)
    }

    /// The index of the same simulation with the first seed. It may be excluded.
    pub(crate) fn index_without_seed(&self, task: &TaskSpec) -> Option<u64> {
        let digest = |theirs: &Value| match theirs {
            Value::Text(name) if task.sim.module_name() == Some(name) => task.sim.module_id().map(Digest::from),
            _ => task.digest,
        };
        let same_log =
            |mine: &Value, theirs: &Value| matches!(mine, Value::Text(_)) && self.digest_of(mine) == digest(theirs);
        let choices: Vec<Choice> = task.sim.choices().cloned().collect();
        let mut index = 0;
        let mut found: Vec<&Variant> = Vec::new();
        for (at, section) in space::SECTIONS.into_iter().enumerate() {
            let level = &self.levels()[at];
            let choices: Vec<Choice> =
                choices.iter().filter(|choice| choice.component().role.section() == section).cloned().collect();
            let position = level.position_of(&choices, &same_log)?;
            found.push(&level.variants[level.locate(position).0]);
            index += position * self.0.strides[at];
        }
        let level = &self.levels()[DESIGN_LEVEL];
        let variant = space::points_of(level, found);
        let position = level.start(variant) + level.variants[variant].offset_of_points(&choices)?;
        Some(index + position * self.0.strides[DESIGN_LEVEL])
    }
}

/// Decodes consecutive tasks of a sweep. Most neighbours differ only in the seed, the fastest digit of the index. Their
/// common values are decoded once, and their specs share the choices ([`SimSpec::shares_choices`]).
#[derive(Debug)]
pub struct Decoder {
    sweep: Sweep,
    /// The task decoded last, with its canonical bytes.
    last: Option<(TaskSpec, Vec<u8>)>,
}

impl Decoder {
    /// A decoder that has decoded nothing yet.
    pub fn new(sweep: Sweep) -> Decoder {
        Decoder { sweep, last: None }
    }

    /// The sweep.
    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// The task of an index; `None` if it is excluded or beyond the last.
    pub fn task(&mut self, index: u64) -> Option<TaskSpec> {
        if index >= self.sweep.index_count() || self.sweep.is_excluded(index) {
            return None;
        }
        let seeds = self.sweep.levels()[SEED_LEVEL].count;
        let (task, canonical) = match &mut self.last {
            Some(last) if last.0.index / seeds == index / seeds => last,
            last => {
                let task = self.sweep.seedless(index);
                let canonical = identity::canonical(&task.sim, task.digest);
                last.insert((task, canonical))
            }
        };
        task.index = index;
        task.sim.seed = self.sweep.seed(index % seeds);
        task.task_id = identity::task_id_with_seed(canonical, task.sim.seed);
        Some(task.clone())
    }
}

/// Refuses modules that differ only in their names.
fn same_module(manifest: &Manifest, others: &BTreeMap<Arc<str>, Digest>) -> Result<(), SweepError> {
    let mut named: BTreeMap<Digest, &str> = BTreeMap::new();
    let mut modules = manifest.modules().iter().filter_map(|name| Some((others.get(name.as_str())?, name)));
    match modules.find_map(|(digest, name)| Some((named.insert(*digest, name)?, name))) {
        Some((first, second)) => Err(SweepError::SameModule { first: first.to_owned(), second: second.clone() }),
        None => Ok(()),
    }
}

/// Refuses workloads that differ only in the name of the same log.
fn same_file(manifest: &Manifest, logs: &BTreeMap<String, (Digest, Arc<str>)>) -> Result<(), SweepError> {
    let mut named: BTreeMap<Digest, &str> = BTreeMap::new();
    let twins = logs.iter().find_map(|(log, (digest, _))| Some((named.insert(*digest, log)?, log)));
    let Some((first, second)) = twins else { return Ok(()) };
    let digest_of = |value: &Value| match value {
        Value::Text(log) => logs.get(log).map(|(digest, _)| *digest),
        _ => None,
    };
    let level = &manifest.inner().levels[0];
    let label = |variant: usize| level.variants[variant].label.to_string();
    let within = level.variants.iter().position(|variant| {
        variant.column(LOG).is_some_and(|(at, _)| {
            variant.digits[at].columns.len() == 1 && {
                let seen: Vec<Option<Digest>> =
                    variant.digits[at].columns[0].values.iter().map(|value| digest_of(&value)).collect();
                (1..seen.len()).any(|i| seen[..i].contains(&seen[i]))
            }
        })
    });
    // The same search was short enough when the manifest was read.
    let between = overlap::find(level, &|a, b| digest_of(a) == digest_of(b)).ok().flatten();
    match between.map(|o| (o.first, o.second)).or(within.map(|v| (v, v))) {
        None => Ok(()),
        Some((a, b)) => Err(SweepError::SameLog {
            first: first.to_owned(),
            second: second.clone(),
            first_label: label(a),
            second_label: label(b),
        }),
    }
}
