use std::fs;

use powersweep_engine::workload::swf;
use powersweep_experiments::Digest;
use powersweep_inputs::library::{Library, Limits, LoadError, Origin};
use tempfile::TempDir;

use crate::library::server::{Server, response};
use crate::library::{LOG, gzip, zst};

fn library() -> Library {
    Library::new(Vec::new(), None)
}

#[test]
fn a_download_is_checked_decompressed_and_cached() {
    let stored = gzip(LOG.as_bytes());
    let sha = Digest::of(&stored);
    let served = stored.clone();
    let server = Server::start(move |_| response("200 OK", &served));
    let cache = TempDir::new().expect("a temporary folder");
    let cache_folder = cache.path().join("new/folder");
    let library = Library::new(Vec::new(), Some(cache_folder.clone()));
    let url = server.url("l_x/X-1.swf.gz?v=1");
    for _ in 0..3 {
        let log = library.load(&swf::FORMAT, &url, Some(sha)).expect("loads");
        assert_eq!(log.bytes, LOG.as_bytes());
        assert_eq!(log.digest, Digest::of(LOG.as_bytes()));
        assert_eq!(log.origin, Origin::Url(server.url("l_x/X-1.swf.gz")), "without the query");
    }
    assert_eq!(server.requests(), 1, "the cache answers");
    fs::write(cache_folder.join(sha.to_string()), b"damaged").expect("writes");
    assert_eq!(library.load(&swf::FORMAT, &url, Some(sha)).expect("loads").bytes, LOG.as_bytes());
    assert_eq!(server.requests(), 2, "a damaged entry is fetched again");
    library.load(&swf::FORMAT, &url, Some(sha)).expect("loads");
    assert_eq!(server.requests(), 2);
}

#[test]
fn downloads_without_a_file_ending_are_read() {
    for stored in [gzip(LOG.as_bytes()), zst(LOG.as_bytes()), LOG.as_bytes().to_vec()] {
        let sha = Digest::of(&stored);
        let server = Server::start(move |_| response("200 OK", &stored));
        assert_eq!(
            library().load(&swf::FORMAT, &server.url("download"), Some(sha)).expect("loads").bytes,
            LOG.as_bytes()
        );
    }
}

#[test]
fn a_download_needs_its_sha256_and_must_have_it() {
    let server = Server::start(|_| response("200 OK", b"<html>Sign in</html>"));
    let url = server.url("x.swf.gz");
    let error = library().load(&swf::FORMAT, &url, None).expect_err("needs the digest");
    assert!(matches!(error, LoadError::Sha256Missing { .. }), "{error}");
    assert_eq!(server.requests(), 0);
    let error = library().load(&swf::FORMAT, &url, Some(Digest::from([0; 32]))).expect_err("is another file");
    assert!(matches!(error, LoadError::WrongSha256 { .. }), "{error}");
    assert!(error.to_string().contains(&url) && !error.is_retryable());
}

#[test]
fn errors_of_downloads_say_whether_to_retry() {
    let server = Server::start(|path| match path {
        "gone" => response("404 Not Found", b""),
        "busy" => response("503 Service Unavailable", b""),
        "short" => response("200 OK", &[b'x'; 100])[..150].to_vec(),
        "silent" => Vec::new(),
        _ => b"no http\r\n\r\n".to_vec(),
    });
    let load =
        |path: &str| library().load(&swf::FORMAT, &server.url(path), Some(Digest::from([0; 32]))).expect_err("fails");
    assert!(matches!(load("gone"), LoadError::Status { status: 404, .. }));
    assert!(!load("gone").is_retryable());
    assert!(load("busy").is_retryable());
    for path in ["short", "silent", "odd"] {
        let error = load(path);
        assert!(matches!(error, LoadError::Download { .. }) && error.is_retryable(), "{path}: {error:?}");
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let error = library()
        .load(&swf::FORMAT, &format!("HTTP://{closed}/x"), Some(Digest::from([0; 32])))
        .expect_err("nobody listens");
    assert!(matches!(error, LoadError::Download { .. }), "{error:?}");
}

#[test]
fn downloads_are_limited_with_and_without_a_content_length() {
    let body = vec![b'\n'; 10_000];
    let sha = Digest::of(&body);
    let server = Server::start(move |path| match path {
        "announced" => response("200 OK", &body),
        _ => [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", &body[..]].concat(),
    });
    for path in ["announced", "until-the-end"] {
        let with = |stored_bytes| library().with_limits(Limits { stored_bytes, text_bytes: 1 << 20 });
        with(10_000).load(&swf::FORMAT, &server.url(path), Some(sha)).expect("at the limit");
        let error = with(9_999).load(&swf::FORMAT, &server.url(path), Some(sha)).expect_err("beyond the limit");
        assert!(matches!(error, LoadError::TooLarge { text: false, .. }), "{path}: {error:?}");
    }
}

#[test]
fn redirects_are_followed() {
    let server = Server::start(|path| match path {
        "old" => b"HTTP/1.1 302 Found\r\nLocation: /new\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
        _ => response("200 OK", LOG.as_bytes()),
    });
    let sha = Digest::of(LOG.as_bytes());
    assert_eq!(library().load(&swf::FORMAT, &server.url("old"), Some(sha)).expect("loads").bytes, LOG.as_bytes());
}

#[test]
fn no_message_has_the_secrets_of_a_url() {
    let server = Server::start(|_| response("403 Forbidden", b""));
    let sha = Digest::of(LOG.as_bytes());
    let signed = server.url("log.swf?X-Signature=secret");
    let message = library().load(&swf::FORMAT, &signed, Some(sha)).expect_err("refused").to_string();
    assert!(message.contains("log.swf: the server responded with HTTP status 403"), "{message}");
    assert!(!message.contains("secret"), "{message}");
    let named = signed.replace("http://", "http://ann:secret@");
    let message = library().load(&swf::FORMAT, &named, Some(sha)).expect_err("refused").to_string();
    assert!(message.contains("a user name or a password") && !message.contains("secret"), "{message}");
    assert_eq!(server.requests(), 1);
}
