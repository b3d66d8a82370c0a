//! The event loop of the queues.
//!
//! Functions that are called at every event are always inlined ([`Servers::start`], arrivals, ends, the policies for 10^8
//! jobs), so that jobs are passed in registers. Passing them through memory, written by fields and read whole, made a run
//! take half as long again.
use super::arrivals::Arrivals;
use super::policy::{Completed, Job, QueuePolicy};
use super::servers::Servers;
use crate::error::{SimError, Stop};
use crate::limits::Limits;

/// Receives every completed job, before the policy does.
pub trait Observer {
    /// A job has ended.
    fn completed(&mut self, done: &Completed);
}

/// Ignores completed jobs.
impl Observer for () {
    fn completed(&mut self, _: &Completed) {}
}

/// The end of a call of [`Simulation::run`]: the horizon or the count, whichever is reached first. After the last arrival
/// the call also ends once the system is empty or no event is left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// Later events are not handled; the clock ends at this instant (s). Infinity for no horizon.
    pub horizon_s: f64,
    /// Number of completed jobs since time 0.
    pub completed_count: u64,
}

impl Until {
    /// Until this number of jobs have completed since time 0.
    pub fn completed(count: u64) -> Until {
        Until { horizon_s: f64::INFINITY, completed_count: count }
    }

    /// Until an instant (s).
    pub fn horizon(horizon_s: f64) -> Until {
        Until { horizon_s, completed_count: u64::MAX }
    }
}

/// One run of arrivals, a policy and servers, which starts empty at time 0. A clone continues exactly like the original.
#[derive(Debug, Clone)]
pub struct Simulation<A, P> {
    servers: Servers,
    policy: P,
    arrivals: A,
    next: Job,
    begun: bool,
    arrived_count: u64,
    completed_count: u64,
    events_count: u64,
    /// Jobs in the system by class.
    in_system_count: Vec<u64>,
    /// Integral of the number of jobs in the system (job-seconds).
    in_system_s: f64,
    /// Integral of the number of waiting jobs (job-seconds).
    waiting_s: f64,
    /// Sum of the arrival instants of the jobs in the system (s).
    arrivals_sum_s: f64,
}

/// Events between two checks of the limits.
const LIMITS_EVERY: u64 = 1024;

impl<A: Arrivals, P: QueuePolicy> Simulation<A, P> {
    /// A run that has not begun.
    pub fn new(mut arrivals: A, policy: P, servers: Servers) -> Simulation<A, P> {
        let next = arrivals.next();
        Simulation {
            in_system_count: vec![0; servers.table().classes],
            servers,
            policy,
            arrivals,
            next,
            begun: false,
            arrived_count: 0,
            completed_count: 0,
            events_count: 0,
            in_system_s: 0.0,
            waiting_s: 0.0,
            arrivals_sum_s: 0.0,
        }
    }

    /// Continues the run until `until`; it may be called again with a later one. Then the clock is at the horizon, if that
    /// was reached, else at the last event.
    ///
    /// # Errors
    /// [`SimError::Policy`] for impossible decisions; the errors of limits.
    pub fn run<O: Observer>(&mut self, until: Until, limits: &Limits<'_>, observer: &mut O) -> Result<(), SimError> {
        self.handle_events(until, limits, observer).map_err(SimError::from)
    }

    fn handle_events<O: Observer>(&mut self, until: Until, limits: &Limits<'_>, observer: &mut O) -> Result<(), Stop> {
        if !self.begun {
            self.begun = true;
            self.policy.begin(&mut self.servers)?;
        }
        while self.completed_count < until.completed_count {
            if self.events_count.is_multiple_of(LIMITS_EVERY) {
                self.check(limits)?;
            }
            let due_s = self.servers.next_due_s();
            let timer_s = self.servers.next_timer_s();
            let arrival_s = self.next.arrived_s;
            if due_s <= arrival_s && due_s <= timer_s {
                if due_s > until.horizon_s || due_s == f64::INFINITY {
                    break;
                }
                self.advance(due_s);
                let done = self.servers.end_next();
                self.completed_count += 1;
                self.in_system_count[done.job.class as usize] -= 1;
                self.arrivals_sum_s -= done.job.arrived_s;
                observer.completed(&done);
                self.policy.ended(&mut self.servers, &done)?;
            } else if arrival_s <= timer_s {
                if arrival_s > until.horizon_s {
                    break;
                }
                self.advance(arrival_s);
                let job = std::mem::replace(&mut self.next, self.arrivals.next());
                self.arrived_count += 1;
                self.in_system_count[job.class as usize] += 1;
                self.arrivals_sum_s += job.arrived_s;
                self.policy.arrived(&mut self.servers, job)?;
            } else {
                if timer_s > until.horizon_s || self.is_over() {
                    break;
                }
                self.advance(timer_s);
                let token = self.servers.take_timer();
                self.policy.timer(&mut self.servers, token)?;
            }
            self.events_count += 1;
        }
        if self.events_count > limits.max_events {
            return Err(Box::new(SimError::EventLimit(limits.max_events)));
        }
        let now_s = self.servers.now_s();
        if self.completed_count < until.completed_count && until.horizon_s.is_finite() && until.horizon_s > now_s {
            self.advance(until.horizon_s);
        }
        Ok(())
    }

    /// Whether the system is empty and no job will arrive: timers alone could go on for ever.
    fn is_over(&self) -> bool {
        self.next.arrived_s == f64::INFINITY && self.arrived_count == self.completed_count
    }

    #[inline]
    fn advance(&mut self, to_s: f64) {
        let elapsed_s = to_s - self.servers.now_s();
        // The counts are far below 2^63, and the conversion of signed integers is cheaper.
        self.in_system_s += (self.arrived_count - self.completed_count).cast_signed() as f64 * elapsed_s;
        self.waiting_s += (self.arrived_count - self.servers.started_count()).cast_signed() as f64 * elapsed_s;
        self.servers.advance(to_s);
    }

    #[cold]
    fn check(&self, limits: &Limits<'_>) -> Result<(), Stop> {
        let bytes = self.policy.waiting().saturating_mul(size_of::<Job>());
        if self.events_count >= limits.max_events {
            Err(Box::new(SimError::EventLimit(limits.max_events)))
        } else if bytes > limits.max_bytes {
            Err(Box::new(SimError::MemoryLimit(limits.max_bytes)))
        } else if (limits.deadline_passed)() {
            Err(Box::new(SimError::Deadline))
        } else {
            Ok(())
        }
    }

    /// The servers. Their settled sums include the present instant after [`Simulation::settle`].
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Settles times and energies of all servers up to now.
    pub fn settle(&mut self) {
        self.servers.settle();
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The present instant (s).
    pub fn now_s(&self) -> f64 {
        self.servers.now_s()
    }

    /// Number of completed jobs.
    pub fn completed_count(&self) -> u64 {
        self.completed_count
    }

    /// Number of jobs that have arrived and not started.
    pub fn waiting_count(&self) -> u64 {
        self.arrived_count - self.servers.started_count()
    }

    /// Number of jobs of each class in the system, waiting or in service.
    pub fn in_system_count(&self) -> &[u64] {
        &self.in_system_count
    }

    /// Number of handled events.
    pub fn events_count(&self) -> u64 {
        self.events_count
    }

    /// Integral of the number of jobs in the system since time 0 (job-seconds).
    pub fn in_system_s(&self) -> f64 {
        self.in_system_s
    }

    /// Sum of the times that the jobs now in the system have spent there (job-seconds).
    pub fn spent_s(&self) -> f64 {
        (self.arrived_count - self.completed_count) as f64 * self.now_s() - self.arrivals_sum_s
    }

    /// Integral of the number of waiting jobs since time 0 (job-seconds).
    pub fn waiting_s(&self) -> f64 {
        self.waiting_s
    }
}
