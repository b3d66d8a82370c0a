//! The record of all summary metrics. A field's doc is the column's documentation: meaning, formula, unit, nulls.

crate::record! {
/// The metrics of one simulation of rigid jobs.
///
/// Metrics of jobs (waits, turnarounds, slowdowns, classes, fairness, counts by gear) are over the measured jobs, which
/// leave out warm-up and cool-down. Energies, proc-hours, utilizations and time means are over the whole span
/// [first submit, last finish], except the `window_*` fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Jobs simulated.
    pub jobs_count: u64,
    /// Jobs in the statistics of jobs, after warm-up and cool-down.
    pub measured_jobs_count: u64,
    /// First jobs left out of the statistics: by the fixed warm-up and by MSER-5.
    pub warmup_jobs_count: u64,
    /// Last jobs left out of the statistics.
    pub cooldown_jobs_count: u64,
    /// Jobs cut to the machine's procs, GPUs or memory (`wide_jobs = "clamp"`).
    pub clamped_count: u64,
    /// Jobs dropped because they needed more procs, GPUs or memory than the machine has, or another partition
    /// (`wide_jobs = "drop"`); not in `jobs_count`.
    pub dropped_wide_count: u64,
    /// Jobs dropped because no cap of the schedule admits them (`over_cap_jobs = "drop"`); not in `jobs_count`.
    pub dropped_over_cap_count: u64,
    /// Jobs killed at their estimate, of all simulated jobs.
    pub killed_count: u64,
    /// Events that the kernel handled.
    pub events_count: u64,
    /// Processors of the machine, `size_factor` applied.
    pub machine_procs: u32,
    /// First submit of all simulated jobs (s, the log's clock).
    pub first_submit_s: f64,
    /// Last completion (s, the log's clock).
    pub last_finish_s: f64,
    /// The span: last completion minus first submit (s).
    pub makespan_s: f64,
    /// Mean of wait = start - submit over measured jobs (s).
    pub wait_s_mean: f64,
    /// Sample standard deviation (n - 1) of the wait over measured jobs (s); null with fewer than two.
    pub wait_s_sd: Option<f64>,
    /// Median wait of measured jobs (s). Quantiles interpolate linearly between order statistics (Hyndman & Fan 1996, type 7).
    pub wait_s_p50: f64,
    /// 95th percentile of the wait of measured jobs (s), linear interpolation.
    pub wait_s_p95: f64,
    /// 99th percentile of the wait of measured jobs (s), linear interpolation.
    pub wait_s_p99: f64,
    /// Greatest wait of measured jobs (s).
    pub wait_s_max: f64,
    /// Mean of turnaround = wait + run as executed over measured jobs (s).
    pub turnaround_s_mean: f64,
    /// Sample standard deviation (n - 1) of the turnaround over measured jobs (s); null with fewer than two.
    pub turnaround_s_sd: Option<f64>,
    /// Root mean square of the turnaround over measured jobs (s): the square root of the mean of the squares (Gaussier et al.
    /// 2015, RMSFT).
    pub turnaround_s_rms: f64,
    /// Median turnaround (wait + run as executed) of measured jobs (s), linear interpolation.
    pub turnaround_s_p50: f64,
    /// 95th percentile of the turnaround of measured jobs (s), linear interpolation.
    pub turnaround_s_p95: f64,
    /// 99th percentile of the turnaround of measured jobs (s), linear interpolation.
    pub turnaround_s_p99: f64,
    /// Greatest turnaround of measured jobs (s).
    pub turnaround_s_max: f64,
    /// Mean of max(1, (wait + run)/max(bsld_tau_s, run_top)) over measured jobs: bounded slowdown with the bound given by
    /// the parameter `bsld_tau_s` (Mu'alem & Feitelson 2001).
    pub bsld_mean: f64,
    /// Mean of max(1, (wait + run)/max(10 s, run_top)) over measured jobs (Mu'alem & Feitelson 2001). With gears, run is
    /// as executed and run_top at the top gear.
    pub bsld_tau10s_mean: f64,
    /// Greatest bounded slowdown (10 s) of measured jobs.
    pub bsld_tau10s_max: f64,
    /// Root mean square of the bounded slowdown (10 s) over measured jobs (Gaussier et al. 2015, RMSBSLD).
    pub bsld_tau10s_rms: f64,
    /// Mean of max(1, (wait + run)/max(600 s, run_top)) over measured jobs (Etinski et al. 2010, eq. 1 and 6).
    pub bsld_tau600s_mean: f64,
    /// Mean of 1 + wait/max(10 s, run_top) over measured jobs (Lawson & Smirni 2005).
    pub slowdown_lawson_tau10s_mean: f64,
    /// Share of measured jobs that violate the service level: 1 + wait/max(10 s, run_top) above `sla_slowdown`, else
    /// above `ols_sla_slowdown`, else above 200 (Lawson & Smirni 2005, Figure 7).
    pub over_sla_share: f64,
    /// Mean of (wait + run)/run_top, unbounded, over measured jobs with run_top above 0; null without any.
    pub slowdown_mean: Option<f64>,
    /// Root mean square of the unbounded slowdown over measured jobs with run_top above 0 (Gaussier et al. 2015, RMSS); null
    /// without any.
    pub slowdown_rms: Option<f64>,
    /// Greatest unbounded slowdown of measured jobs with run_top above 0; null without any.
    pub slowdown_max: Option<f64>,
    /// Bounded slowdown (10 s) weighted by procs: sum(procs * bsld)/sum(procs) over measured jobs.
    pub bsld_tau10s_procs_weighted_mean: f64,
    /// Bounded slowdown (10 s) weighted by area: sum(procs * run_top * bsld)/sum(procs * run_top) over measured jobs;
    /// null if all areas are 0.
    pub bsld_tau10s_area_weighted_mean: Option<f64>,
    /// Wait weighted by procs: sum(procs * wait)/sum(procs) over measured jobs (s).
    pub wait_s_procs_weighted_mean: f64,
    /// Measured jobs with a wait above 0.
    pub waited_count: u64,
    /// Measured jobs that started before a job that was ahead of them in the queue.
    pub backfilled_count: u64,
    /// Measured jobs started below the top gear.
    pub reduced_count: u64,
    /// Measured jobs started at each gear, slowest first.
    pub gear_jobs_count: Vec<u64>,
    /// Busy processor-seconds at each gear over the span, slowest first.
    pub gear_busy_proc_s: Vec<f64>,
    /// Share of the busy processor-seconds spent at each gear, slowest first (residence; sums to 1); empty if no
    /// processor was ever busy.
    pub gear_residence_share: Vec<f64>,
    /// Gear changes of running jobs over the span (starts are not changes).
    pub gear_changes_count: u64,
    /// Busy processor-seconds / integral of the active procs over the span (Lawson & Smirni 2005); null if that integral
    /// is 0.
    pub utilization_active: Option<f64>,
    /// Busy processor-seconds / (installed procs * span); null if the span is 0.
    pub utilization_installed: Option<f64>,
    /// Procs saved by the capacity rule: 1 - integral of the active procs / (installed procs * span) (Lawson & Smirni 2005,
    /// Figure 2c); null if the span is 0. Active procs are all but those that sleep or switch off; those that are ordered to
    /// wake count as active, also while they still switch off.
    pub active_savings: Option<f64>,
    /// Time mean of the active procs over the span; null if the span is 0.
    pub active_procs_mean: Option<f64>,
    /// Changes of the number of active procs before the last completion; changes at one instant count once. All procs are
    /// active before the first submit.
    pub active_changes_count: u64,
    /// Load offered by all simulated jobs: sum(procs * run_top)/(machine procs * (last submit - first submit)); above 1
    /// the machine cannot keep up; null if all submits are equal.
    pub offered_load: Option<f64>,
    /// Completed jobs an hour of the span: 3600 * jobs_count/makespan_s; null if the span is 0.
    pub throughput_jobs_per_h: Option<f64>,
    /// Begin of the measured window: submit of the first measured job (s, the log's clock).
    pub window_begin_s: f64,
    /// End of the measured window: submit of the last measured job (s, the log's clock).
    pub window_end_s: f64,
    /// Busy processor-seconds of all jobs inside the measured window / (installed procs * window); null if the window has
    /// no length. Unlike `utilization_installed` it is free of the filling and draining of the machine.
    pub window_utilization: Option<f64>,
    /// Load offered by the measured jobs: sum(procs * run_top)/(machine procs * window); null if the window has no length.
    pub window_offered_load: Option<f64>,
    /// Jobs that completed inside the measured window, an hour: 3600 * count/window; null if the window has no length.
    pub window_throughput_jobs_per_h: Option<f64>,
    /// Loss of capacity: idle processor-seconds while jobs wait / (installed procs * span); null if the span is 0. Submitted
    /// jobs wait until they start, deferred ones included: so capacity counts that a deferral rule leaves idle on purpose.
    pub loss_of_capacity: Option<f64>,
    /// Time mean of the number of waiting jobs over the span, deferred ones included; null if the span is 0.
    pub queue_length_mean: Option<f64>,
    /// Greatest number of waiting jobs, deferred ones included.
    pub queue_length_max: u64,
    /// Time mean of the waiting work, procs * run_top, over the span, that of deferred jobs included (processor-seconds);
    /// null if the span is 0.
    pub backlog_proc_s_mean: Option<f64>,
    /// Greatest waiting work, that of deferred jobs included (processor-seconds).
    pub backlog_proc_s_max: f64,
    /// Measured jobs with 1 proc.
    pub jobs_count_size_1: u64,
    /// Mean wait of measured jobs with 1 proc (s); null without any.
    pub wait_s_mean_size_1: Option<f64>,
    /// Mean bounded slowdown (10 s) of measured jobs with 1 proc; null without any.
    pub bsld_tau10s_mean_size_1: Option<f64>,
    /// Measured jobs with 2 to 8 procs.
    pub jobs_count_size_2_8: u64,
    /// Mean wait of measured jobs with 2 to 8 procs (s); null without any.
    pub wait_s_mean_size_2_8: Option<f64>,
    /// Mean bounded slowdown (10 s) of measured jobs with 2 to 8 procs; null without any.
    pub bsld_tau10s_mean_size_2_8: Option<f64>,
    /// Measured jobs with 9 to 32 procs.
    pub jobs_count_size_9_32: u64,
    /// Mean wait of measured jobs with 9 to 32 procs (s); null without any.
    pub wait_s_mean_size_9_32: Option<f64>,
    /// Mean bounded slowdown (10 s) of measured jobs with 9 to 32 procs; null without any.
    pub bsld_tau10s_mean_size_9_32: Option<f64>,
    /// Measured jobs with 33 procs and more.
    pub jobs_count_size_33_up: u64,
    /// Mean wait of measured jobs with 33 procs and more (s); null without any.
    pub wait_s_mean_size_33_up: Option<f64>,
    /// Mean bounded slowdown (10 s) of measured jobs with 33 procs and more; null without any.
    pub bsld_tau10s_mean_size_33_up: Option<f64>,
    /// Measured jobs with run_top under 10 min.
    pub jobs_count_run_10min: u64,
    /// Mean wait of measured jobs with run_top under 10 min (s); null without any.
    pub wait_s_mean_run_10min: Option<f64>,
    /// Mean bounded slowdown (10 s) of measured jobs with run_top under 10 min; null without any.
    pub bsld_tau10s_mean_run_10min: Option<f64>,
    /// Measured jobs with run_top from 10 min to under 1 h.
    pub jobs_count_run_1h: u64,
    /// Mean wait of measured jobs with run_top from 10 min to under 1 h (s); null without any.
    pub wait_s_mean_run_1h: Option<f64>,
    /// Mean bounded slowdown (10 s) of measured jobs with run_top from 10 min to under 1 h; null without any.
    pub bsld_tau10s_mean_run_1h: Option<f64>,
    /// Measured jobs with run_top from 1 h to under 8 h.
    pub jobs_count_run_8h: u64,
    /// Mean wait of measured jobs with run_top from 1 h to under 8 h (s); null without any.
    pub wait_s_mean_run_8h: Option<f64>,
    /// Mean bounded slowdown (10 s) of measured jobs with run_top from 1 h to under 8 h; null without any.
    pub bsld_tau10s_mean_run_8h: Option<f64>,
    /// Measured jobs with run_top of 8 h and more.
    pub jobs_count_run_8h_up: u64,
    /// Mean wait of measured jobs with run_top of 8 h and more (s); null without any.
    pub wait_s_mean_run_8h_up: Option<f64>,
    /// Mean bounded slowdown (10 s) of measured jobs with run_top of 8 h and more; null without any.
    pub bsld_tau10s_mean_run_8h_up: Option<f64>,
    /// Energy of the machine over the span (J): energy_computational_j + energy_idle_j (Etinski et al. 2010) +
    /// energy_asleep_j + energy_transition_j, and energy_suspended_j and energy_static_j where they apply.
    pub energy_total_j: f64,
    /// Energy of busy procs (J): the "computational" energy of Etinski et al. 2010.
    pub energy_computational_j: f64,
    /// Energy of idle procs over the span (J).
    pub energy_idle_j: f64,
    /// Energy of procs asleep over the span (J).
    pub energy_asleep_j: f64,
    /// Energy of procs that switch off or wake over the span (J).
    pub energy_transition_j: f64,
    /// Energy of the procs of suspended jobs (J), which is part of the jobs' `energy_j`; null without a power cap or
    /// a deferral rule that suspends jobs.
    pub energy_suspended_j: Option<f64>,
    /// Energy of equipment that draws constant power besides the procs, `cooling_w` times the span (J); null if `cooling_w`
    /// is 0.
    pub energy_static_j: Option<f64>,
    /// energy_total_j/jobs_count (J).
    pub energy_per_job_j: f64,
    /// Energy-delay product: energy_total_j * turnaround_s_mean (J s).
    pub energy_delay_product_js: f64,
    /// Mean power, energy_total_j/makespan_s (W); null if the span is 0.
    pub power_mean_w: Option<f64>,
    /// Least power of the machine that is not exceeded in 95% of the span (W). Exact for up to 524,288 different powers; with
    /// more, up to one part in 65,536 above. Null if the span is 0.
    pub power_p95_w: Option<f64>,
    /// Greatest power of the machine (W).
    pub power_peak_w: f64,
    /// Busy processor-hours over the span, all gears.
    pub busy_proc_h: f64,
    /// Idle processor-hours over the span.
    pub idle_proc_h: f64,
    /// Asleep processor-hours over the span.
    pub asleep_proc_h: f64,
    /// Processor-hours in transition over the span: switching off or waking.
    pub transition_proc_h: f64,
    /// Processor-hours of suspended jobs over the span; null where energy_suspended_j is.
    pub suspended_proc_h: Option<f64>,
    /// Time mean of the power cap over the span (W); null without one.
    pub power_cap_mean_w: Option<f64>,
    /// Share of the span in which the power exceeded the cap (by more than 1e-9 of it); null without a cap.
    pub power_cap_violation_share: Option<f64>,
    /// Greatest excess of the power over the cap (W), 0 if it was kept; null without a cap.
    pub power_cap_excess_max_w: Option<f64>,
    /// Integral of the excess over the cap while it was exceeded (J); null without a cap.
    pub power_cap_violation_j: Option<f64>,
    /// Unused trapped capacity as a ratio: 1 - energy_total_j / integral of the cap over the span; below 0 if more was drawn
    /// than the cap allows (Zhang et al. 2014); null without a cap.
    pub trapped_unused_share: Option<f64>,
    /// Unused trapped capacity as energy: integral of cap minus power over the span (kWh), below 0 if the power exceeds the
    /// cap on the whole (Zhang et al. 2014, Figure 5); null without a cap.
    pub trapped_unused_kwh: Option<f64>,
    /// Time mean of executing over installed procs; suspended ones do not count (Zhang et al. 2014, Figure 6). Null without
    /// a power cap unless `watch_machine` or `backfill` = "within-priority".
    pub cpu_utilization: Option<f64>,
    /// Share of the span in which executing procs are at least 0.75 of the installed (Zhang et al. 2014, section V.B);
    /// null where cpu_utilization is.
    pub cpu_utilization_high_share: Option<f64>,
    /// Time mean of executing and suspended over installed procs; null where cpu_utilization is.
    pub cpu_utilization_with_suspended: Option<f64>,
    /// Share of the span in which executing and suspended procs are at least 0.75 of the installed; null where
    /// cpu_utilization is.
    pub cpu_utilization_with_suspended_high_share: Option<f64>,
    /// Measured jobs of priority 1, the highest; null if the workload has no priorities.
    pub jobs_count_priority_1: Option<u64>,
    /// Mean turnaround of measured jobs of priority 1 (s); null without any.
    pub turnaround_s_mean_priority_1: Option<f64>,
    /// Measured jobs of priority 2; null if the workload has no priorities.
    pub jobs_count_priority_2: Option<u64>,
    /// Mean turnaround of measured jobs of priority 2 (s); null without any.
    pub turnaround_s_mean_priority_2: Option<f64>,
    /// Measured jobs of priority 3; null if the workload has no priorities.
    pub jobs_count_priority_3: Option<u64>,
    /// Mean turnaround of measured jobs of priority 3 (s); null without any.
    pub turnaround_s_mean_priority_3: Option<f64>,
    /// Mean turnaround of measured jobs with fewer procs than `large_job_procs` (s); null without it or without any.
    pub turnaround_s_mean_small: Option<f64>,
    /// Mean turnaround of measured jobs with at least `large_job_procs` procs (s); null without it or without any.
    pub turnaround_s_mean_large: Option<f64>,
    /// Mean of max(0, start - start of the same job under strict first come, first served without backfilling, at the top
    /// gear) over measured jobs (s); null unless the parameter `fairness` is set.
    pub fairness_delay_s_mean: Option<f64>,
    /// Greatest such delay (s); null unless `fairness`.
    pub fairness_delay_s_max: Option<f64>,
    /// Measured jobs started later than under strict first come, first served; null unless `fairness`.
    pub fairness_delayed_count: Option<u64>,
    /// Jobs that drew their measured power, of all simulated jobs; null unless `job_power` uses measured powers.
    pub power_measured_jobs_count: Option<u64>,
    /// Their share of the work: sum of procs * run_top over these jobs / the sum over all jobs; null where
    /// power_measured_jobs_count is, or if the sum is 0.
    pub power_measured_share: Option<f64>,
    /// Share of the GPUs that jobs held: sum of GPUs * (finish - start) over all jobs / (`gpus` * span); null without `gpus`,
    /// or if that is 0.
    pub gpu_utilization: Option<f64>,
    /// Share of the memory that jobs held: sum of memory * (finish - start) over all jobs / (`memory_gib` * span); null without
    /// `memory_gib`, or if the span is 0.
    pub memory_utilization: Option<f64>,
    /// Share of the procs of each partition that jobs held: sum of procs * (finish - start) over its jobs / (its procs *
    /// span); null without `partition_procs`, or if the span is 0.
    pub partition_utilization: Option<Vec<f64>>,
    /// Measured jobs of each partition; null without `partition_procs`.
    pub partition_jobs_count: Option<Vec<u64>>,
    /// Mean wait of the measured jobs of each partition (s); null without `partition_procs`, or if a partition has no
    /// measured job.
    pub partition_wait_s_mean: Option<Vec<f64>>,
    /// Mean error of the predictions at the submission, prediction - run_top, over measured jobs (s); null without a
    /// `predictor`.
    pub prediction_error_s_mean: Option<f64>,
    /// Mean absolute error |prediction - run_top| over measured jobs (s); null without a `predictor`.
    pub prediction_error_abs_s_mean: Option<f64>,
    /// Absolute error weighted by procs: sum(procs * |prediction - run_top|)/sum(procs) over measured jobs (s); null without
    /// a `predictor`.
    pub prediction_error_abs_s_procs_weighted_mean: Option<f64>,
    /// Mean over users of the mean absolute error of the user's measured jobs (s): every user counts alike; null without a
    /// `predictor`.
    pub prediction_error_abs_s_user_mean: Option<f64>,
    /// Share of measured jobs that ran longer than predicted at their submission; null without a `predictor`.
    pub prediction_under_share: Option<f64>,
    /// Measured jobs whose prediction was corrected while they ran; null without a `predictor`.
    pub prediction_corrected_count: Option<u64>,
    /// Corrections of the predictions of measured jobs; null without a `predictor`.
    pub prediction_corrections_count: Option<u64>,
    /// Measured jobs that started at the end of a job that had overtaken others during their wait and ran longer than
    /// predicted; null without a `predictor`.
    pub prediction_delayed_count: Option<u64>,
    /// Self-check by Little's law, 0 up to rounding: |integral of the queue length - sum of all waits|/max(1 s, sum of all
    /// waits).
    pub little_residual: f64,
    /// Self-check, 0 up to rounding: |busy + suspended + idle + asleep + transition processor-seconds - procs * span|/max(1,
    /// procs * span).
    pub procs_residual: f64,
    /// Self-check, 0 up to rounding: |busy processor-seconds by the meter - sum of procs * run over all jobs|/max(1, that
    /// sum).
    pub busy_residual: f64,
    /// Self-check, 0 up to rounding: |energy_total_j - sum of the jobs' energies - those of idle procs, of procs asleep
    /// and in transition - energy_static_j|/max(1 J, energy_total_j). Jobs draw power while they are suspended.
    pub energy_residual: f64,
    /// Self-check, 0 up to rounding: |energy_total_j - integral of the power that was compared with the cap|/max(1 J,
    /// energy_total_j); null without a cap.
    pub watch_residual: Option<f64>,
}
}
