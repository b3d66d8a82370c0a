//! Measured powers of jobs: comments behind their records, so that a log with them is still one of the format.

/// Key of a comment with the measured mean power of the record above: `; JobPowerW: JOB WATTS`, or
/// `; JobPowerW: JOB WATTS GHZ` with the frequency of its processors.
pub const POWER_KEY: &str = "JobPowerW";

/// Greatest power that a log may state (W).
const POWER_MAX_W: f64 = 1e15;

/// Bytes of a line that a message shows.
const SHOWN: usize = 40;

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

/// The value of a comment line with a key; `None` for another comment.
#[inline]
pub(super) fn text<'a>(comment: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let text = comment.trim_ascii_start().strip_prefix(b";")?.trim_ascii_start();
    text.strip_prefix(key.as_bytes())?.trim_ascii_start().strip_prefix(b":")
}

/// A text for a message: its first bytes, unprintable ones escaped.
pub(super) fn shown(text: &[u8]) -> String {
    text.trim_ascii().iter().take(SHOWN).copied().flat_map(std::ascii::escape_default).map(char::from).collect()
}

/// The power that a comment states about the record above, or the problem of the line. `above`: position and job number of
/// that record. `known`: the powers so far.
pub(super) fn read(text: &[u8], above: Option<(usize, i64)>, known: &[RecordPower]) -> Result<RecordPower, String> {
    let mut words = std::str::from_utf8(text).unwrap_or_default().split_ascii_whitespace();
    let (Some(job), Some(watts), ghz, None) = (words.next(), words.next(), words.next(), words.next()) else {
        return Err(format!(
            "expected `; {POWER_KEY}: JOB WATTS` or `; {POWER_KEY}: JOB WATTS GHZ`, found `{}`",
            shown(text)
        ));
    };
    let frequency = |word: &str| {
        let ghz = word.parse().ok().filter(|ghz: &f64| *ghz > 0.0 && *ghz <= GHZ_MAX);
        ghz.ok_or_else(|| format!("expected a frequency above 0 up to {GHZ_MAX} GHz, found `{}`", shown(text)))
    };
    let mean_w = watts.parse().ok().filter(|watts: &f64| *watts > 0.0 && *watts <= POWER_MAX_W);
    let mean_w = mean_w.ok_or_else(|| format!("expected watts above 0, found `{}`", shown(text)))?;
    let Some((record, last)) = above else {
        return Err(format!("`{POWER_KEY}` stands behind the record of its job, and no record is above"));
    };
    if job.parse() != Ok(last) {
        return Err(format!(
            "`{POWER_KEY}` of job `{job}` stands behind the record of job {last}: put it behind its own"
        ));
    }
    if known.last().is_some_and(|power| power.record == record) {
        return Err(format!("job {last} has a second `{POWER_KEY}`: keep one"));
    }
    Ok(RecordPower { record, mean_w, ghz: ghz.map(frequency).transpose()? })
}
