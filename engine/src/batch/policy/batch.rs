//! Batch scheduling of rigid jobs, composed of order, backfill and gear rule.
use super::backfill::conservative::Conservative;
use super::backfill::easy::{Easy, pass_without_backfilling};
use super::backfill::plain::{Plain, Rule};
use super::backfill::queue::Queue;
use super::backfill::resources::ProcsAndWatts;
use super::cap::allowance::Allowance;
use super::gear::{GearRule, Gears, Top, top};
use super::order::Order;
use crate::batch::kernel::{Cluster, Copied, Ended, EventOrder, JobId, Policy, Recorder};
use crate::batch::platform::Machine;
use crate::error::{SimError, Stop};
use crate::spec::{Choice, Component, Default, Param, Role, SimSpec, Type};

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
        identity: true,
        doc: "How the events of one instant are handled: `batch` takes all completions, then all submissions, then one \
              scheduling pass; `submit-first` makes a pass after every event, submissions first, and a running job \
              whose estimated end has come counts as ended; `finish-first` makes a pass after every event, \
              completions first.",
    }],
};

/// Waiting jobs under the chosen backfilling rule.
#[derive(Debug, Clone)]
pub(super) enum Waiting {
    /// No backfilling.
    InOrder(Queue),
    /// EASY.
    Easy(Queue, Easy),
    /// Conservative: queue and reservations in one.
    Conservative(Conservative<i64>),
    /// The same under a power cap.
    ConservativeCapped(Box<Conservative<ProcsAndWatts>>),
    /// Whatever has no fast code, and everything else under a power cap.
    Plain(Box<Plain>),
}

/// The composed batch policy: one type for all combinations of order, backfilling and gear rule.
///
/// [`Policy::pass`] branches once on the components and then runs code compiled for the gear rule at hand; FCFS + EASY, what
/// most sweeps are made of, has a branch of its own.
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
        let order = Order::of(name(Role::Order)).ok_or_else(|| unknown(Role::Order))?;
        let backfill = spec.choice(Role::Backfill);
        let queue = Queue::new(machine.procs());
        let capped = name(Role::Cap) != "none";
        let plain = |rule: Rule| Waiting::Plain(Box::new(Plain::new(rule)));
        let waiting = match backfill.component().name {
            "none" if capped => plain(Rule::InOrder),
            "easy" if capped => plain(Rule::Easy { extra_procs: backfill.bool("extra_procs") }),
            "within-priority" => plain(Rule::WithinPriority),
            "knapsack" => plain(Rule::Knapsack),
            "none" => Waiting::InOrder(queue),
            "easy" => Waiting::Easy(queue, Easy::new(backfill.bool("extra_procs"))),
            "conservative" if capped => Waiting::ConservativeCapped(Box::new(Conservative::new())),
            "conservative" => Waiting::Conservative(Conservative::new()),
            _ => return Err(unknown(Role::Backfill)),
        };
        let gears =
            GearRule::of(spec.choice(Role::GearRule), &machine.classes[0]).ok_or_else(|| unknown(Role::GearRule))?;
        Ok(Batch { order, waiting, gears })
    }

    /// How jobs may start from now on; only for a policy made under a power cap.
    pub(crate) fn allow(&mut self, allowance: Allowance) {
        match &mut self.waiting {
            Waiting::Plain(plain) => plain.allow(allowance),
            Waiting::ConservativeCapped(conservative) => conservative.allow(allowance),
            Waiting::InOrder(_) | Waiting::Easy(..) | Waiting::Conservative(_) => {}
        }
    }

    /// The jobs that the last pass started, with the ceilings of their gears; none but under a power cap.
    pub(crate) fn started(&self) -> &[(JobId, u8)] {
        match &self.waiting {
            Waiting::Plain(plain) => plain.started(),
            Waiting::ConservativeCapped(conservative) => conservative.started(),
            Waiting::InOrder(_) | Waiting::Easy(..) | Waiting::Conservative(_) => &[],
        }
    }

    /// The first waiting job; none but under a power cap.
    pub(crate) fn first_waiting(&self) -> Option<JobId> {
        match &self.waiting {
            Waiting::Plain(plain) => plain.jobs().next(),
            Waiting::ConservativeCapped(conservative) => conservative.jobs().next(),
            Waiting::InOrder(_) | Waiting::Easy(..) | Waiting::Conservative(_) => None,
        }
    }

    /// Whether a waiting job has a reservation under the power cap that is still to come.
    pub(crate) fn waits_for_reservation(&self, now_s: f64) -> bool {
        matches!(&self.waiting, Waiting::ConservativeCapped(conservative) if conservative.waits_for_reservation(now_s))
    }

    /// Strict first come, first served at the top gear: what fairness is measured against.
    pub fn strict_fcfs(machine: &Machine) -> Batch {
        Batch {
            order: Order::Fcfs,
            waiting: Waiting::InOrder(Queue::new(machine.procs())),
            gears: GearRule::Top(Top::of(&Choice::new(&top::COMPONENT), &machine.classes[0])),
        }
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

impl Batch {
    /// The waiting jobs, in no order that matters.
    pub(crate) fn waiting(&self) -> Vec<JobId> {
        match &self.waiting {
            Waiting::InOrder(queue) | Waiting::Easy(queue, _) => queue.jobs().collect(),
            Waiting::Conservative(conservative) => conservative.jobs().collect(),
            Waiting::ConservativeCapped(conservative) => conservative.jobs().collect(),
            Waiting::Plain(plain) => plain.jobs().collect(),
        }
    }

    /// Whether no waiting job needs more procs.
    pub(crate) fn all_need_at_most<R: Recorder>(&self, procs: u32, cluster: &Cluster<'_, R>) -> bool {
        match &self.waiting {
            Waiting::InOrder(queue) | Waiting::Easy(queue, _) => queue.jobs().all(|job| cluster.procs(job) <= procs),
            Waiting::Plain(plain) => plain.jobs().all(|job| cluster.procs(job) <= procs),
            Waiting::Conservative(conservative) => conservative.jobs().all(|job| cluster.procs(job) <= procs),
            Waiting::ConservativeCapped(conservative) => conservative.jobs().all(|job| cluster.procs(job) <= procs),
        }
    }

    /// Procs have been put to sleep or woken since the last pass, or have finished waking.
    pub(crate) fn procs_changed(&mut self) {
        match &mut self.waiting {
            Waiting::InOrder(_) | Waiting::Plain(_) => {}
            Waiting::Easy(_, easy) => easy.procs_changed(),
            Waiting::Conservative(conservative) => conservative.forget(),
            Waiting::ConservativeCapped(conservative) => conservative.forget(),
        }
    }

    /// A pass may come though no job arrived or ended: the queue is sorted anew if places in it change with time.
    pub(crate) fn time_passed(&mut self) {
        if let Waiting::Easy(_, easy) = &mut self.waiting
            && self.order.changes()
        {
            easy.places_changed();
        }
    }

    /// The policy for a copy of the cluster, with the same jobs waiting. What it has found out is not copied: its first
    /// pass looks at all jobs, and conservative backfilling places all reservations anew.
    pub(crate) fn fork<R: Recorder>(&self, copied: &Copied, copy: &Cluster<'_, R>) -> Batch {
        let waiting = match &self.waiting {
            Waiting::InOrder(_) => Waiting::InOrder(Queue::new(copy.machine().procs())),
            Waiting::Easy(_, easy) => Waiting::Easy(Queue::new(copy.machine().procs()), easy.fork(copied, copy)),
            Waiting::Conservative(conservative) => Waiting::Conservative(conservative.fork()),
            Waiting::ConservativeCapped(conservative) => Waiting::ConservativeCapped(Box::new(conservative.fork())),
            Waiting::Plain(plain) => Waiting::Plain(Box::new(plain.fork())),
        };
        let mut fork = Batch { order: self.order, waiting, gears: self.gears.clone() };
        let mut jobs: Vec<JobId> = self.waiting().into_iter().filter_map(|job| copied.number(job)).collect();
        if !matches!(fork.waiting, Waiting::Conservative(_) | Waiting::ConservativeCapped(_)) {
            // A queue sorts by itself, but from arrivals in order.
            jobs.sort_unstable();
        }
        for job in jobs {
            fork.submitted(copy, job);
        }
        fork
    }
}

impl Policy for Batch {
    #[inline(always)]
    fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        // A branch of its own, here and below: the most common rule is not reached through a table of jumps.
        if let Waiting::Easy(queue, easy) = &mut self.waiting {
            let at = queue.insert(self.order, cluster, job);
            return easy.submitted(queue, self.order, at);
        }
        match &mut self.waiting {
            Waiting::Easy(..) => {}
            Waiting::InOrder(queue) => {
                queue.insert(self.order, cluster, job);
            }
            Waiting::Conservative(conservative) => conservative.submitted(job),
            Waiting::ConservativeCapped(conservative) => conservative.submitted(job),
            Waiting::Plain(plain) => plain.submitted(self.order, cluster, job),
        }
    }

    #[inline(always)]
    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        if let Waiting::Easy(_, easy) = &mut self.waiting {
            return easy.ended(cluster.now_s(), ended);
        }
        match &mut self.waiting {
            Waiting::InOrder(_) | Waiting::Easy(..) | Waiting::Plain(_) => {}
            Waiting::Conservative(conservative) => conservative.ended(cluster.now_s(), ended),
            Waiting::ConservativeCapped(conservative) => conservative.ended(cluster.now_s(), ended),
        }
    }

    #[inline(always)]
    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        // What most arrivals at a busy machine come to.
        if let Waiting::Easy(queue, easy) = &mut self.waiting
            && easy.refuses_all(queue, cluster)
        {
            return Ok(());
        }
        self.gears.pass(&mut self.waiting, self.order, cluster)
    }
}

impl Waiting {
    /// A pass that looks at the jobs.
    #[inline(always)]
    pub(super) fn pass<G: Gears, R: Recorder>(
        &mut self,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        if let Waiting::Easy(queue, easy) = self
            && order.is_fcfs()
        {
            // The order is a constant here, so that its branches fold away.
            return easy.pass(queue, Order::Fcfs, gears, cluster);
        }
        match self {
            Waiting::Easy(queue, easy) => easy.pass(queue, order, gears, cluster),
            Waiting::InOrder(queue) => pass_without_backfilling(queue, order, gears, cluster),
            Waiting::Conservative(all) => all.pass(order, gears, cluster),
            Waiting::ConservativeCapped(all) => all.pass(order, gears, cluster),
            Waiting::Plain(plain) => plain.pass(order, gears, cluster),
        }
    }
}
