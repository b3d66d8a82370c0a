//! Orders of the waiting queue.
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
