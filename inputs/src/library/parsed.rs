//! The in-memory cache of parsed logs and built workloads, shared by the slots of a worker.
use std::sync::Arc;

use powersweep_engine::spec::Param;
use powersweep_engine::workload::swf::{SwfError, SwfLog};
use powersweep_engine::workload::{self, LogFormat, Workload, WorkloadError};
use powersweep_engine::{Role, SimSpec};
use powersweep_experiments::{Digest, canonical};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// Parameters of the rules that [`workload::build`] does not read: specs that differ only in them have the same workload.
const NOT_OF_THE_WORKLOAD: [&str; 1] = ["wide_jobs"];

/// Parsed logs by digest, and workloads by (digest, source, rules, seed). A value is made once, even when several
/// threads ask for it at the same time. A failure is not cached: the next thread that asks tries again.
///
/// The budget bounds the cached bytes, not the bytes that running tasks hold: an evicted value stays alive while a task
/// uses it. Values that were asked for only once are evicted first. A value larger than half of the budget is returned
/// and not cached.
pub struct ParsedLogs {
    kept: Cache<Key, Kept, Bytes>,
    max_workload_bytes: u64,
}

impl std::fmt::Debug for ParsedLogs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParsedLogs").field("used_bytes", &self.used_bytes()).finish_non_exhaustive()
    }
}

/// Greatest memory of one workload by default: some 40 million jobs.
const MAX_WORKLOAD_BYTES: u64 = 4 << 30;

/// A generated workload of at most this many jobs is built for each task: a look-up would take as long, and in a sweep
/// over seeds every task has another workload.
const UNCACHED_JOBS_MAX: u64 = 16;

/// Expected number of cached values; no limit. It sizes the cache's record of evicted keys.
const VALUES_EXPECTED: usize = 1024;

/// Share of the budget for values that were asked for several times. The other half is for new values, so that a new
/// one is never evicted when it is inserted.
const REUSED_SHARE: f64 = 0.5;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// The digest of a log and the name of its format.
    Log(Digest, &'static str),
    /// The inputs of a workload.
    Workload {
        digest: Option<Digest>,
        /// Of workloads that are drawn by the seed: other tasks share a workload although their seeds differ.
        seed: Option<u64>,
        choices: Vec<u8>,
    },
}

#[derive(Clone)]
enum Kept {
    Log(Arc<SwfLog>),
    Workload(Arc<Workload>),
}

/// The weight of a value: its bytes in memory.
#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Kept> for Bytes {
    fn weight(&self, _: &Key, kept: &Kept) -> u64 {
        let bytes = match kept {
            Kept::Log(log) => log.memory_bytes(),
            Kept::Workload(workload) => workload.memory_bytes(),
        };
        bytes as u64
    }
}

impl ParsedLogs {
    /// A cache that keeps at most `budget_bytes`.
    pub fn new(budget_bytes: usize) -> ParsedLogs {
        let options = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity(VALUES_EXPECTED)
            .weight_capacity(budget_bytes as u64)
            .hot_allocation(REUSED_SHARE)
            .build()
            .expect("both capacities are set");
        let kept = Cache::with_options(options, Bytes, DefaultHashBuilder::default(), DefaultLifecycle::default());
        ParsedLogs { kept, max_workload_bytes: MAX_WORKLOAD_BYTES }
    }

    /// Replaces the limit on the memory of one workload while it is built (default 4 GiB); a larger one
    /// is refused. A manifest can ask a generator for any number of jobs, and running out of memory would end the
    /// process.
    pub fn with_max_workload_bytes(self, max_bytes: u64) -> ParsedLogs {
        ParsedLogs { max_workload_bytes: max_bytes, ..self }
    }

    /// The parsed log of a digest in a format. `fetch` gets the text if the log has to be parsed; `file` is its name in
    /// messages.
    pub fn log<E: From<SwfError>>(
        &self,
        digest: Digest,
        format: &LogFormat,
        file: &str,
        fetch: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Arc<SwfLog>, E> {
        let parse = || -> Result<Kept, E> { Ok(Kept::Log(Arc::new(format.read(&fetch()?, file)?))) };
        match self.kept.get_or_insert_with(&Key::Log(digest, format.component.name), parse)? {
            Kept::Log(log) => Ok(log),
            Kept::Workload(_) => unreachable!("the key is that of a log"),
        }
    }

    /// Caches a log that the caller has parsed.
    pub fn insert(&self, digest: Digest, format: &LogFormat, log: SwfLog) {
        self.kept.insert(Key::Log(digest, format.component.name), Kept::Log(Arc::new(log)));
    }

    /// The workload of a spec. `digest` names its log; a generated workload has none. Very small ones are not cached.
    pub fn workload<E: From<SwfError> + From<WorkloadError>>(
        &self,
        spec: &SimSpec,
        digest: Option<Digest>,
        file: &str,
        fetch: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Arc<Workload>, E> {
        if workload::generated_jobs(spec).is_some_and(|jobs| jobs <= UNCACHED_JOBS_MAX) {
            return Ok(Arc::new(workload::build_within(spec, None, self.max_workload_bytes)?));
        }
        let matters = |param: &Param| param.is_identity() && !NOT_OF_THE_WORKLOAD.contains(&param.name);
        let mut choices = Vec::with_capacity(512);
        canonical::push_choice(&mut choices, spec.choice(Role::Source), matters);
        canonical::push_choice(&mut choices, spec.choice(Role::Rules), matters);
        let seed = workload::draws(spec).then_some(spec.seed);
        let build = || -> Result<Kept, E> {
            let log = digest.zip(LogFormat::of(spec.choice(Role::Source)));
            let log = log.map(|(digest, format)| self.log(digest, format, file, fetch)).transpose()?;
            let workload = workload::build_within(spec, log.as_deref(), self.max_workload_bytes)?;
            Ok(Kept::Workload(Arc::new(workload)))
        };
        match self.kept.get_or_insert_with(&Key::Workload { digest, seed, choices }, build)? {
            Kept::Workload(workload) => Ok(workload),
            Kept::Log(_) => unreachable!("the key is that of a workload"),
        }
    }

    /// Cached bytes: logs and workloads.
    pub fn used_bytes(&self) -> u64 {
        self.kept.weight()
    }
}
