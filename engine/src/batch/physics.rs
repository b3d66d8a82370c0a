//! Physics of a spec before its simulation: what its machine draws, whether its cap ever binds, and the jobs that its
//! machine or its cap never admits.
use std::collections::{BTreeMap, BTreeSet};

use super::job_needs::Wanted;
use super::platform::Machine;
use super::policy::cap::{CapReach, schedule};
use super::policy::capacity;
use super::power::etinski;
use crate::error::SimError;
use crate::spec::{Model, Role, SimSpec};
use crate::workload::{self, Workload, powers};

/// The jobs of a workload by their demands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demand {
    /// Machine size that the source states.
    pub native_procs: Option<u32>,
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
        Demand { native_procs: workload.native_procs, first_jobs, needs }
    }

    /// Class, procs and number of the job of each demand.
    fn jobs(&self) -> impl Iterator<Item = (u8, u32, i64)> + '_ {
        self.first_jobs.iter().map(|(&(class, procs), &id)| (class, procs, id))
    }
}

/// Why a spec cannot mean what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// The cap never binds.
    IdleCap,
    /// The idle machine draws about as much as the cap, or more.
    IdlePower,
    /// A job needs more than the machine has, and the task fails.
    WideJob,
    /// No cap of the schedule admits a job, and the task fails.
    OverCapJob,
    /// One cap that changes in time, whose period is left at its default.
    Schedule,
    /// Powers are multiples of that of a busy proc.
    RelativePower,
}

impl FindingKind {
    /// Its name in output for programs.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::IdleCap => "cap-never-binds",
            FindingKind::IdlePower => "idle-power-near-cap",
            FindingKind::WideJob => "job-wider-than-machine",
            FindingKind::OverCapJob => "job-over-every-cap",
            FindingKind::Schedule => "schedule-of-one-cap",
            FindingKind::RelativePower => "relative-power",
        }
    }
}

/// One thing that a user should know before the spec runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// The key of a manifest that it is about.
    pub about: &'static str,
    /// The role whose component has that key.
    pub role: Role,
    /// The finding in a sentence.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// Share of the range between idle and peak power below which a cap leaves hardly any room.
const NEAR: f64 = 0.1;

/// The findings about a spec without problems. `demand`: of its workload, where it is known; without it, jobs are not
/// checked, nor is a machine of unknown size.
pub fn findings(spec: &SimSpec, demand: Option<&Demand>) -> Vec<Finding> {
    let mut found = Vec::new();
    if spec.model() != Model::Batch {
        return found;
    }
    found.extend(relative_power(spec));
    found.extend(changing_cap(spec));
    let native = demand.and_then(|demand| demand.native_procs).or_else(|| workload::stated_procs(spec));
    // The simulation reports a machine that is wrong.
    let Ok(machine) = Machine::new(spec, native) else { return found };
    found.extend(caps(spec, &machine));
    if let Some(demand) = demand {
        found.extend(wide_job(spec, &machine, demand).or_else(|| needy_job(spec, &machine, demand)));
        found.extend(over_cap_job(spec, &machine, demand));
    }
    found
}

fn relative_power(spec: &SimSpec) -> Option<Finding> {
    let power = spec.choice(Role::Power);
    let is_relative = *power.component() == etinski::COMPONENT && power.is_default("power_top_w");
    is_relative.then(|| Finding {
        kind: FindingKind::RelativePower,
        about: "power_top_w",
        role: Role::Power,
        message:
            "power is relative: `power_top_w` is left at 1 W a proc, so that 1 J is one second of a busy proc at the \
                  top gear"
                .to_owned(),
        help: "give `power_top_w`, the watts of a busy proc at the top gear, to get joules".to_owned(),
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
        role: Role::Cap,
        message: format!("`{name}` = [{}] is one cap that changes every {period_s} s", list("", "")),
        help: format!("for an axis of constant caps write [{}]; for a schedule, set `cap_period_s`", list("[", "]")),
    })
}

/// A cap that never binds, or that the idle machine reaches.
fn caps(spec: &SimSpec, machine: &Machine) -> Option<Finding> {
    let choice = spec.choice(Role::Cap);
    let (about, _) = schedule::written(choice)?;
    let cap_w = schedule::caps_w(spec, machine).into_iter().reduce(f64::min)?;
    let sleeps = *spec.choice(Role::Capacity).component() != capacity::NONE;
    let (idle_w, peak_w) = (machine.idle_w(), machine.peak_w(sleeps));
    let finding =
        |kind, message, help: &str| Some(Finding { kind, about, role: Role::Cap, message, help: help.to_owned() });
    if cap_w >= peak_w {
        let (cap, peak) = (watts(cap_w), watts(peak_w));
        let message = format!("the cap of {cap} never binds: all {} procs draw at most {peak}", machine.procs());
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
        let (procs, all) = (machine.busy_procs_within(cap_w), machine.procs());
        format!("the idle machine draws {idle} of the cap of {cap}: at most {procs} of {all} procs can be busy")
    };
    finding(FindingKind::IdlePower, message, "raise the cap, or let idle procs sleep by a `capacity_rule`")
}

/// The widest job that is wider than the machine, unless a rule handles such jobs.
fn wide_job(spec: &SimSpec, machine: &Machine, demand: &Demand) -> Option<Finding> {
    let rule = spec.choice(Role::Rules).text("wide_jobs");
    let (_, procs, id) = demand.jobs().max_by_key(|(_, procs, _)| *procs)?;
    (rule == "error" && procs > machine.procs()).then(|| Finding {
        kind: FindingKind::WideJob,
        about: "wide_jobs",
        role: Role::Rules,
        message: format!(
            "job {id} needs {procs} procs, the machine has {}: the task fails when it begins",
            machine.procs()
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
        role: Role::Rules,
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
    let fits = |(class, procs, id): (u8, u32, i64)| match procs <= machine.procs() {
        true => Some((class, procs, id)),
        false => (wide_jobs == "clamp").then_some((class, machine.procs(), id)),
    };
    let known = |job: &(u8, u32, i64)| machine.job_class_problem(job.2, job.0).is_none();
    let over = demand.jobs().filter(known).filter_map(fits).filter(|job| !reach.admits(job.1, job.0, 1.0));
    let (class, procs, id) =
        over.max_by(|a, b| reach.least_w(a.1, a.0, 1.0).total_cmp(&reach.least_w(b.1, b.0, 1.0)))?;
    Some(Finding {
        kind: FindingKind::OverCapJob,
        about: schedule::written(spec.choice(Role::Cap))?.0,
        role: Role::Cap,
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::components;
    use crate::spec::{Choice, Value};
    use crate::workload::Job;
    use crate::workload::needs::NeedsOfRecord;

    /// 10 procs of 10 W busy, 2 W idle, 4 W busy at the lowest gear: 20 W idle, 100 W at most.
    fn spec(cap: Option<(&str, &[f64])>) -> SimSpec {
        let mut spec = SimSpec::new();
        spec.choose(Choice::new(components::find(Role::Power, "table").unwrap()));
        let reals = |values: &[f64]| Value::Reals(values.to_vec());
        let power = spec.choice_mut(Role::Power);
        power.set("table_power_w", reals(&[4.0, 10.0])).unwrap();
        power.set("table_time_s", reals(&[2.0, 1.0])).unwrap();
        power.set("table_nodes", Value::Int(1)).unwrap();
        power.set("idle_fraction", Value::Real(0.2)).unwrap();
        spec.choice_mut(Role::Platform).set("gears_ghz", reals(&[1.0, 2.0])).unwrap();
        spec.choice_mut(Role::Platform).set("procs", Value::Int(10)).unwrap();
        if let Some((name, caps_w)) = cap {
            spec.choose(Choice::new(components::find(Role::Cap, name).unwrap()));
            spec.choice_mut(Role::Cap).set("cap_schedule_w", reals(caps_w)).unwrap();
            spec.choice_mut(Role::Cap).set("cap_period_s", Value::Real(60.0)).unwrap();
        }
        spec
    }

    fn job(id: i64, procs: u32) -> Job {
        Job {
            id,
            submit_s: 0.0,
            run_s: 1.0,
            estimate_s: 1.0,
            procs,
            record: id as u64,
            killed: false,
            priority: 1,
            class: 0,
        }
    }

    fn demand(procs: &[u32]) -> Demand {
        let jobs = (1..).zip(procs).map(|(id, procs)| job(id, *procs)).collect();
        Demand::of(&Workload { jobs, ..Workload::default() })
    }

    fn kinds(spec: &SimSpec, procs: &[u32]) -> Vec<FindingKind> {
        findings(spec, Some(&demand(procs))).into_iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn a_cap_binds_below_the_peak_power_only() {
        assert_eq!(kinds(&spec(Some(("admission", &[99.0]))), &[1]), []);
        assert_eq!(kinds(&spec(Some(("admission", &[100.0]))), &[1]), [FindingKind::IdleCap]);
        assert_eq!(kinds(&spec(Some(("admission", &[1e9, 50.0]))), &[1]), []);
        let found = findings(&spec(Some(("pdrc", &[2000.0]))), None);
        assert_eq!(found[0].message, "the cap of 2000 W never binds: all 10 procs draw at most 100 W");
    }

    #[test]
    fn a_relative_cap_is_judged_in_watts() {
        let relative = |shares: &[f64]| {
            let mut spec = spec(None);
            spec.choose(Choice::new(components::find(Role::Cap, "admission").unwrap()));
            spec.choice_mut(Role::Cap).set("cap_schedule_share", Value::Reals(shares.to_vec())).unwrap();
            spec.choice_mut(Role::Platform).set("cooling_w", Value::Real(100.0)).unwrap();
            assert_eq!(spec.problems(), Vec::<String>::new());
            findings(&spec, Some(&demand(&[1, 8]))).into_iter().map(|found| (found.about, found.message)).collect()
        };
        // All procs at the top gear draw 100 W, the cooling 100 W.
        let found: Vec<_> = relative(&[1.0]);
        assert_eq!(found[0].1, "the cap of 200 W never binds: all 10 procs draw at most 200 W");
        assert_eq!(relative(&[0.9]), []);
        // 120 W idle; 8 procs at the lowest gear and 2 idle ones: 136 W.
        let found: Vec<_> = relative(&[0.625]);
        assert!(found[0].1.contains("120 W of the cap of 125 W: at most 2 of 10 procs"), "{found:?}");
        assert!(
            found[1].1.contains("needs a cap of at least 136 W") && found[1].0 == "cap_schedule_share",
            "{found:?}"
        );
        let found: Vec<_> = relative(&[0.9, 0.8]);
        assert_eq!(found[0].1, "`cap_schedule_share` = [0.9, 0.8] is one cap that changes every 3000 s");
    }

    #[test]
    fn an_idle_machine_near_its_cap_is_reported() {
        let near = findings(&spec(Some(("admission", &[26.0]))), Some(&demand(&[1])));
        assert_eq!(near.len(), 1, "{near:?}");
        assert!(near[0].message.contains("20 W of the cap of 26 W: at most 3 of 10 procs"), "{near:?}");
        let above = findings(&spec(Some(("performance-precedence", &[19.0]))), Some(&demand(&[1])));
        assert!(above[0].message.contains("more than the cap of 19 W"), "{above:?}");
    }

    #[test]
    fn a_job_over_every_cap_is_named_with_its_watts_and_width() {
        // 8 procs at the lowest gear and 2 idle procs: 36 W.
        assert_eq!(kinds(&spec(Some(("admission", &[36.0]))), &[8]), []);
        let over = findings(&spec(Some(("admission", &[35.0, 30.0]))), Some(&demand(&[1, 8])));
        assert!(over[0].message.contains("job 2 of 8 procs needs a cap of at least 36 W"), "{over:?}");
        assert!(over[0].message.contains("the greatest cap is 35 W"), "{over:?}");
        // At the top gear, which `power-precedence` does not lower: 84 W.
        assert_eq!(kinds(&spec(Some(("power-precedence", &[83.0]))), &[8]), [FindingKind::OverCapJob]);
        assert_eq!(kinds(&spec(Some(("power-precedence", &[84.0]))), &[8]), []);
        assert_eq!(kinds(&spec(Some(("performance-precedence", &[35.0]))), &[8]), []);
        let mut dropping = spec(Some(("admission", &[35.0])));
        dropping.choice_mut(Role::Cap).set("over_cap_jobs", Value::Text("drop".to_owned())).unwrap();
        assert_eq!(kinds(&dropping, &[8]), []);
    }

    #[test]
    fn a_job_wider_than_its_partition_is_reported() {
        let mut spec = SimSpec::new();
        spec.choice_mut(Role::Platform).set("partition_procs", Value::Reals(vec![8.0, 4.0])).unwrap();
        spec.choice_mut(Role::Platform).set("gpus", Value::Int(2)).unwrap();
        let need =
            |record: u64, partition: u32, gpus: u32| NeedsOfRecord { record, partition, gpus, proc_memory_kib: 0 };
        let mut said = |jobs: &[(u32, u32, u32)], rule: &str| {
            spec.choice_mut(Role::Rules).set("wide_jobs", Value::Text(rule.to_owned())).unwrap();
            let numbered = || (1..).zip(jobs);
            let workload = Workload {
                jobs: numbered().map(|(id, (procs, ..))| job(id, *procs)).collect(),
                needs: numbered().map(|(id, (_, partition, gpus))| need(id as u64, *partition, *gpus)).collect(),
                ..Workload::default()
            };
            let found = findings(&spec, Some(&Demand::of(&workload)));
            let wide = found.into_iter().find(|finding| finding.kind == FindingKind::WideJob);
            wide.map(|finding| finding.message).unwrap_or_default()
        };
        assert_eq!(said(&[(8, 1, 2), (4, 2, 0)], "error"), "");
        let partition = "job 2 needs 6 procs of partition 2, the machine has 4 procs of partition 2: the task fails";
        assert!(said(&[(8, 1, 2), (6, 2, 0)], "error").starts_with(partition));
        assert!(said(&[(1, 1, 3)], "error").starts_with("job 1 needs 3 GPUs, the machine has 2 GPUs"));
        assert_eq!(said(&[(6, 2, 3)], "clamp"), "");
        assert!(said(&[(1, 3, 0)], "clamp").starts_with("job 1 needs partition 3, the machine has 2 partitions"));
        assert_eq!(said(&[(1, 3, 0)], "drop"), "");
        assert!(said(&[(13, 1, 0)], "error").starts_with("job 1 needs 13 procs, the machine has 12"));
    }

    #[test]
    fn wide_jobs_are_reported_unless_a_rule_handles_them() {
        let mut spec = spec(None);
        let wide = findings(&spec, Some(&demand(&[3, 11])));
        assert!(wide[0].message.contains("job 2 needs 11 procs, the machine has 10"), "{wide:?}");
        spec.choice_mut(Role::Rules).set("wide_jobs", Value::Text("clamp".to_owned())).unwrap();
        assert_eq!(kinds(&spec, &[11]), []);
    }

    #[test]
    fn relative_power_and_schedules_need_no_workload() {
        let found = findings(&SimSpec::new(), None);
        assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::RelativePower]);
        let mut spec = spec(Some(("admission", &[50.0, 60.0])));
        assert_eq!(kinds(&spec, &[1]), []);
        spec.choice_mut(Role::Cap).set("cap_period_s", Value::Real(3000.0)).unwrap();
        let found = findings(&spec, None);
        assert_eq!(found[0].message, "`cap_schedule_w` = [50, 60] is one cap that changes every 3000 s");
        assert!(found[0].help.contains("[[50], [60]]"), "{found:?}");
    }
}
