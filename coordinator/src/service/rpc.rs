//! The gRPC calls: authorisation, conversion to requests and events, streams.

use powersweep_experiments::Digest;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use futures::Stream;
use powersweep_proto::access::Secret;
use powersweep_proto::v1;
use powersweep_proto::v1::worker_message::Body;
use powersweep_results::{part, tasks, wire};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

use super::auth::{self, Callers};
use super::driver::{self, Command};
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
    next_conn: Arc<AtomicU64>,
}

type Boxed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Rpc {
    pub(super) fn new(requests: Requests, access: Arc<Authority>) -> Rpc {
        Rpc { requests, access, next_conn: Arc::new(AtomicU64::new(1)) }
    }

    async fn check(&self, token: Option<Secret>, callers: Callers) -> Result<Admitted, Status> {
        auth::check(&self.access, token, callers).await
    }
}

#[tonic::async_trait]
impl v1::farm_server::Farm for Rpc {
    type WorkStream = ReceiverStream<Result<v1::FarmMessage, Status>>;
    type FetchLogStream = Boxed<v1::Chunk>;

    async fn work(&self, request: Request<Streaming<v1::WorkerMessage>>) -> Result<Response<Self::WorkStream>, Status> {
        let caller = self.check(auth::token(&request), Callers::Workers).await?;
        let address = request.remote_addr().map(|address| address.to_string()).unwrap_or_default();
        let conn = self.next_conn.fetch_add(1, Ordering::Relaxed);
        let (outbox, inbox) = driver::outbox();
        self.requests.command(Command::Attach { conn, outbox }).await?;
        tokio::spawn(read(self.requests.clone(), conn, address, request.into_inner(), caller.revoked));
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
        stage(&self.requests, header, data.freeze()).await?;
        Ok(Response::new(v1::UploadPartReply { bytes }))
    }

    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::SubmitReply>, Status> {
        self.check(auth::token(&request), Callers::Clients).await?;
        self.requests.submit(request.into_inner()).await.map(Response::new)
    }

    async fn status(&self, request: Request<v1::StatusRequest>) -> Result<Response<v1::StatusReply>, Status> {
        self.check(auth::token(&request), Callers::Clients).await?;
        self.requests.status(request.into_inner()).await.map(Response::new)
    }

    async fn flush(&self, request: Request<v1::FlushRequest>) -> Result<Response<v1::FlushReply>, Status> {
        self.check(auth::token(&request), Callers::Clients).await?;
        self.requests.flush(request.into_inner()).await.map(Response::new)
    }

    async fn control(&self, request: Request<v1::ControlRequest>) -> Result<Response<v1::ControlReply>, Status> {
        self.check(auth::token(&request), Callers::Clients).await?;
        self.requests.control(request.into_inner()).await.map(Response::new)
    }
}

/// Turns a worker's messages into events until its stream ends, or its token.
async fn read(
    requests: Requests,
    conn: ConnId,
    address: String,
    mut stream: Streaming<v1::WorkerMessage>,
    revoked: CancellationToken,
) {
    let abrupt = loop {
        let message = tokio::select! {
            message = stream.message() => message,
            () = revoked.cancelled() => break true,
        };
        match message {
            Ok(Some(v1::WorkerMessage { body: Some(body) })) => {
                let rows = rows_of(&body);
                let event = Event::Message { conn, address: address.clone(), body, rows };
                if requests.command(Command::Event(event)).await.is_err() {
                    return;
                }
            }
            // A message of a later protocol.
            Ok(Some(v1::WorkerMessage { body: None })) => {}
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    let _ = requests.command(Command::Event(Event::Disconnected { conn, abrupt })).await;
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
