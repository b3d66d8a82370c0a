//! How many allocations the waiting tasks need.

use crate::{Fleet, Seconds};

/// The tasks that wait, as the coordinator reports them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Need {
    /// Tasks that are ready to run and have no lease.
    pub tasks: u64,
    /// Those of them whose slot time is not known.
    pub unmeasured: u64,
    /// Slot time of the others (s).
    pub slot_s: f64,
    /// Slot time of one task of the experiment with the shortest waiting tasks (s).
    pub shortest_s: Option<f64>,
    /// Slots of all connected workers.
    pub slots: u64,
    /// Why more workers would be no use; empty otherwise.
    pub blocked: String,
}

/// The room that the user and the site give.
#[derive(Debug, Clone, PartialEq)]
pub struct Room {
    /// Maximum number of nodes at a time, of queued and running allocations.
    pub nodes: u64,
    /// Maximum number of allocations that wait in the queue at a time.
    pub backlog: u64,
    /// Nodes of one allocation.
    pub nodes_each: u64,
    /// Slots of one allocation.
    pub slots_each: u64,
    /// Time that a worker can use of an allocation (s).
    pub usable_s: f64,
    /// Waiting work that connected slots finish within this time asks for no allocation (s).
    pub patience_s: f64,
    /// Maximum number of elements of one array job.
    pub array: u64,
    /// Maximum number of jobs that the user may have in the queue; `None` where Slurm does not say.
    pub submitted: Option<u64>,
}

/// The number of allocations to ask for now.
#[derive(Debug, Clone, PartialEq)]
pub struct Want {
    /// Elements of the next array job; 0 for no submission.
    pub count: u64,
    /// Why there are no more of them.
    pub why: String,
}

impl Want {
    fn none(why: impl Into<String>) -> Want {
        Want { count: 0, why: why.into() }
    }

    /// Compares the need with the room, and with what was asked for before.
    pub fn of(need: &Need, room: &Room, fleet: &Fleet, now: Seconds) -> Want {
        if need.tasks == 0 {
            return Want::none("no task waits");
        }
        if !need.blocked.is_empty() {
            return Want::none(need.blocked.clone());
        }
        if let Some(pause) = fleet.back_off.pause(now) {
            return Want::none(pause.reason);
        }
        let needed = match needed(need, room) {
            Ok(needed) => needed,
            Err(why) => return Want::none(why),
        };
        let (waiting, alive) = (fleet.waiting(), fleet.alive());
        let within_nodes = (room.nodes / room.nodes_each.max(1)).saturating_sub(alive);
        let within_submitted = room.submitted.map_or(u64::MAX, |most| most.saturating_sub(alive));
        let bounds = [
            (needed.saturating_sub(waiting), "the waiting tasks need no more allocations"),
            (room.backlog.saturating_sub(waiting), "enough allocations wait in the queue (--backlog)"),
            (within_nodes, "no more nodes are allowed (--max-nodes)"),
            (room.array.min(fleet.array_max()), "a larger array job is not allowed"),
            (within_submitted, "Slurm allows the user no more jobs in the queue (MaxSubmitJobs)"),
        ];
        let (count, why) = bounds.into_iter().min_by_key(|(count, _)| *count).expect("there are bounds");
        Want { count, why: why.to_owned() }
    }
}

/// Allocations for the waiting tasks, or why none is of use.
fn needed(need: &Need, room: &Room) -> Result<u64, String> {
    if need.unmeasured == 0
        && let Some(shortest_s) = need.shortest_s.filter(|shortest_s| *shortest_s > room.usable_s)
    {
        let (task, usable) = (shortest_s.ceil(), room.usable_s.floor());
        return Err(format!(
            "no waiting task fits an allocation: the shortest ones take {task} s, and a worker can use {usable} s of it \
             (--time)"
        ));
    }
    let soon_s = need.slots as f64 * room.patience_s;
    let each_s = room.slots_each.max(1) as f64 * room.usable_s.max(1.0);
    let measured = ((need.slot_s - soon_s).max(0.0) / each_s).ceil() as u64;
    // One allocation measures the tasks of unknown length.
    Ok(measured + u64::from(need.unmeasured > 0 && need.slots == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room() -> Room {
        Room {
            nodes: 6,
            backlog: 4,
            nodes_each: 1,
            slots_each: 8,
            usable_s: 100.0,
            patience_s: 0.0,
            array: 1000,
            submitted: None,
        }
    }

    fn need(slot_s: f64) -> Need {
        Need { tasks: 10, slot_s, shortest_s: Some(1.0), ..Need::default() }
    }

    fn count(need: &Need, room: &Room, fleet: &Fleet) -> u64 {
        Want::of(need, room, fleet, 0).count
    }

    #[test]
    fn the_waiting_work_is_divided_by_what_an_allocation_can_do() {
        let fleet = Fleet::default();
        assert_eq!(count(&need(1.0), &room(), &fleet), 1);
        assert_eq!(count(&need(1601.0), &room(), &fleet), 3);
        assert_eq!(count(&Need::default(), &room(), &fleet), 0);
        let blocked = Need { blocked: "storage is full".into(), ..need(1601.0) };
        assert_eq!(Want::of(&blocked, &room(), &fleet, 0), Want::none("storage is full"));
    }

    #[test]
    fn what_was_submitted_and_is_not_visible_counts() {
        let mut fleet = Fleet::default();
        fleet.submitted("7", 2, 0);
        assert_eq!(count(&need(2400.0), &room(), &fleet), 1);
        fleet.submission_unknown(1, "timed out", 0);
        assert_eq!(count(&need(2400.0), &Room { backlog: 9, ..room() }, &fleet), 0);
    }

    #[test]
    fn backlog_nodes_and_array_are_never_exceeded() {
        let (mut fleet, much) = (Fleet::default(), need(1e9));
        assert_eq!(count(&much, &room(), &fleet), 4);
        assert_eq!(count(&much, &Room { nodes_each: 2, ..room() }, &fleet), 3);
        assert_eq!(count(&much, &Room { array: 2, ..room() }, &fleet), 2);
        assert_eq!(count(&much, &Room { submitted: Some(3), ..room() }, &fleet), 3);
        fleet.submitted("7", 4, 0);
        assert_eq!(count(&much, &Room { submitted: Some(4), backlog: 9, ..room() }, &fleet), 0);
        assert_eq!(count(&much, &room(), &fleet), 0);
        fleet.connected(["7_1", "7_2", "7_3", "7_4"], 1);
        assert_eq!(count(&much, &room(), &fleet), 2);
        fleet.submitted("8", 2, 2);
        fleet.connected(["8_1", "8_2"], 3);
        let full = Want::of(&much, &room(), &fleet, 3);
        assert_eq!((full.count, full.why.as_str()), (0, "no more nodes are allowed (--max-nodes)"));
    }

    #[test]
    fn nothing_is_asked_for_when_no_waiting_task_fits() {
        let long = Need { shortest_s: Some(101.0), ..need(1e6) };
        let want = Want::of(&long, &room(), &Fleet::default(), 0);
        assert_eq!(want.count, 0);
        assert!(want.why.contains("take 101 s") && want.why.contains("use 100 s"), "{want:?}");
        let unknown = Need { tasks: 20, unmeasured: 10, shortest_s: Some(101.0), ..Need::default() };
        assert_eq!(count(&unknown, &room(), &Fleet::default()), 1);
    }

    #[test]
    fn one_allocation_measures_tasks_of_unknown_length() {
        let unknown = Need { tasks: 1_000_000, unmeasured: 1_000_000, ..Need::default() };
        assert_eq!(count(&unknown, &room(), &Fleet::default()), 1);
        assert_eq!(count(&Need { slots: 8, ..unknown }, &room(), &Fleet::default()), 0);
    }

    #[test]
    fn work_that_connected_slots_finish_soon_asks_for_nothing() {
        let patient = Room { patience_s: 120.0, ..room() };
        let fleet = Fleet::default();
        assert_eq!(count(&Need { slots: 8, ..need(960.0) }, &patient, &fleet), 0);
        assert_eq!(count(&Need { slots: 8, ..need(961.0) }, &patient, &fleet), 1);
    }
}
