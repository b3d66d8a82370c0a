//! Schedules of each policy that are small enough to check by hand.
use powersweep_engine::Limits;
use powersweep_engine::queues::policies::classes::{Dvs, Fcfs, Frequency, Lpas, OrderedBeta, Pme, Utilization, Window};
use powersweep_engine::queues::{Completed, Observer, QueuePolicy, ServerTable, Servers, Simulation, State, Until};

use crate::listed::Listed;

/// (job by order of arrival, server, start, end) of each job, in order of start.
#[derive(Default)]
struct Rows(Vec<(u64, usize, f64, f64)>);

impl Observer for Rows {
    fn completed(&mut self, done: &Completed) {
        self.0.push((done.job.number, done.server, done.start_s, done.finish_s));
    }
}

/// Rates by class, then server; every server draws 10 W busy and 4 W otherwise.
pub(super) fn table<const J: usize>(rates: &[[f64; J]]) -> ServerTable {
    let cells = rates.concat();
    let busy_w = vec![10.0; cells.len()];
    ServerTable::with_idle_w(J, rates.len(), cells, busy_w, vec![4.0; J])
}

/// Runs jobs of (arrival, work, class) to the horizon.
pub(super) fn run<P: QueuePolicy>(
    table: ServerTable,
    policy: P,
    jobs: &[(f64, f64, u32)],
    horizon_s: f64,
) -> (Vec<(u64, usize, f64, f64)>, Servers) {
    let servers = Servers::new(table).expect("a table");
    let mut run = Simulation::new(Listed::new(jobs), policy, servers);
    let mut rows = Rows::default();
    run.run(Until::horizon(horizon_s), &Limits::NONE, &mut rows).expect("it runs");
    run.settle();
    rows.0.sort_by(|a, b| a.2.total_cmp(&b.2).then(a.0.cmp(&b.0)));
    (rows.0, run.servers().clone())
}

pub(super) fn energy_j(servers: &Servers) -> f64 {
    [State::Free, State::Busy, State::Asleep, State::Off].map(|state| servers.settled_energy_j(state)).iter().sum()
}

#[test]
fn fcfs_starts_the_earliest_job_that_a_server_can_execute() {
    // Server 1 cannot execute class 0.
    let table = table(&[[1.0, 0.0], [1.0, 2.0]]);
    let jobs = [(0.0, 4.0, 0), (1.0, 4.0, 1), (2.0, 1.0, 0), (2.5, 2.0, 1), (6.0, 1.0, 1), (7.0, 1.0, 1)];
    let (rows, servers) = run(table, Fcfs::new(2), &jobs, 10.0);
    let expected = [
        (0, 0, 0.0, 4.0),
        (1, 1, 1.0, 3.0),
        (3, 1, 3.0, 4.0),
        (2, 0, 4.0, 5.0),
        (4, 1, 6.0, 6.5), // free since 4, server 0 since 5
        (5, 0, 7.0, 8.0), // free since 5, server 1 since 6.5
    ];
    assert_eq!(rows, expected);
    // Busy 6 + 3.5 of 20 server-seconds.
    assert_eq!(energy_j(&servers), 9.5 * 10.0 + 10.5 * 4.0);
}

#[test]
fn pme_starts_the_most_efficient_class_and_the_longest_waiting_of_equal_ones() {
    let mut table = table(&[[2.0], [4.0], [4.0]]);
    // Efficiencies 1, 2, and almost 2.
    table.busy_w = vec![2.0, 2.0, 2.0 * (1.0 + 1e-10)];
    let jobs = [(0.0, 2.0, 0), (0.1, 2.0, 0), (0.2, 4.0, 2), (0.3, 4.0, 1)];
    let (rows, _) = run(table.clone(), Pme::new(&table), &jobs, 10.0);
    assert_eq!(rows, [(0, 0, 0.0, 1.0), (2, 0, 1.0, 2.0), (3, 0, 2.0, 3.0), (1, 0, 3.0, 4.0)]);
}

#[test]
fn under_lpas_a_server_sleeps_until_its_time_without_a_job_is_its_share() {
    let jobs = [(1.0, 2.0, 0), (3.5, 1.0, 0), (6.5, 1.0, 0)];
    let (rows, servers) = run(table(&[[1.0]]), Lpas::new(vec![0.5], 1), &jobs, 8.0);
    // At 3 the server has executed jobs for 2 of 3 s: it sleeps until 4, when it was without a job for 2 of 4 s. At 5 it has
    // executed 3 of 5 s and sleeps until 6; at 7.5 it has executed 4 of 7.5 s and sleeps until 8.
    assert_eq!(rows, [(0, 0, 1.0, 3.0), (1, 0, 4.0, 5.0), (2, 0, 6.5, 7.5)]);
    assert_eq!(servers.in_state_s(0, State::Asleep), 1.0 + 1.0 + 0.5);
}

#[test]
fn under_lpas_a_waking_server_starts_a_waiting_job_despite_rounding() {
    // There are more jobs than the share allows: the server is busy or asleep, and never free while jobs wait.
    for share in [0.1, 0.3, 0.7, 2.0 / 3.0] {
        let job = |i: u32| (0.1 * f64::from(i), 0.1 + 0.013 * f64::from(i % 7), 0);
        let jobs: Vec<_> = (0..3000).map(job).collect();
        let (_, servers) = run(table(&[[1.0]]), Lpas::new(vec![share], 1), &jobs, 299.0);
        assert_eq!(servers.in_state_s(0, State::Free), 0.0, "share {share}");
        assert!((servers.in_state_s(0, State::Busy) / 299.0 - share).abs() < 1e-3);
    }
}

#[test]
fn lpas_starts_the_eligible_class_with_the_greatest_difference() {
    let jobs = [(0.0, 1.0, 1), (0.4, 1.0, 1), (0.5, 1.0, 0), (0.6, 1.0, 0)];
    let (rows, servers) = run(table(&[[1.0], [1.0]]), Lpas::new(vec![0.25, 0.5], 1), &jobs, 4.5);
    // Differences at 1: +0.25 and -0.5; at 2: -0.25 and 0; at 3: -1/12 and -1/6, sleep for (0.25 * 3 - 0) / 0.75 = 1; at 4: 0
    // and 0.
    assert_eq!(rows, [(0, 0, 0.0, 1.0), (2, 0, 1.0, 2.0), (1, 0, 2.0, 3.0)]);
    assert_eq!(servers.in_state_s(0, State::Asleep), 1.0);
    assert_eq!(servers.running(0).map(|job| (job.number, servers.since_s(0))), Some((3, 4.0)));
}

#[test]
fn lpas_starts_the_lowest_of_classes_with_equal_differences() {
    let jobs = [(0.0, 1.0, 2), (0.4, 1.0, 1), (0.5, 1.0, 0)];
    let (rows, _) = run(table(&[[1.0], [1.0], [1.0]]), Lpas::new(vec![0.25, 0.25, 0.5], 1), &jobs, 4.5);
    // At 1 the differences of classes 0 and 1 are +0.25.
    assert_eq!(rows, [(0, 0, 0.0, 1.0), (2, 0, 1.0, 2.0), (1, 0, 2.0, 3.0)]);
}

#[test]
fn under_lpas_a_server_stays_free_for_the_next_arrival_of_an_eligible_class() {
    // Server 1 has no share and sleeps from the start.
    let jobs = [(0.0, 1.0, 1), (0.5, 1.0, 1), (4.5, 1.0, 1)];
    let policy = Lpas::new(vec![0.5, 0.0, 0.25, 0.0], 2);
    let (rows, servers) = run(table(&[[1.0, 9.0], [1.0, 9.0]]), policy, &jobs, 6.0);
    // At 1 class 1 exceeds its share, but class 0 does not: the server does not sleep. The job of 0.5 waits until the next
    // job arrives at 4.5, when 1 / 4.5 is within the share; it starts first.
    assert_eq!(rows, [(0, 0, 0.0, 1.0), (1, 0, 4.5, 5.5)]);
    assert_eq!(servers.in_state_s(0, State::Asleep), 0.0);
    assert_eq!(servers.in_state_s(1, State::Asleep), 6.0);
}

#[test]
fn ordered_beta_switches_by_the_mean_completion_time() {
    // Server 1 has the lesser beta. A mean above 4.5 switches a server on, a mean below 4 switches one off.
    let policy = OrderedBeta::new(&[2.0, 1.0], 1, Window { length_s: 10.0, target_s: 5.0, tolerance: 0.1 });
    let jobs = [
        (0.0, 1.0),
        (11.0, 6.0),
        (12.0, 6.0),
        (31.0, 15.0),
        (32.0, 15.0),
        (33.0, 1.0),
        (61.0, 8.0),
        (62.0, 8.0),
        (63.0, 5.0),
        (81.0, 5.0),
        (82.0, 30.0),
        (91.0, 1.0),
        (101.0, 6.0),
        (102.0, 6.0),
        (108.0, 1.0),
    ];
    let jobs = jobs.map(|(arrival, work)| (arrival, work, 0));
    let (rows, servers) = run(table(&[[1.0, 1.0]]), policy, &jobs, 115.0);
    let expected = [
        (0, 1, 0.0, 1.0),
        // 10: mean 1, server 0 off.
        (1, 1, 11.0, 17.0),
        (2, 1, 17.0, 23.0),
        // 20: mean 6, server 0 on. 30: mean 11, all servers are on already.
        (3, 1, 31.0, 46.0),
        (4, 0, 32.0, 47.0),
        // 40: no job ended, server 0 off when its job ends at 47.
        (5, 1, 46.0, 47.0),
        // 50: mean 44 / 3, server 0 on. 60: no job ended, server 0 off.
        (6, 1, 61.0, 69.0),
        (7, 1, 69.0, 77.0),
        // 70: mean 8, server 0 on, and it starts the head at once. 80: mean 13.5.
        (8, 0, 70.0, 75.0),
        (9, 1, 81.0, 86.0),
        (10, 0, 82.0, 112.0),
        // 90: mean 5.
        (11, 1, 91.0, 92.0),
        // 100: mean 1, server 0 off when its job ends. 110: mean 6, server 0 on again before that.
        (12, 1, 101.0, 107.0),
        (13, 1, 107.0, 113.0),
        (14, 0, 112.0, 113.0),
    ];
    assert_eq!(rows, expected);
    assert_eq!(servers.in_state_s(0, State::Off), 10.0 + 3.0 + 10.0);
    assert_eq!(servers.in_state_s(1, State::Off), 0.0);
}

#[test]
fn ordered_beta_leaves_one_server_on() {
    let policy = OrderedBeta::new(&[1.0, 1.0, 3.0], 1, Window { length_s: 1.0, target_s: 5.0, tolerance: 0.1 });
    let (rows, servers) = run(table(&[[1.0; 3]]), policy, &[(20.0, 1.0, 0)], 22.0);
    assert_eq!(rows, [(0, 0, 20.0, 21.0)]);
    assert_eq!([0, 1, 2].map(|server| servers.in_state_s(server, State::Off)), [0.0, 20.0, 21.0]);
}

#[test]
fn dvs_follows_the_utilization_of_the_last_period() {
    let frequencies =
        vec![Frequency { share: 0.5, busy_w: 0.4, idle_w: 0.5 }, Frequency { share: 1.0, busy_w: 1.0, idle_w: 1.0 }];
    let dvs = |over| Dvs::new(1, 1, frequencies.clone(), 1.0, over);
    let jobs = [(1.5, 1.0, 0), (9.25, 1.0, 0)];
    let (rows, servers) = run(table(&[[1.0]]), dvs(Utilization::Period), &jobs, 12.0);
    // Half speed from 1. The utilization is 1/2 at 2, 1 at 3 (0.75 of the work is done), 1/4 at 4, and 3/4 at 10 (0.375 of
    // the work is done).
    assert_eq!(rows, [(0, 0, 1.5, 3.25), (1, 0, 9.25, 10.625)]);
    let free_j = 4.0 * (1.0 + 0.75 + 1.375) + 2.0 * (0.5 + 5.25);
    let busy_j = 4.0 * (1.5 + 0.75) + 10.0 * (0.25 + 0.625);
    assert!((energy_j(&servers) - free_j - busy_j).abs() < 1e-12, "{}", energy_j(&servers));

    let (rows, _) = run(table(&[[1.0]]), dvs(Utilization::Total), &jobs, 12.0);
    assert_eq!(rows, [(0, 0, 1.5, 3.5), (1, 0, 9.25, 11.25)]);
}
