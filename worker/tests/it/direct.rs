//! Objects that the worker sends to an object store itself, and what it does where that fails.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use powersweep_proto::v1;
use powersweep_worker::WorkerOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::agent::{LUBLIN, leave, start};
use crate::fake::{Conn, Fake};

/// The address, without the host.
const INBOX: &str = "/bucket/inbox/part?signature=secret";

/// A PUT: its head, and the object.
type Put = (String, Bytes);

/// An object store that answers these codes, the last one for ever.
struct Store {
    url: String,
    puts: Arc<Mutex<Vec<Put>>>,
}

impl Store {
    async fn start(codes: &'static [u16]) -> Store {
        // Like the program's `main`; another test may have done it in this process.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}{INBOX}", listener.local_addr().expect("it is bound"));
        let puts: Arc<Mutex<Vec<Put>>> = Arc::default();
        let shared = Arc::clone(&puts);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, codes, Arc::clone(&shared)));
            }
        });
        Store { url, puts }
    }

    fn puts(&self) -> Vec<Put> {
        self.puts.lock().expect("no panic").clone()
    }
}

/// Answers one request, and closes the connection.
async fn answer(mut stream: TcpStream, codes: &[u16], puts: Arc<Mutex<Vec<Put>>>) {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.expect("it can be read") == 0 {
            return;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let length: usize = length.expect("the store must know the size");
    while bytes.len() < head_end + length {
        assert!(stream.read_buf(&mut bytes).await.expect("it can be read") > 0, "the object is cut");
    }
    let code = {
        let mut puts = puts.lock().expect("no panic");
        puts.push((head, Bytes::copy_from_slice(&bytes[head_end..])));
        codes[(puts.len() - 1).min(codes.len() - 1)]
    };
    let answer = format!("HTTP/1.1 {code} answer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.expect("it can be written");
}

/// A worker with its first lease, whose coordinator gives this address.
async fn scene(inbox: Option<String>, loses_objects: bool, tasks: u64, work: impl AsyncFnOnce(&Fake, &mut Conn)) {
    let mut farm = Fake::start().await;
    {
        let mut facts = farm.facts.lock().expect("no panic");
        (facts.inbox, facts.loses_objects) = (inbox, loses_objects);
    }
    let (worker, shutdown) = start(WorkerOptions::new(farm.coordinator(), 1, "w"));
    let mut conn = farm.accept().await;
    conn.welcome(1, vec![]).await;
    conn.experiment(LUBLIN, &["jobs"], vec![]).await;
    conn.lease(1, 0, tasks).await;
    work(&farm, &mut conn).await;
    leave(conn, worker, shutdown).await;
}

/// Hand-ins of this number of tasks, acknowledged.
async fn hand_ins(conn: &mut Conn, tasks: usize) -> Vec<v1::HandIn> {
    let hand_ins = conn.hand_ins(tasks).await;
    for hand_in in &hand_ins {
        conn.acknowledge(hand_in.id).await;
    }
    hand_ins
}

/// The announced sizes, and the bytes that came to the coordinator.
fn uploads(farm: &Fake) -> Vec<(u64, usize)> {
    let facts = farm.facts.lock().expect("no panic");
    facts.uploads.iter().map(|(first, bytes)| (first.staged_bytes, *bytes)).collect()
}

fn staged(farm: &Fake) -> Vec<v1::StagePartRequest> {
    farm.facts.lock().expect("no panic").staged.clone()
}

#[cfg(feature = "cloud")]
#[tokio::test]
async fn an_object_goes_to_its_address_and_is_announced_without_data() {
    // A busy store is asked again.
    let store = Store::start(&[503, 200]).await;
    scene(Some(store.url.clone()), false, 1, async |farm, conn| {
        let named = hand_ins(conn, 1).await.remove(0).uploads.remove(0);
        let puts = store.puts();
        assert_eq!(puts.len(), 2);
        for (head, object) in &puts {
            assert!(head.starts_with(&format!("put {INBOX} http/1.1\r\n")), "{head}");
            assert!(head.contains("\r\nx-kind: block\r\n") && !head.contains("authorization"), "{head}");
            assert_eq!(object.len() as u64, named.bytes);
            assert!(object.starts_with(b"PAR1") && object.ends_with(b"PAR1"));
        }
        assert_eq!(uploads(farm), [(named.bytes, 0)]);
        let request = staged(farm).remove(0);
        assert_eq!((request.table.as_str(), request.bytes), ("jobs", named.bytes));
        assert!(request.part_id == named.part_id && request.lease.is_some());
    })
    .await;
}

#[cfg(feature = "cloud")]
#[tokio::test]
async fn objects_go_through_the_coordinator_after_a_failure() {
    let refusing = Store::start(&[403]).await;
    let losing = Store::start(&[200]).await;
    // Bound, and closed again: nobody listens there.
    let nowhere = TcpListener::bind("127.0.0.1:0").await.expect("a free port").local_addr().expect("it is bound");
    for (url, loses_objects) in
        [(refusing.url.clone(), false), (losing.url.clone(), true), (format!("http://{nowhere}{INBOX}"), false)]
    {
        scene(Some(url), loses_objects, 4, async |farm, conn| {
            let mut named = hand_ins(conn, 4).await;
            conn.lease(2, 4, 6).await;
            named.extend(hand_ins(conn, 2).await);
            let through: Vec<_> = uploads(farm).into_iter().filter(|(staged_bytes, _)| *staged_bytes == 0).collect();
            let sizes: Vec<_> = named.iter().map(|hand_in| (0, hand_in.uploads[0].bytes as usize)).collect();
            assert_eq!(through, sizes, "every object came through the coordinator");
            // Two uploads may be under way at the first failure.
            assert!((1..=2).contains(&staged(farm).len()), "{:?}", staged(farm));
        })
        .await;
    }
    assert!((1..=2).contains(&refusing.puts().len()), "a refusal is final");
}

#[tokio::test]
async fn no_address_is_asked_for_where_none_is_offered() {
    scene(None, false, 1, async |farm, conn| {
        let named = hand_ins(conn, 1).await.remove(0).uploads.remove(0);
        assert_eq!(uploads(farm), [(0, named.bytes as usize)]);
        assert!(staged(farm).is_empty());
    })
    .await;
}

#[tokio::test]
async fn an_empty_address_means_the_coordinator() {
    scene(Some(String::new()), false, 1, async |farm, conn| {
        let named = hand_ins(conn, 1).await.remove(0).uploads.remove(0);
        assert_eq!(uploads(farm), [(0, named.bytes as usize)]);
        assert_eq!(staged(farm).len(), usize::from(cfg!(feature = "cloud")));
    })
    .await;
}

#[cfg(not(feature = "cloud"))]
#[tokio::test]
async fn a_build_without_object_stores_asks_for_no_address() {
    let store = Store::start(&[200]).await;
    scene(Some(store.url.clone()), false, 1, async |farm, conn| {
        let named = hand_ins(conn, 1).await.remove(0).uploads.remove(0);
        assert_eq!(uploads(farm), [(0, named.bytes as usize)]);
        assert!(staged(farm).is_empty() && store.puts().is_empty());
    })
    .await;
}
