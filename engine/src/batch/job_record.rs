//! The record of one simulated job.

crate::record! {
/// One simulated job: a row of the `jobs` table.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRecord {
    /// Job number of the log (field 1), or 1-based position for a generated workload.
    pub job_id: i64,
    /// Submit instant of the log, not shifted (s).
    pub submit_s: f64,
    /// Start instant (s).
    pub start_s: f64,
    /// End instant (s).
    pub finish_s: f64,
    /// Run time as executed, gears included (s).
    pub run_s: f64,
    /// Run time at the top gear (s).
    pub run_top_s: f64,
    /// The user's estimate, at the top gear (s); without a `predictor`, what the scheduler expected.
    pub requested_s: f64,
    /// Run time at the top gear that was predicted at the submission (s); null without a `predictor`.
    pub predicted_s: Option<f64>,
    /// Corrections of the prediction while the job ran; null without a `predictor`.
    pub corrections_count: Option<u32>,
    /// Procs held.
    pub procs: u32,
    /// Numbers of the nodes that the job held, from 0, as ranges such as `0-49 60`: the lowest free numbers at its
    /// start; null unless the parameter `node_lists` is set.
    pub node_list: Option<String>,
    /// Gear at the start; 0 is the slowest.
    pub gear_index: u8,
    /// Energy of the job's procs from start to end (J): busy, or idle while it was suspended (Zhang et al. 2014, eq. 1:
    /// the sum over its nodes).
    pub energy_j: f64,
    /// Whether the job overtook the head of the queue.
    pub backfilled: bool,
    /// Whether the job was killed at its estimate.
    pub killed: bool,
    /// Priority; 1 is the highest, and the priority of all jobs of a workload without priorities.
    pub priority: u8,
    /// Class of the job, from 1.
    pub job_class: u32,
    /// Time in which the job held its procs without executing (s); run_s does not include it.
    pub suspended_s: f64,
}
}
