//! Invariants that every policy must keep, for a policy from outside.

use std::sync::Arc;

use powersweep_dataset::{Error, Kind, OrKind, failure};
use powersweep_engine::wasm::Module;
use powersweep_engine::workload::{self, LogFormat, Workload};
use powersweep_engine::{Choice, Details, JobRecord, Limits, Role, SimError, SimSpec, Value, components, simulate};
use powersweep_experiments::Digest;
use powersweep_inputs::library::Library;
use serde::Serialize;

use crate::inputs;

/// Jobs of a random workload.
const JOBS: i64 = 120;

/// Procs of the machine of random workloads.
const PROCS: i64 = 32;

/// Orders of the events of one instant, which take turns.
const EVENT_ORDERS: [&str; 3] = ["batch", "submit-first", "finish-first"];

/// Simulated events for each job before a run counts as endless.
const EVENTS_PER_JOB: u64 = 1000;

/// The policy, and what the checks found.
struct Suite {
    policy: SimSpec,
    module: Option<Arc<Module>>,
    checks: Vec<Check>,
    greatest_wait_s: f64,
    jobs: u64,
}

/// What the checks of a policy found.
#[derive(Debug, Clone, Serialize)]
pub struct Conformance {
    /// Whether every check holds.
    pub conforms: bool,
    /// The checks.
    pub checks: Vec<Check>,
    /// Number of simulated jobs.
    pub jobs: u64,
    /// The greatest wait of a job (s).
    pub greatest_wait_s: f64,
    /// Maximum fuel of one pass of a module (units); `None` for another policy.
    pub fuel_per_pass_most: Option<u64>,
}

/// One invariant over all runs.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// Its name.
    #[serde(rename = "check")]
    pub name: &'static str,
    /// What holds.
    #[serde(rename = "about")]
    pub doc: &'static str,
    /// `ok`, `failed`, or `not tested` if no run came so far.
    pub result: &'static str,
    /// Number of runs in which it was looked at.
    pub runs: u64,
    /// The first run that broke it.
    pub found: Option<String>,
}

const ENDS: usize = 0;
const ONCE: usize = 1;
const FREE: usize = 2;
const SAME: usize = 3;

/// A policy from outside.
#[derive(Debug, Clone)]
pub enum Policy {
    /// A file with a module.
    File(String),
    /// A module in this process.
    Module(Arc<Module>),
    /// A formula of an order of the queue.
    Formula(String),
}

impl Conformance {
    /// Runs a policy on `workloads` random workloads and on the logs of these names. `stop` ends the suite early.
    ///
    /// # Errors
    /// The policy or a log cannot be read, or `stop` ended the suite.
    pub fn of(
        policy: &Policy,
        workloads: u64,
        names: &[String],
        library: &Library,
        stop: &dyn Fn() -> bool,
    ) -> Result<Conformance, Error> {
        let mut suite = Suite::of(policy)?;
        for number in 0..workloads {
            let (spec, workload) = suite.random(number)?;
            suite.test(&format!("random workload {number}"), &spec, &workload, stop)?;
        }
        for name in names {
            let format = inputs::format(library, name)?;
            let log = inputs::parsed(format, &inputs::log(library, format, name, None)?)?;
            let spec = suite.on_log(format, name)?;
            let workload = workload::build(&spec, Some(&log)).or_kind(Kind::Workload)?;
            suite.test(name, &spec, &workload, stop)?;
        }
        Ok(Conformance {
            conforms: suite.checks.iter().all(|check| check.found.is_none()),
            checks: suite.checks,
            jobs: suite.jobs,
            greatest_wait_s: suite.greatest_wait_s,
            fuel_per_pass_most: suite.module.as_ref().map(|module| module.fuel_most()).filter(|fuel| *fuel > 0),
        })
    }
}

impl Suite {
    fn of(chosen: &Policy) -> Result<Suite, Error> {
        let mut policy = SimSpec::new();
        let mut module = None;
        let (role, component, param, value) = match chosen {
            Policy::File(file) => (Role::Backfill, "wasm", "wasm_module", file.as_str()),
            Policy::Module(module) => (Role::Backfill, "wasm", "wasm_module", module.name()),
            Policy::Formula(formula) => (Role::Order, "formula", "formula", formula.as_str()),
        };
        set(&mut policy, role, component, &[(param, Value::Text(value.to_owned()))])?;
        match chosen {
            Policy::File(file) => {
                let bytes =
                    std::fs::read(file).map_err(|error| failure!(Usage, "cannot read the module {file}: {error}"))?;
                let compiled = Arc::new(Module::new(file, &bytes).or_kind(Kind::Usage)?);
                policy.name_module(*Digest::of(&bytes).as_bytes());
                policy.place_module(Arc::clone(&compiled));
                module = Some(compiled);
            }
            // The choice above has its name.
            Policy::Module(module) => policy.place_module(Arc::clone(module)),
            Policy::Formula(_) => {}
        }
        let check = |name, doc| Check { name, doc, result: "not tested", runs: 0, found: None };
        let checks = vec![
            check("ends", "every job starts and ends"),
            check("once", "each job runs once, not before its submit, for at least its run time"),
            check("procs", "jobs never hold more procs than the machine has"),
            check("same bits", "a second run gives the same schedule"),
        ];
        Ok(Suite { policy, module, checks, greatest_wait_s: 0.0, jobs: 0 })
    }

    /// A random workload with its spec: orders of events and gear rules take turns, and in every third workload jobs
    /// outlive their estimates.
    fn random(&self, number: u64) -> Result<(SimSpec, Workload), Error> {
        let mut spec = self.policy.clone();
        spec.seed = number + 1;
        let source = [("synthetic_jobs_count", Value::Int(JOBS)), ("synthetic_procs", Value::Int(PROCS))];
        set(&mut spec, Role::Source, "lublin", &source)?;
        let events = EVENT_ORDERS[(number % 3) as usize];
        set(&mut spec, Role::Policy, "batch", &[("event_order", Value::Text(events.to_owned()))])?;
        if number % 4 == 3 {
            set(&mut spec, Role::GearRule, "bsld", &[("bsld_threshold", Value::Real(2.0))])?;
        }
        let mut workload = workload::build(&spec, None).map_err(|error| failure!(Usage, "{error}"))?;
        if number % 3 == 2 {
            workload.jobs.iter_mut().for_each(|job| job.estimate_s = (job.estimate_s / 2.0).floor());
        }
        Ok((spec, workload))
    }

    fn on_log(&self, format: &LogFormat, name: &str) -> Result<SimSpec, Error> {
        let mut spec = self.policy.clone();
        set(&mut spec, Role::Source, format.component.name, &[("log", Value::Text(name.to_owned()))])?;
        set(&mut spec, Role::Rules, "records", &[("wide_jobs", Value::Text("clamp".to_owned()))])?;
        Ok(spec)
    }

    /// Runs one workload twice and looks at its schedule.
    fn test(&mut self, name: &str, spec: &SimSpec, workload: &Workload, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        let run = || match schedule(spec, workload, stop) {
            Err(SimError::Deadline) => Err(failure!(Interrupted, "interrupted")),
            ran => Ok(ran),
        };
        let ran = run()?;
        self.note(ENDS, name, ran.as_ref().err().map(ToString::to_string));
        let Ok((rows, procs)) = ran else { return Ok(()) };
        self.jobs += rows.len() as u64;
        let waits = rows.iter().map(|row| row.start_s - row.submit_s);
        self.greatest_wait_s = waits.fold(self.greatest_wait_s, f64::max);
        self.note(ONCE, name, wrong_job(workload, &rows));
        self.note(FREE, name, too_many(&rows, procs));
        let same = run()?.is_ok_and(|(again, _)| again == rows);
        self.note(SAME, name, (!same).then(|| "the second run differs".to_owned()));
        Ok(())
    }

    fn note(&mut self, check: usize, run: &str, broken: Option<String>) {
        let check = &mut self.checks[check];
        check.runs += 1;
        if check.found.is_none() {
            check.result = "ok";
        }
        if let Some(reason) = broken
            && check.found.is_none()
        {
            check.result = "failed";
            check.found = Some(format!("{run}: {reason}"));
        }
    }
}

/// Fills a role with a component and its parameters.
pub(crate) fn set(spec: &mut SimSpec, role: Role, component: &str, values: &[(&str, Value)]) -> Result<(), Error> {
    let component = components::find(role, component).ok_or_else(|| failure!(Failure, "no component {component}"))?;
    let mut choice = Choice::new(component);
    for (name, value) in values {
        choice.set(name, value.clone()).or_kind(Kind::Usage)?;
    }
    spec.choose(choice);
    Ok(())
}

/// The schedule of a workload, and the procs of its machine.
fn schedule(spec: &SimSpec, workload: &Workload, stop: &dyn Fn() -> bool) -> Result<(Vec<JobRecord>, u32), SimError> {
    let max_events = EVENTS_PER_JOB * (workload.jobs.len() as u64 + 1);
    let limits = Limits { max_events, deadline_passed: stop, ..Limits::NONE };
    let mut details = Details { jobs: Some(Vec::new()), ..Details::default() };
    let measured = simulate(spec, workload, &limits, &mut details)?;
    let procs = measured.jobs().map_or(0, |summary| summary.machine_procs);
    Ok((details.jobs.unwrap_or_default(), procs))
}

/// The first job that did not run once, after its submit, for its run time.
fn wrong_job(workload: &Workload, rows: &[JobRecord]) -> Option<String> {
    if rows.len() != workload.jobs.len() {
        return Some(format!("{} of {} jobs have a row", rows.len(), workload.jobs.len()));
    }
    let wrong = workload.jobs.iter().zip(rows).find(|(job, row)| {
        row.job_id != job.id || row.start_s < job.submit_s || row.finish_s - row.start_s < job.run_s * (1.0 - 1e-9)
    });
    wrong.map(|(job, row)| format!("job {} ran from {} s to {} s", job.id, row.start_s, row.finish_s))
}

/// The first instant at which jobs hold more procs than there are.
fn too_many(rows: &[JobRecord], procs: u32) -> Option<String> {
    let held = |row: &JobRecord| [(row.start_s, i64::from(row.procs)), (row.finish_s, -i64::from(row.procs))];
    let mut changes: Vec<(f64, i64)> = rows.iter().flat_map(held).collect();
    // At equal instants ends come before starts.
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut used = 0;
    changes.into_iter().find_map(|(at_s, more)| {
        used += more;
        (used > i64::from(procs)).then(|| format!("{used} procs are held at {at_s} s, of {procs}"))
    })
}
