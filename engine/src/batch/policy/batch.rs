//! Batch scheduling of rigid jobs, composed of order, backfill and gear rule.
use super::backfill::BackfillRule;
use super::gear::{GearRule, each_gear_rule, top::Top};
use super::order::ChosenOrder;
use crate::batch::kernel::{Cluster, Copied, Ended, EventOrder, JobId, Passes, Policy, Recorder};
use crate::batch::platform::Machine;
use crate::error::{Result, SimError};
use crate::spec::{Component, Default, Param, Role, SimSpec, Type};

/// Description of the composed batch policy.
pub const COMPONENT: Component = Component {
    role: Role::Policy,
    name: "batch",
    version: 1,
    source: "Mu'alem & Feitelson 2001",
    doc: "Rigid jobs in one queue, scheduled by an order, a backfilling rule and a gear rule.",
    params: &[
        Param {
            name: "event_order",
            ty: Type::OneOf(&["batch", "submit-first", "submit-first-held", "finish-first"]),
            unit: "",
            default: Default::Text("batch"),
            doc: "How the events of one instant are handled: `batch` takes all completions, then all submissions, then one \
              scheduling pass; `submit-first` makes a pass after every event, submissions first, and a job that completes now \
              and whose estimated end has come has released its procs before them; `submit-first-held` does so, too, but a \
              running job holds its procs until its completion; `finish-first` makes a pass after every event, \
              completions first.",
        },
        Param::one_of(
            "pass_at_submission",
            &["always", "if-fits"],
            "Which submissions a scheduling pass follows: `if-fits` waits for the next completion if too few procs are free for \
             the job (the scheduler of Gaussier et al. 2015). Until then such a job takes no part in the schedule: it has no \
             reservation. Without a `predictor`, both start the same jobs with `queue_order` = \"fcfs\", `backfill` = \"none\" \
             or \"easy\", and `gear_rule` = \"top\", if no job outlives its estimate.",
        ),
        Param {
            name: "pass_at_correction",
            ty: Type::Bool,
            unit: "",
            default: Default::Bool(true),
            doc: "Whether a scheduling pass follows the correction of a prediction; false waits for the next submission or \
                  completion (Gaussier et al. 2015).",
        },
    ],
    problems: passes_problems,
    ..Component::BATCH
};

/// The problems of parameters that leave out passes: a capacity rule, a cap and a deferral rule have passes of their own, and
/// most of them need one at every event, too.
fn passes_problems(spec: &SimSpec) -> Vec<String> {
    let changed = ["pass_at_submission", "pass_at_correction"].into_iter();
    let changed = changed.filter(|name| !spec.choice(Role::Policy).is_default(name));
    let others = [Role::Capacity, Role::Cap, Role::Deferral].into_iter();
    let other = others.map(|role| (role, spec.choice(role).component().name)).find(|(_, name)| *name != "none");
    let problem = |(name, (role, other)): (&str, (Role, &str))| {
        let key = role.key();
        format!("`{name}` leaves out passes, and `{key}` = \"{other}\" has passes of its own: leave out `{name}`")
    };
    changed.filter_map(|name| Some(problem((name, other?)))).collect()
}

/// After which events a spec has a pass.
pub(crate) fn passes(spec: &SimSpec) -> Passes {
    let choice = spec.choice(Role::Policy);
    Passes {
        at_every_submission: choice.text("pass_at_submission") == "always",
        at_correction: choice.bool("pass_at_correction"),
    }
}

/// The composed batch policy: one type for all combinations of order, backfilling rule and gear rule.
///
/// [`Policy::pass`] branches once on the rules and then runs code compiled for them. FCFS with EASY, the combination of
/// most sweeps, has a branch of its own.
#[derive(Debug, Clone)]
pub struct Batch {
    order: ChosenOrder,
    /// The backfilling rule, with the waiting jobs.
    pub(super) backfill: BackfillRule,
    gears: GearRule,
}

impl Batch {
    /// The policy of a spec on a machine.
    ///
    /// # Errors
    /// [`SimError::Invalid`] if the batch policy does not know a component.
    pub fn new(spec: &SimSpec, machine: &Machine) -> Result<Batch, SimError> {
        let name = |role| spec.choice(role).component().name;
        let unknown = |role: Role| {
            SimError::Invalid(format!("the batch policy does not know the {} `{}`", role.key(), name(role)))
        };
        Ok(Batch {
            order: ChosenOrder::of(spec.choice(Role::Order))?.ok_or_else(|| unknown(Role::Order))?,
            backfill: BackfillRule::of(spec, machine).ok_or_else(|| unknown(Role::Backfill))?,
            gears: GearRule::of(spec, machine).ok_or_else(|| unknown(Role::GearRule))?,
        })
    }

    /// Strict first come, first served at the top gear, the reference of the fairness metrics.
    pub fn strict_fcfs(machine: &Machine) -> Batch {
        let (backfill, gears) = (BackfillRule::in_order(machine), GearRule::Top(Top::new(machine, true)));
        Batch { order: ChosenOrder::Fcfs, backfill, gears }
    }

    /// Procs of the jobs that a pass would start if `free` procs were free and no others were about to wake; `None` if that
    /// takes a pass of a copy.
    pub(super) fn procs_of_starts<R: Recorder>(
        &mut self,
        free: u32,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<Option<u32>> {
        match &mut self.backfill {
            BackfillRule::EasyOfProcs(easy) | BackfillRule::InOrder(easy) => {
                each_gear_rule!(&self.gears, gears => easy.procs_of_starts(self.order.get(), gears, free, cluster))
            }
            _ => Ok(None),
        }
    }

    /// A pass follows, possibly without an arrival or an end since the last one.
    #[inline]
    pub(super) fn time_passed(&mut self) {
        self.backfill.time_passed(self.order.get());
    }

    /// The policy for a copy of the cluster, with the same jobs waiting. Results of earlier passes are not copied: the
    /// first pass looks at all jobs, and conservative backfilling places all reservations again.
    pub(super) fn fork<R: Recorder>(&self, copied: &Copied, copy: &Cluster<'_, R>) -> Batch {
        let order = self.order.clone();
        let backfill = self.backfill.fork(order.get(), copied, copy);
        Batch { order, backfill, gears: self.gears.clone() }
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
        "submit-first-held" => Ok(EventOrder::SubmitFirstHeld),
        "finish-first" => Ok(EventOrder::FinishFirst),
        other => Err(SimError::Invalid(format!("the kernel does not know the event_order `{other}`"))),
    }
}

impl Policy for Batch {
    #[inline(always)]
    fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.backfill.submitted(self.order.get(), cluster, job);
    }

    #[inline(always)]
    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        self.backfill.ended(cluster, ended);
    }

    fn corrected<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId, before_s: f64) {
        self.backfill.corrected(cluster, job, before_s);
        self.time_passed();
    }

    fn ended_before(&mut self) {
        self.time_passed();
    }

    #[inline(always)]
    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        // Most passes after an arrival at a busy machine end here.
        if self.backfill.refuses_all(cluster) {
            return Ok(());
        }
        each_gear_rule!(&self.gears, gears => self.backfill.pass(self.order.get(), gears, cluster))?;
        self.order.check()?;
        self.backfill.check()
    }
}
