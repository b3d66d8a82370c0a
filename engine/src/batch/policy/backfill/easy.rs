//! EASY backfilling, and strict order: the rules, and the pass over a [`List`] on a machine with pools.
//!
//! A machine has one pool of procs, or the pools of its partitions, GPUs and memory. Two jobs compete if they take
//! something of the same pool. A job that competes with no earlier waiting job starts as soon as it fits: a partition
//! does not wait for another one.
//!
//! **EASY.** The first waiting job of each partition has a reservation, in queue order: the earliest time at which all
//! that it takes fits, and goes on to fit beside the earlier reservations. Times are estimated ends of running jobs; a
//! reservation holds its resources from its time on, without end. Any other job, and a first one that competes with an
//! earlier one, may overtake if each reservation that it competes with is kept: it ends by then, or the resources that
//! the reservation leaves free at that time suffice (the extra resources, which later starts reduce). If earlier
//! reservations never leave enough, a first job has no reservation until one of them has started; the first job of the
//! queue always has one.
//!
//! **Strict order.** No reservations: a job waits for all earlier jobs that it competes with.
//!
//! **Under a power cap**, watts are a second counted resource. A reservation counts the watts of the lowest gear under
//! the present cap. The gear rule chooses a gear at which all reservations are kept, if there is one; the job starts at
//! the highest gear up to it at which this holds and the power now fits. If the present cap never admits the head, not
//! even on an empty machine, its reservation has an infinite time, and all jobs that fit overtake until the cap changes.
//!
//! **Long queues.** Reservations are computed when a job fits that might overtake. A pass after arrivals alone considers
//! the new jobs, because no resource becomes free in between. Procs alone, with or without watts, have a faster pass of
//! their own ([`super::easy_of_procs`]); with one pool, this pass starts the same jobs (tested).
use super::easy_of_procs;
use super::list::{List, ListRule, Listed, Start, Waiting};
use super::profile::Amount;
use super::releases::{Release, Releases};
use super::resources::ProcsAndWatts;
use crate::batch::kernel::{Cluster, Copied, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::platform::pools::{Amounts, POOLS_MAX};
use crate::batch::policy::gear::{Candidate, Gears, HeadGear};
use crate::error::{Result, SimError, Stop};
use crate::spec::{Component, Default as ParamDefault, Param, Role, SimSpec, Type, Value};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Backfill,
    name: "easy",
    version: 1,
    source: "Mu'alem & Feitelson 2001",
    doc: "Jobs overtake as long as the head's reservation is kept.",
    reads: "Free procs, estimates of waiting jobs, estimated ends of running jobs; with a power cap also their \
            watts.",
    guarantees: "While a job stays the head of the queue, it starts at its reservation at the latest, if no \
                 running job outlives its estimate, and neither a power cap, a capacity rule nor suspension \
                 changes what is free. Other jobs have no bound: each pass may delay them.",
    params: &[Param {
        name: "extra_procs",
        ty: Type::Bool,
        unit: "",
        default: ParamDefault::Bool(true),
        doc: "Whether a job may also overtake on the procs that the head leaves free at its reservation (textbook \
              EASY); false lets only jobs overtake that end before it (etinski2010).",
    }],
    ..Component::BATCH
};

/// EASY of procs.
pub(in crate::batch::policy) type EasyOfProcs = easy_of_procs::EasyOfProcs<i32>;

/// EASY under a power cap.
pub(in crate::batch::policy) type EasyUnderCap = easy_of_procs::EasyOfProcs<ProcsAndWatts>;

/// EASY on a machine with pools.
pub(in crate::batch::policy) type EasyOfPools = Listed<Easy>;

/// Whether jobs may overtake by a spec's rule, `easy` or `none`, and then whether they may use the extra resources.
pub(super) fn overtaking(spec: &SimSpec) -> Option<bool> {
    spec.choice(Role::Backfill).get("extra_procs").map(|extra| *extra == Value::Bool(true))
}

/// The reservation of the first waiting job of a partition.
#[derive(Debug, Clone, Copy)]
struct Reservation {
    at_s: f64,
    /// The pools that it takes something of, one bit each.
    pools: u16,
    taken: Amounts,
    /// The amounts that it leaves free at its time; unlimited in other pools.
    extra: Amounts,
}

/// A job that may start now.
#[derive(Debug, Clone, Copy)]
struct Fitting {
    job: JobId,
    /// The pools that it takes something of, one bit each.
    pools: u16,
    /// The pool of its procs.
    partition: usize,
    /// Whether it competes with an earlier waiting job.
    competes: bool,
}

/// The rule on a machine with pools; by default strict order.
#[derive(Debug, Clone, Default)]
pub(in crate::batch::policy) struct Easy {
    /// See [`overtaking`].
    overtaking: Option<bool>,
    /// Releases of the running jobs, if they are `kept`.
    releases: Releases<()>,
    kept: bool,
    /// The next pass considers all jobs.
    again: bool,
    /// The pools that considered jobs wait for, one bit each.
    blocked: u16,
    /// The pools of procs that considered jobs wait for, one bit each.
    partitions: u16,
    /// First jobs of partitions whose reservations have not been computed, in queue order.
    unreserved: Vec<JobId>,
    /// In queue order.
    reservations: Vec<Reservation>,
    /// By pool of procs: the reserved job with its chosen gear, unless the gear is chosen at each pass.
    chosen: [Option<(JobId, u8)>; POOLS_MAX],
}

impl ListRule for Easy {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Easy> {
        (!machine.pools.is_empty()).then(|| Easy { overtaking: overtaking(spec), ..Easy::default() })
    }

    fn pass<G: Gears, R: Recorder>(&mut self, list: &mut List, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let all_pools = u16::MAX >> (POOLS_MAX - cluster.machine().pools.len());
        let mut starts = false;
        for at in self.begin(list, gears, cluster)..list.waiting().len() {
            if self.overtaking.is_none() && self.blocked == all_pools {
                break;
            }
            let Waiting { job, .. } = list.waiting()[at];
            let (pools, partition) = pools(cluster, job);
            let competes = pools & self.blocked != 0;
            if (!competes || self.overtaking.is_some()) && cluster.fits(job) {
                cluster.step()?;
                self.reserve(list, gears, cluster)?;
                let fitting = Fitting { job, pools, partition, competes };
                if let Some(gear) = self.gear_of(&fitting, list, gears, cluster) {
                    list.start(at, Start { gear, ceiling: gear }, competes, cluster)?;
                    self.started(&fitting, gears, cluster);
                    starts = true;
                    continue;
                }
            }
            if self.partitions >> partition & 1 == 0 && self.overtaking.is_some() {
                self.unreserved.push(job);
            }
            self.blocked |= pools;
            self.partitions |= 1 << partition;
        }
        if gears.head_gear() != HeadGear::Renew {
            self.reserve(list, gears, cluster)?;
        }
        list.remove_started();
        // A start adds an estimated end. The first reservation waits for resources that are not free and does not move to
        // it; a later one may, if its job fits now and waits for the first.
        self.again = starts && self.reservations.len() + self.unreserved.len() > 1;
        Ok(())
    }

    fn ended(&mut self, job: JobId) {
        if self.kept {
            self.releases.remove(job);
        }
    }

    fn running_changed(&mut self) {
        self.kept = false;
    }

    fn fork(&self, copied: &Copied) -> Easy {
        let chosen = self.chosen.map(|chosen| chosen.and_then(|(job, gear)| Some((copied.number(job)?, gear))));
        Easy { overtaking: self.overtaking, chosen, ..Easy::default() }
    }
}

/// The pools of which a job takes something, one bit each, and the pool of its procs.
fn pools<R: Recorder>(cluster: &Cluster<'_, R>, job: JobId) -> (u16, usize) {
    let needs = cluster.needs(job);
    (needs.mask(), needs.partition())
}

/// The amounts that a job takes.
fn taken<R: Recorder>(cluster: &Cluster<'_, R>, job: JobId) -> Amounts {
    Amounts::taken(cluster.needs(job))
}

impl Easy {
    /// Begins a pass, and returns the position of the first job to consider.
    fn begin<G: Gears, R: Recorder>(&mut self, list: &mut List, gears: &G, cluster: &Cluster<'_, R>) -> usize {
        let passed = |reservation: &Reservation| reservation.at_s < cluster.now_s();
        if !self.again && list.seen() > 0 && !self.reservations.iter().any(passed) {
            return list.seen();
        }
        if list.take_early_end() && gears.head_gear() == HeadGear::UntilEarlyEnd {
            self.chosen = [None; POOLS_MAX];
        }
        self.reservations.clear();
        self.unreserved.clear();
        (self.blocked, self.partitions) = (0, 0);
        0
    }

    /// The gear at which a job that fits can start now, if it may.
    fn gear_of<G: Gears, R: Recorder>(
        &self,
        fitting: &Fitting,
        list: &List,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) -> Option<u8> {
        let (job, now_s) = (fitting.job, cluster.now_s());
        let candidate = Candidate::new(cluster, job);
        if fitting.competes {
            let (until_s, on_extra) = self.bound(taken(cluster, job), fitting.pools);
            return gears.overtaking(candidate, now_s, list.others(), until_s, on_extra).map(|(gear, _)| gear);
        }
        match self.chosen[fitting.partition] {
            Some((chosen, gear)) if chosen == job => Some(gear),
            _ => Some(gears.at(candidate, now_s, list.others())),
        }
    }

    /// The bound of the estimated end of a job that overtakes (s), for [`Gears::overtaking`]: the earliest reservation
    /// that it must not outlast and `false`, or, if it fits beside all, the earliest reservation and `true`.
    fn bound(&self, taken: Amounts, pools: u16) -> (f64, bool) {
        let (mut next_s, mut until_s, mut on_extra) = (f64::INFINITY, f64::INFINITY, true);
        for reservation in self.reservations.iter().filter(|reservation| reservation.pools & pools != 0) {
            next_s = next_s.min(reservation.at_s);
            if self.overtaking != Some(true) || !reservation.extra.covers(taken) {
                (until_s, on_extra) = (until_s.min(reservation.at_s), false);
            }
        }
        (if on_extra { next_s } else { until_s }, on_extra)
    }

    /// A job has started: it takes extra resources of the reservations that it outlasts.
    fn started<G: Gears, R: Recorder>(&mut self, fitting: &Fitting, gears: &G, cluster: &Cluster<'_, R>) {
        let end_s = cluster.estimated_end_s(fitting.job).expect("the job runs");
        if self.kept {
            self.releases.add(Release { end_s, job: fitting.job, taken: () }, |job| cluster.is_running(job));
        }
        if !fitting.competes {
            return;
        }
        let taken = taken(cluster, fitting.job);
        for reservation in self.reservations.iter_mut().filter(|reservation| reservation.pools & fitting.pools != 0) {
            if !gears.in_time(end_s, reservation.at_s) {
                reservation.extra += -taken;
            }
        }
    }

    /// Gives the first waiting jobs of partitions their reservations, if there is a time for them.
    fn reserve<G: Gears, R: Recorder>(&mut self, list: &List, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        for at in 0..self.unreserved.len() {
            let job = self.unreserved[at];
            let (pools, partition) = pools(cluster, job);
            let Some(reservation) = self.reservation(job, pools, cluster)? else {
                if self.reservations.iter().any(|earlier| earlier.pools & pools != 0) {
                    continue;
                }
                let what = format!("no end of a running job gives job {job} (by arrival) what it needs");
                return Err(Stop::new(SimError::Policy { now_s: cluster.now_s(), what }));
            };
            let chosen = &mut self.chosen[partition];
            if gears.head_gear() != HeadGear::Renew && chosen.is_none_or(|(chosen, _)| chosen != job) {
                let gear = gears.at(Candidate::new(cluster, job), reservation.at_s, list.others());
                *chosen = Some((job, gear));
            }
            // A later reservation at an earlier time takes from those after it.
            for earlier in self.reservations.iter_mut().filter(|earlier| earlier.at_s >= reservation.at_s) {
                earlier.extra += -reservation.taken;
            }
            self.reservations.push(reservation);
        }
        self.unreserved.clear();
        Ok(())
    }

    /// The earliest reservation of a job beside the earlier reservations.
    fn reservation<R: Recorder>(
        &mut self,
        job: JobId,
        pools: u16,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<Option<Reservation>> {
        if !std::mem::replace(&mut self.kept, true) {
            self.releases.collect(cluster, |_, _, _| ());
            self.releases.sort();
        }
        let (now_s, needs, need) = (cluster.now_s(), cluster.needs(job), taken(cluster, job));
        let (mut at_s, mut free, mut fits) = (now_s, *cluster.free_amounts(), false);
        let mut releases = self.releases.kept().filter(|release| cluster.is_running(release.job)).peekable();
        let mut steps = 0;
        while !fits {
            steps += 1;
            let Some(release) = releases.next() else { break };
            at_s = release.end_s.max(now_s);
            free.give(cluster.needs(release.job));
            fits = free.cover(needs) && self.fits_beside(need, pools, at_s, free);
        }
        // Releases at the same instant count, too.
        while let Some(release) = releases.next_if(|release| fits && release.end_s <= at_s) {
            free.give(cluster.needs(release.job));
        }
        drop(releases);
        cluster.count_steps(steps)?;
        if !fits {
            return Ok(None);
        }
        let mut extra = self.beside(pools, at_s, free);
        extra += -need;
        extra.limit_to(pools);
        Ok(Some(Reservation { at_s, pools, taken: need, extra }))
    }

    /// Of the resources that are free at an instant, those that the earlier reservations leave to a job.
    fn beside(&self, pools: u16, at_s: f64, mut free: Amounts) -> Amounts {
        let shared = self.reservations.iter().filter(|earlier| earlier.pools & pools != 0);
        shared.filter(|earlier| earlier.at_s <= at_s).for_each(|earlier| free += -earlier.taken);
        free
    }

    /// Whether a job fits from an instant on beside the earlier reservations.
    fn fits_beside(&self, taken: Amounts, pools: u16, at_s: f64, free: Amounts) -> bool {
        let shared = self.reservations.iter().filter(|earlier| earlier.pools & pools != 0);
        shared.filter(|later| later.at_s > at_s).all(|later| later.extra.covers(taken))
            && self.beside(pools, at_s, free).covers(taken)
    }
}
