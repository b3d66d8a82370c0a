//! Orders of the waiting queue.
//!
//! An order but [`FCFS`] is a file with a [`Keyed`]: its description and the key of a waiting job; the list
//! [`KEYED`] registers it.
pub mod f1;
pub mod priority;
pub mod sjf;
pub mod wfp3;
pub mod widest;

use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::spec::{Component, Role};

/// Every order but first come, first served.
pub static KEYED: &[&Keyed] = &[
    // A new one goes to the end: this is the order of columns.
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
    /// First come, first served. Known by name, because the hot path needs no keys for it.
    Fcfs,
    /// By key.
    Keyed(&'static Keyed),
}

/// An order by a key of each waiting job.
#[derive(Debug)]
pub struct Keyed {
    /// Its description.
    pub component: Component,
    /// Whether the key of a waiting job changes with time: the queue is then sorted anew at every pass.
    pub changes: bool,
    /// The key of a waiting job: the least is first, ties by arrival. Never NaN.
    pub key: fn(&Waiting) -> f64,
}

/// What an order knows of a waiting job.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// The present instant (s).
    pub now_s: f64,
    /// The first submit of the workload (s).
    pub first_submit_s: f64,
    /// The job's submit (s).
    pub submit_s: f64,
    /// Its estimated run time at the top gear (s).
    pub estimate_s: f64,
    /// The procs that it asks for.
    pub procs: f64,
    /// Its priority; 1 is the highest.
    pub priority: f64,
}

impl Order {
    /// The order of a registered name.
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

    /// The job with the least key is first; ties by arrival.
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
