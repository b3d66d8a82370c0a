//! The share of run times that scales with the frequency, from jobs that ran at several frequencies.
//!
//! At a frequency f a job runs (beta (f_top / f - 1) + 1) times as long as at the top frequency (Etinski et al. 2010, eq. 5).
//! A job runs once, at one frequency. So similar jobs are compared, in groups such as the jobs of one user that request
//! equal processors and times. In each group, the mean logarithm of the run times at f minus that at f_top estimates the
//! logarithm of the factor. The estimate is the weighted mean of these differences over the groups.

use std::collections::BTreeMap;

/// A job whose frequency is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrequencyJob {
    /// Jobs of one group do similar work.
    pub group: usize,
    /// Frequency (GHz), above 0.
    pub ghz: f64,
    /// Run time (s), above 0.
    pub run_s: f64,
}

/// The share that scales, by the jobs of one frequency and of the top frequency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beta {
    /// The frequency (GHz).
    pub ghz: f64,
    /// The top frequency (GHz).
    pub top_ghz: f64,
    /// Groups with jobs at both frequencies.
    pub groups: u64,
    /// Their jobs.
    pub jobs: u64,
    /// The estimate. Noise and unlike work in a group may put it outside of 0..=1.
    pub beta: f64,
    /// Its standard error; `None` if no group has two jobs at one of the frequencies.
    pub error: Option<f64>,
}

/// Number, mean and sum of squared deviations of the logarithms of run times.
#[derive(Debug, Clone, Copy, Default)]
struct Logs {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Logs {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let before = value - self.mean;
        self.mean += before / self.count;
        self.squares += before * (value - self.mean);
    }
}

/// The estimates for all frequencies below the top one, ascending. Frequencies that share no group with the top frequency have
/// none.
pub fn betas(jobs: &[FrequencyJob]) -> Vec<Beta> {
    // Frequencies above 0 have the order of their bits.
    let mut groups: BTreeMap<(u64, usize), Logs> = BTreeMap::new();
    for job in jobs {
        groups.entry((job.ghz.to_bits(), job.group)).or_default().add(job.run_s.ln());
    }
    let Some(&(top, _)) = groups.keys().next_back() else { return Vec::new() };
    let mut frequencies: Vec<u64> = groups.keys().map(|(ghz, _)| *ghz).filter(|ghz| *ghz != top).collect();
    frequencies.dedup();
    frequencies.into_iter().filter_map(|ghz| beta(&groups, ghz, top)).collect()
}

fn beta(groups: &BTreeMap<(u64, usize), Logs>, ghz: u64, top: u64) -> Option<Beta> {
    let pairs: Vec<(Logs, Logs)> = groups
        .range((ghz, 0)..=(ghz, usize::MAX))
        .filter_map(|((_, group), low)| Some((*low, *groups.get(&(top, *group))?)))
        .collect();
    // The difference of a group counts by the inverse of its variance, up to the variance of a job.
    let weight = |(low, high): &(Logs, Logs)| 1.0 / (1.0 / low.count + 1.0 / high.count);
    let weights: f64 = pairs.iter().map(weight).sum();
    if pairs.is_empty() {
        return None;
    }
    let log_factor = pairs.iter().map(|pair| weight(pair) * (pair.0.mean - pair.1.mean)).sum::<f64>() / weights;
    let freedom: f64 = pairs.iter().map(|(low, high)| low.count + high.count - 2.0).sum();
    let squares: f64 = pairs.iter().map(|(low, high)| low.squares + high.squares).sum();
    let (ghz, top_ghz) = (f64::from_bits(ghz), f64::from_bits(top));
    let stretch = top_ghz / ghz - 1.0;
    let error = (freedom > 0.0).then(|| log_factor.exp() * (squares / freedom / weights).sqrt() / stretch);
    Some(Beta {
        ghz,
        top_ghz,
        groups: pairs.len() as u64,
        jobs: pairs.iter().map(|(low, high)| low.count + high.count).sum::<f64>() as u64,
        beta: log_factor.exp_m1() / stretch,
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(group: usize, ghz: f64, run_s: f64) -> FrequencyJob {
        FrequencyJob { group, ghz, run_s }
    }

    #[test]
    fn equal_work_at_two_frequencies_gives_beta() {
        // At half of 2 GHz, beta 0.6 makes jobs 1.6 times as long; at 1.6 GHz 1.15 times.
        let jobs = [
            job(1, 2.0, 100.0),
            job(1, 1.0, 160.0),
            job(2, 2.0, 10.0),
            job(2, 1.0, 16.0),
            job(2, 1.6, 11.5),
            job(3, 1.0, 7.0),
            job(4, 2.0, 7.0),
        ];
        let found = betas(&jobs);
        assert_eq!(found.iter().map(|one| (one.ghz, one.top_ghz)).collect::<Vec<_>>(), [(1.0, 2.0), (1.6, 2.0)]);
        assert_eq!(found.iter().map(|one| (one.groups, one.jobs)).collect::<Vec<_>>(), [(2, 4), (1, 2)]);
        assert!(found.iter().all(|one| (one.beta - 0.6).abs() < 1e-12 && one.error.is_none()), "{found:?}");
        assert_eq!(betas(&[]), []);
        assert_eq!(betas(&[job(1, 2.0, 5.0), job(2, 1.0, 5.0)]), []);
    }

    #[test]
    fn the_standard_error_covers_the_noise() {
        // Run times with a normal logarithm around the work of each group; 300 sets of 40 groups.
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let (mut inside, sets) = (0, 300);
        for _ in 0..sets {
            let mut jobs = Vec::new();
            for group in 0..40 {
                let work_s = 100.0 * (2.0 * normal()).exp();
                for at in 0..6 {
                    let (ghz, factor) = if at < 2 + group % 3 { (2.2, 1.0) } else { (2.0, 1.04) };
                    jobs.push(job(group, ghz, work_s * factor * (0.02 * normal()).exp()));
                }
            }
            let found = betas(&jobs)[0];
            inside += usize::from((found.beta - 0.4).abs() < 2.0 * found.error.expect("groups of six jobs"));
        }
        assert!((280..=296).contains(&inside), "{inside} of {sets} within two standard errors");
    }
}
