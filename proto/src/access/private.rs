//! Files that one user alone can read.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::AccessError;

/// Mode of a private file, and of a private folder.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// What group and others may do.
const OTHERS: u32 = 0o077;

/// Everything that group and others may do, but for the group to read.
const BUT_GROUP_READ: u32 = 0o037;

/// Refuses what another user owns or what others can read. A file of root that a group may read and nobody else was put
/// there for this group, by an administrator or by Kubernetes, whose Secrets belong to root.
fn check(path: &Path, found: &Metadata, wanted: u32) -> Result<(), AccessError> {
    let (path, user) = (path.display().to_string(), rustix::process::geteuid().as_raw());
    let (owner, mode) = (found.uid(), found.mode() & 0o7777);
    if wanted == FILE_MODE && is_given_by_root(owner, mode, user) {
        return Ok(());
    }
    if owner != user {
        return Err(AccessError::Foreign { path, owner, user });
    }
    if mode & OTHERS != 0 {
        return Err(AccessError::Exposed { path, mode, wanted });
    }
    Ok(())
}

fn is_given_by_root(owner: u32, mode: u32, user: u32) -> bool {
    owner == 0 && user != 0 && mode & BUT_GROUP_READ == 0
}

/// Refuses a folder that another user owns or that others can read.
pub fn check_folder(path: &Path) -> Result<(), AccessError> {
    let read = |source| AccessError::Read { path: path.display().to_string(), source };
    check(path, &std::fs::symlink_metadata(path).map_err(read)?, FOLDER_MODE)
}

/// Makes a private folder, and the folders above it. False if the file system does not keep the mode; then the folder is
/// not left behind.
pub fn make_folder(path: &Path) -> Result<bool, AccessError> {
    let write = |source| AccessError::Write { path: path.display().to_string(), source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(write)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Ok(()) if check_folder(path).is_ok() => Ok(true),
        Ok(()) => std::fs::remove_dir(path).map(|()| false).map_err(write),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_folder(path).map(|()| true),
        Err(error) => Err(write(error)),
    }
}

/// The text of a private file of at most this size.
pub fn read_private(path: &Path, bytes_max: u64) -> Result<String, AccessError> {
    let read = |source| AccessError::Read { path: path.display().to_string(), source };
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let found = file.metadata().map_err(read)?;
    if found.is_dir() {
        return Err(read(io::ErrorKind::IsADirectory.into()));
    }
    check(path, &found, FILE_MODE)?;
    let mut text = String::new();
    file.take(bytes_max + 1).read_to_string(&mut text).map_err(read)?;
    if text.len() as u64 > bytes_max {
        let reason = format!("it has more than {bytes_max} bytes");
        return Err(AccessError::Format { path: path.display().to_string(), reason });
    }
    if text.trim().is_empty() {
        let reason =
            "it is empty. Delete it: a coordinator that starts makes the files of its folder again, and `powersweep \
                      access export` gives copies"
                .to_owned();
        return Err(AccessError::Format { path: path.display().to_string(), reason });
    }
    Ok(text)
}

/// A file that the system does not let this user open: says whose it is, or whose its folder is.
fn unreadable(path: &Path, source: io::Error) -> AccessError {
    let user = rustix::process::geteuid().as_raw();
    let owners = [Some(path), path.parent()].into_iter().flatten();
    let owner =
        owners.filter_map(|path| std::fs::metadata(path).ok()).map(|found| found.uid()).find(|uid| *uid != user);
    let path = path.display().to_string();
    match owner {
        Some(owner) if source.kind() == io::ErrorKind::PermissionDenied => AccessError::Foreign { path, owner, user },
        _ => AccessError::Read { path, source },
    }
}

/// Writes a private file as a whole: a reader sees the former content or the new one. If `replace` is false, an existing
/// file stays, and false is returned.
pub fn write_private(path: &Path, text: &str, replace: bool) -> Result<bool, AccessError> {
    let write = |source| AccessError::Write { path: path.display().to_string(), source };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    if let Some(folder) = folder {
        return Err(write(io::Error::new(io::ErrorKind::NotFound, format!("there is no folder {}", folder.display()))));
    }
    let made = temporary(path, text).map_err(write)?;
    let put = if replace { std::fs::rename(&made, path) } else { std::fs::hard_link(&made, path) };
    let _ = std::fs::remove_file(&made);
    match put {
        Ok(()) => Ok(true),
        Err(error) if !replace && error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(write(error)),
    }
}

/// A new file beside `path` with this text.
fn temporary(path: &Path, text: &str) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let made = path.with_file_name(format!(".{name}.{}", Uuid::new_v4().simple()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&made)?;
    let written = file
        .set_permissions(std::fs::Permissions::from_mode(FILE_MODE))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all());
    written.inspect_err(|_| drop(std::fs::remove_file(&made))).map(|()| made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is this user's");
    }

    #[test]
    fn only_private_files_and_folders_are_used() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("a/access");
        assert!(make_folder(&folder).expect("it can be made"));
        assert!(make_folder(&folder).expect("it is private"));
        let file = folder.join("client.json");
        assert!(write_private(&file, "one", false).expect("it is new"));
        assert!(!write_private(&file, "two", false).expect("it stays"));
        assert_eq!(read_private(&file, 3).expect("it is private"), "one");
        assert!(write_private(&file, "three", true).expect("it is replaced"));
        assert!(matches!(read_private(&file, 3), Err(AccessError::Format { .. })));
        let missing = folder.join("missing").join("a.json");
        let refused = write_private(&missing, "one", true).expect_err("no folder").to_string();
        assert!(refused.contains("there is no folder"), "{refused}");
        write_private(&file, "\n", true).expect("it can be written");
        let empty = read_private(&file, 3).expect_err("no text").to_string();
        assert!(empty.contains("it is empty. Delete it"), "{empty}");
        assert_eq!(std::fs::read_dir(&folder).expect("it is there").count(), 1, "no temporary file is left");
        for open in [0o640, 0o604, 0o660] {
            mode(&file, open);
            let error = read_private(&file, 10).expect_err("others can read it").to_string();
            assert!(error.contains(&format!("(mode 0{open:o})")) && error.contains("chmod 600"), "{error}");
        }
        mode(&folder, 0o750);
        let error = make_folder(&folder).expect_err("others can look into it").to_string();
        assert!(error.contains("chmod 700"), "{error}");
    }

    #[test]
    fn root_may_give_a_file_to_a_group() {
        for given in [0o440, 0o640, 0o400] {
            assert!(is_given_by_root(0, given, 1000), "{given:o}");
        }
        for open in [0o444, 0o644, 0o460, 0o450, 0o441] {
            assert!(!is_given_by_root(0, open, 1000), "{open:o}");
        }
        assert!(!is_given_by_root(0, 0o640, 0), "root's own file is as private as any user's");
        assert!(!is_given_by_root(1001, 0o440, 1000));
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        // Every user can read it, and root owns it.
        let path = Path::new("/proc/self/../1/comm");
        let found = std::fs::metadata(path).expect("the first process has one");
        let user = rustix::process::geteuid().as_raw();
        if found.uid() == user {
            println!("skipped: the test runs as the user of process 1");
            return;
        }
        assert!(matches!(read_private(path, 100), Err(AccessError::Foreign { owner, .. }) if owner == found.uid()));
    }
}
