//! Settings of SlateDB: sizes, intervals, and ages at which files are deleted.

use super::kind::{CACHE_TIME, Kind, MAX_CLOCK_DIFFERENCE};
use std::time::Duration;

use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, GarbageCollectorDirectoryOptions, GarbageCollectorOptions, Settings,
};

/// How often garbage is collected. SlateDB's default of minutes leaves 150,000 files on a busy directory.
const GC_INTERVAL: Duration = Duration::from_secs(1);
/// How often garbage is collected in an object store, where every listing costs a request.
const GC_INTERVAL_REMOTE: Duration = Duration::from_secs(10);

/// Age at which files are deleted that the state no longer names: longer than any read that may still use them.
const GC_MIN_AGE_LOCAL: Duration = Duration::from_secs(4);
/// Age at which unnamed files are deleted from an object store, where reads are slower.
const GC_MIN_AGE_REMOTE: Duration = Duration::from_secs(60);
/// Age at which unnamed files are deleted from a shared file system: a process may begin with a list of files of
/// [`CACHE_TIME`] ago, and the age is the difference between a time of the server's clock and this machine's clock. 20 flushes a second leave 3,600 log files.
const GC_MIN_AGE_SHARED: Duration = CACHE_TIME.saturating_add(MAX_CLOCK_DIFFERENCE).saturating_add(GC_MIN_AGE_REMOTE);

/// Size at which SlateDB writes its memory to a sorted file: bounds the replay when the state is opened, and the memory of
/// a busy coordinator, where one such memory fills while the previous one is encoded and written.
const L0_SST_BYTES: usize = 4 << 20;

/// Unflushed bytes at which writers wait: bounds memory while the storage is slow.
const MAX_UNFLUSHED_BYTES: usize = 32 << 20;

/// Sorted files that may wait for a compaction; with more, memory is no longer written to files. A busy farm is faster
/// than compaction for minutes; the default of 8 would keep its data in memory meanwhile.
const L0_SSTS_MAX: usize = 128;

/// How often the compaction rule is applied. With the default of 5 s, a busy farm writes dozens of files meanwhile.
const COMPACTION_POLL: Duration = Duration::from_secs(1);
/// How often the compaction rule is applied in an object store, where every poll costs a request.
const COMPACTION_POLL_REMOTE: Duration = Duration::from_secs(5);
/// Read-ahead of a merge for each of its files, in bytes and in reads: the defaults take 8 MiB for a file.
const COMPACTION_READ_BYTES: usize = 128 << 10;
/// Read-ahead of a merge in an object store, where every read costs a request.
const COMPACTION_READ_BYTES_REMOTE: usize = 512 << 10;
const COMPACTION_READS: usize = 2;
/// Size of the files that a merge writes, one after the other. Each is in memory until it is complete; a larger file would
/// be written in pieces of 10 MiB, up to eight of which wait for a slow storage.
const COMPACTED_SST_BYTES: usize = 4 << 20;

/// How often the manifest is polled.
const MANIFEST_POLL: Duration = Duration::from_secs(1);
/// How often the manifest is polled in an object store, where every poll costs a request.
const MANIFEST_POLL_REMOTE: Duration = Duration::from_secs(5);

/// The settings for a kind of storage.
pub(super) fn settings(kind: Kind) -> Settings {
    let local = kind == Kind::Local;
    let interval = if local { GC_INTERVAL } else { GC_INTERVAL_REMOTE };
    let often = GarbageCollectorDirectoryOptions { interval: Some(interval), min_age: min_age(kind), dry_run: false };
    Settings {
        // The store flushes explicitly: a timer would write an object at each tick, also without waiting callers.
        flush_interval: None,
        manifest_poll_interval: if local { MANIFEST_POLL } else { MANIFEST_POLL_REMOTE },
        l0_sst_size_bytes: L0_SST_BYTES,
        l0_max_ssts: L0_SSTS_MAX,
        l0_max_ssts_per_key: L0_SSTS_MAX,
        max_unflushed_bytes: MAX_UNFLUSHED_BYTES,
        // See compactor_options.
        compactor_options: None,
        garbage_collector_options: Some(GarbageCollectorOptions {
            // Log files are replayed when the state is opened, and each flush writes one.
            wal_options: Some(often),
            // One empty file for each opening, which an older writer meets at its next flush. It must stay: no age is
            // longer than a process may stand still.
            wal_fence_options: None,
            compacted_options: Some(often),
            manifest_options: Some(often),
            compactions_options: Some(often),
            // A directory has no conditional overwrites: with boundary files, garbage would not be deleted there.
            boundary_files_enabled: kind == Kind::Objects,
            ..GarbageCollectorOptions::default()
        }),
        ..Settings::default()
    }
}

/// The compaction settings for a kind of storage. The rule is in [`super::merges`].
pub(super) fn compactor_options(kind: Kind) -> CompactorOptions {
    let local = kind == Kind::Local;
    let poll_interval = if local { COMPACTION_POLL } else { COMPACTION_POLL_REMOTE };
    CompactorOptions {
        // Files that a compaction replaced stay for this time, and with them the log files of that time. The default of
        // 15 minutes keeps many times the live data.
        checkpoint_lifetime: min_age(kind),
        poll_interval,
        worker: Some(CompactionWorkerOptions {
            compactions_poll_interval: poll_interval,
            bytes_to_fetch: if local { COMPACTION_READ_BYTES } else { COMPACTION_READ_BYTES_REMOTE },
            max_fetch_tasks: COMPACTION_READS,
            max_sst_size: COMPACTED_SST_BYTES,
            max_subcompactions: 1,
            ..CompactionWorkerOptions::default()
        }),
        ..CompactorOptions::default()
    }
}

fn min_age(kind: Kind) -> Duration {
    match kind {
        Kind::Local => GC_MIN_AGE_LOCAL,
        Kind::Shared => GC_MIN_AGE_SHARED,
        Kind::Objects => GC_MIN_AGE_REMOTE,
    }
}
