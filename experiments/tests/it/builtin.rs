//! The manifests that come with the program.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_experiments::{Digest, Manifest, Sweep, manifests};

fn sweep(name: &str) -> Sweep {
    let text = manifests::find(name).expect("a built-in manifest");
    let manifest = Manifest::parse(name, text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(manifest.name(), name);
    let digests: BTreeMap<String, Digest> =
        manifest.logs().into_iter().map(|log| (log.log.clone(), Digest::of(log.log.as_bytes()))).collect();
    Sweep::new(manifest, digests).expect("a sweep")
}

#[test]
fn every_builtin_manifest_decodes_and_encodes_all_its_tasks() {
    for (name, _) in manifests::builtin() {
        let sweep = sweep(name);
        let mut ids = BTreeSet::new();
        for index in 0..sweep.index_count() {
            let task = sweep.task(index);
            assert_eq!(task.is_none(), sweep.is_excluded(index));
            let Some(task) = task else { continue };
            assert_eq!(task.index, index);
            assert_eq!(sweep.index_of(&task), Some(index), "{task:?}");
            assert!(ids.insert(task.task_id), "two tasks with one id");
        }
        assert_eq!(ids.len() as u64, sweep.task_count(), "{name}");
    }
}
