//! Measured powers of jobs: comments behind their records, so that a log with them is still one of the format.

use std::ops::Range;

/// Key of a comment with the measured mean power of the record above: `; JobPowerW: JOB WATTS`, or
/// `; JobPowerW: JOB WATTS GHZ` with the frequency of its processors.
pub const POWER_KEY: &str = "JobPowerW";

/// Key of a comment with the samples of that power, behind the mean: `; JobPowerSeriesW: JOB STEP_S WATTS WATTS ...`.
pub const POWER_SERIES_KEY: &str = "JobPowerSeriesW";

/// Greatest power that a log may state (W).
const POWER_MAX_W: f64 = 1e15;

/// Bytes of a line that a message shows.
const SHOWN: usize = 40;

/// Greatest frequency that a log may state.
const GHZ_MAX: f64 = 1e3;

/// Greatest step of a series of samples (s): a year.
const STEP_MAX_S: f64 = 366.0 * 86_400.0;

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

/// The samples of a record's power.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Samples {
    /// Position of the record.
    record: usize,
    /// Time from a sample to the next (s).
    step_s: f64,
    /// Position of the first sample in the list of all. The next record's is the end.
    first: usize,
}

/// Sampled powers of some records, in the order of the records.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PowerSeries {
    records: Vec<Samples>,
    watts: Vec<f64>,
}

impl PowerSeries {
    /// The samples of a record: the step (s), and where they are in [`PowerSeries::watts`].
    pub fn of(&self, record: usize) -> Option<(f64, Range<usize>)> {
        let at = self.records.binary_search_by_key(&record, |samples| samples.record).ok()?;
        let end = self.records.get(at + 1).map_or(self.watts.len(), |next| next.first);
        Some((self.records[at].step_s, self.records[at].first..end))
    }

    /// All samples (W): powers of whole jobs, at least 0. A sample holds for a step from the start of the job on, and the last
    /// one to its end.
    pub fn watts(&self) -> &[f64] {
        &self.watts
    }

    /// Number of records with samples.
    pub fn count(&self) -> usize {
        self.records.len()
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Samples>() + self.watts.capacity() * size_of::<f64>()
    }

    /// Adds the samples that a comment states about the record above, or says what is wrong with it. `above`: position and
    /// job number of that record. `means`: the mean powers so far.
    pub(super) fn read(
        &mut self,
        text: &[u8],
        above: Option<(usize, i64)>,
        means: &[RecordPower],
    ) -> Result<(), String> {
        let wrong = |what: &str| {
            format!("expected `; {POWER_SERIES_KEY}: JOB STEP_S WATTS ...` with {what}, found `{}`", shown(text))
        };
        let mut words = std::str::from_utf8(text).unwrap_or_default().split_ascii_whitespace();
        let job = words.next().ok_or_else(|| wrong("a job, a step and samples"))?;
        let record = check_place(POWER_SERIES_KEY, job, above)?;
        if means.last().is_none_or(|power| power.record != record) {
            return Err(format!(
                "`{POWER_SERIES_KEY}` of job {job} stands behind the `{POWER_KEY}` of the job, and there is none"
            ));
        }
        if self.records.last().is_some_and(|samples| samples.record == record) {
            return Err(format!("job {job} has a second `{POWER_SERIES_KEY}`: keep one"));
        }
        let step_s =
            words.next().and_then(|word| word.parse().ok()).filter(|step_s| *step_s > 0.0 && *step_s <= STEP_MAX_S);
        let step_s = step_s.ok_or_else(|| wrong("a step above 0 up to a year"))?;
        let first = self.watts.len();
        for word in words {
            let watts = word.parse().ok().filter(|watts| (0.0..=POWER_MAX_W).contains(watts));
            self.watts.push(watts.ok_or_else(|| wrong("samples of at least 0 W"))?);
        }
        if self.watts.len() == first {
            return Err(wrong("at least one sample"));
        }
        self.records.push(Samples { record, step_s, first });
        Ok(())
    }
}

/// The spans of the samples of a run: begin and end since its start (s), and the sample (W). A sample holds for a step, the last
/// one to the end of the run; the first one has a span in every run, and samples behind the end have none.
pub fn spans(step_s: f64, watts: &[f64], run_s: f64) -> impl Iterator<Item = (f64, f64, f64)> {
    let last = watts.len().saturating_sub(1);
    let span = move |(at, &watts): (usize, &f64)| {
        let to_s = if at == last { run_s } else { run_s.min((at + 1) as f64 * step_s) };
        (at as f64 * step_s, to_s, watts)
    };
    watts.iter().enumerate().map(span).take_while(move |(from_s, ..)| *from_s < run_s || *from_s == 0.0)
}

/// The position of the record that a comment with a key is about, which is the record above.
pub(super) fn check_place(key: &str, job: &str, above: Option<(usize, i64)>) -> Result<usize, String> {
    let Some((record, last)) = above else {
        return Err(format!("`{key}` stands behind the record of its job, and no record is above"));
    };
    if job.parse() != Ok(last) {
        return Err(format!("`{key}` of job `{job}` stands behind the record of job {last}: put it behind its own"));
    }
    Ok(record)
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
    let record = check_place(POWER_KEY, job, above)?;
    if known.last().is_some_and(|power| power.record == record) {
        return Err(format!("job {job} has a second `{POWER_KEY}`: keep one"));
    }
    Ok(RecordPower { record, mean_w, ghz: ghz.map(frequency).transpose()? })
}
