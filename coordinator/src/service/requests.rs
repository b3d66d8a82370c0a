//! Clients' requests to the driver, from the gRPC service and within the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use powersweep_experiments::{Digest, Manifest, Sweep};
use powersweep_proto::client::chain;
use powersweep_proto::v1;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

use super::MANIFEST_BYTES_MAX;
use super::driver::Command;
use crate::farm::{Action, Reply, Request, Submission};
use crate::store::{Objects, Store, StoreError};

/// Longest name of a user.
const USER_BYTES_MAX: usize = 256;

/// Requests to a running coordinator.
#[derive(Clone)]
pub struct Requests {
    pub(super) commands: mpsc::Sender<Command>,
    /// Status requests have a queue of their own: they are answered also while storage stalls.
    pub(super) questions: mpsc::Sender<Command>,
    pub(super) store: Arc<dyn Store>,
    pub(super) log_source: Option<Arc<dyn LogSource>>,
}

/// Logs in files that the coordinator can read, by the digest of their text.
pub trait LogSource: Send + Sync {
    /// Digests of the logs.
    fn digests(&self) -> BTreeSet<Digest>;

    /// The text of a log; `None` without such a log. Blocks.
    fn read(&self, digest: Digest) -> Option<Vec<u8>>;
}

impl Requests {
    pub(super) async fn command(&self, command: Command) -> Result<(), Status> {
        let reads = matches!(command, Command::Status { .. });
        let channel = if reads { &self.questions } else { &self.commands };
        channel.send(command).await.map_err(|_| ending())
    }

    pub(super) fn objects(&self) -> Result<&Objects, Status> {
        self.store.objects().map_err(store_status)
    }

    async fn ask(&self, request: Request) -> Result<Reply, Status> {
        let (reply, answer) = oneshot::channel();
        self.command(Command::Request { request, reply }).await?;
        answer.await.map_err(|_| Status::unavailable("storage failed while the request was being stored: ask again"))
    }

    async fn experiments(&self, request: v1::StatusRequest) -> Result<v1::StatusReply, Status> {
        let (reply, answer) = oneshot::channel();
        self.command(Command::Status { request, reply }).await?;
        answer.await.map_err(|_| ending())
    }

    /// Adds an experiment, or an edited manifest to an existing one.
    pub async fn submit(&self, request: v1::SubmitRequest) -> Result<v1::SubmitReply, Status> {
        if request.manifest.len() > MANIFEST_BYTES_MAX {
            return Err(Status::invalid_argument(format!("the manifest has more than {MANIFEST_BYTES_MAX} bytes")));
        }
        let submission = tokio::task::spawn_blocking(move || submission(request))
            .await
            .map_err(|_| Status::internal("checking the manifest failed: this is a bug"))??;
        let name = submission.sweep.manifest().name();
        if !submission.dry_run
            && !self.knows(name).await?
            && self.objects()?.has_parts(name).await.map_err(store_status)?
        {
            // The state is lost, or the experiment was deleted without its data. Rows that are computed again would
            // occur twice.
            return Err(Status::failed_precondition(format!(
                "the data has rows of {name}, but the state has no such experiment. `powersweep adopt` restores the \
                 state from these rows; otherwise move them to another folder, or give the experiment another name"
            )));
        }
        match self.ask(Request::Submit(submission)).await? {
            Reply::Submitted(reply) => Ok(*reply),
            other => Err(refusal(other)),
        }
    }

    async fn knows(&self, experiment: &str) -> Result<bool, Status> {
        let request = v1::StatusRequest { experiment: experiment.to_owned(), max_failures: 0 };
        Ok(!self.experiments(request).await?.experiments.is_empty())
    }

    /// State of one experiment, or of all if the name is empty.
    pub async fn status(&self, request: v1::StatusRequest) -> Result<v1::StatusReply, Status> {
        let name = request.experiment.clone();
        let reply = self.experiments(request).await?;
        if !name.is_empty() && reply.experiments.is_empty() {
            return Err(Status::not_found(format!("there is no experiment {name}")));
        }
        Ok(reply)
    }

    /// Publishes all acknowledged rows of an experiment.
    pub async fn flush(&self, request: v1::FlushRequest) -> Result<v1::FlushReply, Status> {
        match self.ask(Request::Flush(request.experiment)).await? {
            Reply::Flushed(reply) => Ok(reply),
            other => Err(refusal(other)),
        }
    }

    /// Pauses, resumes, cancels, retries, deletes or reprioritises an experiment.
    pub async fn control(&self, request: v1::ControlRequest) -> Result<v1::ControlReply, Status> {
        let action = request.action.ok_or_else(|| Status::invalid_argument("the request names no action"))?;
        let (experiment, action) = (request.experiment, action_of(action));
        match self.ask(Request::Control { experiment, action }).await? {
            Reply::Controlled(reply) => Ok(reply),
            other => Err(refusal(other)),
        }
    }

    /// Size of a stored log. A log that the log source has is stored first: a worker of another machine asks for it.
    pub(super) async fn log_bytes(&self, digest: Digest) -> Result<u64, Status> {
        if let Some(bytes) = self.objects()?.log_bytes(digest).await.map_err(store_status)? {
            return Ok(bytes);
        }
        let missing = || Status::not_found("the coordinator does not have this log");
        let source = self.log_source.clone().ok_or_else(missing)?;
        let read = tokio::task::spawn_blocking(move || source.read(digest)).await;
        let text = read.map_err(|error| Status::internal(format!("the log cannot be read: {error}")))?;
        Ok(self.put_log(digest, text.ok_or_else(missing)?.into()).await?.bytes)
    }

    /// Stores a log's decompressed bytes. They must have the digest.
    pub async fn put_log(&self, digest: Digest, data: Bytes) -> Result<v1::UploadLogReply, Status> {
        let bytes = data.len() as u64;
        let new = self.objects()?.put_log(digest, data).await.map_err(store_status)?;
        // Tasks wait for the log's record. An answer before the record is durable could leave them waiting for ever.
        match self.ask(Request::LogStored { digest, bytes }).await? {
            Reply::LogStored => Ok(v1::UploadLogReply { bytes, already_there: !new }),
            other => Err(refusal(other)),
        }
    }
}

fn submission(request: v1::SubmitRequest) -> Result<Submission, Status> {
    let manifest = Manifest::parse("manifest", &request.manifest)
        .map_err(|errors| Status::invalid_argument(errors.to_string()))?;
    let mut given: BTreeMap<String, Digest> = BTreeMap::new();
    for (log, digest) in &request.digests {
        let digest = digest_of(digest).map_err(|reason| Status::invalid_argument(format!("log {log}: {reason}")))?;
        given.insert(log.clone(), digest);
    }
    let mut digests = BTreeMap::new();
    for log in manifest.logs() {
        let Some(digest) = given.get(&log.log) else {
            return Err(Status::invalid_argument(format!("the digest of log {} is missing", log.log)));
        };
        digests.insert(log.log, *digest);
    }
    let sweep = Sweep::new(manifest, digests.clone()).map_err(|error| Status::invalid_argument(error.to_string()))?;
    let v1::SubmitRequest { dry_run, restart, replace, priority, user, .. } = request;
    if user.len() > USER_BYTES_MAX {
        return Err(Status::invalid_argument(format!("the user's name has more than {USER_BYTES_MAX} bytes")));
    }
    Ok(Submission { dry_run, restart, replace, user, priority, ..Submission::new(sweep, digests) })
}

fn action_of(action: v1::control_request::Action) -> Action {
    use v1::control_request::Action as Wire;
    match action {
        Wire::Pause(_) => Action::Pause,
        Wire::Resume(_) => Action::Resume,
        Wire::Cancel(_) => Action::Cancel,
        Wire::Retry(retry) => {
            Action::Retry { indices: retry.indices.iter().copied().collect(), kinds: retry.kinds().collect() }
        }
        Wire::Delete(delete) => Action::Delete { force: delete.force, data_too: delete.data_too },
        Wire::Prune(_) => Action::Prune,
        Wire::SetPriority(set) => Action::SetPriority(set.priority),
    }
}

pub(super) fn digest_of(bytes: &[u8]) -> Result<Digest, String> {
    bytes.try_into().map_err(|_| format!("a digest has 32 bytes, not {}", bytes.len()))
}

fn refusal(reply: Reply) -> Status {
    match reply {
        Reply::Invalid(reason) => Status::invalid_argument(reason),
        Reply::NotFound(reason) => Status::not_found(reason),
        Reply::Refused(reason) => Status::failed_precondition(reason),
        Reply::Submitted(_) | Reply::Flushed(_) | Reply::LogStored | Reply::Controlled(_) => {
            Status::internal("the reply is that of another request: this is a bug")
        }
    }
}

pub(super) fn store_status(error: StoreError) -> Status {
    let message = chain(&error);
    match error {
        StoreError::WrongDigest { .. } | StoreError::Invalid { .. } => Status::invalid_argument(message),
        StoreError::Missing { .. } => Status::not_found(message),
        StoreError::Unavailable { .. } | StoreError::Fenced { .. } | StoreError::Closed { .. } => {
            Status::unavailable(message)
        }
        StoreError::PartTaken { .. } => Status::already_exists(message),
        _ => Status::data_loss(message),
    }
}

fn ending() -> Status {
    Status::unavailable("the coordinator is ending")
}
