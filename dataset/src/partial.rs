//! Files and folders that get their name when they are complete.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::Builder;

/// The unfinished files and folders of this process.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Modes of new files and folders, from which the user's mask takes.
const FILE_MODE: u32 = 0o666;
const FOLDER_MODE: u32 = 0o777;
/// The mode of a folder for this user alone.
const PRIVATE_MODE: u32 = 0o700;
/// Random characters in a name.
const RANDOM: usize = 12;

/// A new file or folder with a random name, which nobody else has made; deleted unless it is published.
#[derive(Debug)]
pub struct Partial(PathBuf);

impl Partial {
    /// A new file in the folder of `path`.
    pub(crate) fn file(path: &Path) -> io::Result<(Partial, File)> {
        made(path, FILE_MODE, |builder, folder| builder.tempfile_in(folder)?.keep().map_err(io::Error::from))
    }

    /// A new folder in the folder of `path`, which is made if it is missing.
    ///
    /// # Errors
    /// A folder cannot be made.
    pub fn folder(path: &Path) -> io::Result<Partial> {
        fs::create_dir_all(parent(path))?;
        made(path, FOLDER_MODE, |builder, folder| Ok(((), builder.tempdir_in(folder)?.keep())))
            .map(|(partial, ())| partial)
    }

    /// A folder for this user alone, among the temporary files.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn scratch() -> io::Result<Partial> {
        let path = std::env::temp_dir().join("powersweep");
        made(&path, PRIVATE_MODE, |builder, folder| Ok(((), builder.tempdir_in(folder)?.keep())))
            .map(|(partial, ())| partial)
    }

    /// The present name.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives the complete file or folder its name. A regular file of this name is replaced, an empty folder by a folder.
    ///
    /// # Errors
    /// The name is that of something else, or cannot be given.
    pub fn publish(self, path: &Path) -> io::Result<()> {
        fs::rename(&self.0, path)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        // What was published has another name.
        remove(&self.0);
    }
}

/// Deletes all unfinished files and folders, for a process that is about to end: further ones cannot be made.
pub fn remove_unfinished() {
    let unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    unfinished.iter().for_each(|path| remove(path));
    std::mem::forget(unfinished);
}

fn remove(path: &Path) {
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a file or folder whose name begins like that of `path`.
fn made<T>(
    path: &Path,
    mode: u32,
    make: impl FnOnce(&mut Builder<'_, '_>, &Path) -> io::Result<(T, PathBuf)>,
) -> io::Result<(Partial, T)> {
    let prefix = format!("{}.partial-", path.file_name().unwrap_or_default().to_string_lossy());
    let mut builder = Builder::new();
    builder.prefix(&prefix).rand_bytes(RANDOM).permissions(Permissions::from_mode(mode));
    // The lock is held, so that a signal finds the name or comes before.
    let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    let (made, name) = make(&mut builder, parent(path))?;
    unfinished.insert(name.clone());
    Ok((Partial(name), made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_random_and_exclusive() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.csv");
        let (one, other) = (Partial::file(&path).expect("a file").0, Partial::folder(&path).expect("a folder"));
        assert_ne!(one.path(), other.path());
        assert!(one.path().is_file() && other.path().is_dir());
        let named = one.path().to_owned();
        one.publish(&path).expect("published");
        drop(other);
        assert!(path.is_file() && !named.exists());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "only what was published is left");
    }
}
