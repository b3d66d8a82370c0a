//! The private folder of a shard: the object store of DATA, with the state, uploads and owner record of one shard in
//! place of the coordinator's. All other objects, such as the dataset, are shared with DATA.

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use powersweep_results::layout::STATE_FOLDER;
use std::sync::Arc;

/// An object store whose private folder is elsewhere.
#[derive(Debug, Clone)]
pub(super) struct PrivateFolder {
    inner: Arc<dyn ObjectStore>,
    paths: Paths,
}

/// The place of the private folder.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    /// Its name for the caller.
    named: Path,
    /// The folder in the store.
    stored: Path,
}

impl Paths {
    pub(super) fn new(stored: Path) -> Paths {
        Paths { named: Path::from(STATE_FOLDER), stored }
    }

    /// The path in the store.
    pub(super) fn to(&self, path: &Path) -> Path {
        moved(path, &self.named, &self.stored)
    }

    /// The path for the caller.
    fn from(&self, path: &Path) -> Path {
        moved(path, &self.stored, &self.named)
    }

    fn meta(&self, meta: ObjectMeta) -> ObjectMeta {
        ObjectMeta { location: self.from(&meta.location), ..meta }
    }
}

/// A path below `from`, below `to` instead; any other path.
fn moved(path: &Path, from: &Path, to: &Path) -> Path {
    match path.prefix_match(from) {
        Some(rest) => to.parts().chain(rest).collect(),
        None => path.clone(),
    }
}

impl PrivateFolder {
    pub(super) fn new(inner: Arc<dyn ObjectStore>, paths: Paths) -> PrivateFolder {
        PrivateFolder { inner, paths }
    }
}

impl std::fmt::Display for PrivateFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with {} in {}", self.inner, self.paths.named, self.paths.stored)
    }
}

#[async_trait]
impl ObjectStore for PrivateFolder {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(&self.paths.to(path), payload, options).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(&self.paths.to(path), options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let found = self.inner.get_opts(&self.paths.to(path), options).await?;
        Ok(GetResult { meta: self.paths.meta(found.meta), ..found })
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (to, from) = (self.paths.clone(), self.paths.clone());
        let paths = paths.map(move |path| path.map(|path| to.to(&path))).boxed();
        self.inner.delete_stream(paths).map(move |path| path.map(|path| from.from(&path))).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let paths = self.paths.clone();
        let listed = self.inner.list(prefix.map(|prefix| self.paths.to(prefix)).as_ref());
        listed.map(move |meta| meta.map(|meta| paths.meta(meta))).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let found = self.inner.list_with_delimiter(prefix.map(|prefix| self.paths.to(prefix)).as_ref()).await?;
        Ok(ListResult {
            common_prefixes: found.common_prefixes.iter().map(|path| self.paths.from(path)).collect(),
            objects: found.objects.into_iter().map(|meta| self.paths.meta(meta)).collect(),
            ..found
        })
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(&self.paths.to(from), &self.paths.to(to), options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(&self.paths.to(from), &self.paths.to(to), options).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    #[tokio::test]
    async fn only_the_private_folder_is_elsewhere() {
        let data: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let shard = PrivateFolder::new(Arc::clone(&data), Paths::new(Path::from(".powersweep/shards/e/3-of-16")));
        let [state, part] = ["state/manifest", "part"].map(|name| PutPayload::from(name.as_bytes().to_vec()));
        shard.put(&Path::from(".powersweep/state/manifest"), state).await.expect("stored");
        shard.put(&Path::from("e/tasks/part"), part).await.expect("stored");
        data.put(&Path::from(".powersweep/state/other"), PutPayload::new()).await.expect("stored");
        let listed = |store: Arc<dyn ObjectStore>, folder: &'static str| async move {
            let found: Vec<_> = store.list(Some(&Path::from(folder))).map(|meta| meta.expect("listed")).collect().await;
            found.into_iter().map(|meta| meta.location.to_string()).collect::<Vec<_>>()
        };
        let shard: Arc<dyn ObjectStore> = Arc::new(shard);
        assert_eq!(listed(Arc::clone(&shard), ".powersweep/state").await, [".powersweep/state/manifest"]);
        assert_eq!(listed(Arc::clone(&shard), "e").await, ["e/tasks/part"]);
        assert_eq!(listed(Arc::clone(&data), "e").await, ["e/tasks/part"]);
        let stored = ".powersweep/shards/e/3-of-16/state/manifest";
        assert_eq!(listed(Arc::clone(&data), ".powersweep/shards").await, [stored]);
        let folders = shard.list_with_delimiter(Some(&Path::from(".powersweep"))).await.expect("listed");
        assert_eq!(folders.common_prefixes, [Path::from(".powersweep/state")]);
        let (from, to) = (Path::from(".powersweep/state/manifest"), Path::from("e/tasks/copy"));
        shard.copy_if_not_exists(&from, &to).await.expect("copied");
        shard.delete(&from).await.expect("deleted");
        assert_eq!(listed(data, "").await, [".powersweep/state/other", "e/tasks/copy", "e/tasks/part"]);
    }
}
