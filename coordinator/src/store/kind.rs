//! Kinds of storage, by what a lock is worth and how old a look may be.

use std::path::Path;
use std::time::Duration;

/// Age of what a process may see on a shared file system: NFS keeps attributes for up to 60 s (`acregmax`, `acdirmax`).
pub const CACHE_TIME: Duration = Duration::from_secs(60);

/// Largest difference between the clock of a shared file system and this machine's: ages of files allow for it.
pub const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(60);

/// The storage of DATA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file system of one machine: its kernel serves every process, so a lock excludes them all, and a process sees
    /// each change at once.
    Local,
    /// A file system that several machines may use: a lock may hold on one of them only, and a process may see the files
    /// of [`CACHE_TIME`] ago. Times of files are by the clock of a server.
    Shared,
    /// An object store: no locks, but conditional writes.
    Objects,
}

/// File systems of one machine, by the number in `statfs` (`linux/magic.h`). A file system that is not listed counts as
/// shared: that costs a wait after a crash, where the opposite mistake would cost rows.
const LOCAL: [u32; 14] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // btrfs
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // bcachefs
    0xF2F5_2010, // F2FS
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0x794C_7630, // overlayfs, whose upper folder cannot be on NFS
    0x3153_464A, // JFS
    0x5265_4973, // ReiserFS
    0x0000_3434, // NILFS
    0x2011_BAB0, // exFAT
    0x7366_746E, // NTFS
];

/// The kind of the file system of a folder, or of its nearest parent that exists.
pub(super) fn of_folder(folder: &Path) -> Kind {
    let number = folder.ancestors().find_map(file_system);
    if number.is_some_and(|number| LOCAL.contains(&number)) { Kind::Local } else { Kind::Shared }
}

#[cfg(target_os = "linux")]
fn file_system(folder: &Path) -> Option<u32> {
    // The kernel's numbers have 32 bits; the field is wider on some processors.
    rustix::fs::statfs(folder).ok().map(|found| found.f_type as u32)
}

/// Other systems have other numbers: there every file system counts as shared.
#[cfg(not(target_os = "linux"))]
fn file_system(_: &Path) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn only_listed_file_systems_are_local() {
        // procfs stands for any file system that is not listed.
        assert_eq!(of_folder(Path::new("/proc/self")), Kind::Shared);
        assert_eq!(of_folder(Path::new("/proc/no/such/folder")), Kind::Shared);
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(of_folder(folder.path()), Kind::Local, "temporary folders are on a disk or in memory");
        assert_eq!(of_folder(&folder.path().join("not/there/yet")), Kind::Local);
    }
}
