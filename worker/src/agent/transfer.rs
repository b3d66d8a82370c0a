//! Transfers beside the session's stream: logs from the coordinator, uploads of optional tables to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use powersweep_experiments::Digest;
use powersweep_proto::client::{Client, is_final, words};
use powersweep_proto::v1;
use tokio::sync::{mpsc, watch};

use super::direct::Direct;
use crate::logs::{Fetch, FetchError};
use crate::session::Upload;

/// Payload of one message of an upload.
const CHUNK_BYTES: usize = 1 << 20;
/// Greatest log that is accepted (bytes); a larger one is an error of the coordinator or the network.
const LOG_BYTES_MAX: u64 = 4 << 30;
/// Interval at which a waiting slot checks its stop flag. The log's arrival wakes the slot at once.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// Pause after a transfer failed.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// Further requests for a log that the coordinator lacks: `submit` uploads logs after it registers the experiment.
const MISSING_TRIES: u32 = 5;

/// A slot's request for a log.
pub(super) struct LogRequest {
    digest: Digest,
    reply: SyncSender<Result<Vec<u8>, String>>,
}

/// The slots' side: sends a request to the agent and waits.
pub(super) fn from_coordinator(requests: mpsc::UnboundedSender<LogRequest>) -> Fetch {
    Box::new(move |digest: &Digest, stop: &AtomicBool| {
        let (reply, answer) = sync_channel(1);
        requests.send(LogRequest { digest: *digest, reply }).map_err(|_| FetchError::Stopped)?;
        loop {
            match answer.recv_timeout(STOP_CHECK) {
                Ok(result) => return result.map_err(FetchError::Failed),
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return Err(FetchError::Stopped),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(FetchError::Stopped),
            }
        }
    })
}

/// The agent's side: fetches the log over the present connection, or waits for one.
pub(super) async fn answer(request: LogRequest, mut clients: watch::Receiver<Option<Client>>) {
    let mut missing = 0;
    loop {
        let Ok(client) = clients.wait_for(Option::is_some).await.map(|c| c.clone()) else { return };
        let Some(client) = client else { return };
        match fetch(client, &request.digest).await {
            Ok(bytes) => {
                request.reply.send(Ok(bytes)).ok();
                return;
            }
            Err(status) => {
                missing += u32::from(status.code() == tonic::Code::NotFound);
                let hopeless = is_final(&status)
                    || missing > MISSING_TRIES
                    || matches!(status.code(), tonic::Code::InvalidArgument | tonic::Code::OutOfRange);
                if hopeless {
                    request.reply.send(Err(format!("the coordinator says: {}", words(&status)))).ok();
                    return;
                }
                tracing::info!("fetching log {} again: {}", request.digest, words(&status));
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

async fn fetch(mut client: Client, digest: &Digest) -> Result<Vec<u8>, tonic::Status> {
    let request = v1::FetchLogRequest { digest: Bytes::copy_from_slice(digest.as_bytes()) };
    let mut chunks = client.fetch_log(request).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.message().await? {
        if chunk.total_bytes > LOG_BYTES_MAX || (bytes.len() + chunk.data.len()) as u64 > LOG_BYTES_MAX {
            return Err(tonic::Status::out_of_range(format!("the log has more than {LOG_BYTES_MAX} bytes")));
        }
        if bytes.is_empty() {
            bytes.reserve_exact(usize::try_from(chunk.total_bytes).unwrap_or_default());
        }
        bytes.extend_from_slice(&chunk.data);
    }
    Ok(bytes)
}

/// Uploads one object; returns whether its hand-in can be sent. After a refusal it is: the coordinator then says what
/// becomes of the tasks.
pub(super) async fn upload(mut client: Client, upload: Upload, direct: Arc<Direct>) -> (Upload, bool) {
    use tonic::Code::{AlreadyExists, FailedPrecondition, InvalidArgument, NotFound};
    let sent = direct.send(&mut client, &upload.object).await;
    let messages = if sent { vec![announcement(&upload)] } else { upload_messages(&upload) };
    let Err(status) = client.upload_part(tokio_stream::iter(messages)).await else {
        return (upload, true);
    };
    let experiment = &upload.object.experiment;
    if sent && status.code() == NotFound {
        direct.fail(&words(&status), Instant::now());
        return (upload, false);
    }
    if matches!(status.code(), AlreadyExists | FailedPrecondition | InvalidArgument | NotFound) {
        tracing::warn!("an object of `{experiment}` is refused: {}", words(&status));
        return (upload, true);
    }
    tracing::info!("uploading an object of `{experiment}` again: {}", words(&status));
    tokio::time::sleep(RETRY_PAUSE).await;
    (upload, false)
}

/// The message that an object is in the object store.
fn announcement(upload: &Upload) -> v1::UploadPartRequest {
    let staged_bytes = upload.object.data.len() as u64;
    v1::UploadPartRequest { data: Bytes::new(), staged_bytes, ..upload.object.clone() }
}

/// The messages of an upload: only the first has the fields that identify it.
fn upload_messages(upload: &Upload) -> Vec<v1::UploadPartRequest> {
    let bytes = &upload.object.data;
    let pieces = (0..bytes.len().max(1)).step_by(CHUNK_BYTES);
    pieces
        .map(|at| {
            let data = bytes.slice(at.min(bytes.len())..(at + CHUNK_BYTES).min(bytes.len()));
            if at > 0 {
                return v1::UploadPartRequest { data, ..Default::default() };
            }
            v1::UploadPartRequest { data, ..upload.object.clone() }
        })
        .collect()
}
