//! Connections of workers and commands to a coordinator: address, TLS, token, limits.

use std::net::IpAddr;
use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

use crate::v1::farm_client::FarmClient;

/// Maximum size of a message; the largest messages carry a manifest.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Limit for name look-up, connection and handshakes together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A silent network is noticed after interval + timeout; then the worker connects again.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// A client that sends the token with every call.
pub type Client = FarmClient<InterceptedService<Channel, Token>>;

/// Adds `authorization: Bearer TOKEN` to a call.
#[derive(Clone)]
pub struct Token(Option<MetadataValue<Ascii>>);

impl Interceptor for Token {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}

/// TLS settings of a client.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Certificates to trust, PEM.
    pub ca_pem: Vec<u8>,
}

/// A coordinator's address, and the settings of the connection.
#[derive(Debug, Clone, Default)]
pub struct Address {
    /// `http://host:port` or `https://host:port`.
    pub url: String,
    /// Sent with every call; needed if the coordinator requires tokens.
    pub token: Option<String>,
    /// Allows to send the token unencrypted to another machine.
    pub insecure: bool,
    /// Required for an `https` address.
    pub tls: Option<Tls>,
}

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address, token or TLS settings cannot be used. Final.
    #[error("the coordinator's address `{url}` {reason}")]
    Address {
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No coordinator answered. Retryable.
    #[error("no coordinator answers at {url}: {reason}")]
    Unreachable {
        /// The address.
        url: String,
        /// The error of the transport.
        reason: String,
    },
}

/// A checked address, for any number of connections.
#[derive(Clone)]
pub struct Target {
    url: String,
    endpoint: Endpoint,
    token: Token,
}

impl Target {
    /// Checks address, TLS settings and token.
    pub fn new(address: &Address) -> Result<Target, ConnectError> {
        let wrong = |reason: String| ConnectError::Address { url: address.url.clone(), reason };
        let token = address.token.as_ref().map(|token| {
            MetadataValue::try_from(format!("Bearer {token}")).map(|mut value| {
                value.set_sensitive(true);
                value
            })
        });
        let token =
            token.transpose().map_err(|_| wrong("has a token with characters that a header cannot carry".into()))?;
        Ok(Target { url: address.url.clone(), endpoint: endpoint(address)?, token: Token(token) })
    }

    /// The address as it was given.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Opens a connection. Needs a tokio runtime with time and IO.
    pub async fn connect(&self) -> Result<Client, ConnectError> {
        let unreachable = |reason: String| ConnectError::Unreachable { url: self.url.clone(), reason };
        // The transport's own limit includes neither the name look-up nor the handshakes.
        let channel = tokio::time::timeout(CONNECT_TIMEOUT, self.endpoint.connect()).await;
        let channel =
            channel.map_err(|_| unreachable(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())))?;
        let channel = channel.map_err(|error| unreachable(chain(&error)))?;
        let client = FarmClient::with_interceptor(channel, self.token.clone());
        Ok(client.max_decoding_message_size(MESSAGE_BYTES_MAX).max_encoding_message_size(MESSAGE_BYTES_MAX))
    }
}

fn endpoint(address: &Address) -> Result<Endpoint, ConnectError> {
    let wrong = |reason: String| ConnectError::Address { url: address.url.clone(), reason };
    let endpoint = Endpoint::from_shared(address.url.clone()).map_err(|e| wrong(format!("cannot be used: {e}")))?;
    let mut endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true);
    match endpoint.uri().scheme_str() {
        Some("https") => {
            let tls = address.tls.as_ref();
            let tls = tls.ok_or_else(|| wrong("needs the certificates to trust: a PEM file, with --ca".into()))?;
            let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca_pem));
            endpoint = endpoint.tls_config(config).map_err(|e| wrong(format!("has unusable TLS settings: {e}")))?;
        }
        Some("http") => {
            let host = endpoint.uri().host().unwrap_or_default().trim_matches(['[', ']']);
            let loopback = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
            if address.token.is_some() && !loopback && !address.insecure {
                return Err(wrong(
                    "would receive the token unencrypted: use https, or --insecure in a trusted network".into(),
                ));
            }
        }
        _ => return Err(wrong("must begin with http:// or https://".into())),
    }
    Ok(endpoint)
}

/// An error with its causes: the message of a transport error alone says little.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let words = error.to_string();
        // Some errors repeat the text of their cause.
        match said.last_mut() {
            Some(last) if last.contains(&words) => {}
            Some(last) if words.starts_with(last.as_str()) => *last = words,
            _ => said.push(words),
        }
        next = error.source();
    }
    said.join(": ")
}

/// Whether another attempt would fail in the same way.
pub fn is_final(status: &Status) -> bool {
    matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented)
}

/// A status as text.
pub fn words(status: &Status) -> String {
    match status.code() {
        Code::Unimplemented => "the server there is not a powersweep coordinator, or one of another version".to_owned(),
        code if status.message().is_empty() => format!("{code:?}"),
        // The status's own message repeats its causes.
        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal => {
            match std::error::Error::source(status) {
                Some(cause) => format!("the connection failed: {}", chain(cause)),
                None => status.message().to_owned(),
            }
        }
        _ => status.message().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str, token: Option<&str>) -> Address {
        Address { url: url.to_owned(), token: token.map(str::to_owned), ..Address::default() }
    }

    #[test]
    fn addresses_are_checked_before_connecting() {
        assert!(Target::new(&address("http://127.0.0.1:1", Some("t"))).is_ok());
        assert!(Target::new(&address("http://[::1]:1", Some("t"))).is_ok());
        let problem = |a: &Address| Target::new(a).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(problem(&address("http://host:1", Some("t"))).contains("unencrypted"));
        assert!(problem(&address("ftp://host:1", None)).contains("must begin with"));
        assert!(problem(&address("https://host:1", None)).contains("certificates"));
        assert!(problem(&address("http://127.0.0.1:1", Some("a\nb"))).contains("token"));
        assert!(Target::new(&Address { insecure: true, ..address("http://host:1", Some("t")) }).is_ok());
    }
}
