//! Running jobs by estimated end: what EASY walks to find the head's reservation.
use crate::kernel::JobId;

/// A running job: its procs and when it is expected to give them back.
#[derive(Debug, Clone, Copy)]
struct Release {
    end_s: f64,
    procs: u32,
    job: JobId,
}

/// The head's reservation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shadow {
    /// When the head is expected to start: the shadow time (s).
    pub(crate) at_s: f64,
    /// Procs that it leaves free then.
    pub(crate) extra: u32,
}

/// Up to so many, looking at all of them is quicker than halving and than leaving ended ones among them.
const FEW: usize = 32;

/// Running jobs, sorted by estimated end. Where there are many, jobs that have ended stay among them for a
/// while: whoever walks asks which still run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Releases {
    sorted: Vec<Release>,
    /// How many have ended.
    ended: usize,
}

impl Releases {
    /// A job has started. `runs`: whether a job still holds its procs.
    #[inline]
    pub(crate) fn add(&mut self, job: JobId, procs: u32, end_s: f64, runs: impl Fn(JobId) -> bool) {
        if self.ended > self.sorted.len() / 8 {
            self.sorted.retain(|release| runs(release.job));
            self.ended = 0;
        }
        let before = |r: &Release| r.end_s <= end_s;
        let at = if self.sorted.len() <= FEW {
            self.sorted.iter().map(|r| usize::from(before(r))).sum()
        } else {
            self.sorted.partition_point(before)
        };
        self.sorted.insert(at, Release { end_s, procs, job });
    }

    /// A job that was added with this estimated end has ended.
    #[inline]
    pub(crate) fn remove(&mut self, job: JobId, end_s: f64) {
        if self.sorted.len() > FEW {
            self.ended += 1;
            return;
        }
        let from: usize = self.sorted.iter().map(|r| usize::from(r.end_s < end_s)).sum();
        let inside = self.sorted[from..].iter().position(|r| r.job == job);
        debug_assert!(inside.is_some(), "job {job} was added with end {end_s}");
        if let Some(inside) = inside {
            self.sorted.remove(from + inside);
        }
    }

    /// The first estimated end at which `need` procs are free, with all jobs that are expected to have ended by then
    /// counted. A job whose estimate has passed is expected to end now. `None` if no release is enough. `runs`: whether a job
    /// still holds its procs.
    #[inline]
    pub(crate) fn shadow(&self, now_s: f64, free: u32, need: u32, runs: impl Fn(JobId) -> bool) -> Option<Shadow> {
        if self.ended == 0 {
            return self.walk(now_s, free, need, |_| true);
        }
        self.walk(now_s, free, need, runs)
    }

    #[inline(always)]
    fn walk(&self, now_s: f64, free: u32, need: u32, runs: impl Fn(JobId) -> bool) -> Option<Shadow> {
        let mut available = free;
        let mut ends = self.sorted.iter();
        // Multiplied, not branched: whether a job still runs is hard to predict.
        let given = |release: &Release| release.procs * u32::from(runs(release.job));
        let at_s = loop {
            let release = ends.next()?;
            available += given(release);
            if available >= need {
                break if release.end_s > now_s { release.end_s } else { now_s };
            }
        };
        for release in ends.take_while(|r| r.end_s <= at_s) {
            available += given(release);
        }
        Some(Shadow { at_s, extra: available - need })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shadow_counts_equal_ends_and_overdue_jobs() {
        let mut releases = Releases::default();
        let all = |_| true;
        releases.add(0, 4, 30.0, all);
        releases.add(1, 2, 10.0, all);
        releases.add(2, 3, 10.0, all);
        // 1 free: the first end at 10 gives 3, both give 6, which leaves 3 beside a head of 3.
        assert_eq!(releases.shadow(0.0, 1, 3, all), Some(Shadow { at_s: 10.0, extra: 3 }));
        assert_eq!(releases.shadow(0.0, 1, 7, all), Some(Shadow { at_s: 30.0, extra: 3 }));
        assert_eq!(releases.shadow(0.0, 1, 11, all), None);
        // At 40 all estimates have passed: all are expected to end now.
        assert_eq!(releases.shadow(40.0, 1, 3, all), Some(Shadow { at_s: 40.0, extra: 7 }));
        releases.remove(2, 10.0);
        assert_eq!(releases.shadow(0.0, 1, 3, all), Some(Shadow { at_s: 10.0, extra: 0 }));
    }
}
