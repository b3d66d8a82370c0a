//! Resources that reservations count: procs, under a power cap procs and watts, on a machine with pools the amounts of the
//! pools.
//!
//! Watts are those of [`Allowance`]: the power of a job's procs above their idle power, at the gear with which the job
//! counts for other jobs. If starts ignore the cap, infinitely many watts are free.
use std::ops::{AddAssign, Neg};

use super::profile::{Amount, Profile};
use super::rule::changes_running_jobs;
use crate::batch::kernel::{Cluster, Ended, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::platform::pools::Amounts;
use crate::batch::policy::cap::allowance::Allowance;
use crate::batch::policy::gear::{Candidate, Gears};
use crate::spec::SimSpec;

/// A reserved place of a job in a profile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<A> {
    /// Infinite if there is no place.
    pub(crate) start_s: f64,
    pub(crate) duration_s: f64,
    /// Resources that the job takes for this duration.
    pub(crate) taken: A,
    pub(crate) gear: u8,
    /// The gear rule's choice; under a cap the job may start at a lower gear.
    pub(crate) ceiling: u8,
}

impl<A: Amount> Profile<A> {
    /// Subtracts the resources of a place.
    pub(crate) fn take(&mut self, place: &Place<A>) {
        self.add(place.start_s, place.start_s + place.duration_s, -place.taken);
    }

    /// Adds the resources of a place.
    pub(crate) fn give_back(&mut self, place: &Place<A>) {
        self.add(place.start_s, place.start_s + place.duration_s, place.taken);
    }
}

/// A search for a place.
#[derive(Debug)]
pub(crate) struct Wanted<'a, G> {
    pub(crate) job: JobId,
    /// Latest start (s).
    pub(crate) latest_s: f64,
    pub(crate) gears: &'a G,
    pub(crate) allowance: &'a Allowance,
}

/// The counted resources.
pub(crate) trait Resources: Amount {
    /// Whether the spec has a power cap.
    const CAPPED: bool;

    /// Whether these are the resources of a spec's machine.
    fn are_of(spec: &SimSpec, machine: &Machine) -> bool;

    /// An amount of procs without watts, of the first pool.
    fn procs(procs: u32) -> Self;

    /// The resources that a job has returned.
    fn returned<R: Recorder>(cluster: &Cluster<'_, R>, ended: &Ended) -> Self {
        let _ = cluster;
        Self::procs(ended.procs)
    }

    /// The free resources now.
    fn free<R: Recorder>(cluster: &Cluster<'_, R>, allowance: &Allowance) -> Self;

    /// The resources of a running job.
    fn held<R: Recorder>(cluster: &Cluster<'_, R>, allowance: &Allowance, job: JobId) -> Self;

    /// The earliest place for a job, if there is one.
    fn place<G: Gears, R: Recorder>(
        profile: &Profile<Self>,
        wanted: &Wanted<'_, G>,
        cluster: &Cluster<'_, R>,
    ) -> Option<Place<Self>>;

    /// The gear at which a job with a place at `gear` starts now, if it may.
    fn start_gear<R: Recorder>(cluster: &Cluster<'_, R>, allowance: &Allowance, job: JobId, gear: u8) -> Option<u8>;
}

/// Resources without a cap: procs.
impl Resources for i64 {
    const CAPPED: bool = false;

    fn are_of(spec: &SimSpec, machine: &Machine) -> bool {
        !changes_running_jobs(spec) && machine.pools.is_empty()
    }

    fn procs(procs: u32) -> i64 {
        i64::from(procs)
    }

    fn free<R: Recorder>(cluster: &Cluster<'_, R>, _: &Allowance) -> i64 {
        i64::from(cluster.free(0))
    }

    fn held<R: Recorder>(cluster: &Cluster<'_, R>, _: &Allowance, job: JobId) -> i64 {
        i64::from(cluster.procs(job))
    }

    fn place<G: Gears, R: Recorder>(
        profile: &Profile<i64>,
        wanted: &Wanted<'_, G>,
        cluster: &Cluster<'_, R>,
    ) -> Option<Place<i64>> {
        uncapped(i64::from(cluster.procs(wanted.job)), profile, wanted, cluster)
    }

    #[inline]
    fn start_gear<R: Recorder>(_: &Cluster<'_, R>, _: &Allowance, _: JobId, gear: u8) -> Option<u8> {
        Some(gear)
    }
}

/// The earliest place of a job without a cap; `taken`: its resources.
fn uncapped<A: Amount, G: Gears, R: Recorder>(
    taken: A,
    profile: &Profile<A>,
    wanted: &Wanted<'_, G>,
    cluster: &Cluster<'_, R>,
) -> Option<Place<A>> {
    let now_s = cluster.now_s();
    let candidate = Candidate::new(cluster, wanted.job);
    let others = cluster.waiting_count() as usize - 1;
    let (gear, start_s, duration_s) = wanted
        .gears
        .reserve(candidate, others, |_, duration_s| profile.earliest(now_s, wanted.latest_s, taken, duration_s))?;
    Some(Place { start_s, duration_s, taken, gear, ceiling: gear })
}

/// Resources of a machine with pools.
impl Resources for Amounts {
    const CAPPED: bool = false;

    fn are_of(_: &SimSpec, machine: &Machine) -> bool {
        !machine.pools.is_empty()
    }

    /// Only needed for procs that wake, of which a machine with pools has none.
    fn procs(procs: u32) -> Amounts {
        let mut amounts = Amounts::NONE;
        amounts.0[0] = i64::from(procs);
        amounts
    }

    fn returned<R: Recorder>(cluster: &Cluster<'_, R>, ended: &Ended) -> Amounts {
        Amounts::taken(cluster.needs(ended.job))
    }

    fn free<R: Recorder>(cluster: &Cluster<'_, R>, _: &Allowance) -> Amounts {
        *cluster.free_amounts()
    }

    fn held<R: Recorder>(cluster: &Cluster<'_, R>, _: &Allowance, job: JobId) -> Amounts {
        Amounts::taken(cluster.needs(job))
    }

    fn place<G: Gears, R: Recorder>(
        profile: &Profile<Amounts>,
        wanted: &Wanted<'_, G>,
        cluster: &Cluster<'_, R>,
    ) -> Option<Place<Amounts>> {
        uncapped(Amounts::taken(cluster.needs(wanted.job)), profile, wanted, cluster)
    }

    #[inline]
    fn start_gear<R: Recorder>(_: &Cluster<'_, R>, _: &Allowance, _: JobId, gear: u8) -> Option<u8> {
        Some(gear)
    }
}

/// Resources under a cap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ProcsAndWatts {
    procs: i64,
    watts: f64,
}

impl AddAssign for ProcsAndWatts {
    fn add_assign(&mut self, other: ProcsAndWatts) {
        self.procs += other.procs;
        self.watts += other.watts;
    }
}

impl Neg for ProcsAndWatts {
    type Output = ProcsAndWatts;

    fn neg(self) -> ProcsAndWatts {
        ProcsAndWatts { procs: -self.procs, watts: -self.watts }
    }
}

impl Amount for ProcsAndWatts {
    fn covers(self, need: ProcsAndWatts) -> bool {
        self.procs >= need.procs && self.watts >= need.watts
    }
}

impl ProcsAndWatts {
    /// The resources of a job at a gear.
    fn taken<R: Recorder>(cluster: &Cluster<'_, R>, allowance: &Allowance, job: JobId, gear: u8) -> ProcsAndWatts {
        ProcsAndWatts { procs: i64::from(cluster.procs(job)), watts: allowance.counted_w(cluster, job, gear) }
    }

    /// The earliest place for a job with a ceiling; of several gears that give the same start, the highest.
    fn below<G, R: Recorder>(
        ceiling: u8,
        profile: &Profile<ProcsAndWatts>,
        wanted: &Wanted<'_, G>,
        cluster: &Cluster<'_, R>,
    ) -> Option<Place<ProcsAndWatts>> {
        let &Wanted { job, latest_s, allowance, .. } = wanted;
        let (now_s, estimate_s) = (cluster.now_s(), cluster.estimate_s(job));
        let factors = cluster.gears_for(0, job);
        let mut best: Option<Place<ProcsAndWatts>> = None;
        for gear in allowance.gears(ceiling) {
            let until_s = best.map_or(latest_s, |place| place.start_s);
            let duration_s = estimate_s * factors[usize::from(gear)].time_factor;
            let taken = ProcsAndWatts::taken(cluster, allowance, job, gear);
            if let Some(start_s) = profile.earliest(now_s, until_s, taken, duration_s)
                && best.is_none_or(|place| start_s < place.start_s)
            {
                best = Some(Place { start_s, duration_s, taken, gear, ceiling });
            }
        }
        best
    }
}

impl Resources for ProcsAndWatts {
    const CAPPED: bool = true;

    fn are_of(spec: &SimSpec, _: &Machine) -> bool {
        changes_running_jobs(spec)
    }

    fn procs(procs: u32) -> ProcsAndWatts {
        ProcsAndWatts { procs: i64::from(procs), watts: 0.0 }
    }

    fn free<R: Recorder>(cluster: &Cluster<'_, R>, allowance: &Allowance) -> ProcsAndWatts {
        ProcsAndWatts { procs: i64::from(cluster.free(0)), watts: allowance.left_w(cluster) }
    }

    fn held<R: Recorder>(cluster: &Cluster<'_, R>, allowance: &Allowance, job: JobId) -> ProcsAndWatts {
        ProcsAndWatts::taken(cluster, allowance, job, cluster.gear(job).expect("the job runs"))
    }

    fn place<G: Gears, R: Recorder>(
        profile: &Profile<ProcsAndWatts>,
        wanted: &Wanted<'_, G>,
        cluster: &Cluster<'_, R>,
    ) -> Option<Place<ProcsAndWatts>> {
        let (mut place, others) = (None, cluster.waiting_count() as usize - 1);
        wanted.gears.reserve(Candidate::new(cluster, wanted.job), others, |ceiling, _| {
            place = ProcsAndWatts::below(ceiling, profile, wanted, cluster);
            place.map(|place| place.start_s)
        })?;
        place
    }

    fn start_gear<R: Recorder>(cluster: &Cluster<'_, R>, allowance: &Allowance, job: JobId, gear: u8) -> Option<u8> {
        allowance.gear(cluster, job, gear, allowance.left_w(cluster))
    }
}
