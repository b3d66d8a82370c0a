//! Clients' requests to the driver, from the gRPC service and within the process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use powersweep_experiments::plain::chain;
use powersweep_experiments::{Digest, Manifest, Sweep};
use powersweep_proto::{is_plain_name, v1};
use powersweep_results::Table;
use powersweep_results::part::LEDGERS_BYTES_MAX;
use tokio::sync::{mpsc, oneshot};
use tonic::{Status, Streaming};
use uuid::Uuid;

use super::command::Command;
use super::limits::{self, Limits, Received};
use super::refusals::Refusals;
use super::uploads::{Announced, Facts, Uploads};
use super::{LOG_BYTES_MAX, MANIFEST_BYTES_MAX};
use crate::farm::{Action, Config, Farm, Reply, Request, Submission};
use crate::shards;
use crate::store::{LogWriter, Objects, Store, StoreError, check_name};

/// Longest name of a user.
const USER_BYTES_MAX: usize = 256;
/// Maximum number of tasks that a retry can name.
const RETRY_INDICES_MAX: usize = 10_000;

/// Requests to a running coordinator.
#[derive(Clone)]
pub struct Requests {
    pub(super) commands: mpsc::Sender<Command>,
    /// Status requests have a queue of their own: they are answered also while storage stalls.
    pub(super) questions: mpsc::Sender<Command>,
    pub(super) store: Arc<dyn Store>,
    pub(super) limits: Arc<Limits>,
    pub(super) uploads: Arc<Uploads>,
    pub(super) log_source: Option<Arc<LogSource>>,
    pub(super) refusals: Arc<Refusals>,
    pub(super) config: Arc<Config>,
}

/// A function that gives the text of a log by its digest, from files that the coordinator can read; `None` without such a log.
/// Blocks.
pub type LogSource = dyn Fn(Digest) -> Option<Vec<u8>> + Send + Sync;

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

    /// Reads the farm's present state in memory.
    async fn read<T: Send + 'static>(&self, read: impl FnOnce(&Farm) -> T + Send + 'static) -> Result<T, Status> {
        let (reply, answer) = oneshot::channel();
        self.command(Command::Read(Box::new(move |farm| drop(reply.send(read(farm)))))).await?;
        answer.await.map_err(|_| reloading())
    }

    /// The sweep of a generation of an experiment, if the farm knows it.
    pub(super) async fn sweep(&self, experiment: &str, generation: u64) -> Result<Option<Sweep>, Status> {
        let experiment = experiment.to_owned();
        self.read(move |farm| farm.sweep_of(&experiment, generation).cloned()).await
    }

    /// The worker that holds or held a lease of an experiment.
    pub(super) async fn holder(&self, lease: v1::LeaseId, experiment: &str) -> Result<Option<Uuid>, Status> {
        let experiment = experiment.to_owned();
        self.read(move |farm| farm.holder(lease, &experiment)).await
    }

    /// Checks an upload and puts it into the staging folder. Returns its size.
    pub(super) async fn stage(&self, worker: Uuid, upload: Announced, mut received: Received) -> Result<u64, Status> {
        // `received` keeps the permits to hold the bytes.
        let data = received.data.split().freeze();
        let (upload, data, facts) = inspected(upload, data).await?;
        let bytes = data.len() as u64;
        let refused = facts.as_ref().err().cloned();
        if refused.is_none() {
            let Announced { experiment, table, part_id, .. } = &upload;
            let staged = self.objects()?.stage(experiment, *table, *part_id, data).await;
            self.noted(*table, staged)?;
        }
        self.uploads.add(worker, &upload, facts);
        refused.map_or(Ok(bytes), |reason| Err(Status::invalid_argument(reason)))
    }

    /// Notes for status whether storage took an upload.
    pub(super) fn noted<T>(&self, table: Table, stored: Result<T, StoreError>) -> Result<T, Status> {
        match &stored {
            Ok(_) => self.refusals.accepted(),
            Err(error) if error.is_retryable() => {
                self.refusals.refused(format!("storage refuses rows of `{table}`: {}", chain(error)));
            }
            Err(_) => {}
        }
        stored.map_err(store_status)
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
        let _turn = self.limits.submits.acquire().await.map_err(|_| ending())?;
        let config = Arc::clone(&self.config);
        let submission = tokio::task::spawn_blocking(move || submission(request, &config))
            .await
            .map_err(|_| Status::internal("checking the manifest failed: this is a bug"))??;
        let name = submission.sweep.manifest().name().to_owned();
        let unknown = self.config.shard.is_none() && !self.knows(&name).await?;
        let is_created = unknown && !submission.dry_run;
        if unknown {
            self.refuse_sharded(&name).await?;
        }
        if submission.restart && !unknown {
            self.objects()?.refuse_links(&name).await.map_err(store_status)?;
        }
        if is_created && self.objects()?.has_parts(&name).await.map_err(store_status)? {
            // The state is lost, or the experiment was deleted without its data. Rows that are computed again would
            // occur twice.
            return Err(Status::failed_precondition(format!(
                "the data has rows of {name}, but the state has no such experiment. While no coordinator serves the data, \
                 `powersweep adopt` restores the state from these rows; otherwise delete them or move them to another folder, \
                 or give the experiment another name"
            )));
        }
        let reply = match self.ask(Request::Submit(submission)).await? {
            Reply::Submitted(reply) => *reply,
            other => return Err(refusal(other)),
        };
        if is_created && let Err(refused) = self.refuse_sharded(&name).await {
            // The first shard began at the same time. It may have looked for this experiment before the state had it.
            let action = Action::Delete(v1::Delete { force: true, data_too: false });
            self.ask(Request::Control { experiment: name, action, by: None }).await?;
            return Err(refused);
        }
        Ok(reply)
    }

    /// Refuses a sharded experiment: only its shards run its tasks.
    async fn refuse_sharded(&self, name: &str) -> Result<(), Status> {
        let found = shards::find_in(&**self.objects()?.object_store(), name).await;
        match found.map_err(|error| Status::unavailable(chain(&error)))? {
            None => Ok(()),
            Some(record) => Err(Status::failed_precondition(format!(
                "{name} runs in {} shards, and an experiment is sharded or coordinated, never both: `powersweep shard` \
                 continues it, and `powersweep status` shows its shards. To run it with a coordinator, give the manifest \
                 another name",
                record.of
            ))),
        }
    }

    async fn knows(&self, experiment: &str) -> Result<bool, Status> {
        let request = v1::StatusRequest { experiment: experiment.to_owned(), max_failures: 0, ..Default::default() };
        Ok(!self.experiments(request).await?.experiments.is_empty())
    }

    /// State of one experiment, or of all if the name is empty.
    pub async fn status(&self, request: v1::StatusRequest) -> Result<v1::StatusReply, Status> {
        let _turn = self.limits.statuses.acquire().await.map_err(|_| ending())?;
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

    /// Pauses, resumes, cancels, retries, deletes or reprioritises an experiment, for the operator.
    pub async fn control(&self, request: v1::ControlRequest) -> Result<v1::ControlReply, Status> {
        self.control_by(None, request).await
    }

    /// Does it for the client of this name, or for the operator.
    pub(super) async fn control_by(
        &self,
        client: Option<String>,
        request: v1::ControlRequest,
    ) -> Result<v1::ControlReply, Status> {
        let by = client.filter(|_| !request.any_owner);
        let action = request.action.ok_or_else(|| Status::invalid_argument("the request names no action"))?;
        if let Action::Retry(retry) = &action
            && retry.indices.len() > RETRY_INDICES_MAX
        {
            let reason = format!("{} tasks to retry, at most {RETRY_INDICES_MAX} can be named", retry.indices.len());
            return Err(Status::invalid_argument(reason));
        }
        let experiment = request.experiment;
        let known = self.knows(&experiment).await?;
        if known && matches!(action, Action::Delete(v1::Delete { data_too: true, .. }) | Action::Prune(_)) {
            self.objects()?.refuse_links(&experiment).await.map_err(store_status)?;
        }
        if !known
            && check_name(&experiment).is_ok()
            && self.objects()?.has_parts(&experiment).await.map_err(store_status)?
        {
            return Err(Status::failed_precondition(format!(
                "the state has no experiment {experiment}, but the data has rows of it. While no coordinator serves the data, \
                 `powersweep adopt` restores the state from them; to delete them, delete the folder {experiment} of the data"
            )));
        }
        match self.ask(Request::Control { experiment, action, by }).await? {
            Reply::Controlled(reply) => Ok(reply),
            other => Err(refusal(other)),
        }
    }

    /// Ends the coordinator: running tasks finish, all rows are published, the state is closed. Answered at the end.
    pub async fn prepare_upgrade(&self, request: v1::PrepareUpgradeRequest) -> Result<v1::PrepareUpgradeReply, Status> {
        let wrong = |_| Status::invalid_argument("the limit of the drain is no number of seconds from 0");
        let limit = request.drain_s.map(Duration::try_from_secs_f64).transpose().map_err(wrong)?;
        let (reply, answer) = oneshot::channel();
        self.command(Command::PrepareUpgrade { limit, reply }).await?;
        answer.await.map_err(|_| Status::unavailable("the coordinator did not end well: see its own message"))?
    }

    /// Size of a stored log. A log that the log source has is stored first: a worker of another machine asks for it.
    pub(super) async fn log_bytes(&self, digest: Digest) -> Result<u64, Status> {
        if let Some(bytes) = self.objects()?.log_bytes(digest).await.map_err(store_status)? {
            return Ok(bytes);
        }
        let missing = || Status::not_found("the coordinator does not have this log");
        let source = self.log_source.clone().ok_or_else(missing)?;
        let read = tokio::task::spawn_blocking(move || source(digest)).await;
        let text = read.map_err(|error| Status::internal(format!("the log cannot be read: {error}")))?;
        Ok(self.put_log(digest, text.ok_or_else(missing)?.into()).await?.bytes)
    }

    /// Stores a log piece by piece. Its bytes must have the digest.
    pub(super) async fn receive_log(
        &self,
        digest: Digest,
        first: Bytes,
        mut stream: Streaming<v1::UploadLogRequest>,
    ) -> Result<v1::UploadLogReply, Status> {
        let _turn = self.limits.logs.acquire().await.map_err(|_| ending())?;
        let _kept = self.limits.logs_change.read().await;
        self.check_wanted(digest).await?;
        if let Some(bytes) = self.objects()?.log_bytes(digest).await.map_err(store_status)? {
            return self.log_stored(digest, bytes, false).await;
        }
        let mut writer = self.objects()?.log_writer(digest).await.map_err(store_status)?;
        if let Err(status) = receive(&mut writer, first, &mut stream).await {
            writer.abort().await;
            return Err(status);
        }
        let bytes = writer.finish().await.map_err(store_status)?;
        self.log_stored(digest, bytes, true).await
    }

    /// Stores a log's decompressed bytes. They must have the digest.
    pub async fn put_log(&self, digest: Digest, data: Bytes) -> Result<v1::UploadLogReply, Status> {
        let _kept = self.limits.logs_change.read().await;
        let bytes = data.len() as u64;
        let new = self.objects()?.put_log(digest, data).await.map_err(store_status)?;
        self.log_stored(digest, bytes, new).await
    }

    /// Deletes logs that no experiment has used for long, and uploads that no hand-in names.
    pub(super) async fn collect(&self) -> Result<(), Status> {
        for (experiment, table, part_id) in self.uploads.take_abandoned() {
            self.objects()?.discard_staged(&experiment, table, part_id).await.map_err(store_status)?;
        }
        if self.config.direct_uploads {
            self.objects()?.clean_inbox(SystemTime::now()).await.map_err(store_status)?;
        }
        // No log arrives meanwhile: it could be found in the store and then be deleted. Another round follows.
        let Ok(_alone) = self.limits.logs_change.try_write() else { return Ok(()) };
        let stored = self.objects()?.logs().await.map_err(store_status)?;
        let Reply::LogsDropped(unused) = self.ask(Request::DropLogs { stored }).await? else { return Ok(()) };
        for digest in unused {
            self.objects()?.remove_log(digest).await.map_err(store_status)?;
            tracing::info!("log {digest} is deleted: no experiment uses it");
        }
        Ok(())
    }

    /// Refuses a log that no experiment uses.
    async fn check_wanted(&self, digest: Digest) -> Result<(), Status> {
        if self.read(move |farm| farm.wants_log(digest)).await? {
            return Ok(());
        }
        let reason = format!("no experiment uses the log {digest}: submit its manifest first");
        Err(Status::failed_precondition(reason))
    }

    async fn log_stored(&self, digest: Digest, bytes: u64, new: bool) -> Result<v1::UploadLogReply, Status> {
        // Tasks wait for the log's record. An answer before the record is durable could leave them waiting for ever.
        match self.ask(Request::LogStored { digest, bytes }).await? {
            Reply::LogStored => Ok(v1::UploadLogReply { bytes, already_there: !new }),
            other => Err(refusal(other)),
        }
    }
}

/// Passes the pieces of a log on.
async fn receive(
    writer: &mut LogWriter,
    first: Bytes,
    stream: &mut Streaming<v1::UploadLogRequest>,
) -> Result<(), Status> {
    let mut next = Some(first);
    while let Some(piece) = next {
        if writer.bytes() + piece.len() as u64 > LOG_BYTES_MAX {
            return Err(Status::resource_exhausted(format!("the log has more than {LOG_BYTES_MAX} bytes")));
        }
        writer.push(piece).await.map_err(store_status)?;
        next = limits::next(stream).await?.map(|message| message.data);
    }
    Ok(())
}

/// Checks an object on a thread that may block.
pub(super) async fn inspected(
    upload: Announced,
    data: Bytes,
) -> Result<(Announced, Bytes, Result<Facts, String>), Status> {
    let inspected = tokio::task::spawn_blocking(move || {
        let facts = upload.inspect(&data);
        (upload, data, facts)
    });
    inspected.await.map_err(|_| Status::internal("checking the upload failed: this is a bug"))
}

fn submission(request: v1::SubmitRequest, config: &Config) -> Result<Submission, Status> {
    let manifest = Manifest::parse("manifest", &request.manifest)
        .map_err(|errors| Status::invalid_argument(errors.to_string()))?;
    if manifest.until().is_some() && !request.dry_run {
        let reason = "the seeds of the manifest are added until means are known, in stages that follow from the rows: \
                      `powersweep submit --wait` and `powersweep run` run them";
        return Err(Status::invalid_argument(reason));
    }
    let mut given: BTreeMap<String, Digest> = BTreeMap::new();
    for (log, digest) in &request.digests {
        let digest = digest_of(digest).map_err(|reason| Status::invalid_argument(format!("log {log}: {reason}")))?;
        given.insert(log.clone(), digest);
    }
    let mut digests = BTreeMap::new();
    for file in manifest.files() {
        let Some(digest) = given.get(&file.name) else {
            return Err(Status::invalid_argument(format!("the digest of the file {} is missing", file.name)));
        };
        digests.insert(file.name, *digest);
    }
    let sweep = Sweep::new(manifest, digests.clone()).map_err(|error| Status::invalid_argument(error.to_string()))?;
    let sweep = config.sharded(sweep);
    let v1::SubmitRequest { dry_run, restart, replace, priority, user, ledgers, more_follows, edits, .. } = request;
    if user.len() > USER_BYTES_MAX || !is_plain_name(&user) {
        let reason = format!("the user's name has more than {USER_BYTES_MAX} bytes, or control characters");
        return Err(Status::invalid_argument(reason));
    }
    check_ledgers(&ledgers).map_err(Status::invalid_argument)?;
    Ok(Submission {
        dry_run,
        restart,
        replace,
        user,
        priority,
        ledgers,
        more_follows,
        edits,
        ..Submission::new(sweep, digests)
    })
}

/// Every part's footer has the ledgers.
fn check_ledgers(ledgers: &str) -> Result<(), String> {
    if ledgers.len() > LEDGERS_BYTES_MAX {
        return Err(format!("the ledgers have {} bytes: at most {}", ledgers.len(), LEDGERS_BYTES_MAX));
    }
    if ledgers.is_empty() || serde_json::from_str::<Vec<serde_json::Value>>(ledgers).is_ok() {
        return Ok(());
    }
    Err("the ledgers are no JSON array".to_owned())
}

pub(super) fn digest_of(bytes: &[u8]) -> Result<Digest, String> {
    bytes.try_into().map_err(|_| format!("a digest has 32 bytes, not {}", bytes.len()))
}

fn refusal(reply: Reply) -> Status {
    match reply {
        Reply::Invalid(reason) => Status::invalid_argument(reason),
        Reply::NotFound(reason) => Status::not_found(reason),
        Reply::Refused(reason) => Status::failed_precondition(reason),
        Reply::Forbidden(reason) => Status::permission_denied(reason),
        Reply::Submitted(_) | Reply::Flushed(_) | Reply::LogStored | Reply::LogsDropped(_) | Reply::Controlled(_) => {
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
        StoreError::Link { .. } => Status::failed_precondition(message),
        _ => Status::data_loss(message),
    }
}

fn reloading() -> Status {
    Status::unavailable("the coordinator loads its state again: try again")
}

fn ending() -> Status {
    Status::unavailable("the coordinator is ending")
}
