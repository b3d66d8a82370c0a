//! The record of all metrics of queues. A field's doc is the column's documentation.

crate::record! {
/// The metrics of one simulation of queues.
///
/// A field with the name of a field of the summary of batch jobs has the same meaning and shares its column. *Measured*
/// are the completions after the warm-up, and the time from the last completion of the warm-up (0 without one) to the end
/// of the run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueSummary {
    /// Jobs simulated to their end, warm-up included.
    pub jobs_count: u64,
    /// Jobs in the statistics: completed after the warm-up.
    pub measured_jobs_count: u64,
    /// Jobs completed in the warm-up, left out of all statistics.
    pub warmup_jobs_count: u64,
    /// Events that the kernel handled.
    pub events_count: u64,
    /// Servers.
    pub machine_procs: u32,
    /// Simulated time that was measured (s).
    pub measured_s: f64,
    /// Mean of wait = start - arrival over measured jobs, including jobs that did not wait (s).
    pub wait_s_mean: f64,
    /// Half-width of the confidence interval of `wait_s_mean` by batch means (s); null without statistics `steady-state`.
    pub wait_s_half_width: Option<f64>,
    /// Mean of service = end - start over measured jobs (s).
    pub service_s_mean: f64,
    /// Half-width of the confidence interval of `service_s_mean` (s); null without statistics `steady-state`.
    pub service_s_half_width: Option<f64>,
    /// Mean of response = wait + service over measured jobs (s).
    pub turnaround_s_mean: f64,
    /// Half-width of the confidence interval of the mean response time, `turnaround_s_mean` (s); null without statistics
    /// `steady-state`.
    pub turnaround_s_half_width: Option<f64>,
    /// Measured jobs with a wait above 0.
    pub waited_count: u64,
    /// Share of the measured jobs with a wait above 0: the probability of waiting.
    pub waited_share: f64,
    /// Mean wait of the measured jobs with a wait above 0 (s); null without any.
    pub wait_s_mean_of_waited: Option<f64>,
    /// Measured jobs of each class of jobs.
    pub class_jobs_count: Vec<u64>,
    /// Mean response time of the measured jobs of each class of jobs (s); null for a class without any.
    pub class_turnaround_s_mean: Vec<f64>,
    /// Jobs of each class that were in the system at the end of the run, waiting or in service.
    pub class_jobs_left_count: Vec<u64>,
    /// Energy of the servers in the measured time (J): busy, and idle unless `idle_servers` is `off`.
    pub energy_total_j: f64,
    /// Energy of busy servers in the measured time (J).
    pub energy_computational_j: f64,
    /// Energy that servers without a job draw when they stay on, asleep or off as their policy has it (J), whether or not
    /// `idle_servers` is `off`.
    pub energy_idle_j: f64,
    /// energy_total_j/measured_jobs_count (J).
    pub energy_per_job_j: f64,
    /// Half-width of the confidence interval of `energy_per_job_j` (J); null without statistics `steady-state`.
    pub energy_per_job_half_width_j: Option<f64>,
    /// (energy_computational_j + energy_idle_j)/measured_jobs_count (J): idle servers stay on (Do et al. 2013, eq. 3 and 5).
    pub energy_per_job_idle_on_j: f64,
    /// energy_computational_j/measured_jobs_count (J): idle servers are switched off (Do et al. 2013, eq. 4 and 6).
    pub energy_per_job_idle_off_j: f64,
    /// Mean power, energy_total_j/measured_s (W); null if no time was measured.
    pub power_mean_w: Option<f64>,
    /// Whether every relative half-width that was asked for was reached, with batches correlated by less than 0.2; null if
    /// none was asked for.
    pub precision_reached: Option<bool>,
    /// Batches of equal size that the half-widths come from; null without statistics `steady-state`.
    pub batches_count: Option<u64>,
    /// Jobs in each batch; null without statistics `steady-state`.
    pub batch_jobs_count: Option<u64>,
    /// Correlation of neighbouring batches, the greatest over the metrics that a half-width was asked for (response and
    /// wait if none was); null without statistics `steady-state`.
    pub batches_lag1: Option<f64>,
    /// Load that the arrivals offer: rate * mean work / rate of all servers; null if classes have rates of their own.
    pub offered_load: Option<f64>,
    /// Busy server-seconds / (servers * measured_s); null if no time was measured.
    pub utilization_installed: Option<f64>,
    /// Busy server-seconds / server-seconds of each group of servers in the measured time, in the platform's order; null
    /// elements if no time was measured.
    pub group_utilization: Vec<f64>,
    /// Measured completions an hour; null if no time was measured.
    pub throughput_jobs_per_h: Option<f64>,
    /// Time mean of the number of waiting jobs in the measured time; null if no time was measured.
    pub queue_length_mean: Option<f64>,
    /// Server-hours without a job but switched on and awake, in the measured time.
    pub idle_proc_h: f64,
    /// Server-hours executing, in the measured time.
    pub busy_proc_h: f64,
    /// Server-hours asleep or switched off by the policy, in the measured time.
    pub asleep_proc_h: f64,
    /// Self-check by Little's law, 0 up to rounding: |integral of the jobs in the system - sum of the response times inside
    /// the measured time|, relative to the latter or 1 s.
    pub little_residual: f64,
    /// Self-check, 0 up to rounding: |busy + idle + asleep server-seconds - servers * time|/max(1, servers * time).
    pub procs_residual: f64,
    /// lambda*: all arrivals could grow by this factor before the servers cannot serve them (Al-Daoud et al. 2011,
    /// LP (1)); null if classes have no rates of their own.
    pub lp_lambda: Option<f64>,
    /// theta* of Al-Daoud et al. 2011, LP (1): shares that serve lambda* times the arrivals, each of its time that a server
    /// of each group gives to each class, class by class; null if classes have no rates of their own. Other shares may
    /// serve them too.
    pub lp_theta: Option<Vec<f64>>,
    /// Pairs of linear programs that the policy solved: one at the start and one at each change of the system; null for a
    /// policy without shares. The columns of their results show the programs of the start.
    pub lp_solved_count: Option<u64>,
    /// Capacity c that the shares of the policy serve, as a factor of the arrivals, at most lp_lambda; null for a policy
    /// without shares.
    pub lp_capacity: Option<f64>,
    /// Mean power of all servers under the shares (W): the objective of LP (2); null for a policy without shares.
    pub lp_power_w: Option<f64>,
    /// delta* of Al-Daoud et al. 2011, LP (2): share of its time that a server of each group gives to each class, class by
    /// class; null for a policy without shares.
    pub lp_shares: Option<Vec<f64>>,
    /// S of the singular value decomposition U S V^T of the rates, a row a class and a column a group (Al-Daoud et al. 2011,
    /// section 6), greatest first (1/s); null if classes have no rates of their own.
    pub svd_singular_per_s: Option<Vec<f64>>,
    /// U of the decomposition, one column after the other: a number a class for each singular value. Each column has the
    /// sign that makes its sum negative; null as `svd_singular_per_s`.
    pub svd_left: Option<Vec<f64>>,
    /// V of the decomposition, one column after the other: a number a group for each singular value; null as
    /// `svd_singular_per_s`.
    pub svd_right: Option<Vec<f64>>,
    /// The nearest rates of rank 1 (1/s), class by class: those of the nearest structured system; null as
    /// `svd_singular_per_s`.
    pub svd_rank_1_per_s: Option<Vec<f64>>,
    /// beta of each group (J): the slope of the line through the origin that fits its busy powers over `svd_rank_1_per_s` in
    /// the least squares; null as `svd_singular_per_s`, or if a group has no rate.
    pub svd_betas_j: Option<Vec<f64>>,
}
}
