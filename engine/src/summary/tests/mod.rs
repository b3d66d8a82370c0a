//! The summary compared with plain formulas and with values computed by hand.
use super::*;
use crate::error::SimError;
use crate::spec::{Choice, Value};
use crate::workload::Job;

mod by_hand;
mod reference;
mod windows;

/// A job with its outcome, from (submit, wait, run_top, run as executed, procs).
type Row = (f64, f64, f64, f64, u32);

fn job(row: &Row) -> Job {
    let &(submit_s, _, run_s, _, procs) = row;
    Job { id: 1, submit_s, run_s, estimate_s: run_s, procs, record: 1, killed: false, priority: 1, class: 0 }
}

fn outcome(row: &Row) -> Outcome {
    let &(submit_s, wait, _, run, procs) = row;
    let start_s = submit_s + wait;
    Outcome { start_s, finish_s: start_s + run, energy_j: f64::from(procs) * run, gear_index: 0, backfilled: false }
}

fn choice(set: &[(&str, Value)]) -> Choice {
    let mut choice = Choice::new(&COMPONENT);
    for (name, value) in set {
        choice.set(name, value.clone()).expect("a valid value");
    }
    choice
}

/// The integrals of a kernel for these outcomes on a machine of `procs`, 1 W busy and 0.2 W idle.
fn integrals(jobs: &[Job], outcomes: &[Outcome], procs: u32, gears: usize) -> Integrals {
    let pairs = || jobs.iter().zip(outcomes);
    let first = jobs.iter().map(|j| j.submit_s).fold(f64::INFINITY, f64::min);
    let last = outcomes.iter().map(|o| o.finish_s).fold(f64::NEG_INFINITY, f64::max);
    let mut busy = vec![0.0; gears];
    for (j, o) in pairs() {
        busy[usize::from(o.gear_index)] += f64::from(j.procs) * (o.finish_s - o.start_s);
    }
    let capacity = f64::from(procs) * (last - first);
    let idle = capacity - busy.iter().sum::<f64>();
    Integrals {
        machine_procs: procs,
        events_count: 2 * jobs.len() as u64,
        first_submit_s: first,
        last_finish_s: last,
        idle_proc_s: idle,
        active_proc_s: capacity,
        energy_busy_j: outcomes.iter().map(|o| o.energy_j).sum(),
        energy_idle_j: 0.2 * idle,
        queue_length_s: pairs().map(|(j, o)| o.start_s - j.submit_s).sum(),
        queue_length_max: 3,
        backlog_proc_s2: 50.0,
        backlog_proc_s_max: 40.0,
        lost_proc_s: 7.0,
        power_peak_w: 9.0,
        power_p95_w: (last > first).then_some(8.0),
        busy_proc_s: busy,
        ..Integrals::default()
    }
}

fn summary_of(rows: &[Row], statistics: &Choice, procs: u32) -> Summary {
    let jobs: Vec<_> = rows.iter().map(job).collect();
    let outcomes: Vec<_> = rows.iter().map(outcome).collect();
    check(statistics, &jobs).expect("jobs are left");
    summarize(statistics, &jobs, &outcomes, &integrals(&jobs, &outcomes, procs, 1), 1, None, 200.0)
}
