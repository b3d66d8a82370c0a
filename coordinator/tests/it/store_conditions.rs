//! Object stores without conditional writes, which a start refuses.

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use powersweep_coordinator::probe::{ProbeError, probe};
use powersweep_coordinator::store::Location;
use std::sync::Arc;

/// What a store does with the conditions of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lacks {
    /// It replaces existing objects.
    Create,
    /// It updates objects that have changed.
    Update,
    /// It refuses every conditional update.
    AnyUpdate,
    /// It does not know conditional updates.
    Knowledge,
}

#[derive(Debug)]
struct Careless(InMemory, Lacks);

impl std::fmt::Display for Careless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Careless({})", self.0)
    }
}

#[async_trait]
impl ObjectStore for Careless {
    async fn put_opts(&self, to: &Path, payload: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        let path = to.to_string();
        match (&options.mode, self.1) {
            (PutMode::Create, Lacks::Create) | (PutMode::Update(_), Lacks::Update) => options.mode = PutMode::Overwrite,
            (PutMode::Update(_), Lacks::AnyUpdate) => return Err(Error::Precondition { path, source: "412".into() }),
            (PutMode::Update(_), Lacks::Knowledge) => {
                return Err(Error::NotImplemented { operation: "update".into(), implementer: self.to_string() });
            }
            _ => {}
        }
        self.0.put_opts(to, payload, options).await
    }

    async fn put_multipart_opts(&self, to: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(to, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(paths)
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

#[tokio::test]
async fn a_store_without_conditional_writes_is_refused_with_what_it_lacks() {
    for (lacks, text) in [
        (Lacks::Create, "s3://bucket/ lets two writers create the same object"),
        (Lacks::Update, "that of a changed object is carried out"),
        (Lacks::AnyUpdate, "that of an unchanged object is refused"),
        (Lacks::Knowledge, "update"),
    ] {
        let store = Arc::new(Careless(InMemory::new(), lacks));
        let location = Location::remote("s3://bucket/".parse().expect("a URL"), store.clone());
        let error = probe(&location).await.expect_err("unusable");
        let is_update = matches!(error, ProbeError::NoConditionalUpdate { .. });
        assert_eq!(is_update, lacks != Lacks::Create, "{error:?}");
        let shown = error.to_string();
        assert!(shown.contains(text) && shown.starts_with("s3://bucket/"), "{shown}");
        println!("{shown}");
        let left = store.list_with_delimiter(Some(&Path::from(".powersweep"))).await.expect("lists");
        assert!(left.objects.is_empty(), "{:?}", left.objects);
    }
}
