//! Metrics that apply to some specs only: turnarounds by priority and size, power and use of the machine.
use super::sum::{Mean, ratio};
use super::{Integrals, Outcome, PowerIntegrals, Summary, window};
use crate::account::J_PER_KWH;
use crate::spec::Choice;
use crate::workload::Job;

/// Fills the means by priority, if jobs have priorities, and by size, if `large_job_procs` is set.
///
/// `jobs` and `outcomes` are as in [`super::summarize`].
pub fn fill_kinds(summary: &mut Summary, statistics: &Choice, jobs: &[Job], outcomes: &[Outcome], priorities: bool) {
    let large = statistics.opt_int("large_job_procs");
    if !priorities && large.is_none() {
        return;
    }
    let mut by_priority: [Mean; 3] = Default::default();
    let mut by_size: [Mean; 2] = Default::default();
    for at in window::measured(statistics, jobs, outcomes) {
        let job = &jobs[at];
        let turnaround_s = outcomes[at].finish_s - job.submit_s;
        if let Some(mean) = by_priority.get_mut(usize::from(job.priority).wrapping_sub(1)) {
            mean.add(turnaround_s, 1.0);
        }
        by_size[usize::from(large.is_some_and(|least| i64::from(job.procs) >= least))].add(turnaround_s, 1.0);
    }
    if priorities {
        let [first, second, third] = &by_priority;
        summary.jobs_count_priority_1 = Some(first.weight() as u64);
        summary.turnaround_s_mean_priority_1 = first.value();
        summary.jobs_count_priority_2 = Some(second.weight() as u64);
        summary.turnaround_s_mean_priority_2 = second.value();
        summary.jobs_count_priority_3 = Some(third.weight() as u64);
        summary.turnaround_s_mean_priority_3 = third.value();
    }
    if large.is_some() {
        summary.turnaround_s_mean_small = by_size[0].value();
        summary.turnaround_s_mean_large = by_size[1].value();
    }
}

/// Fills the metrics of power and use of the machine.
pub fn fill_power(summary: &mut Summary, power: &PowerIntegrals, integrals: &Integrals) {
    summary.cpu_utilization = ratio(power.cpu_utilization_s, power.span_s);
    summary.cpu_utilization_high_share = ratio(power.cpu_high_s, power.span_s);
    summary.cpu_utilization_with_suspended = ratio(power.held_utilization_s, power.span_s);
    summary.cpu_utilization_with_suspended_high_share = ratio(power.held_high_s, power.span_s);
    if power.capped {
        summary.power_cap_mean_w = ratio(power.cap_j, power.span_s);
        summary.power_cap_violation_share = ratio(power.violation_s, power.span_s);
        summary.power_cap_excess_max_w = Some(power.excess_max_w);
        summary.power_cap_violation_j = Some(power.violation_j);
        summary.trapped_unused_share = ratio(power.cap_j - power.power_j, power.cap_j);
        summary.trapped_unused_kwh = Some((power.cap_j - power.power_j) / J_PER_KWH);
        let total_j = integrals.energy_total_j();
        summary.watch_residual = Some((power.power_j - total_j).abs() / total_j.max(1.0));
    }
    if power.capped || power.suspends {
        summary.energy_suspended_j = Some(integrals.energy_suspended_j);
        summary.suspended_proc_h = Some(integrals.suspended_proc_s / 3600.0);
    }
}
