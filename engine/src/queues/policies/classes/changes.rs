//! Systems that change: servers leave, return or change their speed, and policies get new shares.
use super::policy::ClassPolicy;
use crate::error::Stop;
use crate::queues::{Completed, Job, QueuePolicy, Servers, Speed, State};

/// An interval in which the system does not change.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Its first instant (s).
    pub at_s: f64,
    /// Factor of each server's rates; 0: the server has left.
    pub speeds: Vec<f64>,
    /// delta* of the phase, class by class, for a policy that follows shares.
    pub shares: Option<Vec<f64>>,
}

/// A policy in a system that changes (Al-Daoud et al. 2011, section 4: two new linear programs at each change).
///
/// A server that leaves completes its job at the old speed, takes no other, and is switched off. A server whose speed
/// changes continues its job at the new speed.
#[derive(Debug, Clone)]
pub struct Changing<P> {
    inner: P,
    /// In order of time; the first begins at 0 with every server at speed 1.
    phases: Vec<Phase>,
    /// Index of the present phase.
    now: usize,
}

/// Token of the timers of changes; the inner policy uses lower ones.
const CHANGE: u64 = 1 << 63;

impl<P: ClassPolicy> Changing<P> {
    /// The policy of the first phase, and all phases.
    pub fn new(inner: P, phases: Vec<Phase>) -> Changing<P> {
        Changing { inner, phases, now: 0 }
    }

    fn set_timer(&self, servers: &mut Servers) -> Result<(), Stop> {
        self.phases.get(self.now + 1).map_or(Ok(()), |next| servers.set_timer(next.at_s, CHANGE))
    }

    fn is_present(&self, server: usize) -> bool {
        self.phases[self.now].speeds[server] > 0.0
    }
}

impl<P: ClassPolicy> QueuePolicy for Changing<P> {
    fn begin(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        self.set_timer(servers)?;
        self.inner.begin(servers)
    }

    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop> {
        self.inner.arrived(servers, job)
    }

    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        if !self.is_present(done.server) {
            servers.turn(done.server, State::Off)?;
        }
        self.inner.ended(servers, done)
    }

    fn timer(&mut self, servers: &mut Servers, token: u64) -> Result<(), Stop> {
        if token != CHANGE {
            return self.inner.timer(servers, token);
        }
        self.now += 1;
        for server in 0..servers.len() {
            let busy = servers.state(server) == State::Busy;
            if !self.is_present(server) {
                if !busy {
                    servers.turn(server, State::Off)?;
                }
                continue;
            }
            if servers.state(server) == State::Off {
                servers.turn(server, State::Free)?;
            }
            let rate = self.phases[self.now].speeds[server];
            if servers.speed(server).rate != rate {
                servers.set_speed(server, Speed { rate, busy_w: 1.0, idle_w: 1.0 })?;
            }
        }
        self.inner.changed(servers, self.phases[self.now].shares.as_deref())?;
        self.set_timer(servers)
    }

    fn waiting(&self) -> usize {
        self.inner.waiting()
    }
}
