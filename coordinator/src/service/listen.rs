//! Connections: accepting, TLS handshakes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use powersweep_proto::connections::{Connections, Guarded};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::either::Either;
use tonic::transport::server::{Connected, TcpConnectInfo, TcpIncoming};

use super::KEEPALIVE_INTERVAL;

/// Limit of one TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that may wait for the server.
const WAITING_MAX: usize = 64;
/// Wait after a connection that could not be accepted: too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An accepted connection, plain or encrypted.
pub(super) struct Connection(Either<Guarded<TcpStream>, Box<TlsStream<Guarded<TcpStream>>>>);

/// Accepts connections until the stream is dropped; with `tls`, those that complete a handshake. `connections` bounds
/// their number, before the handshake too.
pub(super) fn incoming(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    connections: Arc<Connections>,
) -> ReceiverStream<io::Result<Connection>> {
    let (accepted, receiver) = mpsc::channel(WAITING_MAX);
    tokio::spawn(accept(listener, tls.map(TlsAcceptor::from), connections, accepted));
    ReceiverStream::new(receiver)
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    connections: Arc<Connections>,
    accepted: mpsc::Sender<io::Result<Connection>>,
) {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true)).with_keepalive(Some(KEEPALIVE_INTERVAL));
    let incoming = connections.guard(incoming);
    tokio::pin!(incoming);
    loop {
        let stream = tokio::select! {
            stream = incoming.next() => stream,
            () = accepted.closed() => return,
        };
        let stream = match stream {
            Some(Ok(stream)) => stream,
            Some(Err(error)) => {
                tracing::warn!("a connection cannot be accepted: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
            None => return,
        };
        let (tls, accepted) = (tls.clone(), accepted.clone());
        tokio::spawn(async move {
            if let Some(connection) = greeted(stream, tls).await {
                let _ = accepted.send(Ok(connection)).await;
            }
        });
    }
}

/// Does the handshake. A peer that fails it is logged only on request: any program on the network can cause that.
async fn greeted(stream: Guarded<TcpStream>, tls: Option<TlsAcceptor>) -> Option<Connection> {
    let Some(tls) = tls else { return Some(Connection(Either::Left(stream))) };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(Connection(Either::Right(Box::new(stream)))),
        Ok(Err(error)) => {
            tracing::debug!("a TLS handshake failed: {error}");
            None
        }
        Err(_) => None,
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        match &self.0 {
            Either::Left(stream) => stream.connect_info(),
            Either::Right(stream) => stream.get_ref().0.connect_info(),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}
