//! Batch scheduling written for clarity, not for speed: under a power cap, and for the rules that have no fast code.
//!
//! **EASY under a cap.** Watts are a second counted resource. The reservation of the head is the first estimated end at
//! which both procs and the watts of its lowest gear suffice under the present cap. Another job may overtake if it ends
//! by then, or fits both what the head leaves of the procs and of the watts. The gear rule's choice is a gear at which
//! this holds, if there is one; the job starts at the highest gear up to it at which this holds and the power now fits.
//! If the present cap never admits the head, not even at an empty machine, there is nothing to reserve: its shadow time
//! is infinite, and whoever fits overtakes, without limit, until the cap changes.
//!
//! **Long queues.** No job can start that is wider than the free procs, or than the power carries at the lowest gear:
//! these are passed over in one narrow loop over procs, and the reservation is worked out only once another job is met.
use super::knapsack::Knapsack;
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::policy::cap::allowance::{Allowance, above_idle_w};
use crate::batch::policy::gear::{Candidate, Gears};
use crate::batch::policy::order::Order;
use crate::error::Stop;

/// Who may overtake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Nobody.
    InOrder,
    /// EASY; whether on the procs that the head leaves free, too.
    Easy { extra_procs: bool },
    /// Jobs of the highest priority that waits; the others wait until all of it have started.
    WithinPriority,
    /// The largest set of jobs of that priority that fits the power.
    Knapsack,
}

/// A waiting job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    /// Its key in the order.
    key: f64,
    pub(super) job: JobId,
    pub(super) procs: u32,
}

/// Waiting jobs, simply kept.
#[derive(Debug, Clone)]
pub(crate) struct Plain {
    rule: Rule,
    /// In order.
    waiting: Vec<Waiting>,
    allowance: Allowance,
    /// Started in the last pass, with their ceilings.
    started: Vec<(JobId, u8)>,
    /// Positions of the jobs that a sweep of the queue has started: they leave it together.
    gone: Vec<usize>,
    releases: Releases,
    knapsack: Knapsack,
}

/// What starting jobs must fit in now.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Power that they may add (W).
    left_w: f64,
    /// No wider job can start, whatever its gear.
    widest: u32,
}

/// The reservation of the head, and what it leaves.
#[derive(Debug, Clone, Copy)]
struct Shadow {
    at_s: f64,
    extra_procs: u32,
    extra_w: f64,
}

/// How a job may start.
#[derive(Debug, Clone, Copy)]
struct Start {
    gear: u8,
    /// The gear rule's choice.
    ceiling: u8,
    /// It ends after the head's reservation.
    late: bool,
}

impl Plain {
    pub(crate) fn new(rule: Rule) -> Plain {
        Plain {
            rule,
            waiting: Vec::new(),
            allowance: Allowance::ANY,
            started: Vec::new(),
            gone: Vec::new(),
            releases: Releases::default(),
            knapsack: Knapsack::default(),
        }
    }

    /// The same rule with nobody waiting.
    pub(crate) fn fork(&self) -> Plain {
        Plain { allowance: self.allowance, ..Plain::new(self.rule) }
    }

    /// How jobs may start from now on.
    pub(crate) fn allow(&mut self, allowance: Allowance) {
        self.allowance = allowance;
    }

    /// The jobs that the last pass started, with the ceilings of their gears.
    pub(crate) fn started(&self) -> &[(JobId, u8)] {
        &self.started
    }

    /// The waiting jobs, in order.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.waiting.iter().map(|waiting| waiting.job)
    }

    pub(crate) fn submitted<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) {
        let key = order.key(cluster, job);
        let at = self.waiting.partition_point(|other| other.key <= key);
        self.waiting.insert(at, Waiting { key, job, procs: cluster.procs(job) });
    }

    pub(crate) fn pass<G: Gears, R: Recorder>(
        &mut self,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        self.started.clear();
        if order.changes() {
            for waiting in &mut self.waiting {
                waiting.key = order.key(cluster, waiting.job);
            }
            self.waiting.sort_unstable_by(|a, b| a.key.total_cmp(&b.key).then(a.job.cmp(&b.job)));
        }
        match self.rule {
            Rule::InOrder => self.in_order(gears, cluster),
            Rule::Easy { extra_procs } => {
                self.in_order(gears, cluster)?;
                self.overtake(extra_procs, gears, cluster)
            }
            Rule::WithinPriority => self.within_priority(gears, cluster),
            Rule::Knapsack => self.knapsack(cluster),
        }
    }

    /// Starts the job at a position, which it keeps until [`Plain::leave`].
    fn start<R: Recorder>(
        &mut self,
        at: usize,
        start: Start,
        overtook: bool,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        let job = self.waiting[at].job;
        cluster.start(job, start.gear, overtook)?;
        self.started.push((job, start.ceiling));
        self.gone.push(at);
        Ok(())
    }

    /// The jobs that have started leave the queue. Their positions ascend.
    fn leave(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        let (mut gone, mut at) = (self.gone.iter().peekable(), 0);
        self.waiting.retain(|_| {
            let stays = gone.next_if(|&&gone| gone == at).is_none();
            at += 1;
            stays
        });
        self.gone.clear();
    }

    /// Waiting jobs without the one that is looked at.
    fn others(&self) -> usize {
        self.waiting.len() - self.gone.len() - 1
    }

    fn room<R: Recorder>(&self, cluster: &Cluster<'_, R>) -> Room {
        let left_w = self.allowance.left_w(cluster);
        let class = &cluster.machine().classes[0];
        let gears = std::iter::once(&class.gears).chain(&class.more_job_classes).flatten();
        let least_w = gears.map(|gear| gear.busy_w - class.idle_w).fold(f64::INFINITY, f64::min);
        // One more than the quotient: its rounding must not keep anybody out. The conversion keeps to the range.
        let carried = if least_w > 0.0 { (left_w / least_w + 1.0) as u32 } else { u32::MAX };
        Room { left_w, widest: cluster.free(0).min(carried) }
    }

    /// How a job can start now, whatever it delays.
    fn fitting<G: Gears, R: Recorder>(
        &self,
        job: JobId,
        room: &Room,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) -> Option<Start> {
        let ceiling = gears.at(Candidate::new(cluster, job), cluster.now_s(), self.others());
        let gear = self.allowance.gear(cluster, job, ceiling, room.left_w)?;
        Some(Start { gear, ceiling, late: false })
    }

    fn in_order<G: Gears, R: Recorder>(&mut self, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        let mut at = 0;
        while let Some(&Waiting { job, procs, .. }) = self.waiting.get(at)
            && procs <= cluster.free(0)
            && let room = self.room(cluster)
            && let Some(start) = self.fitting(job, &room, gears, cluster)
        {
            self.start(at, start, false, cluster)?;
            at += 1;
        }
        self.leave();
        Ok(())
    }

    fn within_priority<G: Gears, R: Recorder>(&mut self, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        let mut room = self.room(cluster);
        // That of the first job that stays: once the last of a priority has started, the next is first.
        let mut priority = None;
        for at in 0..self.waiting.len() {
            let Waiting { job, procs, .. } = self.waiting[at];
            let own = Some(cluster.priority(job));
            if room.widest == 0 || (priority.is_some() && priority != own) {
                break;
            }
            cluster.step()?;
            let start = if procs <= room.widest { self.fitting(job, &room, gears, cluster) } else { None };
            let Some(start) = start else {
                priority = own;
                continue;
            };
            self.start(at, start, priority.is_some(), cluster)?;
            room = self.room(cluster);
        }
        self.leave();
        Ok(())
    }

    fn overtake<G: Gears, R: Recorder>(
        &mut self,
        extra_procs: bool,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        if self.waiting.len() < 2 || cluster.free(0) == 0 {
            return Ok(());
        }
        let mut room = self.room(cluster);
        let mut shadow = None;
        let mut at = 1;
        // The narrow loop: most jobs of a long queue are wider than what is free.
        while let Some(next) = self.waiting[at..].iter().position(|waiting| waiting.procs <= room.widest) {
            at += next;
            cluster.step()?;
            // A reservation is worth its walk through the running jobs only if somebody might overtake.
            let shadow = match &mut shadow {
                Some(shadow) => shadow,
                None => shadow.insert(self.shadow(extra_procs, cluster)?),
            };
            let Waiting { job, procs, .. } = self.waiting[at];
            if let Some(start) = self.overtaking(job, procs, shadow, &room, gears, cluster) {
                if start.late {
                    shadow.extra_procs -= procs;
                    shadow.extra_w -= self.allowance.counted_w(cluster, job, start.gear);
                }
                self.start(at, start, true, cluster)?;
                room = self.room(cluster);
            }
            at += 1;
        }
        self.leave();
        Ok(())
    }

    /// How a job may overtake now, if it may.
    fn overtaking<G: Gears, R: Recorder>(
        &self,
        job: JobId,
        procs: u32,
        shadow: &Shadow,
        room: &Room,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) -> Option<Start> {
        let candidate = Candidate::new(cluster, job);
        let now_s = cluster.now_s();
        let ask = |on_extra| gears.overtaking(candidate, now_s, self.others(), shadow.at_s, on_extra);
        let beside = procs <= shadow.extra_procs;
        let spared = |gear| beside && self.allowance.counted_w(cluster, job, gear) <= shadow.extra_w;
        let mut choice = ask(beside)?;
        if choice.1 && !spared(choice.0) {
            // At the gear of its choice the job fits beside the head by its procs alone. If a higher gear ends in time,
            // that is the choice; else the cap may lower it to a gear whose watts fit, too.
            choice = ask(false).unwrap_or(choice);
        }
        let ceiling = choice.0;
        let factors = cluster.gears_for(0, job);
        self.allowance.gears(ceiling).find_map(|gear| {
            if above_idle_w(cluster, job, gear) > room.left_w {
                return None;
            }
            let end_s = now_s + candidate.estimate_s * factors[usize::from(gear)].time_factor;
            let late = !gears.in_time(end_s, shadow.at_s);
            (!late || spared(gear)).then_some(Start { gear, ceiling, late })
        })
    }

    /// `extra_procs`: whether others may run on what the head leaves.
    fn shadow<R: Recorder>(&mut self, extra_procs: bool, cluster: &mut Cluster<'_, R>) -> Result<Shadow, Stop> {
        let head = self.waiting[0].job;
        let (need, need_w) = (cluster.procs(head), self.allowance.counted_w(cluster, head, 0));
        let (mut free, mut left_w) = (cluster.free(0), self.allowance.left_w(cluster));
        let mut at_s = cluster.now_s();
        self.releases.begin(cluster);
        let mut next = 0;
        while !(need <= free && need_w <= left_w) {
            cluster.step()?;
            let Some(release) = self.releases.get(next) else {
                return Ok(Shadow { at_s: f64::INFINITY, extra_procs: 0, extra_w: 0.0 });
            };
            at_s = release.end_s;
            free += release.procs;
            left_w += release.watts(&self.allowance, cluster);
            next += 1;
        }
        // What ends at the same instant is there as well.
        while let Some(release) = self.releases.get(next).filter(|release| release.end_s == at_s) {
            free += release.procs;
            left_w += release.watts(&self.allowance, cluster);
            next += 1;
        }
        Ok(Shadow { at_s, extra_procs: if extra_procs { free - need } else { 0 }, extra_w: left_w - need_w })
    }

    /// Starts the best set of the highest priority; of the next, too, if that leaves none of it.
    fn knapsack<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        let top = (cluster.machine().classes[0].gears.len() - 1) as u8;
        while let Some(first) = self.waiting.first() {
            let priority = cluster.priority(first.job);
            let window = self.waiting.partition_point(|waiting| cluster.priority(waiting.job) <= priority);
            let Some((gear, chosen)) = self.knapsack.choose(&self.waiting[..window], &self.allowance, cluster)? else {
                return Ok(());
            };
            let all = chosen.len() == window;
            // From the back: the order of the starts decides which of several ends of one instant is first.
            for at in chosen.into_iter().rev() {
                self.start(at, Start { gear, ceiling: top, late: false }, at > 0, cluster)?;
            }
            self.gone.reverse();
            self.leave();
            if !all {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// What the end of a running job gives back.
#[derive(Debug, Clone, Copy)]
struct Release {
    end_s: f64,
    job: JobId,
    procs: u32,
    /// Of the job; `None` for procs that wake.
    gear: Option<u8>,
}

impl Release {
    /// The watts that come with the procs, as the allowance counts them. Procs that wake come without.
    fn watts<R: Recorder>(&self, allowance: &Allowance, cluster: &Cluster<'_, R>) -> f64 {
        self.gear.map_or(0.0, |gear| allowance.counted_w(cluster, self.job, gear))
    }
}

/// What running jobs will give back, sorted by time as far as it is looked at.
#[derive(Debug, Clone, Default)]
struct Releases {
    all: Vec<Release>,
    sorted: usize,
}

impl Releases {
    /// Those of a machine as it is now.
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
        // Procs that wake come as if a job gave them back.
        self.all.extend(cluster.coming(0).map(|(end_s, procs)| Release { end_s, job: JobId::MAX, procs, gear: None }));
    }

    /// The release at a place in the order of time, those of one instant by job.
    fn get(&mut self, at: usize) -> Option<Release> {
        while at >= self.sorted && self.sorted < self.all.len() {
            let rest = &mut self.all[self.sorted..];
            // Most reservations are met early: twice as many each time keeps the work in proportion.
            let count = self.sorted.max(32).min(rest.len());
            let earlier = |a: &Release, b: &Release| a.end_s.total_cmp(&b.end_s).then(a.job.cmp(&b.job));
            if count < rest.len() {
                rest.select_nth_unstable_by(count, earlier);
            }
            rest[..count].sort_unstable_by(earlier);
            self.sorted += count;
        }
        self.all.get(at).copied()
    }
}
