//! Files of an artifact and their digests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use powersweep_dataset::writing::cannot_write;
use powersweep_dataset::{Error, failure};
use powersweep_experiments::Digest;
use powersweep_experiments::plain::plain;
use serde::Serialize;

use super::SUMS;

/// Maximum number of files.
pub(super) const FILES_MAX: usize = 100_000;
/// Maximum size of the list of digests (bytes).
const SUMS_BYTES_MAX: u64 = 32 << 20;
/// Longest name of a file or folder (bytes).
const NAME_BYTES_MAX: usize = 200;

/// A file of an artifact that is not as it was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The file in the artifact.
    pub file: String,
    /// The difference, in words.
    pub what: String,
}

impl Problem {
    pub(super) fn new(file: &str, what: impl Into<String>) -> Problem {
        Problem { file: plain(file).into_owned(), what: what.into() }
    }
}

/// Whether a text is a path that an artifact may have: relative, without links to other folders, hidden files and characters
/// that have a meaning in some system.
pub(super) fn is_path(text: &str) -> bool {
    let is_name = |name: &str| {
        let is_usual = |c: char| !c.is_control() && !"\\:*?\"<>|".contains(c);
        !name.is_empty() && !name.starts_with('.') && name.len() <= NAME_BYTES_MAX && name.chars().all(is_usual)
    };
    text.split('/').all(is_name)
}

/// The files of a folder by their paths in the artifact, and everything else in it.
pub(super) fn listed(folder: &Path) -> Result<(BTreeMap<String, PathBuf>, Vec<Problem>), Error> {
    let (mut files, mut problems) = (BTreeMap::new(), Vec::new());
    let mut folders = vec![(String::new(), folder.to_owned())];
    while let Some((prefix, folder)) = folders.pop() {
        let cannot_read = |error: io::Error| failure!(Storage, "cannot read {}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(cannot_read)? {
            let entry = entry.map_err(cannot_read)?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type().map_err(cannot_read)?;
            match () {
                () if !is_path(&name) => problems.push(Problem::new(&name, "no artifact has a file of this name")),
                () if kind.is_dir() => folders.push((format!("{name}/"), entry.path())),
                () if kind.is_file() => {
                    files.insert(name, entry.path());
                }
                () => problems.push(Problem::new(&name, "is neither a file nor a folder")),
            }
            if files.len() + folders.len() + problems.len() > FILES_MAX {
                return Err(failure!(Usage, "more than {FILES_MAX} files: this is no artifact"));
            }
        }
    }
    Ok((files, problems))
}

/// The digest of a file.
fn digest(path: &Path) -> Result<Digest, Error> {
    let digest = File::open(path).and_then(Digest::of_reader);
    digest.map_err(|error| failure!(Storage, "cannot read {}: {error}", path.display()))
}

/// Writes the digests of all files of a folder, as `sha256sum` writes them.
pub(super) fn seal(folder: &Path) -> Result<(), Error> {
    let (files, problems) = listed(folder)?;
    if let Some(problem) = problems.first() {
        return Err(failure!(Usage, "{}: {}", problem.file, problem.what));
    }
    let mut sums = String::new();
    for (name, path) in files.iter().filter(|(name, _)| *name != SUMS) {
        sums += &format!("{}  {name}\n", digest(path)?);
    }
    let path = folder.join(SUMS);
    fs::write(&path, sums).map_err(|error| cannot_write(&path, &error))
}

/// Compares the files of a folder with its list of digests. Returns the files, and everything that differs.
pub(super) fn checked(folder: &Path) -> Result<(BTreeSet<String>, Vec<Problem>), Error> {
    let (files, mut problems) = listed(folder)?;
    let missing = || Problem::new(SUMS, "is missing: it has the digests of all files");
    match files.get(SUMS).ok_or_else(missing).and_then(|path| sums(path)) {
        Err(problem) => problems.push(problem),
        Ok(mut sums) => {
            for (name, path) in files.iter().filter(|(name, _)| *name != SUMS) {
                let found = digest(path)?;
                match sums.remove(name) {
                    None => problems.push(Problem::new(name, format!("is unknown: {SUMS} does not list it"))),
                    Some(stated) if stated != found => {
                        let what = format!("has other bytes: its SHA-256 is {found}, {SUMS} states {stated}");
                        problems.push(Problem::new(name, what));
                    }
                    Some(_) => {}
                }
            }
            problems.extend(sums.keys().map(|name| Problem::new(name, "is missing")));
        }
    }
    problems.sort();
    Ok((files.into_keys().collect(), problems))
}

/// The list of digests.
fn sums(path: &Path) -> Result<BTreeMap<String, Digest>, Problem> {
    let damaged = |what: &str| Problem::new(SUMS, what);
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(SUMS_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|_| damaged("is no text"))?;
    let mut sums = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let parsed = line.split_once("  ").and_then(|(digest, name)| Some((name, digest.parse().ok()?)));
        let Some((name, digest)) = parsed.filter(|(name, _)| is_path(name) && *name != SUMS) else {
            return Err(damaged(&format!("line {number} is not a digest and a path")));
        };
        if sums.insert(name.to_owned(), digest).is_some() {
            return Err(damaged(&format!("line {number} repeats a path")));
        }
    }
    if sums.is_empty() { Err(damaged("lists no file")) } else { Ok(sums) }
}
