//! The rules that all formats share: from entries to the records of a log.

use std::collections::{BTreeMap, HashMap, HashSet};

use powersweep_engine::workload::swf::{Record, spans};

use powersweep_experiments::signals::Word as _;

use crate::error::Problem;
use crate::joblogs::clock::Time;
use crate::joblogs::entry::{Entries, Entry, Outcome, PowerSamples, Size, TimeLimit};
use crate::joblogs::settings::{Arrival, Procs, Settings};
use crate::joblogs::{Ledger, Rule, shared};
use crate::table::clock::SECOND_US;

/// A job log that has been read.
#[derive(Debug, Clone, PartialEq)]
pub struct JobLog {
    /// Name of the file.
    pub file: String,
    /// How it was read.
    pub settings: Settings,
    /// The rows of the file.
    pub ledger: Ledger,
    /// Facts for the header.
    pub facts: Facts,
    /// The jobs in order of arrival, with times from [`Facts::unix_start_s`] on.
    pub records: Vec<Record>,
    /// For each record, the values that the Standard Workload Format has no field for.
    pub details: Vec<Detail>,
    /// Names of users; user n of a record is the n-th one, from 1.
    pub users: Vec<String>,
    /// Names of groups, likewise.
    pub groups: Vec<String>,
    /// Names of queues or partitions, likewise.
    pub queues: Vec<String>,
}

/// Facts about a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Calendar time of the log's second 0 (s since 1970 UTC): the first arrival. `None` without jobs, and where the file's times
    /// are not those of a calendar.
    pub unix_start_s: Option<i64>,
    /// Maximum number of processors that were allocated at the same time: the machine has at least as many. `None`: the start of
    /// no job is known.
    pub peak_procs: Option<u64>,
    /// Processors of the widest job.
    pub widest_procs: u64,
}

impl Facts {
    /// Refuses a machine that is smaller than what its jobs had.
    pub(crate) fn check_machine(&self, settings: &Settings) -> Result<(), Problem> {
        let (had, when) = self.peak_procs.map_or((self.widest_procs, "in one job"), |peak| (peak, "at once"));
        match settings.machine_procs.filter(|procs| u64::from(*procs) < had) {
            None => Ok(()),
            Some(procs) => {
                let word = settings.procs.word();
                let reason = format!(
                    "the jobs had {had} {word} {when}, and the machine has {procs}: state all of its {word}, or leave it out"
                );
                Err(Problem::setting("machine_procs", reason))
            }
        }
    }
}

/// Values of a job beyond those of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    /// Its id, as the system writes it.
    pub id: String,
    /// Allocated CPUs.
    pub cpus: Option<u32>,
    /// Allocated nodes.
    pub nodes: Option<u32>,
    /// Allocated GPUs.
    pub gpus: Option<u32>,
    /// Measured energy (J).
    pub energy_j: Option<f64>,
    /// Measured mean power of the whole job (W).
    pub power_w: Option<f64>,
    /// Samples of that power.
    pub power_samples: Option<PowerSamples>,
    /// Frequency of its processors (GHz).
    pub ghz: Option<f64>,
}

/// The instants of a job (µs since 1970 UTC).
pub(super) struct Times {
    arrival: i64,
    pub(super) start: Option<i64>,
    pub(super) run: i64,
}

/// A job that is kept.
pub(super) struct Kept {
    pub(super) entry: Entry,
    pub(super) times: Times,
    procs: (u32, Option<u32>),
}

/// Applies the rules.
pub(crate) fn build(entries: Entries, file: &str, settings: &Settings, mut ledger: Ledger) -> JobLog {
    let mut kept = Vec::with_capacity(entries.list.len());
    for mut entry in entries.list {
        match times(&mut entry, settings).and_then(|times| Ok((times, procs(&mut entry, settings.procs)?))) {
            Ok((times, procs)) => kept.push(Kept { entry, times, procs }),
            Err(rule) => ledger.add(rule, entry.line),
        }
    }
    drop_duplicates(&mut kept, &mut ledger);
    shared::share_energy(&mut kept);
    // Stable: jobs that arrive together keep the order of the file.
    kept.sort_by_key(|job| job.times.arrival);
    number(&mut kept);
    let first = kept.first().filter(|_| entries.is_calendar);
    let base_us = first.map_or(0, |job| job.times.arrival.div_euclid(SECOND_US) * SECOND_US);
    let widest_procs = kept.iter().map(|job| u64::from(job.procs.0)).max().unwrap_or(0);
    let has_start = kept.is_empty() || kept.iter().any(|job| job.times.start.is_some());
    let facts = Facts {
        unix_start_s: first.map(|_| base_us / SECOND_US),
        peak_procs: has_start.then(|| peak_procs(&kept).max(widest_procs)),
        widest_procs,
    };
    let (mut users, mut groups, mut queues) = (Names::default(), Names::default(), Names::default());
    let (mut records, mut details) = (Vec::with_capacity(kept.len()), Vec::with_capacity(kept.len()));
    for Kept { mut entry, times, procs } in kept {
        ledger.kept += 1;
        let (power_w, samples) = power_w(&mut entry, seconds(times.run), procs.0).unzip();
        entry.changes.iter().for_each(|rule| ledger.add(*rule, entry.line));
        let queue = queues.number(entry.queue);
        records.push(Record {
            id: entry.number.unwrap_or(0),
            submit_s: seconds(times.arrival - base_us),
            wait_s: times.start.map_or(-1.0, |start| seconds(start - times.arrival)),
            run_s: seconds(times.run),
            memory_requested_kib: entry.memory_kib.map_or(-1, |kib| kib.div_ceil(u64::from(procs.0)).cast_signed()),
            requested_s: match entry.limit {
                TimeLimit::Us(us) => seconds(us),
                TimeLimit::None | TimeLimit::Unknown | TimeLimit::Absent => -1.0,
            },
            procs_allocated: label(u64::from(procs.0)),
            procs_requested: procs.1.map_or(-1, |procs| label(u64::from(procs))),
            user: users.number(entry.user),
            group: groups.number(entry.group),
            queue,
            partition: queue,
            status: entry.outcome.status(),
            line: u32::try_from(entry.line).unwrap_or(u32::MAX),
            ..Record::UNKNOWN
        });
        let Size { cpus, nodes, gpus } = entry.allocated;
        details.push(Detail {
            id: entry.id,
            cpus,
            nodes,
            gpus,
            energy_j: entry.measured.energy_j,
            power_w,
            power_samples: samples.flatten(),
            ghz: entry.measured.ghz,
        });
    }
    JobLog {
        file: file.to_owned(),
        settings: settings.clone(),
        ledger,
        facts,
        records,
        details,
        users: users.list,
        groups: groups.list,
        queues: queues.list,
    }
}

fn seconds(us: i64) -> f64 {
    us as f64 / SECOND_US as f64
}

fn label(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The times of a job that ran, or the rule that drops it.
fn times(entry: &mut Entry, settings: &Settings) -> Result<Times, Rule> {
    match entry.outcome {
        Outcome::NotEnded => return Err(Rule::NotEnded),
        Outcome::Unknown => return Err(Rule::UnknownState),
        Outcome::NeverStarted => return Err(Rule::NeverStarted),
        Outcome::Completed | Outcome::Failed | Outcome::Cancelled => {}
    }
    let has_run = entry.start.is_some() || entry.elapsed_us.is_some();
    if !has_run && entry.end.is_none() && entry.outcome != Outcome::Completed {
        return Err(Rule::NeverStarted);
    }
    let submit = entry.submit.ok_or(Rule::NoSubmit)?;
    if !has_run {
        return Err(Rule::NoRunTime);
    }
    let arrival = match settings.arrival {
        Arrival::Submit => submit,
        Arrival::Eligible => match entry.eligible {
            Some(eligible) if eligible.instants().all(|us| us < submit.us) => {
                entry.changes.push(Rule::EligibleBeforeSubmit);
                submit
            }
            Some(eligible) => eligible,
            None => {
                entry.changes.push(Rule::EligibleUnknown);
                submit
            }
        },
    };
    let (mut arrival_us, start, end) = instants(entry, arrival);
    let run = match (start, end, entry.elapsed_us) {
        (Some(start), Some(end), _) if end < start => return Err(Rule::Contradiction),
        (Some(start), Some(end), Some(elapsed)) if elapsed > end - start => return Err(Rule::Contradiction),
        (Some(start), Some(end), Some(elapsed)) => {
            if elapsed < end - start {
                entry.changes.push(Rule::Suspended);
            }
            elapsed
        }
        (Some(start), Some(end), None) => end - start,
        // sacct prints an elapsed time of 0 where it knows no end.
        (Some(_), None, Some(0)) => return Err(Rule::NotEnded),
        (_, _, Some(elapsed)) => {
            match (start, end) {
                (Some(_), _) => entry.changes.push(Rule::EndFromElapsed),
                (None, Some(end)) if end - elapsed < arrival_us => return Err(Rule::Contradiction),
                (None, Some(_)) => entry.changes.push(Rule::StartFromElapsed),
                (None, None) => {}
            }
            elapsed
        }
        (_, _, None) => return Err(Rule::NotEnded),
    };
    let start = start.or(end.map(|end| end - run));
    if let Some(start) = start.filter(|start| *start < arrival_us) {
        entry.changes.push(Rule::StartBeforeSubmit);
        arrival_us = start;
    }
    match entry.limit {
        TimeLimit::Us(_) | TimeLimit::Absent => {}
        TimeLimit::None => entry.changes.push(Rule::NoLimit),
        TimeLimit::Unknown => entry.changes.push(Rule::LimitUnknown),
    }
    Ok(Times { arrival: arrival_us, start, run })
}

/// The instants of arrival, start and end. Of a local time that the clocks showed twice, the first instant counts that keeps
/// the order of the three and fits the stated wait and elapsed time, else the first one.
fn instants(entry: &mut Entry, arrival: Time) -> (i64, Option<i64>, Option<i64>) {
    let all = [Some(arrival), entry.start, entry.end];
    let is_twice = |time: &Option<Time>| time.is_some_and(|time| time.second_us.is_some());
    if !all.iter().any(is_twice) {
        return (arrival.us, entry.start.map(|time| time.us), entry.end.map(|time| time.us));
    }
    entry.changes.push(Rule::TimeShownTwice);
    let choices = |time: Option<Time>| -> Vec<Option<i64>> {
        time.map_or_else(|| vec![None], |time| time.instants().map(Some).collect())
    };
    let [arrivals, starts, ends] = all.map(choices);
    let (mut most, mut best) = (0, (arrival.us, None, None));
    for arrival in arrivals.into_iter().flatten() {
        for (start, end) in starts.iter().flat_map(|start| ends.iter().map(|end| (*start, *end))) {
            let begin = start.or(end.map(|end| end - entry.elapsed_us.unwrap_or(0)));
            let is_ordered = begin.is_none_or(|begin| arrival <= begin) && start.zip(end).is_none_or(|(a, b)| a <= b);
            let fits = |stated: Option<i64>, since: Option<i64>, until: Option<i64>| {
                let span = since.zip(until).map(|(since, until)| until - since);
                stated.zip(span).is_none_or(|(stated, span)| stated == span)
            };
            let fit = [fits(entry.elapsed_us, start, end), fits(entry.wait_us, Some(arrival), start)];
            let points = 1 + u32::from(is_ordered) + fit.into_iter().map(u32::from).sum::<u32>();
            if points > most {
                (most, best) = (points, (arrival, start, end));
            }
        }
    }
    best
}

/// The allocated and the requested processors, or the rule that drops the job.
fn procs(entry: &mut Entry, procs: Procs) -> Result<(u32, Option<u32>), Rule> {
    let of = |size: Size| match procs {
        Procs::Cpus => size.cpus,
        Procs::Nodes => size.nodes,
        Procs::Gpus => size.gpus,
    };
    let requested = of(entry.requested).filter(|count| *count > 0);
    let allocated = of(entry.allocated).or_else(|| {
        entry.changes.extend(requested.map(|_| Rule::SizeRequested));
        requested
    });
    Ok((allocated.filter(|count| *count > 0).ok_or(Rule::NoProcs)?, requested))
}

/// Greatest plausible power of a node (W).
const NODE_POWER_MAX_W: f64 = 20_000.0;

/// Greatest plausible power of a processor (W) where nodes are not known, be it a core or a GPU.
const PROC_POWER_MAX_W: f64 = 1_000.0;

/// Relative difference of power and energy above which they contradict each other.
const POWER_TOLERANCE: f64 = 0.05;

/// The mean of samples over a run (W).
fn mean_w(PowerSamples { step_s, watts }: &PowerSamples, run_s: f64) -> f64 {
    let energy_j: f64 = spans(*step_s, watts, run_s).map(|(from_s, to_s, watts)| watts * (to_s - from_s)).sum();
    if run_s > 0.0 { energy_j / run_s } else { watts.first().copied().unwrap_or(0.0) }
}

/// The measured mean power of a job (W) and its samples; `None` for a job without a measurement. The mean is the stated power of
/// the job, else the power of a node times the number of nodes, else the energy over the run time.
fn power_w(entry: &mut Entry, run_s: f64, procs: u32) -> Option<(f64, Option<PowerSamples>)> {
    let mut measured = std::mem::take(&mut entry.measured);
    entry.measured.energy_j = measured.energy_j;
    entry.measured.ghz = measured.ghz;
    if !measured.has_column {
        return None;
    }
    // Samples are powers of the job, else of a node.
    let factor = if measured.power_w.is_some() { Some(1.0) } else { entry.allocated.nodes.map(f64::from) };
    if let Some((samples, factor)) = measured.samples.as_mut().zip(factor) {
        // Samples behind the end of the job count nothing.
        let span_s = samples.step_s * samples.watts.len() as f64;
        entry.changes.extend((span_s + samples.step_s < run_s).then_some(Rule::SamplesShort));
        entry.changes.extend((span_s - samples.step_s > run_s).then_some(Rule::SamplesLong));
        samples.watts.truncate(spans(samples.step_s, &samples.watts, run_s).count());
        samples.watts.iter_mut().for_each(|watts| *watts *= factor);
        measured.power_w = Some(mean_w(samples, run_s));
    }
    let of_nodes = measured.node_power_w.zip(entry.allocated.nodes).map(|(watts, nodes)| watts * f64::from(nodes));
    let stated = measured.power_w.or(of_nodes).filter(|watts| *watts > 0.0);
    let by_energy =
        measured.energy_j.filter(|energy_j| *energy_j > 0.0 && run_s > 0.0).map(|energy_j| energy_j / run_s);
    let power_w = match (stated, by_energy) {
        (Some(stated), Some(by_energy)) if (stated - by_energy).abs() > POWER_TOLERANCE * stated.max(by_energy) => {
            entry.changes.push(Rule::PowerAndEnergyDiffer);
            stated
        }
        (Some(stated), _) => stated,
        (None, Some(by_energy)) => {
            entry.changes.push(Rule::PowerFromEnergy);
            by_energy
        }
        (None, None) => {
            entry.changes.push(Rule::NoPower);
            return None;
        }
    };
    let samples = measured.samples.filter(|_| stated.is_some());
    let sampled = samples.iter().flat_map(|samples| &samples.watts).copied();
    let of_nodes_w = entry.allocated.nodes.map(|nodes| NODE_POWER_MAX_W * f64::from(nodes.max(1)));
    if sampled.fold(power_w, f64::max)
        > of_nodes_w.unwrap_or((PROC_POWER_MAX_W * f64::from(procs)).max(NODE_POWER_MAX_W))
    {
        entry.changes.push(Rule::ImplausiblePower);
        return None;
    }
    Some((power_w, samples))
}

/// Drops rows that repeat a job's arrival and start: the row with the latest end counts, the first of equal ones.
fn drop_duplicates(kept: &mut Vec<Kept>, ledger: &mut Ledger) {
    let mut best: HashMap<(&str, i64, Option<i64>), usize> = HashMap::with_capacity(kept.len());
    let mut dropped: HashSet<usize> = HashSet::new();
    for (at, job) in kept.iter().enumerate() {
        let key = (job.entry.id.as_str(), job.times.arrival, job.times.start);
        match best.entry(key) {
            std::collections::hash_map::Entry::Vacant(first) => {
                first.insert(at);
            }
            std::collections::hash_map::Entry::Occupied(mut other) => {
                let is_later = job.times.run > kept[*other.get()].times.run;
                dropped.insert(if is_later { other.insert(at) } else { at });
            }
        }
    }
    let mut at = 0;
    kept.retain(|job| {
        let is_dropped = dropped.contains(&at);
        at += 1;
        if is_dropped {
            ledger.add(Rule::Duplicate, job.entry.line);
        }
        !is_dropped
    });
}

/// Time after the end of a job from which its id is that of another job (µs): systems count ids from 1 again after years, and
/// queue a job again at once.
const ID_AGAIN_US: i64 = 90 * 86_400 * SECOND_US;

/// Gives every job a number of its own: its id if that is a whole number and free, else a number above all ids.
fn number(kept: &mut [Kept]) {
    let mut next = kept.iter().filter_map(|job| job.entry.number).max().map_or(1, |most| most + 1);
    let mut taken: HashSet<i64> = HashSet::with_capacity(kept.len());
    let mut ends: HashMap<String, i64> = HashMap::with_capacity(kept.len());
    for job in kept {
        let entry = &mut job.entry;
        let end = job.times.start.unwrap_or(job.times.arrival) + job.times.run;
        if let Some(end_before) = ends.insert(entry.id.clone(), end) {
            let is_restart = job.times.arrival - end_before < ID_AGAIN_US;
            entry.changes.push(if is_restart { Rule::Restart } else { Rule::IdAgain });
        }
        if entry.number.is_none_or(|number| !taken.insert(number)) {
            entry.changes.push(Rule::Renumbered);
            entry.number = Some(next);
            next += 1;
        }
    }
}

/// Maximum number of processors that were allocated at the same time. A job that ran for less than a second does not count: it
/// had its processors, but not beside those of other jobs of that second.
fn peak_procs(kept: &[Kept]) -> u64 {
    let mut changes: BTreeMap<i64, i64> = BTreeMap::new();
    for job in kept {
        let Some(start) = job.times.start else { continue };
        let procs = i64::from(job.procs.0);
        *changes.entry(start).or_default() += procs;
        *changes.entry(start.saturating_add(job.times.run)).or_default() -= procs;
    }
    let (mut used, mut most) = (0_i64, 0_i64);
    for change in changes.into_values() {
        used += change;
        most = most.max(used);
    }
    most.unsigned_abs()
}

/// Numbers for names, from 1 in the order in which they occur.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    numbers: HashMap<String, i32>,
}

impl Names {
    /// The number of a name; -1 for an empty one.
    fn number(&mut self, name: String) -> i32 {
        if name.is_empty() {
            return -1;
        }
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        self.list.push(name.clone());
        let number = label(self.list.len() as u64);
        self.numbers.insert(name, number);
        number
    }
}
