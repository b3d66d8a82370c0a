//! The compaction rule: which sorted files of the state are merged, and when.
//!
//! Most records of a farm are deleted within seconds: rows, once they are in a part. SlateDB's own rule merges files of
//! similar size, so that deleted rows stay in one file of each size, and are copied once before they are merged with
//! their deletions. Here all files become one, as soon as the new files have at least half the bytes of the old ones:
//! live records are rewritten for about as many new bytes, and deleted ones survive at most one merge.

use std::sync::Arc;

use slatedb::compactor::{
    CompactionScheduler, CompactionSchedulerSupplier, CompactionSpec, CompactorStateView,
    SizeTieredCompactionSchedulerSupplier, SourceId,
};
use slatedb::config::CompactorOptions;

/// Least new bytes of a merge. A higher value leaves more deleted records on disk, a lower one rewrites live records more
/// often.
const NEW_BYTES_MIN: u64 = 32 << 20;
/// Least number of new files of a merge with fewer new bytes: each start of a coordinator leaves a small file.
const NEW_FILES_MIN: usize = 8;
/// Least new bytes of a merge, as a share of the old bytes.
const NEW_SHARE_MIN: f64 = 0.5;
/// Number of new files that are merged whatever the number of bytes: each lookup of a key searches every file. Below
/// `L0_SSTS_MAX` of `tuning.rs`: otherwise writers would wait there for a merge that is never due.
const NEW_FILES_MAX: usize = 64;
/// Maximum number of new files of one merge: each has a read-ahead buffer in memory.
const NEW_FILES_AT_ONCE: usize = 32;

/// The supplier of [`Merges`].
pub(super) fn supplier() -> Arc<dyn CompactionSchedulerSupplier> {
    Arc::new(Supplier)
}

struct Supplier;

impl CompactionSchedulerSupplier for Supplier {
    fn compaction_scheduler(&self, options: &CompactorOptions) -> Box<dyn CompactionScheduler + Send + Sync> {
        Box::new(Merges { checks: SizeTieredCompactionSchedulerSupplier::new().compaction_scheduler(options) })
    }
}

/// Merges everything into one run.
struct Merges {
    /// SlateDB's own rule, which validates merges.
    checks: Box<dyn CompactionScheduler + Send + Sync>,
}

impl CompactionScheduler for Merges {
    fn propose(&self, state: &CompactorStateView) -> Vec<CompactionSpec> {
        let mut merges = state.compactions().into_iter().flat_map(|compactions| compactions.recent_compactions());
        if merges.any(|merge| merge.active()) {
            return Vec::new();
        }
        let (new, runs) = (state.manifest().l0(), state.manifest().compacted());
        let new_bytes = new.iter().map(|file| file.estimate_size()).sum();
        let old_bytes = runs.iter().map(|run| run.estimate_size()).sum();
        if !is_due(new.len(), new_bytes, old_bytes) {
            return Vec::new();
        }
        // Files are listed from the newest on: the oldest are merged.
        let oldest = new.iter().skip(new.len().saturating_sub(NEW_FILES_AT_ONCE));
        let sources = oldest.map(|file| SourceId::SstView(file.id));
        let sources = sources.chain(runs.iter().map(|run| SourceId::SortedRun(run.id))).collect();
        let lowest = runs.iter().map(|run| run.id).min();
        vec![CompactionSpec::new(sources, lowest.unwrap_or(0))]
    }

    fn validate(&self, state: &CompactorStateView, spec: &CompactionSpec) -> Result<(), slatedb::Error> {
        self.checks.validate(state, spec)
    }
}

fn is_due(new_files: usize, new_bytes: u64, old_bytes: u64) -> bool {
    let enough = new_bytes >= NEW_BYTES_MIN || new_files >= NEW_FILES_MIN;
    (enough && new_bytes as f64 >= old_bytes as f64 * NEW_SHARE_MIN) || new_files >= NEW_FILES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_is_due_at_enough_new_bytes_or_files() {
        const MIB: u64 = 1 << 20;
        assert!(!is_due(0, 0, 0) && !is_due(0, 0, 1000 * MIB));
        assert!(!is_due(7, 31 * MIB, 0) && is_due(7, 32 * MIB, 0) && is_due(8, MIB, 0));
        assert!(is_due(8, 32 * MIB, 64 * MIB) && !is_due(8, 32 * MIB, 66 * MIB));
        assert!(is_due(40, 150 * MIB, 300 * MIB));
        // Many files are merged, whatever the number of old bytes.
        assert!(!is_due(63, MIB, 1000 * MIB) && is_due(64, MIB, 1000 * MIB));
    }
}
