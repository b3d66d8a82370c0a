//! Cells of `sacct`.

use crate::joblogs::entry::{self, COUNT_MAX, whole};
use crate::table::clock::SECOND_US;

/// Greatest number of days of a duration: longer ones are errors of a file.
const DAYS_MAX: i64 = 100_000;

/// Greatest energy of a job (J).
const ENERGY_MAX_J: f64 = 1e15;

/// Values that stand for "no value" in 32 and 64 bits (NO_VAL and INFINITE of Slurm).
const NO_ENERGY: [&str; 4] = ["4294967294", "4294967295", "18446744073709551614", "18446744073709551615"];

/// A duration such as `1-02:03:04`, `02:03:04`, `03:04` or `03:04.500` (µs).
pub(in crate::joblogs::formats) fn duration(text: &str) -> Option<i64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (whole(days)?, rest),
        None => (0, text),
    };
    let (clock, fraction) = rest.split_once('.').map_or((rest, None), |(clock, digits)| (clock, Some(digits)));
    let parts: Vec<i64> = clock.split(':').map(whole).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match parts[..] {
        [hours, minutes, seconds] => (hours, minutes, seconds),
        [minutes, seconds] if days == 0 => (0, minutes, seconds),
        _ => return None,
    };
    let micros = match fraction {
        None => 0,
        Some(digits) if (1..=6).contains(&digits.len()) => whole(digits)? * 10_i64.pow(6 - digits.len() as u32),
        Some(_) => return None,
    };
    let is_sane = days <= DAYS_MAX && hours <= DAYS_MAX * 24 && minutes < 60 && seconds < 60;
    is_sane.then(|| (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND_US + micros)
}

/// Seconds of `ElapsedRaw` (µs).
pub(super) fn seconds(text: &str) -> Option<i64> {
    whole(text).filter(|seconds| *seconds <= DAYS_MAX * 86_400).map(|seconds| seconds * SECOND_US)
}

/// Minutes of `TimelimitRaw` (µs).
pub(super) fn minutes(text: &str) -> Option<i64> {
    whole(text).filter(|minutes| *minutes <= DAYS_MAX * 1440).map(|minutes| minutes * 60 * SECOND_US)
}

/// A count of processors or nodes.
pub(super) fn count(text: &str) -> Result<u32, &'static str> {
    entry::count(text).ok_or(match text.ends_with(['K', 'M', 'G']) {
        true => "is rounded: call sacct with --noconvert",
        false => "is no count from 0 to 2^30",
    })
}

/// The parts of a list such as `billing=12,cpu=12,gres/gpu=2,mem=31000M,node=1` that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tres {
    pub(super) cpus: Option<u32>,
    pub(super) nodes: Option<u32>,
    pub(super) gpus: Option<u32>,
    /// Memory of the whole job.
    pub(super) memory_kib: Option<u64>,
}

impl Tres {
    /// Reads a list; `None` if the text is none. GPUs are those of `gres/gpu`, else the sum over types (`gres/gpu:a100`).
    pub(super) fn parse(text: &str) -> Option<Tres> {
        let mut tres = Tres::default();
        let mut typed: Option<u32> = None;
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let (name, value) = item.split_once('=')?;
            let read = || count(value).ok();
            match name {
                "cpu" => tres.cpus = Some(read()?),
                "node" => tres.nodes = Some(read()?),
                "mem" => tres.memory_kib = memory_kib(value)?,
                "gres/gpu" => tres.gpus = Some(read()?),
                _ if name.starts_with("gres/gpu:") => typed = Some(typed.unwrap_or(0).checked_add(read()?)?),
                _ => {}
            }
        }
        tres.gpus = tres.gpus.or(typed.filter(|count| *count <= COUNT_MAX));
        Some(tres)
    }
}

/// The memory in a list, such as `31000M` or `62.50G` (KiB).
#[expect(clippy::option_option, reason = "as `entry::memory_kib`")]
fn memory_kib(text: &str) -> Option<Option<u64>> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let factor = match unit {
        "K" => 1.0,
        // Without a unit, Slurm counts MiB.
        "M" | "" => 1024.0,
        "G" => 1024.0 * 1024.0,
        "T" => 1024.0 * 1024.0 * 1024.0,
        "P" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    crate::joblogs::entry::memory_kib(number.parse::<f64>().ok()? * factor)
}

/// The energy of a job (J); the inner `None` where it was not measured. 0 stands for that, too.
#[expect(clippy::option_option, reason = "not a number is another case than no value")]
pub(super) fn energy_j(text: &str) -> Option<Option<f64>> {
    if NO_ENERGY.contains(&text) {
        return Some(None);
    }
    let energy_j: f64 = text.parse().ok()?;
    (0.0..=ENERGY_MAX_J).contains(&energy_j).then(|| Some(energy_j).filter(|energy_j| *energy_j > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let seconds = |text: &str| duration(text).map(|us| us as f64 / 1e6);
        for (text, wanted) in [
            ("00:00:00", 0.0),
            ("22:32:22", 81_142.0),
            ("10-13:27:06", 912_426.0),
            ("03:04", 184.0),
            ("00:15.057", 15.057),
            ("100:00:00", 360_000.0),
        ] {
            assert_eq!(seconds(text), Some(wanted), "{text}");
        }
        for text in
            ["", "5", "1-00", "1-2:3", "00:60:00", "-1:00", "00:00:00.", "1:2:3:4", "+1:00", "9999999-00:00:00", "٣:00"]
        {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(
            (super::seconds("61"), minutes("2"), super::seconds("-1")),
            (Some(61_000_000), Some(120_000_000), None)
        );
    }

    #[test]
    fn lists_of_resources() {
        let list = "billing=12,cpu=12,gres/gpu=2,gres/gpu:a100=1,mem=31000M,node=1";
        assert_eq!(
            Tres::parse(list),
            Some(Tres { cpus: Some(12), nodes: Some(1), gpus: Some(2), memory_kib: Some(31_744_000) })
        );
        assert_eq!(Tres::parse("gres/gpu:a=1,gres/gpu:b=2"), Some(Tres { gpus: Some(3), ..Tres::default() }));
        assert_eq!(Tres::parse(""), Some(Tres::default()));
        let memory = |text: &str| Tres::parse(text).map(|tres| tres.memory_kib);
        assert_eq!(memory("mem=62.50G,cpu=1"), Some(Some(65_536_000)));
        assert_eq!(
            [memory("mem=0"), memory("mem=1.5K"), memory("mem=2T")],
            [Some(None), Some(Some(2)), Some(Some(1 << 31))]
        );
        // A job of 1,200 nodes, and the same rounded.
        assert_eq!(memory("mem=4704T"), Some(Some(4704 << 30)));
        assert_eq!(memory("mem=4.50P"), Some(Some(4608 << 30)));
        assert_eq!([memory("mem=4X"), memory("mem=-1M"), memory("mem=nanM"), memory("mem=9999999T")], [None; 4]);
        assert_eq!((Tres::parse("cpu"), Tres::parse("cpu=x"), Tres::parse("node=-1")), (None, None, None));
    }

    #[test]
    fn energies_and_counts() {
        assert_eq!(
            (energy_j("54156"), energy_j("0"), energy_j("4294967294")),
            (Some(Some(54_156.0)), Some(None), Some(None))
        );
        assert_eq!((energy_j("-1"), energy_j("nan"), energy_j("1.5K")), (None, None, None));
        assert_eq!((count("0.00K"), count("12")), (Err("is rounded: call sacct with --noconvert"), Ok(12)));
    }
}
