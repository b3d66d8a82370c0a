//! Logs by name, path or URL.
use std::fs::{self, File};
use std::os::unix::fs::FileTypeExt;
use std::path::{self, Component, Path, PathBuf};

use powersweep_engine::workload::LogFormat;
use powersweep_experiments::url::{has_user, is_url, public};
use powersweep_experiments::{Digest, FileRef};

use crate::library::{Cache, Limits, LoadError, decompress, download};
use crate::signals;

/// The current folder.
pub(super) const HERE: &str = ".";
/// Greatest number of similar names in the message about a missing log.
const NEAREST_SHOWN: usize = 3;

/// Where a log was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// A URL, downloaded by this call or taken from the cache.
    Url(String),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::File(path) => path.display().fmt(f),
            Origin::Url(url) => url.fmt(f),
        }
    }
}

/// A log's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogBytes {
    /// The decompressed text.
    pub bytes: Vec<u8>,
    /// SHA-256 of `bytes`: the log's identity in results.
    pub digest: Digest,
    /// The file or URL.
    pub origin: Origin,
}

/// Finds and loads logs. Cheap to clone; calls block.
#[derive(Debug, Clone)]
pub struct Library {
    search_path: Vec<PathBuf>,
    /// The folder of relative paths; empty for the current folder.
    base: PathBuf,
    cache_folder: Option<PathBuf>,
    cache_limit_bytes: Option<u64>,
    limits: Limits,
    /// Which files are found outside the search path.
    paths: Paths,
}

/// Files outside the search path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paths {
    /// All.
    All,
    /// Those at and below the base.
    BelowBase,
    /// None.
    None,
}

impl Library {
    /// A library over folders, searched in order. With a cache folder, a URL is downloaded once; the folder is created
    /// at the first download.
    pub fn new(search_path: Vec<PathBuf>, cache_folder: Option<PathBuf>) -> Library {
        let (base, limits) = (PathBuf::new(), Limits::default());
        Library { search_path, base, cache_folder, cache_limit_bytes: None, limits, paths: Paths::All }
    }

    /// Only names in the folders of the search path and URLs are loaded: for a manifest of somebody else.
    pub fn on_search_path(self) -> Library {
        Library { paths: Paths::None, ..self }
    }

    /// Besides names in the folders of the search path and URLs, only files in the folder of [`Library::with_base`] and below it are
    /// loaded: for a manifest of somebody else that came with its files.
    pub fn below_base(self) -> Library {
        Library { paths: Paths::BelowBase, ..self }
    }

    /// Adds a folder before those of the search path.
    pub fn searched_first(mut self, folder: impl Into<PathBuf>) -> Library {
        self.search_path.insert(0, folder.into());
        self
    }

    /// Names and paths are those in a file of this folder, which replaces the current folder.
    pub fn with_base(self, base: impl Into<PathBuf>) -> Library {
        Library { base: base.into(), ..self }
    }

    /// Replaces the size limits.
    pub fn with_limits(self, limits: Limits) -> Library {
        Library { limits, ..self }
    }

    /// Limits the size of the cache folder (bytes).
    pub fn with_cache_limit(self, limit_bytes: Option<u64>) -> Library {
        Library { cache_limit_bytes: limit_bytes, ..self }
    }

    /// Loads a log of a format.
    ///
    /// - `http://` or `https://`: downloaded; `sha256` (of the file as downloaded) is required.
    /// - with a path separator: that file, or the file with an ending of the format appended (`.swf.gz`, `.swf.zst` or
    ///   `.swf`). A relative path starts in the folder of [`Library::with_base`], else in the current folder.
    /// - else a name: in each folder of the search path `NAME.swf.gz`, `NAME.swf.zst`, `NAME.swf`, `NAME`, then the
    ///   same in that folder.
    ///
    /// `sha256` is that of the stored (compressed) file, checked wherever it is given.
    pub fn load(&self, format: &LogFormat, log: &str, sha256: Option<Digest>) -> Result<LogBytes, LoadError> {
        self.load_named(&[format], log, sha256)
    }

    fn load_named(&self, formats: &[&LogFormat], log: &str, sha256: Option<Digest>) -> Result<LogBytes, LoadError> {
        if is_url(log) {
            if has_user(log) {
                return Err(LoadError::Secret { url: public(log) });
            }
            let expected = sha256.ok_or_else(|| LoadError::Sha256Missing { url: public(log) })?;
            return self.load_url(log, expected);
        }
        self.load_file(self.find(log, formats)?, sha256)
    }

    /// Loads a file of a manifest: a log as [`Library::load`] does, the file of a signal without endings.
    pub fn load_file_of(&self, file: &FileRef) -> Result<LogBytes, LoadError> {
        match file.format {
            Some(format) => self.load(format, &file.place, file.sha256),
            // A log may be larger than the file of a signal, or a module.
            None => {
                let text_bytes = self.limits.text_bytes.min(signals::BYTES_MAX as u64);
                let limited = self.clone().with_limits(Limits { text_bytes, ..self.limits });
                limited.load_named(&[], &file.place, file.sha256)
            }
        }
    }

    /// The format of a log for which no source is chosen: the only one of `formats`, else by the ending of its file or
    /// URL. [`Library::load`] with this format finds the same file.
    pub fn format(&self, log: &str, formats: &[&'static LogFormat]) -> Result<&'static LogFormat, LoadError> {
        if let [only] = *formats {
            return Ok(only);
        }
        let file = match is_url(log) {
            true => log.split(['?', '#']).next().unwrap_or(log).to_owned(),
            false => self.find(log, formats)?.display().to_string(),
        };
        let format = formats.iter().copied().find(|format| format.has_ending(&file));
        format.ok_or_else(|| LoadError::UnknownFormat { file, formats: formats.to_vec() })
    }

    /// The file of a name or path: the first that exists with an ending of one of the formats, or with no ending added.
    fn find(&self, log: &str, formats: &[&LogFormat]) -> Result<PathBuf, LoadError> {
        let is_path = log.contains(path::is_separator);
        if is_path && !self.takes(log) {
            return Err(LoadError::Path { log: log.to_owned() });
        }
        let searched: &[PathBuf] = if is_path { &[] } else { &self.search_path };
        let base = (self.paths != Paths::None).then_some(&self.base);
        for folder in searched.iter().chain(base) {
            // A path is tried without an added ending first, a name last.
            let first = is_path.then(String::new);
            for ending in first.into_iter().chain(endings(formats)).chain([String::new()]) {
                let file = folder.join(format!("{log}{ending}"));
                if !log.is_empty() && file.is_file() {
                    return Ok(file);
                }
            }
        }
        Err(self.not_found(log, is_path, formats))
    }

    /// Whether files at this path are loaded.
    fn takes(&self, path: &str) -> bool {
        let is_inside = |component| matches!(component, Component::Normal(_) | Component::CurDir);
        match self.paths {
            Paths::All => true,
            Paths::BelowBase => Path::new(path).components().all(is_inside),
            Paths::None => false,
        }
    }

    fn load_file(&self, file: PathBuf, expected: Option<Digest>) -> Result<LogBytes, LoadError> {
        let read_error = |source| LoadError::Read { path: file.clone(), source };
        let origin = file.display().to_string();
        let opened = File::open(&file).map_err(read_error)?;
        let stored_bytes = opened.metadata().map_err(read_error)?.len();
        if stored_bytes > self.limits.stored_bytes {
            return Err(LoadError::TooLarge { origin, limit_bytes: self.limits.stored_bytes, text: false });
        }
        if let Some(expected) = expected {
            // A pass of its own, so that a file that is both wrong and damaged is reported as the wrong file.
            let found = File::open(&file).and_then(Digest::of_reader).map_err(read_error)?;
            if found != expected {
                return Err(LoadError::WrongSha256 { origin, expected, found });
            }
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let bytes = decompress::text(opened, &name, &origin, self.limits.text_bytes, read_error)?;
        Ok(LogBytes { digest: Digest::of(&bytes), bytes, origin: Origin::File(file) })
    }

    fn load_url(&self, url: &str, expected: Digest) -> Result<LogBytes, LoadError> {
        let cache = self.cache_folder.as_ref().map(Cache::open).transpose()?;
        let cache = cache.map(|cache| cache.with_limit(self.cache_limit_bytes));
        let stored = match cache.as_ref().map(|cache| cache.get(expected)).transpose()?.flatten() {
            Some(bytes) => bytes,
            None => {
                let bytes = download::fetch(url, expected, self.limits)?;
                if let Some(cache) = &cache {
                    cache.put(&bytes)?;
                }
                bytes
            }
        };
        let shown = public(url);
        let read_error = |e: std::io::Error| LoadError::Download { url: shown.clone(), reason: e.to_string() };
        let bytes = decompress::text(&stored[..], url, &shown, self.limits.text_bytes, read_error)?;
        Ok(LogBytes { digest: Digest::of(&bytes), bytes, origin: Origin::Url(shown) })
    }

    fn not_found(&self, log: &str, is_path: bool, formats: &[&LogFormat]) -> LoadError {
        let path = self.base.join(log);
        if let Some(kind) = path.metadata().ok().filter(|_| is_path).map(|found| found.file_type()) {
            let what = match () {
                () if kind.is_dir() => "a folder, not a file",
                () if kind.is_fifo() => "a pipe: a file is needed, because it is read more than once",
                () => "a device, not a file",
            };
            return LoadError::NoFile { path, what };
        }
        let (places, wanted) = if is_path {
            let path = self.base.join(log);
            let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (vec![if folder.as_os_str().is_empty() { PathBuf::from(HERE) } else { folder }], name)
        } else {
            let is_here = self.base.as_os_str().is_empty();
            let base = if is_here { Path::new(HERE) } else { &self.base };
            let base = (self.paths != Paths::None).then(|| base.to_path_buf());
            (self.search_path.iter().cloned().chain(base).collect(), log.to_owned())
        };
        let nearest = nearest(&wanted, places.iter().flat_map(|p| log_names(p, formats)));
        LoadError::NotFound { log: log.to_owned(), is_log: !formats.is_empty(), places, nearest }
    }
}

/// The endings of the formats, in the order in which files are searched.
fn endings(formats: &[&LogFormat]) -> impl Iterator<Item = String> {
    formats.iter().flat_map(|format| format.endings())
}

/// Names of the logs of these formats in a folder, of all files without a format; none if the folder cannot be read.
fn log_names(folder: &Path, formats: &[&LogFormat]) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|e| {
        let name = e.file_name().into_string().ok()?;
        let all = formats.is_empty().then(String::new);
        endings(formats).chain(all).find_map(|ending| name.strip_suffix(&ending).map(str::to_owned))
    });
    names.collect()
}

/// The names that are most similar to the wanted one.
fn nearest(wanted: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, String)> = names
        .map(|name| {
            let lower = name.to_lowercase();
            let contains = !wanted.is_empty() && (lower.contains(&wanted) || wanted.contains(&lower));
            let score = strsim::jaro_winkler(&wanted, &lower);
            (if contains { 1.0 + score } else { score }, name)
        })
        .filter(|(score, _)| *score >= 0.75)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(NEAREST_SHOWN).map(|(_, name)| name).collect()
}
