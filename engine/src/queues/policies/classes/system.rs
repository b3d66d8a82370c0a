//! The source and the platforms of this folder, and the system that a spec describes.
use crate::lp::System;
use crate::lp::structured::{self, Decomposition, Factors};
use crate::spec::{Choice, Component, Default, Param, Role, SimSpec, Type};

/// Greatest number of servers: policies search all of them at each event.
const SERVERS_MAX: f64 = 65_536.0;

/// A vector parameter of rates, powers or factors.
pub(super) const fn vector(name: &'static str, unit: &'static str, default: Default, doc: &'static str) -> Param {
    Param { name, ty: Type::Reals { min: 0.0, max: 1e300 }, unit, default, doc }
}

/// Instants of changes.
const fn instants(name: &'static str, doc: &'static str) -> Param {
    Param { name, ty: Type::Reals { min: 1e-9, max: 1e15 }, unit: "s", default: Default::Unset, doc }
}

/// Arrivals of classes of jobs.
pub const SOURCE: Component = Component {
    role: Role::Source,
    name: "poisson-classes",
    version: 1,
    source: "Al-Daoud, Al-Azzoni & Down 2011, section 5",
    doc: "Classes of one-proc jobs with Poisson arrivals and exponential work of mean 1, drawn at arrival, for servers \
          with a rate for each class.",
    params: &[
        vector("class_arrivals_per_s", "1/s", Default::Required, "alpha: mean arrivals of each class a second."),
        Param::positive(
            "arrivals_factor",
            1e9,
            "",
            Default::Real(1.0),
            "The arrival rate of every class is `class_arrivals_per_s` times this.",
        ),
        instants("arrivals_change_at_s", "Instants at which all arrival rates change, ascending."),
        Param {
            name: "arrivals_change_factors",
            ty: Type::Reals { min: 1e-9, max: 1e9 },
            unit: "",
            default: Default::Unset,
            doc: "Factor of all arrival rates from each instant of `arrivals_change_at_s`; 1 before the first.",
        },
    ],
    ..Component::QUEUES
};

const GROUP_SERVERS: Param = Param {
    name: "group_servers",
    ty: Type::Reals { min: 1.0, max: SERVERS_MAX },
    unit: "servers",
    default: Default::Unset,
    doc: "Number of servers of each group, whole numbers; if not given, every group has one server.",
};

const GROUP_IDLE_W: Param =
    vector("group_idle_w", "W", Default::Required, "B: power of a server of each group that executes no job.");

const SPEED_CHANGE_AT_S: Param =
    instants("speed_change_at_s", "Instants at which a group of servers changes its speed, leaves or comes back.");

const SPEED_CHANGE_GROUPS: Param = Param {
    name: "speed_change_groups",
    ty: Type::Reals { min: 1.0, max: SERVERS_MAX },
    unit: "",
    default: Default::Unset,
    doc: "Number of the group that changes at each instant of `speed_change_at_s`, from 1.",
};

const SPEED_CHANGE_FACTORS: Param = vector(
    "speed_change_factors",
    "",
    Default::Unset,
    "Factor of the group's rates from each instant of `speed_change_at_s`; 1 at the start. With 0 the group leaves after \
     its present jobs, and draws no power until it returns.",
);

/// Servers with a rate and a power for each class.
pub const RATE_MATRIX: Component = Component {
    role: Role::Platform,
    name: "rate-matrix",
    version: 1,
    source: "Al-Daoud, Al-Azzoni & Down 2011, section 2",
    doc: "Groups of equal servers that execute each class of jobs at a rate, and with a power, of its own.",
    params: &[
        GROUP_SERVERS,
        vector(
            "group_rates_per_s",
            "1/s",
            Default::Required,
            "mu: jobs a second that a server of each group executes, class by class: all groups for class 1, then for \
             class 2, and so on. 0 where it cannot execute the class.",
        ),
        vector(
            "group_busy_w",
            "W",
            Default::Required,
            "M: power of a server of each group while it executes a job, class by class like `group_rates_per_s`.",
        ),
        GROUP_IDLE_W,
        SPEED_CHANGE_AT_S,
        SPEED_CHANGE_GROUPS,
        SPEED_CHANGE_FACTORS,
    ],
    ..Component::QUEUES
};

/// Servers whose rates are a factor of the server times one of the class.
pub const STRUCTURED: Component = Component {
    role: Role::Platform,
    name: "structured",
    version: 1,
    source: "Al-Daoud, Al-Azzoni & Down 2011, section 6",
    doc: "Groups of equal servers with rates mu_ij = gamma_j mu_i (1 + a) and powers beta_j mu_ij (1 + b); a and b are \
          0 in a structured system, random in an almost structured one.",
    params: &[
        GROUP_SERVERS,
        vector("structure_class_rates_per_s", "1/s", Default::Required, "mu_i: rate of each class at factor 1."),
        vector("structure_speeds", "", Default::Required, "gamma_j: factor of each group's rates."),
        vector("structure_betas_j", "J", Default::Required, "beta_j: power of each group over its rate."),
        GROUP_IDLE_W,
        SPEED_CHANGE_AT_S,
        SPEED_CHANGE_GROUPS,
        SPEED_CHANGE_FACTORS,
        Param {
            name: "structure_error_max",
            ty: Type::Real { min: 0.0, max: 0.999, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Real(0.0),
            doc: "All a and b are uniform on (-this, this), a pair for each class and group.",
        },
        Param {
            name: "structure_seed",
            ty: Type::Int { min: 0, max: i64::MAX },
            unit: "",
            default: Default::Int(1),
            doc: "Seed of a and b, apart from the task's seed, so that replications share their system.",
        },
    ],
    ..Component::QUEUES
};

/// The platforms of this folder.
pub const PLATFORMS: [&Component; 2] = [&RATE_MATRIX, &STRUCTURED];

/// The servers of a platform of this folder, by group.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// Servers of each group.
    pub servers: Vec<usize>,
    /// mu by class, then group (jobs a second).
    rates_per_s: Vec<f64>,
    /// M by class, then group (W).
    busy_w: Vec<f64>,
    /// B by group (W).
    idle_w: Vec<f64>,
}

impl Groups {
    /// The groups of a platform `rate-matrix` or `structured`, for a number of classes.
    ///
    /// # Errors
    /// A sentence that names the parameters whose lengths or values do not fit.
    pub fn of(platform: &Choice, classes: usize) -> Result<Groups, String> {
        let idle_w = platform.reals("group_idle_w").to_vec();
        let groups = idle_w.len();
        let servers = match platform.get("group_servers") {
            Some(_) => counts(platform.reals("group_servers"), groups)?,
            None => vec![1; groups],
        };
        if servers.iter().map(|n| *n as f64).sum::<f64>() > SERVERS_MAX {
            return Err(format!("`group_servers` adds up to more than {SERVERS_MAX} servers"));
        }
        let (rates_per_s, busy_w) = if platform.component().name == STRUCTURED.name {
            structured_rates(platform, classes, groups)?
        } else {
            for name in ["group_rates_per_s", "group_busy_w"] {
                let found = platform.reals(name).len();
                if found != classes * groups {
                    return Err(format!(
                        "`{name}` has {found} values: {classes} classes (`class_arrivals_per_s`) and {groups} groups \
                         (`group_idle_w`) need {}",
                        classes * groups
                    ));
                }
            }
            (platform.reals("group_rates_per_s").to_vec(), platform.reals("group_busy_w").to_vec())
        };
        Ok(Groups { servers, rates_per_s, busy_w, idle_w })
    }

    /// mu: jobs a second by class, then group.
    pub fn rates_per_s(&self) -> &[f64] {
        &self.rates_per_s
    }

    /// The numbers of the servers of each group.
    pub fn numbers(&self) -> Vec<Vec<usize>> {
        let mut next = 0;
        let group = |n: &usize| {
            next += n;
            (next - n..next).collect()
        };
        self.servers.iter().map(group).collect()
    }

    /// Values by class and group: those of the first server of each group. `values`: by class, then server.
    pub fn of_firsts(&self, values: &[f64]) -> Vec<f64> {
        let firsts: Vec<usize> = self.numbers().iter().map(|group| group[0]).collect();
        let servers = self.servers.iter().sum();
        values.chunks(servers).flat_map(|row| firsts.iter().map(|first| row[*first])).collect()
    }

    /// Values by server, or by class and server, from values by group, or by class and group.
    pub fn by_server(&self, values: &[f64]) -> Vec<f64> {
        let row = |row: &[f64]| -> Vec<f64> {
            row.iter().zip(&self.servers).flat_map(|(value, n)| std::iter::repeat_n(*value, *n)).collect()
        };
        values.chunks(self.servers.len()).flat_map(row).collect()
    }
}

fn counts(values: &[f64], groups: usize) -> Result<Vec<usize>, String> {
    if values.len() != groups {
        let found = values.len();
        return Err(format!("`group_servers` has {found} values: {groups} groups (`group_idle_w`) need {groups}"));
    }
    match values.iter().find(|n| n.fract() != 0.0) {
        Some(n) => Err(format!("`group_servers` must be whole numbers, not {n}")),
        None => Ok(values.iter().map(|n| *n as usize).collect()),
    }
}

fn structured_rates(platform: &Choice, classes: usize, groups: usize) -> Result<(Vec<f64>, Vec<f64>), String> {
    let needed = [
        ("structure_class_rates_per_s", classes, "classes (`class_arrivals_per_s`)"),
        ("structure_speeds", groups, "groups (`group_idle_w`)"),
        ("structure_betas_j", groups, "groups (`group_idle_w`)"),
    ];
    for (name, count, what) in needed {
        let found = platform.reals(name).len();
        if found != count {
            return Err(format!("`{name}` has {found} values: {count} {what} need {count}"));
        }
    }
    let factors = Factors {
        classes_per_s: platform.reals("structure_class_rates_per_s").to_vec(),
        machines: platform.reals("structure_speeds").to_vec(),
        betas: platform.reals("structure_betas_j").to_vec(),
    };
    let spread = platform.real("structure_error_max");
    let matrices = factors.almost(spread, platform.int("structure_seed").unsigned_abs());
    Ok((matrices.rates_per_s, matrices.busy_w))
}

/// Whether a spec's platform and source are of this folder.
pub fn describes(spec: &SimSpec) -> bool {
    let platform = spec.choice(Role::Platform).component().name;
    (platform == RATE_MATRIX.name || platform == STRUCTURED.name)
        && spec.choice(Role::Source).component().name == SOURCE.name
}

/// The parameter of a platform of this folder with the rates of its groups.
pub(super) fn rates_key(platform: &Choice) -> &'static str {
    if platform.component().name == STRUCTURED.name { "structure_speeds" } else { "group_rates_per_s" }
}

/// alpha: arrivals a second of each class.
pub fn arrivals_per_s(source: &Choice) -> Vec<f64> {
    let factor = source.real("arrivals_factor");
    source.reals("class_arrivals_per_s").iter().map(|rate| rate * factor).collect()
}

/// The system of a spec whose platform and source are of this folder.
///
/// # Errors
/// A sentence that names the parameters that do not fit.
pub fn system(spec: &SimSpec) -> Result<System, String> {
    let (platform, arrivals) = (spec.choice(Role::Platform), arrivals_per_s(spec.choice(Role::Source)));
    if arrivals.iter().all(|rate| *rate == 0.0) {
        return Err("`class_arrivals_per_s` has no arrivals: at least one class needs a rate above 0".to_owned());
    }
    let groups = Groups::of(platform, arrivals.len())?;
    let by_server = |values: &[f64]| groups.by_server(values);
    let (rates, busy, idle) = (by_server(&groups.rates_per_s), by_server(&groups.busy_w), by_server(&groups.idle_w));
    System::new(arrivals, rates, busy, idle).map_err(|error| format!("`{}`: {error}", rates_key(platform)))
}

/// beta of each group (J): the slope of busy power over the nearest structured rates. `None` if a group has no rate.
pub fn fitted_betas(groups: &Groups) -> Option<Vec<f64>> {
    let count = groups.servers.len();
    let classes = groups.rates_per_s.len() / count;
    let nearest = Decomposition::of(&groups.rates_per_s, classes)?.rank_1();
    let betas = structured::betas(&groups.busy_w, &nearest, count);
    betas.iter().all(|beta| beta.is_finite()).then_some(betas)
}
