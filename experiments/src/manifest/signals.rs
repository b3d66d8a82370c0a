//! The section `[signals.NAME]`: series of values over time that the tasks' energy is weighed by.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use powersweep_engine::Value;
use powersweep_engine::spec::{Default, Param, Type};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Digest;
use crate::errors::Problem;
use crate::names::suggestion;
use crate::signals::{
    Beyond, ClockChange, Duplicates, Form, Gaps, Pue, Quantity, Reading, Sample, Signal, SignalPoints, Word,
};
use crate::space::{Column, Digit, Level, Variant};
use crate::url::is_url;

use super::block::{Axis, What, digits, repeated};
use super::design_range::is_reference;
use super::designs::Designs;
use super::facility::{self, Refused};
use super::signal_keys::{KEYS, SIGNALS_MAX, key as signal_key};
use super::signal_points::{self, OfDesign};
use super::top::secret;
use super::values::{Read, kind, named_tables, read};
use super::zip;

/// The signals of a manifest: blocks in the order of their labels, combinations with the last key fastest.
pub(crate) fn read_all(top: &DeTable<'_>, designs: &Designs, problems: &mut Vec<Problem>) -> Vec<Signal> {
    let Some(value) = top.get("signals") else { return Vec::new() };
    let Some(blocks) = value.get_ref().as_table() else {
        let message = "`signals` must be a table of blocks";
        problems.push(Problem::new(value.span(), message, "expected blocks [signals.NAME]"));
        return Vec::new();
    };
    let mut signals = Vec::new();
    for (label, table) in named_tables(blocks, "signals", ("blocks", "block"), problems) {
        let block = Block { label: label.get_ref().as_ref(), span: label.span(), table };
        signals.extend(block.signals(designs, problems));
    }
    if signals.len() as u64 > SIGNALS_MAX {
        let message = format!("the manifest has {} signals", signals.len());
        problems.push(Problem::new(value.span(), message, format!("expected at most {SIGNALS_MAX}")));
    }
    signals
}

struct Block<'a, 'i> {
    label: &'a str,
    span: Range<usize>,
    table: &'a DeTable<'i>,
}

impl Block<'_, '_> {
    fn signals(&self, designs: &Designs, problems: &mut Vec<Problem>) -> Vec<Signal> {
        let before = problems.len();
        let mut axes = self.axes(designs, problems);
        let zips = zip::read(self.table, &mut axes, problems);
        repeated(&axes, problems);
        for key in KEYS.iter().filter(|key| key.default == Default::Required && !self.table.contains_key(key.name)) {
            let message = format!("[signals.{}] needs `{}`", self.label, key.name);
            let expected = format!("expected {}", key.expectation());
            problems.push(Problem::new(self.span.clone(), message, expected).help(key.doc));
        }
        let Some(designed) = signal_points::read(self.label, &axes, designs, problems) else { return Vec::new() };
        if problems.len() > before {
            return Vec::new();
        }
        let columns = axes.into_iter().filter_map(|(name, axis)| match axis.what {
            What::Param(param, values) => {
                Some((name, Column { name: param.name, identity: true, choices: Vec::new(), values }))
            }
            What::Role(_) | What::Designed(..) => None,
        });
        let mut digits = digits(columns.collect(), &zips);
        digits.extend(designed.iter().map(OfDesign::digit));
        let count = digits.iter().try_fold(1_u64, |n, digit| n.checked_mul(digit.len()));
        let Some(count) = count.filter(|count| *count <= SIGNALS_MAX) else {
            let message = format!("[signals.{}] has more than {SIGNALS_MAX} combinations", self.label);
            problems.push(Problem::new(
                self.span.clone(),
                message,
                "expected shorter lists, or designs of fewer points",
            ));
            return Vec::new();
        };
        let signals: Vec<Signal> =
            (0..count).filter_map(|at| self.signal((&digits, &designed), at, problems)).collect();
        problems.dedup_by(|a, b| a.span() == b.span() && a.message() == b.message());
        signals
    }

    fn axes(&self, designs: &Designs, problems: &mut Vec<Problem>) -> BTreeMap<String, Axis> {
        let mut axes = BTreeMap::new();
        for (key, value) in self.table.iter().filter(|(key, _)| key.get_ref() != "zip") {
            let name = key.get_ref().as_ref();
            let Some(param) = signal_key(name) else {
                let message = format!("[signals.{}] has no key `{name}`", self.label);
                let known = KEYS.iter().map(|param| param.name).chain(["zip"]);
                let help = suggestion(name, known.collect::<Vec<_>>());
                problems.push(Problem::new(key.span(), message, "unknown key").help(help));
                continue;
            };
            if let DeValue::Datetime(date) = value.get_ref() {
                let message = format!("`{name}` cannot be {}", kind(value.get_ref()));
                let help = format!("write it in quotes: {name} = \"{date}\"");
                problems
                    .push(Problem::new(value.span(), message, format!("expected {}", param.expectation())).help(help));
                continue;
            }
            if is_reference(value) {
                let what = What::Designed(param, designs.range(value, param.name));
                axes.insert(name.to_owned(), Axis::new(what, key.span(), Vec::new()));
            } else if let Some(Read { values, spans }) = read(param, value, problems) {
                axes.insert(name.to_owned(), Axis::new(What::Param(param, values), key.span(), spans));
            }
        }
        axes
    }

    /// The signal of a combination.
    fn signal(&self, axes: (&[Digit], &[OfDesign]), at: u64, problems: &mut Vec<Problem>) -> Option<Signal> {
        let (values, points) = combination(axes, at);
        let before = problems.len();
        let given = |key: &str| match values.get(key) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let file = given("file")?;
        let sha256 = given("file_sha256").and_then(|sum| match sum.parse() {
            Ok(digest) => Some(digest),
            Err(error) => {
                let message = "`file_sha256` is malformed";
                problems.push(Problem::new(self.place("file_sha256", &sum), message, format!("{error}")));
                None
            }
        });
        problems.extend(secret(&file, self.place("file", &file)));
        if is_url(&file) && !values.contains_key("file_sha256") {
            let help = "add file_sha256 = \"...\", the SHA-256 of the file as downloaded";
            let message = "a URL needs `file_sha256`";
            problems.push(Problem::new(self.place("file", &file), message, "the digest is missing").help(help));
        }
        let anchor_s = given("anchor").and_then(|text| {
            let parsed = calendar_time(&text);
            if parsed.is_none() {
                let message = format!("`anchor` cannot be \"{text}\"");
                let expected = "expected a date or a time in UTC, such as 2023-01-01 or 2023-01-01T06:00:00Z";
                problems.push(Problem::new(self.place("anchor", &text), message, expected));
            }
            parsed
        });
        let reading = Reading {
            quantity: word(given("quantity"))?,
            form: given("form").and_then(|text| Form::of_word(&text)),
            time_column: given("time_column"),
            column: given("column"),
            unit: given("unit"),
            interval_time: word(given("interval_time")),
            zone: given("zone"),
            timezone: given("timezone"),
            gaps: word(given("gaps")).unwrap_or(Gaps::Error),
            duplicates: word(given("duplicates")).unwrap_or(Duplicates::Error),
            clock_change: word(given("clock_change")).unwrap_or(ClockChange::Error),
        };
        let sample = word(given("sample")).unwrap_or(Sample::Mean);
        let facility = match facility::read(&values, reading.quantity, sample) {
            Ok(facility) => facility,
            Err(Refused { key, message, expected }) => {
                let span = self.table.get(key).map_or(self.span.clone(), Spanned::span);
                problems.push(Problem::new(span, message, expected));
                return None;
            }
        };
        (problems.len() == before).then(|| Signal {
            label: self.label.into(),
            index: at,
            file: Arc::from(file),
            sha256,
            reading,
            sample,
            beyond: word(given("beyond")).unwrap_or(Beyond::Error),
            anchor_s,
            facility,
            points,
        })
    }

    /// The place of a value.
    fn place(&self, key: &str, value: &str) -> Range<usize> {
        super::top::find_text(self.table.get(key), value).unwrap_or(self.span.clone())
    }
}

/// The values of a combination, and the points that have those of designs. The last of the digits are those of designs.
fn combination(
    (digits, designed): (&[Digit], &[OfDesign]),
    at: u64,
) -> (BTreeMap<&'static str, Value>, Vec<SignalPoints>) {
    let (mut values, mut points, mut rest) = (BTreeMap::new(), Vec::new(), at);
    let of_designs = designed.iter().rev().map(Some).chain(std::iter::repeat(None));
    for (digit, of_design) in digits.iter().rev().zip(of_designs) {
        let row = rest % digit.len();
        rest /= digit.len();
        points.extend(of_design.map(|design| design.points(row)));
        values.extend(digit.columns.iter().map(|column| (column.name, column.values.get(row))));
    }
    (values, points)
}

fn word<T: Word>(text: Option<String>) -> Option<T> {
    text.and_then(|text| T::of_word(&text))
}

/// A date or time in UTC as seconds since 1970.
fn calendar_time(text: &str) -> Option<i64> {
    if let Ok(date) = text.parse::<NaiveDate>() {
        return Some(date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp());
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp());
    }
    let formats = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    let text = text.strip_suffix('Z').unwrap_or(text);
    let parsed = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    parsed.map(|time| time.and_utc().timestamp())
}

/// Reports parameters that name a signal which is not there, has lists, or has another quantity.
pub(crate) fn check_read(top: &DeTable<'_>, levels: &[Level], signals: &[Signal], problems: &mut Vec<Problem>) {
    let labels: BTreeSet<&str> = signals.iter().map(|signal| &*signal.label).collect();
    let mut seen: BTreeSet<(&str, String)> = BTreeSet::new();
    for (param, label) in levels.iter().flat_map(|level| &level.variants).flat_map(read_by) {
        let Type::Signal { quantities } = param.ty else { continue };
        if !seen.insert((param.name, label.clone())) {
            continue;
        }
        let place = || super::top::find_text(top.get("policies"), &label).unwrap_or(0..0);
        let expected = format!("`{}` expects {}", param.name, param.expectation());
        let of_label: Vec<&Signal> = signals.iter().filter(|signal| *signal.label == *label).collect();
        let problem = match of_label[..] {
            [] => {
                let help = suggestion(&label, labels.iter().copied().collect::<Vec<_>>());
                Problem::new(place(), format!("there is no block [signals.{label}]"), expected).help(help)
            }
            [signal] if quantities.contains(&signal.reading.quantity.word()) => continue,
            [signal] => {
                let message = format!("the quantity of [signals.{label}] is {}", signal.reading.quantity.word());
                Problem::new(place(), message, expected)
            }
            [..] => {
                let help = format!("write a block for each, and list their labels: {} = [...]", param.name);
                let message = format!("[signals.{label}] has {} combinations", of_label.len());
                Problem::new(place(), message, "a policy reads a block without lists").help(help)
            }
        };
        problems.push(problem);
    }
}

/// The parameters of a variant that name signals, with each label.
fn read_by(variant: &Variant) -> Vec<(&'static Param, String)> {
    let mut found = Vec::new();
    let params = variant.choices.iter().flat_map(|choice| choice.component().params);
    for param in params.filter(|param| matches!(param.ty, Type::Signal { .. })) {
        found.extend(variant.texts(param.name).into_iter().map(|label| (param, label)));
    }
    found
}

/// Reports blocks whose PUE follows a signal that is not there, has lists, or is no temperature.
pub(crate) fn check_facilities(top: &DeTable<'_>, signals: &[Signal], problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    for signal in signals {
        let Pue::Curve { signal: label, .. } = &signal.facility.pue else { continue };
        if !seen.insert(label) {
            continue;
        }
        let of_label: Vec<&Signal> = signals.iter().filter(|other| other.label == *label).collect();
        let message = match of_label[..] {
            [one] if one.reading.quantity == Quantity::Temperature => continue,
            [] => format!("there is no block [signals.{label}]"),
            [one] => format!("the quantity of [signals.{label}] is {}", one.reading.quantity.word()),
            [..] => format!("[signals.{label}] has {} combinations", of_label.len()),
        };
        let place = super::top::find_text(top.get("signals"), label).unwrap_or(0..0);
        let expected = "expected the label of a block of temperatures without lists";
        problems.push(Problem::new(place, message, expected));
    }
}

/// Reports files that are given several digests, and files that are also a log.
pub(crate) fn check(top: &DeTable<'_>, signals: &[Signal], logs: &[super::LogRef], problems: &mut Vec<Problem>) {
    let place = |signal: &Signal| {
        let table = top.get("signals").and_then(|value: &Spanned<DeValue<'_>>| value.get_ref().as_table());
        super::top::find_text(table.and_then(|table| table.get(&*signal.label)), &signal.file).unwrap_or(0..0)
    };
    let mut sums: BTreeMap<&str, Option<Digest>> = BTreeMap::new();
    for signal in signals {
        if *sums.entry(&signal.file).or_insert(signal.sha256) != signal.sha256 {
            let message = format!("the file `{}` is given different digests", signal.file);
            problems.push(Problem::new(place(signal), message, "expected one `file_sha256` for each file"));
        }
        if logs.iter().any(|log| *log.log == *signal.file) {
            let message = format!("`{}` is a log and a signal", signal.file);
            problems.push(Problem::new(place(signal), message, "expected another file"));
        }
    }
}
