//! Times and sizes of the command line.

use std::time::Duration;

use chrono::{DateTime, Utc};
use powersweep_experiments::limits;

/// A time: `90`, `90s`, `1.5m`, `2h`, `1d`, or as in Slurm: `MM:SS`, `HH:MM:SS`, `D-HH:MM:SS`.
pub fn time(text: &str) -> Result<Duration, String> {
    let expected = || format!("`{text}` is not a time such as 90s, 15m, 2h, 1d or D-HH:MM:SS");
    let seconds = if text.contains(':') { clock(text) } else { with_unit(text) };
    let seconds = seconds.filter(|seconds| (0.0..=limits::DEADLINE_MAX_S).contains(seconds)).ok_or_else(expected)?;
    Ok(Duration::from_secs_f64(seconds))
}

/// A time above 0.
pub fn positive_time(text: &str) -> Result<Duration, String> {
    time(text).and_then(|time| if time.is_zero() { Err("the time must be above 0".to_owned()) } else { Ok(time) })
}

/// An instant in RFC 3339, or a time ago as in [`time`] (µs since 1970 UTC).
pub fn instant_us(text: &str) -> Result<i64, String> {
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Ok(instant.timestamp_micros());
    }
    let ago = time(text)
        .map_err(|_| format!("`{text}` is neither an instant such as 2026-11-25T10:00:00Z nor a time such as 10m"))?;
    let ago_us = i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
    Ok(Utc::now().timestamp_micros().saturating_sub(ago_us))
}

/// A number of bytes: `4096`, `512MiB`, `1.5GB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    limits::bytes(text).map_err(|expected| format!("expected {expected}"))
}

/// A number of bytes that this machine can address.
pub fn memory(text: &str) -> Result<usize, String> {
    usize::try_from(bytes(text)?).map_err(|_| "this machine cannot address that much memory".to_owned())
}

fn digits(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|_| plain)
}

fn with_unit(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 5] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];
    let found = UNITS.iter().find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number, *factor)));
    let (number, factor) = found.unwrap_or((text, 1.0));
    Some(digits(number.trim_end())? * factor)
}

fn clock(text: &str) -> Option<f64> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (digits(days)?, clock),
        None => (0.0, text),
    };
    let fields: Vec<f64> = clock.split(':').map(digits).collect::<Option<_>>()?;
    let seconds = match fields[..] {
        [m, s] => 60.0 * m + s,
        [h, m, s] => 3600.0 * h + 60.0 * m + s,
        _ => return None,
    };
    Some(86_400.0 * days + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_or_colons() {
        let good = [
            ("90", 90.0),
            ("90s", 90.0),
            ("250ms", 0.25),
            ("1.5m", 90.0),
            ("2h", 7200.0),
            ("1d", 86_400.0),
            ("01:30", 90.0),
            ("3:55:00", 14_100.0),
            ("1-00:00:01", 86_401.0),
        ];
        for (text, seconds) in good {
            assert_eq!(time(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "s", "-1", "1w", "1:2:3:4", "a:b", "1e9", "inf", "nan", "99999999999", "1-2"] {
            assert!(time(text).expect_err(text).contains("D-HH:MM:SS"), "{text}");
        }
        assert!(positive_time("0").is_err());
        assert!(positive_time("1").is_ok());
    }
}
