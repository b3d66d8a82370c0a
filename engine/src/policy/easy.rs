//! FCFS and EASY backfilling: one pass over a [`Queue`].
//!
//! A pass skips what provably cannot start. Between two completions nothing improves for a waiting job: free procs and
//! the extra procs only shrink, the shadow time stays (jobs started since end by it or run on extra procs), and the
//! clock moves towards it. So after arrivals alone only the new jobs are looked at, with the shadow of the last sweep;
//! it is computed when the first candidate needs it. Only a shadow that has passed (jobs that outlive their estimates)
//! forces a new sweep.

use super::gear_rule::{Candidate, Gears, HeadGear};
use super::order::{Order, Sorted};
use super::queue::{Queue, Reach};
use super::releases::{Releases, Shadow};
use crate::error::SimError;
use crate::kernel::{Cluster, Ended, JobId, Recorder};

/// State of EASY between passes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Easy {
    /// Whether jobs may overtake on procs that the head leaves free.
    extra_procs: bool,
    releases: Releases,
    /// The reservation of the head, if it was needed since the last completion.
    shadow: Option<Shadow>,
    /// The head itself and everything behind it have to be looked at again.
    stale: bool,
    /// Jobs from the head on, itself included, that cannot start before something changes.
    swept: usize,
    /// Free procs after the last pass.
    free: u32,
    /// The reserved head with the gear chosen for it, unless its gear is renewed.
    reserved: Option<(JobId, u8)>,
    /// A job has ended before its estimate since the last pass.
    early_end: bool,
}

impl Easy {
    pub(crate) fn new(extra_procs: bool) -> Easy {
        Easy { extra_procs, stale: true, ..Easy::default() }
    }

    /// A job was put at a position of the queue.
    #[inline]
    pub(crate) fn submitted(&mut self, queue: &Queue, order: Order, at: usize) {
        if order != Order::Fcfs {
            let rank = at - queue.head();
            self.stale |= rank == 0 || order.sorted() == Sorted::EveryPass;
            self.swept = self.swept.min(rank);
        }
    }

    #[inline]
    pub(crate) fn ended(&mut self, now_s: f64, ended: &Ended) {
        self.releases.remove(ended.job, ended.estimated_end_s);
        self.stale = true;
        self.early_end |= now_s < ended.estimated_end_s;
    }

    #[inline]
    pub(crate) fn pass<G: Gears, R: Recorder>(
        &mut self,
        queue: &mut Queue,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), SimError> {
        let now_s = cluster.now_s();
        if self.stale || self.swept == 0 || cluster.free(0) > self.free {
            queue.sort(order, cluster);
            self.start_heads(queue, gears, cluster)?;
            self.shadow = None;
            self.stale = false;
            self.swept = 1;
        } else if self.shadow.is_some_and(|shadow| shadow.at_s < now_s) {
            self.shadow = None;
            self.swept = 1;
        }
        if gears.head_gear() != HeadGear::Renew {
            self.reserve_head(queue, gears, cluster)?;
        }
        if queue.len() > self.swept {
            self.sweep(queue, gears, cluster)?;
        }
        self.swept = queue.len();
        self.free = cluster.free(0);
        Ok(())
    }

    /// Starts jobs in order until one does not fit.
    #[inline]
    fn start_heads<G: Gears, R: Recorder>(
        &mut self,
        queue: &mut Queue,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), SimError> {
        if std::mem::take(&mut self.early_end) && gears.head_gear() == HeadGear::UntilEarlyEnd {
            self.reserved = None;
        }
        while queue.len() > 0 && queue.procs(queue.head()) <= cluster.free(0) {
            let head = queue.head();
            let (job, procs) = (queue.job(head), queue.procs(head));
            let gear = match self.reserved {
                Some((reserved, gear)) if reserved == job => gear,
                _ => gears.at(candidate(queue, head, cluster), cluster.now_s(), queue.len() - 1),
            };
            let end_s = cluster.start(job, gear, false)?;
            self.releases.add(job, procs, end_s);
            queue.pop_head();
        }
        Ok(())
    }

    /// Chooses the gear of a head that has to wait, for its reservation, unless it has one.
    fn reserve_head<G: Gears, R: Recorder>(
        &mut self,
        queue: &Queue,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), SimError> {
        if queue.len() == 0 {
            self.reserved = None;
            return Ok(());
        }
        let head = queue.head();
        let job = queue.job(head);
        if self.reserved.is_none_or(|(reserved, _)| reserved != job) {
            let start_s = self.shadow(queue, cluster)?.at_s;
            let gear = gears.at(candidate(queue, head, cluster), start_s, queue.len() - 1);
            self.reserved = Some((job, gear));
        }
        Ok(())
    }

    /// Looks once, in order, at the jobs behind the head that have not been looked at.
    #[inline]
    fn sweep<G: Gears, R: Recorder>(
        &mut self,
        queue: &mut Queue,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), SimError> {
        let now_s = cluster.now_s();
        let mut from = queue.head() + self.swept;
        let mut free = cluster.free(0);
        // The shadow is worth computing only for someone.
        if self.shadow.is_none() && queue.next_fit(from, free).is_none() {
            return Ok(());
        }
        let mut shadow = self.shadow(queue, cluster)?;
        loop {
            let extra = if self.extra_procs { shadow.extra } else { 0 };
            let Some(at) = queue.next_candidate(from, Reach { free, extra, now_s, until_s: shadow.at_s }) else {
                break;
            };
            cluster.step()?;
            from = at + 1;
            let (job, procs) = (queue.job(at), queue.procs(at));
            let on_extra = procs <= extra;
            let candidate = candidate(queue, at, cluster);
            let Some((gear, late)) = gears.overtaking(candidate, now_s, queue.len() - 1, shadow.at_s, on_extra) else {
                continue;
            };
            let end_s = cluster.start(job, gear, true)?;
            self.releases.add(job, procs, end_s);
            queue.take(at);
            free -= procs;
            if late {
                shadow.extra -= procs;
                self.shadow = Some(shadow);
            }
        }
        queue.close_gaps();
        Ok(())
    }

    /// The head's reservation.
    #[inline]
    fn shadow<R: Recorder>(&mut self, queue: &Queue, cluster: &Cluster<'_, R>) -> Result<Shadow, SimError> {
        if let Some(shadow) = self.shadow {
            return Ok(shadow);
        }
        let head = queue.head();
        let (free, need) = (cluster.free(0), queue.procs(head));
        let shadow = self.releases.shadow(cluster.now_s(), free, need).ok_or_else(|| SimError::Policy {
            now_s: cluster.now_s(),
            what: format!("no end of a running job gives job {} (by arrival) its {need} procs", queue.job(head)),
        })?;
        self.shadow = Some(shadow);
        Ok(shadow)
    }
}

/// Starts jobs in order until one does not fit: scheduling without backfilling.
pub(crate) fn pass_without_backfilling<G: Gears, R: Recorder>(
    queue: &mut Queue,
    order: Order,
    gears: &G,
    cluster: &mut Cluster<'_, R>,
) -> Result<(), SimError> {
    queue.sort(order, cluster);
    while queue.len() > 0 && queue.procs(queue.head()) <= cluster.free(0) {
        let head = queue.head();
        let gear = gears.at(candidate(queue, head, cluster), cluster.now_s(), queue.len() - 1);
        cluster.start(queue.job(head), gear, false)?;
        queue.pop_head();
    }
    Ok(())
}

#[inline]
fn candidate<R: Recorder>(queue: &Queue, at: usize, cluster: &Cluster<'_, R>) -> Candidate {
    Candidate { submit_s: cluster.submit_s(queue.job(at)), estimate_s: queue.estimate_s(at) }
}
