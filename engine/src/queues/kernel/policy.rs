//! The trait of policies of queues, and its jobs.
use super::servers::Servers;
use crate::error::Stop;

/// A job of the heterogeneous queues: one proc's work, of one class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job {
    /// Arrival instant (s).
    pub arrived_s: f64,
    /// Work, drawn at arrival; a server of rate r executes it in work / r seconds. Policies of papers do not use it.
    pub work: f64,
    /// Position in order of arrival, from 0: identifies the job in one run.
    pub number: u64,
    /// Class, from 0.
    pub class: u32,
}

/// A job that has just ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Completed {
    /// The job.
    pub job: Job,
    /// Server that executed it.
    pub server: usize,
    /// When it started (s).
    pub start_s: f64,
    /// When it ended (s): now.
    pub finish_s: f64,
}

impl Completed {
    /// Start minus arrival (s).
    pub fn wait_s(&self) -> f64 {
        self.start_s - self.job.arrived_s
    }

    /// End minus arrival (s): response, sojourn or completion time.
    pub fn response_s(&self) -> f64 {
        self.finish_s - self.job.arrived_s
    }
}

/// A policy of heterogeneous queues. It owns the waiting jobs and decides inside the call that reports an event.
///
/// A decision is a call of [`Servers`]: [`Servers::start`], [`Servers::turn`] (asleep, off, free again),
/// [`Servers::set_speed`], [`Servers::set_timer`]. The kernel refuses impossible decisions. A policy is a value: it has no
/// clock and no random source, so that a clone continues exactly like the original. It must not allocate at each event in
/// steady state (a `VecDeque` that has grown does not).
///
/// Order of events at one instant: ends (lowest server first), arrivals, timers (in the order in which they were set).
pub trait QueuePolicy: Clone {
    /// Called once, at time 0, before the first event. Every server is free; the policy may turn servers asleep or off and
    /// set timers.
    ///
    /// # Errors
    /// The errors of its decisions; the same holds for the functions below.
    fn begin(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        let _ = servers;
        Ok(())
    }

    /// A job has arrived: start it on a free server, or keep it.
    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop>;

    /// A job has ended. Its server is free now: start a waiting job on it, leave it free, or turn it asleep or off.
    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop>;

    /// A timer of the policy is due.
    fn timer(&mut self, servers: &mut Servers, token: u64) -> Result<(), Stop> {
        let _ = (servers, token);
        Ok(())
    }

    /// Number of waiting jobs. It equals the kernel's own count after every event (checked by the conformance tests).
    fn waiting(&self) -> usize;
}
