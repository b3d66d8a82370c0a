//! Slurm: scripts of jobs, arguments of its commands, and their answers.
//!
//! Answers are read in the form that a format option asks for. The JSON form of the same commands needs a plug-in, and has
//! changed its fields with most releases of Slurm.

mod answers;
mod script;

pub use answers::{PARTITION_FORMAT, Partition, QUEUE_FORMAT, facts, job_id, partitions, queue, submit_limit};
pub use script::{CoordinatorJob, script, with_body};

use std::time::Duration;

/// The time that Slurm writes as minutes, minutes:seconds, hours:minutes:seconds or days-hours:minutes:seconds.
///
/// # Errors
/// The text is no such time.
pub fn time_limit(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time of Slurm, such as 240, 4:00:00 or 1-12");
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<u64>().map_err(|_| wrong())?, rest),
        None => (0, text),
    };
    let fields: Vec<u64> = rest.split(':').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
    let seconds = match (fields.as_slice(), text.contains('-')) {
        ([hours], true) => hours * 3_600,
        ([hours, minutes], true) => hours * 3_600 + minutes * 60,
        ([minutes], false) => minutes * 60,
        ([minutes, seconds], false) => minutes * 60 + seconds,
        ([hours, minutes, seconds], _) => hours * 3_600 + minutes * 60 + seconds,
        _ => return Err(wrong()),
    };
    let all = days.checked_mul(86_400).and_then(|days| days.checked_add(seconds)).filter(|seconds| *seconds > 0);
    all.map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_slurm_reads_them() {
        let seconds = |text: &str| time_limit(text).map(|time| time.as_secs());
        assert_eq!(seconds("30"), Ok(1_800));
        assert_eq!(seconds("30:15"), Ok(1_815));
        assert_eq!(seconds("4:00:00"), Ok(14_400));
        assert_eq!(seconds("1-12"), Ok(129_600));
        assert_eq!(seconds("1-12:30"), Ok(131_400));
        assert_eq!(seconds("2-00:00:01"), Ok(172_801));
        for wrong in ["", "0", "infinite", "1:2:3:4", "-5", "4h", "99999999999999999-0"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
