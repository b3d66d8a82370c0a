//! Online simulation (OLS): the least number of active procs that meets a service level.
//!
//! Every period the rule simulates the queue and the running jobs on fewer active procs, without further arrivals, and
//! takes the first number with which the mean slowdown of the waiting jobs meets the service level. A simulation is a
//! copy of the cluster under the same scheduling rules, without a capacity rule. It ends when the last waiting job has
//! started, or as soon as the mean must miss the service level.
use super::rule::{CapacityRule, TOKEN, problems, set_active, too_many};
use crate::batch::kernel::{Cluster, Copied, Durations, EventOrder, Finished, Recorder, Simulation};
use crate::batch::platform::Machine;
use crate::batch::policy::batch::event_order;
use crate::batch::policy::capped::CappedBatch;
use crate::error::Result;
use crate::spec::{Choice, Component, Default, Param, Role, SimSpec, Type};
use crate::summary::SLA_SLOWDOWN;
use crate::workload::Job;

/// Bound of short run times in the slowdown (s).
const TAU_S: f64 = 10.0;

/// Description of online simulation.
pub const COMPONENT: Component = Component {
    role: Role::Capacity,
    name: "ols",
    version: 1,
    source: "Lawson & Smirni 2005, section 3.3",
    doc: "Online simulation: every `ols_period_s` the queue and the running jobs are simulated without further arrivals, \
          first on as many procs as the widest waiting job and the running jobs need, then with half of the remaining \
          procs added each time, until the mean slowdown of the waiting jobs is at most `ols_sla_slowdown`: this number \
          of procs is active from then on. An arriving job that needs more raises the number to its procs. All are \
          active at the start.",
    reads: "Waiting and running jobs with their run times (an oracle), or with their estimates if `ols_durations` \
            = \"estimate\".",
    guarantees: "Only idle procs are put to sleep, and as many procs are active or waking as the widest waiting \
                 job needs. At each decision, the chosen number of procs meets the service level in a simulation \
                 without later arrivals, or all procs are active. The measured slowdown has no bound, because \
                 jobs go on arriving.",
    params: &[
        Param {
            name: "ols_period_s",
            ty: Type::Real { min: 1.0, max: 1e12, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Real(604_800.0),
            doc: "Time between two decisions (k), and from the first submit to the first decision.",
        },
        Param {
            name: "ols_sla_slowdown",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: true },
            unit: "",
            default: Default::Real(SLA_SLOWDOWN),
            doc: "Service level (S): greatest mean of 1 + wait/max(10 s, run) over the waiting jobs that a simulation \
                  may show.",
        },
        Param {
            name: "ols_durations",
            ty: Type::OneOf(&["run", "estimate"]),
            unit: "",
            default: Default::Text("run"),
            doc: "How long jobs run in the simulations: their true run times, or their estimates, which a real system \
                  knows. Reservations use estimates in either case.",
        },
        Param {
            name: "ols_min_active_procs",
            ty: Type::Int { min: 0, max: 1 << 30 },
            unit: "procs",
            default: Default::Int(0),
            doc: "Least number of active procs of a decision, against dramatic drops; at most those of the machine.",
        },
        Param {
            name: "ols_levels_procs",
            ty: Type::Reals { min: 1.0, max: 1_073_741_824.0 },
            unit: "procs",
            default: Default::Unset,
            doc: "The numbers of active procs to simulate, ascending whole numbers; a number is skipped if it is too \
                  small for the present jobs, or not smaller than the machine. If not given, half of the remaining procs \
                  are added each time.",
        },
    ],
    problems: problems::<Ols>,
    ..Component::BATCH
};

/// The rule `ols`.
#[derive(Debug, Clone)]
pub(crate) struct Ols {
    period_s: f64,
    sla: f64,
    durations: Durations,
    min_active: u32,
    levels: Option<Vec<u32>>,
    order: EventOrder,
    /// A period has ended: a decision is due.
    due: bool,
    /// A timer is set and not yet due.
    armed: bool,
}

impl CapacityRule for Ols {
    fn of(spec: &SimSpec, _: &Machine) -> Option<Ols> {
        let choice = spec.choice(Role::Capacity);
        Some(Ols {
            period_s: choice.real("ols_period_s"),
            sla: choice.real("ols_sla_slowdown"),
            durations: if choice.text("ols_durations") == "run" { Durations::Run } else { Durations::Estimate },
            min_active: choice.int("ols_min_active_procs") as u32,
            levels: choice
                .opt_reals("ols_levels_procs")
                .map(|levels| levels.iter().map(|&level| level as u32).collect()),
            order: event_order(spec).ok()?,
            due: false,
            armed: false,
        })
    }

    fn problems(choice: &Choice, machine_procs: Option<f64>) -> Vec<String> {
        let above = too_many("ols_min_active_procs", choice.opt_int("ols_min_active_procs"), machine_procs);
        above.into_iter().chain(level_problems(choice)).collect()
    }

    fn timer(&mut self) {
        (self.due, self.armed) = (true, false);
    }

    /// The number of active procs, if a decision is due.
    fn before_pass<R: Recorder>(
        &mut self,
        batch: &mut CappedBatch,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<Option<u32>> {
        if !std::mem::take(&mut self.due) {
            return Ok(None);
        }
        let procs = cluster.machine().procs;
        let waiting = batch.waiting().jobs();
        let widest = waiting.iter().map(|&job| cluster.procs(job)).max().unwrap_or(0);
        let in_use = cluster.active() - cluster.free();
        let least = widest.max(in_use).max(self.min_active).min(procs);
        if waiting.is_empty() {
            return Ok(Some(self.first(least, procs)));
        }
        let copied = cluster.copied_jobs(&waiting, self.durations);
        let copy = cluster.fork(&copied, Slowdowns::new(cluster, &copied, &waiting, self.sla));
        let policy = batch.fork(&copied, &copy);
        let mut level = self.first(least, procs);
        while level < procs {
            cluster.step()?;
            if self.meets_the_sla(cluster, copy.clone(), policy.clone(), level)? {
                break;
            }
            level = self.next(level, procs);
        }
        Ok(Some(level))
    }

    fn after_pass<R: Recorder>(&mut self, _: &CappedBatch, cluster: &mut Cluster<'_, R>) -> Result<Option<u32>> {
        self.set_timer(cluster)?;
        Ok(None)
    }
}

impl Ols {
    /// Sets a timer for the next multiple of the period. No timer is set if jobs wait and no procs are in use or
    /// waking: no job could start, and the timers alone would keep a simulation alive for ever.
    fn set_timer<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        if self.armed || (cluster.running_count() == 0 && cluster.waiting_count() > 0 && !cluster.any_coming()) {
            return Ok(());
        }
        let (begin_s, now_s) = (cluster.first_submit_s(), cluster.now_s());
        let mut times = ((now_s - begin_s) / self.period_s).floor();
        while begin_s + times * self.period_s <= now_s {
            times += 1.0;
        }
        self.armed = true;
        cluster.set_timer(begin_s + times * self.period_s, TOKEN)
    }

    /// The first number of active procs to simulate, at least `least`.
    fn first(&self, least: u32, procs: u32) -> u32 {
        let Some(levels) = &self.levels else { return least };
        levels.iter().copied().find(|&level| level >= least).map_or(procs, |level| level.min(procs))
    }

    /// The number after one that missed the service level.
    fn next(&self, level: u32, procs: u32) -> u32 {
        if self.levels.is_some() { self.first(level + 1, procs) } else { (level + procs).div_ceil(2) }
    }

    /// Whether the mean slowdown of the waiting jobs meets the service level with `active` procs.
    fn meets_the_sla<R: Recorder>(
        &self,
        cluster: &mut Cluster<'_, R>,
        mut copy: Cluster<'_, Slowdowns>,
        policy: CappedBatch,
        active: u32,
    ) -> Result<bool> {
        set_active(&mut copy, active)?;
        let mut simulation = Simulation::of_copy(copy, policy, self.order)?;
        let met = loop {
            if let Some(met) = simulation.recorder().verdict() {
                break met;
            }
            match simulation.next_instant_s() {
                // No job starts before the next instant, and then the service level is missed.
                Some(next_s) if !simulation.recorder().can_be_met(next_s) => break false,
                Some(_) => simulation.advance()?,
                // The waiting jobs would wait for ever.
                None => break self.sla == f64::INFINITY,
            };
        };
        cluster.steps_of(simulation.cluster())?;
        Ok(met)
    }
}

/// Problems of the levels of a choice.
fn level_problems(choice: &Choice) -> Vec<String> {
    let mut problems = Vec::new();
    let levels = choice.opt_reals("ols_levels_procs").unwrap_or_default();
    if let Some(level) = levels.iter().find(|level| level.fract() != 0.0) {
        problems.push(format!("`ols_levels_procs` must be whole numbers of procs, not {level}"));
    }
    if let Some(pair) = levels.windows(2).find(|pair| pair[0] >= pair[1]) {
        problems.push(format!("`ols_levels_procs` must ascend: {} is followed by {}", pair[0], pair[1]));
    }
    problems
}

/// Sum of the slowdowns of a copy's waiting jobs that have started, with a lower bound for those that still wait.
#[derive(Debug, Clone)]
struct Slowdowns {
    /// Number of jobs that still wait.
    waiting: u32,
    /// Greatest sum that meets the service level.
    sla_sum: f64,
    /// Sum over the jobs that have started.
    started: f64,
    /// The instant of the decision (s).
    begin_s: f64,
    /// Sum over the waiting jobs of the slowdown for a start at `begin_s`, and growth of this sum in a second.
    at_begin: f64,
    growth: f64,
}

/// Run time of a job, bounded from below (s).
fn bounded_s(job: &Job) -> f64 {
    job.run_s.max(TAU_S)
}

/// Slowdown of a job that starts at an instant (s).
fn slowdown(job: &Job, start_s: f64) -> f64 {
    1.0 + (start_s - job.submit_s) / bounded_s(job)
}

impl Slowdowns {
    fn new<R: Recorder>(cluster: &Cluster<'_, R>, copied: &Copied, waiting: &[u32], sla: f64) -> Slowdowns {
        let begin_s = cluster.now_s();
        let mut sums = Slowdowns {
            waiting: waiting.len() as u32,
            sla_sum: sla * waiting.len() as f64,
            started: 0.0,
            begin_s,
            at_begin: 0.0,
            growth: 0.0,
        };
        for job in waiting.iter().filter_map(|&job| copied.job(job)) {
            sums.at_begin += slowdown(job, begin_s);
            sums.growth += 1.0 / bounded_s(job);
        }
        sums
    }

    /// Whether the mean meets the service level, once no job waits.
    fn verdict(&self) -> Option<bool> {
        (self.waiting == 0).then_some(self.started <= self.sla_sum)
    }

    /// Whether the mean can still meet the service level if no job starts before an instant (s). The bound has a
    /// margin, so that rounding of the sums does not decide.
    fn can_be_met(&self, from_s: f64) -> bool {
        let bound = self.started + self.at_begin + self.growth * (from_s - self.begin_s);
        bound * (1.0 - 1e-9) <= self.sla_sum
    }
}

impl Recorder for Slowdowns {
    fn started(&mut self, job: &Job, now_s: f64) {
        self.waiting -= 1;
        self.started += slowdown(job, now_s);
        self.at_begin -= slowdown(job, self.begin_s);
        self.growth -= 1.0 / bounded_s(job);
    }

    fn finished(&mut self, _: &Finished) {}

    fn bytes(&self) -> usize {
        0
    }
}
