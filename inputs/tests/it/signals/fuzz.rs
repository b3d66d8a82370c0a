//! No input makes a reader panic, and every series that it gives is sound.
//!
//! `POWERSWEEP_CASES` is the number of mutated inputs for each form (default 3,000; a full run is 1,000,000),
//! `POWERSWEEP_FUZZ_SEED` the seed of the first one. A failure prints its seed and the keys of its manifest.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};
use std::time::Instant;

use arrow::array::{ArrayRef, Float64Array, TimestampMillisecondArray};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use powersweep_experiments::signals::Reading;

use crate::signals::forms::{EXPORT, NEW_EXPORT, OLD_EXPORT, UK, WEATHER, opendc, parquet_with};
use crate::signals::{check, reading};

/// A random generator (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform below `n` (1 or more).
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Cells that readers often handle wrongly.
const NASTY: [&str; 36] = [
    "",
    "-1",
    "0",
    "-0",
    "1e9",
    "1e-320",
    "1e308",
    "1e999",
    "nan",
    "-inf",
    "9223372036854775807",
    "-9223372036854775808",
    "9007199254740993",
    "1577836800",
    "1577836800000",
    "9999999999",
    "9999999999999",
    "7258118400",
    "99999999",
    "0.000001",
    "0.5",
    "1,5",
    "+3",
    "\u{661}",
    "null",
    "true",
    "\"",
    "2023-03-26 02:30:00",
    "2023-10-29 02:30:00",
    "2023-10-29T02:30+01:00",
    "1900-01-01",
    "2200-12-31 23:59:59.999999",
    "0001-01-01",
    "2024-02-29T23:59:60Z",
    "-00:00",
    "2023-01-01T00:00:00-18:00",
];

/// Bytes that separate cells of the forms of text.
const SEPARATORS: &[u8] = b",;\t\n\r[]{}:\"";

/// Damages a file in one way.
fn mutate(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.below(bytes.len() + 1);
    let end = (at + dice.below(60)).min(bytes.len());
    match dice.below(11) {
        0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
        1 => bytes.insert(at, *dice.pick(SEPARATORS)),
        2 => drop(bytes.drain(at..end)),
        3 => bytes.truncate(at),
        4 => {
            // A copy of a row, after it or elsewhere.
            let (start, stop) = around(bytes, at, b"\n");
            let row = [&bytes[start..stop], b"\n"].concat();
            let to = if dice.below(2) == 0 { start } else { around(bytes, dice.below(bytes.len() + 1), b"\n").0 };
            drop(bytes.splice(to..to, row));
        }
        5 | 6 => {
            let (start, stop) = around(bytes, at, SEPARATORS);
            drop(bytes.splice(start..stop, dice.pick(&NASTY).bytes()));
        }
        7 | 8 => {
            // One cell in place of another one.
            let (start, stop) = around(bytes, dice.below(bytes.len() + 1), SEPARATORS);
            let cell = bytes[start..stop].to_vec();
            let (start, stop) = around(bytes, at, SEPARATORS);
            drop(bytes.splice(start..stop, cell));
        }
        9 => {
            // A row without its end, or without a cell.
            let (start, stop) = around(bytes, at, b"\n");
            drop(bytes.drain(start + dice.below(stop - start + 1)..stop));
        }
        _ => {
            let noise: Vec<u8> = (0..dice.below(8)).map(|_| dice.next() as u8).collect();
            drop(bytes.splice(at..at, noise));
        }
    }
}

/// The part of a text around a place that has none of these bytes.
fn around(bytes: &[u8], at: usize, separators: &[u8]) -> (usize, usize) {
    let is_end = |byte: &u8| separators.contains(byte);
    let start = bytes[..at].iter().rposition(is_end).map_or(0, |end| end + 1);
    (start, bytes[at..].iter().position(is_end).map_or(bytes.len(), |end| at + end))
}

fn setting(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok().filter(|text| !text.is_empty());
    given.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// A file, and how manifests read it.
type Input = (Vec<u8>, Reading);

/// A file with the rules of a strict manifest and of two that clean files.
fn inputs(bytes: impl AsRef<[u8]>, keys: &str) -> [Input; 3] {
    let rules = [
        "",
        "gaps = 'hold'; duplicates = 'first'; clock_change = 'repair'",
        "gaps = 'interpolate'; duplicates = 'mean'; clock_change = 'repair'",
    ];
    rules.map(|rules| (bytes.as_ref().to_vec(), reading(&format!("{keys}; {rules}"))))
}

/// Hides the messages of panics in the decoder of Parquet, which the reader turns into refusals.
fn hide_panics_of_the_decoder() {
    static HIDDEN: Once = Once::new();
    HIDDEN.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_of = |name: &str| panic.location().is_some_and(|place| place.file().contains(name));
            if !is_of("/parquet-") && !is_of("/arrow-") {
                others(panic);
            }
        }));
    });
}

/// Reads mutants of these files.
fn fuzz(form: &str, inputs: &[Input]) {
    hide_panics_of_the_decoder();
    let (cases, first) = (setting("POWERSWEEP_CASES", 3_000), setting("POWERSWEEP_FUZZ_SEED", 1));
    let (begin, mut read) = (Instant::now(), 0);
    for seed in first..first + cases {
        let mut dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let (bytes, reading) = dice.pick(inputs);
        let mut bytes = bytes.clone();
        (0..=dice.below(6) / 4).for_each(|_| mutate(&mut bytes, &mut dice));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            powersweep_inputs::signals::read(&bytes, "x", reading).map(|s| check(&s))
        }));
        let shown = || format!("{form}, POWERSWEEP_FUZZ_SEED={seed}, {reading:?}:\n{}", bytes.escape_ascii());
        match outcome.unwrap_or_else(|_| panic!("{}", shown())) {
            Ok(()) => read += 1,
            Err(refusal) => assert!(refusal.to_string().starts_with("x: "), "{}", shown()),
        }
    }
    println!("{form}: {cases} mutants, {read} of them were read, {:.1} s", begin.elapsed().as_secs_f64());
    assert!(cases < 1_000 || read * 20 > cases && read * 20 < cases * 19, "mutants are read, and mutants are refused");
}

#[test]
fn electricity_maps() {
    let direct = "quantity = 'carbon'; column = 'direct'";
    let of_text =
        [inputs(EXPORT, "quantity = 'carbon'"), inputs(NEW_EXPORT, direct), inputs(OLD_EXPORT, "quantity = 'carbon'")];
    fuzz("Electricity Maps", of_text.as_flattened());
}

/// A row for each hour of a day.
fn hours(header: &str, row: impl Fn(u32) -> String) -> String {
    let rows: Vec<String> = (0..24).map(row).collect();
    format!("{header}\n{}\n", rows.join("\n"))
}

#[test]
fn csv() {
    let utc = hours("time (UTC),price EUR/MWh", |hour| format!("2023-10-29 {hour:02}:00:00,{}", hour * 3));
    let local =
        hours("time;price [EUR/MWh]", |hour| format!("{}.03.2023 {:02}:00;{hour},25", 25 + hour / 12, hour % 12 * 2));
    let shares = hours("start\tend\tcap [%]", |hour| format!("{}\t{}\t{}", hour * 300, hour * 300 + 300, 100 - hour));
    let weather = hours("timestamp,air (°C)", |hour| format!("{},{}.5", 1_577_836_800 + hour * 3600, hour));
    let of_text = [
        inputs(UK, "quantity = 'carbon'; column = 'intensity.forecast'"),
        inputs(utc, "quantity = 'price'"),
        inputs(local, "quantity = 'price'; timezone = 'Europe/Berlin'"),
        inputs(shares, "quantity = 'cap-share'"),
        inputs(weather, "quantity = 'temperature'"),
    ];
    fuzz("CSV", of_text.as_flattened());
}

#[test]
fn open_meteo() {
    let share = "quantity = 'cap-share'; column = 'cloudcover'";
    let whole = WEATHER.replacen("null", "-3", 1);
    let of_text =
        [inputs(WEATHER, "quantity = 'temperature'"), inputs(&whole, "quantity = 'temperature'"), inputs(whole, share)];
    fuzz("Open-Meteo", of_text.as_flattened());
}

/// A Parquet file with some rows that are out of order, repeated, empty or far away.
fn columns(dice: &mut Dice) -> Vec<u8> {
    let mut time_ms = 1_679_500_800_000;
    let mut times = Vec::new();
    for _ in 0..dice.below(200) {
        time_ms += *dice.pick(&[0, 900_000, 900_000, 900_000, 3_600_000]);
        times.push(match dice.below(20_000) {
            0 => None,
            1 | 2 => Some(*dice.pick(&[i64::MIN, -1, 0, time_ms * 1000, i64::MAX])),
            _ => Some(time_ms),
        });
    }
    let values = times.iter().map(|_| match dice.below(20_000) {
        0..10 => None,
        10 => Some(*dice.pick(&[f64::NAN, f64::INFINITY, -1.0, 1e300, -0.0])),
        _ => Some(dice.below(1_000) as f64),
    });
    let values: ArrayRef = Arc::new(values.collect::<Float64Array>());
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(times));
    let compressions = [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())];
    let properties = WriterProperties::builder()
        .set_compression(*dice.pick(&compressions))
        .set_dictionary_enabled(dice.below(2) == 0)
        .set_max_row_group_row_count(Some(*dice.pick(&[50, 1_000])))
        .build();
    parquet_with(vec![("timestamp", times), ("carbon_intensity", values)], properties)
}

#[test]
fn parquet_of_opendc() {
    let mut dice = Dice(1);
    let mut of_columns = vec![inputs(opendc(), "quantity = 'carbon'")];
    of_columns.extend((0..100).map(|_| inputs(columns(&mut dice), "quantity = 'carbon'")));
    fuzz("Parquet", of_columns.as_flattened());
}
