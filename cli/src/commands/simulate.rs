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
use powersweep_engine::energy::EnergySplit;
use powersweep_engine::spec::Model;
use powersweep_engine::spec::{Param, Type};
use powersweep_engine::wasm::Module;
use powersweep_engine::workload::{self, LOG_IMPORT, LogFormat, Workload};
use powersweep_engine::{Choice, Details, Limits, Measured, Role, SimError, SimSpec, Value};
use powersweep_experiments::reading::{similar, unknown};
use powersweep_experiments::settings::reproduce;
use powersweep_experiments::{FileRef, TaskSpec, identity};
use powersweep_inputs::library::Library;
use powersweep_inputs::signals::Accounts;
use powersweep_results::identity::{Micros, RunFacts};
use powersweep_results::{accounts, jobs, series, tasks};
use powersweep_worker::{TaskLimits, processor_time};
use serde_json::Value as Json;

use crate::args::SimulateArgs;
use crate::commands::worker;
use crate::exit::{Failure, Kind, OrKind, Outcome, failure};
use crate::{batsim, inputs, modules, screen, signals};

/// Maximum memory of one workload's jobs (bytes). A parameter that needs more is a typing error.
const WORKLOAD_BYTES_MAX: u64 = 8 << 30;

/// The rows of a simulated task.
pub struct Simulated {
    task: TaskSpec,
    workload: Workload,
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
    let Simulated { task, workload, row, jobs, series, accounts } =
        simulated(args, None, args.jobs.is_some(), args.series.is_some(), &stop)?;
    if args.accounts.is_some() && accounts.is_none() {
        return Err(failure!(Usage, "--accounts: the manifest has no [signals]"));
    }
    for (option, path, rows) in
        [("--jobs", &args.jobs, &jobs), ("--series", &args.series, &series), ("--accounts", &args.accounts, &accounts)]
    {
        if let Some((path, rows)) = path.as_deref().zip(rows.as_ref()) {
            write(option, path, &task, rows)?;
        }
    }
    if let Some(folder) = &args.batsim {
        write_schedule(folder, &task, &workload, &worker::limits(&args.limits))?;
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
    let library = inputs::library(&args.logs);
    let mut timing = RunFacts {
        attempt: 1,
        worker: "simulate".to_owned(),
        started_at: Micros(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64)),
        wall_ms: 0.0,
        engine_ms: 0.0,
        parse_ms: 0.0,
    };
    let (task, workload, signals) = prepare(args, policy, &library, &mut timing)?;
    let limits = worker::limits(&args.limits);
    let started = Instant::now();
    let energy = signals.as_ref().map(|signals| EnergySplit::new(signals.edges()));
    let mut details = Details { jobs: jobs.then(Vec::new), series: series.then(Vec::new), energy };
    let measured = within_limits(&task.sim, &workload, &limits, stop, &mut details)?;
    timing.engine_ms = started.elapsed().as_secs_f64() * 1e3;
    timing.wall_ms = timing.engine_ms + timing.parse_ms;
    let mut builder = tasks::Builder::new();
    builder.push(&task, &workload.counts, &measured, &timing);
    let row = builder.finish();
    let jobs = details.jobs.map(|details| {
        let mut rows = jobs::Builder::new();
        rows.push(&task, &details);
        rows.finish()
    });
    let series = details.series.map(|details| {
        let mut rows = series::Builder::new();
        rows.push(&task, &details);
        rows.finish()
    });
    let accounts = match (signals, details.energy, measured.jobs()) {
        (Some(signals), Some(energy), Some(summary)) => {
            let mut rows = accounts::Builder::new();
            rows.push(&task, &signals.of(&task.sim, &energy.cells, summary.machine_procs).or_kind(Kind::Usage)?);
            Some(rows.finish())
        }
        _ => None,
    };
    Ok(Simulated { task, workload, row, jobs, series, accounts })
}

/// Simulates within the limits, until `stop` returns true.
fn within_limits(
    sim: &SimSpec,
    workload: &Workload,
    limits: &TaskLimits,
    stop: &dyn Fn() -> bool,
    details: &mut Details,
) -> Result<Measured, Failure> {
    let max_bytes = limits.bytes_left(workload).map_err(|reason| failure!(Failure, "{reason}"))?;
    let began = processor_time();
    let is_late = || limits.deadline.is_some_and(|deadline| processor_time().saturating_sub(began) >= deadline);
    let within = Limits {
        max_events: limits.max_events.unwrap_or(u64::MAX),
        max_bytes,
        deadline_passed: &|| stop() || is_late(),
    };
    powersweep_engine::simulate(sim, workload, &within, details).map_err(|error| {
        use SimError::{Deadline, EventLimit, MemoryLimit, Policy};
        let exit = match error {
            Policy { .. } | Deadline | EventLimit(_) | MemoryLimit(_) => Kind::Failure,
            _ => Kind::Usage,
        };
        Failure::new(exit, limits.words(&error))
    })
}

/// Simulates the task again with the nodes of each job and the machine over time, and writes its schedule.
fn write_schedule(folder: &Path, task: &TaskSpec, workload: &Workload, limits: &TaskLimits) -> Result<(), Failure> {
    if task.sim.model() == Model::Queues {
        return Err(batsim::without_jobs());
    }
    let mut details = Details { jobs: Some(Vec::new()), series: Some(Vec::new()), ..Details::default() };
    let measured = within_limits(&batsim::observed(&task.sim), workload, limits, &|| false, &mut details)?;
    let (Some(summary), Some(jobs), Some(series)) = (measured.jobs(), &details.jobs, &details.series) else {
        return Err(batsim::without_jobs());
    };
    let command = reproduce(&task.sim, &Default::default());
    batsim::write(&batsim::Schedule { task, summary, jobs, series, command: &command }, folder)
}

/// The task, its workload, and the signals of its manifest on the workload's time.
fn prepare(
    args: &SimulateArgs,
    policy: Option<&Arc<Module>>,
    library: &Library,
    timing: &mut RunFacts,
) -> Result<(TaskSpec, Workload, Option<Accounts>), Failure> {
    let mut loaded = Vec::new();
    let mut task = match (&args.manifest, args.index) {
        (Some(name), Some(index)) => {
            let manifest = inputs::manifest(name)?;
            let library = inputs::library_of(name, &args.logs);
            let digests = inputs::files(&manifest, &library, None)?.digests;
            loaded = signals::load(&manifest, &library)?;
            inputs::task(&inputs::sweep(&manifest, &digests)?, index)?
        }
        _ => TaskSpec {
            experiment: Arc::from("simulate"),
            index: 0,
            task_id: uuid::Uuid::nil(),
            workload: Arc::from("simulate"),
            platform: Arc::from("simulate"),
            policy: Arc::from("simulate"),
            digest: None,
            log: None,
            sim: SimSpec::new(),
        },
    };
    apply(&mut task.sim, args, library)?;
    if let Some(policy) = policy {
        modules::place_in_process(&mut task.sim, policy)?;
    }
    if let Some(seed) = args.seed {
        task.sim.seed = seed;
    }
    let problems: Vec<String> = missing(&task.sim).chain(task.sim.problems()).collect();
    if !problems.is_empty() {
        return Err(failure!(Usage, "{}", problems.join("\n")));
    }
    let folder = args.manifest.as_deref().map(inputs::folder_of).unwrap_or_default();
    if policy.is_none() {
        modules::place(&mut task.sim, &library.clone().with_base(folder))?;
    }
    let started = Instant::now();
    let source = task.sim.choice(Role::Source);
    let log = match LogFormat::of(source).zip(source.opt_text("log")) {
        None => None,
        Some((format, name)) => {
            let sha256 = source.opt_text("log_sha256").map(str::parse).transpose();
            let sha256 = sha256.map_err(|error| failure!(Usage, "log_sha256: {error}"))?;
            let manifest = args.manifest.as_deref().filter(|_| !names_log(args));
            let folder = manifest.map(inputs::folder_of).unwrap_or_default();
            let import = source.opt_text(LOG_IMPORT.name).map(str::to_owned);
            let file = FileRef { format: Some(format), import, ..FileRef::plain(name, sha256) };
            let bytes = inputs::file(&library.clone().with_base(folder), &file)?;
            task.digest = Some(bytes.digest);
            task.log = Some(Arc::from(name));
            Some(inputs::parsed(format, &bytes)?)
        }
    };
    task.task_id = identity::task_id(&task.sim, task.digest);
    // A generator fails because of its parameters.
    let exit = if log.is_some() { Kind::Workload } else { Kind::Usage };
    let workload = workload::build_within(&task.sim, log.as_ref(), WORKLOAD_BYTES_MAX).or_kind(exit)?;
    let placed = match loaded.is_empty() {
        true => None,
        false => Some(signals::place(&loaded, &mut task.sim, &workload).or_kind(Kind::Usage)?),
    };
    timing.parse_ms = started.elapsed().as_secs_f64() * 1e3;
    Ok((task, workload, placed))
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
