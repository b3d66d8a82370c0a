//! The search where all jobs add the same power a proc.
use super::{Best, Room};
use crate::error::Stop;

/// No job.
const NOBODY: u32 = u32::MAX;

/// Sums of procs that sets of the jobs looked at have.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    /// One bit a sum, from 0 on.
    words: Vec<u64>,
    greatest: usize,
}

impl Sums {
    /// That of no job, with room for sums up to `most`.
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

    /// Adds all sums with `n` procs more that are at most `most`, and tells of each new one.
    fn add(&mut self, n: usize, most: usize, mut new: impl FnMut(usize)) {
        let end = most.min(self.greatest + n);
        if end < n {
            return;
        }
        let (words, bits) = (n / 64, n % 64);
        // From the greatest on, so that no sum has the job twice.
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

/// The search and its memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    sums: Sums,
    /// By sum: the last job, and its procs, of the first set found that has it.
    last: Vec<(u32, u32)>,
}

impl Search {
    /// The best set of jobs of at most `carried` procs.
    pub(super) fn run(
        &mut self,
        procs: impl Iterator<Item = u32>,
        carried: u64,
        room: Room,
        mut step: impl FnMut() -> Result<(), Stop>,
    ) -> Result<Best, Stop> {
        let free = room.free as usize;
        let carried = usize::try_from(carried).unwrap_or(usize::MAX);
        let most = free.min(carried);
        let beyond = room.wider_wins && carried > free;
        self.sums.begin(most);
        self.last.resize(self.last.len().max(most + 1), (NOBODY, 0));
        if most == 0 {
            return Ok(Best::Set(Vec::new()));
        }
        for (at, n) in procs.enumerate() {
            step()?;
            let width = n as usize;
            if width > carried {
                continue;
            }
            if beyond && self.sums.any((free + 1).saturating_sub(width), carried - width) {
                return Ok(Best::TooWide);
            }
            let last = &mut self.last;
            self.sums.add(width, most, |sum| last[sum] = (at as u32, n));
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
        Ok(Best::Set(set))
    }
}
