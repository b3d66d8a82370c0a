//! Accounting logs of PBS Pro, OpenPBS and Torque: `TIME;TYPE;ID;key=value key=value ...`.
//!
//! A record of type `E` ends a job and is an entry. Records of other types (queued, started, deleted, ...) are dropped. Times
//! inside of records are Unix times, so no time zone is needed.

mod places;

use crate::error::{Place, Problem, shortened};
use crate::joblogs::clock::{JobClock, Time};
use crate::joblogs::entry::{Entries, Entry, Outcome, Size, TimeLimit, count, job_number};
use crate::joblogs::formats::lines::Lines;
use crate::joblogs::formats::slurm::duration;
use crate::joblogs::odd_rows::OddRows;
use crate::joblogs::settings::Settings;
use crate::joblogs::{Ledger, Rule};
use crate::table::clock::SECOND_US;

/// Reads the entries of an accounting log.
pub(super) fn read(bytes: &[u8], settings: &Settings, ledger: &mut Ledger) -> Result<Entries, Problem> {
    settings.refuse_columns("records of PBS have no columns")?;
    settings.refuse_time_unit()?;
    let clock = JobClock::new(settings.timezone.as_deref())?;
    let mut lines = Lines::of(bytes);
    let mut list = Vec::new();
    let mut odd = OddRows::default();
    loop {
        let record = match lines.next_text() {
            Ok(None) => break,
            Ok(Some((line, text))) => Record::split(line, text),
            Err(problem) => Err(problem),
        };
        ledger.read += 1;
        let read = record.and_then(|record| {
            if record.kind != "E" {
                ledger.add(Rule::OtherRecord, record.line);
            } else if record.id.contains("[]") {
                ledger.add(Rule::ArrayParent, record.line);
            } else {
                list.push(record.entry(&clock)?);
            }
            Ok(())
        });
        read.or_else(|problem| odd.drop_row(problem, ledger))?;
    }
    odd.finish(ledger)?;
    clock.finish()?;
    Ok(Entries { list, is_calendar: true })
}

/// A record: one line.
struct Record<'a> {
    line: u64,
    kind: &'a str,
    id: &'a str,
    /// Keys and values. A value without blanks is the usual case; a word without `=` belongs to the value before it.
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Record<'a> {
    fn split(line: u64, text: &'a str) -> Result<Record<'a>, Problem> {
        let mut parts = text.splitn(4, ';');
        let (Some(time), Some(kind), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(not_pbs(line, text));
        };
        // MM/DD/YYYY HH:MM:SS.
        let is_time = time.len() >= 16 && time.as_bytes()[2] == b'/' && time.contains(':');
        if !is_time || kind.len() != 1 {
            return Err(not_pbs(line, text));
        }
        let words = parts.next().unwrap_or_default().split_ascii_whitespace();
        Ok(Record { line, kind, id: id.trim(), values: words.filter_map(|word| word.split_once('=')).collect() })
    }

    /// The value of a key; of several, the first.
    fn get(&self, key: &str) -> Option<&'a str> {
        self.values.iter().find(|(known, _)| *known == key).map(|(_, value)| value.trim_matches('"'))
    }

    fn text(&self, key: &str) -> String {
        self.get(key).unwrap_or_default().to_owned()
    }

    fn problem(&self, key: &str, reason: &str) -> Problem {
        Problem::cell(Place::Line(self.line), key, self.get(key).unwrap_or_default(), reason)
    }

    fn entry(&self, clock: &JobClock) -> Result<Entry, Problem> {
        if self.id.is_empty() {
            let reason = "the record has no job id".to_owned();
            return Err(Problem::At { place: Place::Line(self.line), reason });
        }
        let digits = self.id.split('.').next().unwrap_or_default();
        let mut changes = Vec::new();
        let allocated = self.allocated(&mut changes)?;
        let start = self.time(clock, &["start"])?;
        let end = self.time(clock, &["end"])?;
        let elapsed_us = self.elapsed_us(start.zip(end).map(|(start, end)| end.us - start.us), &mut changes)?;
        let outcome = match self.get("Exit_status") {
            _ if start.is_none() => Outcome::NeverStarted,
            Some("0") => Outcome::Completed,
            None | Some(_) => Outcome::Failed,
        };
        Ok(Entry {
            line: self.line,
            id: self.id.to_owned(),
            number: job_number(digits),
            outcome,
            submit: self.time(clock, &["ctime", "qtime"])?,
            eligible: self.time(clock, &["etime"])?,
            start,
            end,
            elapsed_us,
            limit: self.limit()?,
            allocated,
            requested: self.requested()?,
            user: self.text("user"),
            group: self.text("group"),
            queue: self.text("queue"),
            memory_kib: self.memory_kib()?,
            changes,
            ..Entry::default()
        })
    }

    /// The instant of the first of these keys that has one.
    fn time(&self, clock: &JobClock, keys: &[&str]) -> Result<Option<Time>, Problem> {
        for key in keys {
            match self.get(key) {
                None | Some("" | "0") => {}
                Some(text) => return clock.read(text, Place::Line(self.line), key),
            }
        }
        Ok(None)
    }

    /// The time in which the job ran, which is what its limit counts: `resources_used.walltime` stands still while a job is
    /// suspended. 0 is no statement, and it is not longer than from start to end.
    fn elapsed_us(&self, whole_us: Option<i64>, changes: &mut Vec<Rule>) -> Result<Option<i64>, Problem> {
        const KEY: &str = "resources_used.walltime";
        let Some(text) = self.get(KEY).filter(|text| !text.is_empty()) else { return Ok(None) };
        let stated_us = span_us(text).ok_or_else(|| self.problem(KEY, "is no time such as 12:00:00"))?;
        let is_longer = whole_us.is_some_and(|whole_us| stated_us > whole_us && whole_us >= 0);
        if is_longer {
            changes.push(Rule::RunTimeLonger);
        }
        Ok(Some(stated_us).filter(|stated_us| *stated_us > 0 && !is_longer))
    }

    fn limit(&self) -> Result<TimeLimit, Problem> {
        const KEY: &str = "Resource_List.walltime";
        match self.get(KEY) {
            None | Some("") => Ok(TimeLimit::Unknown),
            Some(text) => {
                span_us(text).map(TimeLimit::Us).ok_or_else(|| self.problem(KEY, "is no time such as 12:00:00"))
            }
        }
    }

    fn memory_kib(&self) -> Result<Option<u64>, Problem> {
        const KEY: &str = "Resource_List.mem";
        match self.get(KEY) {
            None | Some("") => Ok(None),
            Some(text) => places::memory_kib(text).ok_or_else(|| self.problem(KEY, "is no memory such as 16gb")),
        }
    }

    /// The size by the places of the job: `exec_vnode`, which states CPUs, else `exec_host`.
    fn allocated(&self, changes: &mut Vec<Rule>) -> Result<Size, Problem> {
        let vnode = self.get("exec_vnode").map(|text| {
            places::vnodes(text).ok_or_else(|| self.problem("exec_vnode", "is no list such as (node1:ncpus=4)"))
        });
        let host = self.get("exec_host").map(|text| {
            places::hosts(text).ok_or_else(|| self.problem("exec_host", "is no list such as node1/0*4+node2/0-3"))
        });
        let (vnode, mut host) = (vnode.transpose()?.unwrap_or_default(), host.transpose()?.unwrap_or_default());
        // Torque states the number of slots. Its versions write `node/COUNT` or the numbers of slots, as PBS does.
        const SLOTS: &str = "total_execution_slots";
        if let Some(text) = self.get(SLOTS).filter(|text| !text.is_empty()) {
            let slots = count(text).ok_or_else(|| self.problem(SLOTS, "is no count from 0 to 2^30"))?;
            let counted = self.get("exec_host").and_then(places::counted_slots);
            if host.cpus.is_some_and(|cpus| cpus != slots) && counted != Some(u64::from(slots)) {
                changes.push(Rule::SizesDiffer);
            }
            host.cpus = Some(slots).filter(|slots| *slots > 0).or(host.cpus);
        }
        if let (Some(vnode), Some(host)) = (vnode.cpus, host.cpus)
            && vnode != host
        {
            changes.push(Rule::SizesDiffer);
        }
        Ok(Size { cpus: vnode.cpus.or(host.cpus), nodes: host.nodes.or(vnode.nodes), gpus: vnode.gpus })
    }

    /// The size by `Resource_List`.
    fn requested(&self) -> Result<Size, Problem> {
        let nodes = self.get("Resource_List.nodes").map(|text| {
            places::requested_nodes(text)
                .ok_or_else(|| self.problem("Resource_List.nodes", "is no list such as 2:ppn=8+1:ppn=4:gpus=1"))
        });
        let nodes = nodes.transpose()?.unwrap_or_default();
        let counted = |key: &'static str| match self.get(key) {
            None | Some("") => Ok(None),
            Some(text) => count(text).map(Some).ok_or_else(|| self.problem(key, "is no count from 0 to 2^30")),
        };
        let gpus = nodes.gpus.or(counted("Resource_List.ngpus")?).or(counted("Resource_List.gpu")?);
        // The list of nodes comes first: beside it, Torque states one CPU by default.
        Ok(Size { cpus: nodes.cpus.or(counted("Resource_List.ncpus")?), nodes: nodes.nodes, gpus })
    }
}

/// A span of time such as `12:00:00`, or seconds (µs).
fn span_us(text: &str) -> Option<i64> {
    duration(text).or_else(|| count(text).map(|seconds| i64::from(seconds) * SECOND_US))
}

fn not_pbs(line: u64, text: &str) -> Problem {
    let text = shortened(text);
    let reason = format!("no record of PBS such as \"01/26/2016 00:00:37;E;2994.pbs;user=...\": {text:?}");
    Problem::At { place: Place::Line(line), reason }
}

#[cfg(test)]
mod tests;
