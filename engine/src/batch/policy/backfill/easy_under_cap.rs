//! EASY under a power cap.
//!
//! Watts are a second counted resource. The reservation of the head is the first estimated end at which both procs and
//! the watts of its lowest gear suffice under the present cap. Another job may overtake if it ends by then, or if it
//! fits within both the procs and the watts that the head leaves. The gear rule chooses a gear at which this holds, if
//! there is one; the job starts at the highest gear up to it at which this holds and the power now fits. If the present
//! cap never admits the head, not even on an empty machine, nothing is reserved: the shadow time is infinite, and all
//! jobs that fit overtake until the cap changes.
//!
//! **Long queues.** No job can start that is wider than the free procs, or than the power allows at the lowest gear. A
//! narrow loop over procs skips these jobs, and the reservation is computed only when a narrower job is found.
use super::list::{Headroom, List, ListRule, Listed, Start, Waiting};
use super::rule::changes_running_jobs;
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::policy::cap::allowance::{Allowance, above_idle_w};
use crate::batch::policy::gear::{Candidate, Gears};
use crate::error::Result;
use crate::spec::{Role, SimSpec};

/// A list under EASY.
pub(in crate::batch::policy) type EasyUnderCap = Listed<UnderCap>;

/// The rule.
#[derive(Debug, Clone, Default)]
pub(in crate::batch::policy) struct UnderCap {
    /// Whether jobs may overtake on the procs that the head leaves free.
    extra_procs: bool,
    releases: Releases,
}

/// The reservation of the head, and the procs and watts that it leaves. [`Shadow`](super::releases::Shadow) of the fast
/// code has no watts.
#[derive(Debug, Clone, Copy)]
struct Reservation {
    at_s: f64,
    extra_procs: u32,
    extra_w: f64,
}

impl ListRule for UnderCap {
    fn of(spec: &SimSpec) -> Option<UnderCap> {
        let extra_procs = spec.choice(Role::Backfill).bool("extra_procs");
        changes_running_jobs(spec).then(|| UnderCap { extra_procs, releases: Releases::default() })
    }

    fn pass<G: Gears, R: Recorder>(&mut self, list: &mut List, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        list.start_in_order(gears, cluster)?;
        if list.waiting().len() < 2 || cluster.free(0) == 0 {
            return Ok(());
        }
        let mut headroom = list.headroom(cluster);
        let mut shadow = None;
        let mut at = 1;
        // The narrow loop: most jobs of a long queue are wider than the headroom.
        while let Some(next) = list.waiting()[at..].iter().position(|waiting| waiting.procs <= headroom.widest) {
            at += next;
            cluster.step()?;
            // The walk through the running jobs is worth its time only if a job might overtake.
            let shadow = match &mut shadow {
                Some(shadow) => shadow,
                None => shadow.insert(self.shadow(list, cluster)?),
            };
            let Waiting { job, procs, .. } = list.waiting()[at];
            if let Some((start, late)) = overtaking(list, job, procs, shadow, &headroom, gears, cluster) {
                if late {
                    shadow.extra_procs -= procs;
                    shadow.extra_w -= list.allowance().counted_w(cluster, job, start.gear);
                }
                list.start(at, start, true, cluster)?;
                headroom = list.headroom(cluster);
            }
            at += 1;
        }
        list.remove_started();
        Ok(())
    }
}

impl UnderCap {
    /// The reservation of the head.
    fn shadow<R: Recorder>(&mut self, list: &List, cluster: &mut Cluster<'_, R>) -> Result<Reservation> {
        let head = list.waiting()[0].job;
        let (need, need_w) = (cluster.procs(head), list.allowance().counted_w(cluster, head, 0));
        let (mut free, mut left_w) = (cluster.free(0), list.allowance().left_w(cluster));
        let mut at_s = cluster.now_s();
        self.releases.begin(cluster);
        let mut next = 0;
        while !(need <= free && need_w <= left_w) {
            cluster.step()?;
            let Some(release) = self.releases.get(next) else {
                return Ok(Reservation { at_s: f64::INFINITY, extra_procs: 0, extra_w: 0.0 });
            };
            at_s = release.end_s;
            free += release.procs;
            left_w += release.watts(list.allowance(), cluster);
            next += 1;
        }
        // Releases at the same instant count, too.
        while let Some(release) = self.releases.get(next).filter(|release| release.end_s == at_s) {
            free += release.procs;
            left_w += release.watts(list.allowance(), cluster);
            next += 1;
        }
        Ok(Reservation { at_s, extra_procs: if self.extra_procs { free - need } else { 0 }, extra_w: left_w - need_w })
    }
}

/// How a job may overtake now, if it may, and whether it ends after the head's reservation.
fn overtaking<G: Gears, R: Recorder>(
    list: &List,
    job: JobId,
    procs: u32,
    shadow: &Reservation,
    headroom: &Headroom,
    gears: &G,
    cluster: &Cluster<'_, R>,
) -> Option<(Start, bool)> {
    let candidate = Candidate::new(cluster, job);
    let now_s = cluster.now_s();
    let ask = |on_extra| gears.overtaking(candidate, now_s, list.others(), shadow.at_s, on_extra);
    let on_extra = procs <= shadow.extra_procs;
    let on_extra_at = |gear| on_extra && list.allowance().counted_w(cluster, job, gear) <= shadow.extra_w;
    let mut choice = ask(on_extra)?;
    if choice.1 && !on_extra_at(choice.0) {
        // At the chosen gear, the procs fit beside the head, but not the watts. A higher gear that ends in time is
        // chosen instead; without one, the cap may lower the job to a gear whose watts fit.
        choice = ask(false).unwrap_or(choice);
    }
    let ceiling = choice.0;
    let factors = cluster.gears_for(0, job);
    list.allowance().gears(ceiling).find_map(|gear| {
        if above_idle_w(cluster, job, gear) > headroom.left_w {
            return None;
        }
        let end_s = now_s + candidate.estimate_s * factors[usize::from(gear)].time_factor;
        let late = !gears.in_time(end_s, shadow.at_s);
        (!late || on_extra_at(gear)).then_some((Start { gear, ceiling }, late))
    })
}

/// Procs and watts that become free at an estimated end.
#[derive(Debug, Clone, Copy)]
struct Release {
    end_s: f64,
    job: JobId,
    procs: u32,
    /// Gear of the job; `None` for waking procs.
    gear: Option<u8>,
}

impl Release {
    /// The released watts, as the allowance counts them; none for waking procs.
    fn watts<R: Recorder>(&self, allowance: &Allowance, cluster: &Cluster<'_, R>) -> f64 {
        self.gear.map_or(0.0, |gear| allowance.counted_w(cluster, self.job, gear))
    }
}

/// Releases of a pass, sorted by time only as far as they are read. The [`Releases`](super::releases::Releases) of the
/// fast code stay sorted from pass to pass and have no watts; changes of gears and suspensions under a cap would break
/// that order.
#[derive(Debug, Clone, Default)]
struct Releases {
    all: Vec<Release>,
    sorted: usize,
}

impl Releases {
    /// Collects the releases of the present running jobs and waking procs.
    fn begin<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) {
        let now_s = cluster.now_s();
        self.sorted = 0;
        self.all.clear();
        // A job that has outlived its estimate ends now.
        let release = |(job, procs, gear, end_s): (JobId, u32, u8, f64)| {
            let end_s = end_s.max(now_s);
            Release { end_s, job, procs, gear: Some(gear) }
        };
        self.all.extend(cluster.each_running().map(release));
        let waking = |(end_s, procs)| Release { end_s, job: JobId::MAX, procs, gear: None };
        self.all.extend(cluster.coming(0).map(waking));
    }

    /// The release at a position in the order of time; those of one instant are in the order of jobs.
    fn get(&mut self, at: usize) -> Option<Release> {
        while at >= self.sorted && self.sorted < self.all.len() {
            let unsorted = &mut self.all[self.sorted..];
            // Most reservations need few releases: doubling keeps the work proportional to the number read.
            let count = self.sorted.max(32).min(unsorted.len());
            let earlier = |a: &Release, b: &Release| a.end_s.total_cmp(&b.end_s).then(a.job.cmp(&b.job));
            if count < unsorted.len() {
                unsorted.select_nth_unstable_by(count, earlier);
            }
            unsorted[..count].sort_unstable_by(earlier);
            self.sorted += count;
        }
        self.all.get(at).copied()
    }
}
