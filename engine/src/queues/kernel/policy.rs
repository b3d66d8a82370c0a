//! What the kernel of the queues asks of a policy.
use super::servers::Servers;
use crate::error::Stop;

/// A job of the heterogeneous queues: one proc's work, of one class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job {
    /// Arrival instant (s).
    pub arrived_s: f64,
    /// Work, drawn at arrival; a server of rate r executes it in work / r seconds. Papers' policies do not look at it.
    pub work: f64,
    /// Position in order of arrival, from 0: the job's identity in one run.
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

/// A policy of heterogeneous queues: owns the waiting jobs and decides at once, inside the call that tells it of an event.
///
/// A decision is a call of [`Servers`]: [`Servers::start`], [`Servers::turn`] (asleep, off, free again),
/// [`Servers::set_speed`], [`Servers::set_timer`]. The kernel refuses impossible ones. A policy is a value: it holds no
/// clock and no random source, so that a clone continues exactly like the original. Neither may it allocate for each
/// event in steady state (a `VecDeque` that has grown does not).
///
/// Events of one instant come in this order: ends (lowest server first), arrivals, timers (in the order they were set).
pub trait QueuePolicy: Clone {
    /// Called once, before the first event, at time 0: every server is free. Here servers are put to sleep or switched
    /// off from the start, and timers begin.
    ///
    /// # Errors
    /// Those of the decisions, passed on; so everywhere below.
    fn begin(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        let _ = servers;
        Ok(())
    }

    /// A job has arrived: start it on a free server, or keep it.
    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop>;

    /// A job has ended. Its server is free now and its times are accounted for: give it a waiting job, let it free,
    /// or turn it asleep or off.
    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop>;

    /// A timer that the policy set has come.
    fn timer(&mut self, servers: &mut Servers, token: u64) -> Result<(), Stop> {
        let _ = (servers, token);
        Ok(())
    }

    /// Jobs that wait; at every event the kernel's own count equals it (checked by the conformance tests).
    fn waiting(&self) -> usize;
}
