//! Summary metrics of one simulation: one field is one column of the `tasks` table.
use crate::registry::{Default, Entry, Param, Slot, Type};

/// Registry entry of the statistics.
pub const ENTRY: Entry = Entry {
    slot: Slot::Statistics,
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
            identity: true,
            doc: "Bound of short run times in `bsld_mean` (Mu'alem & Feitelson 2001).",
        },
        Param {
            name: "warmup_jobs",
            ty: Type::Int { min: 0, max: i64::MAX },
            unit: "jobs",
            default: Default::Int(0),
            identity: true,
            doc: "First jobs (by submit) left out of the statistics; they are simulated.",
        },
        Param {
            name: "cooldown_jobs",
            ty: Type::Int { min: 0, max: i64::MAX },
            unit: "jobs",
            default: Default::Int(0),
            identity: true,
            doc: "Last jobs (by submit) left out of the statistics; they are simulated.",
        },
        Param {
            name: "warmup_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Real(0.0),
            identity: true,
            doc: "Jobs submitted in the first so many seconds are left out of the statistics.",
        },
        Param {
            name: "cooldown_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Real(0.0),
            identity: true,
            doc: "Jobs submitted in the last so many seconds before the last submit are left out of the statistics.",
        },
        Param {
            name: "warmup_rule",
            ty: Type::Choice(&["fixed", "mser5"]),
            unit: "",
            default: Default::Text("fixed"),
            identity: true,
            doc: "`mser5` chooses the warm-up itself, by MSER-5 on the waits (White 1997), on top of the fixed one.",
        },
        Param {
            name: "fairness",
            ty: Type::Bool,
            unit: "",
            default: Default::Bool(false),
            identity: true,
            doc: "Whether the delay of each job against strict first come, first served is measured (a second simulation).",
        },
    ],
};

crate::record! {
/// What one simulation measured. Means over jobs leave out warm-up and cool-down; energies, utilizations and time means
/// are over [first submit, last finish] unless the field says otherwise.
#[derive(Debug, Clone, PartialEq, std::default::Default)]
pub struct Summary {
    /// Jobs simulated.
    pub jobs_count: u64,
    /// Jobs in the statistics, after warm-up and cool-down.
    pub measured_jobs_count: u64,
    /// Jobs cut to the machine's procs (`wide_jobs = "clamp"`).
    pub clamped_count: u64,
    /// Jobs dropped because they were wider than the machine.
    pub dropped_wide_count: u64,
    /// Jobs killed at their estimate.
    pub killed_count: u64,
    /// Events that the kernel handled.
    pub events_count: u64,
    /// Processors of the machine, `size_factor` applied.
    pub machine_procs: u32,
    /// First submit (s).
    pub first_submit_s: f64,
    /// Last completion (s).
    pub last_finish_s: f64,
    /// Last completion minus first submit (s).
    pub makespan_s: f64,
    /// Mean wait (s).
    pub wait_s_mean: f64,
    /// Median wait (s).
    pub wait_s_p50: f64,
    /// 95th percentile of wait (s).
    pub wait_s_p95: f64,
    /// 99th percentile of wait (s).
    pub wait_s_p99: f64,
    /// Greatest wait (s).
    pub wait_s_max: f64,
    /// Mean turnaround (wait + run as executed) (s).
    pub turnaround_s_mean: f64,
    /// Median turnaround (wait + run as executed) (s).
    pub turnaround_s_p50: f64,
    /// 95th percentile of turnaround (wait + run as executed) (s).
    pub turnaround_s_p95: f64,
    /// 99th percentile of turnaround (wait + run as executed) (s).
    pub turnaround_s_p99: f64,
    /// Greatest turnaround (wait + run as executed) (s).
    pub turnaround_s_max: f64,
    /// Mean bounded slowdown with the bound `bsld_tau_s`.
    pub bsld_mean: f64,
    /// Mean of max(1, (wait + run)/max(10 s, run at top gear)).
    pub bsld_tau10s_mean: f64,
    /// Mean of max(1, (wait + run)/max(600 s, run at top gear)) (Etinski eq. 1).
    pub bsld_tau600s_mean: f64,
    /// Mean of 1 + wait/max(10 s, run at top gear) (Lawson & Smirni).
    pub slowdown_lawson_tau10s_mean: f64,
    /// Mean of (wait + run)/run at top gear over jobs with a run time above 0; null without any.
    pub slowdown_mean: Option<f64>,
    /// Bounded slowdown (10 s) weighted by procs.
    pub bsld_tau10s_procs_weighted_mean: f64,
    /// Bounded slowdown (10 s) weighted by procs * run at top gear; null if all areas are 0.
    pub bsld_tau10s_area_weighted_mean: Option<f64>,
    /// Jobs with a wait above 0.
    pub waited_count: u64,
    /// Jobs that overtook the head of the queue.
    pub backfilled_count: u64,
    /// Jobs started below the top gear.
    pub reduced_count: u64,
    /// Jobs started at each gear, slowest first.
    pub gear_jobs_count: Vec<u64>,
    /// Busy processor-seconds at each gear, slowest first.
    pub gear_busy_proc_s: Vec<f64>,
    /// Gear changes of running jobs.
    pub gear_changes_count: u64,
    /// Executing processor-seconds / integral of active procs over the span.
    pub utilization_active: f64,
    /// Executing processor-seconds / (installed procs * span).
    pub utilization_installed: f64,
    /// Sum of procs * run at top gear / (procs * (last submit - first submit)); null if all submits are equal.
    pub offered_load: Option<f64>,
    /// Completed jobs an hour of the span; null if the span is 0.
    pub throughput_jobs_per_h: Option<f64>,
    /// Idle processor-seconds while the queue is not empty / (procs * span).
    pub loss_of_capacity: f64,
    /// Time mean of the number of waiting jobs.
    pub queue_length_mean: f64,
    /// Greatest number of waiting jobs.
    pub queue_length_max: u64,
    /// Time mean of the waiting work, procs * run at top gear (processor-seconds).
    pub backlog_proc_s_mean: f64,
    /// Greatest waiting work (processor-seconds).
    pub backlog_proc_s_max: f64,
    /// Mean wait of jobs with 1 proc (s); null without any.
    pub wait_s_mean_size_1: Option<f64>,
    /// Mean bounded slowdown (10 s) of jobs with 1 proc; null without any.
    pub bsld_tau10s_mean_size_1: Option<f64>,
    /// Mean wait of jobs with 2 to 8 procs (s); null without any.
    pub wait_s_mean_size_2_8: Option<f64>,
    /// Mean bounded slowdown (10 s) of jobs with 2 to 8 procs; null without any.
    pub bsld_tau10s_mean_size_2_8: Option<f64>,
    /// Mean wait of jobs with 9 to 32 procs (s); null without any.
    pub wait_s_mean_size_9_32: Option<f64>,
    /// Mean bounded slowdown (10 s) of jobs with 9 to 32 procs; null without any.
    pub bsld_tau10s_mean_size_9_32: Option<f64>,
    /// Mean wait of jobs with 33 procs and more (s); null without any.
    pub wait_s_mean_size_33_up: Option<f64>,
    /// Mean bounded slowdown (10 s) of jobs with 33 procs and more; null without any.
    pub bsld_tau10s_mean_size_33_up: Option<f64>,
    /// Mean wait of jobs with a run time under 10 min (s); null without any.
    pub wait_s_mean_run_10min: Option<f64>,
    /// Mean bounded slowdown (10 s) of jobs with a run time under 10 min; null without any.
    pub bsld_tau10s_mean_run_10min: Option<f64>,
    /// Mean wait of jobs with a run time from 10 min to under 1 h (s); null without any.
    pub wait_s_mean_run_1h: Option<f64>,
    /// Mean bounded slowdown (10 s) of jobs with a run time from 10 min to under 1 h; null without any.
    pub bsld_tau10s_mean_run_1h: Option<f64>,
    /// Mean wait of jobs with a run time from 1 h to under 8 h (s); null without any.
    pub wait_s_mean_run_8h: Option<f64>,
    /// Mean bounded slowdown (10 s) of jobs with a run time from 1 h to under 8 h; null without any.
    pub bsld_tau10s_mean_run_8h: Option<f64>,
    /// Mean wait of jobs with a run time of 8 h and more (s); null without any.
    pub wait_s_mean_run_8h_up: Option<f64>,
    /// Mean bounded slowdown (10 s) of jobs with a run time of 8 h and more; null without any.
    pub bsld_tau10s_mean_run_8h_up: Option<f64>,
    /// Energy of all procs over [first submit, last finish], idle included (J).
    pub energy_total_j: f64,
    /// Energy of busy procs (J).
    pub energy_computational_j: f64,
    /// Energy of idle procs (J).
    pub energy_idle_j: f64,
    /// energy_total_j / jobs_count (J).
    pub energy_per_job_j: f64,
    /// energy_total_j * mean turnaround (J s).
    pub energy_delay_product_js: f64,
    /// energy_total_j / span (W); null if the span is 0.
    pub power_mean_w: Option<f64>,
    /// Power not exceeded 95% of the span (W).
    pub power_p95_w: Option<f64>,
    /// Greatest power (W).
    pub power_peak_w: f64,
    /// Busy processor-hours.
    pub busy_proc_h: f64,
    /// Idle processor-hours.
    pub idle_proc_h: f64,
    /// Asleep processor-hours.
    pub asleep_proc_h: f64,
    /// Mean of max(0, start - start under strict FCFS) (s); null unless `fairness`.
    pub fairness_delay_s_mean: Option<f64>,
    /// Jobs started later than under strict FCFS; null unless `fairness`.
    pub fairness_delayed_count: Option<u64>,
    /// |time integral of the queue length - sum of waits| / max(1 s, sum of waits): a self-check, near 0.
    pub little_residual: f64,
    /// |energy_total_j - sum of the jobs' energy - idle energy| / energy_total_j: a self-check, near 0.
    pub energy_residual: f64,
}
}
