//! Tests of the readers of signals.

mod cleaning;
mod clocks;
mod data;
mod forms;
mod fuzz;
mod reports;

use powersweep_experiments::Manifest;
use powersweep_experiments::signals::{Reading, Signal};
use powersweep_inputs::ledger::{Effect, Rule as _};
use powersweep_inputs::signals::{Base, Series};

/// The signal `x` of a manifest with these keys, separated by `; `.
fn signal(keys: &str) -> Signal {
    let top =
        "version = 1\nname = \"t\"\n[workloads.w]\nsource = \"lublin\"\n[policies.p]\n[signals.x]\nfile = \"x\"\n";
    let manifest = Manifest::parse("test.toml", &format!("{top}{}", keys.replace("; ", "\n")));
    manifest.unwrap_or_else(|errors| panic!("{keys}: {errors}")).signals()[0].clone()
}

/// How a manifest with these keys reads a file.
fn reading(keys: &str) -> Reading {
    signal(keys).reading
}

/// The series of a file, or the sentence of its refusal.
fn read(bytes: impl AsRef<[u8]>, keys: &str) -> Result<Series, String> {
    let series =
        powersweep_inputs::signals::read(bytes.as_ref(), "x", &reading(keys)).map_err(|error| error.to_string())?;
    check(&series);
    Ok(series)
}

/// What every series holds.
fn check(series: &Series) {
    let Series { times_s, values, end_s, estimated, facts, ledger, .. } = series;
    assert!(!times_s.is_empty());
    assert!(times_s.windows(2).all(|pair| pair[0] < pair[1]), "times increase strictly");
    assert!(times_s.iter().chain(values).chain([end_s]).all(|number| number.is_finite()), "numbers are finite");
    assert_eq!(values.len(), times_s.len());
    assert!(estimated.is_empty() || estimated.len() == times_s.len());
    assert_eq!(facts.step_s.is_some(), *end_s > times_s[times_s.len() - 1], "the last value holds for a regular step");
    assert_eq!(ledger.read, ledger.kept + ledger.total(Effect::Dropped), "{ledger:?}");
    assert_eq!(times_s.len() as u64, ledger.kept + ledger.total(Effect::Added), "{ledger:?}");
    assert!(facts.flagged + facts.estimated_by_source <= ledger.read);
}

/// A time of a series: in UTC, or in seconds from the simulated time 0.
fn time(series: &Series, time_s: f64) -> String {
    match series.base {
        Base::Offset => format!("{time_s}s"),
        Base::Calendar => {
            let time = jiff::Timestamp::from_microsecond((time_s * 1e6).round() as i64).expect("a time of our era");
            let text = time.to_string();
            let text = text.strip_suffix('Z').expect("it is of UTC");
            text.strip_suffix(":00").unwrap_or(text).to_owned()
        }
    }
}

/// Times and values of a series, `~` where they are estimates, and its end.
fn shown(series: &Series) -> String {
    let rows = series.times_s.iter().zip(&series.values).enumerate().map(|(at, (time_s, value))| {
        let sign = if series.estimated.get(at) == Some(&true) { '~' } else { '=' };
        format!("{}{sign}{value}", time(series, *time_s))
    });
    format!("{} until {}", rows.collect::<Vec<_>>().join(" "), time(series, series.end_s))
}

/// The ledger of a series.
fn counts(series: &Series) -> String {
    let rules = series.ledger.rules().map(|(rule, count)| format!(", {} {}", count.rows, rule.name()));
    format!("{} read, {} kept{}", series.ledger.read, series.ledger.kept, rules.collect::<String>())
}

/// Reads a file and shows its series.
#[track_caller]
fn reads(bytes: impl AsRef<[u8]>, keys: &str) -> String {
    shown(&read(bytes, keys).unwrap_or_else(|refusal| panic!("{keys}: {refusal}")))
}

/// Reads a file and shows its series and ledger.
#[track_caller]
fn cleans(bytes: impl AsRef<[u8]>, keys: &str) -> (String, String) {
    let series = read(bytes, keys).unwrap_or_else(|refusal| panic!("{keys}: {refusal}"));
    (shown(&series), counts(&series))
}

/// The sentence with which a file is refused.
#[track_caller]
fn refused(bytes: impl AsRef<[u8]>, keys: &str) -> String {
    match read(bytes, keys) {
        Ok(series) => panic!("{keys}: it is read: {}", shown(&series)),
        Err(refusal) => refusal.strip_prefix("x: ").expect("it begins with the name of the file").to_owned(),
    }
}
