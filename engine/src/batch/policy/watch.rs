//! What a machine under a cap did over time: power against the cap, use of the nodes, and their series.
//!
//! Power and occupancy change only at instants, each of which ends with a scheduling pass: what is read then holds until the
//! next. So the kernel's own loop knows nothing of this.
use crate::batch::kernel::{Cluster, Recorder};
use crate::series::Series;
use crate::series::SeriesPoint;
use crate::spec::{Role, SimSpec};
use crate::summary::PowerIntegrals;

use super::cap::allowance::limit_w;

/// The series of a machine over time.
macro_rules! series {
    ($($const:ident: $name:literal, $unit:literal, $doc:literal;)*) => {
        $(pub(crate) const $const: Series = Series { name: $name, unit: $unit, doc: $doc };)*
    };
}

series! {
    CPU_UTILIZATION: "cpu_utilization", "",
        "Executing over installed procs from `x` (s) on. Like all series of the machine over time: under a power cap, with \
         `backfill` = \"within-priority\" and with `watch_machine`.";
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

/// Classes of the distribution of CPU utilization: each 0.05 wide, and one for a full machine.
const UTILIZATION_CLASSES: usize = 21;

/// A utilization that counts as high (Zhang et al. 2014, Figure 3).
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

/// Watches a run.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    /// Since when `present` holds (s).
    since_s: f64,
    present: Option<Present>,
    out: PowerIntegrals,
    series: Option<Points>,
}

impl Watch {
    /// The watch that a spec needs; `series`: with series.
    pub(crate) fn new(spec: &SimSpec, series: bool) -> Watch {
        let ghz = spec.choice(Role::Platform).reals("gears_ghz").to_vec();
        Watch {
            since_s: 0.0,
            present: None,
            out: PowerIntegrals {
                capped: spec.choice(Role::Cap).component().name != "none",
                ..PowerIntegrals::default()
            },
            series: series.then(|| Points::new(ghz)),
        }
    }

    /// Takes note of the machine at the end of a pass.
    pub(crate) fn look<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, cap_w: Option<f64>) {
        let now_s = cluster.now_s();
        if now_s > self.since_s || self.present.is_none() {
            self.advance(now_s);
        }
        self.since_s = now_s;
        self.present = Some(Present {
            power_w: cluster.power_w(),
            cap_w,
            executing: cluster.executing(0).map(|(.., procs)| procs).sum(),
            suspended: cluster.suspended(0),
            asleep: cluster.asleep(0) + cluster.switching(0),
            installed: cluster.machine().procs(),
        });
        if let Some(series) = &mut self.series {
            series.read(cluster);
        }
    }

    /// Integrates what has held until now.
    fn advance(&mut self, now_s: f64) {
        let Some(present) = self.present else { return };
        let dt = now_s - self.since_s;
        let out = &mut self.out;
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

    /// What was integrated.
    pub(crate) fn integrals(&self) -> PowerIntegrals {
        self.out
    }

    /// Appends the series, each in order of x.
    pub(crate) fn write(mut self, points: &mut Vec<SeriesPoint>) {
        if let (Some(series), Some(present)) = (&mut self.series, self.present) {
            // What holds at the end, from the last instant on.
            series.record(self.since_s, &present, 0.0);
            series.write(points);
        }
    }
}

/// One step function: a point wherever its value changes.
#[derive(Debug, Clone)]
struct Steps {
    series: &'static str,
    level: Option<i64>,
    points: Vec<(f64, f64)>,
}

impl Steps {
    fn new(series: &'static str, level: Option<i64>) -> Steps {
        Steps { series, level, points: Vec::new() }
    }

    fn record(&mut self, at_s: f64, value: f64) {
        if self.points.last().is_none_or(|last| last.1 != value) {
            self.points.push((at_s, value));
        }
    }
}

/// The series of a run.
#[derive(Debug, Clone)]
struct Points {
    ghz: Vec<f64>,
    /// Procs by gear, by class of jobs and by priority, as they are now.
    gears: Vec<u32>,
    classes: Vec<u32>,
    priorities: Vec<u32>,
    single: Vec<Steps>,
    by_gear: Vec<Steps>,
    by_class: Vec<Steps>,
    by_priority: Vec<Steps>,
    /// Time by class of CPU utilization (s).
    utilization_s: [f64; UTILIZATION_CLASSES],
}

/// Series that are not split, in the order of their values.
const SINGLE: [&str; 6] = [CPU_UTILIZATION.name, FREQUENCY.name, IDLE.name, CAP.name, POWER.name, SUSPENDED.name];

impl Points {
    fn new(ghz: Vec<f64>) -> Points {
        Points {
            gears: vec![0; ghz.len()],
            ghz,
            classes: Vec::new(),
            priorities: Vec::new(),
            single: SINGLE.map(|name| Steps::new(name, None)).to_vec(),
            by_gear: Vec::new(),
            by_class: Vec::new(),
            by_priority: Vec::new(),
            utilization_s: [0.0; UTILIZATION_CLASSES],
        }
    }

    fn read<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) {
        for counts in [&mut self.gears, &mut self.classes, &mut self.priorities] {
            counts.fill(0);
        }
        for (_, gear, procs) in cluster.executing(0) {
            self.gears[gear] += procs;
        }
        for job in cluster.running_jobs() {
            let procs = cluster.procs(job);
            add(&mut self.classes, usize::from(cluster.job_class(job)), procs);
            add(&mut self.priorities, usize::from(cluster.priority(job)), procs);
        }
    }

    fn record(&mut self, at_s: f64, present: &Present, dt: f64) {
        let executing = f64::from(present.executing);
        let on = f64::from(present.installed - present.asleep);
        let of_executing: f64 = self.gears.iter().zip(&self.ghz).map(|(&n, ghz)| f64::from(n) * ghz).sum();
        // Nodes that do not execute are at the lowest frequency.
        let ghz = if on > 0.0 { (of_executing + (on - executing) * self.ghz[0]) / on } else { self.ghz[0] };
        let idle = present.installed - present.asleep - present.executing - present.suspended;
        let cpu = executing / f64::from(present.installed);
        let values = [
            Some(cpu),
            Some(ghz),
            Some(f64::from(idle)),
            present.cap_w,
            Some(present.power_w),
            Some(f64::from(present.suspended)),
        ];
        for (steps, value) in self.single.iter_mut().zip(values) {
            if let Some(value) = value {
                steps.record(at_s, value);
            }
        }
        split(&mut self.by_gear, BY_GEAR.name, 0, &self.gears, at_s);
        split(&mut self.by_class, BY_CLASS.name, 1, &self.classes, at_s);
        split(&mut self.by_priority, BY_PRIORITY.name, 0, &self.priorities, at_s);
        let class = (cpu * (UTILIZATION_CLASSES - 1) as f64 + 1e-9) as usize;
        self.utilization_s[class.min(UTILIZATION_CLASSES - 1)] += dt;
    }

    fn write(&self, points: &mut Vec<SeriesPoint>) {
        let all = [&self.single, &self.by_gear, &self.by_class, &self.by_priority];
        for Steps { series, level, points: steps } in all.into_iter().flatten() {
            points.extend(steps.iter().map(|&(x, value)| SeriesPoint { series, level: *level, x, value }));
        }
        let span_s: f64 = self.utilization_s.iter().sum();
        if span_s > 0.0 {
            points.extend(self.utilization_s.iter().enumerate().map(|(class, time_s)| SeriesPoint {
                series: CPU_UTILIZATION_SHARE.name,
                level: None,
                x: class as f64 / (UTILIZATION_CLASSES - 1) as f64,
                value: time_s / span_s,
            }));
        }
    }
}

fn add(counts: &mut Vec<u32>, at: usize, procs: u32) {
    if at >= counts.len() {
        counts.resize(at + 1, 0);
    }
    counts[at] += procs;
}

/// Records counts as one step function each, numbered from `first`; those that have always been 0 have none.
fn split(steps: &mut Vec<Steps>, series: &'static str, first: i64, counts: &[u32], at_s: f64) {
    for (at, &count) in counts.iter().enumerate() {
        let level = Some(at as i64 + first);
        let place = match steps.binary_search_by_key(&level, |steps| steps.level) {
            Ok(place) => place,
            Err(_) if count == 0 => continue,
            Err(place) => {
                steps.insert(place, Steps::new(series, level));
                place
            }
        };
        steps[place].record(at_s, f64::from(count));
    }
}
