//! Metrics of predictions.
use std::ops::Range;

use super::sum::{Mean, Sums, ratio};
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
    // Of errors, absolute ones, and absolute ones times procs.
    let (mut errors, mut procs) = (Sums::default(), 0.0);
    let mut by_user: Vec<Mean> = Vec::new();
    let (mut under, mut corrected, mut corrections) = (0_u64, 0, 0);
    for (job, predicted) in jobs[measured.clone()].iter().zip(&predicted[measured.clone()]) {
        let error_s = predicted.first_s - job.run_s;
        errors.add_each([error_s, error_s.abs(), f64::from(job.procs) * error_s.abs()]);
        procs += f64::from(job.procs);
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
    let mut late = LateEnds::new(jobs, outcomes, predicted);
    let delayed = measured.clone().filter(|&at| late.delayed(&jobs[at], &outcomes[at])).count();
    let ([signed, absolute, by_procs], count) = (errors.values(), measured.len() as f64);
    summary.prediction_error_s_mean = ratio(signed, count);
    summary.prediction_error_abs_s_mean = ratio(absolute, count);
    summary.prediction_error_abs_s_procs_weighted_mean = ratio(by_procs, procs);
    summary.prediction_error_abs_s_user_mean = of_users.value();
    summary.prediction_under_share = ratio(under as f64, measured.len() as f64);
    summary.prediction_corrected_count = Some(corrected);
    summary.prediction_corrections_count = Some(corrections);
    summary.prediction_delayed_count = Some(delayed as u64);
}

/// End and start (s) of the jobs that overtook others and ran longer than predicted, in order of their ends, then starts.
struct LateEnds {
    ends: Vec<(f64, f64)>,
    /// Number of ends up to the start of the last job that was looked for. The next one starts near it.
    behind: usize,
}

impl LateEnds {
    fn new(jobs: &[Job], outcomes: &[Outcome], predicted: &[Predicted]) -> LateEnds {
        let all = jobs.iter().zip(outcomes).zip(predicted);
        let late = all.filter(|((job, outcome), predicted)| outcome.backfilled && predicted.first_s < job.run_s);
        let mut ends: Vec<(f64, f64)> = late.map(|((_, outcome), _)| (outcome.finish_s, outcome.start_s)).collect();
        ends.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        LateEnds { ends, behind: 0 }
    }

    /// Whether a job started at one of the late ends, and the late job had overtaken others during its wait.
    fn delayed(&mut self, job: &Job, outcome: &Outcome) -> bool {
        // A job that did not wait was not overtaken.
        if outcome.start_s <= job.submit_s {
            return false;
        }
        self.behind = self.count_until(outcome.start_s);
        let last = self.behind.checked_sub(1).map(|at| self.ends[at]);
        last.is_some_and(|(end_s, start_s)| end_s == outcome.start_s && start_s > job.submit_s)
    }

    /// Number of ends up to an instant.
    fn count_until(&self, at_s: f64) -> usize {
        let is_behind = |(end_s, _): &(f64, f64)| *end_s <= at_s;
        let (from, until) = (self.behind.saturating_sub(NEAR), self.ends.len().min(self.behind + NEAR));
        let is_near =
            self.ends[..from].last().is_none_or(is_behind) && !self.ends[until..].first().is_some_and(is_behind);
        let (from, until) = if is_near { (from, until) } else { (0, self.ends.len()) };
        from + self.ends[from..until].partition_point(is_behind)
    }
}

/// Number of ends before and after the last one that are searched first.
const NEAR: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_counted_near_the_last_search_and_far_from_it() {
        let ends = (0..200).map(|at| (f64::from(at / 3), 0.0)).collect();
        let mut late = LateEnds { ends, behind: 0 };
        for at in 0..200 {
            let at_s = f64::from(at / 2 * 31 % 70 + at % 2) - 1.5;
            let counted = late.ends.iter().filter(|(end_s, _)| *end_s <= at_s).count();
            late.behind = late.count_until(at_s);
            assert_eq!(late.behind, counted, "{at_s}");
        }
    }
}
