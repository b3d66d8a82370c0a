//! Running jobs by estimated end, from which EASY finds reservations.
//!
//! If estimated ends never move, the list is kept from pass to pass: [`Releases::add`], [`Releases::remove`]. Changes of
//! gears and suspensions move them: then a pass collects the list again.
use crate::batch::kernel::{Cluster, JobId, Recorder};

/// Procs that become free at an estimated end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Release {
    pub(crate) end_s: f64,
    /// [`WAKING`] for procs that wake.
    pub(crate) job: JobId,
    pub(crate) procs: u32,
}

/// The number of no job.
pub(crate) const WAKING: JobId = JobId::MAX;

/// The head's reservation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Shadow {
    /// The shadow time: expected start of the head (s).
    pub(crate) at_s: f64,
    /// Procs that the head leaves free at this instant.
    pub(crate) extra: u32,
}

/// Number of jobs up to which insertion and removal one by one are faster than binary search with lazy removal.
const FEW: usize = 56;

/// Releases in the order of time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Releases {
    all: Vec<Release>,
    /// Number of unused places at the front.
    front: usize,
    /// Number of ended jobs that have not been removed.
    ended: usize,
    /// Number of releases at the back that are not sorted yet: a pass sorts a collected list up to the last release that the pass reads.
    unsorted: usize,
}

impl Releases {
    /// Collects the releases of the present running jobs, not yet sorted. A job that has outlived its estimate ends now.
    pub(crate) fn collect<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) {
        let now_s = cluster.now_s();
        self.all.clear();
        let release = |(job, procs, _, end_s): (JobId, u32, u8, f64)| Release { end_s: end_s.max(now_s), job, procs };
        self.all.extend(cluster.each_running().map(release));
        self.unsorted = self.all.len();
    }

    /// [`Releases::collect`] with the procs that wake.
    pub(crate) fn collect_with_waking<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) {
        self.collect(cluster);
        self.all.extend(cluster.coming(0).map(|(end_s, procs)| Release { end_s, job: WAKING, procs }));
        self.unsorted = self.all.len();
    }

    /// Sorts the list to its end.
    pub(crate) fn sorted(mut self) -> Releases {
        self.get(self.all.len());
        self
    }

    /// The release of a collected list at a position in the order of time; those of one instant are in the order of jobs.
    #[inline]
    pub(crate) fn get(&mut self, at: usize) -> Option<Release> {
        while self.unsorted > 0 && at >= self.all.len() - self.unsorted {
            self.sort_more();
        }
        self.all.get(at).copied()
    }

    fn sort_more(&mut self) {
        let sorted = self.all.len() - self.unsorted;
        let unsorted = &mut self.all[sorted..];
        // Most reservations need few releases: doubling keeps the work proportional to the number read.
        let count = sorted.max(32).min(unsorted.len());
        let earlier = |a: &Release, b: &Release| a.end_s.total_cmp(&b.end_s).then(a.job.cmp(&b.job));
        if count < unsorted.len() {
            unsorted.select_nth_unstable_by(count, earlier);
        }
        unsorted[..count].sort_unstable_by(earlier);
        self.unsorted -= count;
    }

    /// A job has started. `runs`: whether a job still holds its procs.
    #[inline(always)]
    pub(crate) fn add(&mut self, release: Release, runs: impl Fn(JobId) -> bool) {
        if self.front > FEW || (self.front > 0 && self.len() > FEW) {
            self.all.drain(..self.front);
            self.front = 0;
        }
        if self.len() > FEW {
            self.add_to_many(release, runs);
            return;
        }
        // From the back: most starting jobs are expected to end after most running jobs.
        self.all.push(release);
        let all = &mut self.all[self.front..];
        let mut at = all.len() - 1;
        while let Some(&before) = all[..at].last()
            && before.end_s > release.end_s
        {
            all[at] = before;
            at -= 1;
        }
        all[at] = release;
    }

    fn add_to_many(&mut self, release: Release, runs: impl Fn(JobId) -> bool) {
        if self.ended > self.all.len() / 4 {
            self.all.retain(|release| runs(release.job));
            self.ended = 0;
        }
        let at = self.all.partition_point(|other| other.end_s <= release.end_s);
        self.all.insert(at, release);
    }

    /// A job that was added has ended. Of many jobs, it is removed later, together with others.
    #[inline]
    pub(crate) fn remove(&mut self, job: JobId) {
        if self.len() > FEW {
            self.ended += 1;
            return;
        }
        // Moves the jobs before the ended one back by one place. They are few: most ending jobs were expected to end
        // before most running jobs. A loop is faster here than a call that moves memory.
        let mut places = self.all[self.front..].iter_mut();
        let Some(&mut mut moved) = places.next() else { return };
        self.front += 1;
        for place in places {
            if moved.job == job {
                break;
            }
            std::mem::swap(&mut moved, place);
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.all.len() - self.front
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

    #[inline(always)]
    fn walk(&self, now_s: f64, free: u32, need: u32, runs: impl Fn(JobId) -> bool) -> Option<Shadow> {
        let mut available = free;
        // A product instead of a branch, because it is hard to predict whether a job still runs.
        let given = |release: &Release| release.procs * u32::from(runs(release.job));
        let mut releases = self.all[self.front..].iter();
        let at_s = loop {
            let release = releases.next()?;
            available += given(release);
            if available >= need {
                break release.end_s.max(now_s);
            }
        };
        available += releases.take_while(|release| release.end_s <= at_s).map(given).sum::<u32>();
        Some(Shadow { at_s, extra: available - need })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Releases of these jobs: job, procs, estimated end (s).
    fn releases(jobs: &[(JobId, u32, f64)]) -> Releases {
        let mut releases = Releases::default();
        for &(job, procs, end_s) in jobs {
            releases.add(Release { end_s, job, procs }, |_| true);
        }
        releases
    }

    #[test]
    fn the_shadow_counts_equal_ends_and_overdue_jobs() {
        let mut releases = releases(&[(0, 4, 30.0), (1, 2, 10.0), (2, 3, 10.0)]);
        let all = |_| true;
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
    fn ended_jobs_are_removed_once_they_are_many() {
        let jobs: Vec<(JobId, u32, f64)> = (0..100).map(|job| (job, 1, f64::from(job))).collect();
        let mut releases = releases(&jobs);
        (0..34).for_each(|job| releases.remove(job));
        let runs = |job| job >= 34;
        assert_eq!(releases.shadow(0.0, 0, 2, runs), Some(Shadow { at_s: 35.0, extra: 0 }));
        releases.add(Release { end_s: 34.5, job: 100, procs: 5 }, runs);
        assert_eq!(releases.all.len(), 67);
        assert_eq!(releases.shadow(0.0, 0, 2, runs), Some(Shadow { at_s: 34.5, extra: 4 }));
    }

    #[test]
    fn procs_that_wake_count_as_releases() {
        // 3 procs wake at 5: 4 are free then. At 10 there are 6.
        let collected = releases(&[(0, 4, 30.0), (1, 2, 10.0), (WAKING, 3, 5.0)]).all;
        let releases = Releases { unsorted: collected.len(), all: collected, ..Releases::default() }.sorted();
        let all = |_| true;
        assert_eq!(releases.shadow(0.0, 1, 3, all), Some(Shadow { at_s: 5.0, extra: 1 }));
        assert_eq!(releases.shadow(0.0, 1, 5, all), Some(Shadow { at_s: 10.0, extra: 1 }));
        assert_eq!(releases.shadow(0.0, 1, 11, all), None);
    }

    #[test]
    fn a_collected_list_is_sorted_as_far_as_it_is_read() {
        let all: Vec<Release> =
            (0..200).map(|at| Release { end_s: f64::from(at * 37 % 100), job: at, procs: 1 }).collect();
        let mut releases = Releases { unsorted: all.len(), all, ..Releases::default() };
        let read: Vec<(f64, JobId)> = (0..70).filter_map(|at| releases.get(at)).map(|r| (r.end_s, r.job)).collect();
        assert!(read.is_sorted() && read.len() == 70 && read[69].0 == 34.0);
        assert_eq!(releases.unsorted, 72);
        assert_eq!((releases.get(199).map(|release| release.end_s), releases.get(200)), (Some(99.0), None));
    }
}
