//! Physics of a spec before its simulation: what its machine draws, whether its cap ever binds, and the jobs that its
//! machine or its cap never admits.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::job_needs::Wanted;
use super::platform::Machine;
use super::policy::cap::{CapReach, schedule};
use super::policy::composed::Composed;
use super::policy::gear::RESERVATION_INCLUSIVE;
use super::policy::{capacity, watch};
use super::power::etinski;
use crate::error::SimError;
use crate::queues::statistics::steady_state;
use crate::spec::{Model, Role, SimSpec, Value};
use crate::workload::{self, Job, Workload, powers};

/// The jobs of a workload by their demands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Demand {
    /// Why there is no job, so that each task fails.
    pub problem: Option<String>,
    /// Machine size that the source states.
    pub native_procs: Option<u32>,
    /// Calendar time of the workload's second 0 (Unix time), if the source states it.
    pub unix_start_s: Option<i64>,
    /// The first submission, and an instant before which no run ends (s): the latest end of a job that starts at once.
    pub span_s: (f64, f64),
    /// Sum of all estimates over the sum of all run times; `None` without a run time.
    estimates_over_runs: Option<f64>,
    /// Number of the first job of each class and number of procs.
    first_jobs: BTreeMap<(u8, u32), i64>,
    /// The first job of each vector of needs.
    needs: Vec<Wanted>,
}

impl Demand {
    /// The demand of a workload.
    pub fn of(workload: &Workload) -> Demand {
        let mut first_jobs = BTreeMap::new();
        for job in &workload.jobs {
            first_jobs.entry((job.class, job.procs)).or_insert(job.id);
        }
        // Without needs in the log, jobs differ in procs only, and the first one shows whether all lack a partition.
        let stated = if workload.needs.is_empty() { 1 } else { workload.jobs.len() };
        let (mut needs, mut known) = (Vec::new(), BTreeSet::new());
        for job in workload.jobs.iter().take(stated) {
            let wanted = Wanted::of(job, &workload.needs);
            let record = wanted.record;
            if known.insert((record.partition, job.procs, record.gpus, record.proc_memory_kib)) {
                needs.push(wanted);
            }
        }
        let sum = |of: fn(&Job) -> f64| workload.jobs.iter().map(of).sum::<f64>();
        let (estimates_s, runs_s) = (sum(|job| job.estimate_s), sum(|job| job.run_s));
        let first_s = workload.jobs.first().map_or(0.0, |job| job.submit_s);
        Demand {
            problem: None,
            native_procs: workload.native_procs,
            unix_start_s: workload.unix_start_s,
            span_s: (first_s, workload.jobs.iter().map(|job| job.submit_s + job.run_s).fold(first_s, f64::max)),
            estimates_over_runs: (runs_s > 0.0).then(|| estimates_s / runs_s),
            first_jobs,
            needs,
        }
    }

    /// No jobs, for this reason.
    pub fn lacking(problem: String) -> Demand {
        Demand { problem: Some(problem), ..Demand::default() }
    }

    /// Class, procs and number of the job of each demand.
    fn jobs(&self) -> impl Iterator<Item = (u8, u32, i64)> + '_ {
        self.first_jobs.iter().map(|(&(class, procs), &id)| (class, procs, id))
    }
}

/// Declares the kinds of findings, each with its name in output for programs and its meaning.
macro_rules! kinds {
    ($($kind:ident $name:literal $meaning:literal,)*) => {
        /// Why a spec cannot mean what it says.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingKind {
            $(#[doc = $meaning] $kind,)*
        }

        impl FindingKind {
            /// Its name in output for programs.
            pub fn name(self) -> &'static str {
                match self {
                    $(FindingKind::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    IdleCap "cap-never-binds" "The cap never binds.",
    IdlePower "idle-power-near-cap" "The idle machine draws about as much as the cap, or more.",
    WideJob "job-wider-than-machine" "A job needs more than the machine has, and the task fails.",
    OverCapJob "job-over-every-cap" "No cap of the schedule admits a job, and the task fails.",
    Schedule "schedule-of-one-cap" "One cap that changes in time, whose period is left at its default.",
    RelativePower "relative-power" "Powers are multiples of that of a busy proc.",
    NoJobs "no-jobs" "The workload has no job, and the task fails.",
    NoMachine "no-machine" "No size of the machine is known, or it is out of range, and the task fails.",
    SignalElsewhere "signal-elsewhere" "A signal has no values for the time of the workload, and the task fails.",
    SignalRepeats "signal-repeats" "The workload begins outside of the times of a signal, whose values repeat or hold there.",
    UnrecordedSeries "unrecorded-series" "A series is asked for that no task records.",
    SeedsAlike "seeds-alike" "Several seeds, none of which changes the task.",
    UserEstimates "user-estimates" "Jobs wait by estimates that are far from their run times.",
    NoEffect "no-effect" "A parameter or component that changes nothing beside another choice.",
}

impl FindingKind {
    /// Whether it only says how to read the results.
    pub fn is_note(self) -> bool {
        matches!(self, FindingKind::RelativePower | FindingKind::UserEstimates | FindingKind::SignalRepeats)
    }

    /// The word for a finding of this kind.
    pub fn word(self) -> &'static str {
        if self.is_note() { "note" } else { "warning" }
    }
}

/// The block of a manifest that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The block whose component fills this role.
    Choice(Role),
    /// The block of the signal of this label.
    Signal(String),
    /// The top of the manifest.
    Top,
}

/// One thing that a user should know before the spec runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// The key of a manifest that it is about.
    pub about: &'static str,
    /// The block of that key.
    pub place: Place,
    /// The finding in a sentence.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Finding {
    /// The finding about a single task as text.
    pub fn text(&self) -> String {
        finding_text(self.kind, &self.message, &self.help)
    }
}

/// A finding as text.
pub fn finding_text(kind: FindingKind, message: &str, help: &str) -> String {
    format!("{}: {message}; {help}", kind.word())
}

/// Share of the range between idle and peak power below which a cap leaves hardly any room.
const NEAR: f64 = 0.1;

/// Whether a task of a spec may record a series. The series of the machine over time need a machine that is watched.
pub fn may_record(spec: &SimSpec, series: &str) -> bool {
    let of_queues = series == steady_state::RESPONSE_TIME_CDF.name;
    let of_machine = watch::ALL.iter().any(|of| of.name == series);
    match spec.model() {
        Model::Queues => of_queues,
        Model::Batch => !of_queues && (!of_machine || Composed::is_watched(spec)),
    }
}

/// Ratio of estimates to run times from which a rule that trusts estimates is worth a note.
const FAR: f64 = 1.5;

/// The findings about a spec without problems. `demand`: of its workload, where it is known; without it, jobs are not
/// checked, nor is a machine of unknown size. A cap that follows a signal is checked where the signal was placed.
pub fn findings(spec: &SimSpec, demand: Option<&Demand>) -> Vec<Finding> {
    let mut found = Vec::new();
    if spec.model() != Model::Batch {
        return found;
    }
    if let Some(problem) = demand.and_then(|demand| demand.problem.as_ref()) {
        found.extend(no_jobs(problem));
        return found;
    }
    found.extend(without_effect(spec));
    found.extend(relative_power(spec));
    found.extend(changing_cap(spec));
    found.extend(demand.and_then(|demand| user_estimates(spec, demand)));
    let native = demand.and_then(|demand| demand.native_procs).or_else(|| workload::stated_procs(spec));
    let machine = match Machine::new(spec, native) {
        Ok(machine) => machine,
        Err(error) => {
            found.extend(demand.map(|_| no_machine(&error)));
            return found;
        }
    };
    found.extend(caps(spec, &machine));
    if let Some(demand) = demand {
        found.extend(wide_job(spec, &machine, demand).or_else(|| needy_job(spec, &machine, demand)));
        found.extend(over_cap_job(spec, &machine, demand));
    }
    found
}

fn no_machine(error: &SimError) -> Finding {
    Finding {
        kind: FindingKind::NoMachine,
        about: "procs",
        place: Place::Choice(Role::Platform),
        message: error.to_string(),
        help: "each task fails when it begins".to_owned(),
    }
}

fn no_jobs(problem: &str) -> Option<Finding> {
    Some(Finding {
        kind: FindingKind::NoJobs,
        about: "source",
        place: Place::Choice(Role::Source),
        message: format!("{problem}: the task fails when it begins"),
        help: "choose another log, or let the rules of the workload keep more jobs".to_owned(),
    })
}

/// A deferral that takes estimates of users for the lengths of jobs.
fn user_estimates(spec: &SimSpec, demand: &Demand) -> Option<Finding> {
    let (choice, about) = (spec.choice(Role::Deferral), "defer_length");
    let trusts = choice.get(about) == Some(&Value::Text("estimate".to_owned()));
    let ratio = demand.estimates_over_runs.filter(|ratio| trusts && *ratio >= FAR)?;
    let name = choice.component().name;
    Some(Finding {
        kind: FindingKind::UserEstimates,
        about,
        place: Place::Choice(Role::Deferral),
        message: format!(
            "`deferral` = \"{name}\" takes each job for as long as its estimate; the estimates of this workload are {ratio:.1} \
             times the run times"
        ),
        help: format!(
            "`{about}` = \"run\" takes the true run times, which no scheduler knows: the two bound what waiting saves"
        ),
    })
}

/// Choices that change nothing beside another one. They are not refused: an axis may cross rules with and without them.
fn without_effect(spec: &SimSpec) -> Vec<Finding> {
    let name = |role: Role| spec.choice(role).component().name;
    let (backfill, predictor, corrector) = (name(Role::Backfill), name(Role::Predictor), name(Role::Corrector));
    let text = |about: &str| spec.choice(Role::GearRule).get(about).map(ToString::to_string).unwrap_or_default();
    let reserves_head = ["easy", "kept-head"].contains(&backfill);
    let mut found = Vec::new();
    let mut idle = |role, about, value: &str, other: String, why: &str| {
        found.push(Finding {
            kind: FindingKind::NoEffect,
            about,
            place: Place::Choice(role),
            message: format!("`{about}` = {value} changes nothing with {other}, {why}"),
            help: format!("leave out `{about}` there: rows that differ in it alone are equal"),
        });
    };
    if corrector != Role::Corrector.default_component() && ["user", "exact"].contains(&predictor) {
        let (value, other) = (format!("\"{corrector}\""), format!("`predictor` = \"{predictor}\""));
        idle(Role::Corrector, "corrector", &value, other, "whose predictions are never corrected");
    }
    let gears = spec.choice(Role::GearRule);
    for (about, why) in [
        ("head_gear", "which keeps no gear for the head of the queue"),
        (RESERVATION_INCLUSIVE.name, "which has no reservation of the head that bounds the jobs that overtake"),
    ] {
        if !reserves_head && gears.get(about).is_some() && !gears.is_default(about) {
            let value = text(about);
            let value = if about == "head_gear" { format!("\"{value}\"") } else { value };
            idle(Role::GearRule, about, &value, format!("`backfill` = \"{backfill}\""), why);
        }
    }
    found
}

/// Whether powers are multiples of that of a busy proc: no watts are known.
pub fn is_relative(spec: &SimSpec) -> bool {
    let power = spec.choice(Role::Power);
    *power.component() == etinski::COMPONENT && power.is_default("power_top_w")
}

fn relative_power(spec: &SimSpec) -> Option<Finding> {
    is_relative(spec).then(|| Finding {
        kind: FindingKind::RelativePower,
        about: "power_top_w",
        place: Place::Choice(Role::Power),
        message:
            "power is relative: `power_top_w` is left at 1 W a proc, so that 1 J is one second of a busy proc at the \
                  top gear"
                .to_owned(),
        help: "give `power_top_w`, the watts of a busy proc at the top gear, to get joules, emissions and costs"
            .to_owned(),
    })
}

fn changing_cap(spec: &SimSpec) -> Option<Finding> {
    let choice = spec.choice(Role::Cap);
    let (name, caps) = schedule::written(choice).filter(|(_, caps)| caps.len() > 1)?;
    let period_s = choice.is_default("cap_period_s").then(|| choice.real("cap_period_s"))?;
    let list = |open: &str, close: &str| {
        let caps: Vec<String> = caps.iter().map(|cap| format!("{open}{cap}{close}")).collect();
        caps.join(", ")
    };
    Some(Finding {
        kind: FindingKind::Schedule,
        about: name,
        place: Place::Choice(Role::Cap),
        message: format!("`{name}` = [{}] is one cap that changes every {period_s} s", list("", "")),
        help: format!("for an axis of constant caps write [{}]; for a schedule, set `cap_period_s`", list("[", "]")),
    })
}

/// A cap that never binds, or that the idle machine reaches.
fn caps(spec: &SimSpec, machine: &Machine) -> Option<Finding> {
    let about = schedule::stated_by(spec.choice(Role::Cap))?;
    let cap_w = schedule::caps_w(spec, machine).into_iter().reduce(f64::min)?;
    let sleeps = *spec.choice(Role::Capacity).component() != capacity::NONE;
    let (idle_w, peak_w) = (machine.idle_w(), machine.peak_w(sleeps));
    let finding = |kind, message, help: &str| {
        Some(Finding { kind, about, place: Place::Choice(Role::Cap), message, help: help.to_owned() })
    };
    if cap_w >= peak_w {
        let (cap, peak) = (watts(cap_w), watts(peak_w));
        let message = format!("the cap of {cap} never binds: all {} procs draw at most {peak}", machine.procs);
        return finding(
            FindingKind::IdleCap,
            message,
            "lower the cap, check the watts of the platform, or leave it out",
        );
    }
    // Procs that sleep draw less.
    if sleeps || cap_w - idle_w >= NEAR * (peak_w - idle_w) {
        return None;
    }
    let (cap, idle) = (watts(cap_w), watts(idle_w));
    let message = if cap_w < idle_w {
        format!("the idle machine draws {idle}, more than the cap of {cap}: no job can run within this cap")
    } else {
        let (procs, all) = (machine.busy_procs_within(cap_w), machine.procs);
        format!("the idle machine draws {idle} of the cap of {cap}: at most {procs} of {all} procs can be busy")
    };
    finding(FindingKind::IdlePower, message, "raise the cap, or let idle procs sleep by a `capacity_rule`")
}

/// The widest job that is wider than the machine, unless a rule handles such jobs.
fn wide_job(spec: &SimSpec, machine: &Machine, demand: &Demand) -> Option<Finding> {
    let rule = spec.choice(Role::Rules).text("wide_jobs");
    let (_, procs, id) = demand.jobs().max_by_key(|(_, procs, _)| *procs)?;
    (rule == "error" && procs > machine.procs).then(|| Finding {
        kind: FindingKind::WideJob,
        about: "wide_jobs",
        place: Place::Choice(Role::Rules),
        message: format!(
            "job {id} needs {procs} procs, the machine has {}: the task fails when it begins",
            machine.procs
        ),
        help: "choose `wide_jobs` = \"clamp\" or \"drop\", or a larger machine (`procs`, `size_factor`)".to_owned(),
    })
}

/// The first job that needs more of a partition, of the GPUs or of the memory than the machine has, unless a rule handles it.
fn needy_job(spec: &SimSpec, machine: &Machine, demand: &Demand) -> Option<Finding> {
    let rule = spec.choice(Role::Rules).text("wide_jobs");
    let error = demand.needs.iter().find_map(|wanted| wanted.problem(machine, rule))?;
    let SimError::NeedTooLarge { job_id, needs, has, help, .. } = error else { return None };
    Some(Finding {
        kind: FindingKind::WideJob,
        about: "wide_jobs",
        place: Place::Choice(Role::Rules),
        message: format!("job {job_id} needs {needs}, the machine has {has}: the task fails when it begins"),
        help: help.to_owned(),
    })
}

/// The job of greatest power that no cap of the schedule admits, unless `over_cap_jobs` handles such jobs.
fn over_cap_job(spec: &SimSpec, machine: &Machine, demand: &Demand) -> Option<Finding> {
    // Measured powers are not among the demands.
    if powers::are_used(spec) {
        return None;
    }
    let reach = CapReach::new(spec, machine).filter(|reach| !reach.drops)?;
    let wide_jobs = spec.choice(Role::Rules).text("wide_jobs");
    // With `clamp`, a wide job has the width of the machine; otherwise it does not run at all.
    let fits = |(class, procs, id): (u8, u32, i64)| match procs <= machine.procs {
        true => Some((class, procs, id)),
        false => (wide_jobs == "clamp").then_some((class, machine.procs, id)),
    };
    let known = |job: &(u8, u32, i64)| machine.job_class_problem(job.2, job.0).is_none();
    let over = demand.jobs().filter(known).filter_map(fits).filter(|job| !reach.admits(job.1, job.0, 1.0));
    let (class, procs, id) =
        over.max_by(|a, b| reach.least_w(a.1, a.0, 1.0).total_cmp(&reach.least_w(b.1, b.0, 1.0)))?;
    Some(Finding {
        kind: FindingKind::OverCapJob,
        about: schedule::stated_by(spec.choice(Role::Cap))?,
        place: Place::Choice(Role::Cap),
        message: format!(
            "job {id} of {procs} procs needs a cap of at least {}, even alone on the machine; the greatest cap is {}: it \
             never starts, and the task fails",
            watts(reach.least_w(procs, class, 1.0)),
            watts(reach.greatest_w)
        ),
        help: "raise the cap, choose `over_cap_jobs` = \"drop\", which counts such jobs, or leave them out by the rules of \
               the workload"
            .to_owned(),
    })
}

/// Watts for people: whole from 1000 W, else four significant digits.
fn watts(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { (3 - value.abs().log10().floor() as i32).clamp(0, 9) as usize };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} W")
}
