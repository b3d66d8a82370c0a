//! The platform of batch jobs: the machine that a spec describes.
mod machine;
pub mod pools;

pub use machine::{Gear, Machine, SleepStates};

use super::power;
use crate::error::SimError;
use crate::spec::{Choice, Component, Default, Param, Role, SimSpec, Type};

/// Greatest number of processors, so that processor counts and their sums do not overflow `u32`.
const PROCS_MAX: u32 = 1 << 30;

/// Greatest number of gears: a gear index is one byte.
const GEARS_MAX: usize = 255;

/// Description of a machine of equal processors.
pub const COMPONENT: Component = Component {
    role: Role::Platform,
    name: "homogeneous",
    version: 1,
    source: "Etinski et al. 2010, section 4, Table 2",
    doc: "One class of equal processors with a table of gears.",
    params: &[
        Param {
            name: "procs",
            ty: Type::Int { min: 1, max: 1 << 30 },
            unit: "procs",
            default: Default::Unset,
            doc: "Processors of the machine before `size_factor`; if not given, those of the workload (header \
                  MaxProcs, else MaxNodes; a generator's machine size).",
        },
        Param {
            name: "size_factor",
            ty: Type::Real { min: 0.0, max: 1e6, min_allowed: false, unlimited: false },
            unit: "",
            default: Default::Real(1.0),
            doc: "The machine has floor(procs * size_factor + 0.5) processors.",
        },
        Param {
            name: "gears_ghz",
            ty: Type::Reals { min: 1e-6, max: 1e6 },
            unit: "GHz",
            default: Default::Reals(&[0.8, 1.1, 1.4, 1.7, 2.0, 2.3]),
            doc: "Frequencies of the gears, ascending; the last is the top gear.",
        },
        Param {
            name: "gear_volts",
            ty: Type::Reals { min: 1e-6, max: 1e6 },
            unit: "V",
            default: Default::Reals(&[1.0, 1.1, 1.2, 1.3, 1.4, 1.5]),
            doc: "Voltage of each gear.",
        },
        Param {
            name: "beta",
            ty: Type::Real { min: 0.0, max: 1.0, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Real(0.5),
            doc: "Share of a job's run time that scales with frequency: time at f is (beta*(f_top/f - 1) + 1) times \
                  that at the top gear (Etinski eq. 5).",
        },
        sleep_param("wake_s", "s", "Time that a sleeping processor takes to wake, before it can be used."),
        sleep_param("wake_w", "W", "Power of a processor while it wakes."),
        sleep_param(
            "off_s",
            "s",
            "Time that an idle processor takes to switch off. If it is ordered to wake meanwhile, it wakes afterwards.",
        ),
        sleep_param("off_w", "W", "Power of a processor while it switches off."),
        sleep_param("asleep_w", "W", "Power of a sleeping processor."),
        Param {
            name: "class_betas",
            ty: Type::Reals { min: 0.0, max: 1.0 },
            unit: "",
            default: Default::Unset,
            doc: "`beta` of each class of jobs, in place of one `beta` for all.",
        },
        Param {
            name: "cooling_w",
            ty: Type::Real { min: 0.0, max: 1e12, min_allowed: true, unlimited: false },
            unit: "W",
            default: Default::Real(0.0),
            doc: "Constant power besides that of the processors, such as that of cooling (Zhang et al. 2014, section \
                  III.B).",
        },
        pools::PARTITION_PROCS,
        pools::GPUS,
        pools::MEMORY_GIB,
    ],
    problems: |spec| [gear_problems(spec), pools::problems(spec)].concat(),
    ..Component::BATCH
};

/// A parameter of sleeping processors; 0 by default: transitions take no time and no power.
const fn sleep_param(name: &'static str, unit: &'static str, doc: &'static str) -> Param {
    let ty = Type::Real { min: 0.0, max: 1e9, min_allowed: true, unlimited: false };
    Param { name, ty, unit, default: Default::Real(0.0), doc }
}

impl Machine {
    /// The machine of a spec for a workload.
    ///
    /// # Errors
    /// [`SimError::Invalid`]: no processor count is known, `size_factor` leaves none, or the gear table is wrong.
    pub fn new(spec: &SimSpec, native_procs: Option<u32>) -> Result<Machine, SimError> {
        let choice = spec.choice(Role::Platform);
        if let Some(problem) = gear_problems(spec).into_iter().next() {
            return Err(SimError::Invalid(problem));
        }
        let partitions = pools::partitions(spec)?;
        let procs = match &partitions {
            Some(partitions) => of_partitions(partitions)?,
            None => sized(choice, native_procs)?,
        };
        let (gears, idle_w) = tables(spec);
        let watts_of_procs = power::stated::watts_of_procs(spec);
        let mut classes = gears.into_iter();
        Ok(Machine {
            procs,
            gears: classes.next().expect("the first class of jobs has a table"),
            more_job_classes: classes.collect(),
            idle_w,
            sleep: SleepStates {
                asleep_w: choice.real("asleep_w") / watts_of_procs,
                off_w: choice.real("off_w") / watts_of_procs,
                off_s: choice.real("off_s"),
                wake_w: choice.real("wake_w") / watts_of_procs,
                wake_s: choice.real("wake_s"),
            },
            static_w: choice.real("cooling_w"),
            pools: pools::of(spec, procs, partitions.as_deref()),
        })
    }
}

/// Procs of a machine without partitions.
fn sized(platform: &Choice, native_procs: Option<u32>) -> Result<u32, SimError> {
    let base = platform.opt_int("procs").or(native_procs.map(i64::from)).ok_or_else(|| {
        SimError::Invalid(
            "the size of the machine is not known: the workload states none (no MaxProcs or MaxNodes in the log's header); \
             set `procs`"
                .to_owned(),
        )
    })?;
    let factor = platform.real("size_factor");
    let procs = (base as f64 * factor + 0.5).floor();
    if !(1.0..=f64::from(PROCS_MAX)).contains(&procs) {
        return Err(SimError::Invalid(format!(
            "{base} procs with `size_factor` {factor} make a machine of {procs} procs: it must be from 1 to {PROCS_MAX}"
        )));
    }
    Ok(procs as u32)
}

/// Procs of a machine of partitions.
fn of_partitions(partitions: &[u32]) -> Result<u32, SimError> {
    let procs: u64 = partitions.iter().copied().map(u64::from).sum();
    let fits = u32::try_from(procs).ok().filter(|procs| *procs <= PROCS_MAX);
    fits.ok_or_else(|| {
        SimError::Invalid(format!("`partition_procs` make a machine of {procs} procs: it must be at most {PROCS_MAX}"))
    })
}

/// The gears of a spec without [`gear_problems`] by class of jobs, and the power of an idle processor (W).
fn tables(spec: &SimSpec) -> (Vec<Vec<Gear>>, f64) {
    let (choice, power) = (spec.choice(Role::Platform), spec.choice(Role::Power));
    let ghz = choice.reals("gears_ghz");
    let top_ghz = ghz[ghz.len() - 1];
    let one_beta = [choice.real("beta")];
    let betas = choice.opt_reals("class_betas").unwrap_or(&one_beta);
    let by_beta = |g: usize, beta: f64| beta * (top_ghz / ghz[g] - 1.0) + 1.0;
    let model = if *power.component() == power::table::COMPONENT {
        power::table::model(power, ghz)
    } else if *power.component() == power::stated::COMPONENT {
        power::stated::model(power, ghz.len())
    } else {
        power::etinski::model(power, ghz, choice.reals("gear_volts"))
    };
    let gear = |class: usize, g: usize| Gear {
        time_factor: model.time_factor(class, g).unwrap_or_else(|| by_beta(g, betas[class.min(betas.len() - 1)])),
        busy_w: model.busy_w(class, g),
    };
    let classes = model.job_classes().max(betas.len());
    let gears = (0..classes).map(|class| (0..ghz.len()).map(|g| gear(class, g)).collect()).collect();
    (gears, model.idle_w)
}

/// Problems of gears and their tables, in sentences that name the parameters.
fn gear_problems(spec: &SimSpec) -> Vec<String> {
    let (choice, power) = (spec.choice(Role::Platform), spec.choice(Role::Power));
    let is = |component: Component| *power.component() == component;
    let (by_table, stated) = (is(power::table::COMPONENT), is(power::stated::COMPONENT));
    let (ghz, volts) = (choice.reals("gears_ghz"), choice.reals("gear_volts"));
    let mut problems = Vec::new();
    let scales = |name: &str| !choice.is_default(name);
    let betas = choice.opt_reals("class_betas");
    if scales("beta") && betas.is_some() {
        problems.push("`beta` and `class_betas` both say how run times scale: give one of them".to_owned());
    }
    if by_table {
        problems.extend(power::table::problems(power, ghz.len(), betas.map(<[f64]>::len)));
        for name in ["beta", "class_betas"].into_iter().filter(|name| scales(name)) {
            if power.text("table_time") != "beta" {
                problems.push(format!(
                    "`{name}` and `table_time` = \"{}\" both say how run times scale: leave `{name}` out, or choose \
                     `table_time` = \"beta\"",
                    power.text("table_time")
                ));
            }
        }
    }
    if stated {
        problems.extend(power::stated::problems(power, ghz.len(), betas.map(<[f64]>::len)));
    }
    // Only the model `etinski` uses voltages.
    if !by_table && !stated && ghz.len() != volts.len() {
        problems.push(format!(
            "`gears_ghz` has {} gears and `gear_volts` {}: each gear needs one voltage",
            ghz.len(),
            volts.len()
        ));
    }
    if ghz.len() > GEARS_MAX {
        problems.push(format!("`gears_ghz` has {} gears: at most {GEARS_MAX} are possible", ghz.len()));
    }
    if let Some(pair) = ghz.windows(2).find(|pair| pair[0] >= pair[1]) {
        problems.push(format!("`gears_ghz` must ascend: {} is followed by {}", pair[0], pair[1]));
    }
    if let Some(pair) = volts.windows(2).find(|pair| pair[0] > pair[1]) {
        problems.push(format!("`gear_volts` must not descend: {} is followed by {}", pair[0], pair[1]));
    }
    problems
}
