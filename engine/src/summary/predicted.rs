//! Metrics of predictions.
use std::ops::Range;

use super::sum::{Mean, ratio};
use super::{Outcome, Predicted, Summary};
use crate::workload::Job;

/// Fills the metrics of predictions, over the measured jobs.
///
/// `jobs` and `outcomes` are as in [`super::summarize`]; `predicted` has one entry for each job.
pub fn fill_predictions(
    summary: &mut Summary,
    jobs: &[Job],
    outcomes: &[Outcome],
    predicted: &[Predicted],
    measured: Range<usize>,
) {
    let (mut signed, mut absolute, mut by_procs) = (Mean::default(), Mean::default(), Mean::default());
    let mut by_user: Vec<Mean> = Vec::new();
    let (mut under, mut corrected, mut corrections) = (0_u64, 0, 0);
    for (job, predicted) in jobs[measured.clone()].iter().zip(&predicted[measured.clone()]) {
        let error_s = predicted.first_s - job.run_s;
        signed.add(error_s, 1.0);
        absolute.add(error_s.abs(), 1.0);
        by_procs.add(error_s.abs(), f64::from(job.procs));
        let user = predicted.user as usize;
        if user >= by_user.len() {
            by_user.resize_with(user + 1, Mean::default);
        }
        by_user[user].add(error_s.abs(), 1.0);
        under += u64::from(error_s < 0.0);
        corrected += u64::from(predicted.corrections_count > 0);
        corrections += u64::from(predicted.corrections_count);
    }
    let mut of_users = Mean::default();
    by_user.iter().filter_map(Mean::value).for_each(|mean_s| of_users.add(mean_s, 1.0));
    let late = late_ends(jobs, outcomes, predicted);
    let delayed = measured.clone().filter(|&at| is_delayed(&jobs[at], &outcomes[at], &late)).count();
    summary.prediction_error_s_mean = signed.value();
    summary.prediction_error_abs_s_mean = absolute.value();
    summary.prediction_error_abs_s_procs_weighted_mean = by_procs.value();
    summary.prediction_error_abs_s_user_mean = of_users.value();
    summary.prediction_under_share = ratio(under as f64, measured.len() as f64);
    summary.prediction_corrected_count = Some(corrected);
    summary.prediction_corrections_count = Some(corrections);
    summary.prediction_delayed_count = Some(delayed as u64);
}

/// End and start (s) of the jobs that overtook others and ran longer than predicted, in order of their ends, then starts.
fn late_ends(jobs: &[Job], outcomes: &[Outcome], predicted: &[Predicted]) -> Vec<(f64, f64)> {
    let all = jobs.iter().zip(outcomes).zip(predicted);
    let late = all.filter(|((job, outcome), predicted)| outcome.backfilled && predicted.first_s < job.run_s);
    let mut ends: Vec<(f64, f64)> = late.map(|((_, outcome), _)| (outcome.finish_s, outcome.start_s)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    ends
}

/// Whether a job started at one of the late ends, and the late job had overtaken others during its wait.
fn is_delayed(job: &Job, outcome: &Outcome, late: &[(f64, f64)]) -> bool {
    let behind = late.partition_point(|(end_s, _)| *end_s <= outcome.start_s);
    let last = behind.checked_sub(1).map(|at| late[at]);
    last.is_some_and(|(end_s, start_s)| end_s == outcome.start_s && start_s > job.submit_s)
}
