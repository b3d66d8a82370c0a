//! Tables that clients read from a coordinator over gRPC.

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use powersweep_coordinator::records::RowsRecord;
use powersweep_coordinator::store::{MAX_PART_BYTES, Store};
use powersweep_proto::access::Role;
use powersweep_proto::client::Client;
use powersweep_proto::v1;
use powersweep_results::Table;
use powersweep_results::jobs;
use prost::Message;
use tonic::{Code, Status};
use uuid::Uuid;

use crate::hostile::{Farm, Worker, hand_in, object};

/// A table as a client gets it: its facts with all parts, and each unpublished object.
async fn table(
    client: &mut Client,
    experiment: &str,
    table: &str,
) -> Result<(v1::TableFacts, Vec<(Bytes, Vec<u8>)>), Status> {
    let request = v1::ReadTableRequest { experiment: experiment.to_owned(), table: table.to_owned() };
    let mut pieces = client.read_table(request).await?.into_inner();
    let (mut facts, mut objects) = (v1::TableFacts::default(), Vec::new());
    let mut sizes = Vec::new();
    while let Some(piece) = pieces.message().await? {
        if let Some(found) = piece.facts {
            let parts = std::mem::take(&mut facts.parts).into_iter().chain(found.parts).collect();
            facts = v1::TableFacts { parts, ..found };
        }
        if let Some(begin) = piece.begin {
            sizes.push(begin.bytes as usize);
            objects.push((begin.upload, Vec::new()));
        }
        if let Some((_, bytes)) = objects.last_mut() {
            bytes.extend_from_slice(&piece.data);
        }
    }
    assert_eq!(objects.iter().map(|(_, bytes)| bytes.len()).collect::<Vec<_>>(), sizes);
    Ok((facts, objects))
}

fn request(experiment: &str, table: &str, part: &str, ranges: &[(u64, u64)]) -> v1::ReadPartRequest {
    v1::ReadPartRequest {
        experiment: experiment.to_owned(),
        table: table.to_owned(),
        part: part.to_owned(),
        ranges: ranges.iter().map(|&(start, end)| v1::ByteRange { start, end }).collect(),
    }
}

/// The bytes of a part's ranges.
async fn part(client: &mut Client, request: v1::ReadPartRequest) -> Result<Vec<u8>, Status> {
    let mut chunks = client.read_part(request).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.message().await? {
        bytes.extend_from_slice(&chunk.data);
    }
    Ok(bytes)
}

async fn put(farm: &Farm, path: &str, bytes: &[u8]) {
    let payload = PutPayload::from(bytes.to_vec());
    farm.store.object_store().put(&Path::from(path), payload).await.expect("it is in memory");
}

#[tokio::test(flavor = "multi_thread")]
async fn unpublished_rows_and_parts_are_read() {
    let farm = Farm::start().await;
    let sweep = farm.submit("e", 40, "").await;
    let mut client = farm.client(Role::Client).await;
    let (facts, objects) = table(&mut client, "e", "tasks").await.expect("an empty table");
    assert_eq!((facts.known, facts.parts.len(), objects.len()), (true, 0, 0));
    assert!(!facts.lacks_table && table(&mut client, "e", "jobs").await.expect("empty").0.lacks_table);

    let mut worker = Worker::greet(&farm).await;
    let lease = worker.lease().await;
    let first = lease.ranges[0].start;
    worker.hand_in(hand_in(&lease, &sweep, first, first)).await.expect("accepted");
    let (facts, objects) = table(&mut client, "e", "tasks").await.expect("one row");
    assert_eq!((facts.parts.len(), objects.len()), (0, 1));
    assert!(objects[0].0.is_empty(), "rows of the state");
    let record = RowsRecord::decode(&objects[0].1[..]).expect("a record");
    assert_eq!((record.live_rows(), record.table()), (1, Table::Tasks));

    let flush = v1::FlushRequest { experiment: "e".to_owned() };
    farm.handle.requests().flush(flush).await.expect("published");
    let (facts, objects) = table(&mut client, "e", "tasks").await.expect("one part");
    assert_eq!((facts.parts.len(), objects.len()), (1, 0));
    let v1::PublishedPart { name, bytes } = &facts.parts[0];
    let stored = farm.store.object_store().get(&Path::from(format!("e/tasks/{name}"))).await.expect("there");
    let stored = stored.bytes().await.expect("in memory");
    assert_eq!(*bytes, stored.len() as u64);
    assert!(part(&mut client, request("e", "tasks", name, &[(0, *bytes)])).await.expect("read") == stored);
    let some = part(&mut client, request("e", "tasks", name, &[(9, 12), (0, 4), (5, 5)])).await.expect("read");
    assert_eq!(some, [&stored[9..12], &stored[..4]].concat());
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_are_read_until_they_are_in_a_part() {
    let farm = Farm::start().await;
    let sweep = farm.submit("e", 40, "tables = [\"jobs\"]").await;
    let mut client = farm.client(Role::Client).await;
    let mut worker = Worker::greet(&farm).await;
    let lease = worker.lease().await;
    let first = lease.ranges[0].start;
    let (upload, named) = object(&lease, &jobs::schema(), &sweep, first);
    worker.upload(upload.clone()).await.expect("sound");
    assert!(table(&mut client, "e", "jobs").await.expect("empty").1.is_empty(), "no hand-in names it");
    let part_id = named.part_id.clone();
    worker
        .hand_in(v1::HandIn { uploads: vec![named], ..hand_in(&lease, &sweep, first, first) })
        .await
        .expect("accepted");
    let (_, objects) = table(&mut client, "e", "jobs").await.expect("one upload");
    assert_eq!(objects, [(part_id.clone(), upload.data.to_vec())]);
    // An upload that the state still names after it was missing is lost, not in a part.
    let id = Uuid::from_slice(&part_id).expect("an id");
    farm.store.objects().expect("open").discard_staged("e", Table::Jobs, id).await.expect("deleted");
    let (facts, objects) = table(&mut client, "e", "jobs").await.expect("the rest");
    assert_eq!((facts.counted.map(|of| of.left_out), objects), (Some(1), Vec::new()));
    farm.stop().await;
}

/// Rows of an experiment that the state does not have, and of one whose manifest was edited.
#[tokio::test(flavor = "multi_thread")]
async fn rows_without_a_state_are_read() {
    let farm = Farm::start().await;
    let mut client = farm.client(Role::Client).await;
    for name in ["old", "old@left", "old@1"] {
        put(&farm, &format!("{name}/tasks/part-1.parquet"), b"rows").await;
        let (facts, _) = table(&mut client, name, "tasks").await.expect("a part");
        assert_eq!((facts.known, facts.parts.len()), (false, 1), "{name}");
        assert_eq!(
            part(&mut client, request(name, "tasks", "part-1.parquet", &[(0, 4)])).await.expect("read"),
            b"rows"
        );
        // The experiment has no jobs, and is known all the same.
        assert!(table(&mut client, name, "jobs").await.expect("empty").0.parts.is_empty());
    }
    assert_eq!(table(&mut client, "ol", "tasks").await.expect_err("unknown").code(), Code::NotFound);
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_parts_can_be_read_and_by_clients_alone() {
    let farm = Farm::start().await;
    put(&farm, "e/tasks/part-1.parquet", b"rows").await;
    for secret in [
        ".powersweep/access/client.json",
        ".powersweep/access/part-1.parquet",
        ".powersweep/tasks/part-1.parquet",
        "e/tasks/notes.txt",
        "e/tasks/.part-1.parquet",
        "e/tasks/below/part-2.parquet",
        "e/other/part-1.parquet",
    ] {
        put(&farm, secret, b"secret").await;
    }
    let mut client = farm.client(Role::Client).await;
    for (experiment, table, name) in [
        (".powersweep", "access", "client.json"),
        (".powersweep", "access", "part-1.parquet"),
        (".powersweep", "tasks", "part-1.parquet"),
        (".powersweep/access", "tasks", "part-1.parquet"),
        ("e", "tasks", "../../.powersweep/access/part-1.parquet"),
        ("e", "tasks", "..%2F..%2F.powersweep%2Faccess%2Fclient.json"),
        ("e", "tasks", "../../.powersweep/access/client.json\u{0}.parquet"),
        ("e", "../.powersweep/access", "client.json"),
        ("e", "tasks", "/etc/passwd"),
        ("e", "tasks", "notes.txt"),
        ("e", "tasks", ".part-1.parquet"),
        ("e", "tasks", "below/part-2.parquet"),
        ("e", "other", "part-1.parquet"),
        ("", "tasks", "part-1.parquet"),
        ("..", "tasks", "part-1.parquet"),
    ] {
        let status = part(&mut client, request(experiment, table, name, &[(0, 6)])).await.expect_err("refused");
        assert_eq!(status.code(), Code::InvalidArgument, "{experiment}/{table}/{name}: {status:?}");
    }
    for experiment in [".powersweep", "..", "", "e/tasks", "e\n"] {
        let status = table(&mut client, experiment, "tasks").await.expect_err("refused");
        assert_eq!(status.code(), Code::InvalidArgument, "{experiment}: {status:?}");
    }
    assert_eq!(table(&mut client, "e", "access").await.expect_err("no table").code(), Code::InvalidArgument);

    let of_part = |ranges: &[(u64, u64)]| request("e", "tasks", "part-1.parquet", ranges);
    for (ranges, code) in [
        (vec![(3, 2)], Code::InvalidArgument),
        (vec![(0, u64::MAX)], Code::InvalidArgument),
        (vec![(0, MAX_PART_BYTES); 2], Code::InvalidArgument),
        (vec![(0, 1); 10_001], Code::InvalidArgument),
        (vec![(0, 5)], Code::OutOfRange),
        (vec![(4, 5)], Code::OutOfRange),
        (vec![(1 << 20, 2 << 20)], Code::OutOfRange),
    ] {
        let status = part(&mut client, of_part(&ranges)).await.expect_err("refused");
        assert_eq!(status.code(), code, "{:?}: {status:?}", ranges[0]);
    }
    let gone = part(&mut client, request("e", "tasks", "part-9.parquet", &[(0, 4)])).await.expect_err("not there");
    assert_eq!(gone.code(), Code::Aborted, "{gone:?}");

    let mut worker = farm.client(Role::Worker).await;
    assert_eq!(table(&mut worker, "e", "tasks").await.expect_err("refused").code(), Code::PermissionDenied);
    assert_eq!(part(&mut worker, of_part(&[(0, 4)])).await.expect_err("refused").code(), Code::PermissionDenied);
    farm.stop().await;
}

/// Clients that take no message of their table keep others waiting, and nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_read_nothing_stop_neither_status_nor_parts() {
    let farm = Farm::start().await;
    for number in 0..20_000 {
        put(&farm, &format!("e/tasks/a-part-with-a-long-name-of-many-bytes-{number:060}.parquet"), b"rows").await;
    }
    let mut idle = Vec::new();
    for _ in 0..8 {
        let mut client = farm.client(Role::Client).await;
        let request = v1::ReadTableRequest { experiment: "e".to_owned(), table: "tasks".to_owned() };
        idle.push(tokio::spawn(async move {
            let pieces = client.read_table(request).await;
            std::future::pending::<()>().await;
            drop(pieces);
        }));
    }
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    farm.submit("f", 10, "").await;
    farm.handle.requests().status(v1::StatusRequest::default()).await.expect("it answers");
    let mut client = farm.client(Role::Client).await;
    let first = format!("a-part-with-a-long-name-of-many-bytes-{:060}.parquet", 0);
    assert_eq!(part(&mut client, request("e", "tasks", &first, &[(0, 4)])).await.expect("read"), b"rows");
    idle.iter().for_each(|reader| reader.abort());
    let (facts, _) = table(&mut client, "e", "tasks").await.expect("its turn comes");
    assert_eq!(facts.parts.len(), 20_000);
    farm.stop().await;
}
