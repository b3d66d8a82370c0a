//! Batch scheduling of rigid jobs, composed of order, backfill and gear rule.
use super::backfill::Waiting;
use super::cap::allowance::Allowance;
use super::gear::{GearRule, Gears, UnderGears, top::Top};
use super::order::Order;
use crate::batch::kernel::{Cluster, Copied, Ended, EventOrder, JobId, Policy, Recorder};
use crate::batch::platform::Machine;
use crate::error::{SimError, Stop};
use crate::spec::{Component, Default, Param, Role, SimSpec, Type};

/// Description of the composed batch policy.
pub const COMPONENT: Component = Component {
    role: Role::Policy,
    name: "batch",
    version: 1,
    source: "Mu'alem & Feitelson 2001",
    doc: "Rigid jobs in one queue, scheduled by an order, a backfilling rule and a gear rule.",
    params: &[Param {
        name: "event_order",
        ty: Type::OneOf(&["batch", "submit-first", "finish-first"]),
        unit: "",
        default: Default::Text("batch"),
        doc: "How the events of one instant are handled: `batch` takes all completions, then all submissions, then one \
              scheduling pass; `submit-first` makes a pass after every event, submissions first, and a running job \
              whose estimated end has come counts as ended; `finish-first` makes a pass after every event, \
              completions first.",
    }],
    ..Component::BATCH
};

/// The composed batch policy: one type for all combinations of order, backfilling and gear rule.
///
/// [`Policy::pass`] branches once on the rules and then runs code compiled for them; FCFS + EASY, what most sweeps are made
/// of, has a branch of its own.
#[derive(Debug, Clone)]
pub struct Batch {
    order: Order,
    waiting: Waiting,
    gears: GearRule,
}

impl Batch {
    /// The policy of a spec on a machine.
    ///
    /// # Errors
    /// [`SimError::Invalid`] if a component is not known to the batch policy.
    pub fn new(spec: &SimSpec, machine: &Machine) -> Result<Batch, SimError> {
        let name = |role| spec.choice(role).component().name;
        let unknown = |role: Role| {
            SimError::Invalid(format!("the batch policy does not know the {} `{}`", role.key(), name(role)))
        };
        Ok(Batch {
            order: Order::of(name(Role::Order)).ok_or_else(|| unknown(Role::Order))?,
            waiting: Waiting::of(spec, machine).ok_or_else(|| unknown(Role::Backfill))?,
            gears: GearRule::of(spec, machine).ok_or_else(|| unknown(Role::GearRule))?,
        })
    }

    /// Strict first come, first served at the top gear: what fairness is measured against.
    pub fn strict_fcfs(machine: &Machine) -> Batch {
        Batch { order: Order::Fcfs, waiting: Waiting::in_order(machine), gears: GearRule::Top(Top::new(machine, true)) }
    }

    /// The waiting jobs and their rule.
    pub(super) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// How jobs may start from now on; only for a policy made under a power cap.
    pub(super) fn allow(&mut self, allowance: Allowance) {
        self.waiting.allow(allowance);
    }

    /// Procs have been put to sleep or woken since the last pass, or have finished waking.
    pub(super) fn procs_changed(&mut self) {
        self.waiting.procs_changed();
    }

    /// A pass may come though no job arrived or ended: the queue is sorted anew if places in it change with time.
    pub(super) fn time_passed(&mut self) {
        self.waiting.time_passed(self.order);
    }

    /// The policy for a copy of the cluster, with the same jobs waiting. What it has found out is not copied: its first
    /// pass looks at all jobs, and conservative backfilling places all reservations anew.
    pub(super) fn fork<R: Recorder>(&self, copied: &Copied, copy: &Cluster<'_, R>) -> Batch {
        let waiting = self.waiting.fork(self.order, copied, copy);
        Batch { order: self.order, waiting, gears: self.gears.clone() }
    }
}

/// The event order that a spec chooses.
///
/// # Errors
/// [`SimError::Invalid`] for an unknown name.
pub fn event_order(spec: &SimSpec) -> Result<EventOrder, SimError> {
    match spec.choice(Role::Policy).text("event_order") {
        "batch" => Ok(EventOrder::Batch),
        "submit-first" => Ok(EventOrder::SubmitFirst),
        "finish-first" => Ok(EventOrder::FinishFirst),
        other => Err(SimError::Invalid(format!("the kernel does not know the event_order `{other}`"))),
    }
}

impl Policy for Batch {
    #[inline(always)]
    fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.waiting.submitted(self.order, cluster, job);
    }

    #[inline(always)]
    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        self.waiting.ended(cluster, ended);
    }

    #[inline(always)]
    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        // What most arrivals at a busy machine come to.
        if self.waiting.refuses_all(cluster) {
            return Ok(());
        }
        self.gears.under(Pass { waiting: &mut self.waiting, order: self.order, cluster })
    }
}

/// A pass that looks at the jobs.
struct Pass<'a, 'c, R> {
    waiting: &'a mut Waiting,
    order: Order,
    cluster: &'a mut Cluster<'c, R>,
}

impl<R: Recorder> UnderGears for Pass<'_, '_, R> {
    type Output = Result<(), Stop>;

    #[inline(always)]
    fn run<G: Gears>(self, gears: &G) -> Result<(), Stop> {
        self.waiting.pass(self.order, gears, self.cluster)
    }
}
