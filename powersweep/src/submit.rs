//! Submitting a manifest with its files to a coordinator.

use bytes::Bytes;
use powersweep_dataset::words::count;
use powersweep_dataset::{Error, failure};
use powersweep_experiments::Manifest;
use powersweep_inputs::library::Library;
use powersweep_proto::client::Client;
use powersweep_proto::v1;

use crate::inputs::{self, Files};
use crate::place::connection;
use crate::user;

/// Size of the pieces in which a file is uploaded.
const CHUNK_BYTES: usize = 1 << 20;

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
