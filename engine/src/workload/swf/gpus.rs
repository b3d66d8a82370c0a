//! GPUs of jobs: comments behind their records, so that a log with them is still one of the format.
use super::power::{check_place, shown};

/// Key of a comment with the GPUs of the record above: `; JobGpus: JOB COUNT`.
pub const GPUS_KEY: &str = "JobGpus";

/// Greatest number of GPUs that a log may state.
const COUNT_MAX: u32 = 1 << 30;

/// The GPUs of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordGpus {
    /// Position of the record.
    pub record: usize,
    /// GPUs of the whole job.
    pub count: u32,
}

/// The GPUs that a comment states of the record above, or the problem of the line. `above`: position and job number of
/// that record. `known`: those so far.
pub(super) fn read(text: &[u8], above: Option<(usize, i64)>, known: &[RecordGpus]) -> Result<RecordGpus, String> {
    let mut words = std::str::from_utf8(text).unwrap_or_default().split_ascii_whitespace();
    let (Some(job), Some(count), None) = (words.next(), words.next(), words.next()) else {
        return Err(format!("expected `; {GPUS_KEY}: JOB COUNT`, found `{}`", shown(text)));
    };
    let count = count.parse().ok().filter(|count: &u32| *count <= COUNT_MAX);
    let count =
        count.ok_or_else(|| format!("expected a number of GPUs from 0 to {COUNT_MAX}, found `{}`", shown(text)))?;
    let record = check_place(GPUS_KEY, job, above)?;
    if known.last().is_some_and(|gpus| gpus.record == record) {
        return Err(format!("job {job} has a second `{GPUS_KEY}`: keep one"));
    }
    Ok(RecordGpus { record, count })
}
