//! Orders of the waiting queue.
//!
//! An order is a file with a [`Keyed`], which has its description and the key of a waiting job; the list [`KEYED`]
//! registers it. Two orders are of another kind: [`FCFS`], and [`formula`], whose key a manifest has.
pub mod f1;
pub mod formula;
pub mod priority;
pub mod sjf;
pub mod wfp3;
pub mod widest;

use std::sync::LazyLock;

use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::error::{Result, SimError};
use crate::spec::{Choice, Component, Role, SimSpec};
use formula::Expression;

/// The orders whose keys are functions.
pub static KEYED: &[&Keyed] = &[
    // A new order goes to the end: the columns of the results have the order of this list.
    &priority::ORDER,
    &sjf::ORDER,
    &widest::ORDER,
    &wfp3::ORDER,
    &f1::ORDER,
];

/// First come, first served.
pub const FCFS: Component = Component {
    role: Role::Order,
    name: "fcfs",
    version: 1,
    doc: "First come, first served: by submit time, ties by `arrival_ties`.",
    reads: "The instant at which a job enters the queue.",
    guarantees: "A job that enters the queue later stays behind. With `backfill` = \"none\", no job waits for ever.",
    ..Component::BATCH
};

/// Jobs overtake in queue order.
pub const AS_QUEUE: Component = Component {
    role: Role::BackfillOrder,
    name: "queue",
    version: 1,
    doc: "In queue order.",
    reads: "The queue order.",
    guarantees: "Jobs behind the head are tried in queue order.",
    ..Component::BATCH
};

/// The orders in which jobs may overtake, if they do not overtake in queue order.
pub static OF_BACKFILLING: LazyLock<Vec<Component>> = LazyLock::new(|| {
    let orders = std::iter::once(&FCFS).chain(KEYED.iter().map(|keyed| &keyed.component));
    let orders = orders.chain([&formula::OF_BACKFILLING]);
    orders
        .map(|order| Component {
            role: Role::BackfillOrder,
            guarantees: HEAD_IS_KEPT,
            problems: with_easy_alone,
            ..*order
        })
        .collect()
});

/// The guarantee of every order of overtaking.
const HEAD_IS_KEPT: &str = "The head of the queue and its reservation are those of `queue_order`: the bound of \
                            `backfill` = \"easy\" holds for the head in every order of overtaking. Jobs behind the head \
                            have no bound.";

/// The problem of an order of backfilling with a rule that reserves for more jobs than the first, or lets none overtake.
fn with_easy_alone(spec: &SimSpec) -> Vec<String> {
    let name = |role| spec.choice(role).component().name;
    let rule = name(Role::Backfill);
    let problem = || {
        format!(
            "`backfill_order` = \"{}\" is the order in which jobs overtake under `backfill` = \"easy\", and `backfill` is \
             \"{rule}\": leave out `backfill_order`",
            name(Role::BackfillOrder)
        )
    };
    (rule != "easy").then(problem).into_iter().collect()
}

/// The order of the waiting queue that a spec chooses.
#[derive(Debug, Clone)]
pub(super) enum ChosenOrder {
    /// First come, first served.
    Fcfs,
    /// By a key that is a function.
    Keyed(&'static Keyed),
    /// By an expression.
    Formula(Box<Expression>),
}

/// A [`ChosenOrder`], as the backfilling rules see it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order<'p> {
    /// First come, first served: a variant of its own, because the hot path needs no keys for it.
    Fcfs,
    /// By the key of each job.
    Keyed(&'static Keyed),
    /// By the value of an expression for each job.
    Formula(&'p Expression),
}

/// An order by a key of each waiting job.
#[derive(Debug)]
pub struct Keyed {
    /// Description of the order.
    pub component: Component,
    /// Whether the key of a waiting job changes with time: it must then never rise, and the queue is ordered at every pass.
    pub changes: bool,
    /// The key of a waiting job: the job with the least key is first, ties by arrival. Never NaN.
    pub key: fn(&Waiting) -> f64,
}

/// A waiting job, as an order sees it.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// The present instant (s).
    pub now_s: f64,
    /// First submit instant of the workload (s).
    pub first_submit_s: f64,
    /// Submit instant of the job (s).
    pub submit_s: f64,
    /// Estimated run time of the job at the top gear (s).
    pub estimate_s: f64,
    /// Procs that the job asks for.
    pub procs: f64,
    /// Priority of the job; 1 is the highest.
    pub priority: f64,
}

impl ChosenOrder {
    /// The order of a choice; `None` if this folder does not have it.
    ///
    /// # Errors
    /// [`SimError::Invalid`] for a formula that is none.
    pub(super) fn of(choice: &Choice) -> Result<Option<ChosenOrder>, SimError> {
        let name = choice.component().name;
        if name == FCFS.name {
            return Ok(Some(ChosenOrder::Fcfs));
        }
        if name == formula::COMPONENT.name {
            return Ok(Some(ChosenOrder::Formula(Box::new(Expression::of(choice)?))));
        }
        Ok(KEYED.iter().find(|keyed| keyed.component.name == name).map(|keyed| ChosenOrder::Keyed(keyed)))
    }

    /// The order in which jobs overtake; `None` for queue order.
    ///
    /// # Errors
    /// [`SimError::Invalid`] for a formula that is none.
    pub(super) fn of_backfilling(spec: &SimSpec) -> Result<Option<ChosenOrder>, SimError> {
        ChosenOrder::of(spec.choice(Role::BackfillOrder))
    }

    #[inline(always)]
    pub(super) fn get(&self) -> Order<'_> {
        match self {
            ChosenOrder::Fcfs => Order::Fcfs,
            ChosenOrder::Keyed(keyed) => Order::Keyed(keyed),
            ChosenOrder::Formula(expression) => Order::Formula(expression),
        }
    }

    /// Whether every key so far had a value.
    ///
    /// # Errors
    /// That of [`Expression::check`].
    #[inline(always)]
    pub(super) fn check(&self) -> Result<()> {
        match self {
            ChosenOrder::Formula(expression) => expression.check(),
            _ => Ok(()),
        }
    }
}

impl Order<'_> {
    #[inline]
    pub(crate) fn is_fcfs(self) -> bool {
        matches!(self, Order::Fcfs)
    }

    /// Whether places in the queue change with time.
    #[inline]
    pub(crate) fn changes(self) -> bool {
        match self {
            Order::Fcfs => false,
            Order::Keyed(keyed) => keyed.changes,
            Order::Formula(expression) => expression.changes(),
        }
    }

    /// Whether every job is known to have a key. A formula may have no value for a job, which ends the task even if no job can
    /// start.
    #[inline]
    pub(crate) fn has_all_keys(self) -> bool {
        if let Order::Formula(expression) = self { expression.has_value() } else { true }
    }

    /// Whether every job is known to have a key that never rises while the job waits.
    #[inline]
    pub(crate) fn never_rises(self) -> bool {
        if let Order::Formula(expression) = self { expression.never_rises() } else { true }
    }

    /// Sort key of a waiting job: the job with the least key is first. Jobs with equal keys keep the order in which they
    /// entered the queue; a deferred job enters it at its release. If places [change](Order::changes), jobs with equal keys
    /// are sorted by submission.
    #[inline(always)]
    pub(crate) fn key<R: Recorder>(self, cluster: &Cluster<'_, R>, job: JobId) -> f64 {
        self.key_at(cluster, job, cluster.now_s())
    }

    /// [`Order::key`] at another instant, if nothing but the time changes until then.
    #[inline(always)]
    pub(crate) fn key_at<R: Recorder>(self, cluster: &Cluster<'_, R>, job: JobId, now_s: f64) -> f64 {
        match self {
            Order::Fcfs => 0.0,
            Order::Keyed(keyed) => (keyed.key)(&Waiting {
                now_s,
                first_submit_s: cluster.first_submit_s(),
                submit_s: cluster.submit_s(job),
                estimate_s: cluster.estimate_s(job),
                procs: f64::from(cluster.procs(job)),
                priority: f64::from(cluster.priority(job)),
            }),
            Order::Formula(expression) => expression.key(cluster, job, now_s),
        }
    }
}
