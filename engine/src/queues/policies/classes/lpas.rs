//! The power-aware LPAS policy.
use super::policy::{ClassPolicy, Setup};
use super::queues::ClassQueues;
use crate::error::Stop;
use crate::lp::System;
use crate::queues::{Completed, Job, QueuePolicy, Servers, State};
use crate::spec::{Choice, Component, Default, Param, Role, SimSpec, Type};

/// Description of the policy.
pub const COMPONENT: Component = Component {
    role: Role::Policy,
    name: "class-lpas",
    version: 2,
    source: "Al-Daoud, Al-Azzoni & Down 2011, section 4",
    doc: "Servers follow the shares delta* of the linear program of least power that still serves the capacity c.",
    params: &[
        Param::positive(
            "lpas_capacity",
            1e300,
            "",
            Default::Unset,
            "Target capacity c, as a factor of the arrival rates, at most lambda*. The default, without this and \
             `lpas_capacity_share`, is lambda*.",
        ),
        Param {
            name: "lpas_capacity_share",
            ty: Type::Real { min: 0.0, max: 1.0, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Unset,
            doc: "Target capacity as a share s of the way from 1 to lambda*: c = 1 + s (lambda* - 1); 0.5 is the paper's \
                  midpoint. Instead of `lpas_capacity`.",
        },
    ],
    ..super::CLASS_POLICY
};

/// The target capacity c of a choice of `class-lpas`, at most lambda*.
pub fn target(policy: &Choice, lambda: f64) -> f64 {
    let target = match (policy.opt_real("lpas_capacity"), policy.opt_real("lpas_capacity_share")) {
        (Some(capacity), _) => capacity,
        (None, Some(share)) => 1.0 + share * (lambda - 1.0),
        (None, None) => lambda,
    };
    target.min(lambda)
}

/// A difference delta*_ij - delta_ij(t) of at most this size counts as 0.
///
/// A server wakes when its differences add up to 0: a server with one class is then exactly at its share. Sums of times
/// have errors of about 1e-15 of either sign, which must not decide whether a waiting job starts.
const ROUNDING: f64 = 1e-12;

/// Servers follow the shares delta* of a linear program (Al-Daoud et al. 2011, section 4).
///
/// Let delta_ij(t) be the share of [0, t] in which server j executed class i, including the running job. A class is
/// eligible on a server if delta*_ij > 0 and delta*_ij - delta_ij(t) >= 0. A server that becomes free takes the waiting
/// eligible class with the greatest difference (of equal ones the lowest index), or stays free for the next arrival of an
/// eligible class. If all its differences are negative when a job ends, it sleeps until its time without a job is the
/// share 1 - sum_i delta*_ij of all time; arrivals do not wake it. A server without shares always sleeps.
#[derive(Debug, Clone)]
pub struct Lpas {
    queues: ClassQueues,
    /// delta*_ij by class, then server.
    shares: Vec<f64>,
    /// Sum of each server's shares.
    loads: Vec<f64>,
    /// Number of phases that have begun since the start: timers of earlier phases are void.
    changes: u64,
}

impl Lpas {
    /// With the shares delta*, class by class, of `servers` servers.
    pub fn new(shares: Vec<f64>, servers: usize) -> Lpas {
        let loads = loads(&shares, servers);
        Lpas { queues: ClassQueues::new(shares.len() / servers), shares, loads, changes: 0 }
    }

    /// delta*_ij - delta_ij(t), rounded to 0 by [`ROUNDING`]; `None` if the server has no share of the class.
    #[inline]
    fn difference(&self, servers: &Servers, class: usize, server: usize) -> Option<f64> {
        let share = self.shares[class * self.loads.len() + server];
        let now_s = servers.now_s();
        let spent = if now_s > 0.0 { servers.executed_s(class as u32, server) / now_s } else { 0.0 };
        let difference = share - spent;
        (share > 0.0).then_some(if difference.abs() <= ROUNDING { 0.0 } else { difference })
    }

    #[inline]
    fn is_eligible(&self, servers: &Servers, class: usize, server: usize) -> bool {
        self.difference(servers, class, server).is_some_and(|difference| difference >= 0.0)
    }

    /// Starts the best eligible waiting job, if there is one, on a free server.
    fn serve(&mut self, servers: &mut Servers, server: usize) -> Result<(), Stop> {
        let mut best: Option<(usize, f64)> = None;
        for (class, _) in self.queues.heads() {
            let Some(difference) = self.difference(servers, class, server) else { continue };
            if difference >= 0.0 && best.is_none_or(|(_, greatest)| difference > greatest) {
                best = Some((class, difference));
            }
        }
        best.map_or(Ok(()), |(class, _)| servers.start(server, self.queues.pop(class)))
    }

    /// Decides whether a free server takes a job, stays free or goes to sleep.
    fn decide(&mut self, servers: &mut Servers, server: usize) -> Result<(), Stop> {
        if self.loads[server] <= 0.0 {
            return servers.turn(server, State::Asleep);
        }
        let classes = self.shares.len() / self.loads.len();
        if (0..classes).any(|class| self.is_eligible(servers, class, server)) {
            return self.serve(servers, server);
        }
        let sleep_s = self.sleep_s(servers, server);
        if sleep_s > 0.0 {
            servers.turn(server, State::Asleep)?;
            servers.set_timer(servers.now_s() + sleep_s, self.changes << 32 | server as u64)?;
        }
        Ok(())
    }

    /// Duration of the sleep of a server whose differences are all negative (s): tau = (r t - L) / (1 - r), the solution of
    /// (L + tau) / (t + tau) = r with r = 1 - load and L the time without a job. It does not sleep if tau is not above 0.
    fn sleep_s(&self, servers: &Servers, server: usize) -> f64 {
        let free_s = servers.now_s() - servers.in_state_s(server, State::Busy);
        let load = self.loads[server];
        let share_free = 1.0 - load;
        (share_free * servers.now_s() - free_s) / load
    }
}

/// Sum over classes of each server's shares.
fn loads(shares: &[f64], servers: usize) -> Vec<f64> {
    (0..servers).map(|server| shares.iter().skip(server).step_by(servers).sum()).collect()
}

impl ClassPolicy for Lpas {
    const SERVERS_CHANGE: bool = true;
    const FOLLOWS_SHARES: bool = true;

    fn problem(spec: &SimSpec, _: &System) -> Option<String> {
        let policy = spec.choice(Role::Policy);
        let both = policy.get("lpas_capacity").is_some() && policy.get("lpas_capacity_share").is_some();
        both.then(|| "`lpas_capacity` and `lpas_capacity_share` both say what the capacity is: give one".to_owned())
    }

    fn of(setup: &Setup<'_>) -> Result<Lpas, String> {
        Ok(Lpas::new(setup.allocations[0].delta.clone(), setup.system.machines()))
    }

    /// Decides again for every server without a job, including sleeping ones; delta_ij(t) is still that since time 0.
    fn changed(&mut self, servers: &mut Servers, shares: Option<&[f64]>) -> Result<(), Stop> {
        if let Some(shares) = shares {
            self.shares = shares.to_vec();
            self.loads = loads(shares, servers.len());
        }
        self.changes += 1;
        for server in 0..servers.len() {
            if servers.state(server) == State::Asleep {
                servers.turn(server, State::Free)?;
            }
            if servers.is_free(server) {
                self.decide(servers, server)?;
            }
        }
        Ok(())
    }
}

impl QueuePolicy for Lpas {
    fn begin(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        for server in (0..self.loads.len()).filter(|server| self.loads[*server] <= 0.0) {
            servers.turn(server, State::Asleep)?;
        }
        Ok(())
    }

    #[inline]
    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop> {
        let class = job.class as usize;
        self.queues.push(job);
        match servers.longest_free(|server| self.is_eligible(servers, class, server)) {
            // The head of the class, because a server may have become eligible while jobs of the class waited.
            Some(server) => servers.start(server, self.queues.pop(class)),
            None => Ok(()),
        }
    }

    #[inline]
    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        // A server that is not free has left the system.
        if servers.is_free(done.server) { self.decide(servers, done.server) } else { Ok(()) }
    }

    /// Wakes a server.
    fn timer(&mut self, servers: &mut Servers, token: u64) -> Result<(), Stop> {
        if token >> 32 != self.changes {
            return Ok(());
        }
        let server = (token & u64::from(u32::MAX)) as usize;
        servers.turn(server, State::Free)?;
        self.serve(servers, server)
    }

    fn waiting(&self) -> usize {
        self.queues.len()
    }
}
