//! Starts of jobs at their reservations.
use super::{Replan, Reservations, Reserved};
use crate::batch::kernel::{Cluster, Recorder};
use crate::batch::policy::backfill::resources::Resources;
use crate::batch::policy::gear::Gears;
use crate::batch::policy::order::Order;
use crate::error::Result;

/// Result of starting the jobs whose reservations are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Started {
    /// The jobs whose procs were free have started as reserved.
    AsReserved,
    /// The power did not fit for one job; others may have started.
    Refused,
    /// The last job ends later than reserved.
    Longer,
}

impl<A: Resources> Reservations<A> {
    /// Starts the jobs whose reservation is due. If the power prevents a start as reserved, all reservations are placed
    /// again, and the remaining jobs are tried again. `fresh`: the profile was made in this pass, without the
    /// reservations of earlier passes.
    pub(super) fn start_all_due<G: Gears, R: Recorder>(
        &mut self,
        mut fresh: bool,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        // Under a cap, the first job of the queue is asked for after the pass.
        if A::CAPPED || self.next_s <= cluster.now_s() {
            self.sort(order, cluster);
        }
        while self.next_s <= cluster.now_s() {
            match self.start_due(cluster)? {
                Started::AsReserved => break,
                // On a fresh profile, the missing watts are those of a job that outlives its estimate.
                Started::Refused if fresh => break,
                Started::Refused | Started::Longer => {
                    self.profile = Some(self.new_profile(false, cluster));
                    self.place_all(Replan::OnNewProfile, order, gears, cluster)?;
                    fresh = true;
                }
            }
        }
        Ok(())
    }

    /// Starts the jobs whose reservation is due and whose procs are free, up to one that ends later than reserved.
    fn start_due<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<Started> {
        let now_s = cluster.now_s();
        self.next_s = f64::INFINITY;
        let mut kept = 0;
        let mut outcome = Started::AsReserved;
        for i in 0..self.queue.len() {
            let reserved = self.queue[i];
            let Reserved { job, place, .. } = reserved;
            if outcome != Started::Longer && place.start_s <= now_s && cluster.fits(job) {
                if let Some(gear) = A::start_gear(cluster, &self.allowance, job, place.gear) {
                    cluster.step()?;
                    cluster.start(job, gear, kept > 0)?;
                    if A::CAPPED {
                        self.started.push((job, place.ceiling));
                        outcome = if gear == place.gear { outcome } else { Started::Longer };
                    }
                    continue;
                }
                outcome = Started::Refused;
            }
            self.next_s = self.next_s.min(place.start_s);
            self.queue[kept] = reserved;
            kept += 1;
        }
        self.queue.truncate(kept);
        Ok(outcome)
    }
}
