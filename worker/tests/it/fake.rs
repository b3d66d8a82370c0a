//! A gRPC server on a free loopback port whose sessions the test answers by hand.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use powersweep_experiments::Digest;
use powersweep_proto::PROTOCOL;
use powersweep_proto::access::Role;
use powersweep_proto::client::Address;
use powersweep_proto::v1::farm_message::Body as ToWorker;
use powersweep_proto::v1::farm_server::{Farm, FarmServer};
use powersweep_proto::v1::worker_message::Body as FromWorker;
use powersweep_proto::v1::{self, farm_message, worker_message};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

/// Far longer than any step here: a test that waits this long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the server answers by itself.
#[derive(Default)]
pub(crate) struct Facts {
    /// Log that any fetch gets.
    pub(crate) log: Vec<u8>,
    /// Fetches so far.
    pub(crate) fetches: usize,
    /// Uploads: the first message, and the number of bytes.
    pub(crate) uploads: Vec<(v1::UploadPartRequest, usize)>,
    /// The address that StagePart gives; StagePart is not implemented without one. The next welcome offers direct uploads.
    pub(crate) inbox: Option<String>,
    /// Calls of StagePart.
    pub(crate) staged: Vec<v1::StagePartRequest>,
    /// The answer to announced objects: not found.
    pub(crate) loses_objects: bool,
    /// Token that calls must have.
    pub(crate) token: Option<&'static str>,
}

/// One session, from `Hello` on.
pub(crate) struct Conn {
    pub(crate) hello: v1::Hello,
    direct_uploads: bool,
    send: mpsc::Sender<Result<v1::FarmMessage, Status>>,
    receive: Streaming<v1::WorkerMessage>,
}

/// The server.
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    pub(crate) facts: Arc<Mutex<Facts>>,
    conns: mpsc::Receiver<Conn>,
    server: tokio::task::JoinHandle<()>,
}

struct Service {
    facts: Arc<Mutex<Facts>>,
    conns: mpsc::Sender<Conn>,
}

impl Fake {
    pub(crate) async fn start() -> Fake {
        Fake::start_at("127.0.0.1:0".parse().expect("an address"), Arc::default()).await
    }

    async fn start_at(address: SocketAddr, facts: Arc<Mutex<Facts>>) -> Fake {
        let listener = TcpListener::bind(address).await.expect("the port is free");
        let address = listener.local_addr().expect("it is bound");
        let (sender, conns) = mpsc::channel(16);
        let service = FarmServer::new(Service { facts: Arc::clone(&facts), conns: sender });
        let server = tonic::transport::Server::builder().add_service(service);
        let server = tokio::spawn(async move {
            server.serve_with_incoming(TcpListenerStream::new(listener)).await.expect("it serves");
        });
        Fake { address, facts, conns, server }
    }

    /// How a worker reaches it.
    pub(crate) fn coordinator(&self) -> Address {
        Address::unencrypted(format!("http://{}", self.address), Role::Worker, "guess")
    }

    /// The next session, from its greeting on.
    pub(crate) async fn accept(&mut self) -> Conn {
        tokio::time::timeout(PATIENCE, self.conns.recv()).await.expect("a worker connects").expect("it serves")
    }

    /// Stops and starts again at the same address; its connections break.
    pub(crate) async fn restart(self) -> Fake {
        let Fake { address, facts, server, conns } = self;
        drop(conns);
        server.abort();
        server.await.ok();
        Fake::start_at(address, facts).await
    }
}

impl Conn {
    pub(crate) async fn send(&self, body: ToWorker) {
        self.send.send(Ok(v1::FarmMessage { body: Some(body) })).await.expect("the worker listens");
    }

    pub(crate) async fn welcome(&self, epoch: u64, adopted: Vec<v1::LeaseId>) {
        let direct_uploads = self.direct_uploads;
        let welcome =
            v1::Welcome { epoch, heartbeat_s: 0.2, lease_s: 10.0, adopted, protocol: PROTOCOL, direct_uploads };
        self.send(farm_message::Body::Welcome(welcome)).await;
    }

    pub(crate) async fn experiment(&self, manifest: &str, tables: &[&str], digests: Vec<(String, Digest)>) {
        let experiment = v1::Experiment {
            name: "test".into(),
            generation: 1,
            manifest: manifest.to_owned(),
            digests: digests.into_iter().map(|(log, d)| (log, d.as_bytes().to_vec().into())).collect(),
            tables: tables.iter().map(|t| (*t).to_owned()).collect(),
            ..Default::default()
        };
        self.send(farm_message::Body::Experiment(experiment)).await;
    }

    pub(crate) async fn lease(&self, counter: u64, start: u64, end: u64) {
        let lease = v1::Lease {
            id: Some(v1::LeaseId { epoch: 1, counter }),
            experiment: "test".into(),
            generation: 1,
            ranges: vec![v1::IndexRange { start, end }],
            attempt: 1,
        };
        self.send(farm_message::Body::Lease(lease)).await;
    }

    pub(crate) async fn acknowledge(&self, id: u64) {
        self.send(farm_message::Body::Ack(v1::Ack { ids: vec![id], ..Default::default() })).await;
    }

    /// The next message that is not a heartbeat; `None` when the worker has ended.
    pub(crate) async fn next(&mut self) -> Option<FromWorker> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.receive.message()).await.expect("the worker speaks");
            match message.ok()??.body? {
                worker_message::Body::Heartbeat(_) => {}
                body => return Some(body),
            }
        }
    }

    /// Waits for a heartbeat that reports this number of busy slots.
    pub(crate) async fn busy(&mut self, slots: u32) {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.receive.message()).await.expect("the worker speaks");
            match message.ok().flatten().and_then(|m| m.body) {
                Some(FromWorker::Heartbeat(h)) if h.busy_slots == slots => return,
                Some(FromWorker::Heartbeat(_)) => {}
                other => panic!("expected a heartbeat, got {other:?}"),
            }
        }
    }

    pub(crate) async fn hand_in(&mut self) -> v1::HandIn {
        match self.next().await {
            Some(FromWorker::HandIn(hand_in)) => hand_in,
            other => panic!("expected a hand-in, got {other:?}"),
        }
    }

    /// Hand-ins until they have this number of tasks.
    pub(crate) async fn hand_ins(&mut self, tasks: usize) -> Vec<v1::HandIn> {
        let mut all = Vec::new();
        while all.iter().map(indices).map(|i| i.len()).sum::<usize>() < tasks {
            all.push(self.hand_in().await);
        }
        all
    }
}

/// The tasks of a hand-in.
pub(crate) fn indices(hand_in: &v1::HandIn) -> Vec<u64> {
    hand_in.done.iter().flat_map(|d| d.indices.clone()).collect()
}

type Answer<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Farm for Service {
    type WorkStream = Answer<v1::FarmMessage>;
    type FetchLogStream = Answer<v1::Chunk>;
    type ReadTableStream = Answer<v1::TablePiece>;
    type ReadPartStream = Answer<v1::Chunk>;

    async fn work(&self, request: Request<Streaming<v1::WorkerMessage>>) -> Result<Response<Self::WorkStream>, Status> {
        let token = request.metadata().get("authorization").map(|t| t.to_str().unwrap_or_default().to_owned());
        if let Some(wanted) = self.facts.lock().expect("no panic").token
            && token != Some(format!("Bearer {wanted}"))
        {
            return Err(Status::unauthenticated("the worker token is missing or wrong"));
        }
        let mut receive = request.into_inner();
        let Some(FromWorker::Hello(hello)) = receive.message().await?.and_then(|m| m.body) else {
            return Err(Status::invalid_argument("Hello comes first"));
        };
        let (send, answers) = mpsc::channel(64);
        let direct_uploads = self.facts.lock().expect("no panic").inbox.is_some();
        self.conns
            .send(Conn { hello, direct_uploads, send, receive })
            .await
            .map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }

    async fn fetch_log(&self, _: Request<v1::FetchLogRequest>) -> Result<Response<Self::FetchLogStream>, Status> {
        let mut facts = self.facts.lock().expect("no panic");
        facts.fetches += 1;
        if facts.log.is_empty() {
            return Err(Status::not_found("no such log here"));
        }
        let total_bytes = facts.log.len() as u64;
        let chunks: Vec<_> =
            facts.log.chunks(7).map(|c| Ok(v1::Chunk { data: c.to_vec().into(), total_bytes })).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks))))
    }

    async fn upload_part(
        &self,
        request: Request<Streaming<v1::UploadPartRequest>>,
    ) -> Result<Response<v1::UploadPartReply>, Status> {
        let mut messages = request.into_inner();
        let first = messages.next().await.ok_or_else(|| Status::invalid_argument("empty"))??;
        let mut bytes = first.data.len();
        while let Some(message) = messages.next().await {
            bytes += message?.data.len();
        }
        let mut facts = self.facts.lock().expect("no panic");
        let is_lost = first.staged_bytes > 0 && facts.loses_objects;
        facts.uploads.push((first, bytes));
        if is_lost {
            return Err(Status::not_found("the object is not there"));
        }
        Ok(Response::new(v1::UploadPartReply { bytes: bytes as u64 }))
    }

    async fn stage_part(&self, request: Request<v1::StagePartRequest>) -> Result<Response<v1::StagePartReply>, Status> {
        let mut facts = self.facts.lock().expect("no panic");
        facts.staged.push(request.into_inner());
        let url = facts.inbox.clone().ok_or_else(|| Status::unimplemented("an older coordinator"))?;
        let headers = [("x-kind".to_owned(), "block".to_owned())].into();
        Ok(Response::new(v1::StagePartReply { url, headers }))
    }

    async fn upload_log(
        &self,
        _: Request<Streaming<v1::UploadLogRequest>>,
    ) -> Result<Response<v1::UploadLogReply>, Status> {
        Err(Status::unimplemented("not a worker's call"))
    }

    async fn submit(&self, _: Request<v1::SubmitRequest>) -> Result<Response<v1::SubmitReply>, Status> {
        Err(Status::unimplemented("not a worker's call"))
    }

    async fn status(&self, _: Request<v1::StatusRequest>) -> Result<Response<v1::StatusReply>, Status> {
        Err(Status::unimplemented("not a worker's call"))
    }

    async fn flush(&self, _: Request<v1::FlushRequest>) -> Result<Response<v1::FlushReply>, Status> {
        Err(Status::unimplemented("not a worker's call"))
    }

    async fn read_table(&self, _: Request<v1::ReadTableRequest>) -> Result<Response<Self::ReadTableStream>, Status> {
        Err(Status::unimplemented("not a worker's call"))
    }

    async fn read_part(&self, _: Request<v1::ReadPartRequest>) -> Result<Response<Self::ReadPartStream>, Status> {
        Err(Status::unimplemented("not a worker's call"))
    }

    async fn prepare_upgrade(
        &self,
        _: Request<v1::PrepareUpgradeRequest>,
    ) -> Result<Response<v1::PrepareUpgradeReply>, Status> {
        Err(Status::unimplemented("not a worker's call"))
    }

    async fn control(&self, _: Request<v1::ControlRequest>) -> Result<Response<v1::ControlReply>, Status> {
        Err(Status::unimplemented("not here"))
    }
}
