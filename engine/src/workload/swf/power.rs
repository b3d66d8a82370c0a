//! Measured powers of jobs: comments behind their records, so that a log with them is still one of the format.

use super::SwfLog;

/// Key of a comment with the measured mean power of the record above: `; JobPowerW: JOB WATTS`, or
/// `; JobPowerW: JOB WATTS GHZ` with the frequency of its processors.
pub const POWER_KEY: &str = "JobPowerW";

/// Greatest power that a log may state (W).
const POWER_MAX_W: f64 = 1e15;

/// Greatest frequency that a log may state.
const GHZ_MAX: f64 = 1e3;

/// The measured power of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordPower {
    /// Position of the record.
    pub record: usize,
    /// Mean power of the whole job while it ran (W), above 0.
    pub mean_w: f64,
    /// Frequency of its processors (GHz), if it is known.
    pub ghz: Option<f64>,
}

/// The value of a comment line with [`POWER_KEY`]; `None` for another comment.
#[inline]
pub(super) fn text(comment: &[u8]) -> Option<&[u8]> {
    let text = comment.trim_ascii_start().strip_prefix(b";")?.trim_ascii_start();
    text.strip_prefix(POWER_KEY.as_bytes())?.trim_ascii_start().strip_prefix(b":")
}

/// The power that a comment states about the last record of a log, or the problem of the line.
pub(super) fn read(text: &[u8], log: &SwfLog) -> Result<RecordPower, String> {
    let shown = || super::printable(text.trim_ascii());
    let mut words = std::str::from_utf8(text).unwrap_or_default().split_ascii_whitespace();
    let (Some(job), Some(watts), ghz, None) = (words.next(), words.next(), words.next(), words.next()) else {
        return Err(format!(
            "expected `; {POWER_KEY}: JOB WATTS` or `; {POWER_KEY}: JOB WATTS GHZ`, found `{}`",
            shown()
        ));
    };
    let frequency = |word: &str| {
        let ghz = word.parse().ok().filter(|ghz: &f64| *ghz > 0.0 && *ghz <= GHZ_MAX);
        ghz.ok_or_else(|| format!("expected a frequency above 0 up to {GHZ_MAX} GHz, found `{}`", shown()))
    };
    let mean_w = watts.parse().ok().filter(|watts: &f64| *watts > 0.0 && *watts <= POWER_MAX_W);
    let mean_w = mean_w.ok_or_else(|| format!("expected watts above 0, found `{}`", shown()))?;
    let Some((record, last)) = log.records.len().checked_sub(1).map(|at| (at, log.records[at].id)) else {
        return Err(format!("`{POWER_KEY}` stands behind the record of its job, and no record is above"));
    };
    if job.parse() != Ok(last) {
        return Err(format!(
            "`{POWER_KEY}` of job `{job}` stands behind the record of job {last}: put it behind its own"
        ));
    }
    if log.powers.last().is_some_and(|power| power.record == record) {
        return Err(format!("job {last} has a second `{POWER_KEY}`: keep one"));
    }
    Ok(RecordPower { record, mean_w, ghz: ghz.map(frequency).transpose()? })
}

#[cfg(test)]
mod tests {
    use crate::workload::swf::{self, RecordPower};

    const RECORD: &str = "7 0 -1 60 4 -1 -1 4 90 -1 1 1 1 -1 1 -1 -1 -1\n";

    #[test]
    fn a_power_belongs_to_the_record_above() {
        let text = format!(
            "; MaxProcs: 8\n{RECORD}{RECORD}; JobPowerW: 7 412.5\n ;JobPowerWs: 3\n{RECORD};JobPowerW:7 1 2.2\n"
        );
        let log = swf::parse(text.as_bytes(), "x.swf").expect("reads");
        let power = |record, mean_w, ghz| RecordPower { record, mean_w, ghz };
        assert_eq!(log.powers, [power(1, 412.5, None), power(2, 1.0, Some(2.2))]);
        // Other keys stay in the header.
        assert_eq!(log.header.fields.len(), 2);
    }

    #[test]
    fn a_wrong_power_is_an_error_with_its_line() {
        let error = |text: &str| swf::parse(text.as_bytes(), "x.swf").expect_err("is wrong").to_string();
        assert!(error("; JobPowerW: 7 1\n").contains("x.swf, line 1: `JobPowerW` stands behind the record"));
        for (power, what) in [
            ("8 1", "job `8`"),
            ("7", "JOB WATTS"),
            ("7 0", "above 0"),
            ("7 nan", "above 0"),
            ("7 1e16", "above 0"),
            ("7 1 0", "a frequency"),
            ("7 1 2 3", "GHZ`"),
        ] {
            let found = error(&format!("{RECORD}; JobPowerW: {power}\n"));
            assert!(found.starts_with("x.swf, line 2: ") && found.contains(what), "{found}");
        }
        assert!(error(&format!("{RECORD}; JobPowerW: 7 1\n; JobPowerW: 7 1\n")).contains("line 3: job 7 has a second"));
    }
}
