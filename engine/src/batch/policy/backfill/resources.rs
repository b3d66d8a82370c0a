//! Resources that reservations count: procs, under a power cap procs and watts, on a machine with pools the amounts of the
//! pools.
//!
//! Watts are those of [`Allowance`]: the power of a job's procs above their idle power, at the gear with which the job
//! counts for other jobs. They are counted in whole parts of the cap, so that what a job takes and gives back leaves no rest.
//! If starts ignore the cap, unlimited watts are free.
use std::ops::{AddAssign, Neg};

use super::list;
use super::profile::{Amount, Held, Profile, Size};
use super::rule::changes_running_jobs;
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::platform::pools::Amounts;
use crate::batch::policy::cap::allowance::Allowance;
use crate::batch::policy::gear::{Candidate, Gears};
use crate::spec::SimSpec;

/// A reserved place of a job in a profile.
#[derive(Debug, Clone, Copy, PartialEq)]
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

impl<A: Resources> Place<A> {
    /// No place: the job waits for another pass.
    pub(crate) fn none() -> Place<A> {
        Place { start_s: f64::INFINITY, duration_s: 0.0, taken: A::procs(0), gear: 0, ceiling: 0 }
    }

    /// Whether it begins after now.
    pub(crate) fn is_after(&self, now_s: f64) -> bool {
        self.start_s > now_s && self.start_s < f64::INFINITY
    }

    /// The resources that the job holds.
    pub(crate) fn held(&self) -> Held<A> {
        Held { from_s: self.start_s, until_s: self.start_s + self.duration_s, amount: self.taken }
    }
}

/// A search for a place that begins in `[from_s, latest_s]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) job: JobId,
    pub(crate) from_s: f64,
    pub(crate) latest_s: f64,
}

/// The counted resources.
pub(crate) trait Resources: Amount + Default {
    /// Whether the spec has a power cap.
    const CAPPED: bool;

    /// Whether these are the resources of a spec's machine.
    fn are_of(spec: &SimSpec, machine: &Machine) -> bool;

    /// An amount of procs without watts, of the first pool.
    fn procs(procs: u32) -> Self;

    /// Procs of the widest job that the amount covers, if each proc takes at least these watts; of the first pool.
    fn widest(self, allowance: &Allowance, least_w: f64) -> u32;

    /// The free resources now.
    fn free<R: Recorder>(cluster: &Cluster<'_, R>, allowance: &Allowance) -> Self;

    /// The resources that a job takes at a gear; `None`: without its watts.
    fn taken<R: Recorder>(cluster: &Cluster<'_, R>, allowance: &Allowance, job: JobId, gear: Option<u8>) -> Self;

    /// The earliest place for a job, if there is one.
    fn place<G: Gears, R: Recorder>(
        profile: &Profile<Self>,
        wanted: Wanted,
        gears: &G,
        allowance: &Allowance,
        cluster: &Cluster<'_, R>,
    ) -> Option<Place<Self>> {
        let Wanted { job, from_s, latest_s } = wanted;
        let (now_s, others) = (cluster.now_s(), cluster.waiting_count() as usize - 1);
        let taken = Self::taken(cluster, allowance, job, None);
        let earliest = |_, duration_s, accepted_s: f64| {
            profile.earliest(from_s, latest_s.min(accepted_s), taken, duration_s, f64::INFINITY)
        };
        let (gear, start_s, duration_s) = gears.reserve(Candidate::new(cluster, job), now_s, others, earliest)?;
        Some(Place { start_s, duration_s, taken, gear, ceiling: gear })
    }

    /// The gear at which a job with a place at `gear` starts now, if it may.
    #[inline]
    fn start_gear<R: Recorder>(_: &Cluster<'_, R>, _: &Allowance, _: JobId, gear: u8) -> Option<u8> {
        Some(gear)
    }
}

/// Resources without a cap: procs.
impl Resources for i32 {
    const CAPPED: bool = false;

    fn are_of(spec: &SimSpec, machine: &Machine) -> bool {
        !changes_running_jobs(spec) && machine.pools.is_empty()
    }

    fn procs(procs: u32) -> i32 {
        procs as i32
    }

    fn widest(self, _: &Allowance, _: f64) -> u32 {
        self.max(0) as u32
    }

    fn free<R: Recorder>(cluster: &Cluster<'_, R>, _: &Allowance) -> i32 {
        cluster.free() as i32
    }

    fn taken<R: Recorder>(cluster: &Cluster<'_, R>, _: &Allowance, job: JobId, _: Option<u8>) -> i32 {
        cluster.procs(job) as i32
    }
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

    fn widest(self, _: &Allowance, _: f64) -> u32 {
        self.0[0].clamp(0, u32::MAX.into()) as u32
    }

    fn free<R: Recorder>(cluster: &Cluster<'_, R>, _: &Allowance) -> Amounts {
        *cluster.free_amounts()
    }

    #[inline]
    fn taken<R: Recorder>(cluster: &Cluster<'_, R>, _: &Allowance, job: JobId, _: Option<u8>) -> Amounts {
        Amounts::taken(cluster.needs(job))
    }
}

/// Resources under a cap.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ProcsAndWatts {
    procs: i32,
    /// In parts of the cap: see [`Allowance::parts`].
    parts: i64,
}

/// More parts than all jobs of a machine take, by which no sum overflows.
const UNLIMITED: i64 = i64::MAX / 4;

impl AddAssign for ProcsAndWatts {
    fn add_assign(&mut self, other: ProcsAndWatts) {
        self.procs += other.procs;
        self.parts += other.parts;
    }
}

impl Neg for ProcsAndWatts {
    type Output = ProcsAndWatts;

    fn neg(self) -> ProcsAndWatts {
        ProcsAndWatts { procs: -self.procs, parts: -self.parts }
    }
}

impl Amount for ProcsAndWatts {
    type Need = ProcsAndWatts;

    const LEAST: ProcsAndWatts = ProcsAndWatts { procs: i32::MIN, parts: i64::MIN };

    fn covers(self, need: ProcsAndWatts) -> bool {
        (self.procs >= need.procs) & (self.parts >= need.parts)
    }

    #[inline]
    fn need(self) -> ProcsAndWatts {
        self
    }

    #[inline]
    fn is_enough(&self, need: &ProcsAndWatts) -> bool {
        self.covers(*need)
    }
}

impl ProcsAndWatts {
    /// The earliest place for a job with a ceiling; of several gears that give the same start, the highest.
    fn below<R: Recorder>(
        ceiling: u8,
        profile: &Profile<ProcsAndWatts>,
        wanted: Wanted,
        allowance: &Allowance,
        cluster: &Cluster<'_, R>,
    ) -> Option<Place<ProcsAndWatts>> {
        let Wanted { job, from_s, latest_s } = wanted;
        let (estimate_s, gears) = (cluster.estimate_s(job), cluster.gears_for(job));
        let (lowest, highest) = allowance.gears(ceiling).into_inner();
        let size = |gear: u8| Size {
            need: ProcsAndWatts::taken(cluster, allowance, job, Some(gear)),
            duration_s: estimate_s * gears[usize::from(gear)].time_factor,
            hole_s: f64::INFINITY,
        };
        let mut sizes: Vec<Size<ProcsAndWatts>> = (lowest..=highest).map(size).collect();
        let (at, start_s) = profile.earliest_of(from_s, latest_s, &mut sizes)?;
        let Size { need: taken, duration_s, .. } = sizes[at];
        Some(Place { start_s, duration_s, taken, gear: lowest + at as u8, ceiling })
    }
}

impl Resources for ProcsAndWatts {
    const CAPPED: bool = true;

    fn are_of(spec: &SimSpec, _: &Machine) -> bool {
        changes_running_jobs(spec)
    }

    fn procs(procs: u32) -> ProcsAndWatts {
        ProcsAndWatts { procs: procs as i32, parts: 0 }
    }

    fn widest(self, allowance: &Allowance, least_w: f64) -> u32 {
        (self.procs.max(0) as u32).min(list::widest(allowance.watts(self.parts), least_w))
    }

    fn free<R: Recorder>(cluster: &Cluster<'_, R>, allowance: &Allowance) -> ProcsAndWatts {
        let left_w = allowance.left_w(cluster);
        let parts = if left_w == f64::INFINITY { UNLIMITED } else { allowance.parts(left_w) };
        ProcsAndWatts { procs: cluster.free() as i32, parts }
    }

    fn taken<R: Recorder>(
        cluster: &Cluster<'_, R>,
        allowance: &Allowance,
        job: JobId,
        gear: Option<u8>,
    ) -> ProcsAndWatts {
        let parts = match gear {
            None => -UNLIMITED,
            Some(_) if allowance.limit_w == f64::INFINITY => 0,
            Some(gear) => allowance.parts(allowance.counted_w(cluster, job, gear)),
        };
        ProcsAndWatts { procs: cluster.procs(job) as i32, parts }
    }

    fn place<G: Gears, R: Recorder>(
        profile: &Profile<ProcsAndWatts>,
        wanted: Wanted,
        gears: &G,
        allowance: &Allowance,
        cluster: &Cluster<'_, R>,
    ) -> Option<Place<ProcsAndWatts>> {
        let (mut place, others) = (None, cluster.waiting_count() as usize - 1);
        gears.reserve(Candidate::new(cluster, wanted.job), cluster.now_s(), others, |ceiling, _, accepted_s| {
            let wanted = Wanted { latest_s: wanted.latest_s.min(accepted_s), ..wanted };
            place = ProcsAndWatts::below(ceiling, profile, wanted, allowance, cluster);
            place.map(|place| place.start_s)
        })?;
        place
    }

    fn start_gear<R: Recorder>(cluster: &Cluster<'_, R>, allowance: &Allowance, job: JobId, gear: u8) -> Option<u8> {
        allowance.fitting(cluster, job, gear, allowance.left_w(cluster)).next()
    }
}
