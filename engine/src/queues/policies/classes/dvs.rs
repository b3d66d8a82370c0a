//! Dynamic voltage scaling of each server by its own utilization.
use super::fcfs::Fcfs;
use super::policy::{ClassPolicy, Setup};
use crate::error::Stop;
use crate::lp::System;
use crate::queues::{Completed, Job, QueuePolicy, Servers, Speed, State};
use crate::spec::{Choice, Component, Default, Param, Role, SimSpec, Type};

/// Description of the policy.
pub const COMPONENT: Component = Component {
    role: Role::Policy,
    name: "class-dvs",
    version: 2,
    source: "Al-Daoud, Al-Azzoni & Down 2011, section 5.3",
    doc: "First come, first served. Each server has the lowest frequency that covers its own utilization.",
    params: &[
        Param::positive("dvs_period_s", 1e300, "s", Default::Real(1e-4), "Time between two choices of frequencies."),
        Param::one_of(
            "dvs_utilization",
            &["period", "total"],
            "Whether the utilization is that of the last period or of the time since the beginning.",
        ),
        by_frequency(
            "dvs_mhz",
            "MHz",
            &[1000.0, 1800.0, 2000.0, 2200.0, 2400.0],
            "Frequencies, ascending; the platform's rates and powers are those at the last.",
        ),
        by_frequency(
            "dvs_busy_w",
            "W",
            &[80.5, 92.5, 103.5, 119.5, 140.5],
            "Busy power at each frequency; only the ratios to the last value matter.",
        ),
        by_frequency(
            "dvs_idle_w",
            "W",
            &[70.0, 74.5, 78.5, 83.5, 89.5],
            "Power without a job at each frequency; only the ratios to the last value matter.",
        ),
    ],
    ..super::CLASS_POLICY
};

/// A parameter with a value above 0 for each frequency.
const fn by_frequency(name: &'static str, unit: &'static str, default: &'static [f64], doc: &'static str) -> Param {
    let ty = Type::Reals { min: 1e-6, max: 1e9 };
    Param { name, ty, unit, default: Default::Reals(default), doc }
}

/// One frequency of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frequency {
    /// Frequency over the greatest frequency; above 0, at most 1.
    pub share: f64,
    /// Power while it executes a job, over the power at the greatest frequency.
    pub busy_w: f64,
    /// Power without a job, over the power at the greatest frequency.
    pub idle_w: f64,
}

/// The time over which a server's utilization is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Utilization {
    /// The last period.
    Period,
    /// The time since 0.
    Total,
}

/// First come, first served. At every tick, the end of a period, each server takes the lowest frequency that is at least
/// its utilization, running jobs included, times the greatest frequency (Al-Daoud et al. 2011, section 5.3).
#[derive(Debug, Clone)]
pub struct Dvs {
    fcfs: Fcfs,
    /// Lowest first.
    frequencies: Vec<Frequency>,
    period_s: f64,
    utilization: Utilization,
    /// Busy seconds of each server at the last tick; out of date for servers outside of `to_check`.
    busy_s: Vec<f64>,
    /// Index of each server's frequency.
    chosen: Vec<usize>,
    /// Number of further ticks at which each server has to be checked, for the utilization over periods. A server whose
    /// state did not change during a period has a utilization of 0 or 1 until its state changes, and is not checked.
    checks: Vec<u8>,
    /// The servers with further checks.
    to_check: Vec<usize>,
    /// Number of the tick of the present timer; `None` while no server has to be checked.
    tick: Option<u64>,
}

/// Checks after a change of state: at the end of its period, and at the end of the first period without a change.
const CHECKS: u8 = 2;

impl Dvs {
    /// For this number of servers and classes; `frequencies` are lowest first, the last has share 1. All servers begin at
    /// the last.
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
            checks: vec![CHECKS; servers],
            to_check: (0..servers).collect(),
            tick: None,
        }
    }

    /// Plans the checks of a server whose job has just ended (it `was_busy`) or started.
    #[inline]
    fn state_changed(&mut self, servers: &mut Servers, server: usize, was_busy: bool) -> Result<(), Stop> {
        if self.utilization == Utilization::Total {
            return Ok(());
        }
        let now_s = servers.now_s();
        let last = self.tick.map_or_else(|| (now_s / self.period_s).floor() as u64, |next| next - 1);
        if self.checks[server] == 0 {
            let since_tick_s = if was_busy { now_s - last as f64 * self.period_s } else { 0.0 };
            self.busy_s[server] = servers.in_state_s(server, State::Busy) - since_tick_s;
            self.to_check.push(server);
        }
        self.checks[server] = CHECKS;
        if self.tick.is_none() { self.set_timer(servers, last + 1) } else { Ok(()) }
    }

    fn set_timer(&mut self, servers: &mut Servers, tick: u64) -> Result<(), Stop> {
        self.tick = Some(tick);
        // The product may be rounded to an instant before now.
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

impl ClassPolicy for Dvs {
    const SERVERS_CHANGE: bool = false;

    fn problem(spec: &SimSpec, _: &System) -> Option<String> {
        frequencies(spec.choice(Role::Policy)).err()
    }

    fn of(setup: &Setup<'_>) -> Result<Dvs, String> {
        let (system, policy) = (&setup.system, setup.spec.choice(Role::Policy));
        let over = if policy.text("dvs_utilization") == "total" { Utilization::Total } else { Utilization::Period };
        let period_s = policy.real("dvs_period_s");
        Ok(Dvs::new(system.machines(), system.classes(), frequencies(policy)?, period_s, over))
    }
}

impl QueuePolicy for Dvs {
    fn begin(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        self.set_timer(servers, 1)
    }

    #[inline]
    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop> {
        match self.fcfs.queues.start_or_push(servers, job)? {
            Some(server) => self.state_changed(servers, server, false),
            None => Ok(()),
        }
    }

    #[inline]
    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        self.state_changed(servers, done.server, true)?;
        self.fcfs.ended(servers, done)
    }

    fn timer(&mut self, servers: &mut Servers, _: u64) -> Result<(), Stop> {
        let tick = self.tick.take().expect("a timer is set with its tick");
        let mut to_check = std::mem::take(&mut self.to_check);
        for &server in &to_check {
            let busy_s = servers.in_state_s(server, State::Busy);
            let utilization = match self.utilization {
                Utilization::Period => (busy_s - self.busy_s[server]) / self.period_s,
                Utilization::Total => busy_s / servers.now_s(),
            };
            self.busy_s[server] = busy_s;
            self.choose(servers, server, utilization)?;
        }
        if self.utilization == Utilization::Period {
            to_check.retain(|server| {
                self.checks[*server] -= 1;
                self.checks[*server] > 0
            });
        }
        self.to_check = to_check;
        if self.to_check.is_empty() { Ok(()) } else { self.set_timer(servers, tick + 1) }
    }

    fn waiting(&self) -> usize {
        self.fcfs.waiting()
    }
}

/// The frequencies of a choice of `class-dvs`, relative to the last.
fn frequencies(policy: &Choice) -> Result<Vec<Frequency>, String> {
    let [mhz, busy_w, idle_w] = ["dvs_mhz", "dvs_busy_w", "dvs_idle_w"].map(|name| policy.reals(name));
    let count = mhz.len();
    for (name, found) in [("dvs_busy_w", busy_w.len()), ("dvs_idle_w", idle_w.len())] {
        if found != count {
            return Err(format!("`{name}` has {found} values and `dvs_mhz` {count}: each frequency needs one"));
        }
    }
    if let Some(pair) = mhz.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(format!("`dvs_mhz` must ascend: {} is followed by {}", pair[0], pair[1]));
    }
    let over_last = |values: &[f64], i: usize| values[i] / values[count - 1];
    let frequency =
        |i| Frequency { share: over_last(mhz, i), busy_w: over_last(busy_w, i), idle_w: over_last(idle_w, i) };
    Ok((0..count).map(frequency).collect())
}
