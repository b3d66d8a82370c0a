//! The scheduler of TracSim: one priority after the other.
use super::list::{List, ListRule, Listed, Waiting};
use crate::batch::kernel::{Cluster, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::gear::Gears;
use crate::error::Stop;
use crate::spec::{Component, Role, SimSpec};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Backfill,
    name: "within-priority",
    version: 1,
    source: "Zhang et al. 2014, Algorithm 1",
    doc: "Any job of the highest waiting priority that fits starts, in list order; free procs wait for these until all of \
          them have started, then the next priority follows. For `queue_order` = \"priority\".",
    problems: |spec| by_priority(spec).into_iter().collect(),
    ..Component::BATCH
};

/// What is wrong with a rule that takes one priority after the other.
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

/// Jobs of the highest priority that waits may overtake each other; the others wait until all of it have started.
#[derive(Debug, Clone)]
pub(in crate::batch::policy) struct Rule;

impl ListRule for Rule {
    fn of(_: &SimSpec, _: &Machine) -> Option<Rule> {
        Some(Rule)
    }

    fn pass<G: Gears, R: Recorder>(
        &mut self,
        list: &mut List,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        let mut room = list.room(cluster);
        // That of the first job that stays: once the last of a priority has started, the next is first.
        let mut priority = None;
        for at in 0..list.waiting().len() {
            let Waiting { job, procs, .. } = list.waiting()[at];
            let own = Some(cluster.priority(job));
            if room.widest == 0 || (priority.is_some() && priority != own) {
                break;
            }
            cluster.step()?;
            let start = if procs <= room.widest { list.fitting(job, &room, gears, cluster) } else { None };
            let Some(start) = start else {
                priority = own;
                continue;
            };
            list.start(at, start, priority.is_some(), cluster)?;
            room = list.room(cluster);
        }
        list.leave();
        Ok(())
    }
}
