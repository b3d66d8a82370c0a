//! `powersweep simulate`: one task, from options or from a manifest, in this process. Nothing is stored.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use arrow::array::RecordBatch;
use powersweep_dataset::Cell;
use powersweep_dataset::cell::row_json;
use powersweep_dataset::writing::{Encoding, Writing, refuse_existing};
use powersweep_engine::components;
use powersweep_engine::spec::Model;
use powersweep_engine::spec::{Param, Type};
use powersweep_engine::wasm::Module;
use powersweep_engine::workload::{LOG_IMPORT, LogFormat};
use powersweep_engine::{Choice, Details, Role, SimError, SimSpec, Value};
use powersweep_experiments::plain::chain;
use powersweep_experiments::reading::{similar, unknown};
use powersweep_experiments::settings::reproduce;
use powersweep_experiments::{FileRef, TaskSpec, identity};
use powersweep_inputs::library::{Library, ParsedLogs};
use powersweep_results::identity::{Micros, RunFacts};
use powersweep_results::{accounts, jobs, series, tasks};
use powersweep_worker::TaskLimits;
use powersweep_worker::task::{Inputs, Prepared, TaskError};
use serde_json::Value as Json;

use crate::args::SimulateArgs;
use crate::commands::worker;
use crate::exit::{Failure, Kind, OrKind, Outcome, failure};
use crate::inputs::{self, ManifestFiles};
use crate::{batsim, modules, screen};

/// Maximum memory of one workload's jobs (bytes). A parameter that needs more is a typing error.
const WORKLOAD_BYTES_MAX: u64 = 8 << 30;

/// The rows of a simulated task.
pub struct Simulated {
    prepared: Prepared,
    /// Its row of `tasks`.
    pub row: RecordBatch,
    /// Its rows of `jobs`, if they were asked for.
    pub jobs: Option<RecordBatch>,
    /// Its rows of `series`, if they were asked for.
    pub series: Option<RecordBatch>,
    /// Its rows of `accounts`, if its manifest has signals.
    pub accounts: Option<RecordBatch>,
}

/// Simulates the task and prints its row.
pub fn run(args: &SimulateArgs) -> Outcome {
    if let Some(folder) = &args.batsim {
        refuse_existing(folder)?;
    }
    let stop = || false;
    let Simulated { prepared, row, jobs, series, accounts } =
        simulated(args, None, args.jobs.is_some(), args.series.is_some(), &stop)?;
    if args.accounts.is_some() && accounts.is_none() {
        return Err(failure!(Usage, "--accounts: the manifest has no [signals]"));
    }
    for (option, path, rows) in
        [("--jobs", &args.jobs, &jobs), ("--series", &args.series, &series), ("--accounts", &args.accounts, &accounts)]
    {
        if let Some((path, rows)) = path.as_deref().zip(rows.as_ref()) {
            write(option, path, &prepared.task, rows)?;
        }
    }
    if let Some(folder) = &args.batsim {
        write_schedule(folder, &prepared, &worker::limits(&args.limits))?;
    }
    match args.output.is_json() {
        // A row has the columns of its table, as in `results`.
        true => screen::print(&screen::indented(&Json::Object(
            row_json(&row, 0).map(|(name, value)| (name.to_owned(), value)).collect(),
        ))),
        false => screen::print(&row_text(&row)),
    }
}

/// Simulates the task, with rows of optional tables if they are asked for. `policy`: one of this process that chooses the
/// jobs that start. `stop` ends the simulation early, as its deadline does.
pub fn simulated(
    args: &SimulateArgs,
    policy: Option<&Arc<Module>>,
    jobs: bool,
    series: bool,
    stop: &dyn Fn() -> bool,
) -> Result<Simulated, Failure> {
    let mut timing = RunFacts {
        attempt: 1,
        worker: "simulate".to_owned(),
        started_at: Micros(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64)),
        wall_ms: 0.0,
        engine_ms: 0.0,
        parse_ms: 0.0,
    };
    let prepared = prepare(args, policy, &mut timing)?;
    let task = &prepared.task;
    let started = Instant::now();
    let mut details = Details { jobs: jobs.then(Vec::new), series: series.then(Vec::new), energy: None };
    let ran = prepared.run(&worker::limits(&args.limits).begin(), stop, &mut details);
    let ran = ran.map_err(|error| failed(&task.sim, &error))?;
    timing.engine_ms = started.elapsed().as_secs_f64() * 1e3;
    timing.wall_ms = timing.engine_ms + timing.parse_ms;
    let mut builder = tasks::Builder::new();
    builder.push(task, &prepared.workload.counts, &ran.measured, &timing);
    let row = builder.finish();
    let jobs = details.jobs.map(|details| {
        let mut rows = jobs::Builder::new();
        rows.push(task, &details);
        rows.finish()
    });
    let series = details.series.map(|details| {
        let mut rows = series::Builder::new();
        rows.push(task, &details);
        rows.finish()
    });
    let accounts = ran.accounts.map(|weighed| {
        let mut rows = accounts::Builder::new();
        rows.push(task, &weighed);
        rows.finish()
    });
    Ok(Simulated { prepared, row, jobs, series, accounts })
}

/// The failure of a task of this spec. A generator fails because of its parameters.
fn failed(sim: &SimSpec, error: &TaskError) -> Failure {
    use SimError::{Deadline, EventLimit, MemoryLimit, Policy};
    let kind = match error {
        TaskError::File { .. } | TaskError::Log(_) | TaskError::Signal(_) => Kind::Workload,
        TaskError::Workload(_) if LogFormat::of(sim.choice(Role::Source)).is_some() => Kind::Workload,
        TaskError::Simulation { error: Policy { .. } | Deadline | EventLimit(_) | MemoryLimit(_), .. }
        | TaskError::Stopped => Kind::Failure,
        _ => Kind::Usage,
    };
    Failure::new(kind, chain(error))
}

/// Simulates the task again with the nodes of each job and the machine over time, and writes its schedule.
fn write_schedule(folder: &Path, prepared: &Prepared, limits: &TaskLimits) -> Result<(), Failure> {
    let Prepared { task, workload, .. } = prepared;
    if task.sim.model() == Model::Queues {
        return Err(batsim::without_jobs());
    }
    let observed = TaskSpec { sim: batsim::observed(&task.sim), ..task.clone() };
    let observed = Prepared { task: observed, workload: Arc::clone(workload), accounts: None };
    let mut details = Details { jobs: Some(Vec::new()), series: Some(Vec::new()), ..Details::default() };
    let ran = observed.run(&limits.begin(), &|| false, &mut details).map_err(|error| failed(&task.sim, &error))?;
    let (Some(summary), Some(jobs), Some(series)) = (ran.measured.jobs(), &details.jobs, &details.series) else {
        return Err(batsim::without_jobs());
    };
    let command = reproduce(&task.sim, &Default::default());
    batsim::write(&batsim::Schedule { task, summary, jobs, series, command: &command }, folder)
}

/// The task with its inputs.
fn prepare(args: &SimulateArgs, policy: Option<&Arc<Module>>, timing: &mut RunFacts) -> Result<Prepared, Failure> {
    let named = inputs::library(&args.logs);
    let of_manifest = inputs::library_of(args.manifest.as_deref().unwrap_or_default(), &args.logs);
    let (mut task, mut task_inputs, files) = match (&args.manifest, args.index) {
        (Some(name), Some(index)) => {
            let manifest = inputs::manifest(name)?;
            let digests = inputs::files(&manifest, &of_manifest, None)?.digests;
            let sweep = inputs::sweep(&manifest, &digests)?;
            let files = ManifestFiles::new(manifest.files(), of_manifest.clone());
            (inputs::task(&sweep, index)?, Inputs::of(&sweep), files)
        }
        _ => (without_manifest(), Inputs::default(), ManifestFiles::new(Vec::new(), of_manifest.clone())),
    };
    apply(&mut task.sim, args, &named)?;
    if let Some(policy) = policy {
        modules::name_in_process(&mut task.sim, policy)?;
        task_inputs = task_inputs.with_module(policy);
    }
    if let Some(seed) = args.seed {
        task.sim.seed = seed;
    }
    let problems: Vec<String> = missing(&task.sim).chain(task.sim.problems()).collect();
    if !problems.is_empty() {
        return Err(failure!(Usage, "{}", problems.join("\n")));
    }
    if policy.is_none() {
        modules::name(&mut task.sim, &of_manifest)?;
    }
    let started = Instant::now();
    // The log stays in memory until the workload is built.
    let logs = ParsedLogs::new(usize::MAX).with_max_workload_bytes(WORKLOAD_BYTES_MAX);
    read_log(&mut task, if names_log(args) { &named } else { &of_manifest }, &logs)?;
    task.task_id = identity::task_id(&task.sim, task.digest);
    let sim = task.sim.clone();
    let prepared = task_inputs.prepare(task, &logs, &files).map_err(|error| failed(&sim, &error))?;
    timing.parse_ms = started.elapsed().as_secs_f64() * 1e3;
    Ok(prepared)
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
fn read_log(task: &mut TaskSpec, library: &Library, logs: &ParsedLogs) -> Result<(), Failure> {
    let source = task.sim.choice(Role::Source);
    let Some((format, name)) = LogFormat::of(source).zip(source.opt_text("log")) else { return Ok(()) };
    let sha256 = source.opt_text("log_sha256").map(str::parse).transpose();
    let sha256 = sha256.map_err(|error| failure!(Usage, "log_sha256: {error}"))?;
    let import = source.opt_text(LOG_IMPORT.name).map(str::to_owned);
    let bytes = inputs::file(library, &FileRef { format: Some(format), import, ..FileRef::plain(name, sha256) })?;
    (task.digest, task.log) = (Some(bytes.digest), Some(Arc::from(name)));
    logs.insert(bytes.digest, format, inputs::parsed(format, &bytes)?);
    Ok(())
}

/// Whether the log is named on the command line, not in the manifest.
fn names_log(args: &SimulateArgs) -> bool {
    let is_log = |setting: &String| setting.split('=').next().is_some_and(|key| key.trim() == "log");
    args.log.is_some() || args.set.iter().any(is_log)
}

/// Applies `--log` and `--set`: first the components, then the parameters, so that their order does not matter.
fn apply(sim: &mut SimSpec, args: &SimulateArgs, library: &Library) -> Result<(), Failure> {
    let mut pairs: Vec<(&str, &str)> = args.log.iter().map(|log| ("log", log.as_str())).collect();
    for setting in &args.set {
        let pair = setting.split_once('=').ok_or_else(|| failure!(Usage, "--set {setting}: give KEY=VALUE"))?;
        pairs.push((pair.0.trim(), pair.1.trim()));
    }
    let source = Role::Source.key();
    let chosen = LogFormat::of(sim.choice(Role::Source)).is_some() || pairs.iter().any(|(key, _)| *key == source);
    if let Some(log) = &args.log
        && !chosen
    {
        pairs.push((source, inputs::format(library, log)?.component.name));
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
        sim.choice_mut(role).set(key, value_of(param, text)).or_kind(Kind::Usage)?;
    }
    Ok(())
}

/// Names the component that has this parameter but is not chosen, else similar names.
fn unknown_parameter(key: &str) -> String {
    if let Some(renamed) = components::renamed(key) {
        return format!("`{key}` is now `{}`: {}", renamed.name, renamed.help);
    }
    let owner = components::COMPONENTS.iter().find(|e| e.params.iter().any(|p| p.name == key));
    match owner {
        Some(component) => {
            format!("`{key}` belongs to {0} `{1}`: add -s {0}={1}", component.role.key(), component.name)
        }
        None => {
            let params = components::COMPONENTS.iter().flat_map(|component| component.params.iter().map(|p| p.name));
            let known: BTreeSet<&str> = Role::ALL.iter().map(|role| role.key()).chain(params).collect();
            let near = similar(key, &known.into_iter().collect::<Vec<_>>());
            let hint = match near.is_empty() {
                false => format!("did you mean {}?", near.join(" or ")),
                true => "`powersweep policies` lists them".to_owned(),
            };
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

/// One line for each column that has a value.
fn row_text(batch: &RecordBatch) -> String {
    let mut table = screen::table();
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if column.is_valid(0) {
            table.add_row([field.name().clone(), Cell::of(column, 0).shown()]);
        }
    }
    table.to_string()
}

/// Writes the rows of an optional table.
fn write(option: &str, path: &Path, task: &TaskSpec, batch: &RecordBatch) -> Result<(), Failure> {
    let encoding = match path.extension().and_then(|e| e.to_str()) {
        Some("csv") => Encoding::Csv,
        Some("parquet") => Encoding::Parquet,
        _ => {
            return Err(failure!(Usage, "{option} {}: the name must end in .parquet or .csv", path.display()));
        }
    };
    let mut out = Writing::begin(Some(path), encoding, batch.schema_ref(), &task.experiment)?;
    out.write(batch)?;
    out.finish()
}
