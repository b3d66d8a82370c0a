//! DATA: where results and state live, as the user names it.

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
#[cfg(feature = "cloud")]
use object_store::{parse_url_opts, prefix::PrefixStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use url::Url;

/// A DATA directory or object store. Cheap to clone; making one touches nothing.
#[derive(Debug, Clone)]
pub struct Location {
    shown: String,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    Directory(PathBuf),
    Remote { url: Url, store: Arc<dyn ObjectStore> },
}

/// Why a text does not name a place for data. Final: the user must give another.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocationError {
    /// Neither a path nor a URL of a known kind.
    #[error("{data}: unknown kind of storage {scheme:?}; use a directory, file://, s3://, gs:// or az://")]
    Scheme {
        /// As given.
        data: String,
        /// Its scheme.
        scheme: String,
    },
    /// An object store, in a build without them.
    #[error(
        "{data}: this powersweep was built without object stores; use a directory, or build it with them: \
         cargo install --path cli --features cloud"
    )]
    LeftOut {
        /// As given.
        data: String,
    },
    /// A URL that names no bucket, or options that do not fit together.
    #[error("{data}: not a usable storage address")]
    Address {
        /// As given.
        data: String,
        /// The cause.
        #[source]
        source: object_store::Error,
    },
    /// Not a URL or path.
    #[error("{data:?}: not a directory or URL: {reason}")]
    Malformed {
        /// As given.
        data: String,
        /// What is wrong.
        reason: String,
    },
}

impl Location {
    /// Reads DATA: a directory (path or `file://` URL), or `s3://`, `gs://`, `az://` with the usual environment
    /// variables (`AWS_*`, `GOOGLE_*`, `AZURE_*`) as options.
    pub fn parse(data: &str) -> Result<Location, LocationError> {
        Location::parse_with(data, std::env::vars())
    }

    /// [`Location::parse`] with given options in place of the environment. Names are matched in lower case; those that
    /// the kind of store does not know are left alone.
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
            "s3" | "s3a" | "gs" | "az" | "azure" | "abfs" | "abfss" => cloud(data, url, options),
            scheme => Err(LocationError::Scheme { data: data.to_owned(), scheme: scheme.to_owned() }),
        }
    }

    /// A local directory; it need not exist yet.
    pub fn directory(path: &Path) -> std::io::Result<Location> {
        let path = std::path::absolute(path)?;
        Ok(Location { shown: path.display().to_string(), place: Place::Directory(path) })
    }

    /// An object store that is already set up, rooted at DATA: for tests and other kinds of stores.
    pub fn remote(url: Url, store: Arc<dyn ObjectStore>) -> Location {
        Location { shown: url.to_string(), place: Place::Remote { url, store } }
    }

    /// The directory, where it is one.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::Directory(path) => Some(path),
            Place::Remote { .. } => None,
        }
    }

    /// The URL's scheme: `file` for directories.
    pub fn scheme(&self) -> &str {
        match &self.place {
            Place::Directory(_) => "file",
            Place::Remote { url, .. } => url.scheme(),
        }
    }

    /// The object store rooted at DATA. A directory must exist (the probe makes it). Its writes are synced to disk.
    ///
    /// # Errors
    /// If the directory does not exist or cannot be reached.
    pub fn object_store(&self) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
        match &self.place {
            Place::Directory(path) => Ok(Arc::new(LocalFileSystem::new_with_prefix(path)?.with_fsync(true))),
            Place::Remote { store, .. } => Ok(Arc::clone(store)),
        }
    }
}

/// The object store at an address.
#[cfg(feature = "cloud")]
fn cloud(data: &str, url: Url, options: impl IntoIterator<Item = (String, String)>) -> Result<Location, LocationError> {
    let options = options.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
    let (store, prefix) =
        parse_url_opts(&url, options).map_err(|source| LocationError::Address { data: data.to_owned(), source })?;
    let store: Arc<dyn ObjectStore> =
        if prefix.as_ref().is_empty() { store.into() } else { Arc::new(PrefixStore::new(store, prefix)) };
    Ok(Location { shown: data.to_owned(), place: Place::Remote { url, store } })
}

/// The object stores are left out: the feature `cloud` is off.
#[cfg(not(feature = "cloud"))]
fn cloud(data: &str, _: Url, _: impl IntoIterator<Item = (String, String)>) -> Result<Location, LocationError> {
    Err(LocationError::LeftOut { data: data.to_owned() })
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}
