//! Stores in memory that treat writes in a way of their own.

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};

/// The way in which a store writes an object.
#[async_trait]
pub(crate) trait Writes: std::fmt::Debug + Send + Sync + 'static {
    async fn put(&self, store: &InMemory, to: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult>;
}

/// A store that writes in this way.
#[derive(Debug)]
pub(crate) struct Writing<W>(pub(crate) InMemory, pub(crate) W);

impl<W: Writes> std::fmt::Display for Writing<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}({})", self.1, self.0)
    }
}

#[async_trait]
impl<W: Writes> ObjectStore for Writing<W> {
    async fn put_opts(&self, to: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.1.put(&self.0, to, payload, options).await
    }

    async fn put_multipart_opts(&self, to: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(to, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}
