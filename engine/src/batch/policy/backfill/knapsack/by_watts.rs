//! The search if jobs add different power a proc.
use super::{Best, Width};
use crate::error::Result;

/// The search, with its buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    /// By sum of procs: weight of the lightest set found (W); infinite without a set.
    weights: Vec<f64>,
    /// Jobs that fit; each has an equal number of words in `improved`.
    jobs: Vec<u32>,
    /// One bit for each sum: the job made a lighter set for the sum than the jobs before it.
    improved: Vec<u64>,
}

impl Search {
    /// The best set of jobs that add at most `limit_w` (W).
    pub(super) fn run(
        &mut self,
        procs: &[u32],
        added_w: &[f64],
        limit_w: f64,
        width: Width,
        mut step: impl FnMut() -> Result<()>,
    ) -> Result<Best> {
        let total: u64 = procs.iter().map(|&n| u64::from(n)).sum();
        let all_fit = added_w.iter().sum::<f64>() <= limit_w;
        // All jobs fit: the usual case of a short list.
        if all_fit && total <= u64::from(width.free) {
            return Ok(Some((0..procs.len()).collect()));
        }
        if all_fit && width.wider_wins {
            return Ok(None);
        }
        let most = total.min(u64::from(width.free)) as usize;
        let words = most / 64 + 1;
        self.weights.clear();
        self.weights.resize(most + 1, f64::INFINITY);
        self.weights[0] = 0.0;
        self.jobs.clear();
        self.improved.clear();
        let (mut greatest, mut lightest_w) = (0, 0.0_f64);
        for (at, (&n, &weight)) in procs.iter().zip(added_w).enumerate() {
            step()?;
            if lightest_w + weight > limit_w {
                continue;
            }
            let n = n as usize;
            let beyond = (width.free as usize + 1).saturating_sub(n)..=greatest;
            let fits = |from: &f64| *from < f64::INFINITY && from + weight <= limit_w;
            if width.wider_wins && !beyond.is_empty() && self.weights[beyond].iter().any(fits) {
                return Ok(None);
            }
            if n > most {
                continue;
            }
            let row = self.improved.len();
            self.improved.resize(row + words, 0);
            self.jobs.push(at as u32);
            // Descending, so that no sum has the job twice.
            for sum in (n..=most.min(greatest + n)).rev() {
                let with = self.weights[sum - n] + weight;
                if with < self.weights[sum] && with <= limit_w {
                    self.weights[sum] = with;
                    self.improved[row + sum / 64] |= 1 << (sum % 64);
                    greatest = greatest.max(sum);
                    lightest_w = lightest_w.min(with);
                }
            }
        }
        Ok(Some(self.set(greatest, procs, words)))
    }

    /// The set of a sum: its last job is the last one that improved the sum.
    fn set(&self, greatest: usize, procs: &[u32], words: usize) -> Vec<usize> {
        let (mut set, mut sum) = (Vec::new(), greatest);
        for (&job, row) in self.jobs.iter().zip(self.improved.chunks(words)).rev() {
            if sum > 0 && row[sum / 64] >> (sum % 64) & 1 == 1 {
                set.push(job as usize);
                sum -= procs[job as usize] as usize;
            }
        }
        set.reverse();
        set
    }
}
