//! The search if all jobs add the same power a proc.
use super::{Best, Width};
use crate::error::Result;

/// The number of no job.
const NO_JOB: u32 = u32::MAX;

/// Sums of procs of all sets of the jobs so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    /// One bit for each sum, from 0 on.
    words: Vec<u64>,
    greatest: usize,
}

impl Sums {
    /// The sum of the empty set, with memory for sums up to `most`.
    fn begin(&mut self, most: usize) {
        self.words.clear();
        self.words.resize(most / 64 + 1, 0);
        self.words[0] = 1;
        self.greatest = 0;
    }

    /// Whether there is a sum in `from..=to`.
    fn any(&self, from: usize, to: usize) -> bool {
        let to = to.min(self.greatest);
        if from > to {
            return false;
        }
        (from / 64..=to / 64).any(|at| {
            let above = if at == from / 64 { u64::MAX << (from % 64) } else { u64::MAX };
            let below = if at == to / 64 { u64::MAX >> (63 - to % 64) } else { u64::MAX };
            self.words[at] & above & below != 0
        })
    }

    /// Adds all sums that a job of `n` procs makes possible, up to `most`, and calls `new` with each new sum.
    fn add(&mut self, n: usize, most: usize, mut new: impl FnMut(usize)) {
        let end = most.min(self.greatest + n);
        if end < n {
            return;
        }
        let (words, bits) = (n / 64, n % 64);
        // Descending, so that no sum has the job twice.
        for at in (words..=end / 64).rev() {
            let carried = if bits > 0 && at > words { self.words[at - words - 1] >> (64 - bits) } else { 0 };
            let mut more = (self.words[at - words] << bits | carried) & !self.words[at];
            if at == end / 64 {
                more &= u64::MAX >> (63 - end % 64);
            }
            self.words[at] |= more;
            while more != 0 {
                let sum = at * 64 + more.trailing_zeros() as usize;
                self.greatest = self.greatest.max(sum);
                new(sum);
                more &= more - 1;
            }
        }
    }
}

/// The search, with its buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    sums: Sums,
    /// By sum: the last job of the first set found for the sum, and its procs.
    last: Vec<(u32, u32)>,
}

impl Search {
    /// The best set of jobs of at most `powered` procs.
    pub(super) fn run(
        &mut self,
        procs: impl Iterator<Item = u32>,
        powered: u64,
        width: Width,
        mut step: impl FnMut() -> Result<()>,
    ) -> Result<Best> {
        let free = width.free as usize;
        let powered = usize::try_from(powered).unwrap_or(usize::MAX);
        let most = free.min(powered);
        let beyond = width.wider_wins && powered > free;
        self.sums.begin(most);
        self.last.resize(self.last.len().max(most + 1), (NO_JOB, 0));
        if most == 0 {
            return Ok(Some(Vec::new()));
        }
        for (at, n) in procs.enumerate() {
            step()?;
            let wide = n as usize;
            if wide > powered {
                continue;
            }
            if beyond && self.sums.any((free + 1).saturating_sub(wide), powered - wide) {
                return Ok(None);
            }
            let last = &mut self.last;
            self.sums.add(wide, most, |sum| last[sum] = (at as u32, n));
            if self.sums.greatest == most && !beyond {
                break;
            }
        }
        let mut set = Vec::new();
        let mut sum = self.sums.greatest;
        while sum > 0 {
            let (at, n) = self.last[sum];
            set.push(at as usize);
            sum -= n as usize;
        }
        set.reverse();
        Ok(Some(set))
    }
}
