//! Reader of Batsim's workloads: a JSON object with jobs and profiles, with the names of Batsim 5 and of earlier versions.
//!
//! A job is a record: `subtime`, `res` and `walltime` are its submit time, requested processors and requested time. `nb_res`
//! is the size of the machine. The run time comes from the profile, where the workload alone tells it:
//!
//! - a delay runs for its `delay`;
//! - a parallel task without communication runs for the floating-point operations of its busiest host, at the speed of the
//!   source's parameter `batsim_speed_gflops`;
//! - a sequence of such profiles runs for their sum, times `repeat`.
//!
//! A job of any other profile (communication, trace replay, data staging, ...) has no run time: it depends on a platform and
//! a network. The rules drop it and count it in `dropped_run_count`; the header has a note with the number of such jobs.
//!
//! Ids that are whole numbers are job numbers. If one id is a name, jobs are numbered from 1 in the order of the file.
//!
//! Invariants: no input makes [`parse`] panic, and every time is finite, not negative and at most 10^18.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::kinds::JSON;
use super::swf::{self, Header, Record, SwfError, SwfLog, Work};
use super::{LOG, LOG_SHA256, LogFormat};
use crate::spec::{Component, Default as ParamDefault, Param, Type};

/// Speed of a processor.
pub const SPEED: Param = Param {
    name: "batsim_speed_gflops",
    ty: Type::Real { min: 0.0, max: 1e9, min_allowed: false, unlimited: false },
    unit: "Gflop/s",
    default: ParamDefault::Real(1.0),
    doc: "Speed of a processor, by which the floating-point operations of parallel tasks are divided; that of the hosts in \
          Batsim's platform file. Delays do not depend on it.",
};

/// The format.
pub static FORMAT: LogFormat = LogFormat {
    component: Component {
        name: "batsim",
        version: 1,
        source: "Dutot et al. 2015, Batsim 5.0 and earlier",
        doc: "A workload of Batsim (JSON), plain, .gz or .zst, by name, path or URL. Jobs whose run time depends on a network \
              are dropped and counted.",
        params: &[LOG, LOG_SHA256, SPEED],
        ..super::LOG_SOURCE
    },
    suffix: "json",
    parse,
    sample: r#"{"nb_res": 8, "jobs": [{"id": 1, "subtime": 0, "res": 4, "walltime": 90, "profile": "d"}],
"profiles": {"d": {"type": "delay", "delay": 60}}}"#,
};

/// Greatest time (s), and greatest number of floating-point operations in units of 10^9. Above 2^53 s, which a workload of
/// Batsim's own tests exceeds, times are even.
const TIME_MAX: f64 = 1e18;
/// Greatest number of processors of a job or a machine.
const PROCS_MAX: i64 = 1 << 30;
/// Operations for which a processor of the default speed needs a second.
const GIGA: f64 = 1e9;

/// A workload; other keys are comments.
#[derive(Deserialize)]
struct File<'a> {
    nb_res: Option<serde_json::Number>,
    #[serde(borrow)]
    jobs: Vec<&'a RawValue>,
    profiles: BTreeMap<String, Profile>,
}

#[derive(Deserialize)]
struct Job {
    id: Id,
    subtime: f64,
    res: serde_json::Number,
    walltime: Option<f64>,
    profile: String,
}

#[derive(Deserialize, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[serde(untagged)]
enum Id {
    Number(i64),
    Name(String),
}

#[derive(Deserialize)]
struct Profile {
    #[serde(rename = "type")]
    kind: String,
    delay: Option<f64>,
    cpu: Option<Amount>,
    com: Option<Amount>,
    seq: Option<Vec<String>>,
    repeat: Option<f64>,
    generation_strategy: Option<String>,
}

/// An amount for each host, or one for all.
#[derive(Deserialize)]
#[serde(untagged)]
enum Amount {
    One(f64),
    Each(Vec<f64>),
}

impl Amount {
    fn greatest(&self) -> f64 {
        match self {
            Amount::One(amount) => *amount,
            Amount::Each(amounts) => amounts.iter().fold(0.0, |most, amount| most.max(*amount)),
        }
    }

    fn is_sane(&self) -> bool {
        let is_sane = |amount: &f64| (0.0..=TIME_MAX * GIGA).contains(amount);
        match self {
            Amount::One(amount) => is_sane(amount),
            Amount::Each(amounts) => amounts.iter().all(is_sane),
        }
    }
}

/// What a profile costs, where that is known without a platform.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Cost {
    delay_s: f64,
    /// Operations of each host.
    flops: f64,
    /// Operations that all hosts of the job share.
    shared_flops: f64,
}

impl Cost {
    fn plus(self, other: Cost, times: f64) -> Cost {
        Cost {
            delay_s: self.delay_s + other.delay_s * times,
            flops: self.flops + other.flops * times,
            shared_flops: self.shared_flops + other.shared_flops * times,
        }
    }

    fn is_sane(self) -> bool {
        [self.delay_s, self.flops / GIGA, self.shared_flops / GIGA].iter().all(|part| (0.0..=TIME_MAX).contains(part))
    }
}

/// Reads a workload. `file` is its name for messages.
pub fn parse(bytes: &[u8], file: &str) -> Result<SwfLog, SwfError> {
    let bytes = swf::plain(bytes, &[JSON], file)?;
    let wrong = |line: usize, what: String| SwfError::Line { file: file.to_owned(), line: line as u64, what };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        wrong(line, "the text is not UTF-8".to_owned())
    })?;
    let parsed: File<'_> = serde_json::from_str(text).map_err(|error| {
        let hint = "expected an object with `nb_res`, `jobs` and `profiles`";
        wrong(error.line(), format!("this is no workload of Batsim ({error}): {hint}"))
    })?;
    let mut costs = Costs { profiles: &parsed.profiles, known: BTreeMap::new() };
    let mut log = SwfLog { file: file.to_owned(), ..SwfLog::default() };
    if let Some(number) = &parsed.nb_res {
        let procs = number.as_i64().filter(|procs| (1..=PROCS_MAX).contains(procs));
        let procs =
            procs.ok_or_else(|| wrong(1, format!("`nb_res` cannot be {number}: expected a number of hosts")))?;
        log.header.fields.push(("MaxProcs".to_owned(), procs.to_string()));
    }
    let (mut line, mut at) = (1, 0);
    let (mut ids, mut unknown) = (Vec::with_capacity(parsed.jobs.len()), BTreeMap::<&str, usize>::new());
    for raw in &parsed.jobs {
        let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
        line += text[at..start].bytes().filter(|byte| *byte == b'\n').count();
        at = start;
        let job: Job = serde_json::from_str(raw.get()).map_err(|error| {
            let expected = "expected `id`, `subtime`, `res`, `profile` and, if there is a limit, `walltime`";
            wrong(line, format!("this is no job ({}): {expected}", without_place(&error)))
        })?;
        let (record, cost) = record(&job, line, &mut costs).map_err(|what| wrong(line, what))?;
        match cost {
            None => *unknown.entry(parsed.profiles[&job.profile].kind.as_str()).or_default() += 1,
            Some(cost) if cost.flops + cost.shared_flops > 0.0 => {
                let flops = cost.flops + cost.shared_flops / f64::from(record.procs_requested);
                log.work.push(Work { record: log.records.len(), fixed_s: cost.delay_s, gflop: flops / GIGA });
            }
            Some(_) => {}
        }
        log.records.push(record);
        ids.push((job.id, line));
    }
    number(&mut log.records, ids).map_err(|(line, what)| wrong(line, what))?;
    note(&mut log.header, &unknown);
    Ok(log)
}

/// The record of a job at the default speed, and the cost of its profile.
fn record(job: &Job, line: usize, costs: &mut Costs<'_>) -> Result<(Record, Option<Cost>), String> {
    let time = |name: &str, seconds: f64| match (0.0..=TIME_MAX).contains(&seconds) {
        true => Ok(seconds),
        false => Err(format!("`{name}` cannot be {seconds}: expected seconds from 0 to 10^18")),
    };
    let procs = job.res.as_i64().filter(|procs| (1..=PROCS_MAX).contains(procs));
    let procs =
        procs.ok_or_else(|| format!("`res` cannot be {}: expected a number of hosts of at least 1", job.res))?;
    let cost = costs.of(&job.profile)?;
    let run_s = cost.map_or(-1.0, |cost| cost.delay_s + (cost.flops + cost.shared_flops / procs as f64) / GIGA);
    let record = Record {
        submit_s: time("subtime", job.subtime)?,
        run_s,
        // -1 stands for no limit.
        requested_s: match job.walltime {
            Some(seconds) if seconds != -1.0 => time("walltime", seconds)?,
            _ => -1.0,
        },
        procs_requested: procs as i32,
        line: u32::try_from(line).unwrap_or(u32::MAX),
        ..Record::UNKNOWN
    };
    Ok((record, cost))
}

/// Sets the job numbers, and refuses an id that occurs twice.
fn number(records: &mut [Record], ids: Vec<(Id, usize)>) -> Result<(), (usize, String)> {
    let whole = |id: &Id| match id {
        Id::Number(number) => Some(*number),
        Id::Name(name) => name.parse().ok(),
    };
    let numbers: Option<Vec<i64>> = ids.iter().map(|(id, _)| whole(id).filter(|number| *number >= 0)).collect();
    let mut seen = BTreeSet::new();
    for (place, (id, line)) in ids.into_iter().enumerate() {
        let shown = match &id {
            Id::Number(number) => number.to_string(),
            Id::Name(name) => format!("\"{}\"", cut(name)),
        };
        let key = numbers.as_ref().map_or(id, |numbers| Id::Number(numbers[place]));
        if !seen.insert(key) {
            return Err((line, format!("another job has the id {shown}, too")));
        }
        records[place].id = numbers.as_ref().map_or(place as i64 + 1, |numbers| numbers[place]);
    }
    Ok(())
}

/// Says in the header how many jobs have no run time.
fn note(header: &mut Header, unknown: &BTreeMap<&str, usize>) {
    let kinds: Vec<String> = unknown.iter().map(|(kind, count)| format!("{} ({count})", cut(kind))).collect();
    if !kinds.is_empty() {
        let count: usize = unknown.values().sum();
        let text =
            format!("{count} jobs have profiles whose run time the workload does not tell: {}", kinds.join(", "));
        header.fields.push(("Note".to_owned(), text));
    }
}

/// The costs of profiles, each computed once.
struct Costs<'a> {
    profiles: &'a BTreeMap<String, Profile>,
    known: BTreeMap<&'a str, Found>,
}

#[derive(Clone, Copy)]
enum Found {
    /// On the way from a sequence to itself.
    Open,
    Known(Option<Cost>),
}

/// Sequences in sequences.
const DEPTH_MAX: usize = 100;

impl<'a> Costs<'a> {
    fn of(&mut self, name: &str) -> Result<Option<Cost>, String> {
        self.within(name, 0)
    }

    fn within(&mut self, name: &str, depth: usize) -> Result<Option<Cost>, String> {
        let Some((name, profile)) = self.profiles.get_key_value(name) else {
            return Err(format!("there is no profile `{}`", cut(name)));
        };
        match self.known.get(name.as_str()) {
            Some(Found::Known(cost)) => return Ok(*cost),
            Some(Found::Open) => return Err(format!("the sequence of profile `{}` contains itself", cut(name))),
            None if depth > DEPTH_MAX => {
                return Err(format!("profile `{}`: more than {DEPTH_MAX} sequences in each other", cut(name)));
            }
            None => {}
        }
        self.known.insert(name, Found::Open);
        let cost = self.cost(name, profile, depth)?;
        if cost.is_some_and(|cost| !cost.is_sane()) {
            return Err(format!("profile `{}` runs longer than 10^18 s", cut(name)));
        }
        self.known.insert(name, Found::Known(cost));
        Ok(cost)
    }

    fn cost(&mut self, name: &str, profile: &'a Profile, depth: usize) -> Result<Option<Cost>, String> {
        let wrong = |what: &str| format!("profile `{}`: {what}", cut(name));
        let has_communication = profile.com.as_ref().is_some_and(|com| com.greatest() > 0.0);
        if [&profile.cpu, &profile.com].into_iter().flatten().any(|amount| !amount.is_sane()) {
            return Err(wrong("`cpu` and `com` are amounts of at least 0"));
        }
        let flops = profile.cpu.as_ref().map_or(0.0, Amount::greatest);
        let is_shared = profile.generation_strategy.as_deref() == Some("DefinedAmountsSpreadUniformly");
        match profile.kind.as_str() {
            "DelayProfile" | "delay" => {
                let delay_s = profile.delay.filter(|delay| (0.0..=TIME_MAX).contains(delay));
                let delay_s = delay_s.ok_or_else(|| wrong("`delay` must be seconds from 0 to 10^18"))?;
                Ok(Some(Cost { delay_s, ..Cost::default() }))
            }
            "ParallelTaskHomogeneousProfile" | "parallel_homogeneous" | "ptask_homogeneous" | "msg_par_hg"
                if !has_communication && !is_shared =>
            {
                Ok(Some(Cost { flops, ..Cost::default() }))
            }
            "ParallelTaskHomogeneousProfile" | "parallel_homogeneous_total" | "msg_par_hg_tot"
                if !has_communication =>
            {
                Ok(Some(Cost { shared_flops: flops, ..Cost::default() }))
            }
            "ParallelTaskProfile" | "parallel" | "ptask" | "msg_par" if !has_communication => {
                Ok(Some(Cost { flops, ..Cost::default() }))
            }
            "SequentialCompositionProfile" | "composed" => {
                let parts = profile.seq.as_ref().ok_or_else(|| wrong("a sequence needs `seq`"))?;
                let times = profile.repeat.unwrap_or(1.0);
                if !(0.0..=TIME_MAX).contains(&times) || times.fract() != 0.0 {
                    return Err(wrong("`repeat` must be a whole number"));
                }
                let mut sum = Some(Cost::default());
                for part in parts {
                    let part = self.within(part, depth + 1)?;
                    sum = sum.zip(part).map(|(sum, part)| sum.plus(part, times));
                }
                Ok(sum)
            }
            _ => Ok(None),
        }
    }
}

/// A name for a message.
fn cut(name: &str) -> String {
    name.chars().take(60).flat_map(char::escape_debug).collect()
}

/// The message of an error of the JSON reader without its line, which counts from the job.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(jobs: &str, profiles: &str) -> Result<SwfLog, SwfError> {
        parse(format!("{{\"nb_res\": 4,\n\"jobs\": [\n{jobs}],\n\"profiles\": {{{profiles}}}}}").as_bytes(), "w.json")
    }

    fn job(profile: &str, more: &str) -> String {
        format!("{{\"id\": 7, \"subtime\": 1.5, \"res\": 4, \"profile\": \"{profile}\"{more}}}")
    }

    fn run_s(profiles: &str) -> f64 {
        read(&job("p", ""), profiles).expect(profiles).records[0].run_s
    }

    #[test]
    fn a_job_is_a_record() {
        let log = read(
            &job("d", ", \"walltime\": 90, \"extra_data\": {}"),
            r#""d": {"type": "DelayProfile", "delay": 20.25}"#,
        );
        let log = log.expect("a workload");
        let expected = Record {
            id: 7,
            submit_s: 1.5,
            run_s: 20.25,
            requested_s: 90.0,
            procs_requested: 4,
            line: 3,
            ..Record::UNKNOWN
        };
        assert_eq!((log.records.as_slice(), log.header.procs()), (&[expected][..], Some(4)));
        assert!(log.work.is_empty());
    }

    #[test]
    fn old_and_new_names_of_profiles_have_the_same_run_time() {
        for (kind, more, seconds) in [
            ("DelayProfile", r#""delay": 10"#, 10.0),
            ("delay", r#""delay": 10"#, 10.0),
            ("ParallelTaskHomogeneousProfile", r#""cpu": 1e10, "com": 0"#, 10.0),
            ("parallel_homogeneous", r#""cpu": 1e10, "com": 0"#, 10.0),
            ("ptask_homogeneous", r#""cpu": 1e10"#, 10.0),
            ("parallel_homogeneous_total", r#""cpu": 1e10"#, 2.5),
            (
                "ParallelTaskHomogeneousProfile",
                r#""cpu": 1e10, "generation_strategy": "DefinedAmountsSpreadUniformly""#,
                2.5,
            ),
            ("ParallelTaskProfile", r#""cpu": [1e9, 3e9, 0, 0], "com": [0, 0, 0, 0]"#, 3.0),
            ("parallel", r#""cpu": [1e9, 3e9, 0, 0]"#, 3.0),
            ("ParallelTaskHomogeneousProfile", r#""cpu": 1e10, "com": 1"#, -1.0),
            ("ParallelTaskProfile", r#""com": [0, 5]"#, -1.0),
            ("TraceReplayProfile", r#""filename": "x""#, -1.0),
        ] {
            assert_eq!(run_s(&format!(r#""p": {{"type": "{kind}", {more}}}"#)), seconds, "{kind} {more}");
        }
    }

    #[test]
    fn sequences_add_up() {
        let parts = r#""a": {"type": "delay", "delay": 10}, "b": {"type": "delay", "delay": 3},
            "ab": {"type": "composed", "repeat": 2, "seq": ["a", "b"]}, "com": {"type": "ptask", "com": [1]}"#;
        let of = |seq: &str, more: &str| run_s(&format!(r#"{parts}, "p": {{"type": "composed", "seq": {seq}{more}}}"#));
        assert_eq!(of(r#"["a", "b", "a"]"#, ""), 23.0);
        assert_eq!(of(r#"["ab", "a"]"#, r#", "repeat": 3"#), 108.0);
        assert_eq!(of("[]", ""), 0.0);
        assert_eq!(of(r#"["a", "com"]"#, ""), -1.0);
    }

    #[test]
    fn jobs_without_a_run_time_are_counted_in_a_note() {
        let jobs = ["t", "t", "d", "c"].iter().enumerate();
        let jobs: Vec<String> =
            jobs.map(|(at, name)| job(name, "").replace("\"id\": 7", &format!("\"id\": \"j{at}\""))).collect();
        let log = read(
            &jobs.join(",\n"),
            r#""t": {"type": "smpi"}, "d": {"type": "delay", "delay": 1}, "c": {"type": "ptask", "com": [1]}"#,
        );
        let log = log.expect("a workload");
        assert_eq!(
            log.records.iter().map(|record| (record.id, record.line)).collect::<Vec<_>>(),
            [(1, 3), (2, 4), (3, 5), (4, 6)]
        );
        let note = "3 jobs have profiles whose run time the workload does not tell: ptask (1), smpi (2)";
        assert_eq!(log.header.get("Note"), Some(note));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let delay = r#""d": {"type": "delay", "delay": 1}"#;
        let twice = format!("{},\n{}", job("d", ""), job("d", "").replace('7', "\"7\""));
        for (jobs, profiles, message) in [
            (job("e", ""), delay, "line 3: there is no profile `e`"),
            (job("d", "").replace("1.5", "-1"), delay, "line 3: `subtime` cannot be -1"),
            (job("d", "").replace("4,", "0,"), delay, "line 3: `res` cannot be 0"),
            (job("d", "").replace("4,", "1.5,"), delay, "line 3: `res` cannot be 1.5"),
            (job("d", ", \"walltime\": -5"), delay, "line 3: `walltime` cannot be -5"),
            (job("d", "").replace("subtime", "submit"), delay, "line 3: this is no job (missing field `subtime`)"),
            (twice, delay, "line 4: another job has the id \"7\", too"),
            (job("d", ""), r#""d": {"type": "delay"}"#, "profile `d`: `delay` must be seconds"),
            (job("d", ""), r#""d": {"type": "composed", "seq": ["d"]}"#, "profile `d` contains itself"),
            (job("d", ""), r#""d": {"type": "composed", "seq": ["f"]}"#, "there is no profile `f`"),
            (job("d", ""), r#""d": {"type": "ptask", "cpu": -1}"#, "amounts of at least 0"),
            (job("d", ""), r#""d": {"delay": 1}"#, "this is no workload of Batsim (missing field `type`"),
            ("{".to_owned(), delay, "this is no workload of Batsim"),
        ] {
            let error = read(&jobs, profiles).expect_err(message).to_string();
            assert!(error.starts_with("w.json, line ") && error.contains(message), "{message}: {error}");
        }
        let deep: Vec<String> =
            (0..200).map(|at| format!(r#""p{at}": {{"type": "composed", "seq": ["p{}"]}}"#, at + 1)).collect();
        let error = read(&job("p0", ""), &deep.join(",")).expect_err("too deep").to_string();
        assert!(error.contains("more than 100 sequences"), "{error}");
        assert!(parse(b"\x1f\x8b....", "w.json").expect_err("compressed").to_string().contains("gzip"));
        assert!(
            parse(b"{\n\"\xff\"}", "w.json")
                .expect_err("not UTF-8")
                .to_string()
                .contains("line 2: the text is not UTF-8")
        );
    }
}
