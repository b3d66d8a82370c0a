//! Logs by digest: in memory, in the cache folder, on the search path, from the coordinator, in this order.

use std::sync::atomic::AtomicBool;

use powersweep_engine::Role;
use powersweep_engine::workload::swf::SwfError;
use powersweep_engine::workload::{LogFormat, Workload, WorkloadError};
use powersweep_experiments::{Digest, FileRef, TaskSpec};
use powersweep_inputs::library::{Cache, Library, LoadError, ParsedLogs};
use powersweep_inputs::signals::{PlaceError, SignalError};
use std::sync::Arc;

use crate::options::{WorkerError, WorkerOptions};

/// Fetches a log's decompressed bytes from the coordinator. Blocks; called on slot threads.
pub(crate) trait Fetch: Send + Sync {
    /// The bytes of this digest. Gives up with [`LogError::Stopped`] when `stop` is set.
    fn fetch(&self, digest: &Digest, stop: &AtomicBool) -> Result<Vec<u8>, LogError>;
}

/// The reason for which a task has no workload.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    /// The log does not follow its format.
    #[error(transparent)]
    Swf(#[from] SwfError),
    /// The rules leave no workload. Final.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The log could not be fetched.
    #[error("cannot get the file `{log}` ({digest}): {reason}")]
    Fetch { log: String, digest: Digest, reason: String },
    /// The file of a signal cannot be read.
    #[error(transparent)]
    Signal(#[from] SignalError),
    /// A signal does not fit the workload. Final.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The task was told to stop while it waited for the log.
    #[error("stopped")]
    Stopped,
}

/// Workloads of tasks, shared by the slots.
pub(crate) struct Logs {
    parsed: Arc<ParsedLogs>,
    library: Library,
    trusts_paths: bool,
    cache: Option<Cache>,
    coordinator: Box<dyn Fetch>,
}

impl Logs {
    /// Fails if the cache folder cannot be used.
    pub(crate) fn new(options: &WorkerOptions, coordinator: Box<dyn Fetch>) -> Result<Logs, WorkerError> {
        let open = |folder: &std::path::PathBuf| -> Result<Cache, LoadError> {
            Ok(Cache::open(folder)?.with_limit(options.cache_bytes_max))
        };
        let cache =
            options.cache_dir.as_ref().map(open).transpose().map_err(|e| WorkerError::Options(e.to_string()))?;
        let library = Library::new(options.search_path.clone(), None);
        // A workload beyond the budget is refused before it is built: running out of memory would end the process.
        let empty = || ParsedLogs::new(options.memory_bytes).with_max_workload_bytes(options.memory_bytes as u64);
        let parsed = options.parsed.clone().unwrap_or_else(|| Arc::new(empty()));
        Ok(Logs { parsed, library, trusts_paths: options.trusts_paths, cache, coordinator })
    }

    /// The workload of a task; built once for all tasks that share it.
    pub(crate) fn workload(&self, task: &TaskSpec, stop: &AtomicBool) -> Result<Arc<Workload>, LogError> {
        let format = LogFormat::of(task.sim.choice(Role::Source));
        let log = task.log.as_deref().unwrap_or_default();
        self.parsed.workload(&task.sim, task.digest, log, || match task.digest.as_ref().zip(format) {
            Some((digest, format)) => self.bytes(Some(format), digest, log, stop),
            None => Ok(Vec::new()),
        })
    }

    /// The bytes of a file of a manifest. `format`: that of a log, none for the file of a signal.
    pub(crate) fn bytes(
        &self,
        format: Option<&'static LogFormat>,
        digest: &Digest,
        log: &str,
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, LogError> {
        if let Some(bytes) = self.cached(digest).or_else(|| self.found(format, digest, log)) {
            return Ok(bytes);
        }
        let failed = |reason: String| LogError::Fetch { log: log.to_owned(), digest: *digest, reason };
        let bytes = self.coordinator.fetch(digest, stop).map_err(|e| match e {
            LogError::Fetch { reason, .. } => failed(reason),
            other => other,
        })?;
        let found = Digest::of(&bytes);
        if found != *digest {
            return Err(failed(format!("the bytes received have the digest {found}")));
        }
        if let Some(Err(e)) = self.cache.as_ref().map(|cache| cache.put(&bytes)) {
            tracing::warn!("the file `{log}` is kept in memory only: {e}");
        }
        Ok(bytes)
    }

    fn cached(&self, digest: &Digest) -> Option<Vec<u8>> {
        self.cache.as_ref()?.get(*digest).unwrap_or_else(|e| {
            tracing::warn!("{e}");
            None
        })
    }

    /// A file of this name on the search path, if its digest is the log's. URLs are left to the coordinator, and paths,
    /// too: a manifest must not make a worker open any file of its machine.
    fn found(&self, format: Option<&'static LogFormat>, digest: &Digest, log: &str) -> Option<Vec<u8>> {
        let is_path = log.contains(std::path::is_separator);
        if log.is_empty() || log.contains("://") || is_path && !self.trusts_paths {
            return None;
        }
        match self.library.load_file_of(&FileRef { format, ..FileRef::plain(log, None) }) {
            Ok(found) if found.digest == *digest => Some(found.bytes),
            Ok(found) => {
                tracing::info!(
                    "{} is another file than the experiment's `{log}`; asking the coordinator",
                    found.origin
                );
                None
            }
            Err(LoadError::NotFound { .. }) => None,
            Err(e) => {
                tracing::info!("{e}; asking the coordinator");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use powersweep_experiments::{Manifest, Sweep};

    use super::*;
    use crate::options::nowhere;

    struct Nowhere;

    impl Fetch for Nowhere {
        fn fetch(&self, _: &Digest, _: &AtomicBool) -> Result<Vec<u8>, LogError> {
            Err(LogError::Stopped)
        }
    }

    #[test]
    fn a_worker_opens_files_by_name_and_not_by_a_strangers_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let (text, path) = ("; a log\n", folder.path().join("secret.swf"));
        std::fs::write(&path, text).expect("it is ours");
        let manifest = |log: &str| {
            format!("version = 1\nname = \"t\"\n[workloads.w]\nsource = \"swf\"\nlog = {log:?}\n[policies.q]\n")
        };
        let bytes = |log: &str, trusts_paths: bool| {
            let manifest = Manifest::parse("test.toml", &manifest(log)).expect("valid");
            let sweep = Sweep::new(manifest, [(log.to_owned(), Digest::of(text.as_bytes()))].into()).expect("its log");
            let task = sweep.task(0).expect("a task");
            let search_path = vec![folder.path().to_owned()];
            let options = WorkerOptions { trusts_paths, search_path, ..WorkerOptions::new(nowhere(), 1, "w") };
            let logs = Logs::new(&options, Box::new(Nowhere)).expect("no cache folder is asked for");
            let format = LogFormat::of(task.sim.choice(Role::Source)).expect("a log");
            logs.bytes(Some(format), &Digest::of(text.as_bytes()), log, &AtomicBool::new(false))
        };
        let path = path.to_str().expect("UTF-8").to_owned();
        let climbing = format!("{}/../{}", folder.path().display(), path.trim_start_matches('/'));
        for stranger in [path.as_str(), climbing.as_str(), "./secret.swf"] {
            assert!(matches!(bytes(stranger, false), Err(LogError::Stopped)), "{stranger}: the coordinator is asked");
        }
        assert_eq!(bytes("secret", false).expect("on the search path"), text.as_bytes());
        assert_eq!(bytes(&path, true).expect("the user's own path"), text.as_bytes());
    }

    #[test]
    fn a_workload_beyond_the_budget_is_refused_before_it_is_built() {
        let text = "version = 1\nname = \"huge\"\n[workloads.w]\nsource = \"lublin\"\n\
                    synthetic_jobs_count = [1000, 1000000000]\n[platforms.p]\n[policies.q]\n";
        let manifest = Manifest::parse("test.toml", text).expect("valid");
        let sweep = Sweep::new(manifest, BTreeMap::new()).expect("no log is needed");
        let options = WorkerOptions { memory_bytes: 1 << 20, ..WorkerOptions::new(nowhere(), 1, "w") };
        let logs = Logs::new(&options, Box::new(Nowhere)).expect("no cache folder is asked for");
        let workload = |index: u64| {
            logs.workload(&sweep.task(index).expect("a task"), &AtomicBool::new(false)).map(|built| built.jobs.len())
        };
        assert_eq!(workload(0).expect("it fits"), 1000);
        let refused = workload(1).expect_err("it cannot fit");
        assert!(matches!(refused, LogError::Workload(WorkloadError::TooLarge { .. })), "{refused}");
        assert!(refused.to_string().contains("1000000000 jobs"), "{refused}");
    }
}
