//! An object store in which any operation, also a read, can fail in every way that a network allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Notify;

/// The fault of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ill {
    /// The process dies before it happens.
    DieBefore,
    /// The process dies after it happened, before it gets the answer.
    DieAfter,
    /// It happens, and its answer is lost: the caller gets an error.
    LoseAnswer,
    /// It does not happen; the caller gets an error.
    Fail,
    /// It happens late.
    Slow(Duration),
    /// It does not happen, and the caller gets an error late.
    TimeOut(Duration),
    /// It waits for [`IllStore::release`].
    Hold,
}

type Plan = Box<dyn Fn(u64) -> Option<Ill> + Send + Sync>;

/// Counts operations and asks its plan about each. See the module.
pub(crate) struct IllStore {
    inner: Arc<dyn ObjectStore>,
    plan: Plan,
    operations: AtomicU64,
    writes_only: bool,
    dead: AtomicBool,
    died: Notify,
    held: AtomicBool,
    released: Notify,
}

impl IllStore {
    /// `plan` says what happens at each operation, counted from 0.
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, plan: Plan) -> Arc<IllStore> {
        IllStore::over(inner, plan, false)
    }

    /// Only writes are counted and can fail.
    pub(crate) fn of_writes(inner: Arc<dyn ObjectStore>, plan: Plan) -> Arc<IllStore> {
        IllStore::over(inner, plan, true)
    }

    fn over(inner: Arc<dyn ObjectStore>, plan: Plan, writes_only: bool) -> Arc<IllStore> {
        Arc::new(IllStore {
            inner,
            plan,
            operations: AtomicU64::new(0),
            writes_only,
            dead: AtomicBool::new(false),
            died: Notify::new(),
            held: AtomicBool::new(false),
            released: Notify::new(),
        })
    }

    /// Operations so far.
    pub(crate) fn operations(&self) -> u64 {
        self.operations.load(Ordering::SeqCst)
    }

    /// Whether an operation is held.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::SeqCst)
    }

    /// Lets a held operation happen.
    pub(crate) fn release(&self) {
        self.released.notify_one();
    }

    /// Returns when the process has died.
    pub(crate) async fn died(&self) {
        loop {
            let notified = self.died.notified();
            if self.dead.load(Ordering::SeqCst) {
                return;
            }
            notified.await;
        }
    }

    async fn die<T>(&self) -> T {
        self.dead.store(true, Ordering::SeqCst);
        self.died.notify_waiters();
        std::future::pending().await
    }

    async fn operation<T>(&self, writes: bool, work: impl Future<Output = Result<T>>) -> Result<T> {
        if self.dead.load(Ordering::SeqCst) {
            return self.die().await;
        }
        if self.writes_only && !writes {
            return work.await;
        }
        match (self.plan)(self.operations.fetch_add(1, Ordering::SeqCst)) {
            None => work.await,
            Some(Ill::DieBefore) => self.die().await,
            Some(Ill::DieAfter) => {
                let _ = work.await;
                self.die().await
            }
            Some(Ill::LoseAnswer) => {
                let _ = work.await;
                Err(broken())
            }
            Some(Ill::Fail) => Err(broken()),
            Some(Ill::Slow(time)) => {
                tokio::time::sleep(time).await;
                work.await
            }
            Some(Ill::TimeOut(time)) => {
                tokio::time::sleep(time).await;
                Err(broken())
            }
            Some(Ill::Hold) => {
                self.held.store(true, Ordering::SeqCst);
                self.released.notified().await;
                work.await
            }
        }
    }
}

fn broken() -> Error {
    Error::Generic { store: "ill", source: "connection reset by peer (simulated)".into() }
}

impl std::fmt::Debug for IllStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for IllStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IllStore({})", self.inner)
    }
}

/// A handle that the methods of [`ObjectStore`] can move into streams.
#[derive(Debug, Clone)]
pub(crate) struct Ailing(pub(crate) Arc<IllStore>);

impl std::fmt::Display for Ailing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Ailing {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.0.operation(true, self.0.inner.put_opts(location, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.operation(true, self.0.inner.put_multipart_opts(location, options)).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.operation(false, self.0.inner.get_opts(location, options)).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let ill = Arc::clone(&self.0);
        locations
            .and_then(move |location| {
                let ill = Arc::clone(&ill);
                async move {
                    let one = futures::stream::iter([Ok(location.clone())]).boxed();
                    let deleted = async { ill.inner.delete_stream(one).try_collect::<Vec<_>>().await.map(|_| ()) };
                    ill.operation(true, deleted).await.map(|()| location.clone())
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (ill, prefix) = (Arc::clone(&self.0), prefix.cloned());
        let listed = async move {
            let all = ill.inner.list(prefix.as_ref()).try_collect::<Vec<_>>();
            match ill.operation(false, all).await {
                Ok(found) => futures::stream::iter(found.into_iter().map(Ok).collect::<Vec<_>>()),
                Err(error) => futures::stream::iter(vec![Err(error)]),
            }
        };
        futures::stream::once(listed).flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.operation(false, self.0.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.operation(true, self.0.inner.copy_opts(from, to, options)).await
    }
}
