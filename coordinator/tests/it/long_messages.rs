//! Messages that are announced and never end.

use std::time::Duration;

use bytes::Bytes;
use powersweep_proto::access::Role;
use powersweep_proto::v1;
use tonic::Code;
use tonic::codegen::{Service, http};
use tonic::transport::{Channel, Endpoint};

use crate::hostile::{Farm, Worker, hand_in};
use crate::mutations::resident_bytes;

/// A call that announces a long message and sends a part of it.
async fn announced(channel: &mut Channel, call: &str, token: &str, length: u32, sent: usize) -> Option<i32> {
    let prefix = [&[0][..], &length.to_be_bytes()].concat();
    let piece = Bytes::from(vec![7; 16 << 10]);
    let pieces = std::iter::once(Bytes::from(prefix)).chain(std::iter::repeat_n(piece, sent >> 14));
    let pieces = futures::stream::iter(pieces.map(Ok::<_, std::convert::Infallible>));
    let body = futures::StreamExt::chain(pieces, futures::stream::pending());
    let request = http::Request::post(format!("/powersweep.v1.Farm/{call}"))
        .header("content-type", "application/grpc")
        .header("authorization", format!("Bearer {token}"))
        .body(tonic::body::Body::new(axum::body::Body::from_stream(body)))
        .expect("a request");
    std::future::poll_fn(|context| channel.poll_ready(context)).await.expect("it is open");
    let answer = channel.call(request).await.ok()?;
    answer.headers().get("grpc-status").and_then(|code| code.to_str().ok()?.parse().ok())
}

/// Without the budget, the coordinator could take 12 GB here.
#[tokio::test(flavor = "multi_thread")]
async fn messages_that_never_end_take_little_memory() {
    let farm = Farm::start().await;
    let sweep = farm.submit("e", 100, "").await;
    let before = resident_bytes();
    let (mut channels, mut calls) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        channels.push(Endpoint::from_shared(farm.url()).expect("an address").connect().await.expect("it listens"));
    }
    // Without a token, the answer comes before the message.
    for call in ["Submit", "Work", "Status"] {
        let refused = announced(&mut channels[0], call, "wrong", 31 << 20, 0);
        let code = tokio::time::timeout(Duration::from_secs(5), refused).await.expect("answered at once");
        assert_eq!(code, Some(Code::Unauthenticated as i32), "{call}");
    }
    let token = farm.handle.access(Role::Client).token.reveal().to_owned();
    for channel in channels.iter().cycle().take(400) {
        let (mut channel, token) = (channel.clone(), token.clone());
        calls.push(tokio::spawn(async move { announced(&mut channel, "Submit", &token, 31 << 20, 30 << 20).await }));
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let grown = resident_bytes().saturating_sub(before) >> 20;
    println!("{grown} MiB more");
    assert!(grown < 512, "{grown} MiB");
    // Messages of one frame need no room: a worker and a user come through.
    let mut worker = Worker::greet(&farm).await;
    let lease = worker.lease().await;
    let first = lease.ranges[0].start;
    worker.hand_in(hand_in(&lease, &sweep, first, first)).await.expect("accepted");
    let mut client = farm.client(Role::Client).await;
    client.status(v1::StatusRequest::default()).await.expect("answered");
    calls.iter().for_each(|call| call.abort());
    farm.stop().await;
}
