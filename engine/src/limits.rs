//! Limits of one simulation.

/// Memory of a list (bytes).
pub(crate) fn list_bytes<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

/// Limits that end a simulation early. The kernel checks them every 1,024 events.
pub struct Limits<'a> {
    /// Greatest number of events; `u64::MAX` for none.
    pub max_events: u64,
    /// Greatest size of the state that grows during the simulation (bytes); `usize::MAX` for none. Running jobs, events,
    /// powers, sleeping procs, recorded points, waiting jobs of queues and the energy between the changes of signals count. The workload and the policy's own state
    /// (some tens of bytes for each waiting job) do not.
    pub max_bytes: usize,
    /// Whether the caller's deadline has passed: `true` ends the run with
    /// [`SimError::Deadline`](crate::SimError::Deadline). The caller owns the clock.
    pub deadline_passed: &'a dyn Fn() -> bool,
}

impl Limits<'static> {
    /// No limits.
    pub const NONE: Limits<'static> =
        Limits { max_events: u64::MAX, max_bytes: usize::MAX, deadline_passed: &|| false };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_list_counts_its_unused_places() {
        let mut list = Vec::<u32>::with_capacity(100);
        list.push(1);
        assert_eq!(list_bytes(&list), 4 * list.capacity());
        assert!(list_bytes(&list) >= 400);
    }
}
