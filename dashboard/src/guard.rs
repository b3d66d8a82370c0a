//! Who may see and change the farm through the pages.
//!
//! Other users of this machine can connect to a loopback port, and any page in the user's browser can send requests
//! there. So each request needs the cookie that the printed link was exchanged for, a known name as its host (a foreign
//! name may be made to resolve to this machine), and, for a change, a proof that one of these pages sent it. A request is
//! refused unless all of this holds.

use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, Method, header};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Names of this machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Why a request is refused, in words for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The host is not known.
    Host,
    /// No page uses this method.
    Method,
    /// The cookie is missing.
    Cookie,
    /// Another site may have sent it.
    Origin,
}

impl Refusal {
    /// What to do.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Refusal::Host => {
                "The dashboard does not answer to this host name. Behind a proxy, give the name of the proxy: \
                 powersweep dashboard --host NAME"
            }
            Refusal::Method => "No page sends such a request.",
            Refusal::Cookie => {
                "Open the link that powersweep dashboard has printed. Each link works once; after that, the command \
                 prints the next one."
            }
            Refusal::Origin => "Only the dashboard's own pages may change an experiment.",
        }
    }
}

/// The secrets of one dashboard.
pub(crate) struct Guard {
    /// Browsers send the cookies of all ports of a host, so each dashboard has a name of its own.
    cookie: String,
    session: String,
    /// The key of the next link.
    key: Mutex<String>,
    hosts: Vec<String>,
}

impl Guard {
    /// A guard that accepts the names of loopback, and `hosts`.
    pub(crate) fn new(hosts: &[String]) -> Guard {
        let hosts = LOOPBACK.iter().map(|name| (*name).to_owned()).chain(hosts.iter().map(|name| name.to_lowercase()));
        Guard {
            cookie: format!("powersweep-{}", &secret()[..12]),
            session: secret(),
            key: Mutex::new(secret()),
            hosts: hosts.collect(),
        }
    }

    /// The key of the next link.
    pub(crate) fn key(&self) -> String {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Uses up the key of a link: returns the header that sets the cookie. The cookie belongs to the folder of the page,
    /// whatever prefix a proxy puts before it.
    pub(crate) fn exchange(&self, key: &str) -> Option<String> {
        let mut current = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        if !equal(&current, key) {
            return None;
        }
        *current = secret();
        Some(format!("{}={}; HttpOnly; SameSite=Strict", self.cookie, self.session))
    }

    /// Checks the name by which a request reached this server.
    pub(crate) fn check_host(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = text(headers, header::HOST).map(name_of).ok_or(Refusal::Host)?;
        self.hosts.contains(&host).then_some(()).ok_or(Refusal::Host)
    }

    /// Checks the method, the cookie and, of a change, the origin.
    pub(crate) fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
        let changes = *method == Method::POST;
        if !changes && *method != Method::GET && *method != Method::HEAD {
            return Err(Refusal::Method);
        }
        if !self.has_cookie(headers) {
            return Err(Refusal::Cookie);
        }
        if changes && !self.is_own(headers) {
            return Err(Refusal::Origin);
        }
        Ok(())
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie && equal(value, &self.session))
    }

    /// Whether one of these pages sent a change. Browsers say so; a request that says nothing is not trusted.
    fn is_own(&self, headers: &HeaderMap) -> bool {
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes() == b"same-origin");
        let origin = text(headers, header::ORIGIN).map(|origin| {
            let place = origin.split_once("://").map_or("", |(_, place)| place);
            let name = name_of(place);
            // Another port of this machine is another program, maybe of another user. A proxy may hide its name and port.
            let is_here = text(headers, header::HOST).is_some_and(|host| host.eq_ignore_ascii_case(place));
            self.hosts.contains(&name) && (is_here || !LOOPBACK.contains(&name.as_str()))
        });
        site.unwrap_or(true) && origin.unwrap_or(true) && (site.is_some() || origin.is_some())
    }
}

/// 244 random bits.
fn secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// Whether two secrets are equal; the time taken tells only about digests.
fn equal(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The name of `NAME:PORT`.
fn name_of(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.to_lowercase()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let value = |text: &str| HeaderValue::from_str(text).expect("a header");
        pairs.iter().map(|(name, text)| (header::HeaderName::from_static(name), value(text))).collect()
    }

    #[test]
    fn a_key_works_once() {
        let guard = Guard::new(&[]);
        let key = guard.key();
        assert_eq!(guard.exchange("wrong"), None);
        let cookie = guard.exchange(&key).expect("it is the key");
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict"));
        assert_eq!(guard.exchange(&key), None);
        let pair = cookie.split(';').next().expect("the pair");
        assert_eq!(guard.check(&Method::GET, &headers(&[("cookie", &format!("a=b; {pair}"))])), Ok(()));
        let (name, _) = pair.split_once('=').expect("a pair");
        assert_eq!(guard.check(&Method::GET, &headers(&[("cookie", &format!("{name}=x"))])), Err(Refusal::Cookie));
        assert_eq!(guard.check(&Method::GET, &HeaderMap::new()), Err(Refusal::Cookie));
    }

    #[test]
    fn only_known_names_reach_the_pages() {
        let guard = Guard::new(&["Proxy.example.org".to_owned()]);
        for host in ["localhost:8080", "127.0.0.1:1", "[::1]:1", "[::1]", "LOCALHOST", "proxy.example.org"] {
            assert_eq!(guard.check_host(&headers(&[("host", host)])), Ok(()), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", "", "[::2]:1"] {
            assert_eq!(guard.check_host(&headers(&[("host", host)])), Err(Refusal::Host), "{host}");
        }
        assert_eq!(guard.check_host(&HeaderMap::new()), Err(Refusal::Host));
    }

    #[test]
    fn only_own_pages_change_something() {
        let guard = Guard::new(&[]);
        let cookie = guard.exchange(&guard.key()).expect("it is the key");
        let check = |method: Method, more: &[(&'static str, &str)]| {
            guard.check(&method, &headers(&[&[("cookie", cookie.as_str())], more].concat()))
        };
        assert_eq!(check(Method::POST, &[("sec-fetch-site", "same-origin")]), Ok(()));
        for host in ["127.0.0.1:99", "localhost:99", "[::1]:99", "localhost"] {
            assert_eq!(check(Method::POST, &[("host", host), ("origin", &format!("http://{host}"))]), Ok(()), "{host}");
        }
        for more in [
            &[][..],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "none")],
            &[("origin", "http://evil.example")],
            &[("origin", "null")],
            &[("sec-fetch-site", "same-origin"), ("origin", "http://evil.example")],
            &[("origin", "http://127.0.0.1:99")],
            &[("host", "127.0.0.1:98"), ("origin", "http://127.0.0.1:99")],
            &[("host", "localhost:98"), ("origin", "http://localhost")],
            &[("host", "localhost:98"), ("origin", "http://127.0.0.1:98")],
        ] {
            assert_eq!(check(Method::POST, more), Err(Refusal::Origin), "{more:?}");
        }
        // A proxy that calls the dashboard by its own name for it.
        let guard = Guard::new(&["proxy.example.org".to_owned()]);
        let cookie = guard.exchange(&guard.key()).expect("it is the key");
        let proxied = [("cookie", &*cookie), ("host", "127.0.0.1:98"), ("origin", "https://proxy.example.org")];
        assert_eq!(guard.check(&Method::POST, &headers(&proxied)), Ok(()));
        for method in [Method::DELETE, Method::PUT, Method::PATCH, Method::OPTIONS] {
            assert_eq!(check(method, &[("sec-fetch-site", "same-origin")]), Err(Refusal::Method));
        }
    }
}
