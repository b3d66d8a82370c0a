//! A cluster of server classes: the platform of Do et al. 2013, and the ranking of its classes.
//!
//! The defaults are the paper's three types of servers. They serve clusters with any number of classes: class i is of type
//! i, and all classes from the third on are of the third type.
use super::kernel::servers::ServerTable;
use crate::spec::{Choice, Component, Default, Param, Role, Type};

/// Greatest number of servers of a cluster.
const SERVERS_MAX: f64 = 100_000.0;

/// Description of the cluster.
pub const COMPONENT: Component = Component {
    role: Role::Platform,
    name: "server-classes",
    version: 1,
    source: "Do et al. 2013, sections 2.1 and 3.1, Table 2",
    doc: "Named servers in classes of equal rate and power, for jobs of one proc.",
    params: &[
        Param {
            name: "class_servers",
            ty: Type::Reals { min: 1.0, max: SERVERS_MAX },
            unit: "",
            default: Default::Reals(&[8.0, 8.0, 8.0]),
            doc: "Number of servers of each class, whole numbers.",
        },
        Param {
            name: "class_ops_per_s",
            ty: Type::Reals { min: 1e-9, max: 1e18 },
            unit: "1/s",
            default: Default::Reals(&[6_419_253.0, 5_286_503.0, 2_790_966.0]),
            doc: "Operations a second of a server of each class at full load, C_s (ssj_ops of SPECpower_ssj2008). The \
                  default serves any number of classes: further ones are like the third.",
        },
        Param::one_of(
            "rate_rounding",
            &["hundredths", "none"],
            "How the rates C_s/max C are rounded. The paper's results are for 1, 0.82 and 0.43 (`hundredths`).",
        ),
        Param {
            name: "class_rates_per_s",
            ty: Type::Reals { min: 1e-9, max: 1e9 },
            unit: "1/s",
            default: Default::Unset,
            doc: "Rate of a server of each class (work a second), instead of the rates that follow from class_ops_per_s; \
                  the ranking uses it too.",
        },
        Param {
            name: "rate_factor",
            ty: Type::Real { min: 0.0, max: 1e6, min_allowed: false, unlimited: false },
            unit: "",
            default: Default::Real(1.0),
            doc: "Factor on all rates: 0.7 for the frequency scaling of Do et al. 2013, section 3.2.3 (its powers are \
                  class_busy_w).",
        },
        Param {
            name: "class_busy_w",
            ty: Type::Reals { min: 0.0, max: 1e9 },
            unit: "W",
            default: Default::Reals(&[1700.0, 1275.0, 457.0]),
            doc: "Power of a busy server of each class, P_ac. The default serves any number of classes: further ones are \
                  like the third.",
        },
        Param {
            name: "class_idle_w",
            ty: Type::Reals { min: 0.0, max: 1e9 },
            unit: "W",
            default: Default::Reals(&[364.0, 331.0, 108.0]),
            doc: "Power of an idle server of each class, P_id. The default serves any number of classes: further ones are \
                  like the third.",
        },
    ],
    ..Component::QUEUES
};

/// Order in which an arriving job prefers server classes (Do et al. 2013, section 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// The fastest first; of equal speeds the lower busy power.
    HighPerformance,
    /// The most operations for a joule first.
    EnergyEfficiency,
}

/// The classes of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerClasses {
    servers: Vec<usize>,
    /// Speeds for the ranking: operations or work a second, before `rate_factor`.
    speeds: Vec<f64>,
    /// Rates of a server, `rate_factor` included (work/s).
    rates: Vec<f64>,
    rate_factor: f64,
    busy_w: Vec<f64>,
    idle_w: Vec<f64>,
}

impl ServerClasses {
    /// The classes of a platform without [`problems`].
    pub fn new(platform: &Choice) -> ServerClasses {
        let servers: Vec<usize> = platform.reals("class_servers").iter().map(|&n| n as usize).collect();
        let each = |name: &str| -> Vec<f64> {
            let values = platform.reals(name);
            (0..servers.len()).map(|class| values[class.min(values.len() - 1)]).collect()
        };
        let ops = each("class_ops_per_s");
        let most = ops.iter().copied().fold(0.0, f64::max);
        let rounded = platform.text("rate_rounding") == "hundredths";
        let ratio = |c: &f64| if rounded { libm::floor(c / most * 100.0 + 0.5) / 100.0 } else { c / most };
        let given = platform.get("class_rates_per_s").is_some();
        let full: Vec<f64> =
            if given { platform.reals("class_rates_per_s").to_vec() } else { ops.iter().map(ratio).collect() };
        let rate_factor = platform.real("rate_factor");
        ServerClasses {
            speeds: if given { full.clone() } else { ops },
            rates: full.iter().map(|rate| rate * rate_factor).collect(),
            rate_factor,
            busy_w: each("class_busy_w"),
            idle_w: each("class_idle_w"),
            servers,
        }
    }

    /// The numbers of the servers of each class, class by class.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut next = 0;
        let group = |&n: &usize| {
            next += n;
            (next - n..next).collect()
        };
        self.servers.iter().map(group).collect()
    }

    /// Work a second of all servers, `rate_factor` included or not.
    pub fn capacity_per_s(&self, with_factor: bool) -> f64 {
        let sum: f64 = self.servers.iter().zip(&self.rates).map(|(&n, rate)| n as f64 * rate).sum();
        if with_factor { sum } else { sum / self.rate_factor }
    }

    /// The servers' rates and powers, for one class of jobs.
    pub fn table(&self) -> ServerTable {
        let each = |values: &[f64]| -> Vec<f64> {
            self.servers.iter().zip(values).flat_map(|(&n, &value)| std::iter::repeat_n(value, n)).collect()
        };
        let servers = self.servers.iter().sum();
        ServerTable::with_idle_w(servers, 1, each(&self.rates), each(&self.busy_w), each(&self.idle_w))
    }

    /// r_p of each class: speed / greatest speed (Do et al. 2013, eq. 1).
    pub fn performance(&self) -> Vec<f64> {
        relative(&self.speeds)
    }

    /// r_e of each class: speed per watt / the greatest (Do et al. 2013, eq. 2).
    pub fn efficiency(&self) -> Vec<f64> {
        relative(&self.speeds.iter().zip(&self.busy_w).map(|(c, w)| c / w).collect::<Vec<_>>())
    }

    /// The classes in order of priority, highest first; equal ones in the platform's order.
    pub fn ranking(&self, priority: Priority) -> Vec<usize> {
        let classes = self.servers.len();
        let (key, tie) = match priority {
            Priority::HighPerformance => (self.performance(), self.busy_w.clone()),
            Priority::EnergyEfficiency => (self.efficiency(), vec![0.0; classes]),
        };
        let mut order: Vec<usize> = (0..classes).collect();
        order.sort_by(|&a, &b| key[b].total_cmp(&key[a]).then(tie[a].total_cmp(&tie[b])));
        order
    }
}

fn relative(values: &[f64]) -> Vec<f64> {
    let most = values.iter().copied().fold(0.0, f64::max);
    values.iter().map(|value| value / most).collect()
}

/// The problems of a platform, see [`Component::problems`].
pub(super) fn problems(platform: &Choice) -> Vec<String> {
    let servers = platform.reals("class_servers");
    let mut problems = Vec::new();
    if let Some(n) = servers.iter().find(|n| libm::floor(**n) != **n) {
        problems.push(format!("`class_servers` counts servers: {n} is not a whole number"));
    }
    let total: f64 = servers.iter().sum();
    if total > SERVERS_MAX {
        problems.push(format!("`class_servers` has {total} servers, at most {SERVERS_MAX} can be simulated"));
    }
    for name in ["class_ops_per_s", "class_rates_per_s", "class_busy_w", "class_idle_w"] {
        // Given rates replace the operations.
        let unused = name == "class_ops_per_s" && platform.get("class_rates_per_s").is_some();
        // The defaults serve any number of classes.
        if !unused && !platform.is_default(name) && platform.reals(name).len() != servers.len() {
            let found = platform.reals(name).len();
            problems.push(format!("`{name}` has {found} values, `class_servers` has {}: one a class", servers.len()));
        }
    }
    if platform.reals("class_busy_w").contains(&0.0) {
        problems.push("`class_busy_w` must be above 0: the ranking divides by it".to_owned());
    }
    problems
}
