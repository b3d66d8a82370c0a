//! Workers and clients that break the rules, over gRPC against a real coordinator.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter};
use powersweep_coordinator::service::{Handle, ServeOptions, serve};
use powersweep_coordinator::store::{ModelStore, Store};
use powersweep_coordinator::view::{State, read_table_without_uploads};
use powersweep_coordinator::{Config, ServeError};
use powersweep_experiments::{Digest, Manifest, Sweep};
use powersweep_proto::access::Role;
use powersweep_proto::client::{Address, Client, Target};
use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as FromFarm;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use powersweep_results::Table;
use powersweep_results::{columns, jobs, part, series, tasks, wire};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};
use uuid::Uuid;

use crate::mutations::resident_bytes;
use crate::store_samples::column;

/// Far beyond what anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Farm {
    pub(crate) handle: Handle,
    pub(crate) store: Arc<ModelStore>,
    shutdown: CancellationToken,
}

impl Farm {
    pub(crate) async fn start() -> Farm {
        Farm::start_on(ModelStore::new(), Config::default()).await.expect("it serves")
    }

    pub(crate) async fn start_on(store: ModelStore, config: Config) -> Result<Farm, ServeError> {
        Farm::start_with(store, |local| ServeOptions { config, ..local }).await
    }

    pub(crate) async fn start_with(
        store: ModelStore,
        options: impl FnOnce(ServeOptions) -> ServeOptions,
    ) -> Result<Farm, ServeError> {
        let (store, shutdown) = (Arc::new(store), CancellationToken::new());
        let local = ServeOptions::local(Arc::clone(&store) as Arc<dyn Store>);
        let options = options(ServeOptions { drain_limit: Duration::ZERO, insecure: true, ..local });
        let handle = serve(options, shutdown.clone()).await?;
        Ok(Farm { handle, store, shutdown })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.handle.local_addr())
    }

    /// A connection with the token of a role.
    pub(crate) async fn client(&self, role: Role) -> Client {
        let address = Address::unencrypted(self.url(), role, self.handle.access(role).token.reveal());
        Target::new(&address).expect("an address").connect().await.expect("it listens")
    }

    /// Submits an experiment of this number of tasks.
    pub(crate) async fn submit(&self, name: &str, seeds: u64, more: &str) -> Sweep {
        let text = format!(
            "version = 1\nname = \"{name}\"\n{more}\nseeds = {{ from = 1, count = {seeds} }}\n[workloads.w]\n\
             source = \"lublin\"\n[policies.q]\n"
        );
        let request = v1::SubmitRequest { manifest: text.clone(), ..Default::default() };
        self.handle.requests().submit(request).await.expect("accepted");
        Sweep::new(Manifest::parse("test", &text).expect("valid"), BTreeMap::new()).expect("no log is needed")
    }

    pub(crate) async fn status(&self, name: &str) -> v1::ExperimentStatus {
        let request = v1::StatusRequest { experiment: name.to_owned(), max_failures: 10, ..Default::default() };
        self.handle.requests().status(request).await.expect("it answers").experiments.remove(0)
    }

    pub(crate) async fn until(&self, name: &str, state: v1::ExperimentState) -> v1::ExperimentStatus {
        let begun = Instant::now();
        loop {
            let status = self.status(name).await;
            if status.state() == state {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "{status:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(PATIENCE, self.handle.wait()).await.expect("it ends").expect("in good order");
    }
}

/// A worker made by hand.
pub(crate) struct Worker {
    pub(crate) client: Client,
    hello: v1::Hello,
    outbound: mpsc::Sender<v1::WorkerMessage>,
    inbound: Streaming<v1::FarmMessage>,
    leases: Vec<v1::Lease>,
    said: u64,
}

/// This build's versions, as its workers name them.
pub(crate) fn versions() -> v1::Versions {
    powersweep_proto::versions("test", columns::fingerprint(&tasks::schema()))
}

pub(crate) fn hello(worker: &str) -> v1::Hello {
    v1::Hello {
        worker: worker.to_owned(),
        worker_id: Uuid::new_v4().as_bytes().to_vec().into(),
        slots: 4,
        versions: Some(versions()),
        ..Default::default()
    }
}

impl Worker {
    pub(crate) async fn greet(farm: &Farm) -> Worker {
        Worker::connect(farm, hello("w")).await
    }

    async fn connect(farm: &Farm, hello: v1::Hello) -> Worker {
        let mut client = farm.client(Role::Worker).await;
        let (outbound, messages) = mpsc::channel(64);
        let message = v1::WorkerMessage { body: Some(ToFarm::Hello(hello.clone())) };
        outbound.send(message).await.expect("open");
        let inbound = client.work(ReceiverStream::new(messages)).await.expect("accepted").into_inner();
        Worker { client, hello, outbound, inbound, leases: Vec::new(), said: 0 }
    }

    /// Connects again with this lease.
    pub(crate) async fn again(self, farm: &Farm, held: v1::LeaseState) -> Worker {
        let said = self.said;
        Worker { said, ..Worker::connect(farm, v1::Hello { held: vec![held], ..self.hello }).await }
    }

    /// Waits for the end of the stream.
    pub(crate) async fn ended(&mut self) {
        while tokio::time::timeout(PATIENCE, self.inbound.message())
            .await
            .expect("it speaks")
            .is_ok_and(|m| m.is_some())
        {}
    }

    pub(crate) async fn read(&mut self) -> FromFarm {
        let message = tokio::time::timeout(PATIENCE, self.inbound.message()).await.expect("it speaks");
        let body = message.expect("no error").expect("not the end").body.expect("a body");
        if let FromFarm::Lease(lease) = &body {
            self.leases.push(lease.clone());
        }
        body
    }

    pub(crate) async fn lease(&mut self) -> v1::Lease {
        while self.leases.is_empty() {
            self.read().await;
        }
        self.leases.remove(0)
    }

    /// Sends a hand-in; `Err` with the reason if it is rejected.
    pub(crate) async fn hand_in(&mut self, hand_in: v1::HandIn) -> Result<(), String> {
        let id = self.send(hand_in).await;
        loop {
            if let FromFarm::Ack(ack) = self.read().await {
                if let Some(rejected) = ack.rejected.into_iter().find(|rejected| rejected.id == id) {
                    return Err(rejected.reason);
                }
                if ack.ids.contains(&id) {
                    return Ok(());
                }
            }
        }
    }

    /// Sends a hand-in, and returns its id.
    pub(crate) async fn send(&mut self, hand_in: v1::HandIn) -> u64 {
        self.said += 1;
        let id = self.said;
        let body = Some(ToFarm::HandIn(v1::HandIn { id, ..hand_in }));
        self.outbound.send(v1::WorkerMessage { body }).await.expect("open");
        id
    }

    pub(crate) async fn upload(&mut self, request: v1::UploadPartRequest) -> Result<u64, Status> {
        let reply = self.client.upload_part(tokio_stream::iter([request])).await?;
        Ok(reply.into_inner().bytes)
    }
}

/// Rows of a table whose keys are those of tasks.
pub(crate) fn rows(schema: &SchemaRef, sweep: &Sweep, indices: &[u64]) -> RecordBatch {
    let tasks: Vec<_> = indices.iter().map(|index| sweep.task(*index).expect("a task")).collect();
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        match field.name().as_str() {
            "experiment" => Arc::new(StringArray::from_iter_values(tasks.iter().map(|task| &*task.experiment))),
            "task_id" => Arc::new(StringArray::from_iter_values(tasks.iter().map(|task| task.task_id.to_string()))),
            "worker" => Arc::new(StringArray::from(vec!["w"; tasks.len()])),
            "task_index" => Arc::new(Int64Array::from_iter_values(tasks.iter().map(|task| task.index as i64))),
            _ => column(field, 0..tasks.len() as u64),
        }
    });
    RecordBatch::try_new(Arc::clone(schema), columns.collect()).expect("columns made from the schema fit it")
}

/// A hand-in of the first task of a lease, or of another one.
pub(crate) fn hand_in(lease: &v1::Lease, sweep: &Sweep, named: u64, found: u64) -> v1::HandIn {
    v1::HandIn {
        experiment: lease.experiment.clone(),
        generation: lease.generation,
        done: vec![v1::LeaseTasks { lease: lease.id, indices: vec![named] }],
        rows: wire::encode(&rows(&tasks::schema(), sweep, &[found])).expect("small"),
        ..Default::default()
    }
}

/// An object of a table, and its name in a hand-in.
pub(crate) fn object(
    lease: &v1::Lease,
    schema: &SchemaRef,
    sweep: &Sweep,
    index: u64,
) -> (v1::UploadPartRequest, v1::Upload) {
    let (experiment, part_id) = (lease.experiment.clone(), Uuid::now_v7());
    let footer = part::Footer::new(&experiment, part_id, 1);
    let data = part::encode(schema, &[rows(schema, sweep, &[index])], &footer).expect("encodes");
    let (table, part_id) = ("jobs".to_owned(), Bytes::copy_from_slice(part_id.as_bytes()));
    let named = v1::Upload { table: table.clone(), part_id: part_id.clone(), rows: 1, bytes: data.len() as u64 };
    (v1::UploadPartRequest { experiment, table, part_id, lease: lease.id, data, staged_bytes: 0 }, named)
}

/// The object with pages before the begin of the file.
fn with_negative_offsets(data: &Bytes) -> Bytes {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(data).expect("a part");
    let groups = metadata.row_groups().iter().map(|group| {
        let columns = group.columns().iter().map(|column| {
            let builder = column.clone().into_builder().set_data_page_offset(-7).set_dictionary_page_offset(Some(-7));
            builder.build().expect("a column")
        });
        group.clone().into_builder().set_column_metadata(columns.collect()).build().expect("a group")
    });
    let groups = groups.collect();
    let changed = metadata.into_builder().set_row_groups(groups).build();
    let footer_bytes = u32::from_le_bytes(data[data.len() - 8..data.len() - 4].try_into().expect("4 bytes"));
    let mut out = data[..data.len() - 8 - footer_bytes as usize].to_vec();
    ParquetMetaDataWriter::new(&mut out, &changed).finish().expect("written");
    out.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_of_which_no_part_can_be_made_is_refused_and_the_others_are_published() {
    let farm = Farm::start().await;
    let sweep = farm.submit("e", 2, "tables = [\"jobs\"]").await;
    let mut worker = Worker::greet(&farm).await;
    let lease = worker.lease().await;
    let good = |named: v1::Upload| v1::HandIn { uploads: vec![named], ..hand_in(&lease, &sweep, 0, 0) };

    let (_, never_sent) = object(&lease, &jobs::schema(), &sweep, 0);
    let reason = worker.hand_in(good(never_sent)).await.expect_err("rejected");
    assert!(reason.contains("is not known"), "{reason}");
    // The tasks of a hand-in that is rejected without blame are leased again. The lease keeps its other task.
    let first = lease;
    let lease = worker.lease().await;
    worker.leases.push(first);
    let good = |named: v1::Upload| v1::HandIn { uploads: vec![named], ..hand_in(&lease, &sweep, 0, 0) };

    let (mut foreign_lease, _) = object(&lease, &jobs::schema(), &sweep, 0);
    foreign_lease.lease = Some(v1::LeaseId { epoch: 1, counter: 999 });
    let (mut foreign_name, _) = object(&lease, &jobs::schema(), &sweep, 0);
    foreign_name.experiment = "fill-the-disk".to_owned();
    for request in [foreign_lease, foreign_name] {
        let status = worker.upload(request).await.expect_err("refused");
        assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
    }

    let (foreign_schema, _) = object(&lease, &series::schema(), &sweep, 0);
    let (mut damaged, _) = object(&lease, &jobs::schema(), &sweep, 0);
    damaged.data = with_negative_offsets(&damaged.data);
    let (mut cut, _) = object(&lease, &jobs::schema(), &sweep, 0);
    cut.data = cut.data.slice(..cut.data.len() - 3);
    for request in [foreign_schema, damaged, cut] {
        let status = worker.upload(request).await.expect_err("refused");
        assert!(status.code() == Code::InvalidArgument && status.message().contains("no part of jobs"), "{status:?}");
    }

    let (other_task, other_name) = object(&lease, &jobs::schema(), &sweep, 1);
    worker.upload(other_task).await.expect("a sound object");
    let reason = worker.hand_in(good(other_name)).await.expect_err("rejected");
    assert!(reason.contains("which is not handed in"), "{reason}");

    let status = farm.status("e").await;
    assert_eq!((status.done, status.failures.len()), (0, 1), "{status:?}");
    while farm.status("e").await.done < 2 {
        let lease = worker.lease().await;
        for index in lease.ranges.iter().flat_map(|range| range.start..range.end) {
            let (request, named) = object(&lease, &jobs::schema(), &sweep, index);
            worker.upload(request).await.expect("sound");
            let miscounted = v1::Upload { rows: 7, ..named.clone() };
            let right = v1::HandIn { uploads: vec![named], ..hand_in(&lease, &sweep, index, index) };
            assert_eq!(worker.hand_in(right.clone()).await, Ok(()));
            // A repetition whose tasks are done is acknowledged, whatever it says.
            let again = v1::HandIn { uploads: vec![miscounted], ..right };
            assert_eq!(worker.hand_in(again).await, Ok(()));
        }
    }
    let status = farm.until("e", v1::ExperimentState::Finished).await;
    assert_eq!((status.rows_in_parts, status.reason.as_str()), (2, ""));
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_another_task_than_the_one_named_is_rejected() {
    let farm = Farm::start().await;
    let sweep = farm.submit("e", 100, "").await;
    let other = farm.submit("f", 100, "").await;
    let mut worker = Worker::greet(&farm).await;
    let lease = worker.lease().await;
    let first = lease.ranges[0].start;
    let (sweep, other) = if lease.experiment == "e" { (sweep, other) } else { (other, sweep) };
    let foreign_row = hand_in(&lease, &sweep, first, 99);
    let foreign_experiment = hand_in(&lease, &other, first, first);
    let no_rows = v1::HandIn { rows: Bytes::from_static(b"PSB3 no rows"), ..hand_in(&lease, &sweep, first, first) };
    for (wrong, expected) in
        [(foreign_row, "is that of task 99"), (foreign_experiment, "another experiment"), (no_rows, "cannot be read")]
    {
        let reason = worker.hand_in(wrong).await.expect_err("rejected");
        assert!(reason.contains(expected), "{reason}");
        assert_eq!(farm.status(&lease.experiment).await.done, 0);
    }
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_cannot_become_a_part_are_shown_and_nothing_waits_for_them() {
    let farm = Farm::start().await;
    let sweep = farm.submit("e", 1, "tables = [\"jobs\"]").await;
    let mut worker = Worker::greet(&farm).await;
    let lease = worker.lease().await;
    let (request, named) = object(&lease, &jobs::schema(), &sweep, 0);
    worker.upload(request).await.expect("sound");
    // The object is lost after it was checked.
    let part_id = Uuid::from_slice(&named.part_id).expect("an id");
    farm.store.objects().expect("open").discard_staged("e", Table::Jobs, part_id).await.expect("deleted");
    worker.hand_in(v1::HandIn { uploads: vec![named], ..hand_in(&lease, &sweep, 0, 0) }).await.expect("accepted");

    let status = farm.until("e", v1::ExperimentState::Failed).await;
    assert!(status.reason.contains("1 rows cannot be published"), "{status:?}");
    assert_eq!((status.done, status.rows_in_parts), (1, 1), "the rows of the tasks are published");
    let view =
        read_table_without_uploads(State::Own(&*farm.store), "e", Table::Jobs).await.expect("the rows that exist");
    assert_eq!((view.rows.len(), view.counted.map(|of| of.left_out)), (0, Some(1)), "the lost row is counted");
    let requests = farm.handle.requests();
    let flush = requests.flush(v1::FlushRequest { experiment: "e".to_owned() });
    let refused = tokio::time::timeout(PATIENCE, flush).await.expect("answered").expect_err("with the reason");
    assert!(refused.message().contains("cannot be published"), "{refused:?}");
    let delete = |data_too| v1::ControlRequest {
        experiment: "e".to_owned(),
        action: Some(v1::control_request::Action::Delete(v1::Delete { force: true, data_too })),
        ..Default::default()
    };
    let kept = tokio::time::timeout(PATIENCE, requests.control(delete(false))).await.expect("answered");
    assert!(kept.expect_err("rows would be lost").message().contains("--data-too"));
    tokio::time::timeout(PATIENCE, requests.control(delete(true))).await.expect("answered").expect("deleted");
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_status_requests_stops_neither_submits_nor_workers() {
    let farm = Farm::start().await;
    let sweep = farm.submit("e", 100, "").await;
    let over = CancellationToken::new();
    let flood: Vec<_> = (0..64)
        .map(|n| {
            let (requests, over) = (farm.handle.requests().clone(), over.clone());
            tokio::spawn(async move {
                let mut answered = 0_u64;
                while !over.is_cancelled() {
                    let request =
                        v1::StatusRequest { experiment: String::new(), max_failures: n, ..Default::default() };
                    answered += u64::from(requests.status(request).await.is_ok());
                }
                answered
            })
        })
        .collect();
    let mut worker = Worker::greet(&farm).await;
    let begun = Instant::now();
    let lease = worker.lease().await;
    let first = lease.ranges[0].start;
    worker.hand_in(hand_in(&lease, &sweep, first, first)).await.expect("accepted");
    farm.submit("f", 10, "").await;
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    over.cancel();
    for task in flood {
        assert!(task.await.expect("no panic") > 0, "status requests are answered, too");
    }
    farm.stop().await;
}

/// Without limits, the coordinator would take 8 GB here.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_of_many_workers_at_a_time_take_little_memory() {
    const WORKERS: u64 = 250;
    const PIECE: usize = 64 << 10;
    let farm = Farm::start().await;
    let sweep = farm.submit("e", 1, "tables = [\"jobs\"]").await;
    let mut worker = Worker::greet(&farm).await;
    let lease = worker.lease().await;
    let before = resident_bytes();
    let sent = Arc::new(AtomicU64::new(0));
    let mut uploads = Vec::new();
    for _ in 0..WORKERS {
        let (mut client, sent) = (farm.client(Role::Worker).await, Arc::clone(&sent));
        let (first, _) = object(&lease, &jobs::schema(), &sweep, 0);
        let first = v1::UploadPartRequest { data: Bytes::new(), ..first };
        let piece = v1::UploadPartRequest { data: vec![7; PIECE].into(), ..Default::default() };
        let pieces = std::iter::once(first).chain(std::iter::repeat_n(piece, (32 << 20) / PIECE));
        let counted = pieces.inspect(move |_| {
            sent.fetch_add(PIECE as u64, Ordering::Relaxed);
        });
        // The streams stay open after their last piece.
        let stream = futures::StreamExt::chain(tokio_stream::iter(counted), tokio_stream::pending());
        uploads.push(tokio::spawn(async move { client.upload_part(stream).await.map(drop) }));
    }
    let (mut last, mut most) = (u64::MAX, 0);
    while last != sent.load(Ordering::Relaxed) {
        last = sent.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        most = most.max(resident_bytes().saturating_sub(before));
    }
    println!("{} MiB of uploads on the way, {} MiB more", last >> 20, most >> 20);
    assert!(most < 512 << 20, "{} MiB", most >> 20);
    assert_eq!(farm.status("e").await.done, 0, "status is answered");
    uploads.iter().for_each(|upload| upload.abort());
    let (request, named) = object(&lease, &jobs::schema(), &sweep, 0);
    tokio::time::timeout(PATIENCE, worker.upload(request)).await.expect("its turn comes").expect("sound");
    worker.hand_in(v1::HandIn { uploads: vec![named], ..hand_in(&lease, &sweep, 0, 0) }).await.expect("accepted");
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_no_experiment_uses_is_refused() {
    let farm = Farm::start().await;
    let mut client = farm.client(Role::Client).await;
    let data = Bytes::from_static(b"; a log\n");
    let digest = Digest::of(&data);
    let request = |data: &Bytes| v1::UploadLogRequest { digest: digest.as_bytes().to_vec().into(), data: data.clone() };
    let upload = client.upload_log(tokio_stream::iter([request(&data)])).await;
    let status = upload.expect_err("refused");
    assert!(
        status.code() == Code::FailedPrecondition && status.message().contains("submit its manifest"),
        "{status:?}"
    );

    let manifest = "version = 1\nname = \"e\"\n[workloads.w]\nsource = \"swf\"\nlog = \"l\"\n[policies.q]\n".to_owned();
    let digests = [("l".to_owned(), Bytes::copy_from_slice(digest.as_bytes()))].into();
    let submit = v1::SubmitRequest { manifest, digests, ..Default::default() };
    let missing = farm.handle.requests().submit(submit).await.expect("accepted").missing_logs;
    assert_eq!(missing.len(), 1);
    let wrong = client.upload_log(tokio_stream::iter([request(&Bytes::from_static(b"other"))])).await;
    assert_eq!(wrong.expect_err("another digest").code(), Code::InvalidArgument);
    let objects = farm.store.objects().expect("open");
    assert_eq!(objects.log_bytes(digest).await.expect("looks"), None, "no byte of the log stays");
    let pieces = [request(&data.slice(..3)), v1::UploadLogRequest { data: data.slice(3..), ..Default::default() }];
    let reply = client.upload_log(tokio_stream::iter(pieces)).await.expect("stored").into_inner();
    assert_eq!((reply.bytes, reply.already_there), (8, false));
    assert_eq!(objects.log_range(digest, 0, 100).await.expect("there"), data);
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_name_commands_terminals_is_refused() {
    let farm = Farm::start().await;
    let mut client = farm.client(Role::Worker).await;
    let message = v1::WorkerMessage { body: Some(ToFarm::Hello(hello("\u{1b}]0;owned\u{7}"))) };
    let mut inbound = client.work(tokio_stream::iter([message])).await.expect("open").into_inner();
    let answer = inbound.message().await.expect("no error").and_then(|message| message.body);
    let Some(FromFarm::Refused(refused)) = answer else { panic!("{answer:?}") };
    assert!(refused.r#final && refused.reason.contains("control characters"), "{refused:?}");
    farm.stop().await;
}
