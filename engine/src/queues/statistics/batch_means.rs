//! Batch means: means of one long run and their precision.
use super::student::t_quantile;

/// Number of batches. If the precision is not reached, pairs of neighbours are joined and the same number is added again, so
/// that the size of a batch doubles.
pub(super) const BATCHES: usize = 32;

/// Sums over a batch of consecutive completions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Batch {
    pub(super) jobs: u64,
    pub(super) wait_s: f64,
    pub(super) response_s: f64,
    /// Energy of executing servers (J).
    pub(super) busy_j: f64,
    /// Energy of the others (J).
    pub(super) idle_j: f64,
}

impl Batch {
    fn join(self, other: Batch) -> Batch {
        Batch {
            jobs: self.jobs + other.jobs,
            wait_s: self.wait_s + other.wait_s,
            response_s: self.response_s + other.response_s,
            busy_j: self.busy_j + other.busy_j,
            idle_j: self.idle_j + other.idle_j,
        }
    }
}

/// Joins pairs of neighbours.
pub(super) fn join_pairs(batches: &mut Vec<Batch>) {
    *batches = batches.as_chunks::<2>().0.iter().map(|[a, b]| a.join(*b)).collect();
}

/// A mean with its precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) mean: f64,
    /// Half the width of the confidence interval.
    pub(super) half_width: f64,
    /// Correlation of neighbouring batches; 0 if they do not differ.
    pub(super) lag1: f64,
}

impl Estimate {
    /// The mean of a quantity over jobs, from batches of equal size. `sum`: the quantity's sum over a batch.
    pub(super) fn of(batches: &[Batch], confidence: f64, sum: impl Fn(&Batch) -> f64) -> Estimate {
        let means: Vec<f64> = batches.iter().map(|batch| sum(batch) / batch.jobs as f64).collect();
        let n = means.len() as f64;
        let mean = means.iter().sum::<f64>() / n;
        let squares = means.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
        let products = means.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
        let dof = u32::try_from(means.len() - 1).expect("there are few batches");
        let half_width = t_quantile(confidence, dof) * libm::sqrt(squares / (n - 1.0) / n);
        Estimate { mean, half_width, lag1: if squares > 0.0 { products / squares } else { 0.0 } }
    }

    /// Half-width / mean; 0 if the half-width is 0.
    pub(super) fn relative(&self) -> f64 {
        if self.half_width == 0.0 { 0.0 } else { self.half_width / self.mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(sums: &[f64]) -> Vec<Batch> {
        sums.iter().map(|&wait_s| Batch { jobs: 10, wait_s, ..Batch::default() }).collect()
    }

    #[test]
    fn estimates_by_hand() {
        // Means 1, 2, 3, 2: mean 2, squares 2, products (-1)(0) + (0)(1) + (1)(0) = 0; t(0.95; 3) = 3.18244631.
        let estimate = Estimate::of(&batches(&[10.0, 20.0, 30.0, 20.0]), 0.95, |b| b.wait_s);
        assert_eq!((estimate.mean, estimate.lag1), (2.0, 0.0));
        assert!((estimate.half_width - 3.182_446_31 * (2.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-7);
        // Means 1, 2, 3, 4: squares 5, products 0.75 - 0.25 + 0.75.
        let rising = Estimate::of(&batches(&[10.0, 20.0, 30.0, 40.0]), 0.95, |b| b.wait_s);
        assert_eq!(rising.lag1, 0.25);
        let flat = Estimate::of(&batches(&[0.0; 4]), 0.95, |b| b.wait_s);
        assert_eq!((flat.half_width, flat.lag1, flat.relative()), (0.0, 0.0, 0.0));
    }

    #[test]
    fn joined_pairs_keep_the_sums() {
        let mut joined = batches(&[1.0, 2.0, 3.0, 4.0]);
        join_pairs(&mut joined);
        assert_eq!(joined.iter().map(|b| (b.jobs, b.wait_s)).collect::<Vec<_>>(), [(20, 3.0), (20, 7.0)]);
    }
}
