//! DATA: the place of results and state, as the user names it.

use super::credentials::is_option;
use super::kind::{self, Kind};
use super::signer::Signer;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use powersweep_experiments::Shard;
use powersweep_results::layout::{shard_dir, state_dir};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use url::Url;

/// A DATA directory or object store. Cheap to clone; parsing one does not access storage.
#[derive(Debug, Clone)]
pub struct Location {
    shown: String,
    place: Place,
    /// Set by a test.
    kind: Option<Kind>,
    /// The private folder of a shard, below DATA.
    private: Option<ObjectPath>,
}

#[derive(Debug, Clone)]
enum Place {
    Directory(PathBuf),
    Remote {
        url: Url,
        store: Arc<dyn ObjectStore>,
        /// Signs addresses below DATA.
        signer: Option<Arc<dyn Signer>>,
    },
}

/// Why a text does not name a place for data. Final: the user must correct it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum LocationError {
    /// Neither a path nor a URL of a known kind.
    #[error("{data}: unknown kind of storage {scheme:?}; use a directory, file://, s3://, gs:// or az://")]
    Scheme { data: String, scheme: String },
    /// An object store, in a build without object stores.
    #[error(
        "{data}: this powersweep was built without object stores; use a directory, or build it with them: \
         cargo install --path cli --features cloud"
    )]
    LeftOut { data: String },
    /// A URL that names no bucket, or contradictory options.
    #[error("{data}: not a usable storage address")]
    Address { data: String, source: object_store::Error },
    /// Not a URL or path.
    #[error("{data:?}: not a directory or URL: {reason}")]
    Malformed { data: String, reason: String },
}

impl Location {
    /// Reads DATA: a directory (path or `file://` URL), or `s3://`, `gs://`, `az://` with the usual environment
    /// variables (`AWS_*`, `GOOGLE_*`, `AZURE_*`) as options.
    pub fn parse(data: &str) -> Result<Location, LocationError> {
        // A variable that is no text is no option.
        let texts =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Location::parse_with(data, texts)
    }

    /// [`Location::parse`] with given variables instead of the environment. Those of other kinds of stores and of other
    /// programs are ignored.
    pub fn parse_with(
        data: &str,
        options: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Location, LocationError> {
        let malformed = |reason: &str| LocationError::Malformed { data: data.to_owned(), reason: reason.to_owned() };
        if data.is_empty() {
            return Err(malformed("it is empty"));
        }
        if !data.contains("://") {
            return Location::directory(Path::new(data)).map_err(|error| malformed(&error.to_string()));
        }
        let url = Url::parse(data).map_err(|error| malformed(&error.to_string()))?;
        match url.scheme() {
            "file" => {
                let path = url.to_file_path().map_err(|()| malformed("file URLs look like file:///absolute/path"))?;
                Location::directory(&path).map_err(|error| malformed(&error.to_string()))
            }
            scheme @ ("s3" | "s3a" | "gs" | "az" | "azure" | "abfs" | "abfss") => {
                let scheme = scheme.to_owned();
                cloud(data, url, options.into_iter().filter(move |(name, _)| is_option(&scheme, name)))
            }
            scheme => Err(LocationError::Scheme { data: data.to_owned(), scheme: scheme.to_owned() }),
        }
    }

    /// A local directory; it need not exist yet.
    pub fn directory(path: &Path) -> std::io::Result<Location> {
        let path = std::path::absolute(path)?;
        Ok(Location { shown: path.display().to_string(), place: Place::Directory(path), kind: None, private: None })
    }

    /// A directory that is treated as one of a shared file system, whatever it is on: for tests.
    pub fn shared(path: &Path) -> std::io::Result<Location> {
        Ok(Location { kind: Some(Kind::Shared), ..Location::directory(path)? })
    }

    /// A given object store, rooted at DATA: for tests and other kinds of stores.
    pub fn remote(url: Url, store: Arc<dyn ObjectStore>) -> Location {
        let shown = url.to_string();
        Location { shown, place: Place::Remote { url, store, signer: None }, kind: None, private: None }
    }

    /// These data as one shard of an experiment uses them: with a private folder of its own.
    #[must_use]
    pub fn shard(&self, experiment: &str, shard: Shard) -> Location {
        Location {
            shown: format!("{}, shard {shard} of {experiment}", self.shown),
            private: Some(shard_dir(experiment, &shard_name(shard))),
            ..self.clone()
        }
    }

    /// The directory; `None` for an object store.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::Directory(path) => Some(path),
            Place::Remote { .. } => None,
        }
    }

    /// The folder of state, uploads, logs and owner record; `None` for an object store.
    pub fn private_folder(&self) -> Option<PathBuf> {
        self.path().map(|data| data.join(self.private_dir().to_string()))
    }

    /// The folder of state, uploads, logs and owner record, below DATA.
    pub fn private_dir(&self) -> ObjectPath {
        self.private.clone().unwrap_or_else(state_dir)
    }

    /// The kind of its storage. A directory is looked up each time, since it need not exist at first.
    pub fn kind(&self) -> Kind {
        match (self.private_folder(), self.kind) {
            (_, Some(kind)) => kind,
            // The private folder may be a mount, or a link to another file system.
            (Some(folder), None) => kind::of_folder(&folder),
            (None, None) => Kind::Objects,
        }
    }

    /// The URL's scheme: `file` for directories.
    pub fn scheme(&self) -> &str {
        match &self.place {
            Place::Directory(_) => "file",
            Place::Remote { url, .. } => url.scheme(),
        }
    }

    /// Signs addresses of objects below DATA; `None` for a directory, and for a shard, which has no workers elsewhere.
    pub fn signer(&self) -> Option<Arc<dyn Signer>> {
        match &self.place {
            Place::Remote { signer, .. } if self.private.is_none() => signer.clone(),
            _ => None,
        }
    }

    /// The object store rooted at DATA. Writes to a directory are synced to disk.
    ///
    /// # Errors
    /// If the directory does not exist (the probe makes it) or cannot be accessed.
    pub fn object_store(&self) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
        Ok(match &self.place {
            Place::Directory(path) => Arc::new(LocalFileSystem::new_with_prefix(path)?.with_fsync(true)),
            Place::Remote { store, .. } => Arc::clone(store),
        })
    }
}

/// The name of a shard's folder.
pub(crate) fn shard_name(shard: Shard) -> String {
    format!("{}-of-{}", shard.index(), shard.of())
}

/// The object store at an address.
#[cfg(feature = "cloud")]
fn cloud(data: &str, url: Url, options: impl IntoIterator<Item = (String, String)>) -> Result<Location, LocationError> {
    let opened = super::cloud::open(&url, options.into_iter());
    let (store, signer) = opened.map_err(|source| LocationError::Address { data: data.to_owned(), source })?;
    let place = Place::Remote { url, store, signer: Some(signer) };
    Ok(Location { shown: data.to_owned(), place, kind: None, private: None })
}

/// Refuses object stores: the feature `cloud` is off.
#[cfg(not(feature = "cloud"))]
fn cloud(data: &str, _: Url, _: impl IntoIterator<Item = (String, String)>) -> Result<Location, LocationError> {
    Err(LocationError::LeftOut { data: data.to_owned() })
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}
