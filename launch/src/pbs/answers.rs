//! Answers of PBS's commands.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDateTime;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Seconds;
use crate::queue::{AnswerError, Entry, Facts, Phase, greeted};

/// A signal that ended a job is its exit status beyond this number.
const SIGNALLED: i64 = 256;
/// A shell reports a signal beyond this number.
const SHELL_SIGNALLED: i64 = 128;
/// The signals of a job that is deleted, is preempted or reaches its time limit: KILL, TERM and XCPU.
const ENDED_BY: [i64; 3] = [9, 15, 24];
/// The exit status of a job that PBS ended at its time limit (JOB_EXEC_KILL_WALLTIME).
const AT_WALLTIME: i64 = -29;

/// The names of jobs in the answer of `qselect`. `banners` and `is_expected`: as in [`crate::slurm::queue`].
///
/// # Errors
/// Allocations are expected, no line is the name of a job, and one is no known greeting.
pub fn selected(answer: &str, banners: &mut BTreeSet<String>, is_expected: bool) -> Result<Vec<String>, AnswerError> {
    let lines = answer.lines().map(str::trim).filter(|line| !line.is_empty());
    let (ids, others): (Vec<&str>, Vec<&str>) = lines.partition(|line| number(line).is_some());
    greeted("qselect", others, !ids.is_empty(), banners, is_expected)?;
    Ok(ids.into_iter().map(str::to_owned).collect())
}

/// The job's number in the answer of `qsub`, which is 4711.SERVER, or 4711[].SERVER for an array. Sites print greetings before
/// it.
///
/// # Errors
/// No line is such a name.
pub fn job_id(answer: &str) -> Result<String, AnswerError> {
    let found = answer.lines().rev().find_map(|line| number(line.trim()));
    found.map(|(job, _)| job.to_owned()).ok_or_else(|| AnswerError::of("qsub", answer.trim()))
}

/// The number of a job and what is in its brackets: nothing for an array as a whole, the index for an element of one.
fn number(id: &str) -> Option<(&str, Option<&str>)> {
    let (name, server) = id.split_once('.')?;
    let (job, index) = match name.split_once('[') {
        Some((job, rest)) => (job, Some(rest.strip_suffix(']')?)),
        None => (name, None),
    };
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_name = !job.is_empty() && is_number(job) && index.is_none_or(is_number);
    (is_name && !server.is_empty() && !server.contains(char::is_whitespace)).then_some((job, index))
}

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "Jobs", default)]
    jobs: BTreeMap<String, Map<String, Value>>,
    #[serde(rename = "Server", default)]
    servers: BTreeMap<String, Map<String, Value>>,
    #[serde(default)]
    pbs_version: Option<String>,
    #[serde(default)]
    pbs_server: Option<String>,
}

/// The JSON document behind a site's greetings.
fn document(answer: &str) -> Result<Answer, AnswerError> {
    let begin = answer.find('{').unwrap_or(0);
    serde_json::from_str(&answer[begin..]).map_err(|_| AnswerError::of("qstat", answer.trim()))
}

/// The jobs and elements of arrays in the answer of `qstat -x -f -t -F json`, with times in UTC.
///
/// # Errors
/// The answer has another form.
pub fn jobs(answer: &str) -> Result<Vec<Entry>, AnswerError> {
    let jobs = document(answer)?.jobs;
    let entry = |(id, job): (&String, &Map<String, Value>)| match number(id) {
        // An array as a whole is no allocation.
        Some((_, Some(""))) => None,
        Some((number, index)) => {
            let name = format!("{number}_{}", index.unwrap_or("1"));
            Some(entry(name, id, job).ok_or_else(|| AnswerError::of("qstat", id)))
        }
        None => Some(Err(AnswerError::of("qstat", id))),
    };
    jobs.iter().filter_map(entry).collect()
}

fn entry(name: String, id: &str, job: &Map<String, Value>) -> Option<Entry> {
    let text = |key: &str| job.get(key).and_then(Value::as_str).unwrap_or_default();
    let time = |key: &str| ctime(text(key));
    let state = text("job_state");
    let exit = job.get("Exit_status").and_then(|exit| exit.as_i64().or_else(|| exit.as_str()?.parse().ok()));
    let phase = phase(state, exit);
    let has_ended = matches!(phase, Some(Phase::Ended | Phase::Failed));
    let walltime = job.get("Resource_List").and_then(|asked| asked.get("walltime")).and_then(Value::as_str);
    let limit = walltime.and_then(|limit| super::time_limit(limit).ok());
    let started_at = time("stime");
    let ends_at = match has_ended {
        true => time("mtime"),
        false => started_at.zip(limit).map(|(start, limit)| start + limit.as_secs()),
    };
    (!state.is_empty()).then(|| Entry {
        name,
        id: id.to_owned(),
        state: word(state, exit),
        phase,
        nodes: hosts(text("exec_host")),
        started_at,
        ends_at,
        reason: if phase == Some(Phase::Queued) { text("comment").to_owned() } else { String::new() },
        cannot_start: None,
    })
}

/// The meaning of a state; `None` for one that this build does not know.
fn phase(state: &str, exit: Option<i64>) -> Option<Phase> {
    Some(match state {
        "Q" | "H" | "W" | "T" => Phase::Queued,
        "R" | "S" | "U" | "E" => Phase::Running,
        // An element that was deleted before its start has no exit status.
        "F" | "X" | "M" => match exit.unwrap_or_default() {
            0 | AT_WALLTIME => Phase::Ended,
            code if ENDED_BY.iter().any(|signal| [SIGNALLED, SHELL_SIGNALLED].contains(&(code - signal))) => {
                Phase::Ended
            }
            _ => Phase::Failed,
        },
        _ => return None,
    })
}

/// A state in words.
fn word(state: &str, exit: Option<i64>) -> String {
    let word = match state {
        "Q" => "queued",
        "H" => "held",
        "W" => "waiting",
        "T" => "in transit",
        "R" => "running",
        "S" | "U" => "suspended",
        "E" => "exiting",
        "F" | "X" => "finished",
        "M" => "moved to another server",
        other => other,
    };
    match exit {
        Some(exit) if exit != 0 => format!("{word}, exit status {exit}"),
        _ => word.to_owned(),
    }
}

/// The hosts in a text such as n1/0*8+n2/0*8.
fn hosts(text: &str) -> String {
    let mut hosts: Vec<&str> = text.split('+').map(|part| part.split(['/', ':']).next().unwrap_or_default()).collect();
    hosts.dedup();
    hosts.join(",")
}

/// A time such as `Wed Sep 26 10:10:10 2018`, in UTC.
fn ctime(text: &str) -> Option<Seconds> {
    let time = NaiveDateTime::parse_from_str(text, "%a %b %e %H:%M:%S %Y").ok()?;
    u64::try_from(time.and_utc().timestamp()).ok()
}

/// The limits of the cluster, from `qstat -B -f -F json`.
pub fn facts(answer: &str) -> Facts {
    let Ok(Answer { servers, pbs_version, pbs_server, .. }) = document(answer) else { return Facts::default() };
    let server = servers.values().next();
    let most = server.and_then(|server| server.get("max_array_size"));
    Facts {
        cluster: pbs_server.or_else(|| servers.keys().next().cloned()),
        version: pbs_version,
        max_array: most.and_then(|most| most.as_u64().or_else(|| most.as_str()?.parse().ok())),
        preempt_mode: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: &str = r#"Welcome to the farm
{
    "timestamp":1664900000, "pbs_version":"20.0.0", "pbs_server":"farm",
    "Jobs":{
        "12[].farm":{ "Job_Name":"powersweep-1", "job_state":"B", "array":"True" },
        "12[1].farm":{ "job_state":"R", "exec_host":"n1/0*8", "stime":"Wed Oct 12 14:48:45 2022",
            "Resource_List":{ "ncpus":8, "walltime":"04:00:00" } },
        "12[2].farm":{ "job_state":"Q", "comment":"Not Running: Insufficient amount of resource: ncpus" },
        "12[3].farm":{ "job_state":"X", "Exit_status":271, "mtime":"Wed Oct 12 15:00:00 2022" },
        "13.farm":{ "job_state":"F", "Exit_status":1, "exec_host":"n1/0*4+n1/1*4+n2/0*8",
            "stime":"Thu Feb 29 00:00:01 2024", "mtime":"Thu Feb 29 00:00:03 2024" },
        "14.farm":{ "job_state":"?" }
    }
}"#;

    #[test]
    fn jobs_and_elements_of_arrays_become_allocations() {
        let entries = jobs(JOBS).expect("sound");
        let shown: Vec<_> =
            entries.iter().map(|e| (e.name.as_str(), e.id.as_str(), e.state.as_str(), e.phase)).collect();
        assert_eq!(
            shown,
            [
                ("12_1", "12[1].farm", "running", Some(Phase::Running)),
                ("12_2", "12[2].farm", "queued", Some(Phase::Queued)),
                ("12_3", "12[3].farm", "finished, exit status 271", Some(Phase::Ended)),
                ("13_1", "13.farm", "finished, exit status 1", Some(Phase::Failed)),
                ("14_1", "14.farm", "?", None),
            ]
        );
        assert_eq!((entries[0].started_at, entries[0].ends_at), (Some(1_665_586_125), Some(1_665_600_525)));
        assert_eq!(entries[1].reason, "Not Running: Insufficient amount of resource: ncpus");
        assert_eq!((entries[3].started_at, entries[3].ends_at), (Some(1_709_164_801), Some(1_709_164_803)));
        assert_eq!(entries[3].nodes, "n1,n2");
        for wrong in [
            "",
            "qstat: cannot connect to server",
            "{\"Jobs\":{\"a\":{}}}",
            "{\"Jobs\":{\"12.farm\":{}}}",
            "{\"Jobs\":",
        ] {
            assert!(jobs(wrong).is_err(), "{wrong}");
        }
        assert_eq!(jobs("{\"timestamp\":1}"), Ok(Vec::new()));
    }

    #[test]
    fn an_end_that_is_no_fault_of_a_worker_is_told_from_a_failure() {
        for exit in [None, Some(0), Some(271), Some(265), Some(143), Some(137), Some(-29)] {
            assert_eq!(phase("F", exit), Some(Phase::Ended), "{exit:?}");
        }
        for exit in [1, 2, 127, 267, -1, -27] {
            assert_eq!(phase("X", Some(exit)), Some(Phase::Failed), "{exit}");
        }
    }

    #[test]
    fn names_of_jobs_are_found_behind_greetings() {
        assert_eq!(job_id("Welcome\n4711[].farm.example.org\n"), Ok("4711".to_owned()));
        assert_eq!(job_id("4711.farm"), Ok("4711".to_owned()));
        assert!(job_id("").is_err() && job_id("qsub: would exceed queue limit").is_err());
        let (mut banners, error) = (BTreeSet::new(), "Connection refused");
        assert!(selected(error, &mut banners, true).is_err());
        assert_eq!(
            selected("Welcome\n12[].farm\n13.farm\n", &mut banners, true).expect("sound"),
            ["12[].farm", "13.farm"]
        );
        assert_eq!(selected("Welcome\n", &mut banners, true), Ok(Vec::new()), "a known greeting");
        assert_eq!(selected(error, &mut banners, false), Ok(Vec::new()));
    }

    #[test]
    fn the_facts_of_a_server_are_read() {
        let answer = r#"{"pbs_version":"22.05.11","pbs_server":"farm","Server":{"farm":{"max_array_size":10000}}}"#;
        let facts = facts(answer);
        assert_eq!((facts.cluster.as_deref(), facts.max_array), (Some("farm"), Some(10_000)));
        assert_eq!(super::facts("no JSON"), Facts::default());
    }
}
