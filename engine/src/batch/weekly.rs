//! Series by week (Lawson & Smirni 2005, Figures 1 and 3 to 7), and the number of active procs over time.
//!
//! Weeks count from the first submit. A job arrives in the week of its submit, and its slowdown belongs to the week of
//! its end; its processor-seconds are split at the borders of weeks.
use crate::series::{Series, SeriesPoint, series};
use crate::summary::{Integrals, Outcome};
use crate::workload::{Job, Workload};

/// Length of a week (s).
const WEEK_S: f64 = 604_800.0;

/// Seconds in a day, the unit of demand.
const DAY_S: f64 = 86_400.0;

/// Bound of short run times in the slowdown (s).
const TAU_S: f64 = 10.0;

series! {
    ARRIVALS: "week_arrivals_count", "count",
        "Jobs submitted in a week. `x`: begin of the week (s, the log's clock), counted from the first submit. Batch jobs \
         (Lawson & Smirni 2005, Figure 1).";
    DEMAND: "week_demand_proc_days", "proc days",
        "Mean of procs * run_top over the jobs submitted in a week; weeks without any are left out. `x`: begin of the week. \
         Batch jobs (Lawson & Smirni 2005, Figure 1).";
    UTILIZATION: "week_utilization", "",
        "Processor-seconds of jobs in a week / integral of the active procs in it. `x`: begin of the week; the last one \
         ends with the last job. Batch jobs (Lawson & Smirni 2005, Figure 4).";
    LOG_UTILIZATION: "week_log_utilization", "",
        "Utilization in a week of all procs by the log's own schedule, where jobs start at submit + wait as the log has \
         them; only for logs with waits. `x`: begin of the week, counted from the first submit. Batch jobs (Lawson & \
         Smirni 2005, Figure 1).";
    SLOWDOWN: "week_slowdown_lawson_tau10s_mean", "",
        "Mean of 1 + wait/max(10 s, run_top) over the jobs that end in a week; weeks without any are left out. `x`: begin of \
         the week. Batch jobs (Lawson & Smirni 2005, Figures 3 and 5).";
    OVER_SLA: "week_over_sla_share", "",
        "Share of the jobs that end in a week which violate the service level, as in `over_sla_share`; weeks without any \
         are left out. `x`: begin of the week. Batch jobs (Lawson & Smirni 2005, Figure 7).";
    ACTIVE_MEAN: "week_active_procs_mean", "procs",
        "Time mean of the active procs in a week. `x`: begin of the week; the last one ends with the last job. Batch jobs \
         (Lawson & Smirni 2005, Figure 6).";
    ACTIVE: "active_procs", "procs",
        "Active procs, all but those that sleep or switch off and are not ordered to wake: a step function. `x`: instant from \
         which the value holds (s, the log's clock). Batch jobs (Lawson & Smirni 2005, Figure 6).";
}

/// Sums of a week.
#[derive(Debug, Clone, Copy, Default)]
struct Week {
    arrivals: u64,
    demand_proc_s: f64,
    ends: u64,
    slowdown: f64,
    over_sla: u64,
    busy_proc_s: f64,
    active_proc_s: f64,
    log_busy_proc_s: f64,
}

/// Weeks from the first submit to the last completion.
struct Weeks {
    begin_s: f64,
    end_s: f64,
    weeks: Vec<Week>,
}

impl Weeks {
    fn new(begin_s: f64, end_s: f64) -> Weeks {
        let count = ((end_s - begin_s) / WEEK_S).floor() as usize + 1;
        Weeks { begin_s, end_s, weeks: vec![Week::default(); count] }
    }

    /// Begin of a week (s).
    fn begin_of_s(&self, week: usize) -> f64 {
        self.begin_s + WEEK_S * week as f64
    }

    /// The week of an instant of the span.
    fn at(&mut self, at_s: f64) -> &mut Week {
        let week = ((at_s - self.begin_s) / WEEK_S).floor() as usize;
        let last = self.weeks.len() - 1;
        &mut self.weeks[week.min(last)]
    }

    /// Splits the processor-seconds from one instant to another among the weeks, within the span of the run.
    fn spread(&mut self, from_s: f64, until_s: f64, procs: u32, add: impl Fn(&mut Week, f64)) {
        let (mut from_s, until_s) = (from_s.max(self.begin_s), until_s.min(self.end_s));
        let mut week = ((from_s - self.begin_s) / WEEK_S).floor() as usize;
        while from_s < until_s && week < self.weeks.len() {
            let to_s = until_s.min(self.begin_of_s(week + 1));
            add(&mut self.weeks[week], f64::from(procs) * (to_s - from_s));
            (from_s, week) = (to_s, week + 1);
        }
    }

    /// Appends a point for each week that has a value.
    fn series(&self, points: &mut Vec<SeriesPoint>, series: Series, value: impl Fn(usize, &Week) -> Option<f64>) {
        for (at, week) in self.weeks.iter().enumerate() {
            if let Some(value) = value(at, week) {
                points.push(SeriesPoint { series: series.name, level: None, x: self.begin_of_s(at), value });
            }
        }
    }
}

/// Appends the series of a run. `jobs`, `outcomes`: of the simulated jobs, in the same order; `sla_slowdown`: the
/// service level.
pub(crate) fn record(
    points: &mut Vec<SeriesPoint>,
    workload: &Workload,
    jobs: &[Job],
    outcomes: &[Outcome],
    integrals: &Integrals,
    sla_slowdown: f64,
) {
    let mut weeks = Weeks::new(integrals.first_submit_s, integrals.last_finish_s);
    for (job, outcome) in jobs.iter().zip(outcomes) {
        let arrived = weeks.at(job.submit_s);
        arrived.arrivals += 1;
        arrived.demand_proc_s += f64::from(job.procs) * job.run_s;
        let ended = weeks.at(outcome.finish_s);
        let slowdown = 1.0 + (outcome.start_s - job.submit_s) / job.run_s.max(TAU_S);
        ended.ends += 1;
        ended.slowdown += slowdown;
        ended.over_sla += u64::from(slowdown > sla_slowdown);
        weeks.spread(outcome.start_s, outcome.finish_s, job.procs, |week, proc_s| week.busy_proc_s += proc_s);
    }
    let steps = &integrals.active_steps;
    for (at, &(from_s, procs)) in steps.iter().enumerate() {
        let until_s = steps.get(at + 1).map_or(integrals.last_finish_s, |next| next.0);
        weeks.spread(from_s, until_s, procs, |week, proc_s| week.active_proc_s += proc_s);
    }
    for (job, wait_s) in workload.jobs.iter().zip(&workload.log_waits_s).filter(|(_, wait_s)| **wait_s >= 0.0) {
        let start_s = job.submit_s + wait_s;
        weeks.spread(start_s, start_s + job.run_s, job.procs, |week, proc_s| week.log_busy_proc_s += proc_s);
    }

    let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
    let length_s = |at: usize| weeks.end_s.min(weeks.begin_of_s(at + 1)) - weeks.begin_of_s(at);
    let capacity = |at: usize| f64::from(integrals.machine_procs) * length_s(at);
    let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    weeks.series(points, ARRIVALS, |_, week| Some(week.arrivals as f64));
    weeks.series(points, DEMAND, |_, week| mean(week.demand_proc_s / DAY_S, week.arrivals));
    weeks.series(points, UTILIZATION, |_, week| ratio(week.busy_proc_s, week.active_proc_s));
    if !workload.log_waits_s.is_empty() {
        weeks.series(points, LOG_UTILIZATION, |at, week| ratio(week.log_busy_proc_s, capacity(at)));
    }
    weeks.series(points, SLOWDOWN, |_, week| mean(week.slowdown, week.ends));
    weeks.series(points, OVER_SLA, |_, week| mean(week.over_sla as f64, week.ends));
    weeks.series(points, ACTIVE_MEAN, |at, week| ratio(week.active_proc_s, length_s(at)));
    let step = |&(x, procs): &(f64, u32)| SeriesPoint { series: ACTIVE.name, level: None, x, value: f64::from(procs) };
    points.extend(steps.iter().map(step));
}
