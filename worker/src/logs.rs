//! Logs by digest: in memory, in the cache folder, on the search path, from the coordinator, in this order.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use powersweep_engine::workload::LogFormat;
use powersweep_experiments::{Digest, FileRef};
use powersweep_inputs::library::{Cache, Library, LoadError, ParsedLogs};

use crate::options::{WorkerError, WorkerOptions};
use crate::task::{FileSource, TaskError};

/// Fetches a file's decompressed bytes from the coordinator, by digest. Blocks; called on slot threads. Gives up with
/// [`FetchError::Stopped`] when the flag is set.
pub(crate) type Fetch = Box<dyn Fn(&Digest, &AtomicBool) -> Result<Vec<u8>, FetchError> + Send + Sync>;

/// Why the coordinator gave no file.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// The task was told to stop while it waited.
    Stopped,
    Failed(String),
}

/// Files of tasks, shared by the slots.
pub(crate) struct Logs {
    /// Parsed logs and built workloads.
    pub(crate) parsed: Arc<ParsedLogs>,
    library: Library,
    trusts_paths: bool,
    cache: Option<Cache>,
    fetch: Fetch,
}

impl Logs {
    /// Fails if the cache folder cannot be used.
    pub(crate) fn new(options: &WorkerOptions, fetch: Fetch) -> Result<Logs, WorkerError> {
        let open = |folder: &std::path::PathBuf| -> Result<Cache, LoadError> {
            Ok(Cache::open(folder)?.with_limit(options.cache_bytes_max))
        };
        let cache =
            options.cache_dir.as_ref().map(open).transpose().map_err(|e| WorkerError::Options(e.to_string()))?;
        let library = Library::new(options.search_path.clone(), None);
        // A workload beyond the budget is refused before it is built: running out of memory would end the process.
        let empty = || ParsedLogs::new(options.memory_bytes).with_max_workload_bytes(options.memory_bytes as u64);
        let parsed = options.parsed.clone().unwrap_or_else(|| Arc::new(empty()));
        Ok(Logs { parsed, library, trusts_paths: options.trusts_paths, cache, fetch })
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
                // The experiment has the digest of the converted log, and this file may be the log before its import.
                tracing::info!(
                    "{} has another digest than `{log}` of the experiment, as a log before its import has; asking the \
                     coordinator",
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

/// The files for a task that gives up when `stop` is set.
pub(crate) struct FilesOfTask<'a> {
    pub(crate) logs: &'a Logs,
    pub(crate) stop: &'a AtomicBool,
}

impl FileSource for FilesOfTask<'_> {
    fn bytes(&self, format: Option<&'static LogFormat>, name: &str, digest: &Digest) -> Result<Vec<u8>, TaskError> {
        let FilesOfTask { logs, stop } = self;
        if let Some(bytes) = logs.cached(digest).or_else(|| logs.found(format, digest, name)) {
            return Ok(bytes);
        }
        let failed = |reason: String| TaskError::File { file: name.to_owned(), digest: *digest, reason };
        let bytes = (logs.fetch)(digest, stop).map_err(|error| match error {
            FetchError::Stopped => TaskError::Stopped,
            FetchError::Failed(reason) => failed(reason),
        })?;
        let found = Digest::of(&bytes);
        if found != *digest {
            return Err(failed(format!("the bytes received have the digest {found}")));
        }
        if let Some(Err(e)) = logs.cache.as_ref().map(|cache| cache.put(&bytes)) {
            tracing::warn!("the file `{name}` is kept in memory only: {e}");
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use powersweep_engine::Role;
    use powersweep_engine::workload::WorkloadError;
    use powersweep_experiments::{Manifest, Sweep};

    use super::*;
    use crate::options::nowhere;
    use crate::task::Inputs;

    fn unreachable() -> Fetch {
        Box::new(|_: &Digest, _: &AtomicBool| Err(FetchError::Stopped))
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
            let names = manifest.files().into_iter().map(|file| file.name);
            let digests = names.map(|name| (name, Digest::of(text.as_bytes()))).collect();
            let sweep = Sweep::new(manifest, digests).expect("its log");
            let task = sweep.task(0).expect("a task");
            let search_path = vec![folder.path().to_owned()];
            let options = WorkerOptions { trusts_paths, search_path, ..WorkerOptions::new(nowhere(), 1, "w") };
            let logs = Logs::new(&options, unreachable()).expect("no cache folder is asked for");
            let format = LogFormat::of(task.sim.choice(Role::Source)).expect("a log");
            let files = FilesOfTask { logs: &logs, stop: &AtomicBool::new(false) };
            files.bytes(Some(format), log, &Digest::of(text.as_bytes()))
        };
        let path = path.to_str().expect("UTF-8").to_owned();
        let climbing = format!("{}/../{}", folder.path().display(), path.trim_start_matches('/'));
        for stranger in [path.as_str(), climbing.as_str(), "./secret.swf"] {
            assert!(matches!(bytes(stranger, false), Err(TaskError::Stopped)), "{stranger}: the coordinator is asked");
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
        let logs = Logs::new(&options, unreachable()).expect("no cache folder is asked for");
        let files = FilesOfTask { logs: &logs, stop: &AtomicBool::new(false) };
        let workload = |index: u64| {
            let prepared = Inputs::of(&sweep).prepare(sweep.task(index).expect("a task"), &logs.parsed, &files);
            prepared.map(|prepared| prepared.workload.jobs.len())
        };
        assert_eq!(workload(0).expect("it fits"), 1000);
        let refused = workload(1).expect_err("it cannot fit");
        assert!(matches!(refused, TaskError::Workload(WorkloadError::TooLarge { .. })), "{refused}");
        assert!(refused.to_string().contains("1000000000 jobs"), "{refused}");
    }
}
