//! The PUT of an object to a signed address.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use powersweep_experiments::plain::chain;
use reqwest::StatusCode;
use reqwest::redirect::Policy;

/// Time-out of a connection. Where no route leads to the object store, each worker waits once in a while for this long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time-out of a PUT: this, and the time of its bytes at this rate (bytes/s).
const PUT_TIMEOUT: Duration = Duration::from_secs(20);
const PUT_RATE: f64 = 500_000.0;
/// Time after which an unused connection is closed: before the object store does so.
const IDLE: Duration = Duration::from_secs(5);
/// Pauses before further attempts at an object store that is busy.
const PAUSES: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(1500)];

/// A client that is made when it is needed.
#[derive(Default)]
pub(super) struct Http(OnceLock<Result<reqwest::Client, String>>);

impl Http {
    /// Stores an object at an address. The error does not have the address, which is a secret.
    pub(super) async fn put(&self, url: &str, headers: &HashMap<String, String>, data: Bytes) -> Result<(), String> {
        let client = self.0.get_or_init(client).as_ref().map_err(Clone::clone)?;
        let mut pauses = PAUSES.iter();
        loop {
            let timeout = PUT_TIMEOUT + Duration::from_secs_f64(data.len() as f64 / PUT_RATE);
            let request = client.put(url).timeout(timeout).body(data.clone());
            let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
            let (reason, again) = match request.send().await {
                Ok(answer) if answer.status().is_success() => return Ok(()),
                Ok(answer) => (format!("it answers {}", answer.status()), is_busy(answer.status())),
                Err(error) => {
                    let broken = error.is_request() && !error.is_connect() && !error.is_timeout();
                    (chain(&error.without_url()), broken)
                }
            };
            match pauses.next().filter(|_| again) {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => return Err(reason),
            }
        }
    }
}

fn client() -> Result<reqwest::Client, String> {
    let builder = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).pool_idle_timeout(IDLE);
    // An address is for one object at one place.
    builder.redirect(Policy::none()).build().map_err(|error| chain(&error))
}

fn is_busy(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}
