//! The scheduler of TracSim: jobs of one priority start before those of the next.
use super::list::{List, ListRule, Listed, Waiting};
use crate::batch::kernel::{Cluster, Recorder};
use crate::batch::policy::gear::Gears;
use crate::error::Result;
use crate::spec::{Component, Role, SimSpec};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Backfill,
    name: "within-priority",
    version: 1,
    source: "Zhang et al. 2014, Algorithm 1",
    doc: "Any job of the highest waiting priority that fits starts, in order of arrival; the next priority follows once \
          all of them have started. For `queue_order` = \"priority\".",
    reads: "Free procs and priorities; with a power cap also watts. No estimate.",
    guarantees: "No job starts while a job of a higher priority waits. Within a priority, waits have no bound: a \
                 wide job may starve while narrower ones fit.",
    problems: |spec| by_priority(spec).into_iter().collect(),
    ..Component::BATCH
};

/// The problem of a rule that takes one priority after the other, if the queue order is another one.
pub(super) fn by_priority(spec: &SimSpec) -> Option<String> {
    let name = |role: Role| spec.choice(role).component().name;
    (name(Role::Order) != "priority").then(|| {
        format!(
            "`backfill` = \"{}\" takes one priority after the other: it needs `queue_order` = \"priority\", not \"{}\"",
            name(Role::Backfill),
            name(Role::Order)
        )
    })
}

/// A list under the rule.
pub(in crate::batch::policy) type WithinPriority = Listed<Rule>;

/// Jobs of the highest waiting priority may overtake each other; jobs of the next priority wait until all of them have
/// started.
#[derive(Debug, Clone, Default)]
pub(in crate::batch::policy) struct Rule;

impl ListRule for Rule {
    fn pass<G: Gears, R: Recorder>(&mut self, list: &mut List, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let mut headroom = list.headroom(cluster);
        // Priority of the first job that does not start. While all jobs of a priority start, the next one follows.
        let mut priority = None;
        for at in 0..list.waiting().len() {
            let Waiting { job, procs, .. } = list.waiting()[at];
            let own = Some(cluster.priority(job));
            if headroom.widest == 0 || (priority.is_some() && priority != own) {
                break;
            }
            cluster.step()?;
            let start = if procs <= headroom.widest { list.fitting(job, &headroom, gears, cluster) } else { None };
            let Some(start) = start else {
                priority = own;
                continue;
            };
            list.start(at, start, priority.is_some(), cluster)?;
            headroom = list.headroom(cluster);
        }
        list.remove_started();
        Ok(())
    }
}
