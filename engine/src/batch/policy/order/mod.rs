//! Orders of the waiting queue.
//!
//! Every order but [`FCFS`] is a file with a [`Keyed`], which has its description and the key of a waiting job. The
//! list [`KEYED`] registers it.
pub mod f1;
pub mod priority;
pub mod sjf;
pub mod wfp3;
pub mod widest;

use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::spec::{Component, Role};

/// Every order but first come, first served.
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
    ..Component::BATCH
};

/// An order of the waiting queue.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    /// First come, first served: a variant of its own, because the hot path needs no keys for it.
    Fcfs,
    /// By the key of each job.
    Keyed(&'static Keyed),
}

/// An order by a key of each waiting job.
#[derive(Debug)]
pub struct Keyed {
    /// Description of the order.
    pub component: Component,
    /// Whether the key of a waiting job changes with time: the queue is then sorted at every pass.
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

impl Order {
    /// The order with a registered name.
    pub fn of(name: &str) -> Option<Order> {
        if name == FCFS.name {
            return Some(Order::Fcfs);
        }
        KEYED.iter().find(|keyed| keyed.component.name == name).map(|keyed| Order::Keyed(keyed))
    }

    #[inline]
    pub(crate) fn is_fcfs(self) -> bool {
        matches!(self, Order::Fcfs)
    }

    /// Whether places in the queue change with time.
    #[inline]
    pub(crate) fn changes(self) -> bool {
        matches!(self, Order::Keyed(keyed) if keyed.changes)
    }

    /// Sort key of a waiting job: the job with the least key is first, ties by arrival.
    pub(crate) fn key<R: Recorder>(self, cluster: &Cluster<'_, R>, job: JobId) -> f64 {
        match self {
            Order::Fcfs => f64::from(job),
            Order::Keyed(keyed) => (keyed.key)(&Waiting {
                now_s: cluster.now_s(),
                first_submit_s: cluster.first_submit_s(),
                submit_s: cluster.submit_s(job),
                estimate_s: cluster.estimate_s(job),
                procs: f64::from(cluster.procs(job)),
                priority: f64::from(cluster.priority(job)),
            }),
        }
    }
}
