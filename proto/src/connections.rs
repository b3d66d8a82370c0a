//! Caps on the connections of a server. Each is an open file, and the rest of the process needs files, too.
//!
//! A connection must make an authorised call soon. Those that have not done so are at most half of all, and when one too
//! many comes, the oldest of them is closed: peers that are slow, silent or without a token cannot keep others out.
//!
//! [`Connections::guard`] is for servers of gRPC, [`Door`] for those of HTTP.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::{IncomingStream, Listener};
use futures::{Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// Open files that connections leave to the state, the logs and the parts.
const FILES_RESERVED: u64 = 256;
/// Maximum number of connections, whatever the limit of open files is.
const CONNECTIONS_MAX: u64 = 65_536;
/// Maximum number of connections without an authorised call: each may hold a buffer of a TLS handshake.
const STRANGERS_MAX: usize = 8_192;
/// How long a connection may take until its first authorised call.
pub const FIRST_CALL_WAIT: Duration = Duration::from_secs(10);

/// The open connections of a server.
#[derive(Debug)]
pub struct Connections {
    most: usize,
    strangers_max: usize,
    wait: Duration,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    peers: HashMap<u64, Arc<Peer>>,
    numbers: HashMap<SocketAddr, u64>,
    /// Those without an authorised call, the oldest first.
    strangers: BTreeSet<u64>,
    next: u64,
}

#[derive(Debug)]
struct Peer {
    /// It has made an authorised call.
    known: AtomicBool,
    close: CancellationToken,
}

impl Default for Connections {
    /// The caps that the process's limit of open files allows.
    fn default() -> Connections {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = files.saturating_sub(FILES_RESERVED).clamp(32, CONNECTIONS_MAX) as usize;
        // After a restart, all workers come at the same time.
        Connections::new(most, (most / 2).min(STRANGERS_MAX), FIRST_CALL_WAIT)
    }
}

impl Connections {
    /// With caps of its own: on all connections, on those without an authorised call, and on the time until that call.
    pub fn new(most: usize, strangers_max: usize, wait: Duration) -> Connections {
        Connections { most, strangers_max, wait, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A peer has made an authorised call.
    pub fn known(&self, peer: Option<SocketAddr>) {
        let open = &mut *self.open();
        if let Some(number) = peer.and_then(|peer| open.numbers.get(&peer).copied()) {
            open.know(number);
        }
    }

    /// The connections that may stay.
    pub fn guard<IO, S: Stream<Item = io::Result<IO>>>(
        self: &Arc<Self>,
        incoming: S,
    ) -> impl Stream<Item = io::Result<Guarded<IO>>> + use<IO, S>
    where
        IO: Connected<ConnectInfo = TcpConnectInfo>,
    {
        let connections = Arc::clone(self);
        incoming.filter_map(move |io| {
            let admitted = match io {
                Ok(io) => {
                    let address = io.connect_info().remote_addr();
                    address.and_then(|address| connections.admit(io, Some(address))).map(Ok)
                }
                Err(error) => Some(Err(error)),
            };
            std::future::ready(admitted)
        })
    }

    /// Adds a connection, and closes one without an authorised call if they are too many. `None`: it is closed itself.
    fn admit<IO>(self: &Arc<Self>, io: IO, address: Option<SocketAddr>) -> Option<Guarded<IO>> {
        let open = &mut *self.open();
        if open.peers.len() >= self.most || open.strangers.len() >= self.strangers_max {
            let oldest = open.strangers.pop_first()?;
            if let Some(peer) = open.peers.get(&oldest) {
                peer.close.cancel();
            }
        }
        let (number, peer) =
            (open.next, Arc::new(Peer { known: AtomicBool::new(false), close: CancellationToken::new() }));
        open.next += 1;
        open.peers.insert(number, Arc::clone(&peer));
        open.strangers.insert(number);
        open.numbers.extend(address.map(|address| (address, number)));
        let closed = Box::pin(peer.close.clone().cancelled_owned());
        let late = Some(Box::pin(tokio::time::sleep(self.wait)));
        Some(Guarded { io, address, number, peer, closed, late, connections: Arc::clone(self) })
    }
}

impl Open {
    fn know(&mut self, number: u64) {
        if let Some(peer) = self.peers.get(&number) {
            peer.known.store(true, Ordering::Relaxed);
            self.strangers.remove(&number);
        }
    }
}

/// A listener of HTTP whose connections are bounded.
#[derive(Debug)]
pub struct Door<L> {
    listener: L,
    connections: Arc<Connections>,
}

impl<L> Door<L> {
    /// Bounds the connections of a listener.
    pub fn new(listener: L, connections: Arc<Connections>) -> Door<L> {
        Door { listener, connections }
    }
}

impl<L: Listener> Listener for Door<L> {
    type Io = Guarded<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Guarded<L::Io>, L::Addr) {
        loop {
            let (io, address) = self.listener.accept().await;
            if let Some(io) = self.connections.admit(io, None) {
                return (io, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<L::Addr> {
        self.listener.local_addr()
    }
}

/// The connection of a request to a [`Door`], as a server's `ConnectInfo`.
#[derive(Debug, Clone)]
pub struct Caller {
    number: u64,
    connections: Arc<Connections>,
}

impl Caller {
    /// It has made an authorised call.
    pub fn known(&self) {
        self.connections.open().know(self.number);
    }
}

impl<L: Listener> axum::extract::connect_info::Connected<IncomingStream<'_, Door<L>>> for Caller {
    fn connect_info(stream: IncomingStream<'_, Door<L>>) -> Caller {
        let guarded = stream.io();
        Caller { number: guarded.number, connections: Arc::clone(&guarded.connections) }
    }
}

/// A connection that is closed when it may not stay.
#[derive(Debug)]
pub struct Guarded<IO> {
    io: IO,
    address: Option<SocketAddr>,
    number: u64,
    peer: Arc<Peer>,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    /// `None` once the peer is known.
    late: Option<Pin<Box<Sleep>>>,
    connections: Arc<Connections>,
}

impl<IO> Guarded<IO> {
    /// Whether the connection has to end now.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let Some(late) = &mut self.late else { return false };
        if self.peer.known.load(Ordering::Relaxed) {
            self.late = None;
            return false;
        }
        late.as_mut().poll(context).is_ready() || self.closed.as_mut().poll(context).is_ready()
    }
}

impl<IO> Drop for Guarded<IO> {
    fn drop(&mut self) {
        let open = &mut *self.connections.open();
        open.strangers.remove(&self.number);
        open.peers.remove(&self.number);
        // The address may be another connection's by now.
        if let Some(address) = self.address
            && open.numbers.get(&address) == Some(&self.number)
        {
            open.numbers.remove(&address);
        }
    }
}

impl<IO: Connected> Connected for Guarded<IO> {
    type ConnectInfo = IO::ConnectInfo;

    fn connect_info(&self) -> IO::ConnectInfo {
        self.io.connect_info()
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Guarded<IO> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_over(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut this.io).poll_read(context, buffer)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Guarded<IO> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::extract::ConnectInfo;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tonic::transport::server::TcpIncoming;

    use super::*;

    /// A server that reads each connection until its end.
    async fn serve(connections: Arc<Connections>) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move {
            let incoming = connections.guard(TcpIncoming::from(listener));
            let mut incoming = std::pin::pin!(incoming);
            while let Some(Ok(mut io)) = incoming.next().await {
                tokio::spawn(async move { while io.read_u8().await.is_ok() {} });
            }
        });
        address
    }

    async fn is_closed(stream: &mut TcpStream) -> bool {
        tokio::time::timeout(Duration::from_millis(50), stream.read_u8()).await.is_ok()
    }

    #[tokio::test]
    async fn silent_connections_make_room_for_later_ones() {
        let connections = Arc::new(Connections::new(40, 20, Duration::from_secs(600)));
        let address = serve(Arc::clone(&connections)).await;
        let mut worker = TcpStream::connect(address).await.expect("open");
        while connections.open().peers.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        connections.known(worker.local_addr().ok());
        let mut silent = Vec::new();
        for _ in 0..400 {
            silent.push(TcpStream::connect(address).await.expect("the listener accepts"));
        }
        let last = silent.last_mut().expect("some");
        assert!(!is_closed(last).await && !is_closed(&mut worker).await, "later and known peers stay");
        assert!(is_closed(&mut silent[0]).await, "the first ones were closed");
        assert!(connections.open().peers.len() <= 40, "{}", connections.open().peers.len());
        drop(silent);
        while connections.open().peers.len() > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn a_connection_without_a_call_is_closed_after_a_while() {
        let connections = Arc::new(Connections::new(40, 20, Duration::from_millis(200)));
        let address = serve(Arc::clone(&connections)).await;
        let mut silent = TcpStream::connect(address).await.expect("open");
        let mut worker = TcpStream::connect(address).await.expect("open");
        while connections.open().peers.len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        connections.known(worker.local_addr().ok());
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(is_closed(&mut silent).await && !is_closed(&mut worker).await);
    }

    /// A server of HTTP with a page for everybody, and one whose callers are known.
    async fn serve_pages(connections: Connections) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let known = |ConnectInfo(caller): ConnectInfo<Caller>| async move { caller.known() };
        let router = Router::new().route("/open", get(|| async {})).route("/known", get(known));
        let door = Door::new(listener, Arc::new(connections));
        tokio::spawn(async { axum::serve(door, router.into_make_service_with_connect_info::<Caller>()).await });
        address
    }

    /// Asks for a page; whether an answer came.
    async fn answers(stream: &mut TcpStream, page: &str) -> bool {
        let request = format!("GET /{page} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let sent = stream.write_all(request.as_bytes()).await;
        let mut head = Vec::new();
        while sent.is_ok() && !head.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else { return false };
            head.push(byte);
        }
        head.starts_with(b"HTTP/1.1 200 OK")
    }

    /// Reads until the connection ends.
    async fn end(stream: &mut TcpStream) {
        let _ = tokio::io::copy(stream, &mut tokio::io::sink()).await;
    }

    #[tokio::test]
    async fn silent_connections_do_not_keep_a_request_of_http_out() {
        let address = serve_pages(Connections::new(40, 20, Duration::from_secs(600))).await;
        let mut silent = Vec::new();
        for _ in 0..400 {
            silent.push(TcpStream::connect(address).await.expect("the listener accepts"));
        }
        let mut caller = TcpStream::connect(address).await.expect("the listener accepts");
        assert!(answers(&mut caller, "open").await, "a request is answered");
        for stream in &mut silent[..380] {
            end(stream).await;
        }
    }

    #[tokio::test]
    async fn connections_of_http_are_closed_unless_they_are_known() {
        let address = serve_pages(Connections::new(40, 20, Duration::from_millis(200))).await;
        let connect = async || TcpStream::connect(address).await.expect("open");
        let (mut silent, mut slow, mut open, mut known) =
            (connect().await, connect().await, connect().await, connect().await);
        assert!(answers(&mut known, "known").await);
        slow.write_all(b"GET /open HTTP/1.1\r\nhost: loc").await.expect("sent");
        assert!(answers(&mut open, "open").await, "a page for everybody makes nobody known");
        for stream in [&mut silent, &mut slow, &mut open] {
            end(stream).await;
        }
        assert!(answers(&mut known, "known").await, "it stays");
    }
}
