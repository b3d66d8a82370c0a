//! Which sorted files of the state are merged, and when.
//!
//! Most of what a farm writes is dead within seconds: rows are deleted when they are in a part. SlateDB's own rule merges
//! files of like size, so that dead rows wait in one file of each size, and are copied once before they are merged with
//! their deletions. Here all files become one, as soon as the new ones are worth reading the whole: what lives is written
//! again for about as many new bytes, and nothing dead is older than one merge.

use std::sync::Arc;

use slatedb::compactor::{
    CompactionScheduler, CompactionSchedulerSupplier, CompactionSpec, CompactorStateView,
    SizeTieredCompactionSchedulerSupplier, SourceId,
};
use slatedb::config::CompactorOptions;

/// New bytes that are merged at least: more of them means more dead bytes on the disk, fewer that the living are written
/// again more often.
const NEW_BYTES_MIN: u64 = 32 << 20;
/// New files that are merged where they have fewer bytes: each start of a coordinator leaves one.
const NEW_FILES_MIN: usize = 8;
/// New bytes that are merged at least, as a share of what they are merged with.
const NEW_SHARE_MIN: f64 = 0.5;
/// New files that are merged whatever they are merged with: each is asked for a key that is looked up. Fewer than
/// `L0_SSTS_MAX` of `tuning.rs`, or writers would wait there for a merge that is never due.
const NEW_FILES_MAX: usize = 64;
/// New files that are merged at once: each is read ahead into memory.
const NEW_FILES_AT_ONCE: usize = 32;

/// Makes [`Merges`].
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
    /// SlateDB's own, which knows what a merge must look like.
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
        // From the newest on; those that are left out are the newest.
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
    fn files_wait_until_they_are_worth_reading_the_whole() {
        const MIB: u64 = 1 << 20;
        assert!(!is_due(0, 0, 0) && !is_due(0, 0, 1000 * MIB));
        assert!(!is_due(7, 31 * MIB, 0) && is_due(7, 32 * MIB, 0) && is_due(8, MIB, 0));
        assert!(is_due(8, 32 * MIB, 64 * MIB) && !is_due(8, 32 * MIB, 66 * MIB));
        assert!(is_due(40, 150 * MIB, 300 * MIB));
        // Many small ones, however much there is.
        assert!(!is_due(63, MIB, 1000 * MIB) && is_due(64, MIB, 1000 * MIB));
    }
}
