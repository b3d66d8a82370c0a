//! Batch scheduling written for clarity, not for speed: under a power cap, and for the rules that have no fast code.
//!
//! **EASY under a cap.** Watts are a second counted resource. The reservation of the head is the first estimated end at
//! which both procs and the watts of its lowest gear suffice under the present cap. Another job may overtake if it ends by
//! then, or fits both what the head leaves of the procs and of the watts. It starts at the highest gear at which this holds
//! and the power now fits. If the present cap never admits the head, there is nothing to reserve, and whoever fits overtakes.
use super::cap::allowance::Allowance;
use super::gear_rule::{Candidate, Gears};
use super::knapsack;
use super::order::Order;
use crate::error::Stop;
use crate::kernel::{Cluster, JobId, Recorder};

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

/// Waiting jobs, simply kept.
#[derive(Debug, Clone)]
pub(crate) struct Plain {
    rule: Rule,
    /// Key and job, in order.
    waiting: Vec<(f64, JobId)>,
    allowance: Allowance,
    /// Started in the last pass, with their ceilings.
    started: Vec<(JobId, u8)>,
    ends: Vec<Release>,
}

/// What the end of a running job gives back.
#[derive(Debug, Clone, Copy)]
struct Release {
    end_s: f64,
    job: JobId,
    procs: u32,
    watts: f64,
}

/// The reservation of the head, and what it leaves.
struct Shadow {
    at_s: f64,
    extra_procs: u32,
    extra_w: f64,
}

impl Plain {
    pub(crate) fn new(rule: Rule) -> Plain {
        Plain { rule, waiting: Vec::new(), allowance: Allowance::ANY, started: Vec::new(), ends: Vec::new() }
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
        self.waiting.iter().map(|waiting| waiting.1)
    }

    pub(crate) fn submitted<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) {
        let key = order.key(cluster, job);
        let at = self.waiting.partition_point(|&(other, _)| other <= key);
        self.waiting.insert(at, (key, job));
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
                waiting.0 = order.key(cluster, waiting.1);
            }
            self.waiting.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
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

    /// Starts the job at a position.
    fn start<R: Recorder>(
        &mut self,
        at: usize,
        gear: u8,
        ceiling: u8,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        let (_, job) = self.waiting.remove(at);
        cluster.start(job, gear, at > 0)?;
        self.started.push((job, ceiling));
        Ok(())
    }

    /// Gear and ceiling of the job at a position if it can start now whatever it delays.
    fn fitting<G: Gears, R: Recorder>(&self, at: usize, gears: &G, cluster: &Cluster<'_, R>) -> Option<(u8, u8)> {
        let job = self.waiting[at].1;
        if cluster.procs(job) > cluster.free(0) {
            return None;
        }
        let ceiling = gears.at(Candidate::new(cluster, job), cluster.now_s(), self.waiting.len() - 1);
        self.allowance.gear(cluster, job, ceiling).map(|gear| (gear, ceiling))
    }

    fn in_order<G: Gears, R: Recorder>(&mut self, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        while !self.waiting.is_empty()
            && let Some((gear, ceiling)) = self.fitting(0, gears, cluster)
        {
            self.start(0, gear, ceiling, cluster)?;
        }
        Ok(())
    }

    fn within_priority<G: Gears, R: Recorder>(&mut self, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        let mut at = 0;
        while at < self.waiting.len() && cluster.priority(self.waiting[at].1) == cluster.priority(self.waiting[0].1) {
            cluster.step()?;
            match self.fitting(at, gears, cluster) {
                // Once the last of a priority has started, the next is first.
                Some((gear, ceiling)) => self.start(at, gear, ceiling, cluster)?,
                None => at += 1,
            }
        }
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
        let mut shadow = self.shadow(cluster)?;
        let mut left_w = self.allowance.left_w(cluster);
        let mut at = 1;
        while at < self.waiting.len() {
            cluster.step()?;
            let Some((gear, ceiling, late)) = self.overtaking(at, &shadow, left_w, extra_procs, gears, cluster) else {
                at += 1;
                continue;
            };
            let job = self.waiting[at].1;
            if late {
                shadow.extra_procs -= cluster.procs(job);
                shadow.extra_w -= self.allowance.counted_w(cluster, job, gear);
            }
            self.start(at, gear, ceiling, cluster)?;
            left_w = self.allowance.left_w(cluster);
        }
        Ok(())
    }

    /// Gear, ceiling and whether it ends after the reservation, of the job at a position if it may overtake.
    fn overtaking<G: Gears, R: Recorder>(
        &self,
        at: usize,
        shadow: &Shadow,
        left_w: f64,
        extra_procs: bool,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) -> Option<(u8, u8, bool)> {
        let job = self.waiting[at].1;
        let procs = cluster.procs(job);
        if procs > cluster.free(0) {
            return None;
        }
        let on_extra = extra_procs && procs <= shadow.extra_procs;
        let candidate = Candidate::new(cluster, job);
        let now_s = cluster.now_s();
        let others = self.waiting.len() - 1;
        let (ceiling, late) = gears.overtaking(candidate, now_s, others, shadow.at_s, on_extra)?;
        let factors = cluster.gears_for(0, job);
        self.allowance.gears(ceiling).find_map(|gear| {
            let end_s = now_s + candidate.estimate_s * factors[usize::from(gear)].time_factor;
            let late = if gear == ceiling { late } else { end_s > shadow.at_s };
            let spares = !late || (on_extra && self.allowance.counted_w(cluster, job, gear) <= shadow.extra_w);
            let fits = super::cap::allowance::above_idle_w(cluster, job, gear) <= left_w;
            (fits && spares).then_some((gear, ceiling, late))
        })
    }

    fn shadow<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<Shadow, Stop> {
        let head = self.waiting[0].1;
        let (need, need_w) = (cluster.procs(head), self.allowance.counted_w(cluster, head, 0));
        let (mut free, mut left_w) = (cluster.free(0), self.allowance.left_w(cluster));
        let now_s = cluster.now_s();
        self.ends.clear();
        let allowance = self.allowance;
        self.ends.extend(cluster.running_jobs().map(|job| Release {
            // A job that has outlived its estimate ends now.
            end_s: cluster.estimated_end_s(job).map_or(now_s, |end_s| end_s.max(now_s)),
            job,
            procs: cluster.procs(job),
            watts: cluster.gear(job).map_or(0.0, |gear| allowance.counted_w(cluster, job, gear)),
        }));
        // Procs that wake come as if a job gave them back, but no watts with them.
        self.ends.extend(cluster.coming(0).map(|(end_s, procs)| Release { end_s, job: JobId::MAX, procs, watts: 0.0 }));
        self.ends.sort_unstable_by(|a, b| a.end_s.total_cmp(&b.end_s).then(a.job.cmp(&b.job)));
        let enough = |free: u32, left_w: f64| need <= free && need_w <= left_w;
        let mut ends = self.ends.iter().peekable();
        let mut at_s = now_s;
        while !enough(free, left_w) {
            cluster.step()?;
            let Some(end) = ends.next() else {
                return Ok(Shadow { at_s: f64::INFINITY, extra_procs: 0, extra_w: 0.0 });
            };
            at_s = end.end_s;
            free += end.procs;
            left_w += end.watts;
        }
        // What ends at the same instant is there as well.
        while let Some(end) = ends.next_if(|end| end.end_s == at_s) {
            free += end.procs;
            left_w += end.watts;
        }
        Ok(Shadow { at_s, extra_procs: free - need, extra_w: left_w - need_w })
    }

    /// Starts the best set of the highest priority; of the next, too, if that leaves none of it.
    fn knapsack<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        let top = (cluster.machine().classes[0].gears.len() - 1) as u8;
        while let Some(&(_, first)) = self.waiting.first() {
            let priority = cluster.priority(first);
            let window = self.waiting.partition_point(|&(_, job)| cluster.priority(job) <= priority);
            let jobs: Vec<JobId> = self.jobs().take(window).collect();
            let Some((gear, chosen)) = knapsack::choose(&jobs, &self.allowance, cluster)? else {
                return Ok(());
            };
            let all = chosen.len() == window;
            // From the back, so that positions stay.
            for at in chosen.into_iter().rev() {
                self.start(at, gear, top, cluster)?;
            }
            if !all {
                return Ok(());
            }
        }
        Ok(())
    }
}
