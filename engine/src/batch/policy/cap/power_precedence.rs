//! Jobs run at their ceilings, and are suspended while the power exceeds the cap.
use super::allowance::Allowance;
use super::held::HeldJobs;
use super::rule::{CAP, CapRule, LeastGear};
use crate::batch::kernel::{Cluster, Recorder};
use crate::error::Result;
use crate::spec::Component;

/// Description of the rule.
pub const COMPONENT: Component = Component {
    name: "power-precedence",
    version: 2,
    source: "Zhang et al. 2014, section V.B",
    doc: "Jobs start at any power. After each event all are resumed, then suspended until the power fits, the lowest \
          priority first, of equal ones the last to arrive first. Suspended jobs keep their procs, which draw idle power.",
    reads: "The power of the machine, the cap, the watts of jobs as far as they are known, and priorities.",
    guarantees: "After each event, the known power exceeds the cap only if all jobs are suspended. Run times have \
                 no bound: a suspended job keeps its procs and does not go on.",
    ..CAP
};

/// The rule `power-precedence`.
#[derive(Debug, Clone, Default)]
pub(super) struct PowerPrecedence;

impl CapRule for PowerPrecedence {
    fn allowance(&self, _: f64) -> Allowance {
        Allowance::ANY
    }

    fn least_gear(&self) -> LeastGear {
        LeastGear::OfGearRule
    }

    /// Suspends jobs until the power fits, and resumes the others. It does so at every event, because procs that fall
    /// asleep or wake change the power, too.
    fn after_pass<R: Recorder>(&self, held: &mut HeldJobs, changed: bool, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let present_w = cluster.power_w();
        // The last pass changed nothing with the same numbers. A sum after a change is rounded otherwise.
        if !changed && held.settled_w == Some(present_w) && !cluster.has_scales() {
            return Ok(());
        }
        let suspended_w = held.jobs.iter().filter(|held| held.suspended).map(|held| held.added_w(cluster));
        let mut power_w = present_w + suspended_w.sum::<f64>();
        let mut suspended_procs = cluster.suspended();
        let mut steps = 0;
        for job in held.jobs.iter_mut().rev() {
            let suspend = power_w > held.limit_w;
            if !suspend && suspended_procs == 0 {
                break;
            }
            steps += 1;
            if suspend {
                power_w -= job.added_w(cluster);
            }
            suspended_procs -= if job.suspended { job.procs } else { 0 };
            if suspend != job.suspended {
                job.suspended = suspend;
                if suspend {
                    cluster.suspend(job.job)?;
                } else {
                    cluster.resume(job.job)?;
                }
                held.rescheduled.push(job.job);
            }
        }
        cluster.count_steps(steps)?;
        held.settled_w = held.rescheduled.is_empty().then_some(present_w);
        Ok(())
    }
}
