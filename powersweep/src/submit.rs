//! Submitting a manifest with its files to a coordinator.

use std::time::{Duration, Instant};

use bytes::Bytes;
use powersweep_dataset::words::count;
use powersweep_dataset::{Error, Kind, failure};
use powersweep_experiments::Manifest;
use powersweep_inputs::library::Library;
use powersweep_proto::client::Client;
use powersweep_proto::v1;
use powersweep_results::Table;

use crate::inputs::{self, Files};
use crate::place::{Place, connection};
use crate::user;

/// Size of the pieces in which a file is uploaded.
const CHUNK_BYTES: usize = 1 << 20;

/// Interval of the status requests of a wait.
const WAIT_INTERVAL: Duration = Duration::from_millis(500);

/// A stall of storage is told after this time: the coordinator has found its cause by then.
const CAUSE_WAIT: Duration = Duration::from_secs(5);
/// Stands for the reason of a stall, whose text changes every second.
const STALLED: &str = "storage stalled";

/// Failures in the last state of a wait.
const FAILURES: u32 = 10;

/// The request that submits a manifest with its files.
pub fn submission(manifest: &Manifest, files: &Files) -> v1::SubmitRequest {
    let digests = files.digests.iter().map(|(log, digest)| (log.clone(), Bytes::copy_from_slice(digest.as_bytes())));
    let (manifest, digests) = (manifest.text().to_owned(), digests.collect());
    v1::SubmitRequest { manifest, digests, user: user::name(), ledgers: files.ledgers.clone(), ..Default::default() }
}

/// Uploads the files of a manifest that the coordinator lacks.
pub async fn upload_missing(
    client: &mut Client,
    manifest: &Manifest,
    files: &Files,
    library: &Library,
    missing: &[Bytes],
) -> Result<(), Error> {
    for needed in manifest.files() {
        let Some(digest) = files.digests.get(&needed.name) else { continue };
        if !missing.iter().any(|m| m[..] == digest.as_bytes()[..]) {
            continue;
        }
        let found = inputs::file(library, &needed)?;
        if found.digest != *digest {
            return Err(failure!(Workload, "the file {} changed during the submit", needed.name));
        }
        let text = Bytes::from(found.bytes);
        let digest = Bytes::copy_from_slice(digest.as_bytes());
        let pieces: Vec<v1::UploadLogRequest> = (0..text.len().max(1))
            .step_by(CHUNK_BYTES)
            .map(|at| v1::UploadLogRequest {
                digest: if at == 0 { digest.clone() } else { Bytes::new() },
                data: text.slice(at.min(text.len())..(at + CHUNK_BYTES).min(text.len())),
            })
            .collect();
        client.upload_log(tokio_stream::iter(pieces)).await.map_err(|status| connection::refused(&status))?;
    }
    Ok(())
}

impl Place {
    /// Waits until an experiment of a coordinator has ended, also while the coordinator restarts, and returns its last state.
    /// Notes say why no task runs meanwhile. Failed tasks are no error.
    ///
    /// # Errors
    /// Another command stopped the experiment, the coordinator refuses to show it, or published rows are missing.
    pub async fn wait(&self, mut client: Client, experiment: &str) -> Result<v1::ExperimentStatus, Error> {
        let (mut said, mut stalled_since) = (String::new(), None);
        loop {
            let request =
                v1::StatusRequest { experiment: experiment.to_owned(), max_failures: FAILURES, ..Default::default() };
            let status = match connection::status(&mut client, request).await {
                Ok(status) => status,
                Err(status) if status.code() == tonic::Code::NotFound => {
                    return Err(failure!(Cancelled, "{experiment} was deleted by another command"));
                }
                Err(status) => {
                    let error = connection::refused(&status);
                    if error.kind != Kind::Network {
                        return Err(error);
                    }
                    client = self.reconnect(&error).await?;
                    continue;
                }
            };
            let Some(found) = status.experiments.into_iter().next() else {
                return Err(failure!(Refused, "the coordinator does not know {experiment}"));
            };
            let reason = why_waiting(&found);
            if let Some(ended) = end_of(found) {
                // Rows that storage had lost before they were in a part are the experiment's failure, which the reason says.
                let tables = if reason.is_empty() { &Table::ALL[..] } else { &[Table::Tasks] };
                let whole = self.datasets_at(&client).check_whole(experiment, tables).await;
                return match (ended, whole) {
                    (Ok(_), Err(error)) if error.kind == Kind::Storage => Err(error),
                    (ended, _) => ended,
                };
            }
            if status.storage_stalled {
                // The reason names the time of the stall and changes with it: a stall is told once, when its cause is known.
                let since = *stalled_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= CAUSE_WAIT && said != STALLED {
                    self.notes.say(&format!("waiting: {}", status.storage_reason));
                    STALLED.clone_into(&mut said);
                }
            } else {
                if said == STALLED {
                    self.notes.say("storage works again");
                } else if !reason.is_empty() && reason != said {
                    self.notes.say(&format!("waiting: {reason}"));
                }
                (said, stalled_since) = (reason, None);
            }
            tokio::time::sleep(WAIT_INTERVAL).await;
        }
    }
}

/// How a wait for an experiment ends, if it does: the last state, also with failed tasks.
pub fn end_of(found: v1::ExperimentStatus) -> Option<Result<v1::ExperimentStatus, Error>> {
    match found.state() {
        v1::ExperimentState::Finished | v1::ExperimentState::Failed => Some(Ok(found)),
        _ => stopped(&found).map(Err),
    }
}

/// The error of a wait if another command stopped the experiment.
pub fn stopped(found: &v1::ExperimentStatus) -> Option<Error> {
    let name = &found.name;
    let message = match found.state() {
        v1::ExperimentState::Cancelled => format!(
            "{name} was cancelled by another command; {} done and kept. `powersweep resume {name}` continues it",
            count(found.done, "task")
        ),
        v1::ExperimentState::Leaving => format!("{name} was deleted or renamed by another command: {}", found.reason),
        _ => return None,
    };
    Some(failure!(Cancelled, "{message}"))
}

/// Why no task runs; empty if tasks run.
pub fn why_waiting(found: &v1::ExperimentStatus) -> String {
    match found.state() {
        v1::ExperimentState::Paused => {
            format!("{0} was paused by another command; `powersweep resume {0}` continues it", found.name)
        }
        _ => found.reason.clone(),
    }
}
