//! `powersweep conformance`: invariants that every policy must keep, for a policy from outside.

use std::sync::Arc;

use powersweep_engine::wasm::Module;
use powersweep_engine::workload::{self, LogFormat, Workload};
use powersweep_engine::{Choice, Details, JobRecord, Limits, Role, SimError, SimSpec, Value, components, simulate};
use powersweep_experiments::Digest;
use serde_json::json;

use crate::args::ConformanceArgs;
use crate::exit::{Exit, Failure, Kind, OrKind, Outcome, failure};
use crate::{inputs, screen};

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

/// One invariant over all runs.
struct Check {
    name: &'static str,
    /// What holds.
    doc: &'static str,
    /// Number of runs in which it was looked at.
    runs: u64,
    /// The first run that broke it.
    broken: Option<String>,
}

const ENDS: usize = 0;
const ONCE: usize = 1;
const FREE: usize = 2;
const SAME: usize = 3;

/// Runs the suite; the exit code is 1 if the policy breaks an invariant.
pub fn run(args: &ConformanceArgs) -> Outcome {
    let suite = tested(args, None)?;
    if args.output.is_json() {
        screen::print_json(suite.json())?;
    } else {
        screen::print(&suite.text())?;
    }
    Ok(if suite.holds() { Exit::Done } else { Exit::Of(Kind::Failure) })
}

/// The result for programs of a policy of this process, whose name stands for a module in `args`.
pub fn document(args: &ConformanceArgs, policy: &Arc<Module>) -> Result<serde_json::Value, Failure> {
    Ok(tested(args, Some(policy))?.json())
}

/// `policy`: one of this process.
fn tested(args: &ConformanceArgs, policy: Option<&Arc<Module>>) -> Result<Suite, Failure> {
    let mut suite = Suite::of(args, policy)?;
    for number in 0..args.workloads {
        let (spec, workload) = suite.random(number).or_kind(Kind::Usage)?;
        suite.test(&format!("random workload {number}"), &spec, &workload);
    }
    let library = inputs::library(&args.logs);
    for name in &args.names {
        let format = inputs::format(&library, name)?;
        let log = inputs::parsed(format, &inputs::log(&library, format, name, None)?)?;
        let spec = suite.on_log(format, name)?;
        let workload = workload::build(&spec, Some(&log)).or_kind(Kind::Workload)?;
        suite.test(name, &spec, &workload);
    }
    Ok(suite)
}

impl Suite {
    fn of(args: &ConformanceArgs, in_process: Option<&Arc<Module>>) -> Result<Suite, Failure> {
        let mut policy = SimSpec::new();
        let mut module = None;
        let (role, component, param, value) = match (&args.module, &args.formula) {
            (Some(file), _) => (Role::Backfill, "wasm", "wasm_module", file),
            (None, Some(formula)) => (Role::Order, "formula", "formula", formula),
            (None, None) => return Err(failure!(Usage, "name a policy by --module or --formula")),
        };
        set(&mut policy, role, component, &[(param, Value::Text(value.clone()))])?;
        if let Some(in_process) = in_process {
            // The choice above has its name.
            policy.place_module(Arc::clone(in_process));
        } else if let Some(file) = &args.module {
            let bytes =
                std::fs::read(file).map_err(|error| failure!(Usage, "cannot read the module {file}: {error}"))?;
            let compiled = Arc::new(Module::new(file, &bytes).or_kind(Kind::Usage)?);
            policy.name_module(*Digest::of(&bytes).as_bytes());
            policy.place_module(Arc::clone(&compiled));
            module = Some(compiled);
        }
        let check = |name, doc| Check { name, doc, runs: 0, broken: None };
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
    fn random(&self, number: u64) -> Result<(SimSpec, Workload), SimError> {
        let mut spec = self.policy.clone();
        spec.seed = number + 1;
        let invalid = |error: Failure| SimError::Invalid(error.message);
        let source = [("synthetic_jobs_count", Value::Int(JOBS)), ("synthetic_procs", Value::Int(PROCS))];
        set(&mut spec, Role::Source, "lublin", &source).map_err(invalid)?;
        let events = EVENT_ORDERS[(number % 3) as usize];
        set(&mut spec, Role::Policy, "batch", &[("event_order", Value::Text(events.to_owned()))]).map_err(invalid)?;
        if number % 4 == 3 {
            set(&mut spec, Role::GearRule, "bsld", &[("bsld_threshold", Value::Real(2.0))]).map_err(invalid)?;
        }
        let built = workload::build(&spec, None).map_err(|error| SimError::Invalid(error.to_string()));
        built.map(|mut workload| {
            if number % 3 == 2 {
                workload.jobs.iter_mut().for_each(|job| job.estimate_s = (job.estimate_s / 2.0).floor());
            }
            (spec, workload)
        })
    }

    fn on_log(&self, format: &LogFormat, name: &str) -> Result<SimSpec, Failure> {
        let mut spec = self.policy.clone();
        set(&mut spec, Role::Source, format.component.name, &[("log", Value::Text(name.to_owned()))])?;
        set(&mut spec, Role::Rules, "records", &[("wide_jobs", Value::Text("clamp".to_owned()))])?;
        Ok(spec)
    }

    /// Runs one workload twice and looks at its schedule.
    fn test(&mut self, name: &str, spec: &SimSpec, workload: &Workload) {
        let ran = schedule(spec, workload);
        self.note(ENDS, name, ran.as_ref().err().map(ToString::to_string));
        let Ok((rows, procs)) = ran else { return };
        self.jobs += rows.len() as u64;
        let waits = rows.iter().map(|row| row.start_s - row.submit_s);
        self.greatest_wait_s = waits.fold(self.greatest_wait_s, f64::max);
        self.note(ONCE, name, wrong_job(workload, &rows));
        self.note(FREE, name, too_many(&rows, procs));
        let again = schedule(spec, workload);
        let same = again.is_ok_and(|(again, _)| again == rows);
        self.note(SAME, name, (!same).then(|| "the second run differs".to_owned()));
    }

    fn note(&mut self, check: usize, run: &str, broken: Option<String>) {
        let check = &mut self.checks[check];
        check.runs += 1;
        if let Some(reason) = broken
            && check.broken.is_none()
        {
            check.broken = Some(format!("{run}: {reason}"));
        }
    }

    fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.broken.is_none())
    }

    fn text(&self) -> String {
        let mut table = screen::table();
        table.set_header(["check", "result", "runs", "found"]);
        for check in &self.checks {
            let (result, found) = match &check.broken {
                None => ("ok", check.doc),
                Some(reason) => ("failed", reason.as_str()),
            };
            table.add_row([check.name, result, &check.runs.to_string(), found]);
        }
        let mut lines = vec![table.to_string()];
        lines.push(format!("{} jobs; greatest wait {} s", self.jobs, self.greatest_wait_s));
        if let Some(module) = &self.module {
            lines.push(format!("most fuel of one pass: {} units", module.fuel_most()));
        }
        lines.join("\n")
    }

    fn json(&self) -> serde_json::Value {
        let one = |check: &Check| {
            let result = if check.broken.is_none() { "ok" } else { "failed" };
            json!({ "check": check.name, "about": check.doc, "result": result, "runs": check.runs, "found": check.broken })
        };
        json!({ "conforms": self.holds(), "checks": self.checks.iter().map(one).collect::<Vec<_>>(),
                "jobs": self.jobs, "greatest_wait_s": self.greatest_wait_s,
                "fuel_per_pass_most": self.module.as_ref().map(|module| module.fuel_most()) })
    }
}

/// Fills a role with a component and its parameters.
fn set(spec: &mut SimSpec, role: Role, component: &str, values: &[(&str, Value)]) -> Result<(), Failure> {
    let component = components::find(role, component).ok_or_else(|| failure!(Failure, "no component {component}"))?;
    let mut choice = Choice::new(component);
    for (name, value) in values {
        choice.set(name, value.clone()).or_kind(Kind::Usage)?;
    }
    spec.choose(choice);
    Ok(())
}

/// The schedule of a workload, and the procs of its machine.
fn schedule(spec: &SimSpec, workload: &Workload) -> Result<(Vec<JobRecord>, u32), SimError> {
    let max_events = EVENTS_PER_JOB * (workload.jobs.len() as u64 + 1);
    let limits = Limits { max_events, ..Limits::NONE };
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
