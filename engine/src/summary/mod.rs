//! Summary metrics of one simulation: one field of [`Summary`] is one column of the `tasks` table.
//!
//! The kernel measures each job ([`Outcome`]) and integrals over time ([`Integrals`]); [`summarize`] turns them into the
//! columns. This module does not depend on policies, machines or events.
//!
//! Definitions that hold for every field:
//! - Sums over jobs run in workload order (submit, tie rule), so that they are bit-identical everywhere.
//! - *Measured* jobs remain after warm-up and cool-down are cut; they are consecutive in workload order.
//! - *run* is the run time as executed (finish minus start, gears included), *run_top* the run time at the top gear.
//! - A quantile is the linear interpolation between order statistics: for n sorted values x_0 ..= x_(n-1), quantile q is
//!   x at position q (n - 1) (type 7 of Hyndman & Fan 1996; the default of NumPy, R and `quantile_cont` in SQL).
//! - The *span* is [first submit, last finish].
use crate::spec::{Component, Default, Param, Role, SimSpec, Type};

mod by_kind;
mod measure;
mod predicted;
mod quantile;
mod record;
pub(crate) mod sum;
mod tally;
#[cfg(test)]
mod tests;
mod window;

pub use by_kind::{fill_kinds, fill_power};
pub use measure::summarize;
pub use predicted::fill_predictions;
pub use record::Summary;
pub use window::{check, measured};

/// Description of the statistics.
pub const COMPONENT: Component = Component {
    role: Role::Statistics,
    name: "summary",
    version: 1,
    source: "Mu'alem & Feitelson 2001; Lawson & Smirni 2005; Etinski et al. 2010",
    doc: "Summary metrics of a run of rigid jobs, with warm-up and cool-down cut.",
    params: &[
        Param {
            name: "bsld_tau_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: false, unlimited: false },
            unit: "s",
            default: Default::Real(10.0),
            doc: "Bound of short run times in `bsld_mean` (Mu'alem & Feitelson 2001).",
        },
        Param {
            name: "warmup_jobs",
            ty: Type::Int { min: 0, max: i64::MAX },
            unit: "jobs",
            default: Default::Int(0),
            doc: "First jobs (by submit) left out of the statistics; they are simulated.",
        },
        Param {
            name: "cooldown_jobs",
            ty: Type::Int { min: 0, max: i64::MAX },
            unit: "jobs",
            default: Default::Int(0),
            doc: "Last jobs (by submit) left out of the statistics; they are simulated.",
        },
        Param {
            name: "warmup_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Real(0.0),
            doc: "Jobs submitted less than this after the first submit are left out of the statistics.",
        },
        Param {
            name: "cooldown_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Real(0.0),
            doc: "Jobs submitted less than this before the last submit are left out of the statistics.",
        },
        Param::one_of(
            "warmup_rule",
            &["fixed", "mser5"],
            "`mser5` chooses the warm-up itself, by MSER-5 on the waits in the order of submission (White 1997), on top of the \
             fixed one. It leaves out at most half of the batches of five jobs.",
        ),
        Param::flag(
            "fairness",
            "Whether the delay of each job against strict first come, first served is measured (a second simulation).",
        ),
        Param {
            name: "sla_slowdown",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Unset,
            doc: "Slowdown above which a job violates the service level, in `over_sla_share` and the series of that \
                  name; if not given, that of the capacity rule `ols`, else 200 (Lawson & Smirni 2005).",
        },
        Param {
            name: "large_job_procs",
            ty: Type::Int { min: 1, max: 1 << 30 },
            unit: "procs",
            default: Default::Unset,
            doc: "Least number of procs of a job that counts as large in `turnaround_s_mean_large` (Zhang et al. 2014: 50).",
        },
        Param::flag(
            "watch_machine",
            "Whether CPU utilization and the series of power, frequency and occupancy are measured without a power \
                  cap, too.",
        ),
        Param::flag("node_lists", "Whether the rows of the table `jobs` say which nodes each job held (first fit)."),
    ],
    ..Component::BATCH
};

/// Service level of Lawson & Smirni 2005: the greatest mean slowdown.
pub(crate) const SLA_SLOWDOWN: f64 = 200.0;

/// The slowdown above which a job violates the service level (see the parameter `sla_slowdown`).
pub(crate) fn sla_slowdown(spec: &SimSpec) -> f64 {
    let given = spec.choice(Role::Statistics).opt_real("sla_slowdown");
    let of_capacity_rule = || spec.choice(Role::Capacity).opt_real("ols_sla_slowdown");
    given.or_else(of_capacity_rule).unwrap_or(SLA_SLOWDOWN)
}

/// The schedule of one job. The kernel gives one for each job, in workload order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Start instant (s); not before the submit.
    pub start_s: f64,
    /// End instant (s); not before the start.
    pub finish_s: f64,
    /// Energy of its procs from start to end (J).
    pub energy_j: f64,
    /// Gear at the start; 0 is the slowest.
    pub gear_index: u8,
    /// Whether it started before a job that was ahead of it in the queue.
    pub backfilled: bool,
}

/// The prediction of one job, for [`fill_predictions`].
#[derive(Debug, Clone, Copy, PartialEq, std::default::Default)]
pub struct Predicted {
    /// Run time that was predicted at the submission (s), at the top gear.
    pub first_s: f64,
    /// Corrections of the prediction while the job ran.
    pub corrections_count: u32,
    /// Number of the job's user, from 0.
    pub user: u32,
}

/// The kernel's integrals over the span, and its counters.
#[derive(Debug, Clone, PartialEq, std::default::Default)]
pub struct Integrals {
    /// Processors of the machine, `size_factor` applied.
    pub machine_procs: u32,
    /// Events handled.
    pub events_count: u64,
    /// First submit (s).
    pub first_submit_s: f64,
    /// Last completion (s).
    pub last_finish_s: f64,
    /// Executing processor-seconds by gear, slowest first.
    pub busy_proc_s: Vec<f64>,
    /// Idle (switched on, held by no job) processor-seconds.
    pub idle_proc_s: f64,
    /// Processor-seconds of suspended jobs.
    pub suspended_proc_s: f64,
    /// Processor-seconds asleep.
    pub asleep_proc_s: f64,
    /// Processor-seconds in transition: switching off or waking.
    pub transition_proc_s: f64,
    /// Integral of the active procs, without those that sleep or switch off and are not ordered to wake (processor-seconds).
    pub active_proc_s: f64,
    /// Number of active procs from each instant (s) at which it changed. Begins at the first submit and ends before the
    /// last completion.
    pub active_steps: Vec<(f64, u32)>,
    /// Energy of executing procs, as the integral of their power (J).
    pub energy_busy_j: f64,
    /// Energy of idle procs (J).
    pub energy_idle_j: f64,
    /// Energy of procs asleep (J).
    pub energy_asleep_j: f64,
    /// Energy of procs in transition (J).
    pub energy_transition_j: f64,
    /// Energy of the procs of suspended jobs (J).
    pub energy_suspended_j: f64,
    /// Energy of equipment that draws constant power besides the procs (J).
    pub energy_static_j: f64,
    /// Integral of the number of jobs that were submitted and have not started, deferred ones included (job-seconds).
    pub queue_length_s: f64,
    /// Greatest number of waiting jobs over an interval of positive length.
    pub queue_length_max: u64,
    /// Integral of the waiting work, procs * run_top (processor-seconds squared).
    pub backlog_proc_s2: f64,
    /// Greatest waiting work over an interval of positive length (processor-seconds).
    pub backlog_proc_s_max: f64,
    /// Idle processor-seconds while a submitted job had not started.
    pub lost_proc_s: f64,
    /// Greatest power of the machine (W).
    pub power_peak_w: f64,
    /// Least power that is not exceeded in 95% of the span (W); `None` if the span is 0.
    pub power_p95_w: Option<f64>,
    /// Gear changes of running jobs.
    pub gear_changes_count: u64,
    /// Jobs cut to the machine's procs.
    pub clamped_count: u64,
    /// Jobs dropped because they were wider than the machine.
    pub dropped_wide_count: u64,
    /// Jobs dropped because no cap admits them.
    pub dropped_over_cap_count: u64,
}

/// Integrals of power and use of the machine, for [`fill_power`].
#[derive(Debug, Clone, Copy, PartialEq, std::default::Default)]
pub struct PowerIntegrals {
    /// Whether there was a power cap.
    pub capped: bool,
    /// Whether a deferral rule could suspend jobs.
    pub suspends: bool,
    /// Time watched (s).
    pub span_s: f64,
    /// Energy of the machine (J).
    pub power_j: f64,
    /// Integral of the cap (J).
    pub cap_j: f64,
    /// Time in which the power exceeded the cap (s).
    pub violation_s: f64,
    /// Energy above the cap in that time (J).
    pub violation_j: f64,
    /// Greatest excess (W).
    pub excess_max_w: f64,
    /// Integral of executing over installed procs (s).
    pub cpu_utilization_s: f64,
    /// Integral of executing and suspended over installed procs (s).
    pub held_utilization_s: f64,
    /// Time in which executing procs were at least 0.75 of the installed (s).
    pub cpu_high_s: f64,
    /// Time in which executing and suspended procs were at least 0.75 of the installed (s).
    pub held_high_s: f64,
}

impl Integrals {
    /// Energy of the machine over the span (J).
    pub fn energy_total_j(&self) -> f64 {
        let resting = self.energy_idle_j + self.energy_asleep_j + self.energy_transition_j;
        self.energy_busy_j + resting + self.energy_suspended_j + self.energy_static_j
    }
}
