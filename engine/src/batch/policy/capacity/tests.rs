//! Invariants of every pass, on random workloads, with delays of waking and switching off.
use proptest::prelude::*;

use super::*;
use crate::batch::kernel::{Durations, Ended, EventOrder, Outcomes, Policy, Simulation};
use crate::batch::platform::Machine;
use crate::batch::policy::batch::event_order;
use crate::batch::policy::composed::Composed;
use crate::components;
use crate::limits::Limits;
use crate::spec::{Choice, SimSpec, Value};
use crate::summary::Outcome;
use crate::workload::Job;

/// A policy whose invariants are checked at every pass.
#[derive(Debug, Clone)]
struct Checked {
    policy: Composed,
    /// Whether a pass without the results of earlier passes must decide the same: false for rules that keep
    /// reservations.
    memoryless: bool,
    waiting: Vec<JobId>,
}

impl Policy for Checked {
    fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.waiting.push(job);
        self.policy.submitted(cluster, job);
    }

    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        self.policy.ended(cluster, ended);
    }

    fn timer<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, token: u64) {
        self.policy.timer(cluster, token);
    }

    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let (mut copy, mut fresh) = (cluster.clone(), self.policy.clone());
        let awake = cluster.free() + cluster.asleep() + cluster.switching();
        if let Some(procs) = fresh.batch.batch.procs_of_starts(awake, &mut copy)? {
            let of_copy = power_save::procs_to_start_on_a_copy(&self.policy.batch, &mut copy)?;
            assert_eq!(procs, of_copy, "a trial and a pass of a copy");
            assert_eq!(fresh.batch.waiting().jobs(), self.policy.batch.waiting().jobs(), "a trial leaves the queue");
        }
        let (mut copy, mut fresh) = (cluster.clone(), self.policy.clone());
        self.policy.pass(cluster)?;
        if self.memoryless {
            fresh.batch.procs_changed();
            fresh.pass(&mut copy)?;
            assert!(cluster.running_jobs().eq(copy.running_jobs()), "a pass without earlier results starts other jobs");
            assert_eq!(cluster.active(), copy.active());
        }
        self.waiting.retain(|&job| !cluster.is_running(job));
        let widest = self.waiting.iter().map(|&job| cluster.procs(job)).max().unwrap_or(0);
        let executing: u32 = cluster.running_jobs().map(|job| cluster.procs(job)).sum();
        let waking = cluster.waking();
        let (active, all) = (cluster.active(), cluster.machine().procs);
        let enough = active >= widest || self.policy.capacity.counts_sleeping();
        assert!(enough && active <= all, "{active} active, {widest} wanted");
        assert_eq!(active, cluster.free() + executing + waking);
        assert!(cluster.free() + executing + cluster.asleep() + cluster.switching() == all);
        Ok(())
    }
}

fn choose(spec: &mut SimSpec, role: Role, name: &str, params: &[(&str, Value)]) {
    let mut choice = Choice::new(components::find(role, name).expect("is registered"));
    for (name, value) in params {
        choice.set(name, value.clone()).expect("is valid");
    }
    spec.choose(choice);
}

/// Procs of the machine of all tests.
const PROCS: i64 = 16;

/// A spec by random numbers.
fn spec(rule: usize, backfill: usize, order: usize, events: usize, delays: (f64, f64)) -> SimSpec {
    let mut spec = SimSpec::new();
    let platform = [("procs", Value::Int(PROCS)), ("wake_s", Value::Real(delays.0)), ("off_s", Value::Real(delays.1))];
    choose(&mut spec, Role::Platform, "homogeneous", &platform);
    let ols = |sla: f64, durations: &str| {
        let durations = Value::Text(durations.to_owned());
        [("ols_period_s", Value::Real(25.0)), ("ols_sla_slowdown", Value::Real(sla)), ("ols_durations", durations)]
    };
    match rule {
        0 => choose(&mut spec, Role::Capacity, "two-level", &[("two_level_procs", Value::Int(6))]),
        1 => choose(&mut spec, Role::Capacity, "ols", &ols(2.0, "run")),
        2 => choose(&mut spec, Role::Capacity, "power-save", &[("suspend_time_s", Value::Real(15.0))]),
        _ => choose(&mut spec, Role::Capacity, "ols", &ols(5.0, "estimate")),
    }
    choose(&mut spec, Role::Backfill, ["easy", "none", "conservative", "kept-head"][backfill], &[]);
    choose(&mut spec, Role::Order, ["fcfs", "sjf", "wfp3"][order], &[]);
    let events = ["batch", "submit-first", "submit-first-held", "finish-first"][events];
    choose(&mut spec, Role::Policy, "batch", &[("event_order", Value::Text(events.to_owned()))]);
    spec
}

/// A cap under which the gears of running jobs change: a proc draws 2 W idle, 4 W at half the speed and 10 W. 64 W suffice
/// for all procs at the lowest gear.
fn choose_cap(spec: &mut SimSpec, cap_w: f64) {
    spec.choice_mut(Role::Platform).set("gears_ghz", Value::Reals(vec![1.0, 2.0])).expect("is valid");
    let table = [
        ("table_power_w", Value::Reals(vec![4.0, 10.0])),
        ("table_time_s", Value::Reals(vec![2.0, 1.0])),
        ("table_nodes", Value::Int(1)),
        ("idle_fraction", Value::Real(0.2)),
    ];
    choose(spec, Role::Power, "table", &table);
    choose(spec, Role::Cap, "pdrc", &[("cap_schedule_w", Value::Reals(vec![cap_w]))]);
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let job = (0..12u32, 0..60u32, -10..30i32, 1..=PROCS as u32);
    prop::collection::vec(job, 1..60).prop_map(|list| {
        let mut submit_s = 0.0;
        let jobs = (1..).zip(list).map(|(id, (gap, run, over, procs))| {
            submit_s += f64::from(gap);
            let (run_s, estimate_s) = (f64::from(run), f64::from((run as i32 + over).max(0)));
            // Most jobs are narrow.
            let procs = if procs > 6 && id % 5 != 0 { procs % 6 + 1 } else { procs };
            Job { id, submit_s, run_s, estimate_s, procs, record: id as u64, killed: false, priority: 1, class: 0 }
        });
        jobs.collect()
    })
}

/// Runs to the end; a clone that is made after some instants must end alike.
fn run(spec: &SimSpec, jobs: &[Job], instants: usize) -> Vec<Outcome> {
    let machine = Machine::new(spec, None).expect("is valid");
    let policy = Checked {
        policy: Composed::new(spec, &machine, false).expect("is valid"),
        memoryless: spec.choice(Role::Backfill).component().name != "conservative",
        waiting: Vec::new(),
    };
    let order: EventOrder = event_order(spec).expect("is valid");
    let mut original = Simulation::new(jobs, machine, &Limits::NONE, order, policy, Outcomes::new(jobs.len()));
    for _ in 0..instants {
        if !original.advance().expect("goes on") {
            break;
        }
    }
    let mut clone = original.clone();
    original.run().expect("ends");
    clone.run().expect("ends");
    assert_eq!(clone.integrals(), original.integrals());
    let outcomes = original.into_recorder().outcomes().to_vec();
    assert_eq!(clone.into_recorder().outcomes(), outcomes);
    outcomes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn enough_procs_are_active_and_results_of_earlier_passes_stay_valid(
        jobs in jobs(),
        rule in 0..4usize,
        backfill in 0..4usize,
        order in 0..3usize,
        events in 0..4usize,
        delays in (0..20u32, 0..20u32),
        instants in 0..80usize,
    ) {
        let delays = (f64::from(delays.0 / 5 * 5), f64::from(delays.1 / 5 * 5));
        let spec = spec(rule, backfill, order, events, delays);
        for (job, outcome) in jobs.iter().zip(run(&spec, &jobs, instants)) {
            prop_assert!(outcome.start_s >= job.submit_s && outcome.finish_s == outcome.start_s + job.run_s);
        }
    }
}

/// A policy that copies the cluster at its first pass after the last arrival, and runs the copy to the end.
#[derive(Debug, Clone)]
struct Copying {
    policy: Composed,
    durations: Durations,
    jobs: usize,
    arrived: Vec<JobId>,
    /// Start and end of the jobs in the copy, by their numbers in the original.
    copied: Option<Vec<(JobId, f64, f64)>>,
}

impl Copying {
    fn copy<R: Recorder>(&self, cluster: &Cluster<'_, R>) -> Result<Vec<(JobId, f64, f64)>> {
        let batch = &self.policy.batch;
        let copied = cluster.copied_jobs(&batch.waiting().jobs(), self.durations);
        let numbered: Vec<(JobId, JobId)> =
            self.arrived.iter().filter_map(|&job| Some((job, copied.number(job)?))).collect();
        let copy = cluster.fork(&copied, Outcomes::new(numbered.len()));
        let policy = batch.fork(&copied, &copy);
        let mut simulation = Simulation::of_copy(copy, policy, EventOrder::Batch)?;
        simulation.run()?;
        let outcomes = simulation.recorder().outcomes();
        let times = |(job, number): (JobId, JobId)| {
            let Outcome { start_s, finish_s, .. } = outcomes[number as usize];
            (job, start_s, finish_s)
        };
        Ok(numbered.into_iter().map(times).collect())
    }
}

impl Policy for Copying {
    fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.arrived.push(job);
        self.policy.submitted(cluster, job);
    }

    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        self.policy.ended(cluster, ended);
    }

    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        if self.arrived.len() == self.jobs && self.copied.is_none() {
            self.copied = Some(self.copy(cluster)?);
        }
        self.policy.pass(cluster)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_copy_continues_like_the_original_if_no_more_jobs_arrive(
        jobs in jobs(),
        backfill in 0..2usize,
        order in 0..3usize,
        gears in any::<bool>(),
        exact in any::<bool>(),
        cap in prop_oneof![Just(None), (64..130u32).prop_map(Some)],
    ) {
        let mut jobs = jobs;
        // With exact estimates, both durations are the same.
        let durations = if exact { Durations::Estimate } else { Durations::Run };
        if exact {
            jobs.iter_mut().for_each(|job| job.estimate_s = job.run_s);
        }
        let mut spec = spec(0, backfill, order, 0, (0.0, 0.0));
        choose(&mut spec, Role::Capacity, "none", &[]);
        if gears {
            choose(&mut spec, Role::GearRule, "bsld", &[("bsld_threshold", Value::Real(1.1))]);
        }
        if let Some(cap_w) = cap {
            choose_cap(&mut spec, f64::from(cap_w));
        }
        let machine = Machine::new(&spec, None).expect("is valid");
        let policy = Copying {
            policy: Composed::new(&spec, &machine, false).expect("is valid"),
            durations,
            jobs: jobs.len(),
            arrived: Vec::new(),
            copied: None,
        };
        let recorder = Outcomes::new(jobs.len());
        let mut original = Simulation::new(&jobs, machine, &Limits::NONE, EventOrder::Batch, policy, recorder);
        original.run().expect("ends");
        let copied = original.policy().copied.clone().expect("the last job has arrived");
        prop_assert!(!copied.is_empty());
        for (job, start_s, finish_s) in copied {
            let ours = original.recorder().outcomes()[job as usize];
            prop_assert_eq!((start_s, finish_s), (ours.start_s, ours.finish_s), "job {}", job);
        }
    }
}

#[test]
fn the_problem_names_the_parameter_with_a_wrong_number_of_procs() {
    let mut wrong = spec(0, 0, 0, 0, (0.0, 0.0));
    wrong.choice_mut(Role::Capacity).set("two_level_procs", Value::Int(17)).expect("is in range");
    assert_eq!(wrong.problems(), ["`two_level_procs` is 17, but the machine has 16 procs"]);
    wrong.choice_mut(Role::Platform).set("size_factor", Value::Real(0.5)).expect("is in range");
    assert_eq!(wrong.problems(), ["`two_level_procs` is 17, but the machine has 8 procs"]);
    let mut wrong = spec(1, 0, 0, 0, (0.0, 0.0));
    let levels = Value::Reals(vec![4.0, 2.5]);
    wrong.choice_mut(Role::Capacity).set("ols_levels_procs", levels).expect("is in range");
    wrong.choice_mut(Role::Capacity).set("ols_min_active_procs", Value::Int(40)).expect("is in range");
    assert_eq!(wrong.problems().len(), 3, "{:?}", wrong.problems());
    // This problem shows only with the workload's machine.
    wrong.choice_mut(Role::Capacity).set("ols_levels_procs", Value::Reals(vec![2.0, 4.0])).expect("is in range");
    let machine = Machine::new(&wrong, None).expect("is valid");
    assert!(Capacity::new(&wrong, &machine).is_err());
}
