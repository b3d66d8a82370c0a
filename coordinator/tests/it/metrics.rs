//! The listener of `--metrics`, which knows no caller.

use std::time::Duration;

use powersweep_coordinator::service::ServeOptions;
use powersweep_coordinator::store::ModelStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::hostile::Farm;

/// Far beyond what anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The listener of `--metrics` takes no token: callers that are silent make room for those who ask.
#[tokio::test]
async fn silent_connections_to_the_metrics_are_closed() {
    let any = "127.0.0.1:0".parse().expect("an address");
    let start = Farm::start_with(ModelStore::new(), |local| ServeOptions { metrics: Some(any), ..local });
    let farm = start.await.expect("it serves");
    let address = farm.handle.metrics_addr().expect("it listens");
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(address).await.expect("the listener accepts"));
    }
    let mut scraper = TcpStream::connect(address).await.expect("the listener accepts");
    scraper.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sent");
    let mut answer = String::new();
    // The connection ends with the answer.
    let read = tokio::time::timeout(PATIENCE, scraper.read_to_string(&mut answer)).await;
    assert!(read.is_ok() && answer.starts_with("HTTP/1.1 200 OK") && answer.contains("powersweep_"), "{answer}");
    for stream in &mut silent[..200] {
        let ended = tokio::time::timeout(PATIENCE, stream.read_u8()).await;
        assert!(ended.is_ok_and(|read| read.is_err()), "the first ones are closed");
    }
    farm.submit("e", 1, "").await;
}
