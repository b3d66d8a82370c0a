//! The number of workers that there is work for.

use std::collections::HashMap;

use powersweep_proto::v1;

/// Keys of a trigger's metadata.
const SLOTS: &str = "slotsPerWorker";
const MINUTES: &str = "targetMinutes";
const FIRST: &str = "firstWorkers";
const MOST: &str = "maxWorkers";

/// Time in which waiting tasks shall be done, without a setting.
const DEFAULT_MINUTES: f64 = 10.0;
/// Maximum number of workers of any settings.
const WORKERS_MAX: u64 = 100_000;

/// What a ScaledObject says about its workers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    /// Slots of one worker.
    slots: u64,
    /// Time in which the waiting tasks shall be done (s).
    target_s: f64,
    /// Workers while the slot time of waiting tasks is not known.
    first: u64,
    /// Maximum number of workers.
    most: u64,
}

impl Settings {
    /// Reads the metadata of a trigger, which also has settings of KEDA itself.
    ///
    /// # Errors
    /// The key, its value and the values that it can have.
    pub(super) fn parse(metadata: &HashMap<String, String>) -> Result<Settings, String> {
        let number = |key: &str, least: f64, most: f64| {
            let Some(text) = metadata.get(key) else { return Ok(None) };
            let number = text.trim().parse().ok().filter(|number: &f64| (least..=most).contains(number));
            number.map(Some).ok_or_else(|| format!("`{key}` is {text:?}, and must be a number from {least} to {most}"))
        };
        let count = |key: &str, most: u64| match number(key, 1.0, most as f64)? {
            Some(count) if count.fract() > 0.0 => Err(format!("`{key}` is {count}, and must be a whole number")),
            count => Ok(count.map(|count| count as u64)),
        };
        let missing =
            || format!("the trigger's metadata has no `{SLOTS}`: set the number of processors of a worker's pod");
        Ok(Settings {
            slots: count(SLOTS, 1024)?.ok_or_else(missing)?,
            target_s: 60.0 * number(MINUTES, 0.001, 10_000.0)?.unwrap_or(DEFAULT_MINUTES),
            first: count(FIRST, WORKERS_MAX)?.unwrap_or(1),
            most: count(MOST, WORKERS_MAX)?.unwrap_or(WORKERS_MAX),
        })
    }
}

/// The number of workers that there is work for: those that run tasks, and as many as do the waiting tasks in the
/// target time. It is zero only without a waiting task and without a lease.
pub(super) fn wanted(status: &v1::StatusReply, settings: &Settings) -> u64 {
    let demand = status.demand.clone().unwrap_or_default();
    let busy = status.workers.iter().filter(|worker| worker.leased_tasks > 0).count() as u64;
    // Tasks of a lost worker wait until its leases expire, and run again then.
    let busy = busy.max(u64::from(demand.leased_tasks > 0));
    let waiting = for_waiting(&demand, settings);
    // While storage does not accept rows, further workers could not start a task.
    let connected = status.workers.iter().filter(|worker| worker.connected).count() as u64;
    let useful = if demand.blocked.is_empty() { waiting } else { waiting.min(connected.max(1)) };
    busy.max(useful).min(settings.most)
}

fn for_waiting(demand: &v1::Demand, settings: &Settings) -> u64 {
    if demand.waiting_tasks == 0 {
        return 0;
    }
    let slots = settings.slots as f64;
    let measured = (demand.waiting_s / (slots * settings.target_s)).ceil() as u64;
    let unmeasured = if demand.unmeasured_tasks > 0 { settings.first } else { 0 };
    // More slots than tasks are no use. Leased tasks have slots of their own, some of which do the waiting ones later.
    let tasks = demand.waiting_tasks.saturating_add(demand.leased_tasks).div_ceil(settings.slots);
    measured.saturating_add(unmeasured).clamp(1, tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::parse(&pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    fn status(demand: v1::Demand, leased: &[u64]) -> v1::StatusReply {
        let workers =
            leased.iter().map(|&leased_tasks| v1::WorkerStatus { leased_tasks, connected: true, ..Default::default() });
        let leased_tasks = leased.iter().sum();
        let demand = Some(v1::Demand { leased_tasks, ..demand });
        v1::StatusReply { demand, workers: workers.collect(), ..Default::default() }
    }

    fn waiting(tasks: u64, seconds: f64) -> v1::Demand {
        v1::Demand { waiting_tasks: tasks, waiting_s: seconds, ..Default::default() }
    }

    #[test]
    fn settings_are_numbers_within_limits() {
        let least = settings(&[("slotsPerWorker", "4"), ("scalerAddress", "h:1")]).expect("they are right");
        assert_eq!(least, Settings { slots: 4, target_s: 600.0, first: 1, most: WORKERS_MAX });
        let all = [("slotsPerWorker", "2"), ("targetMinutes", "0.5"), ("firstWorkers", "3"), ("maxWorkers", "9")];
        assert_eq!(settings(&all), Ok(Settings { slots: 2, target_s: 30.0, first: 3, most: 9 }));
        let refused = |pairs: &[(&str, &str)]| settings(pairs).expect_err("they are wrong");
        assert!(refused(&[]).contains("no `slotsPerWorker`"));
        assert!(refused(&[("slotsPerWorker", "two")]).contains("\"two\""));
        for wrong in ["0", "1025", "-1", "NaN", "inf", ""] {
            assert!(refused(&[("slotsPerWorker", wrong)]).contains("from 1 to 1024"), "{wrong}");
        }
        assert!(refused(&[("slotsPerWorker", "1.5")]).contains("whole"));
        assert!(refused(&[("slotsPerWorker", "1"), ("targetMinutes", "0")]).contains("`targetMinutes`"));
        assert!(refused(&[("slotsPerWorker", "1"), ("maxWorkers", "0")]).contains("`maxWorkers`"));
    }

    #[test]
    fn waiting_work_is_done_in_the_target_time() {
        let settings = settings(&[("slotsPerWorker", "2"), ("targetMinutes", "1")]).expect("they are right");
        let of = |demand: v1::Demand| wanted(&status(demand, &[]), &settings);
        assert_eq!([0.0, 1.0, 120.0, 120.1, 1200.0].map(|seconds| of(waiting(1000, seconds))), [1, 1, 1, 2, 10]);
        assert_eq!(of(waiting(0, 0.0)), 0);
        assert_eq!(of(waiting(7, 1e9)), 4, "more slots than tasks are no use");
        let capped = Settings { most: 3, ..settings.clone() };
        assert_eq!(wanted(&status(waiting(1000, 1200.0), &[]), &capped), 3);
    }

    #[test]
    fn tasks_of_unknown_length_get_the_first_workers() {
        let settings = settings(&[("slotsPerWorker", "2"), ("firstWorkers", "3")]).expect("they are right");
        let of = |demand: v1::Demand| wanted(&status(demand, &[]), &settings);
        let unmeasured = v1::Demand { unmeasured_tasks: 100, ..waiting(100, 0.0) };
        assert_eq!(of(unmeasured.clone()), 3);
        assert_eq!(of(v1::Demand { unmeasured_tasks: 3, ..waiting(3, 0.0) }), 2);
        let both = v1::Demand { waiting_tasks: 200, waiting_s: 2400.0, ..unmeasured.clone() };
        assert_eq!(of(both), 5);
        let blocked = v1::Demand { blocked: "storage stalled".to_owned(), ..unmeasured };
        assert_eq!(of(blocked.clone()), 1, "no task waits without a worker");
        assert_eq!(wanted(&status(blocked, &[1, 0]), &settings), 2, "connected workers stay");
    }

    #[test]
    fn workers_with_leases_stay() {
        let settings = settings(&[("slotsPerWorker", "2")]).expect("they are right");
        let of = |demand: v1::Demand, leased: &[u64]| wanted(&status(demand, leased), &settings);
        assert_eq!(of(waiting(0, 0.0), &[3, 0, 1]), 2);
        assert_eq!(of(waiting(10, 1.0), &[3, 0, 1]), 2);
        assert_eq!(of(waiting(0, 0.0), &[0, 0]), 0);
        let lost = v1::StatusReply {
            demand: Some(v1::Demand { leased_tasks: 5, ..Default::default() }),
            ..Default::default()
        };
        assert_eq!(wanted(&lost, &settings), 1, "their worker is lost");
        assert_eq!(wanted(&v1::StatusReply::default(), &settings), 0);
    }
}
