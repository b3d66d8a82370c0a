//! One task that is simulated in this process, from settings or from a manifest. Nothing is stored.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use powersweep_dataset::{Error, Kind, Notes, failure};
use powersweep_engine::batch::physics::{self, Demand, Finding};
use powersweep_engine::components;
use powersweep_engine::spec::{Model, Param, Type};
use powersweep_engine::workload::{LOG_IMPORT, LogFormat};
use powersweep_engine::{Choice, Details, Role, SimError, SimSpec, Value};
use powersweep_experiments::plain::chain;
use powersweep_experiments::reading::{converted, hint, unknown};
use powersweep_experiments::settings::reproduce;
use powersweep_experiments::{FileRef, Manifest, TaskSpec, identity};
use powersweep_inputs::library::{Library, ParsedLogs};
use powersweep_proto::clocks::now_us;
use powersweep_results::identity::{Micros, RunFacts};
use powersweep_results::{Table, accounts, jobs, series, tasks};
use powersweep_worker::task::{Inputs, Prepared, Ran, TaskError};

use crate::batsim;
use crate::inputs::{self, Files, ManifestFiles};
use crate::modules;

pub use powersweep_engine::wasm::{Module, NO_ARRIVAL, Pass, Scheduler};
pub use powersweep_worker::TaskLimits;

/// Maximum memory of one workload's jobs (bytes). A parameter that needs more is a typing error.
const WORKLOAD_BYTES_MAX: u64 = 8 << 30;

/// The rows of a simulated task.
#[derive(Debug)]
pub struct Simulated {
    prepared: Prepared,
    limits: TaskLimits,
    /// Its row of `tasks`.
    pub row: RecordBatch,
    /// Its rows of `jobs`, if they were asked for.
    pub jobs: Option<RecordBatch>,
    /// Its rows of `series`, if they were asked for.
    pub series: Option<RecordBatch>,
    /// Its rows of `accounts`, if its manifest has signals.
    pub accounts: Option<RecordBatch>,
}

/// A task that is simulated in this process, without a place.
#[derive(Debug, Clone)]
pub struct SimulateOptions<'a> {
    /// The manifest and the index of its task; without it, the components that are chosen by default.
    pub task: Option<(&'a Manifest, u64)>,
    /// Where the files of the manifest are.
    pub library: &'a Library,
    /// Where a log is that `log` or `set` names.
    pub logs: &'a Library,
    /// The log, in place of the task's jobs.
    pub log: Option<String>,
    /// Components by role, and values by parameter.
    pub set: Vec<(String, String)>,
    /// Seed of the random numbers; by default 1, or the seed of the manifest's task.
    pub seed: Option<u64>,
    /// Limits of the simulation.
    pub limits: TaskLimits,
    /// A policy of this process that chooses the jobs that start.
    pub policy: Option<Arc<Module>>,
    /// Whether rows of `jobs` are wanted.
    pub jobs: bool,
    /// Whether rows of `series` are wanted.
    pub series: bool,
    /// Where notes go.
    pub notes: Notes,
}

impl SimulateOptions<'_> {
    /// Simulates the task. `stop` ends the simulation early, as its deadline does.
    ///
    /// # Errors
    /// A setting is wrong, a file cannot be had, or the simulation ends without a result.
    pub fn simulated(&self, stop: &dyn Fn() -> bool) -> Result<Simulated, Error> {
        let mut timing = RunFacts { started_at: Micros(now_us()), ..without_times("simulate") };
        let prepared = self.prepare(&mut timing)?;
        let task = &prepared.task;
        let started = Instant::now();
        let (jobs, series) = (self.jobs.then(Vec::new), self.series.then(Vec::new));
        let mut details = Details { jobs, series, energy: None };
        let ran = prepared.run(&self.limits.begin(), stop, &mut details);
        let ran = ran.map_err(|error| failed(&task.sim, &error))?;
        timing.engine_ms = started.elapsed().as_secs_f64() * 1e3;
        timing.wall_ms = timing.engine_ms + timing.parse_ms;
        let (row, mut others) = rows(&prepared, &ran, &details, &timing);
        let [jobs, series, accounts] = Table::OPTIONAL.map(|table| others.remove(&table));
        Ok(Simulated { prepared, limits: self.limits, row, jobs, series, accounts })
    }

    /// The task with its inputs.
    fn prepare(&self, timing: &mut RunFacts) -> Result<Prepared, Error> {
        let (mut task, mut task_inputs, files) = match self.task {
            Some((manifest, index)) => {
                let digests = Files::read(manifest, self.library, None, &self.notes)?.digests;
                let sweep = inputs::sweep(manifest, &digests)?;
                let files = ManifestFiles::new(manifest.files(), self.library.clone());
                (inputs::task(&sweep, index)?, Inputs::of(&sweep), files)
            }
            None => (without_manifest(), Inputs::default(), ManifestFiles::new(Vec::new(), self.library.clone())),
        };
        self.apply(&mut task.sim)?;
        if let Some(policy) = &self.policy {
            modules::name_in_process(&mut task.sim, policy)?;
            task_inputs = task_inputs.with_module(policy);
        }
        if let Some(seed) = self.seed {
            task.sim.seed = seed;
        }
        let problems: Vec<String> = missing(&task.sim).chain(task.sim.problems().iter().cloned()).collect();
        if !problems.is_empty() {
            return Err(failure!(Usage, "{}", problems.join("\n")));
        }
        if self.policy.is_none() {
            modules::name(&mut task.sim, self.library)?;
        }
        let started = Instant::now();
        // The log stays in memory until the workload is built.
        let logs = ParsedLogs::new(usize::MAX).with_max_workload_bytes(WORKLOAD_BYTES_MAX);
        let names_log = self.log.is_some() || self.set.iter().any(|(key, _)| key == "log");
        read_log(&mut task, if names_log { self.logs } else { self.library }, &logs)?;
        task.task_id = identity::task_id(&task.sim, task.digest);
        let sim = task.sim.clone();
        let prepared = task_inputs.prepare(task, &logs, &files).map_err(|error| failed(&sim, &error))?;
        timing.parse_ms = started.elapsed().as_secs_f64() * 1e3;
        Ok(prepared)
    }

    /// Applies `log` and `set`: first the components, then the parameters, so that their order does not matter.
    fn apply(&self, sim: &mut SimSpec) -> Result<(), Error> {
        let mut pairs: Vec<(&str, &str)> = self.log.iter().map(|log| ("log", log.as_str())).collect();
        pairs.extend(self.set.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        let source = Role::Source.key();
        let chosen = LogFormat::of(sim.choice(Role::Source)).is_some() || pairs.iter().any(|(key, _)| *key == source);
        if let Some(log) = &self.log
            && !chosen
        {
            pairs.push((source, inputs::format(self.logs, log)?.component.name));
        }
        let role_of = |key: &str| Role::ALL.into_iter().find(|role| role.key() == key);
        for (key, name) in &pairs {
            let Some(role) = role_of(key) else { continue };
            let component = components::find(role, name).ok_or_else(|| {
                let names: Vec<&str> = components::of(role).map(|e| e.name).collect();
                failure!(Usage, "{}", unknown(key, name, &names))
            })?;
            if sim.choice(role).component() != component {
                sim.choose(Choice::new(component));
            }
        }
        for (key, text) in pairs.iter().filter(|(key, _)| role_of(key).is_none()) {
            let chosen = sim.choices().find_map(|choice| {
                let param = choice.component().params.iter().find(|p| p.name == *key)?;
                Some((choice.component().role, param))
            });
            let (role, param) = chosen.ok_or_else(|| failure!(Usage, "{}", unknown_parameter(key)))?;
            sim.choice_mut(role).set(key, value_of(param, text)).map_err(|error| {
                let number = converted(text, param.unit).map(|number| format!("; for {text}, write {key}={number}"));
                failure!(Usage, "{error}{}", number.unwrap_or_default())
            })?;
        }
        Ok(())
    }
}

impl Simulated {
    /// The task that was simulated.
    pub fn task(&self) -> &TaskSpec {
        &self.prepared.task
    }

    /// What a user should know about the task.
    pub fn findings(&self) -> Vec<Finding> {
        physics::findings(&self.prepared.task.sim, Some(&Demand::of(&self.prepared.workload)))
    }

    /// Simulates the task again with the nodes of each job and the machine over time, and writes its schedule into a new
    /// folder: as a log, and as the files of Batsim.
    ///
    /// # Errors
    /// The task has no schedule of jobs, or the folder exists or cannot be written.
    pub fn write_schedule(&self, folder: &Path) -> Result<(), Error> {
        let Prepared { task, workload, .. } = &self.prepared;
        if task.sim.model() == Model::Queues {
            return Err(batsim::without_jobs());
        }
        let observed = TaskSpec { sim: batsim::observed(&task.sim), ..task.clone() };
        let observed = Prepared { task: observed, workload: Arc::clone(workload), accounts: None };
        let mut details = Details { jobs: Some(Vec::new()), series: Some(Vec::new()), ..Details::default() };
        let ran = observed.run(&self.limits.begin(), &|| false, &mut details);
        let ran = ran.map_err(|error| failed(&task.sim, &error))?;
        let (Some(summary), Some(jobs), Some(series)) = (ran.measured.jobs(), &details.jobs, &details.series) else {
            return Err(batsim::without_jobs());
        };
        let command = reproduce(&task.sim, &Default::default());
        let unix_start_s = workload.unix_start_s;
        batsim::write(&batsim::Schedule { task, unix_start_s, summary, jobs, series, command: &command }, folder)
    }
}

/// The facts of a run before it is measured.
pub(crate) fn without_times(worker: &str) -> RunFacts {
    let (worker, started_at) = (worker.to_owned(), Micros(0));
    RunFacts { attempt: 1, worker, started_at, wall_ms: 0.0, engine_ms: 0.0, parse_ms: 0.0 }
}

/// The row of a task that ran, and its rows of the other tables whose records it has.
pub(crate) fn rows(
    prepared: &Prepared,
    ran: &Ran,
    details: &Details,
    run: &RunFacts,
) -> (RecordBatch, BTreeMap<Table, RecordBatch>) {
    let task = &prepared.task;
    let mut row = tasks::Builder::new();
    row.push(task, &prepared.workload.counts, &ran.measured, run);
    let mut others = BTreeMap::new();
    if let Some(records) = &details.jobs {
        let mut rows = jobs::Builder::new();
        rows.push(task, records);
        others.insert(Table::Jobs, rows.finish());
    }
    if let Some(records) = &details.series {
        let mut rows = series::Builder::new();
        rows.push(task, records);
        others.insert(Table::Series, rows.finish());
    }
    if let Some(records) = &ran.accounts {
        let mut rows = accounts::Builder::new();
        rows.push(task, records);
        others.insert(Table::Accounts, rows.finish());
    }
    (row.finish(), others)
}

/// The failure of a task of this spec. A generator fails because of its parameters.
fn failed(sim: &SimSpec, error: &TaskError) -> Error {
    use SimError::{Deadline, EventLimit, MemoryLimit, Policy};
    let kind = match error {
        TaskError::File { .. } | TaskError::Log(_) | TaskError::Signal(_) => Kind::Workload,
        TaskError::Workload(_) if LogFormat::of(sim.choice(Role::Source)).is_some() => Kind::Workload,
        TaskError::Simulation { error: Policy { .. } | Deadline | EventLimit(_) | MemoryLimit(_), .. }
        | TaskError::Stopped => Kind::Failure,
        _ => Kind::Usage,
    };
    Error::new(kind, chain(error))
}

/// A task of the components that are chosen by default.
fn without_manifest() -> TaskSpec {
    let label = || Arc::from("simulate");
    TaskSpec {
        experiment: label(),
        index: 0,
        task_id: uuid::Uuid::nil(),
        workload: label(),
        platform: label(),
        policy: label(),
        digest: None,
        log: None,
        sim: SimSpec::new(),
    }
}

/// Reads the log that a spec names, if it names one.
fn read_log(task: &mut TaskSpec, library: &Library, logs: &ParsedLogs) -> Result<(), Error> {
    let source = task.sim.choice(Role::Source);
    let Some((format, name)) = LogFormat::of(source).zip(source.opt_text("log")) else { return Ok(()) };
    let sha256 = source.opt_text("log_sha256").map(str::parse).transpose();
    let sha256 = sha256.map_err(|error| failure!(Usage, "`log_sha256` of the log {name}: {error}"))?;
    let import = source.opt_text(LOG_IMPORT.name).map(str::to_owned);
    let bytes = inputs::file(library, &FileRef { format: Some(format), import, ..FileRef::plain(name, sha256) })?;
    (task.digest, task.log) = (Some(bytes.digest), Some(Arc::from(name)));
    logs.insert(bytes.digest, format, inputs::parsed(format, &bytes)?);
    Ok(())
}

/// Names the component that has this parameter but is not chosen, else similar names.
pub fn unknown_parameter(key: &str) -> String {
    let owner = components::COMPONENTS.iter().find(|e| e.params.iter().any(|p| p.name == key));
    match owner {
        Some(component) => {
            format!("`{key}` belongs to {0} `{1}`: add -s {0}={1}", component.role.key(), component.name)
        }
        None => {
            let params = components::COMPONENTS.iter().flat_map(|component| component.params.iter().map(|p| p.name));
            let names = components::COMPONENTS.iter().map(|component| component.name);
            let known = Role::ALL.iter().map(|role| role.key()).chain(names).chain(params);
            let hint = hint(key, known).unwrap_or_else(|| "`powersweep policies` lists them".to_owned());
            format!("unknown component or parameter `{key}`; {hint}")
        }
    }
}

fn missing(sim: &SimSpec) -> impl Iterator<Item = String> + '_ {
    sim.choices().flat_map(|choice| {
        choice
            .missing()
            .map(move |p| format!("`{}` is required by `{}`: {}", p.name, choice.component().name, p.expectation()))
    })
}

/// A value from the command line, parsed as its parameter's type. Unparsable text stays text, which [`Choice::set`]
/// refuses with the expected type.
fn value_of(param: &Param, text: &str) -> Value {
    let as_text = || Value::Text(text.to_owned());
    match param.ty {
        Type::Bool => text.parse().map_or_else(|_| as_text(), Value::Bool),
        Type::Int { .. } => text.parse().map_or_else(|_| as_text(), Value::Int),
        Type::Real { .. } => text.parse().map_or_else(|_| as_text(), Value::Real),
        Type::Reals { .. } => {
            let inner = text.trim_start_matches('[').trim_end_matches(']').trim();
            let items = inner.split_terminator(',').map(|item| item.trim().parse());
            items.collect::<Result<Vec<f64>, _>>().map_or_else(|_| as_text(), Value::Reals)
        }
        Type::OneOf(_) | Type::Locator | Type::Signal { .. } | Type::Module | Type::Formula { .. } => as_text(),
    }
}
