//! Parsed logs and built workloads in memory, shared by the slots of a worker.
use std::sync::Arc;

use powersweep_engine::workload::swf::{self, SwfError, SwfLog};
use powersweep_engine::workload::{self, Workload, WorkloadError};
use powersweep_engine::{Choice, Role, SimSpec, Value};

use crate::Sha256;
use crate::memo::Memo;

/// Parameters of the rules that [`workload::build`] does not look at: workloads that differ in them only are one.
const NOT_OF_THE_WORKLOAD: [&str; 1] = ["wide_jobs"];

/// Parsed logs by digest, and workloads by (digest, source, rules, seed), each made once even when several threads ask
/// at the same time, the least recently used given up when the budget is exceeded.
///
/// A value given up stays alive while a task uses it, so that the budget bounds what is kept for later, not what
/// running tasks hold.
pub struct ParsedLogs {
    logs: Memo<Sha256, SwfLog>,
    workloads: Memo<WorkloadKey, Workload>,
    max_workload_bytes: u64,
}

impl std::fmt::Debug for ParsedLogs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParsedLogs").field("used_bytes", &self.used_bytes()).finish_non_exhaustive()
    }
}

/// Greatest memory of one workload unless the caller says otherwise: some 40 million jobs.
const MAX_WORKLOAD_BYTES: u64 = 4 << 30;

/// Workloads of so few generated jobs are made for each task: that takes no longer than to look one up, and a sweep over
/// seeds has a workload for each task.
const MADE_EACH_TIME_JOBS: u64 = 16;

/// What a workload depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct WorkloadKey {
    digest: Option<Sha256>,
    /// Drawn from by generators only: tasks that differ in the seed share a log's workload.
    seed: Option<u64>,
    choices: Vec<u8>,
}

impl ParsedLogs {
    /// A cache that keeps at most `budget_bytes`, half for logs and half for workloads.
    pub fn new(budget_bytes: usize) -> ParsedLogs {
        ParsedLogs {
            logs: Memo::new(budget_bytes / 2),
            workloads: Memo::new(budget_bytes / 2),
            max_workload_bytes: MAX_WORKLOAD_BYTES,
        }
    }

    /// The same, refusing workloads that may take more than `max_bytes` while they are built (default 4 GiB). A
    /// generator can be asked for any number of jobs, and running out of memory would end the process.
    pub fn with_max_workload_bytes(self, max_bytes: u64) -> ParsedLogs {
        ParsedLogs { max_workload_bytes: max_bytes, ..self }
    }

    /// The parsed log of a digest. `fetch` gets its text if it has to be parsed; `file` is its name for messages.
    ///
    /// `E` is the caller's error; it takes the parser's by `From`.
    pub fn log<E: From<SwfError>>(
        &self,
        digest: &Sha256,
        file: &str,
        fetch: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Arc<SwfLog>, E> {
        self.logs.get_or_make(digest, SwfLog::memory_bytes, || {
            let text = fetch()?;
            Ok(swf::parse(&text, file)?)
        })
    }

    /// Keeps a log that the caller has parsed.
    pub fn insert(&self, digest: &Sha256, log: SwfLog) {
        let kept: Result<_, std::convert::Infallible> = self.logs.get_or_make(digest, SwfLog::memory_bytes, || Ok(log));
        drop(kept);
    }

    /// The workload of a spec; `digest` is that of its log, `None` for a generator. Very small ones are not kept.
    pub fn workload<E: From<SwfError> + From<WorkloadError>>(
        &self,
        spec: &SimSpec,
        digest: Option<&Sha256>,
        file: &str,
        fetch: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Arc<Workload>, E> {
        if workload::generated_jobs(spec).is_some_and(|jobs| jobs <= MADE_EACH_TIME_JOBS) {
            return Ok(Arc::new(workload::build_within(spec, None, self.max_workload_bytes)?));
        }
        let mut choices = Vec::with_capacity(512);
        encode(spec.choice(Role::Source), &mut choices);
        encode(spec.choice(Role::Rules), &mut choices);
        let seed = digest.is_none().then_some(spec.seed);
        let key = WorkloadKey { digest: digest.copied(), seed, choices };
        self.workloads.get_or_make(&key, Workload::memory_bytes, || {
            let log = digest.map(|digest| self.log(digest, file, fetch)).transpose()?;
            Ok(workload::build_within(spec, log.as_deref(), self.max_workload_bytes)?)
        })
    }

    /// Bytes kept: logs and workloads.
    pub fn used_bytes(&self) -> usize {
        self.logs.used_bytes() + self.workloads.used_bytes()
    }
}

/// Appends a component with the values that its workload depends on, unambiguously: every text is preceded by its length.
fn encode(choice: &Choice, out: &mut Vec<u8>) {
    fn put(out: &mut Vec<u8>, bytes: &[u8]) {
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(bytes);
    }
    let component = choice.component();
    put(out, component.name.as_bytes());
    let matters = |name: &str| component.params.iter().any(|p| p.name == name && p.identity);
    for (name, value) in choice.values() {
        if !matters(name) || NOT_OF_THE_WORKLOAD.contains(name) {
            continue;
        }
        put(out, name.as_bytes());
        match value {
            Value::Bool(v) => put(out, &[b'b', u8::from(*v)]),
            Value::Int(v) => put(out, &[b"i", &v.to_le_bytes()[..]].concat()),
            Value::Real(v) => put(out, &[b"r", &v.to_bits().to_le_bytes()[..]].concat()),
            Value::Text(v) => put(out, &[b"t", v.as_bytes()].concat()),
            Value::Reals(v) => {
                let bits: Vec<u8> = v.iter().flat_map(|x| x.to_bits().to_le_bytes()).collect();
                put(out, &[b"v", &bits[..]].concat());
            }
        }
    }
    out.push(b'.');
}
