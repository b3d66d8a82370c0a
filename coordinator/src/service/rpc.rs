//! The gRPC calls: authorisation, conversion to requests and events, streams.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::{Stream, TryStreamExt};
use powersweep_proto::connections::Connections;
use powersweep_proto::v1;
use powersweep_proto::v1::worker_message::Body;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::CHUNK_BYTES;
use super::audit::{self, Call};
use super::auth::{Caller, Callers};
use super::command::Command;
use super::content::Checker;
use super::driver;
use super::limits::{self, Received};
use super::metrics::{Counters, Timed};
use super::requests::{Requests, digest_of, store_status};
use super::uploads::Announced;
use crate::access::Admitted;
use crate::farm::{ConnId, Content, Event};
use crate::store::MAX_PART_BYTES;

/// How long a new stream may take until its first message, which must be Hello.
const HELLO_WAIT: Duration = Duration::from_secs(10);

/// The service.
pub(super) struct Rpc {
    requests: Requests,
    counters: Arc<Counters>,
    connections: Arc<Connections>,
    next_conn: Arc<AtomicU64>,
}

type Boxed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Rpc {
    pub(super) fn new(requests: Requests, counters: Arc<Counters>, connections: Arc<Connections>) -> Rpc {
        Rpc { requests, counters, connections, next_conn: Arc::new(AtomicU64::new(1)) }
    }

    fn check(&self, Caller { admitted, peer }: Caller, callers: Callers) -> Result<Admitted, Status> {
        let admitted = admitted.ok_or_else(|| Status::internal("the call was not admitted: this is a bug"))?;
        callers.check(&admitted).inspect_err(|_| {
            self.counters.wrong_roles.inc();
        })?;
        self.connections.known(peer);
        Ok(admitted)
    }

    /// Admits a client, and notes the time that its request takes.
    async fn timed<T>(
        &self,
        timed: Timed,
        call: &mut Call,
        answer: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        call.caller = self.check(std::mem::take(&mut call.by), Callers::Clients)?.fingerprint;
        let begun = Instant::now();
        let answer = answer.await;
        self.counters.request(timed).observe(begun.elapsed());
        answer
    }
}

#[tonic::async_trait]
impl v1::farm_server::Farm for Rpc {
    type WorkStream = ReceiverStream<Result<v1::FarmMessage, Status>>;
    type FetchLogStream = Boxed<v1::Chunk>;
    type ReadTableStream = Boxed<v1::TablePiece>;
    type ReadPartStream = Boxed<v1::Chunk>;

    async fn work(&self, request: Request<Streaming<v1::WorkerMessage>>) -> Result<Response<Self::WorkStream>, Status> {
        let mut call = Call::of(&request);
        let caller = self.check(std::mem::take(&mut call.by), Callers::Workers)?;
        call.caller = caller.fingerprint;
        self.counters.streams.inc();
        let address = request.remote_addr().map(|address| address.to_string()).unwrap_or_default();
        let conn = self.next_conn.fetch_add(1, Ordering::Relaxed);
        let (outbox, inbox) = driver::outbox();
        self.requests.command(Command::Attach { conn, outbox }).await?;
        let reader =
            Reader { requests: self.requests.clone(), counters: Arc::clone(&self.counters), call, conn, address };
        tokio::spawn(reader.read(request.into_inner(), caller.revoked));
        Ok(Response::new(ReceiverStream::new(inbox)))
    }

    async fn fetch_log(&self, request: Request<v1::FetchLogRequest>) -> Result<Response<Self::FetchLogStream>, Status> {
        self.check(Caller::of(&request), Callers::Both)?;
        let digest = digest_of(&request.get_ref().digest).map_err(Status::invalid_argument)?;
        let total = self.requests.log_bytes(digest).await?;
        let store = Arc::clone(&self.requests.store);
        let chunks = futures::stream::try_unfold((store, 0), move |(store, start)| async move {
            if start >= total && start > 0 {
                return Ok(None);
            }
            let objects = store.objects().map_err(store_status)?;
            let data = objects.log_range(digest, start, start + CHUNK_BYTES).await.map_err(store_status)?;
            let next = if data.is_empty() { total.max(1) } else { start + data.len() as u64 };
            Ok(Some((v1::Chunk { data, total_bytes: total }, (store, next))))
        });
        Ok(Response::new(Box::pin(chunks)))
    }

    async fn upload_log(
        &self,
        request: Request<Streaming<v1::UploadLogRequest>>,
    ) -> Result<Response<v1::UploadLogReply>, Status> {
        self.check(Caller::of(&request), Callers::Clients)?;
        let mut stream = request.into_inner();
        let first = limits::next(&mut stream).await?;
        let first = first.ok_or_else(|| Status::invalid_argument("the first message must name the digest"))?;
        let digest = digest_of(&first.digest).map_err(Status::invalid_argument)?;
        let reply = self.requests.receive_log(digest, first.data, stream).await?;
        self.counters.log_bytes.inc_by(reply.bytes);
        Ok(Response::new(reply))
    }

    async fn upload_part(
        &self,
        request: Request<Streaming<v1::UploadPartRequest>>,
    ) -> Result<Response<v1::UploadPartReply>, Status> {
        self.check(Caller::of(&request), Callers::Workers)?;
        let mut stream = request.into_inner();
        let mut received = Received::begin(&self.requests.limits).await?;
        let first = received.next(&mut stream).await?;
        let first = first.ok_or_else(|| Status::invalid_argument("the first message must name the part"))?;
        let upload = Announced::of(&first)?;
        let worker = self.requests.uploader(&upload).await?;
        if first.staged_bytes > 0 {
            if !first.data.is_empty() {
                return Err(Status::invalid_argument(
                    "an object is in the object store or in the messages, not in both",
                ));
            }
            let requests = self.requests.clone();
            // Ends also if the worker gives the call up.
            let taken =
                tokio::spawn(async move { requests.take_in(worker, upload, first.staged_bytes, received).await });
            let bytes = taken.await.map_err(|_| Status::internal("taking the object in failed: this is a bug"))??;
            self.counters.direct_bytes.inc_by(bytes);
            return Ok(Response::new(v1::UploadPartReply { bytes }));
        }
        received.push(&first.data, MAX_PART_BYTES).await?;
        while let Some(message) = received.next(&mut stream).await? {
            received.push(&message.data, MAX_PART_BYTES).await?;
        }
        let bytes = self.requests.stage(worker, upload, received).await?;
        self.counters.upload_bytes.inc_by(bytes);
        Ok(Response::new(v1::UploadPartReply { bytes }))
    }

    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::SubmitReply>, Status> {
        let mut call = Call::of(&request);
        let mut request = request.into_inner();
        if let Some(client) = &call.client {
            // Proven, unlike the name in the request.
            request.user = client.to_string();
        }
        let (dry_run, manifest) = (request.dry_run, request.manifest.clone());
        let reply = self.timed(Timed::Submit, &mut call, self.requests.submit(request)).await;
        if !dry_run {
            call.submitted(&manifest, &reply);
        }
        reply.map(Response::new)
    }

    async fn status(&self, request: Request<v1::StatusRequest>) -> Result<Response<v1::StatusReply>, Status> {
        let mut call = Call::of(&request);
        let answer = self.requests.status(request.into_inner());
        self.timed(Timed::Status, &mut call, answer).await.map(Response::new)
    }

    async fn flush(&self, request: Request<v1::FlushRequest>) -> Result<Response<v1::FlushReply>, Status> {
        let mut call = Call::of(&request);
        let request = request.into_inner();
        let experiment = request.experiment.clone();
        let reply = self.timed(Timed::Flush, &mut call, self.requests.flush(request)).await;
        call.controlled("flush", &experiment, &reply);
        reply.map(Response::new)
    }

    async fn control(&self, request: Request<v1::ControlRequest>) -> Result<Response<v1::ControlReply>, Status> {
        let mut call = Call::of(&request);
        let request = request.into_inner();
        let (experiment, action) = (request.experiment.clone(), audit::word(request.action.as_ref()));
        let client = call.client.as_ref().map(ToString::to_string);
        let reply = self.timed(Timed::Control, &mut call, self.requests.control_by(client, request)).await;
        call.controlled(action, &experiment, &reply);
        reply.map(Response::new)
    }

    async fn prepare_upgrade(
        &self,
        request: Request<v1::PrepareUpgradeRequest>,
    ) -> Result<Response<v1::PrepareUpgradeReply>, Status> {
        let mut call = Call::of(&request);
        let client = call.client.clone();
        let answer = async {
            match client {
                Some(client) => Err(Status::permission_denied(format!(
                    "the coordinator serves other clients than {client}, too: only the operator, who has its \
                     client.json, can end it"
                ))),
                None => self.requests.prepare_upgrade(request.into_inner()).await,
            }
        };
        let reply = self.timed(Timed::PrepareUpgrade, &mut call, answer).await;
        call.controlled("prepare-upgrade", "", &reply);
        reply.map(Response::new)
    }

    async fn read_table(
        &self,
        request: Request<v1::ReadTableRequest>,
    ) -> Result<Response<Self::ReadTableStream>, Status> {
        let mut call = Call::of(&request);
        let request = request.into_inner();
        let experiment = request.experiment.clone();
        let pieces = self.timed(Timed::ReadTable, &mut call, self.requests.read_table(request)).await;
        call.controlled("read", &experiment, &pieces);
        let counters = Arc::clone(&self.counters);
        let counted = pieces?.inspect_ok(move |piece| {
            counters.sent_bytes.inc_by(piece.data.len() as u64);
        });
        Ok(Response::new(Box::pin(counted)))
    }

    async fn stage_part(&self, request: Request<v1::StagePartRequest>) -> Result<Response<v1::StagePartReply>, Status> {
        self.check(Caller::of(&request), Callers::Workers)?;
        self.requests.stage_part(request.into_inner()).await.map(Response::new)
    }

    async fn read_part(&self, request: Request<v1::ReadPartRequest>) -> Result<Response<Self::ReadPartStream>, Status> {
        let mut call = Call::of(&request);
        let chunks = self.requests.read_part(request.into_inner());
        let chunks = self.timed(Timed::ReadPart, &mut call, chunks).await?;
        let counters = Arc::clone(&self.counters);
        let counted = chunks.inspect_ok(move |chunk| {
            counters.sent_bytes.inc_by(chunk.data.len() as u64);
        });
        Ok(Response::new(Box::pin(counted)))
    }
}

/// Turns a worker's messages into events.
struct Reader {
    requests: Requests,
    counters: Arc<Counters>,
    call: Call,
    conn: ConnId,
    address: String,
}

impl Reader {
    /// Reads until the stream ends, or its token.
    async fn read(self, mut stream: Streaming<v1::WorkerMessage>, revoked: CancellationToken) {
        let conn = self.conn;
        let mut checker = Checker::new(self.requests.clone());
        let mut first = true;
        let abrupt = loop {
            let next = async {
                match std::mem::take(&mut first) {
                    true => tokio::time::timeout(HELLO_WAIT, stream.message()).await.unwrap_or(Ok(None)),
                    false => stream.message().await,
                }
            };
            let message = tokio::select! {
                message = next => message,
                () = revoked.cancelled() => break true,
            };
            match message {
                Ok(Some(v1::WorkerMessage { body: Some(body) })) => {
                    let (content, room) = match &body {
                        Body::Hello(hello) => {
                            checker.greeted(hello);
                            (Content::of_rows(0), None)
                        }
                        Body::HandIn(hand_in) => {
                            (checker.content(hand_in).await, self.requests.limits.queued(hand_in.rows.len()).await)
                        }
                        _ => (Content::of_rows(0), None),
                    };
                    self.note(&body, &content);
                    let event = Box::new(Event::Message { conn, address: self.address.clone(), body, content });
                    if self.requests.command(Command::Event { event, room }).await.is_err() {
                        return;
                    }
                }
                // A message of a later protocol.
                Ok(Some(v1::WorkerMessage { body: None })) => {}
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        let _ = self.requests.command(Event::Disconnected { conn, abrupt }.into()).await;
    }

    /// Counts a message, and logs what an operator looks for.
    fn note(&self, body: &Body, content: &Content) {
        match body {
            Body::Hello(hello) => self.call.joined(hello),
            Body::HandIn(hand_in) => {
                self.counters.hand_ins.inc();
                self.counters.rows.inc_by(content.rows.as_ref().map_or(0, |rows| u64::from(*rows)));
                self.counters.row_bytes.inc_by(hand_in.rows.len() as u64);
                self.counters.jobs.inc_by(hand_in.jobs);
            }
            Body::Failure(failure) => {
                self.counters.failure(failure.kind());
                self.call.failed(failure);
            }
            _ => {}
        }
    }
}
