//! The kernel of the queues: examples by hand, and the conformance suite of policies.
use std::collections::VecDeque;

use powersweep_engine::error::Stop;
use powersweep_engine::queues::{
    Arrivals, Buffered, ClassStream, Completed, Job, Observer, Poisson, QueuePolicy, Scheme, ServerTable, Servers,
    Simulation, Speed, State, Until, Work,
};
use powersweep_engine::rng::{Philox, Purpose};
use powersweep_engine::{Limits, SimError};

use crate::listed::Listed;

/// One queue, first come, first served, on the lowest free server that can execute the class of the head.
#[derive(Clone, Default)]
struct Fcfs(VecDeque<Job>);

impl QueuePolicy for Fcfs {
    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop> {
        match (0..servers.len()).find(|&j| servers.is_free(j) && servers.rate(job.class, j) > 0.0) {
            Some(free) => servers.start(free, job)?,
            None => self.0.push_back(job),
        }
        Ok(())
    }

    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        let next = self.0.iter().position(|job| servers.rate(job.class, done.server) > 0.0);
        match next.and_then(|i| self.0.remove(i)) {
            Some(job) => servers.start(done.server, job),
            None => Ok(()),
        }
    }

    fn waiting(&self) -> usize {
        self.0.len()
    }
}

#[derive(Default)]
struct All(Vec<Completed>);

impl Observer for All {
    fn completed(&mut self, done: &Completed) {
        self.0.push(*done);
    }
}

/// Two servers: rates 1 and 1/2, busy 100 and 40 W, free 10 and 4 W, asleep 2 and 1 W, off 0 W.
fn two() -> Servers {
    Servers::new(ServerTable {
        servers: 2,
        classes: 1,
        rates: vec![1.0, 0.5],
        busy_w: vec![100.0, 40.0],
        free_w: vec![10.0, 4.0],
        asleep_w: vec![2.0, 1.0],
        off_w: vec![0.0, 0.0],
    })
    .unwrap()
}

#[test]
fn times_and_energies_of_three_jobs_by_hand() {
    // Job 0 on server 0 over [0, 2], job 1 on server 1 over [1, 5], job 2 waits from 1.5, on server 0 over [2, 3].
    let arrivals = Listed::new(&[(0.0, 2.0, 0), (1.0, 2.0, 0), (1.5, 1.0, 0)]);
    let mut run = Simulation::new(arrivals, Fcfs::default(), two());
    let mut all = All::default();
    run.run(Until::horizon(6.0), &Limits::NONE, &mut all).unwrap();
    run.settle();
    let rows: Vec<_> = all.0.iter().map(|d| (d.job.number, d.server, d.start_s, d.finish_s)).collect();
    assert_eq!(rows, [(0, 0, 0.0, 2.0), (2, 0, 2.0, 3.0), (1, 1, 1.0, 5.0)]);
    assert_eq!((all.0[1].wait_s(), all.0[1].response_s()), (0.5, 1.5));
    let servers = run.servers();
    assert_eq!((run.now_s(), servers.in_state_s(0, State::Busy), servers.in_state_s(1, State::Busy)), (6.0, 3.0, 4.0));
    assert_eq!(servers.settled_energy_j(State::Busy), 3.0 * 100.0 + 4.0 * 40.0);
    assert_eq!(servers.settled_energy_j(State::Free), 3.0 * 10.0 + 2.0 * 4.0);
    assert_eq!((run.in_system_s(), run.waiting_s()), (2.0 + 4.0 + 1.5, 0.5));
    assert_eq!((run.in_system_count(), run.completed_count(), run.events_count()), (&[0][..], 3, 6));
}

#[test]
fn times_of_servers_include_the_running_job() {
    let mut run = Simulation::new(Listed::new(&[(1.0, 2.0, 0)]), Fcfs::default(), two());
    run.run(Until::horizon(2.5), &Limits::NONE, &mut All::default()).unwrap();
    let servers = run.servers();
    assert_eq!((servers.executed_s(0, 0), servers.in_state_s(0, State::Busy)), (1.5, 1.5));
}

/// At 1 s server 0 slows to half speed and half power. Server 1 sleeps from the start until 3 s, then it is off.
#[derive(Clone, Default)]
struct Timed(Fcfs);

impl QueuePolicy for Timed {
    fn begin(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        servers.turn(1, State::Asleep)?;
        servers.set_timer(3.0, 7)?;
        servers.set_timer(1.0, 8)
    }

    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop> {
        self.0.arrived(servers, job)
    }

    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        self.0.ended(servers, done)
    }

    fn timer(&mut self, servers: &mut Servers, token: u64) -> Result<(), Stop> {
        match token {
            7 => servers.turn(1, State::Off),
            _ => servers.set_speed(0, Speed { rate: 0.5, busy_w: 0.5, idle_w: 0.1 }),
        }
    }

    fn waiting(&self) -> usize {
        self.0.waiting()
    }
}

#[test]
fn a_speed_change_rescales_the_running_job_and_a_sleeping_server_takes_no_job() {
    // Job 0 on server 0 does half of its work by 1 s, and the other half at half speed by 3 s. Job 1 waits, because server 1
    // sleeps. At 3 s the end comes before the timer, so that job 1 runs on server 0 over [3, 5].
    let arrivals = Listed::new(&[(0.0, 2.0, 0), (0.5, 1.0, 0)]);
    let mut run = Simulation::new(arrivals, Timed::default(), two());
    let mut all = All::default();
    run.run(Until::horizon(6.0), &Limits::NONE, &mut all).unwrap();
    run.settle();
    let rows: Vec<_> = all.0.iter().map(|d| (d.job.number, d.server, d.start_s, d.finish_s)).collect();
    assert_eq!(rows, [(0, 0, 0.0, 3.0), (1, 0, 3.0, 5.0)]);
    let servers = run.servers();
    let energies = [State::Free, State::Busy, State::Asleep, State::Off].map(|s| servers.settled_energy_j(s));
    assert_eq!(energies, [1.0, 100.0 + 4.0 * 50.0, 3.0, 0.0], "free [5, 6] at 1 W; asleep [0, 3]");
    assert_eq!(servers.executed_s(0, 0), 5.0);
    assert_eq!((servers.state(1), servers.in_state_s(1, State::Off)), (State::Off, 3.0));
}

#[test]
fn impossible_decisions_are_refused() {
    let job = Job { arrived_s: 0.0, work: 1.0, number: 3, class: 0 };
    let mut servers = two();
    servers.start(0, job).unwrap();
    let message = servers.start(0, job).unwrap_err().to_string();
    assert!(message.contains("job 3") && message.contains("server 0") && message.contains("Busy"), "{message}");
    servers.turn(0, State::Off).unwrap_err();
    servers.turn(1, State::Busy).unwrap_err();
    servers.turn(1, State::Asleep).unwrap();
    servers.start(1, job).unwrap_err();
    servers.set_speed(1, Speed { rate: 0.0, busy_w: 1.0, idle_w: 1.0 }).unwrap_err();
    servers.set_timer(f64::NAN, 0).unwrap_err();
    servers.set_timer(-1.0, 0).unwrap_err();
    let table = ServerTable::with_idle_w(1, 2, vec![1.0, 0.0], vec![1.0; 2], vec![0.0]);
    let mut cannot = Servers::new(table.clone()).unwrap();
    cannot.start(0, Job { class: 1, ..job }).unwrap_err();
    for (bad, word) in [
        (ServerTable { servers: 0, ..table.clone() }, "at least one"),
        (ServerTable { rates: vec![1.0], ..table.clone() }, "rates"),
        (ServerTable { busy_w: vec![f64::NAN; 2], ..table }, "NaN"),
    ] {
        let error = Servers::new(bad).unwrap_err();
        assert!(matches!(&error, SimError::Invalid(message) if message.contains(word)), "{error}");
    }
}

#[test]
fn a_run_ends_at_its_limits() {
    let stream = ClassStream { rate_per_s: 2.0, work: Work::Exponential { mean: 1.0 } };
    let run = |limits: &Limits<'_>| {
        let one = Servers::new(ServerTable::with_idle_w(1, 1, vec![1.0], vec![1.0], vec![0.0])).unwrap();
        let mut run = Simulation::new(Poisson::new(&[stream], 1), Fcfs::default(), one);
        run.run(Until::completed(1_000_000), limits, &mut ()).unwrap_err()
    };
    for max_events in [4096, 5000] {
        assert_eq!(run(&Limits { max_events, ..Limits::NONE }), SimError::EventLimit(max_events));
    }
    let one = Servers::new(ServerTable::with_idle_w(1, 1, vec![1.0], vec![1.0], vec![0.0])).unwrap();
    let mut short = Simulation::new(Poisson::new(&[stream], 1), Fcfs::default(), one);
    let error = short.run(Until::completed(10), &Limits { max_events: 9, ..Limits::NONE }, &mut ()).unwrap_err();
    assert_eq!(error, SimError::EventLimit(9));
    // The overloaded queue grows without end.
    assert_eq!(run(&Limits { max_bytes: 1 << 16, ..Limits::NONE }), SimError::MemoryLimit(1 << 16));
    assert_eq!(run(&Limits { deadline_passed: &|| true, ..Limits::NONE }), SimError::Deadline);
}

#[test]
fn a_run_in_pieces_and_its_clone_equal_the_whole_run() {
    let classes = [1.0, 0.3].map(|rate_per_s| ClassStream { rate_per_s, work: Work::hyperexponential(1.0, 4.0) });
    let table = ServerTable::with_idle_w(2, 2, vec![1.0, 0.7, 0.0, 0.9], vec![9.0; 4], vec![2.0; 2]);
    let new = || Simulation::new(Poisson::new(&classes, 5), Fcfs::default(), Servers::new(table.clone()).unwrap());
    let (mut whole, mut pieces) = (new(), new());
    let (mut expected, mut got) = (All::default(), All::default());
    whole.run(Until::completed(20_000), &Limits::NONE, &mut expected).unwrap();
    pieces.run(Until::completed(7_000), &Limits::NONE, &mut got).unwrap();
    pieces.run(Until::horizon(pieces.now_s() + 100.0), &Limits::NONE, &mut got).unwrap();
    pieces.settle();
    let mut copy = pieces.clone();
    let mut copied = All(got.0.clone());
    pieces.run(Until::completed(20_000), &Limits::NONE, &mut got).unwrap();
    copy.run(Until::completed(20_000), &Limits::NONE, &mut copied).unwrap();
    assert_eq!(got.0, expected.0);
    assert_eq!(copied.0, expected.0);
    assert_eq!(whole.events_count(), pieces.events_count());
}

#[test]
fn other_servers_get_the_same_jobs_under_one_seed() {
    let classes = [1.0, 0.3].map(|rate_per_s| ClassStream { rate_per_s, work: Work::Exponential { mean: 1.0 } });
    let jobs = |rate: f64| {
        let table = ServerTable::with_idle_w(1, 2, vec![rate; 2], vec![1.0; 2], vec![0.0]);
        let mut run = Simulation::new(Poisson::new(&classes, 9), Fcfs::default(), Servers::new(table).unwrap());
        let mut all = All::default();
        run.run(Until::completed(2_000), &Limits::NONE, &mut all).unwrap();
        all.0.sort_by_key(|d| d.job.number);
        all.0.truncate(1_500);
        all.0.iter().map(|d| d.job).collect::<Vec<_>>()
    };
    assert_eq!(jobs(2.0), jobs(1.5));
}

/// A policy whose calls are all checked: exactly the jobs that have arrived and not started wait. It integrates power and
/// work between calls, independently of the kernel's meter.
#[derive(Clone)]
struct Checked<P> {
    inner: P,
    /// Remaining work of each job that has arrived; `None` after its end.
    remaining: Vec<Option<f64>>,
    waiting: std::collections::BTreeSet<u64>,
    /// Instant of the last call (s).
    since_s: f64,
    /// Power of the servers since the last call (W).
    power_w: f64,
    /// Jobs in service since the last call, with their rates (work a second).
    working: Vec<(u64, f64)>,
    energy_j: f64,
}

impl<P: QueuePolicy> Checked<P> {
    fn new(inner: P) -> Checked<P> {
        Checked {
            inner,
            remaining: Vec::new(),
            waiting: std::collections::BTreeSet::new(),
            since_s: 0.0,
            power_w: 0.0,
            working: Vec::new(),
            energy_j: 0.0,
        }
    }

    /// Integrates power and work since the last call.
    fn before(&mut self, now_s: f64) {
        let passed_s = now_s - self.since_s;
        self.energy_j += self.power_w * passed_s;
        for (number, rate) in self.working.drain(..) {
            *self.remaining[number as usize].as_mut().expect("it is in service") -= rate * passed_s;
        }
        self.since_s = now_s;
    }

    fn after(&mut self, servers: &Servers) {
        self.read(servers);
        for server in 0..servers.len() {
            if let Some(job) = servers.running(server)
                && servers.since_s(server) == servers.now_s()
                && self.waiting.remove(&job.number)
            {
                assert_eq!(self.remaining[job.number as usize], Some(job.work), "a job starts once, with all its work");
            }
        }
        assert_eq!(self.inner.waiting(), self.waiting.len(), "waiting jobs at {} s", servers.now_s());
    }

    /// Reads the powers and rates of the servers from now on.
    fn read(&mut self, servers: &Servers) {
        let table = servers.table();
        self.power_w = 0.0;
        self.working.clear();
        for server in 0..servers.len() {
            let speed = servers.speed(server);
            self.power_w += match (servers.state(server), servers.running(server)) {
                (State::Busy, Some(job)) => {
                    self.working.push((job.number, servers.rate(job.class, server)));
                    table.busy_w[job.class as usize * table.servers + server] * speed.busy_w
                }
                (State::Free, None) => table.free_w[server] * speed.idle_w,
                (State::Asleep, None) => table.asleep_w[server] * speed.idle_w,
                (State::Off, None) => table.off_w[server] * speed.idle_w,
                state => panic!("server {server} is {state:?}"),
            };
        }
    }
}

impl<P: QueuePolicy> QueuePolicy for Checked<P> {
    fn begin(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        self.inner.begin(servers)?;
        self.after(servers);
        Ok(())
    }

    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop> {
        self.before(servers.now_s());
        assert_eq!(job.number, self.remaining.len() as u64, "jobs have numbers in order of arrival");
        self.remaining.push(Some(job.work));
        self.waiting.insert(job.number);
        self.inner.arrived(servers, job)?;
        self.after(servers);
        Ok(())
    }

    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        self.before(servers.now_s());
        let remaining = self.remaining[done.job.number as usize].take();
        let is_done = remaining.is_some_and(|work| work.abs() < 1e-7 * (1.0 + done.job.work));
        assert!(is_done, "{remaining:?} of {done:?} remained");
        self.inner.ended(servers, done)?;
        self.after(servers);
        Ok(())
    }

    fn timer(&mut self, servers: &mut Servers, token: u64) -> Result<(), Stop> {
        self.before(servers.now_s());
        self.inner.timer(servers, token)?;
        self.after(servers);
        Ok(())
    }

    fn waiting(&self) -> usize {
        self.inner.waiting()
    }
}

/// The first jobs of a stream.
#[derive(Clone)]
struct First<A> {
    inner: A,
    /// Number of further jobs.
    remaining: u64,
}

impl<A: Arrivals> Arrivals for First<A> {
    fn next(&mut self) -> Job {
        let job = self.inner.next();
        let arrives = self.remaining > 0;
        self.remaining -= u64::from(arrives);
        Job { arrived_s: if arrives { job.arrived_s } else { f64::INFINITY }, ..job }
    }
}

/// Far more events than a terminating run of the conformance tests has.
const EVENTS_MAX: u64 = 5_000_000;

/// Checks the invariants of a policy. Every job is executed once, for its work, on one server at a time; no job is lost; the
/// run is repeatable, also from a clone on; times add up; energy is the integral of power; the run ends after the last
/// arrival. Returns the completions in order.
pub(crate) fn conforms<P: QueuePolicy, A: Arrivals + Clone>(
    policy: &P,
    table: &ServerTable,
    arrivals: &A,
    jobs: u64,
) -> Vec<Completed> {
    let limits = Limits { max_events: EVENTS_MAX, ..Limits::NONE };
    let new = || {
        let arrivals = First { inner: arrivals.clone(), remaining: jobs };
        Simulation::new(arrivals, Checked::new(policy.clone()), Servers::new(table.clone()).unwrap())
    };
    let mut run = new();
    let mut all = All::default();
    run.run(Until::completed(u64::MAX), &limits, &mut all).unwrap();
    run.settle();
    let done = all.0;
    let in_system = run.in_system_count().iter().sum::<u64>();
    assert_eq!((run.completed_count() + in_system, run.completed_count()), (jobs, done.len() as u64));
    let servers = run.servers();
    assert!((0..servers.len()).all(|j| servers.running(j).is_none()), "it ended while a job was in service");
    assert_eq!(in_system, run.waiting_count());

    // A copy is made after about half of the run.
    let mut original = new();
    let mut half = All::default();
    original.run(Until::completed(jobs / 2), &limits, &mut half).unwrap();
    let (mut copy, mut copied) = (original.clone(), All(half.0.clone()));
    copy.run(Until::completed(u64::MAX), &limits, &mut copied).unwrap();
    original.run(Until::completed(u64::MAX), &limits, &mut half).unwrap();
    assert_eq!(half.0, done, "the same run twice");
    assert_eq!(copied.0, done, "a clone continues like the original");
    assert_eq!((copy.now_s(), copy.events_count()), (run.now_s(), run.events_count()));
    copy.settle();
    let states = [State::Free, State::Busy, State::Asleep, State::Off];
    let energies = |servers: &Servers| states.map(|state| servers.settled_energy_j(state));
    assert_eq!(energies(copy.servers()), energies(run.servers()));

    let mut numbers: Vec<u64> = done.iter().map(|d| d.job.number).collect();
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "a job was executed twice");
    let mut by_server = vec![Vec::new(); table.servers];
    for d in &done {
        assert!(d.job.arrived_s <= d.start_s && d.start_s <= d.finish_s, "{d:?}");
        by_server[d.server].push((d.start_s, d.finish_s));
    }
    for times in &mut by_server {
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "a server executed two jobs at once");
    }
    for server in 0..table.servers {
        let sum: f64 = states.iter().map(|&state| run.servers().in_state_s(server, state)).sum();
        assert!((sum - run.now_s()).abs() < 1e-9 * run.now_s(), "server {server}: {sum} s of {} s", run.now_s());
        let executed: f64 = (0..table.classes as u32).map(|class| run.servers().executed_s(class, server)).sum();
        assert!((executed - run.servers().in_state_s(server, State::Busy)).abs() < 1e-9 * run.now_s());
    }
    let (metered_j, integral_j) = (energies(run.servers()).iter().sum::<f64>(), run.policy().energy_j);
    assert!(
        (metered_j - integral_j).abs() <= 1e-9 * integral_j,
        "{metered_j} J, the integral of the power is {integral_j} J"
    );
    done
}

/// A random cluster of up to 80 servers in up to 4 classes.
fn random_cluster(seed: u64) -> (ServerTable, Vec<Vec<usize>>, ClassStream) {
    let mut words = Philox::stream(seed, Purpose::Size);
    let (mut rates, mut groups) = (Vec::new(), Vec::new());
    for _ in 0..=words.below(4) {
        let count = 1 + words.below(20) as usize;
        groups.push((rates.len()..rates.len() + count).collect::<Vec<_>>());
        rates.extend(vec![words.uniform_in(0.1, 2.0); count]);
    }
    // The order of priority may differ from the platform's order.
    let first = words.below(groups.len() as u64) as usize;
    groups.rotate_left(first);
    let load = words.uniform_in(0.3, 0.98);
    let rate_per_s = load * rates.iter().sum::<f64>();
    let busy_w = rates.iter().map(|rate| 100.0 * rate).collect();
    let table = ServerTable::with_idle_w(rates.len(), 1, rates.clone(), busy_w, vec![10.0; rates.len()]);
    (table, groups, ClassStream { rate_per_s, work: Work::Exponential { mean: 1.0 } })
}

#[test]
fn buffering_schemes_conform_on_random_clusters() {
    for seed in 0..40 {
        let (table, groups, stream) = random_cluster(seed);
        for scheme in [Scheme::Separate, Scheme::Class, Scheme::Common] {
            let mut done = conforms(&Buffered::new(scheme, &groups), &table, &Poisson::new(&[stream], seed), 4_000);
            assert_eq!(done.len(), 4_000);
            for d in &done {
                let service_s = d.job.work / table.rates[d.server];
                assert!((d.finish_s - d.start_s - service_s).abs() < 1e-9 * d.finish_s, "{d:?}");
            }
            // Each queue (of the whole cluster, of a class, of a server) is first come, first served.
            done.sort_by(|a, b| a.start_s.total_cmp(&b.start_s).then(a.job.number.cmp(&b.job.number)));
            let group = |server: usize| groups.iter().position(|group| group.contains(&server)).unwrap();
            let queue = |server: usize| match scheme {
                Scheme::Separate => server,
                Scheme::Class => group(server),
                Scheme::Common => 0,
            };
            let mut last = vec![None; table.servers];
            for d in done.iter().filter(|d| d.wait_s() > 0.0) {
                let last = &mut last[queue(d.server)];
                assert!(last.is_none_or(|number| number < d.job.number), "{scheme:?}: {d:?} overtook {last:?}");
                *last = Some(d.job.number);
            }
        }
    }
}

#[test]
fn schemes_and_priorities_by_hand() {
    // Servers 0 and 1 are of class A (rate 1), server 2 is of class B (rate 1/2), which has priority.
    let table = ServerTable::with_idle_w(3, 1, vec![1.0, 1.0, 0.5], vec![1.0; 3], vec![0.0; 3]);
    let arrivals = [(0.0, 2.0), (0.1, 2.0), (0.2, 3.0), (0.3, 1.0), (0.4, 1.0), (0.5, 1.0), (0.6, 1.0)];
    let arrivals = arrivals.map(|(at, work)| (at, work, 0));
    let starts = |scheme| {
        let policy = Buffered::new(scheme, &[vec![2], vec![0, 1]]);
        let mut run = Simulation::new(Listed::new(&arrivals), policy, Servers::new(table.clone()).unwrap());
        let mut all = All::default();
        run.run(Until::horizon(100.0), &Limits::NONE, &mut all).unwrap();
        all.0.sort_by_key(|d| d.job.number);
        all.0.iter().map(|d| (d.server, (d.start_s * 10.0).round() / 10.0)).collect::<Vec<_>>()
    };
    // Job 0 on server 2 over [0, 4], job 1 on server 0 over [0.1, 2.1], job 2 on server 1 over [0.2, 3.2].
    let first = [(2, 0.0), (0, 0.1), (1, 0.2)];
    // One queue: server 0 takes its head at 2.1 and 3.1, server 1 at 3.2, server 2 at 4.
    assert_eq!(starts(Scheme::Common), [&first[..], &[(0, 2.1), (0, 3.1), (1, 3.2), (2, 4.0)]].concat());
    // Classes in turn, B first: jobs 3 and 5 wait for server 2 (free at 4 and 6), jobs 4 and 6 for class A.
    assert_eq!(starts(Scheme::Class), [&first[..], &[(2, 4.0), (0, 2.1), (2, 6.0), (0, 3.1)]].concat());
    // Servers in turn: job 3 waits for server 2, job 4 for server 0, job 5 for server 1, job 6 for server 2.
    assert_eq!(starts(Scheme::Separate), [&first[..], &[(2, 4.0), (0, 2.1), (1, 3.2), (2, 6.0)]].concat());
}
