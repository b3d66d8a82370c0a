//! The servers: rates and powers, present states, and the meter of their times and energies.
use super::due::Due;
use super::policy::{Completed, Job};
use crate::error::{SimError, Stop};
use crate::timers::{Timers, key_time};

/// Rates and powers of the servers. Matrices are by class, then server: entry (i, j) is at `i * servers + j`.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTable {
    /// Number of servers, 1 or more.
    pub servers: usize,
    /// Number of job classes, 1 or more.
    pub classes: usize,
    /// Rate of each server for each class (work/s); 0 where it cannot execute the class.
    pub rates: Vec<f64>,
    /// Power of each server while it executes each class (W).
    pub busy_w: Vec<f64>,
    /// Power of each free server (W): switched on, without a job.
    pub free_w: Vec<f64>,
    /// Power of each server asleep (W).
    pub asleep_w: Vec<f64>,
    /// Power of each server switched off (W).
    pub off_w: Vec<f64>,
}

impl ServerTable {
    /// Servers with the same power free, asleep and off.
    pub fn with_idle_w(servers: usize, classes: usize, rates: Vec<f64>, busy_w: Vec<f64>, idle_w: Vec<f64>) -> Self {
        ServerTable { servers, classes, rates, busy_w, free_w: idle_w.clone(), asleep_w: idle_w.clone(), off_w: idle_w }
    }

    /// The first problem of the table, as a sentence.
    pub fn problem(&self) -> Option<String> {
        let cells = self.servers.checked_mul(self.classes).filter(|&n| n > 0);
        let Some(cells) = cells else {
            return Some("queues need at least one server and one class of jobs".to_owned());
        };
        let lengths = [
            ("rates", self.rates.len(), cells),
            ("busy powers", self.busy_w.len(), cells),
            ("idle powers", self.free_w.len(), self.servers),
            ("asleep powers", self.asleep_w.len(), self.servers),
            ("off powers", self.off_w.len(), self.servers),
        ];
        if let Some((what, found, expected)) = lengths.into_iter().find(|(_, found, expected)| found != expected) {
            return Some(format!("{found} {what} were given, {expected} are needed"));
        }
        let values = [&self.rates, &self.busy_w, &self.free_w, &self.asleep_w, &self.off_w];
        let bad = values.into_iter().flatten().find(|v| !(0.0..f64::INFINITY).contains(*v));
        bad.map(|v| format!("{v} cannot be a rate or a power"))
    }
}

/// State of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Switched on, without a job.
    Free,
    /// Executes a job.
    Busy,
    /// Asleep: has to be turned free before it can execute a job.
    Asleep,
    /// Switched off: has to be turned free before it can execute a job.
    Off,
}

/// Factors on a server's rates and powers (frequency scaling); all 1 at the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// Factor on its rates; above 0.
    pub rate: f64,
    /// Factor on its power while it executes a job.
    pub busy_w: f64,
    /// Factor on its power free, asleep and off.
    pub idle_w: f64,
}

/// Full speed.
const FULL: Speed = Speed { rate: 1.0, busy_w: 1.0, idle_w: 1.0 };

/// The present state of one server.
#[derive(Debug, Clone)]
struct Server {
    state: State,
    speed: Speed,
    /// When it entered its state (s).
    since_s: f64,
    /// Instant up to which its times and energies are settled, that is, added to the sums (s).
    settled_s: f64,
    /// Present power (W).
    now_w: f64,
    /// Its job if it is busy, else its last job.
    job: Job,
    /// Settled seconds in each state, by [`State`].
    state_s: [f64; 4],
}

/// The servers, with the decisions of a policy.
///
/// A server's time and energy are settled when its state, speed or job changes, and by [`Servers::settle`]. Times of one
/// server include the time since then.
#[derive(Debug, Clone)]
pub struct Servers {
    table: ServerTable,
    now_s: f64,
    due: Due,
    each: Vec<Server>,
    /// Instant since which each server is free (s); infinity if it is not free. Side by side, because policies search them
    /// at every arrival.
    free_since_s: Vec<f64>,
    /// Settled seconds that each server executed each class, ordered like the table's matrices.
    executed_s: Vec<f64>,
    /// Settled energies (J) by [`State`].
    energy_j: [f64; 4],
    timers: Timers<u64>,
    started_count: u64,
}

impl Servers {
    /// Servers that are all free at time 0.
    ///
    /// # Errors
    /// [`SimError::Invalid`] if the table has a problem.
    pub fn new(table: ServerTable) -> Result<Servers, SimError> {
        if let Some(problem) = table.problem() {
            return Err(SimError::Invalid(problem));
        }
        let none = Job { arrived_s: 0.0, work: 0.0, number: 0, class: 0 };
        let server = |j: usize| Server {
            state: State::Free,
            speed: FULL,
            since_s: 0.0,
            settled_s: 0.0,
            now_w: table.free_w[j],
            job: none,
            state_s: [0.0; 4],
        };
        Ok(Servers {
            now_s: 0.0,
            due: Due::new(table.servers),
            each: (0..table.servers).map(server).collect(),
            free_since_s: vec![0.0; table.servers],
            executed_s: vec![0.0; table.rates.len()],
            energy_j: [0.0; 4],
            timers: Timers::default(),
            started_count: 0,
            table,
        })
    }

    /// The present instant (s).
    pub fn now_s(&self) -> f64 {
        self.now_s
    }

    /// Rates and powers at full speed.
    pub fn table(&self) -> &ServerTable {
        &self.table
    }

    /// Number of servers.
    pub fn len(&self) -> usize {
        self.each.len()
    }

    /// Always `false`: there is at least one server.
    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// State of a server.
    pub fn state(&self, server: usize) -> State {
        self.each[server].state
    }

    /// Whether a job can start on a server now.
    pub fn is_free(&self, server: usize) -> bool {
        self.each[server].state == State::Free
    }

    /// Instant at which a server entered its state (s); for a busy server, the start of its job.
    pub fn since_s(&self, server: usize) -> f64 {
        self.each[server].since_s
    }

    /// The server that has been free for the longest, among the servers that `able` admits; of equal ones the lowest.
    #[inline]
    pub fn longest_free(&self, able: impl Fn(usize) -> bool) -> Option<usize> {
        let mut found: Option<usize> = None;
        let mut earliest_s = f64::INFINITY;
        for (server, since_s) in self.free_since_s.iter().enumerate() {
            if *since_s < earliest_s && able(server) {
                (found, earliest_s) = (Some(server), *since_s);
            }
        }
        found
    }

    /// The job that a server executes.
    pub fn running(&self, server: usize) -> Option<&Job> {
        let each = &self.each[server];
        (each.state == State::Busy).then_some(&each.job)
    }

    /// Jobs started so far.
    pub fn started_count(&self) -> u64 {
        self.started_count
    }

    /// Rate of a server for a class at its present speed (work/s).
    pub fn rate(&self, class: u32, server: usize) -> f64 {
        self.table.rates[class as usize * self.table.servers + server] * self.each[server].speed.rate
    }

    /// The server's present speed.
    pub fn speed(&self, server: usize) -> Speed {
        self.each[server].speed
    }

    /// Seconds that a server has spent in a state since time 0.
    pub fn in_state_s(&self, server: usize, state: State) -> f64 {
        let each = &self.each[server];
        let open_s = if each.state == state { self.now_s - each.settled_s } else { 0.0 };
        each.state_s[state as usize] + open_s
    }

    /// Seconds that a server has executed jobs of a class since time 0, including its running job.
    pub fn executed_s(&self, class: u32, server: usize) -> f64 {
        let each = &self.each[server];
        let runs = each.state == State::Busy && each.job.class == class;
        let open_s = if runs { self.now_s - each.settled_s } else { 0.0 };
        self.executed_s[class as usize * self.table.servers + server] + open_s
    }

    /// Settled energy of all servers in a state since time 0 (J). It includes the present instant after [`Servers::settle`].
    pub fn settled_energy_j(&self, state: State) -> f64 {
        self.energy_j[state as usize]
    }

    /// Starts a job on a free server.
    ///
    /// # Errors
    /// [`SimError::Policy`] if the server is not free or cannot execute the class.
    #[inline(always)]
    pub fn start(&mut self, server: usize, job: Job) -> Result<(), Stop> {
        let cell = job.class as usize * self.table.servers + server;
        let each = &mut self.each[server];
        let rate = self.table.rates[cell] * each.speed.rate;
        if each.state != State::Free || rate <= 0.0 {
            return Err(self.refused_start(server, &job));
        }
        let open_s = self.now_s - each.settled_s;
        each.state_s[State::Free as usize] += open_s;
        self.energy_j[State::Free as usize] += each.now_w * open_s;
        each.state = State::Busy;
        each.since_s = self.now_s;
        self.free_since_s[server] = f64::INFINITY;
        each.settled_s = self.now_s;
        each.now_w = self.table.busy_w[cell] * each.speed.busy_w;
        each.job = job;
        self.due.set(server, self.now_s + job.work / rate);
        self.started_count += 1;
        Ok(())
    }

    /// Turns a server without a job asleep, off or free. Turning it to its present state has no effect.
    ///
    /// # Errors
    /// [`SimError::Policy`] if the server is busy or `state` is [`State::Busy`].
    pub fn turn(&mut self, server: usize, state: State) -> Result<(), Stop> {
        if self.each[server].state == State::Busy || state == State::Busy {
            let now = self.each[server].state;
            return Err(self.refused(format!("server {server} cannot be turned {state:?}: it is {now:?}")));
        }
        if self.each[server].state != state {
            self.settle_one(server);
            self.each[server].state = state;
            self.each[server].since_s = self.now_s;
            self.free_since_s[server] = if state == State::Free { self.now_s } else { f64::INFINITY };
            self.set_power(server);
        }
        Ok(())
    }

    /// Changes a server's speed; a running job goes on with its remaining work.
    ///
    /// # Errors
    /// [`SimError::Policy`] if the rate is not above 0, or if a factor is negative or not finite.
    pub fn set_speed(&mut self, server: usize, speed: Speed) -> Result<(), Stop> {
        let valid = |v: f64| (0.0..f64::INFINITY).contains(&v);
        if !(valid(speed.rate) && speed.rate > 0.0 && valid(speed.busy_w) && valid(speed.idle_w)) {
            return Err(self.refused(format!("server {server} cannot have the speed {speed:?}")));
        }
        self.settle_one(server);
        let each = &mut self.each[server];
        let old = std::mem::replace(&mut each.speed, speed);
        if each.state == State::Busy {
            let remaining_s = (self.due.of(server) - self.now_s) * (old.rate / speed.rate);
            self.due.set(server, self.now_s + remaining_s);
        }
        self.set_power(server);
        Ok(())
    }

    /// Sets the power of a server to that of its state, job and speed.
    fn set_power(&mut self, server: usize) {
        let (table, each) = (&self.table, &mut self.each[server]);
        each.now_w = match each.state {
            State::Free => table.free_w[server] * each.speed.idle_w,
            State::Busy => table.busy_w[each.job.class as usize * table.servers + server] * each.speed.busy_w,
            State::Asleep => table.asleep_w[server] * each.speed.idle_w,
            State::Off => table.off_w[server] * each.speed.idle_w,
        };
    }

    /// Sets a timer: [`crate::queues::QueuePolicy::timer`] will be called with `token` at an instant, now or later.
    ///
    /// # Errors
    /// [`SimError::Policy`] if the instant is past or not finite.
    pub fn set_timer(&mut self, at_s: f64, token: u64) -> Result<(), Stop> {
        if at_s >= self.now_s && at_s < f64::INFINITY {
            self.timers.push(at_s, token);
            return Ok(());
        }
        Err(self.refused(format!("a timer cannot be set for {at_s} s")))
    }

    /// Settles times and energies of all servers up to now.
    pub fn settle(&mut self) {
        for server in 0..self.each.len() {
            self.settle_one(server);
        }
    }

    fn settle_one(&mut self, server: usize) {
        let each = &mut self.each[server];
        let open_s = self.now_s - each.settled_s;
        each.settled_s = self.now_s;
        each.state_s[each.state as usize] += open_s;
        self.energy_j[each.state as usize] += each.now_w * open_s;
        if each.state == State::Busy {
            self.executed_s[each.job.class as usize * self.table.servers + server] += open_s;
        }
    }

    /// The next timer's instant (s); infinity without one.
    #[inline]
    pub(super) fn next_timer_s(&self) -> f64 {
        match self.timers.first_key() {
            u64::MAX => f64::INFINITY,
            key => key_time(key),
        }
    }

    /// Removes the next timer, which must exist, and returns its token.
    pub(super) fn take_timer(&mut self) -> u64 {
        self.timers.pop().expect("called only when a timer is due")
    }

    /// Instant at which the next job ends (s); infinity if none runs.
    #[inline]
    pub(super) fn next_due_s(&mut self) -> f64 {
        self.due.next().0
    }

    /// Sets the clock.
    #[inline]
    pub(super) fn advance(&mut self, to_s: f64) {
        debug_assert!(to_s >= self.now_s, "the clock never goes back");
        self.now_s = to_s;
    }

    /// Ends the next job, which must be due now. Its server becomes free.
    #[inline(always)]
    pub(super) fn end_next(&mut self) -> Completed {
        let (_, server) = self.due.next();
        self.due.set(server, f64::INFINITY);
        let each = &mut self.each[server];
        let open_s = self.now_s - each.settled_s;
        each.state_s[State::Busy as usize] += open_s;
        self.energy_j[State::Busy as usize] += each.now_w * open_s;
        self.executed_s[each.job.class as usize * self.table.servers + server] += open_s;
        let done = Completed { job: each.job, server, start_s: each.since_s, finish_s: self.now_s };
        each.state = State::Free;
        each.since_s = self.now_s;
        self.free_since_s[server] = self.now_s;
        each.settled_s = self.now_s;
        each.now_w = self.table.free_w[server] * each.speed.idle_w;
        done
    }

    #[cold]
    fn refused_start(&self, server: usize, job: &Job) -> Stop {
        let (state, rate, Job { number, class, .. }) = (self.each[server].state, self.rate(job.class, server), job);
        self.refused(format!(
            "start of job {number} of class {class} on server {server}: it is {state:?}, its rate for the class {rate}"
        ))
    }

    #[cold]
    fn refused(&self, what: String) -> Stop {
        Box::new(SimError::Policy { now_s: self.now_s, what })
    }
}
