//! How SlateDB is set up: sizes, and when what is no longer needed is deleted.

use std::time::Duration;

use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, GarbageCollectorDirectoryOptions, GarbageCollectorOptions, Settings,
};

/// How often garbage is collected. The default of minutes leaves 150,000 files behind on a busy directory.
const GC_INTERVAL: Duration = Duration::from_secs(1);
/// As on a directory; each look is paid for.
const GC_INTERVAL_REMOTE: Duration = Duration::from_secs(10);

/// Age before files are deleted that no durable state names any more: longer than any read that may still use them.
const GC_MIN_AGE_DIRECTORY: Duration = Duration::from_secs(4);
/// As on a directory; objects are slower to read.
const GC_MIN_AGE_REMOTE: Duration = Duration::from_secs(60);
/// Age at which write-ahead log files on a directory are deleted, once their content is in sorted files. They are
/// replayed when the state is opened, and each flush writes one. Deleting them weakens the fencing: see
/// [`super::stall_detector`].
const GC_MIN_AGE_WAL: Duration = Duration::from_secs(4);

/// Size at which SlateDB turns its memory into a sorted file: bounds what is replayed when the state is opened, and what a
/// busy coordinator holds, as one such memory fills while the one before is encoded and written.
const L0_SST_BYTES: usize = 4 << 20;

/// Unflushed bytes at which writers wait: bounds memory while the storage is slow.
const MAX_UNFLUSHED_BYTES: usize = 32 << 20;

/// Sorted files that may wait for a compaction before memory is no longer written out. Compaction is slower than a busy
/// farm for minutes; the default of 8 would hold its data in memory meanwhile.
const L0_SSTS_MAX: usize = 128;

/// How often it is looked whether files should be merged. The default of 5 s lets a busy farm write dozens meanwhile.
const COMPACTION_POLL: Duration = Duration::from_secs(1);
/// As on a directory; each look is paid for.
const COMPACTION_POLL_REMOTE: Duration = Duration::from_secs(5);
/// What a merge reads ahead of each of its files, and how many such reads at once: the defaults take 8 MiB a file.
const COMPACTION_READ_BYTES: usize = 128 << 10;
/// As on a directory; each read is paid for.
const COMPACTION_READ_BYTES_REMOTE: usize = 512 << 10;
const COMPACTION_READS: usize = 2;
/// Size of the files that a merge writes, one after the other. Each is in memory until it is whole; a larger one would be
/// written in pieces of 10 MiB, up to eight of which wait for a slow storage.
const COMPACTED_SST_BYTES: usize = 4 << 20;

/// How often an object store is asked for a newer manifest (the default of 1 s is for directories: a request a second
/// costs money).
const REMOTE_MANIFEST_POLL: Duration = Duration::from_secs(5);

/// The settings for a directory or an object store.
pub(super) fn settings(on_directory: bool) -> Settings {
    let (interval, wal_min_age) =
        if on_directory { (GC_INTERVAL, GC_MIN_AGE_WAL) } else { (GC_INTERVAL_REMOTE, GC_MIN_AGE_REMOTE) };
    let min_age = min_age(on_directory);
    let often = GarbageCollectorDirectoryOptions { interval: Some(interval), min_age, dry_run: false };
    Settings {
        // Flushes are asked for one by one: a timer would write an object each tick while nobody waits.
        flush_interval: None,
        manifest_poll_interval: if on_directory { Duration::from_secs(1) } else { REMOTE_MANIFEST_POLL },
        l0_sst_size_bytes: L0_SST_BYTES,
        l0_max_ssts: L0_SSTS_MAX,
        l0_max_ssts_per_key: L0_SSTS_MAX,
        max_unflushed_bytes: MAX_UNFLUSHED_BYTES,
        // See compactor_options.
        compactor_options: None,
        garbage_collector_options: Some(GarbageCollectorOptions {
            wal_options: Some(GarbageCollectorDirectoryOptions { min_age: wal_min_age, ..often }),
            compacted_options: Some(often),
            manifest_options: Some(often),
            compactions_options: Some(often),
            // A directory has no conditional overwrites: with these files nothing would be deleted there.
            boundary_files_enabled: !on_directory,
            ..GarbageCollectorOptions::default()
        }),
        ..Settings::default()
    }
}

/// How files are merged, with a directory or an object store. Which ones, [`super::merges`] says.
pub(super) fn compactor_options(on_directory: bool) -> CompactorOptions {
    let poll_interval = if on_directory { COMPACTION_POLL } else { COMPACTION_POLL_REMOTE };
    CompactorOptions {
        // What a compaction replaced stays so long, and with it the log files of that time. The default of 15 minutes
        // keeps many times the live data.
        checkpoint_lifetime: min_age(on_directory),
        poll_interval,
        worker: Some(CompactionWorkerOptions {
            compactions_poll_interval: poll_interval,
            bytes_to_fetch: if on_directory { COMPACTION_READ_BYTES } else { COMPACTION_READ_BYTES_REMOTE },
            max_fetch_tasks: COMPACTION_READS,
            max_sst_size: COMPACTED_SST_BYTES,
            max_subcompactions: 1,
            ..CompactionWorkerOptions::default()
        }),
        ..CompactorOptions::default()
    }
}

fn min_age(on_directory: bool) -> Duration {
    if on_directory { GC_MIN_AGE_DIRECTORY } else { GC_MIN_AGE_REMOTE }
}
