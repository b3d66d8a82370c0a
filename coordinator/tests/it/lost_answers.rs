//! Conditional writes whose answer is lost: the client makes the request again, and the store refuses it because of the
//! first one. Nobody else was there.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use powersweep_coordinator::owner::Ownership;
use powersweep_coordinator::probe::probe;
use powersweep_coordinator::store::Location;

/// Every conditional write is carried out twice, and the second answer is what the caller gets.
#[derive(Debug)]
struct Repeating(InMemory);

impl std::fmt::Display for Repeating {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Repeating({})", self.0)
    }
}

#[async_trait]
impl ObjectStore for Repeating {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let first = self.0.put_opts(location, payload.clone(), options.clone()).await?;
        match self.0.put_opts(location, payload, options).await {
            Err(error @ (Error::AlreadyExists { .. } | Error::Precondition { .. })) => Err(error),
            _ => Ok(first),
        }
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

fn repeating() -> Location {
    Location::remote("s3://bucket/".parse().expect("a URL"), Arc::new(Repeating(InMemory::new())))
}

#[tokio::test(start_paused = true)]
async fn an_owner_does_not_mistake_itself_for_another() {
    let location = repeating();
    let first = Ownership::take(&location, "http://a:1", false).await.expect("nobody else is there");
    let lost = first.lost();
    // Some renewals.
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert!(lost.borrow().is_none());
    let second = Ownership::take(&location, "http://b:1", true).await.expect("taken over");
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert!(lost.borrow().is_some() && second.lost().borrow().is_none());
}

#[tokio::test]
async fn a_probe_does_not_mistake_itself_for_another() {
    probe(&repeating()).await.expect("the store is well");
}
