//! Running jobs by estimated end, from which EASY finds reservations.
//!
//! The list is kept from pass to pass: [`Releases::add`], [`Releases::remove`]. The estimated end of a suspended job moves
//! with the clock: [`Releases::reschedule`]. Under a power cap, changes of gears move estimated ends: then a pass collects
//! the list again.
use super::resources::Resources;
use crate::batch::kernel::{Cluster, JobId, Recorder};

/// Resources that become free at an estimated end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Release<A> {
    pub(crate) end_s: f64,
    /// [`NO_JOB`] for procs that wake, and for planned starts.
    pub(crate) job: JobId,
    pub(crate) taken: A,
}

/// The number of no job.
pub(crate) const NO_JOB: JobId = JobId::MAX;

/// The head's reservation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Shadow<A> {
    /// The shadow time: expected start of the head (s).
    pub(crate) at_s: f64,
    /// Resources that the head leaves free at this instant.
    pub(crate) extra: A,
}

/// Number of jobs up to which insertion and removal one by one are faster than binary search with lazy removal.
const FEW: usize = 56;

/// Releases in the order of time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Releases<A> {
    all: Vec<Release<A>>,
    /// Number of unused places at the front.
    front: usize,
    /// Number of ended jobs that have not been removed.
    ended: usize,
    /// Number of releases at the back that are not sorted yet: a pass sorts a collected list up to the last release that the pass reads.
    unsorted: usize,
    /// Suspended jobs of a kept list, with what is left of their estimates instead of an end, in this order.
    suspended: Vec<Release<A>>,
}

impl<A: Copy> Releases<A> {
    /// Collects the releases of the present running jobs, not yet sorted. A job that has outlived its estimate ends now.
    /// `taken`: the resources of a job with its procs and gear.
    pub(crate) fn collect<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, taken: impl Fn(JobId, u32, u8) -> A) {
        let now_s = cluster.now_s();
        self.all.clear();
        (self.front, self.ended) = (0, 0);
        self.all.extend(cluster.each_running().map(|(job, procs, gear, end_s)| Release {
            end_s: end_s.max(now_s),
            job,
            taken: taken(job, procs, gear),
        }));
        self.unsorted = self.all.len();
    }

    /// Sorts a collected list to its end.
    pub(crate) fn sort(&mut self) {
        self.get(self.all.len());
    }

    /// The release of a collected list at a position in the order of time; those of one instant are in the order of jobs.
    #[inline]
    pub(crate) fn get(&mut self, at: usize) -> Option<Release<A>> {
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
        let earlier = |a: &Release<A>, b: &Release<A>| a.end_s.total_cmp(&b.end_s).then(a.job.cmp(&b.job));
        if count < unsorted.len() {
            unsorted.select_nth_unstable_by(count, earlier);
        }
        unsorted[..count].sort_unstable_by(earlier);
        self.unsorted -= count;
    }

    /// A job has started. `runs`: whether a job still holds its procs.
    #[inline(always)]
    pub(crate) fn add(&mut self, release: Release<A>, runs: impl Fn(JobId) -> bool) {
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

    fn add_to_many(&mut self, release: Release<A>, runs: impl Fn(JobId) -> bool) {
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

    /// The estimated end of a running job has moved to a later instant (s).
    pub(crate) fn move_later(&mut self, job: JobId, from_s: f64, to_s: f64) {
        let all = &mut self.all[self.front..];
        // A job whose prediction passes is among the first.
        let is_job = |release: &Release<A>| release.job == job;
        let near = all.len().min(8);
        let at = all[..near].iter().position(is_job).or_else(|| {
            let first = all.partition_point(|release| release.end_s < from_s);
            Some(first + all[first..].iter().position(is_job)?)
        });
        let Some(at) = at else { return };
        let behind = at + all[at..].partition_point(|release| release.end_s <= to_s);
        all[at].end_s = to_s;
        all[at..behind].rotate_left(1);
    }

    /// A running job has been resumed, or suspended: then `release` has what is left of its estimate. `runs`: whether a job
    /// still holds its procs.
    pub(crate) fn reschedule(&mut self, release: Release<A>, executes: bool, runs: impl Fn(JobId) -> bool) {
        let is_job = |other: &Release<A>| other.job == release.job;
        if let Some(at) = self.suspended.iter().position(is_job) {
            self.suspended.remove(at);
        } else if let Some(at) = self.all[self.front..].iter().position(is_job) {
            self.all.remove(self.front + at);
        }
        if executes {
            self.add(release, runs);
        } else {
            let at = self.suspended.partition_point(|other| other.end_s <= release.end_s);
            self.suspended.insert(at, release);
        }
    }

    /// The releases of a sorted list, and of ended jobs that have not been removed.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Release<A>> {
        self.all[self.front..].iter()
    }

    /// The releases of suspended jobs that resume now, in the order of their ends.
    pub(crate) fn suspended(&self, now_s: f64) -> impl Iterator<Item = Release<A>> {
        self.suspended.iter().map(move |release| Release { end_s: now_s + release.end_s, ..*release })
    }

    #[inline]
    fn len(&self) -> usize {
        self.all.len() - self.front
    }
}

impl<A: Resources> Release<A> {
    /// The procs that wake.
    pub(crate) fn coming<R: Recorder>(cluster: &Cluster<'_, R>) -> impl Iterator<Item = Release<A>> {
        cluster.coming().map(|(end_s, procs)| Release { end_s, job: NO_JOB, taken: A::procs(procs) })
    }
}

impl<A: Resources> Releases<A> {
    /// Adds the procs that wake to a collected list.
    pub(crate) fn add_waking<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) {
        self.all.extend(Release::coming(cluster));
        self.unsorted = self.all.len();
    }

    /// The first estimated end at which `need` is free, and the extra resources after all releases up to that
    /// instant. A job whose estimate has passed is expected to end now. `None` if all releases are too few. `runs`:
    /// whether a job still holds its procs.
    #[inline]
    pub(crate) fn shadow(&self, now_s: f64, free: A, need: A, runs: impl Fn(JobId) -> bool) -> Option<Shadow<A>> {
        let mut releases = self.all[self.front..].iter();
        if !self.suspended.is_empty() {
            return self.shadow_with(self.suspended(now_s), now_s, free, need, runs);
        }
        if self.ended == 0 {
            return walk(now_s, free, need, || releases.next().copied(), |_| true);
        }
        walk(now_s, free, need, || releases.next().copied(), runs)
    }

    /// [`Releases::shadow`] of the executing jobs and other releases, in the order of time.
    pub(crate) fn shadow_with(
        &self,
        mut others: impl Iterator<Item = Release<A>>,
        now_s: f64,
        free: A,
        need: A,
        runs: impl Fn(JobId) -> bool,
    ) -> Option<Shadow<A>> {
        let (mut executing, mut other) = (&self.all[self.front..], others.next());
        let next = || match executing {
            [release, later @ ..] if other.is_none_or(|other| release.end_s <= other.end_s) => {
                executing = later;
                Some(*release)
            }
            _ => std::mem::replace(&mut other, others.next()),
        };
        walk(now_s, free, need, next, |job| self.ended == 0 || job == NO_JOB || runs(job))
    }

    /// [`Releases::shadow`] of a collected list. `all_give`: no release takes anything.
    pub(crate) fn shadow_of_collected(&mut self, now_s: f64, free: A, need: A, all_give: bool) -> Option<Shadow<A>> {
        let by_end = |a: &Release<A>, b: &Release<A>| a.end_s.total_cmp(&b.end_s);
        let (mut rest, mut available) = (&mut self.all[..], free);
        // Halves the releases of which one gives what is needed.
        while all_give && rest.len() > 32 {
            let half = rest.len() / 2;
            rest.select_nth_unstable_by(half, by_end);
            let (earlier, later) = rest.split_at_mut(half);
            let mut with_earlier = available;
            earlier.iter().for_each(|release| with_earlier += release.taken);
            (rest, available) = if with_earlier.covers(need) { (earlier, available) } else { (later, with_earlier) };
        }
        rest.sort_unstable_by(by_end);
        let mut releases = rest.iter();
        let Shadow { at_s, .. } = walk(now_s, available, need, || releases.next().copied(), |_| true)?;
        let mut extra = free;
        let given = self.all.iter().filter(|release| release.end_s <= at_s);
        given.for_each(|release| extra += release.taken);
        extra += -need;
        Some(Shadow { at_s, extra })
    }
}

#[inline(always)]
fn walk<A: Resources>(
    now_s: f64,
    free: A,
    need: A,
    mut next: impl FnMut() -> Option<Release<A>>,
    runs: impl Fn(JobId) -> bool,
) -> Option<Shadow<A>> {
    let (mut at_s, mut available) = (now_s, free);
    let given = |release: &Release<A>| if runs(release.job) { release.taken } else { A::default() };
    // Under a cap, a job may fit by its watts at the lowest gear, in whole parts of the cap, and not start.
    let mut fits = A::CAPPED && free.covers(need);
    while !fits {
        let release = next()?;
        available += given(&release);
        (at_s, fits) = (release.end_s.max(now_s), available.covers(need));
    }
    while let Some(release) = next().filter(|release| release.end_s <= at_s) {
        available += given(&release);
    }
    available += -need;
    Some(Shadow { at_s, extra: available })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Releases of these jobs: job, procs, estimated end (s).
    fn releases(jobs: &[(JobId, i32, f64)]) -> Releases<i32> {
        let mut releases = Releases::default();
        for &(job, taken, end_s) in jobs {
            releases.add(Release { end_s, job, taken }, |_| true);
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
        let jobs: Vec<(JobId, i32, f64)> = (0..100).map(|job| (job, 1, f64::from(job))).collect();
        let mut releases = releases(&jobs);
        (0..34).for_each(|job| releases.remove(job));
        let runs = |job| job >= 34;
        assert_eq!(releases.shadow(0.0, 0, 2, runs), Some(Shadow { at_s: 35.0, extra: 0 }));
        releases.add(Release { end_s: 34.5, job: 100, taken: 5 }, runs);
        assert_eq!(releases.all.len(), 67);
        assert_eq!(releases.shadow(0.0, 0, 2, runs), Some(Shadow { at_s: 34.5, extra: 4 }));
    }

    #[test]
    fn a_release_moves_behind_those_that_end_by_its_new_instant() {
        let mut releases = releases(&[(0, 1, 10.0), (1, 2, 10.0), (2, 3, 20.0), (3, 4, 30.0)]);
        releases.move_later(1, 10.0, 20.0);
        releases.move_later(0, 10.0, 40.0);
        let order: Vec<(JobId, f64)> = releases.all.iter().map(|release| (release.job, release.end_s)).collect();
        assert_eq!(order, [(2, 20.0), (1, 20.0), (3, 30.0), (0, 40.0)]);
    }

    #[test]
    fn suspended_jobs_give_their_procs_as_if_they_resumed_now() {
        let mut releases = releases(&[(0, 4, 30.0), (1, 2, 10.0), (2, 3, 8.0)]);
        let all = |_| true;
        // Job 2 is suspended with 6 s left: at 2 s it would end at 8 s, at 7 s at 13 s.
        releases.reschedule(Release { end_s: 6.0, job: 2, taken: 3 }, false, all);
        assert_eq!(releases.shadow(2.0, 1, 3, all), Some(Shadow { at_s: 8.0, extra: 1 }));
        assert_eq!(releases.shadow(7.0, 1, 3, all), Some(Shadow { at_s: 10.0, extra: 0 }));
        assert_eq!(releases.shadow(4.0, 1, 3, all), Some(Shadow { at_s: 10.0, extra: 3 }));
        assert_eq!(releases.shadow(7.0, 1, 11, all), None);
        releases.reschedule(Release { end_s: 13.0, job: 2, taken: 3 }, true, all);
        assert_eq!(releases.shadow(9.0, 1, 6, all), Some(Shadow { at_s: 13.0, extra: 0 }));
    }

    #[test]
    fn procs_that_wake_count_as_releases() {
        // 3 procs wake at 5: 4 are free then. At 10 there are 6.
        let collected = releases(&[(0, 4, 30.0), (1, 2, 10.0), (NO_JOB, 3, 5.0)]).all;
        let mut releases = Releases { unsorted: collected.len(), all: collected, ..Releases::default() };
        releases.sort();
        let all = |_| true;
        assert_eq!(releases.shadow(0.0, 1, 3, all), Some(Shadow { at_s: 5.0, extra: 1 }));
        assert_eq!(releases.shadow(0.0, 1, 5, all), Some(Shadow { at_s: 10.0, extra: 1 }));
        assert_eq!(releases.shadow(0.0, 1, 11, all), None);
    }

    #[test]
    fn halving_a_collected_list_finds_the_reservation_of_the_sorted_one() {
        let release = |at: u32| Release { end_s: f64::from(at * 37 % 50), job: at, taken: 1 + at as i32 % 3 };
        let collected = Releases { all: (0..200).map(release).collect(), ..Releases::default() };
        let mut sorted = collected.clone();
        sorted.all.sort_by(|a, b| a.end_s.total_cmp(&b.end_s));
        for (now_s, need) in (0..410).map(|need| (f64::from(need % 60), need)) {
            let expected = sorted.shadow(now_s, 0, need, |_| true);
            for all_give in [true, false] {
                assert_eq!(collected.clone().shadow_of_collected(now_s, 0, need, all_give), expected, "{need}");
            }
        }
        assert_eq!(sorted.shadow(0.0, 0, 400, |_| true), None);
    }

    #[test]
    fn a_collected_list_is_sorted_as_far_as_it_is_read() {
        let all: Vec<Release<i32>> =
            (0..200).map(|at| Release { end_s: f64::from(at * 37 % 100), job: at, taken: 1 }).collect();
        let mut releases = Releases { unsorted: all.len(), all, ..Releases::default() };
        let read: Vec<(f64, JobId)> = (0..70).filter_map(|at| releases.get(at)).map(|r| (r.end_s, r.job)).collect();
        assert!(read.is_sorted() && read.len() == 70 && read[69].0 == 34.0);
        assert_eq!(releases.unsorted, 72);
        assert_eq!((releases.get(199).map(|release| release.end_s), releases.get(200)), (Some(99.0), None));
    }
}
