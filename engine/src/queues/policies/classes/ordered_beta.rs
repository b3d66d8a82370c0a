//! The ordered-beta policy of structured systems.
use super::policy::{ClassPolicy, Setup};
use super::queues::ClassQueues;
use super::system::{self, Groups, vector};
use crate::error::Stop;
use crate::lp::System;
use crate::queues::{Completed, Job, QueuePolicy, Servers, State};
use crate::spec::{Component, Default, Param, Role, SimSpec, Type};

/// Description of the policy.
pub const COMPONENT: Component = Component {
    role: Role::Policy,
    name: "class-ordered-beta",
    version: 1,
    source: "Al-Daoud, Al-Azzoni & Down 2011, section 6",
    doc: "Servers are switched on and off in the order of their power efficiencies, depending on the mean completion time \
          of the last window.",
    params: &[
        Param::positive("beta_window_s", 1e300, "s", Default::Real(25.0), "WS: time between decisions."),
        Param::positive("beta_target_s", 1e300, "s", Default::Real(0.2), "W: target of the mean completion time."),
        Param {
            name: "beta_tolerance",
            ty: Type::Real { min: 0.0, max: 1.0, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Real(0.1),
            doc: "T: above (1 - T) W one more server is switched on, below (1 - 2T) W one is switched off.",
        },
        vector(
            "beta_groups_j",
            "J",
            Default::Unset,
            "beta of each group; if not given, the slopes of busy power over the nearest structured rates (singular \
             value decomposition, then least squares through the origin).",
        ),
    ],
    ..super::CLASS_POLICY
};

/// Parameters of the ordered-beta policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// WS: time between decisions (s), above 0.
    pub length_s: f64,
    /// W: target of the mean completion time (s).
    pub target_s: f64,
    /// T: tolerance, 0 to 1.
    pub tolerance: f64,
}

/// Switches servers on and off in the order of their power efficiencies 1/beta (Al-Daoud et al. 2011, section 6).
///
/// A decision at the end of every window depends on the mean completion time of the jobs that ended in the window (0 if
/// none did). Above (1 - T) W, the switched-off server of least beta is switched on and takes the earliest waiting job.
/// Below (1 - 2T) W, the switched-on server of greatest beta is switched off, after its present job; at least one server
/// stays on. An arriving job takes the free server of least beta, a server that becomes free takes the earliest job that
/// it can execute.
#[derive(Debug, Clone)]
pub struct OrderedBeta {
    queues: ClassQueues,
    window: Window,
    /// Servers by beta, least first.
    order: Vec<usize>,
    /// Number of servers that are switched on: the first of `order`.
    on: usize,
    /// Whether each server is switched on.
    is_on: Vec<bool>,
    /// Sum of the response times of the jobs that ended in this window (s).
    response_s: f64,
    /// Number of jobs that ended in this window.
    ended_count: u64,
    /// Number of windows that have begun.
    windows: u64,
}

impl OrderedBeta {
    /// For servers with these betas; of equal ones the lower index is first.
    pub fn new(betas: &[f64], classes: usize, window: Window) -> OrderedBeta {
        let mut order: Vec<usize> = (0..betas.len()).collect();
        order.sort_by(|a, b| betas[*a].total_cmp(&betas[*b]));
        OrderedBeta {
            queues: ClassQueues::new(classes),
            window,
            on: order.len(),
            is_on: vec![true; order.len()],
            order,
            response_s: 0.0,
            ended_count: 0,
            windows: 0,
        }
    }

    fn set_timer(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        self.windows += 1;
        servers.set_timer(self.windows as f64 * self.window.length_s, 0)
    }

    fn serve(&mut self, servers: &mut Servers, server: usize) -> Result<(), Stop> {
        let next = self.queues.pop_earliest(servers, server);
        next.map_or(Ok(()), |job| servers.start(server, job))
    }

    fn switch_on(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        let server = self.order[self.on];
        self.on += 1;
        self.is_on[server] = true;
        // A server that still executes its last job just stays on.
        if servers.state(server) == State::Off {
            servers.turn(server, State::Free)?;
            self.serve(servers, server)?;
        }
        Ok(())
    }

    fn switch_off(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        self.on -= 1;
        let server = self.order[self.on];
        self.is_on[server] = false;
        if servers.is_free(server) { servers.turn(server, State::Off) } else { Ok(()) }
    }
}

impl ClassPolicy for OrderedBeta {
    const SERVERS_CHANGE: bool = false;

    fn problem(spec: &SimSpec, system: &System) -> Option<String> {
        betas(spec, system.classes()).err()
    }

    fn of(setup: &Setup<'_>) -> Result<OrderedBeta, String> {
        let (classes, policy) = (setup.system.classes(), setup.spec.choice(Role::Policy));
        let window = Window {
            length_s: policy.real("beta_window_s"),
            target_s: policy.real("beta_target_s"),
            tolerance: policy.real("beta_tolerance"),
        };
        Ok(OrderedBeta::new(&betas(setup.spec, classes)?, classes, window))
    }
}

impl QueuePolicy for OrderedBeta {
    fn begin(&mut self, servers: &mut Servers) -> Result<(), Stop> {
        self.set_timer(servers)
    }

    #[inline]
    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop> {
        let able = |server: &&usize| servers.is_free(**server) && servers.rate(job.class, **server) > 0.0;
        match self.order[..self.on].iter().find(able) {
            Some(server) => servers.start(*server, job),
            None => {
                self.queues.push(job);
                Ok(())
            }
        }
    }

    #[inline]
    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        self.response_s += done.response_s();
        self.ended_count += 1;
        if self.is_on[done.server] { self.serve(servers, done.server) } else { servers.turn(done.server, State::Off) }
    }

    fn timer(&mut self, servers: &mut Servers, _: u64) -> Result<(), Stop> {
        let mean_s = if self.ended_count > 0 { self.response_s / self.ended_count as f64 } else { 0.0 };
        (self.response_s, self.ended_count) = (0.0, 0);
        let Window { target_s, tolerance, .. } = self.window;
        if mean_s > (1.0 - tolerance) * target_s {
            if self.on < self.order.len() {
                self.switch_on(servers)?;
            }
        } else if mean_s < (1.0 - 2.0 * tolerance) * target_s && self.on > 1 {
            self.switch_off(servers)?;
        }
        self.set_timer(servers)
    }

    fn waiting(&self) -> usize {
        self.queues.len()
    }
}

/// beta of each server.
fn betas(spec: &SimSpec, classes: usize) -> Result<Vec<f64>, String> {
    let (policy, platform) = (spec.choice(Role::Policy), spec.choice(Role::Platform));
    let groups = Groups::of(platform, classes)?;
    let count = groups.servers.len();
    let of_groups = match policy.get("beta_groups_j") {
        Some(_) => policy.reals("beta_groups_j").to_vec(),
        None => system::fitted_betas(&groups).ok_or_else(|| {
            let key = system::rates_key(platform);
            format!("`{key}` has a group without a rate: give the betas (`beta_groups_j`)")
        })?,
    };
    if of_groups.len() != count {
        let found = of_groups.len();
        return Err(format!("`beta_groups_j` has {found} values: {count} groups (`group_idle_w`) need {count}"));
    }
    Ok(groups.by_server(&of_groups))
}
