//! EASY under a power cap.
//!
//! Watts are a second counted resource. The reservation of the head is the first estimated end at
//! which both procs and the watts of its lowest gear suffice under the present cap. Another job may overtake if it ends
//! by then, or fits both what the head leaves of the procs and of the watts. The gear rule's choice is a gear at which
//! this holds, if there is one; the job starts at the highest gear up to it at which this holds and the power now fits.
//! If the present cap never admits the head, not even at an empty machine, there is nothing to reserve: its shadow time
//! is infinite, and whoever fits overtakes, without limit, until the cap changes.
//!
//!
//! **Long queues.** No job can start that is wider than the free procs, or than the power carries at the lowest gear:
//! these are passed over in one narrow loop over procs, and the reservation is worked out only once another job is met.
use super::list::{List, ListRule, Listed, Room, Start, Waiting};
use super::rule::is_capped;
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::cap::allowance::{Allowance, above_idle_w};
use crate::batch::policy::gear::{Candidate, Gears};
use crate::error::Stop;
use crate::spec::{Role, SimSpec};

/// A list under EASY.
pub(in crate::batch::policy) type EasyUnderCap = Listed<UnderCap>;

/// The rule.
#[derive(Debug, Clone)]
pub(in crate::batch::policy) struct UnderCap {
    /// Whether others may run on what the head leaves.
    extra_procs: bool,
    releases: AllGivenBack,
}

/// The reservation of the head, and what it leaves. Not the [`Shadow`](super::releases::Shadow) of the fast code, which
/// counts procs alone.
#[derive(Debug, Clone, Copy)]
struct Reservation {
    at_s: f64,
    extra_procs: u32,
    extra_w: f64,
}

impl ListRule for UnderCap {
    fn of(spec: &SimSpec, _: &Machine) -> Option<UnderCap> {
        let extra_procs = spec.choice(Role::Backfill).bool("extra_procs");
        is_capped(spec).then(|| UnderCap { extra_procs, releases: AllGivenBack::default() })
    }

    fn pass<G: Gears, R: Recorder>(
        &mut self,
        list: &mut List,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        list.start_in_order(gears, cluster)?;
        self.overtake(list, gears, cluster)
    }
}

impl UnderCap {
    fn overtake<G: Gears, R: Recorder>(
        &mut self,
        list: &mut List,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        if list.waiting().len() < 2 || cluster.free(0) == 0 {
            return Ok(());
        }
        let mut room = list.room(cluster);
        let mut shadow = None;
        let mut at = 1;
        // The narrow loop: most jobs of a long queue are wider than what is free.
        while let Some(next) = list.waiting()[at..].iter().position(|waiting| waiting.procs <= room.widest) {
            at += next;
            cluster.step()?;
            // A reservation is worth its walk through the running jobs only if somebody might overtake.
            let shadow = match &mut shadow {
                Some(shadow) => shadow,
                None => shadow.insert(self.shadow(list, cluster)?),
            };
            let Waiting { job, procs, .. } = list.waiting()[at];
            if let Some((start, late)) = overtaking(list, job, procs, shadow, &room, gears, cluster) {
                if late {
                    shadow.extra_procs -= procs;
                    shadow.extra_w -= list.allowance().counted_w(cluster, job, start.gear);
                }
                list.start(at, start, true, cluster)?;
                room = list.room(cluster);
            }
            at += 1;
        }
        list.leave();
        Ok(())
    }

    /// The reservation of the head.
    fn shadow<R: Recorder>(&mut self, list: &List, cluster: &mut Cluster<'_, R>) -> Result<Reservation, Stop> {
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
        // What ends at the same instant is there as well.
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
    room: &Room,
    gears: &G,
    cluster: &Cluster<'_, R>,
) -> Option<(Start, bool)> {
    let candidate = Candidate::new(cluster, job);
    let now_s = cluster.now_s();
    let ask = |on_extra| gears.overtaking(candidate, now_s, list.others(), shadow.at_s, on_extra);
    let beside = procs <= shadow.extra_procs;
    let spared = |gear| beside && list.allowance().counted_w(cluster, job, gear) <= shadow.extra_w;
    let mut choice = ask(beside)?;
    if choice.1 && !spared(choice.0) {
        // At the gear of its choice the job fits beside the head by its procs alone. If a higher gear ends in time,
        // that is the choice; else the cap may lower it to a gear whose watts fit, too.
        choice = ask(false).unwrap_or(choice);
    }
    let ceiling = choice.0;
    let factors = cluster.gears_for(0, job);
    list.allowance().gears(ceiling).find_map(|gear| {
        if above_idle_w(cluster, job, gear) > room.left_w {
            return None;
        }
        let end_s = now_s + candidate.estimate_s * factors[usize::from(gear)].time_factor;
        let late = !gears.in_time(end_s, shadow.at_s);
        (!late || spared(gear)).then_some((Start { gear, ceiling }, late))
    })
}

/// What the end of a running job gives back.
#[derive(Debug, Clone, Copy)]
struct GivenBack {
    end_s: f64,
    job: JobId,
    procs: u32,
    /// Of the job; `None` for procs that wake.
    gear: Option<u8>,
}

impl GivenBack {
    /// The watts that come with the procs, as the allowance counts them. Procs that wake come without.
    fn watts<R: Recorder>(&self, allowance: &Allowance, cluster: &Cluster<'_, R>) -> f64 {
        self.gear.map_or(0.0, |gear| allowance.counted_w(cluster, self.job, gear))
    }
}

/// What running jobs will give back, sorted by time as far as it is looked at. Not the
/// [`Releases`](super::releases::Releases) of the fast code: those are kept sorted from pass to pass, which gears and
/// suspensions that a cap changes would undo, and have no watts.
#[derive(Debug, Clone, Default)]
struct AllGivenBack {
    all: Vec<GivenBack>,
    sorted: usize,
}

impl AllGivenBack {
    /// Those of a machine as it is now.
    fn begin<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) {
        let now_s = cluster.now_s();
        self.sorted = 0;
        self.all.clear();
        // A job that has outlived its estimate ends now.
        let release = |(job, procs, gear, end_s): (JobId, u32, u8, f64)| {
            let end_s = end_s.max(now_s);
            GivenBack { end_s, job, procs, gear: Some(gear) }
        };
        self.all.extend(cluster.each_running().map(release));
        // Procs that wake come as if a job gave them back.
        self.all.extend(cluster.coming(0).map(|(end_s, procs)| GivenBack {
            end_s,
            job: JobId::MAX,
            procs,
            gear: None,
        }));
    }

    /// The release at a place in the order of time, those of one instant by job.
    fn get(&mut self, at: usize) -> Option<GivenBack> {
        while at >= self.sorted && self.sorted < self.all.len() {
            let rest = &mut self.all[self.sorted..];
            // Most reservations are met early: twice as many each time keeps the work in proportion.
            let count = self.sorted.max(32).min(rest.len());
            let earlier = |a: &GivenBack, b: &GivenBack| a.end_s.total_cmp(&b.end_s).then(a.job.cmp(&b.job));
            if count < rest.len() {
                rest.select_nth_unstable_by(count, earlier);
            }
            rest[..count].sort_unstable_by(earlier);
            self.sorted += count;
        }
        self.all.get(at).copied()
    }
}
