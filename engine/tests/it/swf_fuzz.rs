//! Fuzz tests of the log reader and the rules: mutated logs, and comparison with a second, plain reader.
//!
//! `POWERSWEEP_FUZZ_CASES` is the number of mutated logs (default 20,000; a full run is 1,000,000). A failure prints its
//! seed and the input; `POWERSWEEP_FUZZ_SEED` is the first seed.
use powersweep_engine::workload::swf::{self, Record, SwfError, SwfLog};
use powersweep_engine::workload::{self, WorkloadError};
use powersweep_engine::{Choice, Role, SimSpec, Value, components};
use proptest::prelude::*;

/// A random generator that is independent of the engine's (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform below `n` (1 or more).
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const HEADERS: [&str; 8] = [
    "; Version: 2.2",
    ";MaxProcs: 128",
    ";      MaxNodes: 184  ( 6,  171,   7)",
    ";\tMaxProcs:\t1664 (72, 1368, 224)",
    "; UnixStartTime: 1078605840",
    "; Note: x: y",
    ";",
    "; \u{fc}\u{2260}",
];

/// Values that readers often handle wrongly.
const NASTY: [&str; 28] = [
    "-1",
    "0",
    "-0",
    "-2",
    "1e9",
    "1e308",
    "1e999",
    "nan",
    "inf",
    "-inf",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "9007199254740993",
    "999999999999999",
    "1000000000000000",
    "0.5",
    "-0.5",
    "1.",
    ".5",
    "+3",
    "--1",
    "-",
    "1e",
    "00000000000000000000012",
    "1073741825",
    "\u{661}",
];

/// A log like those of real systems.
fn plausible(dice: &mut Dice) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..dice.below(5) {
        text += dice.pick(&HEADERS);
        text += dice.pick(&["\n", "\r\n"]);
    }
    let (mut id, mut submit) = (dice.below(100), dice.below(4_000_000));
    let blank = dice.pick(&[" ", "\t", "  ", " \t "]);
    for _ in 0..dice.below(12) {
        id += 1 + dice.below(3);
        submit += dice.below(1000);
        let procs = if dice.one_in(4) { -1 } else { dice.below(512) as i64 };
        let requested = if dice.one_in(3) { -1 } else { dice.below(90_000) as i64 };
        let submit_time = if dice.one_in(10) { -1 } else { submit as i64 };
        let run = dice.below(80_000) as i64 - 1;
        let fields = [
            id as i64,
            submit_time,
            -1,
            run,
            procs,
            -1,
            -1,
            procs,
            requested,
            -1,
            dice.below(6) as i64,
            3,
            1,
            -1,
            2,
            -1,
            -1,
            -1,
        ];
        for (i, field) in fields.iter().enumerate() {
            let cpu = i == 5 && dice.one_in(2);
            text += &if cpu { format!("{}.{}", dice.below(9999), dice.below(99)) } else { field.to_string() };
            text += if i < 17 { blank } else { "" };
        }
        text += dice.pick(&["\n", "\n", "\n", "\r\n", " \n", "\n\n", "\n; note\n"]);
    }
    if dice.one_in(3) {
        text.pop();
    }
    text.into_bytes()
}

/// Damages a log in one way.
fn mutate(text: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.below(text.len() + 1);
    let end = (at + dice.below(40)).min(text.len());
    match dice.below(8) {
        0 if at < text.len() => text[at] ^= 1 << dice.below(8),
        1 => text.insert(at, dice.pick(b"0123456789 \t\n\r-+.;:eE\0\xff\x0b/")),
        2 => drop(text.drain(at..end)),
        3 => {
            let copy = text[at..end].to_vec();
            let to = dice.below(text.len() + 1);
            text.splice(to..to, copy);
        }
        4 => text.truncate(at),
        5 => {
            // Replaces a field by a nasty value.
            let blank = |b: &u8| b.is_ascii_whitespace();
            let start = text[..at].iter().rposition(blank).map_or(0, |n| n + 1);
            let stop = text[at..].iter().position(blank).map_or(text.len(), |n| at + n);
            text.splice(start..stop, dice.pick(&NASTY).bytes());
        }
        6 => drop(text.splice(at..at, (0..dice.below(20)).map(|_| dice.next() as u8).collect::<Vec<_>>())),
        _ => text.splice(at..end, dice.pick(&NASTY).bytes()).for_each(drop),
    }
}

/// A plain reader of the format: the records, or the line of the first wrong record.
fn plain(text: &[u8]) -> Result<Vec<[f64; 18]>, u64> {
    let mut records = Vec::new();
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    for (number, line) in text.split(|b| *b == b'\n').enumerate() {
        let wrong = || Err(number as u64 + 1);
        let is_blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | 0x0b | 0x0c);
        let fields: Vec<&[u8]> = line.split(is_blank).filter(|f| !f.is_empty()).collect();
        match fields.first() {
            None => continue,
            Some(first) if first[0] == b';' => continue,
            _ => {}
        }
        let mut record = [0.0; 18];
        if fields.len() != 18 {
            return wrong();
        }
        for (i, field) in fields.iter().enumerate() {
            let digits = field.iter().all(|b| b"0123456789+-.eE".contains(b));
            let value = std::str::from_utf8(field).ok().and_then(|f| f.parse::<f64>().ok()).filter(|_| digits);
            let Some(value) = value.filter(|v| v.abs() <= 9_007_199_254_740_992.0) else { return wrong() };
            let whole = value.fract() == 0.0;
            let fits = match i + 1 {
                1 => whole && value >= 0.0,
                2 | 3 | 4 | 9 => value >= 0.0 || value == -1.0,
                5 | 8 => whole && (-1.0..=1_073_741_824.0).contains(&value),
                11 | 12 | 13 | 15 | 16 => whole && value.abs() <= 2_147_483_647.0,
                _ => true,
            };
            if !fits {
                return wrong();
            }
            record[i] = value;
        }
        records.push(record);
    }
    // A partial execution among records of its job number has no submit time where one of them is of the whole job.
    let is_part = |record: &[f64; 18]| (2.0..=4.0).contains(&record[10]);
    for job in records.chunk_by_mut(|a, b| a[0] == b[0]).filter(|job| job.iter().any(|record| !is_part(record))) {
        job.iter_mut().filter(|record| is_part(record)).for_each(|record| record[1] = -1.0);
    }
    Ok(records)
}

fn same(record: &Record, plain: &[f64; 18]) -> bool {
    let ours = [
        record.id as f64,
        record.submit_s,
        record.wait_s,
        record.run_s,
        f64::from(record.procs_allocated),
        f64::from(record.procs_requested),
        record.requested_s,
        f64::from(record.status),
        f64::from(record.user),
        f64::from(record.group),
        f64::from(record.queue),
        f64::from(record.partition),
    ];
    ours == [1, 2, 3, 4, 5, 8, 9, 11, 12, 13, 15, 16].map(|field: usize| plain[field - 1])
}

/// Checks that the reader's result equals the plain reader's: the same records, or an error on the same line.
fn check(text: &[u8]) -> Option<SwfLog> {
    match (swf::parse(text, "f.swf"), plain(text)) {
        (Ok(log), Ok(wanted)) => {
            assert_eq!(log.records.len(), wanted.len());
            assert!(log.records.iter().zip(&wanted).all(|(a, b)| same(a, b)));
            Some(log)
        }
        (Err(SwfError::OtherKind { .. }), _) => None,
        (Err(SwfError::Line { line, .. }), wanted) => {
            let found = text.split(|b| *b == b'\n').nth(line as usize - 1).expect("a line").to_ascii_lowercase();
            let has = |key: &str| found.windows(key.len()).any(|part| part == key.as_bytes());
            assert!(
                has("unixstarttime") || (has("maxprocs") || has("maxnodes")) && (has(".") || has(",")),
                "line {line}"
            );
            assert!(wanted.err().is_none_or(|wanted| wanted > line));
            None
        }
        (Err(error), Err(wanted)) => {
            let (SwfError::FieldCount { line, .. } | SwfError::Field { line, .. }) = &error else { unreachable!() };
            assert_eq!(*line, wanted, "{error}");
            assert!(error.to_string().starts_with(&format!("f.swf, line {line}")), "{error}");
            assert!(error.to_string().len() < 400, "{error}");
            None
        }
        (ours, wanted) => panic!("read {ours:?}, the plain reader {wanted:?}"),
    }
}

/// Random rules, including contradictory slices.
fn rules(dice: &mut Dice) -> SimSpec {
    let mut spec = SimSpec::new();
    spec.choose(Choice::new(components::find(Role::Source, "swf").expect("is registered")));
    let choice = spec.choice_mut(Role::Rules);
    let mut set = |chance: usize, dice: &mut Dice, name: &str, value: Value| {
        if dice.one_in(chance) {
            choice.set(name, value).expect("is valid");
        }
    };
    let text = |t: &str| Value::Text(t.to_owned());
    set(2, dice, "procs_field", text("allocated"));
    set(3, dice, "missing_procs", text("drop"));
    set(3, dice, "missing_estimate", text("drop"));
    let records = (0..6 * (1 + dice.below(2))).map(|at| (at * dice.below(4)) as f64).collect();
    set(4, dice, "added_records", Value::Reals(records));
    set(3, dice, "estimates", text("exact"));
    set(3, dice, "overrun", text("run-on"));
    set(2, dice, "arrival_ties", text("job_id"));
    for (name, most) in [("record_from", 8), ("record_to", 20), ("job_number_from", 120), ("job_number_to", 200)] {
        let value = if dice.one_in(9) { i64::MAX } else { dice.below(most) as i64 };
        set(6, dice, name, Value::Int(value));
    }
    for name in ["submit_from_s", "submit_to_s", "missing_estimate_s", "min_run_s", "missing_run_s"] {
        let value = dice.below(4_000_000) as f64 / 8.0;
        set(8, dice, name, Value::Real(value));
    }
    let factor = dice.pick(&[0.5, 1e-9, 3.25, 1e9]);
    set(3, dice, "interarrival_factor", Value::Real(factor));
    spec
}

/// Checks the invariants of workloads.
fn check_rules(spec: &SimSpec, log: &SwfLog) {
    match workload::build(spec, Some(log)) {
        Ok(workload) => {
            let counts = workload.counts;
            let dropped = counts.dropped_run_count
                + counts.dropped_submit_count
                + counts.dropped_procs_count
                + counts.dropped_estimate_count;
            assert_eq!(counts.records_count, counts.sliced_out_count + dropped + workload.jobs.len() as u64);
            assert!(!workload.jobs.is_empty());
            for job in &workload.jobs {
                assert!(
                    [job.submit_s, job.run_s, job.estimate_s].iter().all(|v| v.is_finite() && *v >= 0.0),
                    "{job:?}"
                );
                assert!(job.procs >= 1 && (1..=counts.records_count).contains(&job.record), "{job:?}");
                assert!(!job.killed || job.run_s == job.estimate_s, "{job:?}");
            }
            assert!(workload.jobs.is_sorted_by(|a, b| a.submit_s <= b.submit_s));
        }
        Err(WorkloadError::NoJobs { records, why, .. }) => {
            let added = spec.choice(Role::Rules).opt_reals("added_records").map_or(0, |numbers| numbers.len() / 6);
            assert_eq!(records, (log.records.len() + added) as u64);
            assert!(!why.is_empty());
        }
        Err(WorkloadError::EmptySlice { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|v| v.parse().unwrap_or_else(|_| panic!("{variable} must be a number")))
}

#[test]
fn mutated_logs_are_read_as_the_plain_reader_does_and_never_panic() {
    let cases = number_from("POWERSWEEP_FUZZ_CASES").unwrap_or(20_000);
    let first = number_from("POWERSWEEP_FUZZ_SEED").unwrap_or(1);
    let (mut accepted, mut records) = (0u64, 0u64);
    for seed in first..first + cases {
        let mut dice = Dice(seed);
        let mut text = plausible(&mut dice);
        for _ in 0..dice.below(5) {
            mutate(&mut text, &mut dice);
        }
        let outcome = std::panic::catch_unwind(|| {
            let log = check(&text)?;
            check_rules(&rules(&mut Dice(seed ^ 0xabcd)), &log);
            Some(log.records.len() as u64)
        });
        match outcome {
            Ok(read) => {
                accepted += u64::from(read.is_some());
                records += read.unwrap_or(0);
            }
            Err(_) => panic!("seed {seed}: {}", text.escape_ascii()),
        }
    }
    println!("{cases} logs: {accepted} accepted with {records} records, {} refused", cases - accepted);
    assert!(accepted > cases / 5 && accepted < cases / 5 * 4, "both outcomes must be frequent: {accepted} accepted");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes);
    }

    #[test]
    fn any_text_of_the_alphabet_of_logs_is_read_or_refused(text in "[0-9 \t\n\r;:eE+.-]{0,400}") {
        check(text.as_bytes());
    }

    #[test]
    fn written_records_are_read_back_unchanged(
        fields in proptest::collection::vec((0u32..1 << 30, 0.0f64..1e9, -1i32..=1 << 30, any::<bool>()), 0..30),
        blank in "[ \t]{1,3}",
        ending in "\r?\n",
    ) {
        let mut text = String::from("; MaxProcs: 7\n");
        for (id, time, procs, exact) in &fields {
            let time = if *exact { time.trunc() } else { *time };
            let values = [
                id.to_string(), time.to_string(), "-1".into(), time.to_string(), procs.to_string(), "-1".into(), "-1".into(),
                "-1".into(), time.to_string(), "-1".into(), "1".into(), "2".into(), "3".into(), "-1".into(), "4".into(),
                "5".into(), "-1".into(), "-1".into(),
            ];
            text += &values.join(&blank);
            text += &ending;
        }
        let log = swf::parse(text.as_bytes(), "f.swf").expect("is a log");
        prop_assert_eq!(log.header.procs(), Some(7));
        prop_assert_eq!(log.records.len(), fields.len());
        for (record, (id, time, procs, exact)) in log.records.iter().zip(&fields) {
            let time = if *exact { time.trunc() } else { *time };
            prop_assert_eq!((record.id, record.procs_allocated), (i64::from(*id), *procs));
            prop_assert_eq!([record.submit_s, record.run_s, record.requested_s], [time; 3]);
        }
    }
}
