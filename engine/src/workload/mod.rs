//! Workloads: jobs from a log or a generator, after explicit rules.
//!
//! [`swf::parse`] reads a log, a generator makes [`GeneratedJob`]s; [`build`] applies the same [`rules`] to either and
//! returns the [`Workload`] that the kernel simulates. A workload depends on the source, the rules and (generators only)
//! the seed, but not on machine or policy, so that tasks share it.
pub mod batsim;
mod counts;
mod estimates;
pub mod kinds;
pub mod log_facts;
pub mod lublin;
pub mod needs;
pub mod poisson;
pub mod powers;
pub mod rules;
pub mod swf;
pub mod tracsim;

pub use counts::RuleCounts;
pub use estimates::ESTIMATE_FACTOR_MAX;

use std::sync::Arc;

use crate::spec::{Choice, Component, Default as ParamDefault, Model, Param, Role, SimSpec, Type};

/// The log formats.
pub static FORMATS: &[&LogFormat] = &[
    // A new format is added at the end: file names are searched in this order.
    &swf::FORMAT,
    &batsim::FORMAT,
];

/// A source that reads a log.
#[derive(Debug)]
pub struct LogFormat {
    /// Its description, based on [`LOG_SOURCE`].
    pub component: Component,
    /// The ending of its file names, in lower case, after a dot and before the ending of a compressed file.
    pub suffix: &'static str,
    /// Reads the records of a log's text. `file`: its name for messages. Callers use [`LogFormat::read`].
    pub parse: fn(bytes: &[u8], file: &str) -> Result<swf::SwfLog, swf::SwfError>,
    /// A short log with at least one job that can be simulated, for tests.
    pub sample: &'static str,
}

impl LogFormat {
    /// The format that is chosen; `None` for another source.
    pub fn of(source: &Choice) -> Option<&'static LogFormat> {
        FORMATS.iter().copied().find(|format| format.component == *source.component())
    }

    /// The endings of its file names, in the order in which files are searched.
    pub fn endings(&self) -> [String; 3] {
        [".gz", ".zst", ""].map(|compressed| format!(".{}{compressed}", self.suffix))
    }

    /// Whether a file name has an ending of the format, in upper or lower case.
    pub fn has_ending(&self, file: &str) -> bool {
        let file = file.to_ascii_lowercase();
        self.endings().iter().any(|ending| file.ends_with(ending))
    }

    /// Reads the records of a log's text. `file`: its name for messages. If it has no ending of the format, an error
    /// names the format, too.
    pub fn read(&self, bytes: &[u8], file: &str) -> Result<swf::SwfLog, swf::SwfError> {
        (self.parse)(bytes, file).map_err(|error| match self.has_ending(file) {
            true => error,
            false => swf::SwfError::ReadAs { error: Box::new(error), format: self.component.name },
        })
    }
}

/// The place of a log.
pub const LOG: Param = Param {
    name: "log",
    ty: Type::Locator,
    unit: "",
    default: ParamDefault::Required,
    doc: "Name on the search path (POWERSWEEP_TRACES), path from the manifest's folder, or http(s) URL of the log.",
};
/// The digest of a log.
pub const LOG_SHA256: Param = Param {
    name: "log_sha256",
    ty: Type::Locator,
    unit: "",
    default: ParamDefault::Unset,
    doc: "SHA-256 of the file as downloaded; required for a URL, checked wherever it is given.",
};

/// The reading of a job log of a real system.
pub const LOG_IMPORT: Param = Param {
    name: "log_import",
    ty: Type::Locator,
    unit: "",
    default: ParamDefault::Unset,
    doc: "The file is a job log of a real system: format and options of `powersweep import`, such as \"slurm --timezone \
          Europe/Berlin\". Results belong to the jobs that are read, not to the file or the options.",
};

/// Default fields of the component of a log format, for struct updates. A format with further parameters lists these two
/// first.
pub const LOG_SOURCE: Component = Component { role: Role::Source, params: &[LOG, LOG_SHA256], ..Component::BATCH };

/// The generators. All other sources of batch jobs are logs.
pub static GENERATORS: &[&Generator] = &[
    // A new generator is added at the end: this is the order of columns.
    &lublin::GENERATOR,
    &poisson::GENERATOR,
    &tracsim::GENERATOR,
];

/// A source that makes jobs.
#[derive(Debug)]
pub struct Generator {
    /// Its description.
    pub component: Component,
    /// The parameter with the number of jobs.
    pub jobs_count: &'static str,
    /// The parameter with the size of the machine that the jobs are made for.
    pub machine_procs: &'static str,
    /// Makes the jobs of its parameters and a seed, in order of submit.
    pub generate: fn(&Choice, u64) -> Vec<GeneratedJob>,
}

impl Generator {
    /// The generator that is chosen; `None` for another source.
    fn of(source: &Choice) -> Option<&'static Generator> {
        GENERATORS.iter().copied().find(|generator| generator.component == *source.component())
    }

    fn jobs_count(&self, source: &Choice) -> u64 {
        source.int(self.jobs_count).unsigned_abs()
    }
}

/// One simulated job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Job number of the log (field 1), or the position from 1 in a generated workload.
    pub id: i64,
    /// Submit instant (s), after scaling.
    pub submit_s: f64,
    /// Run time at the top gear (s), after the overrun rule.
    pub run_s: f64,
    /// Estimate that the scheduler sees, at the top gear (s).
    pub estimate_s: f64,
    /// Procs that it requests, before `wide_jobs` is applied.
    pub procs: u32,
    /// Number of its record, from 1, among the data lines.
    pub record: u64,
    /// Whether it is killed at its estimate, because it would have run longer.
    pub killed: bool,
    /// Priority, from 1; 1 is the highest. Only some queue orders and power caps use it.
    pub priority: u8,
    /// Class, from 0: selects the machine's table of run time and power for the job. Manifests and results count classes
    /// from 1.
    pub class: u8,
}

/// Jobs ready to simulate, in order of submit and tie rule, and the counts of the rules.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Workload {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Machine size that the source states; `None` if it states none.
    pub native_procs: Option<u32>,
    /// Calendar time of the clock's second 0, where the log states it (s since 1970 UTC).
    pub unix_start_s: Option<i64>,
    /// Number of records that each rule affected.
    pub counts: RuleCounts,
    /// Wait of each job under the log's own scheduler (s), -1 where the log has none; empty if no record has one.
    pub log_waits_s: Vec<f64>,
    /// What is known of the powers of the jobs' records, in order of the records; empty unless `job_power` uses it.
    pub powers: Vec<powers::PowerOfRecord>,
    /// The samples of these powers, if `job_power` uses them.
    pub power_series: Option<Arc<swf::PowerSeries>>,
    /// Partition, GPUs and memory of the jobs' records, in order of the records; empty unless the rules read them.
    pub needs: Vec<needs::NeedsOfRecord>,
    /// User of each record of the log, -1 where the log has none; empty for a generator.
    pub users: Vec<i32>,
}

/// One job of a generator, before the rules. Its job number is its position, from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeneratedJob {
    /// Submit instant (s), 0 or more.
    pub submit_s: f64,
    /// Run time at the top gear (s), 0 or more.
    pub run_s: f64,
    /// Estimate (s); `None` if the generator makes none: then the rules fill it, and count it as filled.
    pub estimate_s: Option<f64>,
    /// Procs that it requests, 1 or more.
    pub procs: u32,
    /// Priority, from 1 (the highest).
    pub priority: u8,
    /// Class, from 0.
    pub class: u8,
}

/// Why a workload could not be built. All final: the spec or the log has to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A slice does not end after its beginning.
    #[error("the slice is empty: {} = {from} must be less than {} = {to}", .names[0], .names[1])]
    EmptySlice {
        /// The two parameters.
        names: [&'static str; 2],
        /// The lower bound.
        from: String,
        /// The upper bound.
        to: String,
    },
    /// The rules kept no job.
    #[error("{origin}: no job is left of {records} records: {why}")]
    NoJobs {
        /// The log's file or the generator's name.
        origin: String,
        /// Data records read or generated.
        records: u64,
        /// Number of records that each rule dropped, in words.
        why: String,
    },
    /// The spec's source is a log, and the caller gave none.
    #[error("the workload's source is the log `{0}`, which was not loaded")]
    LogMissing(String),
    /// The workload may need more memory than the caller allows.
    #[error("a workload of {jobs} jobs takes up to {needed_bytes} bytes of memory, {max_bytes} are allowed")]
    TooLarge {
        /// Number of jobs.
        jobs: u64,
        /// Upper bound of the memory while the workload is built.
        needed_bytes: u64,
        /// Limit of the caller.
        max_bytes: u64,
    },
    /// The jobs cannot be resampled.
    #[error("{0}")]
    Resample(String),
    /// The rules cannot read priorities or classes from the log.
    #[error("{0}")]
    Label(String),
    /// The added records are none.
    #[error("{0}")]
    Added(String),
    /// The log has no measured powers.
    #[error("{0}")]
    Power(String),
    /// The log does not have what jobs need.
    #[error("{0}")]
    Needs(String),
    /// The generator made a job that cannot be simulated: its parameters are too extreme.
    #[error("generator {generator}: job {position} has {what}: its parameters are out of the range that it can serve")]
    Generated {
        /// The generator.
        generator: &'static str,
        /// Position of the job, from 1.
        position: u64,
        /// The value that is wrong.
        what: String,
    },
}

/// Builds the workload of a spec, like [`build_within`], without a limit of memory.
pub fn build(spec: &SimSpec, log: Option<&swf::SwfLog>) -> Result<Workload, WorkloadError> {
    build_within(spec, log, u64::MAX)
}

/// Builds the workload of a spec: source, then rules. The workload of a source of queues is empty.
///
/// `log`: the parsed log, for a source that is a log; generators draw from `spec.seed`. `max_bytes`: greatest memory of the
/// workload while it is built.
///
/// # Errors
/// All are final; [`WorkloadError::TooLarge`] is final for this limit.
pub fn build_within(spec: &SimSpec, log: Option<&swf::SwfLog>, max_bytes: u64) -> Result<Workload, WorkloadError> {
    let source = spec.choice(Role::Source);
    if source.component().model == Model::Queues {
        // Its jobs are drawn during the run.
        return Ok(Workload::default());
    }
    let rules = rules::Rules::new(spec.choice(Role::Rules))?;
    let name = source.component().name;
    let generator = Generator::of(source);
    let log = log.filter(|_| generator.is_none()).map(|log| rules.with_added(log));
    let log = log.as_deref();
    let (origin, native_procs, (jobs, mut counts)) = if let Some(generator) = generator {
        // Checked before the first job is made, because running out of memory would end the process, not just the task.
        check_size(generator.jobs_count(source), size_of::<GeneratedJob>() + size_of::<Job>(), max_bytes)?;
        let generated = (generator.generate)(source, spec.seed);
        check_generated(name, &generated)?;
        let native = u32::try_from(source.int(generator.machine_procs)).ok();
        (name, native, rules.apply(generated.iter().enumerate().map(|(i, job)| job.raw(i)), (spec.seed, max_bytes))?)
    } else {
        let log = log
            .ok_or_else(|| WorkloadError::LogMissing(source.opt_text("log").unwrap_or("(no log given)").to_owned()))?;
        check_size(log.records.len() as u64, size_of::<Job>(), max_bytes)?;
        let speed_gflops = source.opt_real(batsim::SPEED.name).unwrap_or(1.0);
        let records = log.records_at(speed_gflops);
        (
            log.file.as_str(),
            log.header.procs(),
            rules.apply(records.map(|record| raw_record(&record)), (spec.seed, max_bytes))?,
        )
    };
    if jobs.is_empty() {
        let why = rules.why_empty(&counts);
        return Err(WorkloadError::NoJobs { origin: origin.to_owned(), records: counts.records_count, why });
    }
    let stated = spec.choice(Role::Rules).opt_int("native_procs").and_then(|n| u32::try_from(n).ok());
    let log_waits_s = log.map_or_else(Vec::new, |log| waits(log, &jobs));
    let unix_start_s = log.and_then(|log| log.header.unix_start_s());
    let powers = match log {
        Some(log) => powers::of(spec, log, &jobs)?,
        None => Vec::new(),
    };
    let power_series = log.filter(|_| powers::are_series(spec)).map(|log| Arc::clone(&log.power_series));
    let needs = match log {
        Some(log) => needs::of(spec, log, &jobs, &mut counts)?,
        None => Vec::new(),
    };
    let users = log.map_or_else(Vec::new, |log| log.records.iter().map(|record| record.user).collect());
    let native_procs = stated.or(native_procs);
    Ok(Workload { jobs, native_procs, unix_start_s, counts, log_waits_s, powers, power_series, needs, users })
}

/// The parameter with the number of jobs of a generator; `None` for another choice.
pub fn jobs_param(choice: &Choice) -> Option<&'static str> {
    Generator::of(choice).map(|generator| generator.jobs_count)
}

/// Number of jobs that the source of a spec generates; `None` for logs and sources of queues.
pub fn generated_jobs(spec: &SimSpec) -> Option<u64> {
    let source = spec.choice(Role::Source);
    Generator::of(source).map(|generator| generator.jobs_count(source))
}

/// Whether the workload of a spec differs by the seed: its source is a generator, or its rules draw.
pub fn draws(spec: &SimSpec) -> bool {
    let rules = || rules::Rules::new(spec.choice(Role::Rules)).is_ok_and(|rules| rules.draw());
    Generator::of(spec.choice(Role::Source)).is_some() || rules()
}

/// Machine size that a spec states without its log: that of its rules or its generator.
pub fn stated_procs(spec: &SimSpec) -> Option<u32> {
    let source = spec.choice(Role::Source);
    let of_generator = || Some(source.int(Generator::of(source)?.machine_procs));
    let stated = spec.choice(Role::Rules).opt_int("native_procs").or_else(of_generator);
    stated.and_then(|procs| u32::try_from(procs).ok())
}

/// The waits of jobs under the log's own scheduler (s); see [`Workload::log_waits_s`].
fn waits(log: &swf::SwfLog, jobs: &[Job]) -> Vec<f64> {
    if log.records.iter().all(|record| record.wait_s < 0.0) {
        return Vec::new();
    }
    jobs.iter().map(|job| log.records[job.record as usize - 1].wait_s).collect()
}

/// The problems of the rules of a spec, see [`Component::problems`]. [`build`] refuses such a spec, too, but reports its
/// first problem only.
fn problems(spec: &SimSpec) -> Vec<String> {
    let rules = spec.choice(Role::Rules);
    let mut problems: Vec<String> = rules::Rules::new(rules).err().map(|e| e.to_string()).into_iter().collect();
    if let Some(generator) = Generator::of(spec.choice(Role::Source)) {
        let source = generator.component.name;
        let labels = ["priority_from", "class_from"].into_iter().filter(|name| rules.text(name) != "none");
        if rules.opt_reals("added_records").is_some() {
            problems.push(format!(
                "`added_records` adds to the records of a log, and the source `{source}` is no log: leave it out"
            ));
        }
        problems.extend(
            labels.map(|name| {
                format!("`{name}` reads a field of a log, and the source `{source}` is no log: leave it out")
            }),
        );
    }
    problems.extend(powers::problems(spec, rules));
    problems.extend(needs::problems(spec, rules));
    problems
}

impl Workload {
    /// Bytes of memory that the workload holds, for caches with a budget.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Workload>()
            + self.jobs.capacity() * size_of::<Job>()
            + self.log_waits_s.capacity() * 8
            + self.powers.capacity() * size_of::<powers::PowerOfRecord>()
            + self.needs.capacity() * size_of::<needs::NeedsOfRecord>()
            + self.users.capacity() * size_of::<i32>()
    }
}

impl GeneratedJob {
    /// As a record of a log.
    fn raw(&self, index: usize) -> rules::Raw {
        rules::Raw {
            id: index as i64 + 1,
            submit_s: self.submit_s,
            run_s: self.run_s,
            requested_s: self.estimate_s.unwrap_or(-1.0),
            procs_requested: i64::from(self.procs),
            procs_allocated: -1,
            fields: [-1; 4],
            priority: self.priority,
            class: self.class,
        }
    }
}

/// The values of a log's record that the rules use.
fn raw_record(record: &swf::Record) -> rules::Raw {
    rules::Raw {
        id: record.id,
        submit_s: record.submit_s,
        run_s: record.run_s,
        requested_s: record.requested_s,
        procs_requested: i64::from(record.procs_requested),
        procs_allocated: i64::from(record.procs_allocated),
        fields: [record.queue, record.user, record.group, record.partition],
        priority: 1,
        class: 0,
    }
}

fn check_size(jobs: u64, bytes_each: usize, max_bytes: u64) -> Result<(), WorkloadError> {
    let needed_bytes = jobs.saturating_mul(bytes_each as u64);
    if needed_bytes > max_bytes { Err(WorkloadError::TooLarge { jobs, needed_bytes, max_bytes }) } else { Ok(()) }
}

/// Refuses times that are negative or not finite: extreme parameters can overflow a generator's arithmetic.
fn check_generated(generator: &'static str, jobs: &[GeneratedJob]) -> Result<(), WorkloadError> {
    let usable = |v: f64| v.is_finite() && v >= 0.0;
    for (i, job) in jobs.iter().enumerate() {
        let values =
            [("submit time", job.submit_s), ("run time", job.run_s), ("estimate", job.estimate_s.unwrap_or(0.0))];
        if let Some((what, value)) = values.into_iter().find(|(_, v)| !usable(*v)) {
            let what = format!("the {what} {value} s");
            return Err(WorkloadError::Generated { generator, position: i as u64 + 1, what });
        }
    }
    Ok(())
}

/// Number of jobs that a generator makes.
pub const SYNTHETIC_JOBS: Param = Param {
    name: "synthetic_jobs_count",
    ty: Type::Int { min: 1, max: 1 << 40 },
    unit: "jobs",
    default: ParamDefault::Int(1000),
    doc: "Number of jobs that the generator makes.",
};

/// Size of the machine that a generator makes jobs for.
pub const SYNTHETIC_PROCS: Param = Param {
    name: "synthetic_procs",
    ty: Type::Int { min: 1, max: 1 << 30 },
    unit: "procs",
    default: ParamDefault::Int(256),
    doc: "Size of the machine that the jobs are made for; the platform's size unless `procs` says otherwise.",
};

#[cfg(test)]
mod tests;
