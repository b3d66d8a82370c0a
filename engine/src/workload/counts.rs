//! What the rules of a workload did.

crate::record! {
/// Number of records that each rule affected. Every field is a column of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleCounts {
    /// Data records read.
    pub records_count: u64,
    /// Outside the slice.
    pub sliced_out_count: u64,
    /// Dropped: no run time (-1) without a `missing_run_s`, or below the least run time.
    pub dropped_run_count: u64,
    /// Dropped: no submit time, or a partial execution (status 2 to 4) beside the record of its whole job.
    pub dropped_submit_count: u64,
    /// Dropped: no processor count, where `missing_procs` is "drop".
    pub dropped_procs_count: u64,
    /// Dropped: no requested time, where `missing_estimate` is "drop".
    pub dropped_estimate_count: u64,
    /// Records that `added_records` adds to those of the log; `records_count` includes them.
    pub added_records_count: u64,
    /// Procs taken from the second field because the first was missing.
    pub procs_fallback_count: u64,
    /// Procs set to 1 because no field had a count.
    pub procs_missing_count: u64,
    /// Run times filled by `missing_run_s` because the log had none.
    pub filled_run_count: u64,
    /// Estimates filled because the log had no requested time above 0.
    pub filled_estimate_count: u64,
    /// Jobs of the workload that outlive their estimate (killed or run on, by the rule), also those that `wide_jobs` or
    /// `over_cap_jobs` drops.
    pub overrun_count: u64,
    /// Jobs whose memory is the used one, because none was requested (`memory_from`); jobs that are drawn several times
    /// count once.
    pub memory_fallback_count: u64,
    /// Jobs without a memory, where `memory_from` asks for one; likewise.
    pub memory_missing_count: u64,
    /// Whole blocks that the jobs have, from which `resample_days` draws; null without it.
    pub whole_blocks_count: Option<u64>,
}
}
