//! Dynamic voltage scaling of each server by its own utilization.
use super::super::{Completed, QueuePolicy, Servers, Speed, State, Task};
use super::fcfs::Fcfs;
use crate::error::Stop;

/// One frequency of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frequency {
    /// Over the greatest frequency, above 0, at most 1.
    pub share: f64,
    /// Power while it executes, over that at the greatest frequency.
    pub busy_w: f64,
    /// Power without a task, over that at the greatest frequency.
    pub idle_w: f64,
}

/// What a server's utilization is taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Utilization {
    /// The last period.
    Period,
    /// All time since 0.
    Total,
}

/// First come, first served; every period each server takes the lowest frequency that is at least its utilization times
/// the greatest one, running tasks included (Al-Daoud et al. 2011, section 5.3).
#[derive(Debug, Clone)]
pub struct Dvs {
    fcfs: Fcfs,
    /// Lowest first.
    frequencies: Vec<Frequency>,
    period_s: f64,
    utilization: Utilization,
    /// Busy seconds of each server at the tick before the one that a timer is set for.
    busy_s: Vec<f64>,
    /// Frequency of each server, an index.
    chosen: Vec<usize>,
    /// Number of the tick that a timer is set for. None while no server's state changes: their utilizations are 0 or 1
    /// then, and stay so.
    tick: Option<u64>,
}

impl Dvs {
    /// For this number of servers and classes; `frequencies` lowest first, the last of share 1. All servers begin at
    /// the greatest.
    pub fn new(
        servers: usize,
        classes: usize,
        frequencies: Vec<Frequency>,
        period_s: f64,
        utilization: Utilization,
    ) -> Dvs {
        let top = frequencies.len() - 1;
        Dvs {
            fcfs: Fcfs::new(classes),
            frequencies,
            period_s,
            utilization,
            busy_s: vec![0.0; servers],
            chosen: vec![top; servers],
            tick: None,
        }
    }

    /// Something happens after a quiet time: the next tick matters. `ended`: the server whose task has just ended.
    #[inline]
    fn stir(&mut self, servers: &mut Servers, ended: Option<usize>) -> Result<(), Stop> {
        if self.tick.is_some() {
            return Ok(());
        }
        let now_s = servers.now_s();
        let last = (now_s / self.period_s).floor();
        let since_tick_s = now_s - last * self.period_s;
        for server in 0..self.busy_s.len() {
            let was_busy = servers.state(server) == State::Busy || ended == Some(server);
            let busy_s = servers.in_state_s(server, State::Busy);
            self.busy_s[server] = if was_busy { busy_s - since_tick_s } else { busy_s };
        }
        self.set_timer(servers, last as u64 + 1)
    }

    fn set_timer(&mut self, servers: &mut Servers, tick: u64) -> Result<(), Stop> {
        self.tick = Some(tick);
        // A product may round to before now.
        servers.set_timer((tick as f64 * self.period_s).max(servers.now_s()), 0)
    }

    /// The lowest frequency of at least this share.
    fn lowest(&self, utilization: f64) -> usize {
        let found = self.frequencies.iter().position(|frequency| frequency.share >= utilization);
        found.unwrap_or(self.frequencies.len() - 1)
    }

    fn choose(&mut self, servers: &mut Servers, server: usize, utilization: f64) -> Result<(), Stop> {
        let index = self.lowest(utilization);
        if self.chosen[server] == index {
            return Ok(());
        }
        self.chosen[server] = index;
        let Frequency { share, busy_w, idle_w } = self.frequencies[index];
        servers.set_speed(server, Speed { rate: share, busy_w, idle_w })
    }
}

impl QueuePolicy for Dvs {
    fn begin(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        self.set_timer(servers, 1)
    }

    #[inline]
    fn arrived(&mut self, servers: &mut Servers, task: Task) -> Result<(), Stop> {
        self.stir(servers, None)?;
        self.fcfs.arrived(servers, task)
    }

    #[inline]
    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        self.stir(servers, Some(done.server))?;
        self.fcfs.ended(servers, done)
    }

    fn timer(&mut self, servers: &mut Servers, _: u64) -> Result<(), Stop> {
        let tick = self.tick.take().expect("a timer is set with its tick");
        let now_s = servers.now_s();
        let mut quiet = self.utilization == Utilization::Period;
        for server in 0..self.busy_s.len() {
            let busy_s = servers.in_state_s(server, State::Busy);
            let utilization = match self.utilization {
                Utilization::Period => (busy_s - self.busy_s[server]) / self.period_s,
                Utilization::Total => busy_s / now_s,
            };
            self.busy_s[server] = busy_s;
            quiet &= servers.since_s(server) <= now_s - self.period_s;
            self.choose(servers, server, utilization)?;
        }
        if quiet { Ok(()) } else { self.set_timer(servers, tick + 1) }
    }

    fn waiting(&self) -> usize {
        self.fcfs.waiting()
    }
}
