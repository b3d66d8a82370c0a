//! Workers, their allocations, and where their time went.

use std::collections::BTreeMap;

use maud::{Markup, html};
use powersweep_dataset::words::{count, duration, memory};
use powersweep_proto::v1;

use super::list::{ListOrder, ListQuery};
use crate::address::link;

/// Rows of each table. The page stays small.
const ROWS_MAX: usize = 120;

/// What a launcher of a batch system has written for `launch status`.
#[derive(Debug, Clone, Default)]
pub struct Launched {
    /// Allocations, those that wait first.
    pub allocations: Vec<LaunchedAllocation>,
    /// Slot time of all its workers.
    pub slot_s: f64,
    /// Slot time without a task.
    pub idle_slot_s: f64,
    /// What the launcher does, in sentences.
    pub notes: Vec<String>,
}

/// An allocation of a batch system.
#[derive(Debug, Clone, Default)]
pub struct LaunchedAllocation {
    /// Its name, such as 4711_3.
    pub name: String,
    /// Its state in the batch system's word.
    pub state: String,
    /// Its nodes, or why it waits.
    pub place: String,
    /// Age since its submission.
    pub age_s: f64,
    /// Whether it waits for nodes.
    pub waits: bool,
    /// Whether its worker is connected.
    pub connected: bool,
}

/// Workers of one allocation together.
#[derive(Default)]
struct Group {
    workers: u64,
    slots: u64,
    busy: u64,
    done: u64,
}

/// Orders of the list of workers.
const ORDERS: [ListOrder<v1::WorkerStatus>; 6] = [
    ("name", "name", None),
    ("idle", "most idle slots", Some(|of| Some(-f64::from(of.slots.saturating_sub(of.busy_slots))))),
    ("busy", "most busy slots", Some(|of| Some(-f64::from(of.busy_slots)))),
    ("done", "most tasks done", Some(|of| Some(-(of.tasks_done as f64)))),
    ("memory", "most memory", Some(|of| Some(-(of.memory_bytes as f64)))),
    ("seen", "longest not seen", Some(|of| Some(-of.seen_s_ago))),
];

pub(super) fn live(status: &v1::StatusReply, list: &ListQuery, launched: Option<&Launched>) -> Markup {
    let workers = &status.workers;
    let chosen = list.chosen(workers, &ORDERS, |of| format!("{} {} {}", of.name, of.allocation, of.address));
    html! {
        @if let Some(demand) = &status.demand { (waiting(demand)) }
        @if workers.is_empty() {
            p.empty { "No worker has connected. Start one: " code { "powersweep worker" } }
        } @else {
            (allocations(workers))
            h2 { "Workers" }
            (list.form("workers", workers.len(), &ORDERS))
            (list.none("workers", chosen.len()))
            @if !chosen.is_empty() { div.table.cards { table {
                thead { tr {
                    th.name scope="col" { "Worker" } th scope="col" { "Allocation" } th.n scope="col" { "Slots" }
                    th.n scope="col" { "Busy" } th.n scope="col" { "Idle" } th.n scope="col" { "Leased" } th.n scope="col" { "Done" }
                    th.n scope="col" { "Mean task" } th.n scope="col" { "CPU" } th.n scope="col" { "Memory" } th scope="col" { "Seen" }
                } }
                tbody { @for worker in chosen.iter().take(ROWS_MAX) { (row(worker)) } }
            } } }
            @if !chosen.is_empty() { p.soft { "CPU is the mean number of processors that the process kept busy since its last heartbeat; memory is resident." } }
            @if chosen.len() > ROWS_MAX {
                p { "… and " (count((chosen.len() - ROWS_MAX) as u64, "more worker")) ": " code { "powersweep status" } " lists all." }
            }
        }
        @if let Some(launched) = launched { (launcher(launched)) }
        (slot_hours(&status.experiments))
    }
}

fn launcher(launched: &Launched) -> Markup {
    let waiting = launched.allocations.iter().filter(|of| of.waits).count() as u64;
    html! {
        h2 { "Launcher" }
        p {
            (count(waiting, "allocation")) " wait" @if waiting == 1 { "s" } " in the queue. Slot time of all allocations: " (duration(launched.slot_s))
            ", of which idle: " (duration(launched.idle_slot_s)) "."
        }
        @for note in &launched.notes { p.soft { (note) } }
        @if !launched.allocations.is_empty() {
            div.table.cards { table {
                thead { tr {
                    th.name scope="col" { "Allocation" } th scope="col" { "State" } th scope="col" { "Nodes, or why it waits" }
                    th scope="col" { "Worker" } th scope="col" { "Submitted" }
                } }
                tbody { @for of in launched.allocations.iter().take(ROWS_MAX) { tr {
                    th.name scope="row" { a href=(link("output", &[("allocation", &of.name)])) { (of.name) } } td data-label="State" { (of.state) }
                    td data-label="Nodes, or why it waits" { (of.place) }
                    td data-label="Worker" { @if of.connected { "connected" } @else { "none" } }
                    td data-label="Submitted" { (duration(of.age_s)) " ago" }
                } } }
            } }
        }
    }
}

/// The script and the output of an allocation.
pub(super) fn output(text: Result<String, String>) -> Markup {
    html! {
        p { a href="workers" { "Back to the workers" } }
        @match text {
            Ok(text) => code.command { (text) },
            Err(reason) => p.empty { (reason) },
        }
    }
}

fn waiting(demand: &v1::Demand) -> Markup {
    html! {
        p {
            (count(demand.waiting_tasks, "task")) " wait for a slot; " (demand.leased_tasks) " are leased to " (count(demand.slots, "slot")) "."
            @if !demand.blocked.is_empty() { " " (demand.blocked) }
        }
    }
}

fn row(worker: &v1::WorkerStatus) -> Markup {
    html! {
        tr {
            th.name scope="row" { (worker.name) }
            td data-label="Allocation" { (worker.allocation) }
            td.n data-label="Slots" { (worker.slots) }
            td.n data-label="Busy" { (worker.busy_slots) }
            td.n data-label="Idle" { (worker.slots.saturating_sub(worker.busy_slots)) }
            td.n data-label="Leased" { (worker.leased_tasks) }
            td.n data-label="Done" { (worker.tasks_done) }
            td.n data-label="Mean task" { @if worker.tasks_done > 0 { (duration(worker.tasks_s / worker.tasks_done as f64)) } }
            td.n data-label="CPU" { @if worker.connected { (format!("{:.1}", worker.processors)) } }
            td.n data-label="Memory" { (memory(worker.memory_bytes)) }
            td data-label="Seen" { (duration(worker.seen_s_ago)) " ago" @if !worker.connected { ", not connected" } }
        }
    }
}

/// Workers by allocation, if there is any.
fn allocations(workers: &[v1::WorkerStatus]) -> Markup {
    let mut groups: BTreeMap<&str, Group> = BTreeMap::new();
    for worker in workers {
        let group = groups.entry(&worker.allocation).or_default();
        group.workers += 1;
        group.slots += u64::from(worker.slots);
        group.busy += u64::from(worker.busy_slots);
        group.done += worker.tasks_done;
    }
    html! {
        @if groups.keys().any(|allocation| !allocation.is_empty()) {
            h2 { "Workers by allocation" }
            div.table.cards { table {
                thead { tr {
                    th.name scope="col" { "Allocation" } th.n scope="col" { "Workers" } th.n scope="col" { "Slots" }
                    th.n scope="col" { "Busy" } th.n scope="col" { "Done" }
                } }
                tbody { @for (allocation, group) in groups.iter().take(ROWS_MAX) { tr {
                    th.name scope="row" { @if allocation.is_empty() { "none" } @else { (allocation) } }
                    td.n data-label="Workers" { (group.workers) } td.n data-label="Slots" { (group.slots) }
                    td.n data-label="Busy" { (group.busy) } td.n data-label="Done" { (group.done) }
                } } }
            } }
        }
    }
}

fn slot_hours(experiments: &[v1::ExperimentStatus]) -> Markup {
    let spent = experiments.iter().filter_map(|experiment| Some((&experiment.name, experiment.spent?)));
    let shown = |spent: &v1::TimeSpent, seconds: f64| match *spent == v1::TimeSpent::default() {
        true => String::new(),
        false => duration(seconds),
    };
    html! {
        @if !experiments.is_empty() {
            h2 { "Slot time" }
            p.soft { "Of tasks whose rows arrived since the coordinator's last start; empty without any." }
            div.table.cards { table {
                thead { tr {
                    th.name scope="col" { "Experiment" } th.n scope="col" { "Simulation" } th.n scope="col" { "Logs" }
                    th.n scope="col" { "Storage" } th.n scope="col" { "Idle" }
                } }
                tbody { @for (name, spent) in spent.take(ROWS_MAX) { tr {
                    th.name scope="row" { (name) }
                    td.n data-label="Simulation" { (shown(&spent, spent.engine_s)) } td.n data-label="Logs" { (shown(&spent, spent.parse_s)) }
                    td.n data-label="Storage" { (shown(&spent, spent.store_s)) } td.n data-label="Idle" { (shown(&spent, spent.idle_s)) }
                } } }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_time_that_the_coordinator_did_not_see_is_empty() {
        let of = |name: &str, engine_s: f64| {
            let spent = Some(v1::TimeSpent { engine_s, ..Default::default() });
            v1::ExperimentStatus { name: name.to_owned(), spent, ..Default::default() }
        };
        let html = slot_hours(&[of("before", 0.0), of("since", 3.0)]).into_string();
        let rows: Vec<&str> = html.split("<tr>").collect();
        assert!(rows.iter().any(|row| row.contains("before") && !row.contains(" s<")), "{html}");
        assert!(rows.iter().any(|row| row.contains("since") && row.contains(">3.0 s<")), "{html}");
        assert!(html.contains("since the coordinator's last start"), "{html}");
    }
}
