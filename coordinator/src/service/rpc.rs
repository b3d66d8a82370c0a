//! The gRPC calls: authorisation, conversion to requests and events, streams.

use powersweep_experiments::Digest;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use powersweep_proto::access::Secret;
use powersweep_proto::v1;
use powersweep_proto::v1::worker_message::Body;
use powersweep_results::{part, tasks, wire};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Response, Status, Streaming};
use uuid::Uuid;

use super::audit::{self, Call};
use super::auth::{self, Callers};
use super::driver::{self, Command};
use super::metrics::{Counts, Timed};
use super::requests::{Requests, digest_of, store_status};
use super::{CHUNK_BYTES, LOG_BYTES_MAX};
use crate::access::{Admitted, Authority};
use crate::farm::{ConnId, Event};
use crate::records::Table;
use crate::store::MAX_PART_BYTES;

/// The service.
pub(super) struct Rpc {
    requests: Requests,
    access: Arc<Authority>,
    counts: Arc<Counts>,
    next_conn: Arc<AtomicU64>,
}

type Boxed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Rpc {
    pub(super) fn new(requests: Requests, access: Arc<Authority>, counts: Arc<Counts>) -> Rpc {
        Rpc { requests, access, counts, next_conn: Arc::new(AtomicU64::new(1)) }
    }

    async fn check(&self, token: Option<Secret>, callers: Callers) -> Result<Admitted, Status> {
        let admitted = auth::check(&self.access, token, callers).await;
        match admitted.as_ref().map_err(Status::code) {
            Ok(_) => {}
            Err(Code::PermissionDenied) => self.counts.wrong_roles.add(1),
            Err(_) => self.counts.unknown_tokens.add(1),
        }
        admitted
    }

    /// Admits a client, and notes the time that its request takes.
    async fn timed<T>(
        &self,
        timed: Timed,
        call: &mut Call,
        answer: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        call.caller = self.check(call.token.take(), Callers::Clients).await?.fingerprint;
        let begun = Instant::now();
        let answer = answer.await;
        self.counts.request(timed).observe(begun.elapsed());
        answer
    }
}

#[tonic::async_trait]
impl v1::farm_server::Farm for Rpc {
    type WorkStream = ReceiverStream<Result<v1::FarmMessage, Status>>;
    type FetchLogStream = Boxed<v1::Chunk>;

    async fn work(&self, request: Request<Streaming<v1::WorkerMessage>>) -> Result<Response<Self::WorkStream>, Status> {
        let mut call = Call::of(&request);
        let caller = self.check(call.token.take(), Callers::Workers).await?;
        call.caller = caller.fingerprint;
        self.counts.streams.add(1);
        let address = request.remote_addr().map(|address| address.to_string()).unwrap_or_default();
        let conn = self.next_conn.fetch_add(1, Ordering::Relaxed);
        let (outbox, inbox) = driver::outbox();
        self.requests.command(Command::Attach { conn, outbox }).await?;
        let reader = Reader { requests: self.requests.clone(), counts: Arc::clone(&self.counts), call, conn, address };
        tokio::spawn(reader.read(request.into_inner(), caller.revoked));
        Ok(Response::new(ReceiverStream::new(inbox)))
    }

    async fn fetch_log(&self, request: Request<v1::FetchLogRequest>) -> Result<Response<Self::FetchLogStream>, Status> {
        self.check(auth::token(&request), Callers::Both).await?;
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
        self.check(auth::token(&request), Callers::Clients).await?;
        let mut stream = request.into_inner();
        let mut digest: Option<Digest> = None;
        let mut data = BytesMut::new();
        while let Some(message) = stream.next().await {
            let message = message?;
            if digest.is_none() {
                digest = Some(digest_of(&message.digest).map_err(Status::invalid_argument)?);
            }
            grow(&mut data, &message.data, LOG_BYTES_MAX)?;
        }
        let digest = digest.ok_or_else(|| Status::invalid_argument("the first message must name the digest"))?;
        self.counts.log_bytes.add(data.len() as u64);
        Ok(Response::new(self.requests.put_log(digest, data.freeze()).await?))
    }

    async fn upload_part(
        &self,
        request: Request<Streaming<v1::UploadPartRequest>>,
    ) -> Result<Response<v1::UploadPartReply>, Status> {
        self.check(auth::token(&request), Callers::Workers).await?;
        let mut stream = request.into_inner();
        let mut header: Option<v1::UploadPartRequest> = None;
        let mut data = BytesMut::new();
        while let Some(message) = stream.next().await {
            let message = message?;
            grow(&mut data, &message.data, MAX_PART_BYTES)?;
            header.get_or_insert(v1::UploadPartRequest { data: Bytes::new(), ..message });
        }
        let header = header.ok_or_else(|| Status::invalid_argument("the first message must name the part"))?;
        let bytes = data.len() as u64;
        self.counts.upload_bytes.add(bytes);
        stage(&self.requests, header, data.freeze()).await?;
        Ok(Response::new(v1::UploadPartReply { bytes }))
    }

    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::SubmitReply>, Status> {
        let mut call = Call::of(&request);
        let request = request.into_inner();
        let dry_run = request.dry_run;
        let reply = self.timed(Timed::Submit, &mut call, self.requests.submit(request)).await;
        if !dry_run {
            call.submitted(&reply);
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
        let reply = self.timed(Timed::Control, &mut call, self.requests.control(request)).await;
        call.controlled(action, &experiment, &reply);
        reply.map(Response::new)
    }
}

/// Turns a worker's messages into events.
struct Reader {
    requests: Requests,
    counts: Arc<Counts>,
    call: Call,
    conn: ConnId,
    address: String,
}

impl Reader {
    /// Reads until the stream ends, or its token.
    async fn read(self, mut stream: Streaming<v1::WorkerMessage>, revoked: CancellationToken) {
        let conn = self.conn;
        let abrupt = loop {
            let message = tokio::select! {
                message = stream.message() => message,
                () = revoked.cancelled() => break true,
            };
            match message {
                Ok(Some(v1::WorkerMessage { body: Some(body) })) => {
                    let rows = rows_of(&body);
                    self.note(&body, rows);
                    let event = Event::Message { conn, address: self.address.clone(), body, rows };
                    if self.requests.command(Command::Event(event)).await.is_err() {
                        return;
                    }
                }
                // A message of a later protocol.
                Ok(Some(v1::WorkerMessage { body: None })) => {}
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        let _ = self.requests.command(Command::Event(Event::Disconnected { conn, abrupt })).await;
    }

    /// Counts a message, and logs what an operator looks for.
    fn note(&self, body: &Body, rows: u32) {
        match body {
            Body::Hello(hello) => self.call.joined(hello),
            Body::HandIn(hand_in) => {
                self.counts.hand_ins.add(1);
                self.counts.rows.add(rows.into());
                self.counts.row_bytes.add(hand_in.rows.len() as u64);
            }
            Body::Failure(failure) => {
                self.counts.failure(failure.kind());
                self.call.failed(failure);
            }
            _ => {}
        }
    }
}

/// Number of rows in a hand-in's batch; 0 if the batch cannot be decoded, which the farm rejects.
fn rows_of(body: &Body) -> u32 {
    let Body::HandIn(hand_in) = body else { return 0 };
    match wire::rows(&hand_in.rows, &tasks::schema()) {
        Ok(rows) => u32::try_from(rows).unwrap_or(u32::MAX),
        Err(error) => {
            tracing::warn!("a hand-in of {} cannot be read: {error}", hand_in.experiment);
            0
        }
    }
}

/// Checks an upload and puts it into the staging folder.
async fn stage(requests: &Requests, header: v1::UploadPartRequest, data: Bytes) -> Result<(), Status> {
    let table = Table::from_name(&header.table).filter(|table| matches!(table, Table::Jobs | Table::Series));
    let table = table.ok_or_else(|| Status::invalid_argument(format!("table {:?} has no uploads", header.table)))?;
    let part_id = Uuid::from_slice(&header.part_id).map_err(|_| Status::invalid_argument("part_id is not a UUID"))?;
    let footer = part::read_footer(&data)
        .map_err(|error| Status::invalid_argument(format!("the object is no part: {error}")))?;
    if footer.part_id != part_id || footer.experiment != header.experiment {
        return Err(Status::invalid_argument("the object's footer names another part"));
    }
    requests.objects()?.stage(&header.experiment, table, part_id, data).await.map_err(store_status)
}

fn grow(data: &mut BytesMut, more: &[u8], most: u64) -> Result<(), Status> {
    if (data.len() + more.len()) as u64 > most {
        return Err(Status::resource_exhausted(format!("more than {most} bytes")));
    }
    data.extend_from_slice(more);
    Ok(())
}
