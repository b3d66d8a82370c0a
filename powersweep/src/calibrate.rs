//! Jobs as they ran against a meter, and the watts of the machine that fit.

use std::collections::BTreeMap;

use powersweep_dataset::calibration::{Beta, Calibration, FrequencyJob, MeterStep, RanJob, Stated, betas, calibrate};
use powersweep_dataset::{Error, failure};
use powersweep_engine::workload::swf::{Record, SwfLog, spans};
use powersweep_inputs::signals::{Base, Series};

/// Jobs with a measured power at one frequency.
#[derive(Debug, Clone, Copy)]
pub struct ByFrequency {
    /// The frequency (GHz).
    pub ghz: f64,
    /// Number of jobs.
    pub jobs: u64,
    /// Time of all their processors (s).
    pub proc_s: f64,
    /// Their energy (J).
    pub energy_j: f64,
}

/// A log that was replayed against a meter.
#[derive(Debug)]
pub struct Replay {
    /// The watts of the machine that fit the meter.
    pub found: Calibration,
    /// Number of jobs.
    pub jobs: u64,
    /// Number of jobs with a measured power.
    pub measured: u64,
    /// Records without a start, a run time or a processor count.
    pub left_out: u64,
    /// Steps of the meter outside of the span of the jobs.
    pub outside: u64,
    /// Processors of the machine.
    pub procs: u32,
    /// Calendar time of the log's second 0 (s since 1970).
    pub unix_start_s: Option<i64>,
    /// Measured powers by frequency, ascending.
    pub frequencies: Vec<ByFrequency>,
    /// Share of run times that scales with the frequency, by queue of the log; the names of queues are in its header.
    pub betas: Vec<(i32, Beta)>,
}

/// Replays a log, with the waits of its own scheduler, against the powers of a meter.
///
/// `procs`: processors of the machine; by default those of the log's header. `names`: of the log and the meter, for
/// messages.
///
/// # Errors
/// Log and meter have too little in common for a fit, or lack what it needs.
pub fn replay(
    log: &SwfLog,
    meter: &Series,
    procs: Option<u32>,
    stated: Stated,
    names: [&str; 2],
) -> Result<Replay, Error> {
    let [log_name, meter_name] = names;
    let ran = jobs(log)?;
    let all = steps(meter, log, meter_name)?;
    let first_s = ran.parts.iter().map(|job| job.start_s).fold(f64::INFINITY, f64::min);
    let last_s = ran.parts.iter().map(|job| job.end_s).fold(f64::NEG_INFINITY, f64::max);
    let within = |step: &&MeterStep| first_s <= step.from_s && step.to_s <= last_s;
    let steps: Vec<MeterStep> = all.iter().filter(within).copied().collect();
    let procs = procs.or(log.header.procs()).ok_or_else(|| {
        failure!(Usage, "{log_name}: its header has no MaxProcs: state the processors of the machine by --procs")
    })?;
    let found = calibrate(&ran.parts, &steps, procs, stated)
        .map_err(|error| failure!(Workload, "{log_name} and {meter_name}: {error}"))?;
    Ok(Replay {
        found,
        jobs: ran.jobs,
        measured: ran.measured,
        left_out: ran.left_out,
        outside: (all.len() - steps.len()) as u64,
        procs,
        unix_start_s: log.header.unix_start_s(),
        frequencies: frequencies(log),
        betas: betas_by_queue(log),
    })
}

/// The jobs as they ran.
struct Ran {
    /// The jobs; one with samples of its power in a part for each sample.
    parts: Vec<RanJob>,
    /// Number of jobs.
    jobs: u64,
    /// Number of jobs with a measured power.
    measured: u64,
    /// Records without a start, a run time or a processor count.
    left_out: u64,
}

/// The jobs of a log as they ran.
fn jobs(log: &SwfLog) -> Result<Ran, Error> {
    let mut powers = log.powers.iter().peekable();
    let mut ran = Ran { parts: Vec::with_capacity(log.records.len()), jobs: 0, measured: 0, left_out: 0 };
    for (at, record) in log.records.iter().enumerate() {
        let mean_w = powers.next_if(|power| power.record == at).map(|power| power.mean_w);
        let is_known = record.submit_s >= 0.0 && record.wait_s >= 0.0 && record.run_s >= 0.0;
        let Some(procs) = procs(record).filter(|_| is_known) else {
            ran.left_out += 1;
            continue;
        };
        (ran.jobs, ran.measured) = (ran.jobs + 1, ran.measured + u64::from(mean_w.is_some()));
        let start_s = record.submit_s + record.wait_s;
        let Some((step_s, range)) = log.power_series.of(at) else {
            let end_s = start_s + record.run_s;
            ran.parts.push(RanJob { start_s, end_s, procs, mean_w });
            continue;
        };
        let watts = &log.power_series.watts()[range];
        ran.parts.extend(spans(step_s, watts, record.run_s).map(|(from_s, to_s, watts)| RanJob {
            start_s: start_s + from_s,
            end_s: start_s + to_s,
            procs,
            mean_w: Some(watts),
        }));
    }
    if ran.parts.is_empty() {
        return Err(failure!(
            Workload,
            "{}: no job has a wait, a run time and processors: when jobs started is not known",
            log.file
        ));
    }
    Ok(ran)
}

/// The measured powers by frequency, ascending, over the jobs whose frequency is known.
fn frequencies(log: &SwfLog) -> Vec<ByFrequency> {
    let mut found: Vec<ByFrequency> = Vec::new();
    for power in &log.powers {
        let (record, Some(ghz)) = (log.records[power.record], power.ghz) else { continue };
        let Some(procs) = procs(&record).filter(|_| record.run_s > 0.0) else { continue };
        let at = found.partition_point(|known| known.ghz < ghz);
        if found.get(at).is_none_or(|known| known.ghz != ghz) {
            found.insert(at, ByFrequency { ghz, jobs: 0, proc_s: 0.0, energy_j: 0.0 });
        }
        found[at].jobs += 1;
        found[at].proc_s += f64::from(procs) * record.run_s;
        found[at].energy_j += power.mean_w * record.run_s;
    }
    found
}

/// The share of run times that scales with the frequency, for each queue of the log. Jobs of one user and group with equal
/// processors and requested times count as similar work.
fn betas_by_queue(log: &SwfLog) -> Vec<(i32, Beta)> {
    let mut groups: BTreeMap<(i32, i32, u32, u64), usize> = BTreeMap::new();
    let mut queues: BTreeMap<i32, Vec<FrequencyJob>> = BTreeMap::new();
    for power in &log.powers {
        let (record, Some(ghz)) = (log.records[power.record], power.ghz) else { continue };
        let Some(procs) = procs(&record).filter(|_| record.run_s > 0.0) else { continue };
        let next = groups.len();
        let group = *groups.entry((record.user, record.group, procs, record.requested_s.to_bits())).or_insert(next);
        queues.entry(record.queue).or_default().push(FrequencyJob { group, ghz, run_s: record.run_s });
    }
    queues.iter().flat_map(|(queue, jobs)| betas(jobs).into_iter().map(|beta| (*queue, beta))).collect()
}

/// Processors of a record: the allocated ones, else the requested ones.
fn procs(record: &Record) -> Option<u32> {
    let stated = [record.procs_allocated, record.procs_requested].into_iter().find(|procs| *procs > 0);
    stated.map(i32::unsigned_abs)
}

/// The steps of a meter on the log's time.
fn steps(series: &Series, log: &SwfLog, meter: &str) -> Result<Vec<MeterStep>, Error> {
    let zero_s = match (series.base, log.header.unix_start_s()) {
        (Base::Offset, _) => 0.0,
        (Base::Calendar, Some(start_s)) => start_s as f64,
        (Base::Calendar, None) => {
            return Err(failure!(
                Workload,
                "{meter} has times of a calendar, and the header of {} has no UnixStartTime: add it, or give the meter seconds of \
                 the log",
                log.file
            ));
        }
    };
    let ends = series.times_s.iter().skip(1).copied().chain([series.end_s]);
    let step = |((&from_s, to_s), &mean_w): ((&f64, f64), &f64)| MeterStep {
        from_s: from_s - zero_s,
        to_s: to_s - zero_s,
        mean_w,
    };
    // The last value of an uneven series has no length.
    Ok(series.times_s.iter().zip(ends).zip(&series.values).map(step).filter(|step| step.from_s < step.to_s).collect())
}
