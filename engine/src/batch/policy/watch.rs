//! A machine over time: power against the cap, use of the nodes, and their series.
//!
//! Power and occupancy change only at instants, each of which ends with a scheduling pass or a call of
//! `Policy::powers_changed`: the values then hold until the next instant. So the loop of the kernel needs no code for this.
use std::collections::BTreeMap;

use super::cap::allowance::limit_w;
use super::deferral;
use crate::batch::kernel::{Cluster, Recorder};
use crate::series::{Series, SeriesPoint, series};
use crate::spec::{Role, SimSpec};
use crate::summary::PowerIntegrals;

series! {
    CPU_UTILIZATION: "cpu_utilization", "",
        "Executing over installed procs from `x` (s) on. Like all series of the machine over time: under a power cap, with \
         `backfill` = \"within-priority\", with a `deferral` that suspends jobs and with `watch_machine`.";
    CPU_UTILIZATION_SHARE: "cpu_utilization_time_share", "",
        "Share of the span in which executing over installed procs was in [x, x + 0.05), at `x` = 1 in which all executed \
         (Zhang et al. 2014, Figure 3).";
    FREQUENCY: "frequency_mean_ghz", "GHz",
        "Mean frequency from `x` (s) on of the procs that are switched on, those that do not execute at the lowest gear \
         (Zhang et al. 2014, Figure 9).";
    IDLE: "idle_procs", "procs", "Idle procs from `x` (s) on, without those of suspended jobs.";
    CAP: "power_cap_w", "W", "The power cap from `x` (s) on (Zhang et al. 2014, Figure 4); none without a cap.";
    POWER: "power_w", "W", "Power of the machine from `x` (s) on (Zhang et al. 2014, Figure 4).";
    BY_GEAR: "procs_by_gear", "procs",
        "Executing procs from `x` (s) on by gear; `level` is the gear index, 0 the slowest (Zhang et al. 2014, Figure 9).";
    BY_CLASS: "procs_by_job_class", "procs",
        "Procs that jobs hold from `x` (s) on, suspended ones included; `level` is the class of the jobs, from 1.";
    BY_PRIORITY: "procs_by_priority", "procs",
        "Procs that jobs hold from `x` (s) on, suspended ones included; `level` is their priority (Zhang et al. 2014, \
         Figure 8).";
    SUSPENDED: "suspended_procs", "procs", "Procs of suspended jobs from `x` (s) on.";
}

/// The series of a watched machine.
pub(crate) const ALL: [Series; 10] =
    [CPU_UTILIZATION, CPU_UTILIZATION_SHARE, FREQUENCY, IDLE, CAP, POWER, BY_GEAR, BY_CLASS, BY_PRIORITY, SUSPENDED];

/// Bins of the distribution of CPU utilization: each 0.05 wide, and one for a full machine.
const UTILIZATION_BINS: usize = 21;

/// Least utilization that counts as high (Zhang et al. 2014, Figure 3).
const HIGH_UTILIZATION: f64 = 0.75;

/// The machine at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Present {
    power_w: f64,
    cap_w: Option<f64>,
    executing: u32,
    suspended: u32,
    asleep: u32,
    installed: u32,
}

/// Integrals and series of the machine in a run.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    /// Instant from which `present` holds (s).
    since_s: f64,
    present: Option<Present>,
    /// [`Cluster::proc_changes_count`] at that instant.
    changes_count: u64,
    integrals: PowerIntegrals,
    series: Option<Steps>,
}

impl Watch {
    /// The watch of a spec; `series`: with series.
    pub(crate) fn new(spec: &SimSpec, series: bool) -> Watch {
        let capped = spec.choice(Role::Cap).component().name != "none";
        Watch {
            since_s: 0.0,
            present: None,
            changes_count: 0,
            integrals: PowerIntegrals { capped, suspends: deferral::suspends(spec), ..PowerIntegrals::default() },
            series: series.then(|| Steps::new(spec.choice(Role::Platform).reals("gears_ghz").to_vec())),
        }
    }

    /// Observes the machine at the end of an instant.
    pub(crate) fn observe<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, cap_w: Option<f64>) {
        let now_s = cluster.now_s();
        if now_s > self.since_s {
            self.advance(now_s);
        }
        self.since_s = now_s;
        let changes_count = cluster.proc_changes_count();
        if self.changes_count == changes_count && self.present.is_some_and(|present| present.cap_w == cap_w) {
            return;
        }
        self.changes_count = changes_count;
        self.present = Some(Present {
            power_w: cluster.power_w(),
            cap_w,
            executing: cluster.executing_procs(),
            suspended: cluster.suspended(),
            asleep: cluster.asleep() + cluster.switching(),
            installed: cluster.machine().procs,
        });
        if let Some(series) = &mut self.series {
            series.count(cluster);
        }
    }

    /// Integrates the present values until now.
    fn advance(&mut self, now_s: f64) {
        let Some(present) = self.present else { return };
        let dt = now_s - self.since_s;
        let out = &mut self.integrals;
        let share = |procs: u32| f64::from(procs) / f64::from(present.installed);
        let (cpu, held) = (share(present.executing), share(present.executing + present.suspended));
        out.span_s += dt;
        out.power_j += present.power_w * dt;
        out.cpu_utilization_s += cpu * dt;
        out.held_utilization_s += held * dt;
        out.cpu_high_s += if cpu >= HIGH_UTILIZATION { dt } else { 0.0 };
        out.held_high_s += if held >= HIGH_UTILIZATION { dt } else { 0.0 };
        if let Some(cap_w) = present.cap_w {
            out.cap_j += cap_w * dt;
            if present.power_w > limit_w(cap_w) {
                out.violation_s += dt;
                out.violation_j += (present.power_w - cap_w) * dt;
                out.excess_max_w = out.excess_max_w.max(present.power_w - cap_w);
            }
        }
        if let Some(series) = &mut self.series {
            series.record(self.since_s, &present, dt);
        }
    }

    /// The integrals; the series are appended to `points`, each in order of x.
    pub(crate) fn finish(self, points: Option<&mut Vec<SeriesPoint>>) -> PowerIntegrals {
        if let (Some(mut series), Some(present), Some(points)) = (self.series, self.present, points) {
            // The last values hold from the last instant on.
            series.record(self.since_s, &present, 0.0);
            series.write(points);
        }
        self.integrals
    }
}

/// Name and level of a series.
type SeriesLevel = (&'static str, Option<i64>);

/// The series of a run, as step functions.
#[derive(Debug, Clone)]
struct Steps {
    ghz: Vec<f64>,
    /// Present procs by gear, by class of jobs and by priority.
    gears: Vec<u32>,
    classes: Vec<u32>,
    priorities: Vec<u32>,
    /// An instant (s) and the value from it on, for each change of the value.
    steps: BTreeMap<SeriesLevel, Vec<(f64, f64)>>,
    /// Time by bin of CPU utilization (s).
    utilization_s: [f64; UTILIZATION_BINS],
}

impl Steps {
    fn new(ghz: Vec<f64>) -> Steps {
        Steps {
            gears: vec![0; ghz.len()],
            ghz,
            classes: Vec::new(),
            priorities: Vec::new(),
            steps: BTreeMap::new(),
            utilization_s: [0.0; UTILIZATION_BINS],
        }
    }

    /// Counts the present procs.
    fn count<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) {
        for counts in [&mut self.gears, &mut self.classes, &mut self.priorities] {
            counts.fill(0);
        }
        for (_, gear, procs) in cluster.executing() {
            self.gears[gear] += procs;
        }
        for job in cluster.running_jobs() {
            let procs = cluster.procs(job);
            add(&mut self.classes, usize::from(cluster.job_class(job)), procs);
            add(&mut self.priorities, usize::from(cluster.priority(job)), procs);
        }
    }

    /// Records the present values, which hold for `dt` seconds from an instant on.
    fn record(&mut self, at_s: f64, present: &Present, dt: f64) {
        let executing = f64::from(present.executing);
        let on = f64::from(present.installed - present.asleep);
        let of_executing: f64 = self.gears.iter().zip(&self.ghz).map(|(&n, ghz)| f64::from(n) * ghz).sum();
        // Nodes that do not execute are at the lowest frequency.
        let ghz = if on > 0.0 { (of_executing + (on - executing) * self.ghz[0]) / on } else { self.ghz[0] };
        let idle = present.installed - present.asleep - present.executing - present.suspended;
        let cpu = executing / f64::from(present.installed);
        let mut step = |series: Series, level, value| {
            let steps = self.steps.entry((series.name, level)).or_default();
            // A level that has always been 0 has no points.
            let before = steps.last().map(|last| last.1).or(level.and(Some(0.0)));
            if before != Some(value) {
                steps.push((at_s, value));
            }
        };
        step(CPU_UTILIZATION, None, cpu);
        step(FREQUENCY, None, ghz);
        step(IDLE, None, f64::from(idle));
        step(POWER, None, present.power_w);
        step(SUSPENDED, None, f64::from(present.suspended));
        if let Some(cap_w) = present.cap_w {
            step(CAP, None, cap_w);
        }
        for (series, first, counts) in
            [(BY_GEAR, 0, &self.gears), (BY_CLASS, 1, &self.classes), (BY_PRIORITY, 0, &self.priorities)]
        {
            for (level, &count) in (first..).zip(counts) {
                step(series, Some(level), f64::from(count));
            }
        }
        // At most 1, the last bin: no more procs execute than are installed.
        let bin = (cpu * (UTILIZATION_BINS - 1) as f64 + 1e-9) as usize;
        self.utilization_s[bin] += dt;
    }

    fn write(&self, points: &mut Vec<SeriesPoint>) {
        for (&(series, level), steps) in &self.steps {
            points.extend(steps.iter().map(|&(x, value)| SeriesPoint { series, level, x, value }));
        }
        let span_s: f64 = self.utilization_s.iter().sum();
        if span_s > 0.0 {
            points.extend(self.utilization_s.iter().enumerate().map(|(bin, time_s)| SeriesPoint {
                series: CPU_UTILIZATION_SHARE.name,
                level: None,
                x: bin as f64 / (UTILIZATION_BINS - 1) as f64,
                value: time_s / span_s,
            }));
        }
    }
}

/// Adds procs to the count at an index, which may be new.
fn add(counts: &mut Vec<u32>, at: usize, procs: u32) {
    if at >= counts.len() {
        counts.resize(at + 1, 0);
    }
    counts[at] += procs;
}
