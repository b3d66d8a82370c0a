//! Running jobs by estimated end, from which EASY finds the head's reservation.
use crate::batch::kernel::JobId;

/// The head's reservation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shadow {
    /// The shadow time: expected start of the head (s).
    pub(crate) at_s: f64,
    /// Procs that the head leaves free at this instant.
    pub(crate) extra: u32,
}

/// Number of jobs up to which insertion and removal one by one are faster than binary search with lazy removal.
const FEW: usize = 56;

/// Number of jobs up to which a comparison with all is faster than binary search, in which each step waits for the one
/// before.
const MANY: usize = 256;

/// Running jobs, sorted by estimated end. If there are many, ended jobs are removed later: a caller says which jobs
/// still run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Releases {
    /// Estimated ends of the jobs (s).
    ends_s: Vec<f64>,
    /// The jobs, in the same order.
    holders: Vec<Holder>,
    /// Number of unused places at the front.
    front: usize,
    /// Number of ended jobs that have not been removed.
    ended: usize,
}

/// A job and its procs, in one number that is moved as one.
#[derive(Debug, Clone, Copy, Default)]
struct Holder(u64);

impl Holder {
    #[inline]
    fn new(job: JobId, procs: u32) -> Holder {
        Holder(u64::from(procs) << 32 | u64::from(job))
    }

    #[inline]
    fn job(self) -> JobId {
        self.0 as JobId
    }

    #[inline]
    fn procs(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl Releases {
    /// A job has started. `runs`: whether a job still holds its procs.
    #[inline]
    pub(crate) fn add(&mut self, job: JobId, procs: u32, end_s: f64, runs: impl Fn(JobId) -> bool) {
        let holder = Holder::new(job, procs);
        if self.front > FEW || (self.front > 0 && self.len() > FEW) {
            self.ends_s.drain(..self.front);
            self.holders.drain(..self.front);
            self.front = 0;
        }
        if self.len() > FEW {
            self.add_to_many(holder, end_s, runs);
            return;
        }
        // From the back: most starting jobs are expected to end after most running jobs.
        self.ends_s.push(end_s);
        self.holders.push(holder);
        // Slices of equal length, so that no index needs a check.
        let ends_s = &mut self.ends_s[self.front..];
        let holders = &mut self.holders[self.front..][..ends_s.len()];
        let mut at = ends_s.len() - 1;
        while let Some(&before_s) = ends_s[..at].last()
            && before_s > end_s
        {
            ends_s[at] = before_s;
            holders[at] = holders[at - 1];
            at -= 1;
        }
        ends_s[at] = end_s;
        holders[at] = holder;
    }

    fn add_to_many(&mut self, holder: Holder, end_s: f64, runs: impl Fn(JobId) -> bool) {
        if self.ended > self.ends_s.len() / 4 {
            let mut to = 0;
            for from in 0..self.ends_s.len() {
                (self.ends_s[to], self.holders[to]) = (self.ends_s[from], self.holders[from]);
                to += usize::from(runs(self.holders[from].job()));
            }
            self.ends_s.truncate(to);
            self.holders.truncate(to);
            self.ended = 0;
        }
        let at = if self.ends_s.len() > MANY {
            self.ends_s.partition_point(|&other| other <= end_s)
        } else {
            self.ends_s.iter().map(|&other| usize::from(other <= end_s)).sum()
        };
        self.ends_s.insert(at, end_s);
        self.holders.insert(at, holder);
    }

    /// A job that was added has ended.
    #[inline]
    pub(crate) fn remove(&mut self, job: JobId) {
        if self.len() > FEW {
            self.ended += 1;
            return;
        }
        // Moves the jobs before the ended one back by one place. They are few: most ending jobs were expected to end
        // before most running jobs. A loop is faster here than two calls that move memory.
        let mut places = self.ends_s[self.front..].iter_mut().zip(&mut self.holders[self.front..]);
        let Some((&mut mut end_s, &mut mut holder)) = places.next() else {
            debug_assert!(false, "job {job} was not added");
            return;
        };
        self.front += 1;
        for (place_s, place) in places {
            if holder.job() == job {
                break;
            }
            (end_s, *place_s) = (*place_s, end_s);
            (holder, *place) = (*place, holder);
        }
        debug_assert_eq!(holder.job(), job, "the job was not added");
    }

    #[inline]
    fn len(&self) -> usize {
        self.ends_s.len() - self.front
    }

    /// The first estimated end at which `need` procs are free, and the extra procs after all releases up to that
    /// instant. A job whose estimate has passed is expected to end now. `None` if all releases are too few. `runs`:
    /// whether a job still holds its procs.
    #[inline]
    pub(crate) fn shadow(&self, now_s: f64, free: u32, need: u32, runs: impl Fn(JobId) -> bool) -> Option<Shadow> {
        if self.ended == 0 {
            return self.walk(now_s, free, need, |_| true);
        }
        self.walk(now_s, free, need, runs)
    }

    /// [`Releases::shadow`] while procs wake. `coming`: the instants at which they will be free (s), and their
    /// numbers.
    #[cold]
    pub(crate) fn shadow_with(
        &self,
        now_s: f64,
        free: u32,
        need: u32,
        runs: impl Fn(JobId) -> bool,
        coming: impl Iterator<Item = (f64, u32)>,
    ) -> Option<Shadow> {
        let held =
            self.holders[self.front..].iter().zip(&self.ends_s[self.front..]).filter(|(holder, _)| runs(holder.job()));
        let mut given: Vec<(f64, u32)> = held.map(|(holder, &end_s)| (end_s, holder.procs())).chain(coming).collect();
        given.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut available = free;
        let at_s = given.iter().find_map(|&(end_s, procs)| {
            available += procs;
            (available >= need).then_some(end_s)
        })?;
        let at_s = at_s.max(now_s);
        let available = free + given.iter().filter(|(end_s, _)| *end_s <= at_s).map(|(_, procs)| procs).sum::<u32>();
        Some(Shadow { at_s, extra: available - need })
    }

    #[inline(always)]
    fn walk(&self, now_s: f64, free: u32, need: u32, runs: impl Fn(JobId) -> bool) -> Option<Shadow> {
        let mut available = free;
        let mut ends = self.ends_s[self.front..].iter().zip(&self.holders[self.front..]);
        // A product instead of a branch, because it is hard to predict whether a job still runs.
        let given = |holder: &Holder| holder.procs() * u32::from(runs(holder.job()));
        let at_s = loop {
            let (&end_s, holder) = ends.next()?;
            available += given(holder);
            if available >= need {
                break if end_s > now_s { end_s } else { now_s };
            }
        };
        for (_, holder) in ends.take_while(|(end_s, _)| **end_s <= at_s) {
            available += given(holder);
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
        // 1 is free. With one release at 10, 3 are free; with both releases 6, which leaves 3 beside a head of 3.
        assert_eq!(releases.shadow(0.0, 1, 3, all), Some(Shadow { at_s: 10.0, extra: 3 }));
        assert_eq!(releases.shadow(0.0, 1, 7, all), Some(Shadow { at_s: 30.0, extra: 3 }));
        assert_eq!(releases.shadow(0.0, 1, 11, all), None);
        // At 40 all estimates have passed: all jobs are expected to end now.
        assert_eq!(releases.shadow(40.0, 1, 3, all), Some(Shadow { at_s: 40.0, extra: 7 }));
        releases.remove(2);
        assert_eq!(releases.shadow(0.0, 1, 3, all), Some(Shadow { at_s: 10.0, extra: 0 }));
    }

    #[test]
    fn procs_that_wake_count_as_releases() {
        let mut releases = Releases::default();
        let all = |_| true;
        releases.add(0, 4, 30.0, all);
        releases.add(1, 2, 10.0, all);
        for now_s in [0.0, 40.0] {
            let alone = releases.shadow_with(now_s, 1, 3, all, [].into_iter());
            assert_eq!(alone, releases.shadow(now_s, 1, 3, all));
        }
        // 3 procs wake at 5: 4 are free then. At 10 there are 6.
        let coming = || [(5.0, 3)].into_iter();
        assert_eq!(releases.shadow_with(0.0, 1, 3, all, coming()), Some(Shadow { at_s: 5.0, extra: 1 }));
        assert_eq!(releases.shadow_with(0.0, 1, 5, all, coming()), Some(Shadow { at_s: 10.0, extra: 1 }));
        assert_eq!(releases.shadow_with(0.0, 1, 11, all, coming()), None);
    }
}
