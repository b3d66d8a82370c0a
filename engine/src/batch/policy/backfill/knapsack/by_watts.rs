//! The search where jobs add different power a proc.
use super::{Best, Room};
use crate::error::Stop;

/// The search and its memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    /// By sum of procs: weight of the lightest set found (W); infinite without one.
    weights: Vec<f64>,
    /// Jobs that improved a sum; for each as many words in `improved`.
    jobs: Vec<u32>,
    /// One bit a sum: the job made the lightest set for it, as far as jobs were looked at.
    improved: Vec<u64>,
}

impl Search {
    /// The best set of jobs that add at most `limit_w` (W).
    pub(super) fn run(
        &mut self,
        procs: &[u32],
        added_w: &[f64],
        limit_w: f64,
        room: Room,
        mut step: impl FnMut() -> Result<(), Stop>,
    ) -> Result<Best, Stop> {
        let total: u64 = procs.iter().map(|&n| u64::from(n)).sum();
        let all_fit = added_w.iter().sum::<f64>() <= limit_w;
        // All at once, the usual case of a short list.
        if all_fit && total <= u64::from(room.free) {
            return Ok(Best::Set((0..procs.len()).collect()));
        }
        if all_fit && room.wider_wins {
            return Ok(Best::TooWide);
        }
        let most = total.min(u64::from(room.free)) as usize;
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
            let beyond = (room.free as usize + 1).saturating_sub(n)..=greatest;
            let fits = |from: &f64| *from < f64::INFINITY && from + weight <= limit_w;
            if room.wider_wins && !beyond.is_empty() && self.weights[beyond].iter().any(fits) {
                return Ok(Best::TooWide);
            }
            if n > most {
                continue;
            }
            let row = self.improved.len();
            self.improved.resize(row + words, 0);
            self.jobs.push(at as u32);
            // From the greatest on, so that no sum has the job twice.
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
        Ok(Best::Set(self.set(greatest, procs, words)))
    }

    /// The set of a sum: its last job is the last that improved the sum.
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
