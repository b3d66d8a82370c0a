//! Deferral rules: jobs wait for a better value of a signal before they enter the queue.
//!
//! A rule gives each deferrable job a release at its submission, or looks again later. A released job enters the queue as
//! if it arrived then: under any order, backfilling rule, gear rule, capacity rule and cap. Its wait counts from its
//! submission. A job is released at `defer_wait_max_s` after its submission at the latest.
//!
//! A rule is a file with its description and a [`DeferralRule`]; the list below registers it.
mod curve;
mod forecast;
pub mod lowest_slot;
pub mod lowest_window;
pub mod quantile;
mod rule;
pub mod saving_per_wait;
mod suspension;
#[cfg(test)]
mod tests;
pub mod wait_awhile;

use std::collections::{BTreeMap, VecDeque};

use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::rules::rules;
use crate::error::{Result, SimError, Stop};
use crate::rng::{Philox, Purpose};
use crate::spec::{Component, Role, SimSpec};
use crate::timers::{key_time, time_key};
use forecast::Forecast;
use rule::{Ask, DeferralRule, GROUPS, Verdict};
use suspension::Suspension;

rules! { $
    /// The chosen rule.
    enum Rule {
        lowest_slot: LowestSlot,
        lowest_window: LowestWindow,
        saving_per_wait: SavingPerWait,
        quantile: Quantile,
        wait_awhile: WaitAwhile,
    }
}

impl Rule {
    /// [`DeferralRule::executes`] of the chosen rule.
    fn executes(&mut self, ask: &Ask, forecast: &mut Forecast) -> bool {
        each!(self, rule => rule.executes(ask, forecast))
    }
}

/// No job is deferred.
pub const NONE: Component = Component {
    role: Role::Deferral,
    name: "none",
    version: 1,
    doc: "Jobs enter the queue at once.",
    reads: "Nothing.",
    guarantees: "A job enters the queue at its submission.",
    ..Component::BATCH
};

/// Token of the timer of the next release. Timers of backfilling rules have lower tokens.
pub(super) const TOKEN: u64 = 1 << 61;

/// Whether the rule of a spec suspends running jobs.
pub(super) fn suspends(spec: &SimSpec) -> bool {
    let choice = spec.choice(Role::Deferral);
    *choice.component() == wait_awhile::COMPONENT || choice.get(quantile::SUSPEND.name).is_some()
}

/// The chosen rule, and the jobs that wait for their release.
#[derive(Debug, Clone)]
pub(super) struct Deferral {
    rule: Rule,
    forecast: Forecast,
    wait_max_s: f64,
    /// Share of the jobs that may be deferred.
    share: f64,
    draws: Philox,
    /// Jobs that have arrived since the last pass.
    arrived: Vec<JobId>,
    /// Jobs by the time key of their release, in the order of their submission.
    held: BTreeMap<u64, Vec<JobId>>,
    /// Jobs that are released together, in the order of their submission.
    groups: [VecDeque<JobId>; GROUPS],
    /// The instant of the timer that is set; infinite if there is none.
    timer_s: f64,
    /// If the rule suspends running jobs.
    suspension: Option<Suspension>,
}

impl Deferral {
    /// The rule of a spec; `None` if no job is deferred.
    ///
    /// # Errors
    /// The signal's values are missing.
    pub(super) fn new(spec: &SimSpec) -> Result<Option<Deferral>, SimError> {
        let choice = spec.choice(Role::Deferral);
        if *choice.component() == NONE {
            return Ok(None);
        }
        let name = choice.component().name;
        let rule = chosen!(choice.component(), (choice))
            .ok_or_else(|| SimError::Invalid(format!("the batch policy does not know the deferral `{name}`")))?;
        let signal = spec.signal(Role::Deferral, rule::DEFER_SIGNAL.name)?;
        let signal = signal.ok_or_else(|| SimError::Invalid(format!("deferral `{name}` needs `defer_signal`")))?;
        Ok(Some(Deferral {
            rule,
            forecast: Forecast::new(choice, &signal, spec.seed),
            wait_max_s: choice.real(rule::DEFER_WAIT_MAX_S.name),
            share: choice.real(rule::DEFER_SHARE.name),
            draws: Philox::stream(spec.seed, Purpose::Deferral),
            arrived: Vec::new(),
            held: BTreeMap::new(),
            groups: Default::default(),
            timer_s: f64::INFINITY,
            suspension: suspends(spec).then(|| Suspension::new(rule::of_run(choice))),
        }))
    }

    /// A job has arrived.
    pub(super) fn submitted(&mut self, job: JobId) {
        self.arrived.push(job);
    }

    /// The timer is due.
    pub(super) fn timer(&mut self) {
        self.timer_s = f64::INFINITY;
    }

    /// The running jobs that were suspended or resumed, if there are any; the caller takes them.
    #[inline]
    pub(super) fn changed(&mut self) -> Option<&mut Vec<JobId>> {
        self.suspension.as_mut().map(|suspension| &mut suspension.changed).filter(|changed| !changed.is_empty())
    }

    /// Whether jobs that have started in a pass may be suspended.
    #[inline]
    pub(super) fn suspends(&self) -> bool {
        self.suspension.is_some()
    }

    /// Whether nothing can change now.
    #[inline]
    pub(super) fn is_idle(&self, now_s: f64) -> bool {
        self.arrived.is_empty() && !self.is_due(now_s)
    }

    /// Whether a held or a running job may change now: the timer that is set is not for a later instant.
    #[inline]
    fn is_due(&self, now_s: f64) -> bool {
        now_s >= self.timer_s || self.timer_s == f64::INFINITY || !self.forecast.is_present(now_s)
    }

    /// Before the scheduling pass: suspends and resumes running jobs, and adds the jobs that enter the queue now to
    /// `released`, arrived ones last.
    pub(super) fn release<R: Recorder>(
        &mut self,
        cluster: &mut Cluster<'_, R>,
        released: &mut Vec<JobId>,
    ) -> Result<()> {
        let is_due = self.is_due(cluster.now_s());
        if is_due {
            self.release_held(cluster, released)?;
        }
        for at in 0..self.arrived.len() {
            let job = self.arrived[at];
            // One number for each job, so that a share changes no other draw.
            let stays = self.share < 1.0 && self.draws.uniform() >= self.share;
            if let Some(suspension) = self.suspension.as_mut().filter(|_| stays) {
                suspension.exempt(job);
            }
            if stays || self.enters(cluster, job)? {
                released.push(job);
            }
        }
        self.arrived.clear();
        if is_due {
            self.review(cluster)?;
        }
        let mut next_s = self.held.first_key_value().map_or(f64::INFINITY, |(key, _)| key_time(*key));
        for group in &self.groups {
            if let Some(first) = group.front() {
                next_s = next_s.min(cluster.submit_s(*first) + self.wait_max_s);
                next_s = next_s.min(self.forecast.next_s());
            }
        }
        self.set_timer(next_s, cluster)
    }

    /// Adds the held jobs that enter the queue now to `released`.
    fn release_held<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, released: &mut Vec<JobId>) -> Result<()> {
        let now_s = cluster.now_s();
        while let Some(first) = self.held.first_entry()
            && key_time(*first.key()) <= now_s
        {
            released.extend(first.remove());
        }
        let together = released.len();
        if self.groups.iter().any(|group| !group.is_empty()) {
            self.issue(now_s)?;
            self.forecast.reach(now_s);
            let changes = self.forecast.present_s() == now_s;
            for (number, group) in self.groups.iter_mut().enumerate().filter(|(_, group)| !group.is_empty()) {
                if changes && each!(&mut self.rule, rule => rule.opens(number, now_s, &mut self.forecast)) {
                    released.extend(group.drain(..));
                }
                while let Some(job) = group.pop_front_if(|job| cluster.submit_s(*job) + self.wait_max_s <= now_s) {
                    released.push(job);
                }
            }
        }
        // Groups do not go before one another: jobs are numbered by submission.
        released[together..].sort_unstable();
        Ok(())
    }

    /// Suspends and resumes running jobs, if it is time to ask the rule about them.
    fn review<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        if !self.suspension.as_ref().is_some_and(Suspension::has_jobs) {
            return Ok(());
        }
        self.issue(cluster.now_s())?;
        let (Some(suspension), forecast) = (&mut self.suspension, &mut self.forecast) else { return Ok(()) };
        if suspension.is_due(cluster.now_s(), forecast) {
            suspension.review(&mut self.rule, forecast, cluster)?;
        }
        self.set_review_timer(cluster)
    }

    /// After the scheduling pass: suspends jobs that have started in it.
    pub(super) fn after_pass<R: Recorder>(
        &mut self,
        started: &[(JobId, u8)],
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        if started.is_empty() {
            return Ok(());
        }
        self.issue(cluster.now_s())?;
        let (Some(suspension), forecast) = (&mut self.suspension, &mut self.forecast) else { return Ok(()) };
        for (job, _) in started {
            suspension.started(*job, self.wait_max_s, &mut self.rule, forecast, cluster)?;
        }
        self.set_review_timer(cluster)
    }

    /// Sets the timer for the next question about running jobs.
    fn set_review_timer<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let Some(suspension) = self.suspension.as_ref().filter(|suspension| suspension.has_jobs()) else {
            return Ok(());
        };
        self.forecast.reach(cluster.now_s());
        let next_s = self.forecast.next_s().min(suspension.resume_s());
        self.set_timer(next_s, cluster)
    }

    /// Moves the timer to an instant if it is earlier.
    fn set_timer<R: Recorder>(&mut self, next_s: f64, cluster: &mut Cluster<'_, R>) -> Result<()> {
        if next_s < self.timer_s {
            cluster.move_timer(next_s, TOKEN)?;
            self.timer_s = next_s;
        }
        Ok(())
    }

    /// Whether an arrived job enters the queue at once; otherwise it is held.
    fn enters<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) -> Result<bool> {
        let now_s = cluster.now_s();
        self.issue(now_s)?;
        let latest_s = cluster.submit_s(job) + self.wait_max_s;
        let ask = Ask { now_s, latest_s, estimate_s: cluster.estimate_s(job), run_s: cluster.true_run_s(job) };
        match each!(&mut self.rule, rule => rule.decide(&ask, &mut self.forecast)) {
            Verdict::Now => return Ok(true),
            Verdict::At(at_s) => self.held.entry(time_key(at_s)).or_default().push(job),
            Verdict::With(group) => self.groups[group].push_back(job),
        }
        Ok(false)
    }

    #[inline]
    fn issue(&mut self, now_s: f64) -> Result<()> {
        if self.forecast.issue(now_s) {
            return Ok(());
        }
        Err(Stop::new(SimError::NotCovered { key: rule::DEFER_SIGNAL.name, now_s }))
    }
}
