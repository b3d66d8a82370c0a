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

/// Running jobs, sorted by estimated end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Releases {
    sorted: Vec<Release>,
}

impl Releases {
    #[inline]
    pub(crate) fn add(&mut self, job: JobId, procs: u32, end_s: f64) {
        let at = self.sorted.partition_point(|r| r.end_s <= end_s);
        self.sorted.insert(at, Release { end_s, procs, job });
    }

    /// Removes a job that was added with this estimated end.
    #[inline]
    pub(crate) fn remove(&mut self, job: JobId, end_s: f64) {
        let from = self.sorted.partition_point(|r| r.end_s < end_s);
        let inside = self.sorted[from..].iter().position(|r| r.job == job);
        debug_assert!(inside.is_some(), "job {job} was added with end {end_s}");
        if let Some(inside) = inside {
            self.sorted.remove(from + inside);
        }
    }

    /// The first estimated end at which `need` procs are free, with all jobs that are expected to have ended by then
    /// counted. A job whose estimate has passed is expected to end now. `None` if no release is enough.
    pub(crate) fn shadow(&self, now_s: f64, free: u32, need: u32) -> Option<Shadow> {
        let mut available = free;
        let mut ends = self.sorted.iter();
        let at_s = loop {
            let release = ends.next()?;
            available += release.procs;
            if available >= need {
                break release.end_s.max(now_s);
            }
        };
        for release in ends.take_while(|r| r.end_s <= at_s) {
            available += release.procs;
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
        releases.add(0, 4, 30.0);
        releases.add(1, 2, 10.0);
        releases.add(2, 3, 10.0);
        // 1 free: the first end at 10 gives 3, both give 6, which leaves 3 beside a head of 3.
        assert_eq!(releases.shadow(0.0, 1, 3), Some(Shadow { at_s: 10.0, extra: 3 }));
        assert_eq!(releases.shadow(0.0, 1, 7), Some(Shadow { at_s: 30.0, extra: 3 }));
        assert_eq!(releases.shadow(0.0, 1, 11), None);
        // At 40 all estimates have passed: all are expected to end now.
        assert_eq!(releases.shadow(40.0, 1, 3), Some(Shadow { at_s: 40.0, extra: 7 }));
        releases.remove(2, 10.0);
        assert_eq!(releases.shadow(0.0, 1, 3), Some(Shadow { at_s: 10.0, extra: 0 }));
    }
}
