//! Orders of the waiting queue.
use crate::kernel::{Cluster, JobId, Recorder};
use crate::registry::{Entry, Slot};

/// First come, first served.
pub const FCFS: Entry = Entry {
    slot: Slot::Order,
    name: "fcfs",
    version: 1,
    source: "",
    doc: "First come, first served: by submit time, ties by `arrival_ties`.",
    params: &[],
};
/// Shortest job first.
pub const SJF: Entry = Entry {
    slot: Slot::Order,
    name: "sjf",
    version: 1,
    source: "",
    doc: "Least estimated run time first, ties by arrival; sorted anew at each pass.",
    params: &[],
};
/// Widest job first.
pub const WIDEST: Entry = Entry {
    slot: Slot::Order,
    name: "widest",
    version: 1,
    source: "",
    doc: "Most procs first, ties by arrival; sorted anew at each pass.",
    params: &[],
};
/// WFP3.
pub const WFP3: Entry = Entry {
    slot: Slot::Order,
    name: "wfp3",
    version: 1,
    source: "Tang et al. 2009",
    doc: "Largest (wait/max(estimate, 1 s))^3 * procs first, ties by arrival; sorted anew at each pass.",
    params: &[],
};
/// F1.
pub const F1: Entry = Entry {
    slot: Slot::Order,
    name: "f1",
    version: 1,
    source: "Carastan-Santos & de Camargo 2017",
    doc: "Least log10(max(estimate, 1 s))*procs + 870*log10(max(submit - first submit, 1 s)) first, ties by arrival.",
    params: &[],
};

/// An order of the waiting queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// First come, first served.
    Fcfs,
    /// Shortest estimate first.
    Sjf,
    /// Most procs first.
    Widest,
    /// WFP3 (Tang et al. 2009).
    Wfp3,
    /// F1 (Carastan-Santos & de Camargo 2017).
    F1,
}

/// When an order has to be established.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sorted {
    /// A job's key never changes: it is put at its place when it arrives.
    OnArrival,
    /// Keys change with time.
    EveryPass,
}

impl Order {
    /// The order of a registered name.
    pub fn of(name: &str) -> Option<Order> {
        Some(match name {
            "fcfs" => Order::Fcfs,
            "sjf" => Order::Sjf,
            "widest" => Order::Widest,
            "wfp3" => Order::Wfp3,
            "f1" => Order::F1,
            _ => return None,
        })
    }

    pub(crate) fn sorted(self) -> Sorted {
        if self == Order::Wfp3 { Sorted::EveryPass } else { Sorted::OnArrival }
    }

    /// The job with the least key is first; ties by arrival.
    pub(crate) fn key<R: Recorder>(self, cluster: &Cluster<'_, R>, job: JobId) -> f64 {
        let estimate_s = cluster.estimate_s(job);
        let procs = f64::from(cluster.procs(job));
        match self {
            Order::Fcfs => f64::from(job),
            Order::Sjf => estimate_s,
            Order::Widest => -procs,
            Order::Wfp3 => {
                let ratio = (cluster.now_s() - cluster.submit_s(job)) / estimate_s.max(1.0);
                -(ratio * ratio * ratio * procs)
            }
            Order::F1 => {
                let since_first_s = cluster.submit_s(job) - cluster.first_submit_s();
                libm::log10(estimate_s.max(1.0)) * procs + 870.0 * libm::log10(since_first_s.max(1.0))
            }
        }
    }
}
