//! Connections to the coordinator: address, TLS, token, limits.

use std::time::Duration;

use powersweep_proto::v1::farm_client::FarmClient;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

use crate::options::{WorkerError, WorkerOptions};

/// Greatest message taken from the coordinator: manifests are the large ones.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A silent network is noticed after interval + timeout, so that the worker can try another connection.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// First pause between two attempts to connect, and the longest.
const BACK_OFF_MIN: Duration = Duration::from_millis(50);
const BACK_OFF_MAX: Duration = Duration::from_secs(3);

/// A client that sends the token with every call.
pub(super) type Client = FarmClient<InterceptedService<Channel, Token>>;

/// Adds `authorization: Bearer TOKEN`.
#[derive(Clone)]
pub(super) struct Token(Option<MetadataValue<Ascii>>);

impl Interceptor for Token {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}

/// Where and how to connect; checked once at the start.
pub(super) struct Target {
    endpoints: Vec<(String, Endpoint)>,
    token: Token,
    turn: usize,
}

impl Target {
    /// Checks addresses, TLS and token.
    pub(super) fn new(options: &WorkerOptions) -> Result<Target, WorkerError> {
        let wrong = |what: String| WorkerError::Options(what);
        if options.endpoints.is_empty() {
            return Err(wrong("a worker needs the address of a coordinator".to_owned()));
        }
        let endpoints = options.endpoints.iter().map(|address| Ok((address.clone(), endpoint(address, options)?)));
        let token = options.token.as_ref().map(|token| {
            let value = MetadataValue::try_from(format!("Bearer {token}"));
            value.map(|mut value| {
                value.set_sensitive(true);
                value
            })
        });
        let token = token.transpose().map_err(|_| wrong("the token has characters that no header can carry".into()))?;
        Ok(Target { endpoints: endpoints.collect::<Result<_, WorkerError>>()?, token: Token(token), turn: 0 })
    }

    /// The address to try now.
    pub(super) fn address(&self) -> &str {
        &self.endpoints[self.turn].0
    }

    /// All addresses, for messages.
    pub(super) fn addresses(&self) -> String {
        self.endpoints.iter().map(|(address, _)| address.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Goes on to the next address.
    pub(super) fn turn(&mut self) {
        self.turn = (self.turn + 1) % self.endpoints.len();
    }

    /// Opens a connection to the present address.
    pub(super) async fn connect(&self) -> Result<Client, String> {
        let channel = self.endpoints[self.turn].1.connect().await.map_err(|e| chain(&e))?;
        let client = FarmClient::with_interceptor(channel, self.token.clone());
        Ok(client.max_decoding_message_size(MESSAGE_BYTES_MAX).max_encoding_message_size(MESSAGE_BYTES_MAX))
    }
}

fn endpoint(address: &str, options: &WorkerOptions) -> Result<Endpoint, WorkerError> {
    let wrong = |what: String| WorkerError::Options(format!("the coordinator's address `{address}` {what}"));
    let endpoint = Endpoint::from_shared(address.to_owned()).map_err(|e| wrong(format!("cannot be used: {e}")))?;
    let mut endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true);
    match endpoint.uri().scheme_str() {
        Some("https") => {
            let tls = options.tls.as_ref();
            let tls =
                tls.ok_or_else(|| wrong("needs the certificates to trust (a PEM file of the authority)".into()))?;
            let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca_pem));
            if let Some(domain) = &tls.domain {
                config = config.domain_name(domain);
            }
            endpoint = endpoint.tls_config(config).map_err(|e| wrong(format!("has unusable TLS settings: {e}")))?;
        }
        Some("http") => {
            let host = endpoint.uri().host().unwrap_or_default().trim_matches(['[', ']']);
            let loopback = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
            if options.token.is_some() && !loopback && !options.insecure {
                return Err(wrong("would carry the token unencrypted: use https, or say that this is wanted".into()));
            }
        }
        _ => return Err(wrong("must begin with http:// or https://".into())),
    }
    Ok(endpoint)
}

/// An error with its causes, since transport errors say little themselves.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Whether a status means that trying again is of no use.
pub(super) fn is_final(status: &Status) -> bool {
    matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented)
}

/// A status in words.
pub(super) fn words(status: &Status) -> String {
    match status.code() {
        Code::Unimplemented => "what answers there is no powersweep coordinator, or one of another version".to_owned(),
        code if status.message().is_empty() => format!("{code:?}"),
        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal => chain(status),
        _ => status.message().to_owned(),
    }
}

/// Pauses between attempts: doubling, with a spread that differs between workers so that many do not return at once.
pub(super) struct BackOff {
    next: Duration,
    seed: u64,
}

impl BackOff {
    pub(super) fn new(worker_id: uuid::Uuid) -> BackOff {
        BackOff { next: BACK_OFF_MIN, seed: worker_id.as_u64_pair().1 }
    }

    /// The next pause: 0.7 to 1.3 times its nominal length.
    pub(super) fn pause(&mut self) -> Duration {
        // A step of a linear congruential generator (Knuth, MMIX); its high bits spread well enough.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let spread = 0.7 + 0.6 * (self.seed >> 40) as f64 / f64::from(1 << 24);
        let pause = self.next.mul_f64(spread);
        self.next = (self.next * 2).min(BACK_OFF_MAX);
        pause
    }

    /// A connection was accepted.
    pub(super) fn reset(&mut self) {
        self.next = BACK_OFF_MIN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(options: &WorkerOptions) -> String {
        Target::new(options).err().expect("not usable").to_string()
    }

    #[test]
    fn addresses_are_checked_before_anything_starts() {
        let options = |address: &str| WorkerOptions::new(address, 1, "w");
        assert!(problem(&options("not an address")).contains("not an address"));
        assert!(problem(&options("ftp://host:1")).contains("http://"));
        assert!(problem(&options("https://host:1")).contains("PEM"));
        assert!(Target::new(&options("http://host:1")).is_ok());
        let token = |address: &str| WorkerOptions { token: Some("t".into()), ..options(address) };
        assert!(problem(&token("http://host:1")).contains("token"));
        assert!(Target::new(&token("http://127.0.0.1:1")).is_ok());
        assert!(Target::new(&token("http://[::1]:1")).is_ok());
        assert!(Target::new(&WorkerOptions { insecure: true, ..token("http://host:1") }).is_ok());
    }

    #[test]
    fn pauses_double_within_bounds_and_start_again() {
        let mut back_off = BackOff::new(uuid::Uuid::from_u128(5));
        let pauses: Vec<Duration> = (0..10).map(|_| back_off.pause()).collect();
        assert!(pauses[0] >= BACK_OFF_MIN.mul_f64(0.7) && pauses[0] <= BACK_OFF_MIN.mul_f64(1.3));
        assert!(pauses[9] >= BACK_OFF_MAX.mul_f64(0.7) && pauses[9] <= BACK_OFF_MAX.mul_f64(1.3));
        back_off.reset();
        assert!(back_off.pause() <= BACK_OFF_MIN.mul_f64(1.3));
    }
}
