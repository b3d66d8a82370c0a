//! Invariants of the policies in random systems.
use powersweep_engine::Limits;
use powersweep_engine::error::Stop;
use powersweep_engine::lp::{self, System};
use powersweep_engine::queues::policies::classes::{Dvs, Fcfs, Frequency, Lpas, OrderedBeta, Pme, Utilization, Window};
use powersweep_engine::queues::{
    ClassStream, Completed, Job, Observer, Poisson, QueuePolicy, ServerTable, Servers, Simulation, State, Until, Work,
};
use proptest::prelude::*;

/// A policy with a check after each call.
#[derive(Clone)]
struct Checked<P> {
    inner: P,
    /// Returns a violation of an invariant, given the policy, the servers and the waiting jobs.
    violation: fn(&P, &Servers, &[Job]) -> Option<String>,
    waiting: Vec<Job>,
}

impl<P: QueuePolicy> Checked<P> {
    fn check(&mut self, servers: &Servers) {
        // A started job runs on a server now, because ends are reported one at a time.
        self.waiting
            .retain(|job| (0..servers.len()).all(|j| servers.running(j).is_none_or(|r| r.number != job.number)));
        assert_eq!(self.inner.waiting(), self.waiting.len());
        let violation = (self.violation)(&self.inner, servers, &self.waiting);
        assert_eq!(violation, None, "at {} s", servers.now_s());
    }
}

impl<P: QueuePolicy> QueuePolicy for Checked<P> {
    fn begin(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        self.inner.begin(servers)
    }

    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop> {
        self.waiting.push(job);
        self.inner.arrived(servers, job)?;
        self.check(servers);
        Ok(())
    }

    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        self.inner.ended(servers, done)?;
        self.check(servers);
        Ok(())
    }

    fn timer(&mut self, servers: &mut Servers, token: u64) -> Result<(), Stop> {
        self.inner.timer(servers, token)?;
        self.check(servers);
        Ok(())
    }

    fn waiting(&self) -> usize {
        self.inner.waiting()
    }
}

/// Records the longest time of a job on a server (s).
struct Longest(f64);

impl Observer for Longest {
    fn completed(&mut self, done: &Completed) {
        self.0 = self.0.max(done.finish_s - done.start_s);
    }
}

const HORIZON_S: f64 = 300.0;

fn table(system: &System) -> ServerTable {
    let (classes, machines) = (system.classes(), system.machines());
    let cells = || (0..classes).flat_map(|i| (0..machines).map(move |j| (i, j)));
    let rates = cells().map(|(i, j)| system.rate_per_s(i, j)).collect();
    let busy_w = cells().map(|(i, j)| system.busy_w(i, j)).collect();
    ServerTable::with_idle_w(machines, classes, rates, busy_w, system.idle_w().to_vec())
}

/// Runs to the horizon and checks the invariants of every policy; returns the servers and the longest time of a job.
fn run<P: QueuePolicy>(
    system: &System,
    inner: P,
    seed: u64,
    violation: fn(&P, &Servers, &[Job]) -> Option<String>,
) -> (Servers, f64) {
    let policy = Checked { inner, violation, waiting: Vec::new() };
    let servers = Servers::new(table(system)).expect("a table");
    let mut run = Simulation::new(Poisson::new(&streams(system), seed), policy, servers);
    let mut longest = Longest(0.0);
    run.run(Until::horizon(HORIZON_S), &Limits::NONE, &mut longest).expect("it runs");
    run.settle();
    let servers = run.servers().clone();
    let open = (0..servers.len()).filter(|j| servers.running(*j).is_some()).count() as u64;
    assert_eq!(run.in_system_count().iter().sum::<u64>(), run.waiting_count() + open);
    for server in 0..servers.len() {
        let states = [State::Free, State::Busy, State::Asleep, State::Off];
        let sum: f64 = states.into_iter().map(|state| servers.in_state_s(server, state)).sum();
        assert!((sum - HORIZON_S).abs() < 1e-6, "the states of server {server} last {sum} s");
    }
    let still = (0..servers.len()).filter_map(|j| servers.running(j).map(|_| HORIZON_S - servers.since_s(j)));
    let longest_s = still.fold(longest.0, f64::max);
    (servers, longest_s)
}

/// The violation of a free server and a waiting job that it can execute.
fn idles(servers: &Servers, waiting: &[Job]) -> Option<String> {
    let free = || (0..servers.len()).filter(|j| servers.is_free(*j));
    let pair = waiting.iter().find_map(|job| free().find(|j| servers.rate(job.class, *j) > 0.0).map(|j| (job, j)));
    pair.map(|(job, server)| format!("job {} waits while server {server} is free", job.number))
}

/// Up to 3 classes on up to 5 servers; a rate may be 0, but not on server 0.
pub(super) fn systems() -> impl Strategy<Value = System> {
    let rate = prop_oneof![1 => Just(0.0), 5 => 0.3_f64..6.0];
    (1_usize..4, 1_usize..6).prop_flat_map(move |(classes, machines)| {
        let cells = classes * machines;
        let rates = proptest::collection::vec(rate.clone(), cells);
        let busy_w = proptest::collection::vec(5.0_f64..200.0, cells);
        let idle_w = proptest::collection::vec(0.0_f64..5.0, machines);
        let arrivals = proptest::collection::vec(0.2_f64..3.0, classes);
        (arrivals, rates, busy_w, idle_w).prop_map(move |(arrivals, mut rates, busy_w, idle_w)| {
            rates.iter_mut().step_by(machines).for_each(|rate| *rate = rate.max(0.5));
            System::new(arrivals, rates, busy_w, idle_w).expect("a system")
        })
    })
}

fn streams(system: &System) -> Vec<ClassStream> {
    let work = Work::Exponential { mean: 1.0 };
    system.arrivals_per_s().iter().map(|&rate_per_s| ClassStream { rate_per_s, work }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_server_is_free_while_a_job_that_it_can_execute_waits(system in systems(), seed in 0_u64..1000) {
        run(&system, Fcfs::new(system.classes()), seed, |_, servers, waiting| idles(servers, waiting));
        run(&system, Pme::new(&table(&system)), seed, |_, servers, waiting| idles(servers, waiting));
        let frequencies = vec![Frequency { share: 0.4, busy_w: 0.5, idle_w: 0.7 }, Frequency { share: 1.0, busy_w: 1.0, idle_w: 1.0 }];
        for over in [Utilization::Period, Utilization::Total] {
            let dvs = Dvs::new(system.machines(), system.classes(), frequencies.clone(), 0.37, over);
            run(&system, dvs, seed, |_, servers, waiting| idles(servers, waiting));
        }
        // Switched-off servers are not free.
        let betas: Vec<f64> = (0..system.machines()).map(|j| system.busy_w(0, j)).collect();
        let window = Window { length_s: 7.0, target_s: 1.0, tolerance: 0.1 };
        let beta = OrderedBeta::new(&betas, system.classes(), window);
        run(&system, beta, seed, |_, servers, waiting| idles(servers, waiting));
    }

    /// A class starts only within its share, so that it exceeds it by one job at most.
    #[test]
    fn lpas_exceeds_its_shares_by_one_job_at_most(system in systems(), seed in 0_u64..1000, target in 0.5_f64..1.0) {
        let capacity = lp::capacity(&system).expect("it has an optimum");
        let allocation = lp::allocation(&system, &capacity, target * capacity.lambda).expect("it has an optimum");
        let policy = Lpas::new(allocation.delta.clone(), system.machines());
        let (servers, longest_s) = run(&system, policy, seed, |_, _, _| None);
        for class in 0..system.classes() {
            for server in 0..system.machines() {
                let share = allocation.delta[class * system.machines() + server];
                let executed_s = servers.executed_s(class as u32, server);
                prop_assert!(share > 0.0 || executed_s == 0.0);
                prop_assert!(executed_s <= share * HORIZON_S + longest_s + 1e-9, "{} of {}", executed_s, share * HORIZON_S);
            }
        }
    }
}
