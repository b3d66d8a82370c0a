//! Connections of workers and commands to a coordinator: addresses, TLS, token, limits.

use std::future::Future;
use std::net::Ipv6Addr;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use powersweep_experiments::plain::chain;
use rustls::pki_types::TrustAnchor;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

use crate::access::{self, Access, AccessError, Ca, Role, SERVER_NAME, Secret, Source};
use crate::v1::farm_client::FarmClient;

/// Maximum size of a message; the largest messages carry a manifest.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Limit for name look-up, connection and handshakes together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The next address is tried after this time, while the attempts before it go on.
const NEXT_ADDRESS: Duration = Duration::from_millis(100);
/// A silent network is noticed after interval + timeout; then the worker connects again.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// A client that sends the token with every call.
pub type Client = FarmClient<InterceptedService<Channel, Token>>;

/// Adds `authorization: Bearer TOKEN` to a call.
#[derive(Clone)]
pub struct Token(MetadataValue<Ascii>);

impl Interceptor for Token {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// How to reach a coordinator.
#[derive(Debug, Clone)]
pub struct Address {
    /// Addresses, certificate and token.
    pub access: Source,
    /// The role for which the access is used.
    pub role: Role,
    /// URLs or `HOST:PORT`, in place of the access's own addresses; empty for those.
    pub urls: Vec<String>,
    /// Allows unencrypted connections.
    pub insecure: bool,
}

impl Address {
    /// The coordinator of this access.
    pub fn of(access: Source, role: Role) -> Address {
        Address { access, role, urls: Vec::new(), insecure: false }
    }

    /// An unencrypted connection to one address, as of a coordinator with `--insecure`.
    pub fn unencrypted(url: impl Into<String>, role: Role, token: &str) -> Address {
        let (addresses, token) = (vec![url.into()], Secret::new(token));
        let access = Access { role: Some(role), addresses, ca: Ca::None, token, protocol: crate::PROTOCOL };
        Address { insecure: true, ..Address::of(Source::Given(Box::new(access)), role) }
    }
}

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is no usable access. Final until the file is mended.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The address or token cannot be used. Final.
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
        /// The address, or several.
        url: String,
        /// The error of the transport.
        reason: String,
    },
}

/// Checked addresses of one coordinator, for any number of connections.
#[derive(Clone)]
pub struct Target {
    places: Vec<Place>,
    token: Token,
}

/// One address.
#[derive(Clone)]
struct Place {
    url: String,
    endpoint: Endpoint,
    trust: Trust,
}

/// How the server at an address is recognised.
#[derive(Clone)]
enum Trust {
    Anchor(TrustAnchor<'static>),
    Pinned(powersweep_experiments::Digest),
    Plain,
}

impl Target {
    /// Loads the access and checks addresses and token.
    pub fn new(address: &Address) -> Result<Target, ConnectError> {
        let access = address.access.load(Some(address.role))?;
        let urls = if address.urls.is_empty() { &access.addresses } else { &address.urls };
        let places = urls.iter().map(|url| place(url, &access.ca, address.insecure)).collect::<Result<Vec<_>, _>>()?;
        let wrong = |reason: &str| ConnectError::Address { url: urls.join(", "), reason: reason.to_owned() };
        if places.is_empty() {
            return Err(wrong("is missing: no coordinator has written it yet; start `powersweep serve`"));
        }
        let token = MetadataValue::try_from(format!("Bearer {}", access.token.reveal()));
        let mut token = token.map_err(|_| wrong("has a token with characters that a header cannot carry"))?;
        token.set_sensitive(true);
        Ok(Target { places, token: Token(token) })
    }

    /// The addresses, for messages.
    pub fn urls(&self) -> String {
        self.places.iter().map(|place| place.url.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Whether another target sends the same token.
    pub fn has_token_of(&self, other: &Target) -> bool {
        self.token.0 == other.token.0
    }

    /// Opens a connection. Needs a tokio runtime with time and IO.
    pub async fn connect(&self) -> Result<Client, ConnectError> {
        self.reach().await.map(|(client, _)| client)
    }

    /// Opens a connection to the first address that answers, and names that address. The attempts begin in the order of
    /// preference and go on together.
    pub async fn reach(&self) -> Result<(Client, String), ConnectError> {
        let attempts = self.places.iter().zip(0..).map(|(place, turn): (&Place, u32)| async move {
            tokio::time::sleep(NEXT_ADDRESS * turn).await;
            (place, within(place.channel()).await)
        });
        let mut attempts: FuturesUnordered<_> = attempts.collect();
        let mut reasons = Vec::new();
        while let Some((place, channel)) = attempts.next().await {
            match channel {
                Ok(channel) => {
                    let client = FarmClient::with_interceptor(channel, self.token.clone());
                    let client = client.max_decoding_message_size(MESSAGE_BYTES_MAX);
                    return Ok((client.max_encoding_message_size(MESSAGE_BYTES_MAX), place.url.clone()));
                }
                Err(reason) => reasons.push((&place.url, reason)),
            }
        }
        let reason = match &reasons[..] {
            [(_, reason)] => reason.clone(),
            several => several.iter().map(|(url, reason)| format!("{url}: {reason}")).collect::<Vec<_>>().join("; "),
        };
        Err(ConnectError::Unreachable { url: self.urls(), reason })
    }
}

impl Place {
    async fn channel(&self) -> Result<Channel, String> {
        let endpoint = match &self.trust {
            Trust::Plain => self.endpoint.clone(),
            Trust::Anchor(anchor) => encrypted(&self.endpoint, anchor.clone())?,
            Trust::Pinned(digest) => {
                let anchor = access::anchor_of(access::host_of(&self.url), *digest).await?;
                encrypted(&self.endpoint, anchor)?
            }
        };
        endpoint.connect().await.map_err(|error| chain(&error))
    }
}

fn encrypted(endpoint: &Endpoint, anchor: TrustAnchor<'static>) -> Result<Endpoint, String> {
    let tls = ClientTlsConfig::new().trust_anchor(anchor).domain_name(SERVER_NAME);
    endpoint.clone().tls_config(tls).map_err(|error| chain(&error))
}

/// The transport's own limit includes neither the name look-up nor the handshakes.
async fn within<T>(attempt: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let ended = tokio::time::timeout(CONNECT_TIMEOUT, attempt).await;
    ended.unwrap_or_else(|_| Err(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())))
}

fn place(given: &str, ca: &Ca, insecure: bool) -> Result<Place, ConnectError> {
    let scheme = if *ca == Ca::None { "http" } else { "https" };
    let url = if given.contains("://") { given.to_owned() } else { format!("{scheme}://{given}") };
    let wrong = |reason: String| ConnectError::Address { url: given.to_owned(), reason };
    if let Some((host, port)) = given.rsplit_once(':')
        && host.parse::<Ipv6Addr>().is_ok()
    {
        return Err(wrong(format!("needs brackets, for an IPv6 address has colons, too: write [{host}]:{port}")));
    }
    let endpoint = Endpoint::from_shared(url.clone()).map_err(|e| wrong(format!("cannot be used: {e}")))?;
    if endpoint.uri().port().is_none() {
        return Err(wrong("must be HOST:PORT, or https:// before it".to_owned()));
    }
    let trust = match (endpoint.uri().scheme_str(), ca) {
        (Some("https"), Ca::Pem(pem)) => Trust::Anchor(access::anchor(pem).map_err(wrong)?),
        (Some("https"), Ca::Pinned(digest)) => Trust::Pinned(*digest),
        (Some("https"), Ca::None) => {
            return Err(wrong("is encrypted, but the access file is that of a coordinator with --insecure".to_owned()));
        }
        // An address of somebody else, such as one in the environment, must not get the token of an encrypted coordinator.
        (Some("http"), Ca::Pem(_) | Ca::Pinned(_)) if insecure => {
            return Err(wrong(
                "is unencrypted, but the access has the certificate of an encrypted coordinator, whose token is never sent \
                 without encryption, also not with --insecure: write https://, or take the access file that the \
                 coordinator wrote when it started with --insecure"
                    .to_owned(),
            ));
        }
        (Some("http"), _) if insecure => Trust::Plain,
        (Some("http"), _) => {
            return Err(wrong(
                "is unencrypted: the token would be readable on the way. --insecure allows that in a trusted network"
                    .to_owned(),
            ));
        }
        _ => return Err(wrong("must begin with https:// (or http://, with --insecure)".to_owned())),
    };
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true);
    Ok(Place { url, endpoint, trust })
}

/// Whether another attempt would fail in the same way.
pub fn is_final(status: &Status) -> bool {
    matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented)
}

/// A status as text.
pub fn words(status: &Status) -> String {
    // The peer may be anybody.
    crate::plain(&own_words(status)).into_owned()
}

fn own_words(status: &Status) -> String {
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

    fn address(url: &str, ca: Ca, token: &str) -> Address {
        let addresses = vec![url.to_owned()];
        let access = Access { role: None, addresses, ca, token: Secret::new(token), protocol: 0 };
        Address::of(Source::Given(Box::new(access)), Role::Client)
    }

    fn problem(address: &Address) -> String {
        Target::new(address).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn addresses_are_checked_before_connecting() {
        let pinned = || Ca::Pinned(powersweep_experiments::Digest::of(b"ca"));
        assert_eq!(problem(&address("127.0.0.1:1", pinned(), "t")), "");
        assert_eq!(problem(&address("https://[::1]:1", pinned(), "t")), "");
        assert!(problem(&address("::1:7450", pinned(), "t")).ends_with("write [::1]:7450"));
        assert!(problem(&address("http://127.0.0.1:1", pinned(), "t")).contains("unencrypted"));
        assert!(problem(&address("127.0.0.1:1", Ca::None, "t")).contains("--insecure"));
        assert!(problem(&address("https://h:1", Ca::None, "t")).contains("is encrypted"));
        assert_eq!(problem(&Address { insecure: true, ..address("h:1", Ca::None, "t") }), "");
        let encrypted = Address { insecure: true, ..address("h:1", pinned(), "t") };
        assert_eq!(problem(&encrypted), "", "encryption is used where the address says nothing");
        for ca in [pinned(), Ca::Pem("a certificate".to_owned())] {
            let own = Address { insecure: true, ..address("http://127.0.0.1:1", ca, "t") };
            let named = Address { urls: vec!["http://127.0.0.1:2".to_owned()], ..own.clone() };
            assert!(problem(&named).contains("never sent without encryption"), "{}", problem(&named));
            assert!(problem(&own).contains("never sent without encryption"), "{}", problem(&own));
        }
        assert!(problem(&address("ftp://host:1", pinned(), "t")).contains("must begin with https://"));
        assert!(problem(&address("host", pinned(), "t")).contains("HOST:PORT"));
        assert!(problem(&address("h:1", pinned(), "a\nb")).contains("token"));
        let other = Address { urls: vec!["nonsense".to_owned()], ..address("h:1", pinned(), "t") };
        assert!(problem(&other).contains("`nonsense` must be HOST:PORT"));
        let none = Address { role: Role::Worker, ..address("", pinned(), "t") };
        assert!(problem(&none).contains("cannot be used"));
    }
}
