//! Caps on connections. Each is an open file, and the state needs files, too.
//!
//! A connection must make an authorised call soon. Those that have not done so are at most half of all, and when one too
//! many comes, the oldest of them is closed: peers that are slow, silent or without a token cannot keep others out.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

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
pub(super) const FIRST_CALL_WAIT: Duration = Duration::from_secs(10);

/// The open connections of a server.
pub(super) struct Connections {
    most: usize,
    strangers_max: usize,
    wait: Duration,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    peers: HashMap<SocketAddr, (u64, Arc<Peer>)>,
    /// Those without an authorised call, the oldest first.
    strangers: BTreeMap<u64, SocketAddr>,
    next: u64,
}

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
    /// With caps of its own.
    pub(super) fn new(most: usize, strangers_max: usize, wait: Duration) -> Connections {
        Connections { most, strangers_max, wait, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A peer has made an authorised call.
    pub(super) fn known(&self, peer: Option<SocketAddr>) {
        let open = &mut *self.open();
        let Some((number, peer)) = peer.and_then(|peer| open.peers.get(&peer)) else { return };
        peer.known.store(true, Ordering::Relaxed);
        open.strangers.remove(number);
    }

    /// The connections that may stay.
    pub(super) fn guard<IO, S: Stream<Item = io::Result<IO>>>(
        self: &Arc<Self>,
        incoming: S,
    ) -> impl Stream<Item = io::Result<Guarded<IO>>> + use<IO, S>
    where
        IO: Connected<ConnectInfo = TcpConnectInfo>,
    {
        let connections = Arc::clone(self);
        incoming.filter_map(move |io| {
            let admitted = match io {
                Ok(io) => connections.admit(io).map(Ok),
                Err(error) => Some(Err(error)),
            };
            std::future::ready(admitted)
        })
    }

    /// Adds a connection, and closes one without an authorised call if they are too many. `None`: it is closed itself.
    fn admit<IO: Connected<ConnectInfo = TcpConnectInfo>>(self: &Arc<Self>, io: IO) -> Option<Guarded<IO>> {
        let address = io.connect_info().remote_addr()?;
        let open = &mut *self.open();
        if open.peers.len() >= self.most || open.strangers.len() >= self.strangers_max {
            let (_, oldest) = open.strangers.pop_first()?;
            if let Some((_, peer)) = open.peers.get(&oldest) {
                peer.close.cancel();
            }
        }
        let (number, peer) =
            (open.next, Arc::new(Peer { known: AtomicBool::new(false), close: CancellationToken::new() }));
        open.next += 1;
        open.peers.insert(address, (number, Arc::clone(&peer)));
        open.strangers.insert(number, address);
        let closed = Box::pin(peer.close.clone().cancelled_owned());
        let late = Some(Box::pin(tokio::time::sleep(self.wait)));
        Some(Guarded { io, address, number, peer, closed, late, connections: Arc::clone(self) })
    }
}

/// A connection that is closed when it may not stay.
pub(super) struct Guarded<IO> {
    io: IO,
    address: SocketAddr,
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
        // The address may be another connection's by now.
        if open.peers.get(&self.address).is_some_and(|(number, _)| *number == self.number) {
            open.peers.remove(&self.address);
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
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio_stream::wrappers::TcpListenerStream;

    use super::*;

    /// A server that reads each connection until its end.
    async fn serve(connections: Arc<Connections>) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move {
            let incoming = connections.guard(TcpListenerStream::new(listener));
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
}
