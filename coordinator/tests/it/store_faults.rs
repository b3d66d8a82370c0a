//! An object store that stops at a chosen write: for crashes at every step.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Notify;

/// Whether the chosen write happens. No later operation happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It never happens and never returns.
    Before,
    /// It happens and never returns.
    After,
}

/// Writes (puts, copies, deletes) count down once armed; at zero no write returns any more, as in a dead process.
#[derive(Debug)]
pub(crate) struct Mortal {
    inner: Arc<dyn ObjectStore>,
    left: AtomicI64,
    after: AtomicBool,
    dead: AtomicBool,
    died: Notify,
}

impl Mortal {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Arc<Mortal> {
        Arc::new(Mortal {
            inner,
            left: AtomicI64::new(i64::MAX),
            after: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            died: Notify::new(),
        })
    }

    /// Dies at the `n`th write from now, counted from 0.
    pub(crate) fn arm(&self, n: i64, stop: Stop) {
        self.after.store(stop == Stop::After, Ordering::SeqCst);
        self.left.store(n, Ordering::SeqCst);
    }

    /// Returns when it has died.
    pub(crate) async fn died(&self) {
        loop {
            let notified = self.died.notified();
            if self.dead.load(Ordering::SeqCst) {
                return;
            }
            notified.await;
        }
    }

    async fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
        self.died.notify_waiters();
        std::future::pending::<()>().await;
    }

    /// One write; returns only if the process lives on.
    async fn write<T>(&self, work: impl Future<Output = T>) -> T {
        if self.dead.load(Ordering::SeqCst) {
            self.die().await;
        }
        let last = self.left.fetch_sub(1, Ordering::SeqCst) == 0;
        if last && !self.after.load(Ordering::SeqCst) {
            self.die().await;
        }
        let result = work.await;
        if last {
            self.die().await;
        }
        result
    }
}

impl std::fmt::Display for Mortal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mortal({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Mortal {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.write(self.inner.put_opts(location, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.write(self.inner.put_multipart_opts(location, options)).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        // Deletes after death would be the only writes that get through.
        if self.dead.load(Ordering::SeqCst) || self.left.fetch_sub(1, Ordering::SeqCst) == 0 {
            self.dead.store(true, Ordering::SeqCst);
            self.died.notify_waiters();
            return futures::stream::pending().boxed();
        }
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.write(self.inner.copy_opts(from, to, options)).await
    }
}
