//! The measured jobs: warm-up and cool-down, fixed or by MSER-5.
use std::ops::Range;

use super::Outcome;
use crate::error::SimError;
use crate::spec::Choice;
use crate::workload::Job;

/// Jobs in a batch of MSER-5.
const BATCH: usize = 5;

/// Checks, before the simulation, that warm-up and cool-down leave a job to measure.
///
/// # Errors
/// [`SimError::Empty`] without any job, [`SimError::Invalid`] if no job is left: both final.
pub fn check(statistics: &Choice, jobs: &[Job]) -> Result<(), SimError> {
    if jobs.is_empty() {
        return Err(SimError::Empty("nothing to measure".to_owned()));
    }
    if fixed(statistics, jobs).is_empty() {
        return Err(SimError::Invalid(format!(
            "warm-up and cool-down leave none of the {} jobs to measure: lower warmup_jobs, warmup_s, cooldown_jobs or \
             cooldown_s (they are {}, {} s, {}, {} s)",
            jobs.len(),
            statistics.int("warmup_jobs"),
            statistics.real("warmup_s"),
            statistics.int("cooldown_jobs"),
            statistics.real("cooldown_s"),
        )));
    }
    Ok(())
}

/// The measured jobs, as positions in workload order.
pub fn measured(statistics: &Choice, jobs: &[Job], outcomes: &[Outcome]) -> Range<usize> {
    let window = fixed(statistics, jobs);
    if statistics.text("warmup_rule") != "mser5" {
        return window;
    }
    let waits: Vec<f64> = window.clone().map(|i| outcomes[i].start_s - jobs[i].submit_s).collect();
    window.start + mser5(&waits)..window.end
}

/// The jobs between the fixed warm-up and cool-down. Jobs are in order of submit, so that they are one range.
fn fixed(statistics: &Choice, jobs: &[Job]) -> Range<usize> {
    let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else { return 0..0 };
    let count = |name| usize::try_from(statistics.int(name)).unwrap_or(usize::MAX);
    let warm_until = first.submit_s + statistics.real("warmup_s");
    let cool_from = last.submit_s - statistics.real("cooldown_s");
    let start = count("warmup_jobs").max(jobs.partition_point(|j| j.submit_s < warm_until));
    let end = jobs.len().saturating_sub(count("cooldown_jobs")).min(jobs.partition_point(|j| j.submit_s <= cool_from));
    if start < end { start..end } else { 0..0 }
}

/// Number of first values that MSER-5 cuts (White 1997; White, Cobb & Spratt 2000).
///
/// With batch means Y_1 .. Y_k of five values each, it is 5 d for the least d in 0 ..= k/2 that minimises the sum over
/// i > d of (Y_i - M)^2 / (k - d)^2, where M is the mean of the Y_i with i > d. Fewer than five last values are ignored.
fn mser5(values: &[f64]) -> usize {
    let (batches, _) = values.as_chunks::<BATCH>();
    let means: Vec<f64> = batches.iter().map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    let total = means.len();
    // From the back by Welford's recurrence: one pass without cancellation.
    let (mut mean, mut squares) = (0.0, 0.0);
    let (mut best, mut best_cut) = (f64::INFINITY, 0);
    for (kept, (cut, &y)) in (1_u32..).zip(means.iter().enumerate().rev()) {
        let delta = y - mean;
        mean += delta / f64::from(kept);
        squares += delta * (y - mean);
        let statistic = squares / (f64::from(kept) * f64::from(kept));
        if cut <= total / 2 && statistic <= best {
            (best, best_cut) = (statistic, cut);
        }
    }
    best_cut * BATCH
}
