//! A scripted HTTP server on loopback.
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Sends the response that `answer` returns for a path, with its headers, and closes the connection.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<AtomicU32>,
}

impl Server {
    pub(crate) fn start(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("is bound");
        let requests = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&requests);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                serve(stream, &answer);
            }
        });
        Server { address, requests }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, answer: &impl Fn(&str) -> Vec<u8>) {
    let mut lines = BufReader::new(stream.try_clone().expect("clones")).lines();
    let request = lines.next().and_then(Result::ok).unwrap_or_default();
    while lines.next().and_then(Result::ok).is_some_and(|l| !l.is_empty()) {}
    let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
    // The client may hang up first: it refuses what is too large.
    stream.write_all(&answer(&path)).ok();
}

/// A response with a status line, a length and a body.
pub(crate) fn response(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
