//! Rules that turn records into jobs: slices, drop rules, fill rules and scaling, with counts.
//!
//! Slices apply first, then the drop rules, then the fill rules. Each record is counted once:
//! `records_count = sliced_out_count + dropped_submit_count + dropped_run_count + dropped_procs_count +
//! dropped_estimate_count + jobs`; `records_count` includes the records of `added_records`. The fill
//! counts (`procs_fallback_count`, `procs_missing_count`, `filled_run_count`, `filled_estimate_count`, `overrun_count`) are
//! over the jobs kept, those included that are too wide for the machine or exceed every cap.
//!
//! - run time: the log's, if it is not negative, else `missing_run_s`. Without `missing_run_s` such a record is dropped.
//! - procs: the field of `procs_field` if it is positive, else the other field, else 1. With `missing_procs = "drop"` a
//!   record without a positive count is dropped.
//! - estimate, `estimates = "user"`: the requested time if it is positive, else `missing_estimate_s`, else the run
//!   time. With `overrun = "kill"` a job that would run longer than its estimate runs for the estimate and is flagged
//!   as killed (Etinski et al. 2010); with `"run-on"` it keeps its run time.
//! - With `missing_estimate = "drop"` a record without a positive requested time is dropped (Gaussier et al. 2015).
//! - estimate, `estimates = "exact"`: the log's run time. No job is killed, no estimate is filled (Lawson & Smirni 2005).
//! - submit: `t0 + (submit - t0) * interarrival_factor`, where `t0` is the least submit time kept. A factor of 1 leaves the
//!   times of the log unchanged, bit by bit.
//! - priority and class: by `priority_from` and `class_from` from the queue, user, group or partition of the log. Otherwise jobs of a
//!   generator keep theirs, and jobs of a log have 1.
//! - `resample_days`: blocks of the jobs are drawn with replacement; the counts are those before it. `submit_jitter_s`
//!   moves submits. Both draw by the seed.
//! - order: by submit time after scaling, ties in the order of the file or by job number.
//!
//! The kernel handles jobs wider than the machine (`wide_jobs`), because machines share workloads.
mod added;
pub(super) mod labels;
mod resample;

use std::borrow::Cow;

use super::swf::{Record, SwfLog};
use super::{Job, RuleCounts, WorkloadError};
use crate::spec::{Choice, Component, Default, Param, Role, Type};
use added::{ADDED_RECORDS, Added};
use labels::Labels;
use resample::Resample;

/// A bound of a slice of job numbers or records.
const fn bound(name: &'static str, doc: &'static str) -> Param {
    Param { name, ty: Type::Int { min: 0, max: i64::MAX }, unit: "", default: Default::Unset, doc }
}

/// Description of the rules.
pub const COMPONENT: Component = Component {
    role: Role::Rules,
    name: "records",
    version: 1,
    source: "Feitelson, Tsafrir & Krakov 2014",
    doc: "How the records of a log or a generator become the jobs that are simulated.",
    params: &[
        Param::one_of(
            "procs_field",
            &["requested", "allocated"],
            "Which processor count of the log is preferred; the other is the fallback, then `missing_procs` applies.",
        ),
        Param::one_of(
            "missing_procs",
            &["one", "drop"],
            "A record without any processor count becomes a job of one proc, or is dropped.",
        ),
        Param {
            name: "min_run_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Real(0.0),
            doc: "Records with a shorter run time are dropped; for those without one (-1), see `missing_run_s`.",
        },
        Param {
            name: "missing_run_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Unset,
            doc: "Run time of a record without one (-1), as cancelled jobs of some logs have; if not given, these records are \
                  dropped.",
        },
        Param::one_of(
            "estimates",
            &["user", "exact"],
            "Estimates that the scheduler uses: the requested times of the log, or the true run times.",
        ),
        Param {
            name: "missing_estimate_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Unset,
            doc: "Estimate of a job without a requested time, or with one of 0; if not given, its run time.",
        },
        Param::one_of(
            "missing_estimate",
            &["fill", "drop"],
            "A record without a requested time above 0 gets the estimate of `missing_estimate_s`, or is dropped.",
        ),
        ADDED_RECORDS,
        Param::one_of("overrun", &["kill", "run-on"], "A job that outlives its estimate is killed at it, or runs on."),
        Param::one_of("wide_jobs", &["error", "clamp", "drop"], "What happens to a job wider than the machine."),
        Param::one_of("arrival_ties", &["file", "job_id"], "Order of jobs with equal submit times."),
        resample::RESAMPLE_DAYS,
        resample::RESAMPLE_BLOCKS,
        resample::SUBMIT_JITTER_S,
        bound("job_number_from", "Slice: first job number (field 1) kept."),
        bound("job_number_to", "Slice: first job number after the slice (half-open)."),
        bound("record_from", "Slice: position (from 0) of the first record kept."),
        bound("record_to", "Slice: position of the first record after the slice (half-open)."),
        Param {
            name: "submit_from_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Unset,
            doc: "Slice: least submit time kept, in the log's own seconds.",
        },
        Param {
            name: "submit_to_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Unset,
            doc: "Slice: first submit time after the slice (half-open).",
        },
        Param {
            name: "interarrival_factor",
            ty: Type::Real { min: 0.0, max: 1e9, min_allowed: false, unlimited: false },
            unit: "",
            default: Default::Real(1.0),
            doc: "Interarrival times are multiplied by this; below 1 raises the load.",
        },
        Param {
            name: "native_procs",
            ty: Type::Int { min: 1, max: 1 << 30 },
            unit: "procs",
            default: Default::Unset,
            doc: "Processors of the machine that the jobs come from, instead of the number in the log's header; the \
                  platform has this size unless its `procs` says otherwise.",
        },
        labels::PRIORITY_FROM,
        labels::PRIORITY_MAP,
        labels::CLASS_FROM,
        labels::CLASS_MAP,
        super::powers::JOB_POWER,
        super::powers::POWER_KNOWLEDGE,
        super::powers::POWER_NOISE_SD,
        super::needs::PARTITION_FROM,
        super::needs::PARTITION_MAP,
        super::needs::GPUS_FROM,
        super::needs::MEMORY_FROM,
    ],
    problems: super::problems,
    ..Component::BATCH
};

/// A record of any source. -1 or 0 means "not known", as in the Standard Workload Format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw {
    pub(super) id: i64,
    pub(super) submit_s: f64,
    pub(super) run_s: f64,
    pub(super) requested_s: f64,
    pub(super) procs_requested: i64,
    pub(super) procs_allocated: i64,
    /// Queue, user, group and partition.
    pub(super) fields: [i32; 4],
    /// Priority and class, unless the rules read them from the fields.
    pub(super) priority: u8,
    pub(super) class: u8,
}

/// A half-open slice `[from, to)`; a missing bound does not limit.
#[derive(Debug, Clone, Copy)]
struct Slice<T> {
    names: [&'static str; 2],
    from: Option<T>,
    to: Option<T>,
}

impl<T: PartialOrd + Copy + std::fmt::Display> Slice<T> {
    /// The slice of two parameters, read by `get`.
    fn new(names: [&'static str; 2], get: impl Fn(&str) -> Option<T>) -> Result<Slice<T>, WorkloadError> {
        match names.map(get) {
            [Some(from), Some(to)] if from >= to => {
                Err(WorkloadError::EmptySlice { names, from: from.to_string(), to: to.to_string() })
            }
            [from, to] => Ok(Slice { names, from, to }),
        }
    }

    /// The bounds that are set, as they are written in a manifest.
    fn bounds(&self) -> impl Iterator<Item = String> {
        let bound = |name: &str, value: Option<T>| value.map(|v| format!("{name} = {v}"));
        [bound(self.names[0], self.from), bound(self.names[1], self.to)].into_iter().flatten()
    }

    fn contains(&self, value: T) -> bool {
        self.from.is_none_or(|from| value >= from) && self.to.is_none_or(|to| value < to)
    }

    fn is_open(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }
}

/// The rules of a choice.
#[derive(Debug, Clone)]
pub struct Rules {
    allocated_first: bool,
    drop_without_procs: bool,
    drop_without_estimate: bool,
    min_run_s: f64,
    missing_run_s: Option<f64>,
    exact: bool,
    missing_estimate_s: Option<f64>,
    kill: bool,
    ties_by_id: bool,
    job_numbers: Slice<i64>,
    positions: Slice<i64>,
    submits: Slice<f64>,
    interarrival_factor: f64,
    priorities: Option<Labels>,
    classes: Option<Labels>,
    resample: Resample,
    added: Vec<Added>,
}

impl Rules {
    /// The rules of a choice for [`Role::Rules`].
    ///
    /// # Errors
    /// Final: a slice whose end is not after its beginning; an invalid map of priorities or classes; added numbers that are
    /// no records.
    pub fn new(choice: &Choice) -> Result<Rules, WorkloadError> {
        Ok(Rules {
            allocated_first: choice.text("procs_field") == "allocated",
            drop_without_procs: choice.text("missing_procs") == "drop",
            drop_without_estimate: choice.text("missing_estimate") == "drop",
            min_run_s: choice.real("min_run_s"),
            missing_run_s: choice.opt_real("missing_run_s"),
            exact: choice.text("estimates") == "exact",
            missing_estimate_s: choice.opt_real("missing_estimate_s"),
            kill: choice.text("overrun") == "kill",
            ties_by_id: choice.text("arrival_ties") == "job_id",
            job_numbers: Slice::new(["job_number_from", "job_number_to"], |name| choice.opt_int(name))?,
            positions: Slice::new(["record_from", "record_to"], |name| choice.opt_int(name))?,
            submits: Slice::new(["submit_from_s", "submit_to_s"], |name| choice.opt_real(name))?,
            interarrival_factor: choice.real("interarrival_factor"),
            priorities: Labels::new(choice, "priority_from", "priority_map").map_err(WorkloadError::Label)?,
            classes: Labels::new(choice, "class_from", "class_map").map_err(WorkloadError::Label)?,
            resample: Resample::of(choice)?,
            added: added::added(choice).map_err(WorkloadError::Added)?,
        })
    }

    /// Whether the rules draw by the seed, so that each seed has another workload.
    pub(super) fn draw(&self) -> bool {
        self.resample.draws()
    }

    /// The log with the records that the rules add after its own.
    pub(super) fn with_added<'l>(&self, log: &'l SwfLog) -> Cow<'l, SwfLog> {
        if self.added.is_empty() {
            return Cow::Borrowed(log);
        }
        let record = |added: &Added| Record {
            id: added.id,
            submit_s: added.submit_s,
            run_s: added.run_s,
            requested_s: added.requested_s,
            procs_allocated: added.procs,
            procs_requested: added.procs,
            user: added.user,
            ..Record::UNKNOWN
        };
        let mut log = log.clone();
        log.records.extend(self.added.iter().map(record));
        Cow::Owned(log)
    }

    /// Turns records into jobs, in order of arrival. The last of the records are those that the rules add.
    pub(super) fn apply(
        &self,
        records: impl ExactSizeIterator<Item = Raw>,
        (seed, max_bytes): (u64, u64),
    ) -> Result<(Vec<Job>, RuleCounts), WorkloadError> {
        let mut counts = RuleCounts {
            records_count: records.len() as u64,
            added_records_count: self.added.len() as u64,
            ..RuleCounts::default()
        };
        let mut jobs = Vec::with_capacity(self.kept_at_most(records.len()));
        for (position, raw) in records.enumerate() {
            let run_s = self.run_s(&raw);
            if !self.in_slice(position as i64, &raw) {
                counts.sliced_out_count += 1;
            } else if raw.submit_s < 0.0 {
                counts.dropped_submit_count += 1;
            } else if run_s < 0.0 || run_s < self.min_run_s {
                counts.dropped_run_count += 1;
            } else if self.drop_without_procs && raw.procs_requested.max(raw.procs_allocated) <= 0 {
                counts.dropped_procs_count += 1;
            } else if self.drop_without_estimate && raw.requested_s <= 0.0 {
                counts.dropped_estimate_count += 1;
            } else {
                jobs.push(self.job(position as u64 + 1, &raw, &mut counts));
            }
        }
        if !jobs.is_empty() {
            counts.whole_blocks_count = self.resample.apply(&mut jobs, seed, max_bytes)?;
        }
        self.scale(&mut jobs);
        self.sort(&mut jobs);
        Ok((jobs, counts))
    }

    /// Upper bound of the number of jobs inside the slices, so that a slice of a long log takes little memory.
    fn kept_at_most(&self, records: usize) -> usize {
        let bound =
            |b: Option<i64>, open: usize| b.map_or(open, |b| usize::try_from(b).unwrap_or(usize::MAX).min(records));
        let by_position = bound(self.positions.to, records).saturating_sub(bound(self.positions.from, 0));
        // Job numbers are unique in most logs, so that a slice of n numbers has at most n jobs; otherwise the vector grows.
        let by_number = match (self.job_numbers.from, self.job_numbers.to) {
            (Some(from), Some(to)) => bound(Some(to.saturating_sub(from)), records),
            _ => records,
        };
        by_position.min(by_number)
    }

    fn in_slice(&self, position: i64, raw: &Raw) -> bool {
        // A record without a submit time is outside of every submit slice that has a bound.
        self.positions.contains(position)
            && self.job_numbers.contains(raw.id)
            && (self.submits.is_open() || (raw.submit_s >= 0.0 && self.submits.contains(raw.submit_s)))
    }

    /// Run time of a record (s); negative if neither the record nor the rules have one.
    fn run_s(&self, raw: &Raw) -> f64 {
        if raw.run_s < 0.0 { self.missing_run_s.unwrap_or(raw.run_s) } else { raw.run_s }
    }

    /// The job of a record that is kept.
    fn job(&self, record: u64, raw: &Raw, counts: &mut RuleCounts) -> Job {
        let (first, second) = if self.allocated_first {
            (raw.procs_allocated, raw.procs_requested)
        } else {
            (raw.procs_requested, raw.procs_allocated)
        };
        let procs = if first > 0 {
            first
        } else if second > 0 {
            counts.procs_fallback_count += 1;
            second
        } else {
            counts.procs_missing_count += 1;
            1
        };
        let run_s = self.run_s(raw);
        counts.filled_run_count += u64::from(raw.run_s < 0.0);
        let estimate_s = if self.exact {
            run_s
        } else if raw.requested_s > 0.0 {
            raw.requested_s
        } else {
            counts.filled_estimate_count += 1;
            self.missing_estimate_s.unwrap_or(run_s)
        };
        let overrun = run_s > estimate_s;
        counts.overrun_count += u64::from(overrun);
        let killed = overrun && self.kill;
        Job {
            id: raw.id,
            submit_s: raw.submit_s,
            run_s: if killed { estimate_s } else { run_s },
            estimate_s,
            procs: u32::try_from(procs).unwrap_or(u32::MAX),
            record,
            killed,
            priority: self.priorities.as_ref().map_or(raw.priority, |labels| labels.of(raw.fields)),
            // Labels count from 1, classes from 0.
            class: self.classes.as_ref().map_or(raw.class, |labels| labels.of(raw.fields) - 1),
        }
    }

    fn scale(&self, jobs: &mut [Job]) {
        if self.interarrival_factor == 1.0 {
            return;
        }
        let first_s = jobs.iter().map(|j| j.submit_s).fold(f64::INFINITY, f64::min);
        for job in jobs {
            job.submit_s = first_s + (job.submit_s - first_s) * self.interarrival_factor;
        }
    }

    fn sort(&self, jobs: &mut [Job]) {
        // The sorts are stable: equal keys keep the order of the file.
        if self.ties_by_id {
            jobs.sort_by(|a, b| a.submit_s.total_cmp(&b.submit_s).then(a.id.cmp(&b.id)));
        } else {
            jobs.sort_by(|a, b| a.submit_s.total_cmp(&b.submit_s));
        }
    }

    /// The number of records that each rule dropped, in words, for the message when no job is left.
    pub(super) fn why_empty(&self, counts: &RuleCounts) -> String {
        let mut why = Vec::new();
        let mut say = |count: u64, reason: String| {
            if count > 0 {
                why.push(format!("{count} {reason}"));
            }
        };
        say(counts.sliced_out_count, format!("outside the slice ({})", self.slices()));
        say(counts.dropped_submit_count, "without a submit time".to_owned());
        say(counts.dropped_run_count, format!("without a run time or with one below min_run_s = {}", self.min_run_s));
        say(counts.dropped_procs_count, "without a processor count".to_owned());
        say(counts.dropped_estimate_count, "without a requested time".to_owned());
        if why.is_empty() { "the source has no record".to_owned() } else { why.join(", ") }
    }

    fn slices(&self) -> String {
        let bounds = self.job_numbers.bounds().chain(self.positions.bounds()).chain(self.submits.bounds());
        bounds.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests;
