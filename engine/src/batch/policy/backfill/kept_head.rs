//! A head that is chosen once, with a reservation that is computed once (the scheduler of Zhang et al. 2020).
//!
//! EASY chooses the first job of the queue again, and computes its reservation again, at every pass. Here a job that was chosen
//! is the head until it starts, also behind a better job that arrives later. Its reservation is the one of EASY at the first pass at
//! which it does not fit: later starts, early ends and overdue jobs do not move it.
//!
//! **Under a power cap**, watts are a second counted resource, as in [`super::easy`]. If the present cap never admits the head,
//! all jobs that fit overtake, and the reservation is computed again at the next pass.
use super::list::{List, ListRule, Listed, Start, Waiting};
use super::releases::Releases;
use super::resources::{ProcsAndWatts, Resources};
use crate::batch::kernel::{Cluster, Copied, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::gear::{Candidate, Gears, HeadGear};
use crate::error::{Result, SimError, Stop};
use crate::spec::{Component, Default as ParamDefault, Param, Role, SimSpec, Type};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Backfill,
    name: "kept-head",
    version: 1,
    source: "Zhang, Dai, He, Bao & Xie 2020",
    doc: "The first job of the queue is chosen as head and stays head until it starts, also when a better job arrives; its \
          reservation is computed once. Jobs overtake in order of arrival if they end before it.",
    reads: "Free procs, estimates of waiting jobs, estimated ends of running jobs; with a power cap also their \
            watts.",
    guarantees: "A chosen head is not overtaken by a better job that arrives later, and starts at its reservation \
                 at the latest, if no running job outlives its estimate, and neither a power cap, a capacity rule \
                 nor suspension changes what is free. Jobs that are not chosen yet have no bound.",
    params: &[Param {
        name: "overtake",
        ty: Type::Bool,
        unit: "",
        default: ParamDefault::Bool(true),
        doc: "Whether jobs may overtake a kept head; false lets no job overtake.",
    }],
    ..Component::BATCH
};

/// A list under the rule.
pub(in crate::batch::policy) type KeptHead = Listed<Rule<i32>>;

/// A list under the rule and a power cap.
pub(in crate::batch::policy) type KeptHeadUnderCap = Listed<Rule<ProcsAndWatts>>;

/// The chosen job.
#[derive(Debug, Clone, Copy)]
struct Head {
    job: JobId,
    /// The reservation (s), once it is computed.
    until_s: Option<f64>,
    /// The gear of its start, unless the gear is chosen at each pass.
    gear: Option<u8>,
}

/// The rule `kept-head`.
#[derive(Debug, Clone, Default)]
pub(in crate::batch::policy) struct Rule<A> {
    overtake: bool,
    head: Option<Head>,
    /// Buffer of the releases of running jobs.
    releases: Releases<A>,
}

impl<A: Resources> ListRule for Rule<A> {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Rule<A>> {
        let overtake = spec.choice(Role::Backfill).bool("overtake");
        A::are_of(spec, machine).then(|| Rule { overtake, ..Rule::default() })
    }

    fn pass<G: Gears, R: Recorder>(&mut self, list: &mut List, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let chosen_early = gears.head_gear() != HeadGear::Renew;
        if list.take_early_end() && gears.head_gear() == HeadGear::UntilEarlyEnd {
            self.head = self.head.map(|head| Head { gear: None, ..head });
        }
        self.start_heads(list, gears, cluster)?;
        let Some(mut head) = self.head.filter(|_| self.overtake || chosen_early) else { return Ok(()) };
        let until_s = match head.until_s {
            Some(until_s) => until_s,
            None => self.reservation(head.job, list, cluster)?,
        };
        if chosen_early && head.gear.is_none() {
            head.gear = Some(gears.at(Candidate::new(cluster, head.job), until_s, list.others()));
        }
        head.until_s = until_s.is_finite().then_some(until_s);
        self.head = Some(head);
        if self.overtake {
            overtake(head.job, until_s, list, gears, cluster)?;
        }
        Ok(())
    }

    fn fork(&self, copied: &Copied) -> Rule<A> {
        let head = self.head.and_then(|head| Some(Head { job: copied.number(head.job)?, ..head }));
        Rule { overtake: self.overtake, head, ..Rule::default() }
    }
}

impl<A: Resources> Rule<A> {
    /// Chooses and starts heads until one does not fit.
    fn start_heads<G: Gears, R: Recorder>(
        &mut self,
        list: &mut List,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        while let Some(first) = list.waiting().first() {
            cluster.step()?;
            let &mut Head { job, gear, .. } =
                self.head.get_or_insert(Head { job: first.job, until_s: None, gear: None });
            let headroom = list.headroom(cluster);
            if cluster.procs(job) > headroom.widest {
                break;
            }
            let now = || gears.at(Candidate::new(cluster, job), cluster.now_s(), list.others());
            let ceiling = gear.unwrap_or_else(now);
            let Some(gear) = list.allowance().fitting(cluster, job, ceiling, headroom.left_w).next() else { break };
            let at = list.waiting().iter().position(|waiting| waiting.job == job).expect("the head waits");
            list.start(at, Start { gear, ceiling }, false, cluster)?;
            list.remove_started();
            self.head = None;
        }
        Ok(())
    }

    /// The earliest time at which a job fits by the present estimates of the running jobs (s); infinite if the present cap never
    /// admits it.
    fn reservation<R: Recorder>(&mut self, job: JobId, list: &List, cluster: &Cluster<'_, R>) -> Result<f64> {
        let allowance = list.allowance();
        let taken = |job, procs, gear| match A::CAPPED {
            true => A::taken(cluster, allowance, job, Some(gear)),
            false => A::procs(procs),
        };
        self.releases.collect(cluster, taken);
        self.releases.add_waking(cluster);
        let (now_s, procs) = (cluster.now_s(), cluster.procs(job));
        let found = self.releases.shadow_of_collected(now_s, A::free(cluster, allowance), taken(job, procs, 0), false);
        found.map(|shadow| shadow.at_s).or(A::CAPPED.then_some(f64::INFINITY)).ok_or_else(|| {
            let what = format!("no end of a running job gives job {job} (by arrival) its {procs} procs");
            Stop::new(SimError::Policy { now_s, what })
        })
    }
}

/// Starts the jobs that fit and end in time for the reservation of the head, in order of arrival.
fn overtake<G: Gears, R: Recorder>(
    head: JobId,
    until_s: f64,
    list: &mut List,
    gears: &G,
    cluster: &mut Cluster<'_, R>,
) -> Result<()> {
    let now_s = cluster.now_s();
    let mut headroom = list.headroom(cluster);
    if until_s < now_s || headroom.widest == 0 {
        return Ok(());
    }
    let fits = |waiting: &Waiting| waiting.job != head && waiting.procs <= headroom.widest;
    let waiting = list.waiting().iter().enumerate().filter(|(_, waiting)| fits(waiting));
    let mut fitting: Vec<(JobId, usize)> = waiting.map(|(at, waiting)| (waiting.job, at)).collect();
    fitting.sort_unstable();
    for (job, at) in fitting {
        if cluster.procs(job) > headroom.widest {
            continue;
        }
        cluster.step()?;
        let candidate = Candidate::new(cluster, job);
        let Some((ceiling, _)) = gears.overtaking(candidate, now_s, list.others(), until_s, false) else { continue };
        let factors = cluster.gears_for(job);
        let in_time =
            |gear: &u8| gears.in_time(now_s + candidate.estimate_s * factors[usize::from(*gear)].time_factor, until_s);
        let gear = list.allowance().fitting(cluster, job, ceiling, headroom.left_w).find(in_time);
        let Some(gear) = gear else { continue };
        list.start(at, Start { gear, ceiling }, true, cluster)?;
        headroom = list.headroom(cluster);
    }
    list.remove_started();
    Ok(())
}
