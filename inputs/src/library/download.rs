//! Downloads over HTTP, checked against their SHA-256.
use std::io::Read;
use std::time::Duration;

use powersweep_experiments::Digest;
use powersweep_experiments::url::public;

use crate::library::{Limits, LoadError};

/// Time-out of name resolution, and of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Time-out from the request to the first bytes of the response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Time-out of the whole body: enough for the largest logs over a slow line.
const BODY_TIMEOUT: Duration = Duration::from_secs(1800);

/// The variable that names a proxy, for the message of a failed connection. Its value may have a password.
fn through_a_proxy() -> String {
    const VARIABLES: [&str; 6] = ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let found = VARIABLES.into_iter().find(is_set);
    found.map_or_else(String::new, |name| format!("; {name} names a proxy, and NO_PROXY leaves hosts out"))
}

/// Fetches a file. The bytes returned have the SHA-256 `expected`.
pub(crate) fn fetch(url: &str, expected: Digest, limits: Limits) -> Result<Vec<u8>, LoadError> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(ANSWER_TIMEOUT))
        .timeout_recv_body(Some(BODY_TIMEOUT))
        .user_agent(concat!("powersweep/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let shown = public(url);
    let failed = |reason: String| LoadError::Download { url: shown.clone(), reason };
    let response = agent.get(url).call().map_err(|e| match e {
        ureq::Error::StatusCode(status) => LoadError::Status { url: shown.clone(), status },
        other => failed(format!("{other}{}", through_a_proxy())),
    })?;
    let too_large = || LoadError::TooLarge { origin: shown.clone(), limit_bytes: limits.stored_bytes, text: false };
    let body = response.into_body();
    let announced = body.content_length();
    if announced.is_some_and(|n| n > limits.stored_bytes) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let mut reader = body.into_with_config().limit(u64::MAX).reader().take(limits.stored_bytes.saturating_add(1));
    reader.read_to_end(&mut bytes).map_err(|e| failed(e.to_string()))?;
    if bytes.len() as u64 > limits.stored_bytes {
        return Err(too_large());
    }
    if let Some(announced) = announced.filter(|n| *n != bytes.len() as u64) {
        return Err(failed(format!("the connection ended after {} of {announced} bytes", bytes.len())));
    }
    let found = Digest::of(&bytes);
    if found != expected {
        return Err(LoadError::WrongSha256 { origin: shown.clone(), expected, found });
    }
    Ok(bytes)
}
