//! Before a call reaches its handler: its token is checked, and its messages get room in memory.
//!
//! A handler sees a call only after its whole first message was read, which may be 32 MiB. So a caller without a valid token
//! is answered before, and a message that is longer than one frame waits until the budget has room for all of it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use powersweep_proto::access::Role;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response, header};
use tonic::codegen::{BoxFuture, Service};
use tonic::server::NamedService;

use super::MESSAGE_BYTES_MAX;
use super::auth;
use super::metrics::Counters;
use crate::access::Authority;

/// Bytes of all messages that arrive in pieces at the same time.
const BUDGET_BYTES: usize = 128 << 20;
/// How long a message may take to arrive once it has its room, and how long its sender may be silent meanwhile.
const MESSAGE_TIME: Duration = Duration::from_secs(120);
const SILENCE: Duration = Duration::from_secs(30);

/// A service of callers that have a token, and whose messages share a budget.
#[derive(Clone)]
pub(super) struct Admission<S> {
    inner: S,
    access: Arc<Authority>,
    counters: Arc<Counters>,
    budget: Arc<Semaphore>,
}

impl<S> Admission<S> {
    pub(super) fn new(inner: S, access: Arc<Authority>, counters: Arc<Counters>) -> Admission<S> {
        Admission { inner, access, counters, budget: Arc::new(Semaphore::new(BUDGET_BYTES)) }
    }
}

impl<S: NamedService> NamedService for Admission<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Admission<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Response<Body>, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let Admission { mut inner, access, counters, budget } = self.clone();
        Box::pin(async move {
            let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
            let token = auth::token(header);
            let admitted = match auth::admit(&access, token).await {
                Ok(admitted) => admitted,
                Err(status) => {
                    counters.unknown_tokens.inc();
                    return Ok(status.into_http());
                }
            };
            // A worker's session ends by its reader, which tells the farm.
            let revoked = (admitted.role == Role::Client).then(|| admitted.revoked.clone());
            request.extensions_mut().insert(admitted);
            let answer = inner.call(request.map(|body| Body::new(Metered::new(body, budget))));
            match revoked {
                None => answer.await,
                Some(revoked) => until_revoked(revoked, answer).await,
            }
        })
    }
}

/// The answer to a client's call, which ends with the client's token.
async fn until_revoked(
    revoked: CancellationToken,
    answer: impl Future<Output = Result<Response<Body>, Infallible>>,
) -> Result<Response<Body>, Infallible> {
    tokio::select! {
        response = answer => {
            let ended = Box::pin(revoked.cancelled_owned());
            Ok(response?.map(|inner| Body::new(Revocable { inner, ended, is_over: false })))
        }
        () = revoked.cancelled() => Ok(auth::not_valid().into_http()),
    }
}

/// The body of an answer that ends early if the caller's token is revoked.
struct Revocable {
    inner: Body,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    is_over: bool,
}

impl http_body::Body for Revocable {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        if this.ended.as_mut().poll(context).is_ready() {
            this.is_over = true;
            let mut trailers = HeaderMap::new();
            return Poll::Ready(Some(auth::not_valid().add_header(&mut trailers).map(|()| Frame::trailers(trailers))));
        }
        Pin::new(&mut this.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

type Waiting = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// The body of a call. A message that is longer than its first frame gets room in memory before the next frame is read.
struct Metered {
    inner: Body,
    budget: Arc<Semaphore>,
    prefix: Prefix,
    waits: Option<Waiting>,
    /// Number of the message that has room.
    of: u64,
    room: Option<OwnedSemaphorePermit>,
    /// When that message must be complete.
    until: Instant,
    /// Wakes at `until`, or when its sender has been silent for too long.
    late: Pin<Box<Sleep>>,
}

impl Metered {
    fn new(inner: Body, budget: Arc<Semaphore>) -> Metered {
        let (until, late) = (Instant::now(), Box::pin(sleep(SILENCE)));
        Metered { inner, budget, prefix: Prefix::default(), waits: None, of: 0, room: None, until, late }
    }

    /// Asks for the room of the message that arrives, unless it has room. Called when the reader has taken every complete
    /// message.
    fn make_room(&mut self) {
        let arrives = self.prefix.left > 0;
        if arrives && self.of == self.prefix.number {
            return;
        }
        (self.room, self.of) = (None, self.prefix.number);
        if arrives {
            // The reader refuses a longer message by its prefix.
            let bytes = u32::try_from(self.prefix.length.min(MESSAGE_BYTES_MAX)).unwrap_or(u32::MAX);
            self.waits = Some(Box::pin(Arc::clone(&self.budget).acquire_many_owned(bytes)));
        }
    }

    fn expect_frame(&mut self) {
        let silent = Instant::now() + SILENCE;
        self.late.as_mut().reset(silent.min(self.until));
    }
}

impl http_body::Body for Metered {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        this.make_room();
        if let Some(wait) = &mut this.waits {
            let room = ready!(wait.as_mut().poll(context)).map_err(|_| Status::unavailable("the service ends"))?;
            (this.waits, this.room) = (None, Some(room));
            this.until = Instant::now() + MESSAGE_TIME;
            this.expect_frame();
        }
        if this.room.is_some() && this.late.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(Status::deadline_exceeded("a message did not arrive in time"))));
        }
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(context));
        if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            this.prefix.advance(data);
            this.expect_frame();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Bytes of gRPC's prefix of a message: a flag and the length.
const PREFIX_BYTES: usize = 5;

/// The place in a stream of messages with gRPC's prefix.
#[derive(Default)]
struct Prefix {
    bytes: [u8; PREFIX_BYTES],
    known: usize,
    /// Number and length of the present message, and the bytes of it that have not arrived.
    number: u64,
    length: usize,
    left: usize,
}

impl Prefix {
    /// Moves past a frame.
    fn advance(&mut self, mut frame: &[u8]) {
        while !frame.is_empty() {
            let taken = if self.left > 0 { self.skip(frame.len()) } else { self.read(frame) };
            frame = &frame[taken..];
        }
    }

    fn skip(&mut self, most: usize) -> usize {
        let taken = self.left.min(most);
        self.left -= taken;
        taken
    }

    fn read(&mut self, frame: &[u8]) -> usize {
        let taken = (PREFIX_BYTES - self.known).min(frame.len());
        self.bytes[self.known..self.known + taken].copy_from_slice(&frame[..taken]);
        self.known += taken;
        if self.known == PREFIX_BYTES {
            let [_, length @ ..] = self.bytes;
            self.length = u32::from_be_bytes(length) as usize;
            (self.left, self.known) = (self.length, 0);
            self.number += 1;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_however_they_are_cut_into_frames() {
        let lengths = [0_usize, 1, 5, 300, 70_000, 0, 2];
        let mut stream = Vec::new();
        for length in lengths {
            stream.push(0);
            stream.extend((length as u32).to_be_bytes());
            stream.extend(std::iter::repeat_n(9, length));
        }
        for frame in [1, 2, 3, 4, 5, 7, 64, 16_384, stream.len()] {
            let mut prefix = Prefix::default();
            for piece in stream.chunks(frame) {
                prefix.advance(piece);
                let number = prefix.number as usize;
                assert!(number == 0 || prefix.length == lengths[number - 1], "{frame}: message {number}");
                assert!(prefix.left <= prefix.length);
            }
            assert_eq!((prefix.number, prefix.left, prefix.known), (lengths.len() as u64, 0, 0), "{frame}");
        }
    }

    fn message(length: usize, sent: usize) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend((length as u32).to_be_bytes());
        bytes.extend(std::iter::repeat_n(9, sent));
        bytes
    }

    /// A body of these frames that stays open.
    fn body(budget: &Arc<Semaphore>, frames: Vec<Vec<u8>>) -> Pin<Box<Metered>> {
        let frames = frames.into_iter().map(|frame| Ok::<_, Infallible>(Bytes::from(frame)));
        let frames = futures::StreamExt::chain(futures::stream::iter(frames), futures::stream::pending());
        let inner = Body::new(axum::body::Body::from_stream(frames));
        Box::pin(Metered::new(inner, Arc::clone(budget)))
    }

    /// The next frame; `None` while there is none.
    async fn next(body: &mut Pin<Box<Metered>>) -> Option<Result<usize, Status>> {
        use http_body::Body as _;
        let frame = std::future::poll_fn(|context| body.as_mut().poll_frame(context));
        let frame = tokio::time::timeout(Duration::from_millis(1), frame).await.ok()?.expect("not the end");
        Some(frame.map(|frame| frame.into_data().expect("data").len()))
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_ends_with_its_token() {
        use http_body::Body as _;
        let revoked = CancellationToken::new();
        let endless = futures::stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"row"))]);
        let endless = futures::StreamExt::chain(endless, futures::stream::pending());
        let answer = async { Ok(Response::new(Body::new(axum::body::Body::from_stream(endless)))) };
        let mut body = until_revoked(revoked.clone(), answer).await.expect("no error").into_body();
        let mut next = async || {
            let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context));
            Some(tokio::time::timeout(Duration::from_millis(1), frame).await.ok()?.map(|frame| frame.expect("sound")))
        };
        assert!(next().await.flatten().is_some_and(|frame| frame.is_data()));
        assert!(next().await.is_none(), "it waits for more rows");
        revoked.cancel();
        let trailers = next().await.flatten().and_then(|frame| frame.into_trailers().ok()).expect("the end");
        assert_eq!(trailers.get("grpc-status").map(|code| code.as_bytes()), Some(&b"16"[..]));
        assert!(next().await.is_some_and(|frame| frame.is_none()));
        let never = until_revoked(revoked, futures::future::pending()).await.expect("no error");
        assert_eq!(never.headers().get("grpc-status").map(|code| code.as_bytes()), Some(&b"16"[..]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_message_waits_for_its_room_and_gives_it_back() {
        let budget = Arc::new(Semaphore::new(100));
        // One frame ends a short message and begins a long one, which must not use the room of the short one.
        let both = [vec![9; 10], message(90, 5)].concat();
        let mut first = body(&budget, vec![message(20, 10), both, vec![9; 85], message(1, 1), message(2, 2)]);
        assert_eq!(next(&mut first).await.expect("a frame").expect("sound"), 15);
        assert_eq!(budget.available_permits(), 100, "it has not been asked for the next frame");
        assert_eq!(next(&mut first).await.expect("a frame").expect("sound"), 20);
        assert_eq!(budget.available_permits(), 80);
        let mut second = body(&budget, vec![message(30, 1), vec![9; 29]]);
        assert_eq!(next(&mut second).await.expect("a frame").expect("sound"), 6);
        assert_eq!(next(&mut first).await.expect("a frame").expect("sound"), 85);
        assert_eq!(budget.available_permits(), 10);
        assert!(next(&mut second).await.is_none(), "there is room for 10 bytes of 30");
        assert_eq!(next(&mut first).await.expect("a frame").expect("sound"), 6);
        assert_eq!(next(&mut second).await.expect("a frame").expect("sound"), 29);
        assert_eq!(budget.available_permits(), 70);
        drop(second);
        assert_eq!(budget.available_permits(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_that_stops_within_a_message_loses_its_room() {
        let budget = Arc::new(Semaphore::new(100));
        let mut stalled = body(&budget, vec![message(50, 1), vec![9]]);
        for _ in 0..2 {
            assert!(next(&mut stalled).await.is_some_and(|frame| frame.is_ok()));
        }
        assert!(next(&mut stalled).await.is_none());
        tokio::time::advance(SILENCE).await;
        assert!(next(&mut stalled).await.is_some_and(|frame| frame.is_err()));
        // A caller between two messages may be silent for ever.
        let mut idle = body(&budget, vec![message(1, 1)]);
        assert!(next(&mut idle).await.is_some_and(|frame| frame.is_ok()));
        tokio::time::advance(10 * MESSAGE_TIME).await;
        assert!(next(&mut idle).await.is_none());
    }
}
