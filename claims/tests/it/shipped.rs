//! The claims that are part of the program.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_claims::{Claims, Rows, papers};
use powersweep_engine::Role;
use powersweep_experiments::{Digest, Manifest, Sweep, manifests};
use powersweep_results::Table;

fn shipped() -> impl Iterator<Item = Claims> {
    papers::builtin()
        .iter()
        .map(|(name, text, _)| Claims::parse(name, text).unwrap_or_else(|errors| panic!("{errors}")))
}

#[test]
fn every_claims_file_is_correct_and_named_after_its_paper() {
    for (claims, (name, ..)) in shipped().zip(papers::builtin()) {
        assert_eq!(claims.paper(), *name);
        assert!(claims.count(true) > 0, "{name} has no demanded claim");
        assert!(papers::find(name).is_some());
    }
    assert!(papers::find("nobody1900").is_none());
}

#[test]
fn the_manifests_of_all_claims_are_shipped_with_the_tables_that_are_read() {
    for claims in shipped() {
        for (manifest, table) in claims.needed(false).keys() {
            let text = manifests::find(manifest).unwrap_or_else(|| panic!("there is no manifest {manifest}"));
            let manifest = Manifest::parse(manifest, text).expect("shipped manifests are correct");
            let asked = manifest.tables().names().any(|name| name == table.name());
            assert!(asked || *table == Table::Tasks, "{}: {} does not write {table}", claims.paper(), manifest.name());
        }
    }
}

#[test]
fn the_columns_that_are_read_exist() {
    for claims in shipped() {
        for ((_, table), columns) in claims.needed(false) {
            let of_tasks = powersweep_results::tasks::columns();
            let known: Vec<String> = table.columns().into_iter().chain(of_tasks).map(|c| c.name).collect();
            for column in columns {
                assert!(known.contains(&column), "{}: {}.{column}", claims.paper(), table.name());
            }
        }
    }
}

#[test]
fn without_rows_every_demanded_claim_is_missing() {
    for claims in shipped() {
        let findings = claims.check(&Rows::new(), true);
        assert_eq!(findings.len(), claims.count(true));
        for finding in findings {
            assert!(finding.is_failure(), "{}", finding.id);
            assert!(finding.ours.contains("no row"), "{}: {}", finding.id, finding.ours);
        }
    }
}

/// A shipped sweep; its logs have digests of their names.
fn sweep(name: &str) -> Sweep {
    let text = manifests::find(name).unwrap_or_else(|| panic!("there is no manifest {name}"));
    let manifest = Manifest::parse(name, text).unwrap_or_else(|errors| panic!("{errors}"));
    let names = manifest.logs().into_iter().map(|log| log.log.clone());
    let digests: BTreeMap<String, Digest> = names.map(|log| (log.clone(), Digest::of(log.as_bytes()))).collect();
    Sweep::new(manifest, digests).expect("a sweep")
}

/// Ten sequences of 1,024 jobs of each log, under five orders and three readings of backfilling, and two orders whose head is chosen
/// at each event: docs/published-tables.md.
#[test]
fn rlscheduler_runs_the_ten_sequences_of_the_study() {
    let sweep = sweep("rlscheduler2020");
    let mut sequences: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    let mut policies: BTreeMap<String, u32> = BTreeMap::new();
    for task in (0..sweep.index_count()).filter_map(|index| sweep.task(index)) {
        let rules = task.sim.choice(Role::Rules);
        assert_eq!(rules.int("record_to") - rules.int("record_from"), 1024);
        sequences.entry(task.workload.to_string()).or_default().insert(rules.int("record_from"));
        *policies.entry(task.policy.to_string()).or_default() += 1;
    }
    let begins = BTreeSet::from([1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085]);
    let expected = ["HPC2N", "Lublin-1", "SDSC-SP2"].map(|log| (log.to_owned(), begins.clone()));
    assert_eq!(sequences, BTreeMap::from(expected));
    assert_eq!(policies.len(), 3 * 5 + 2);
    assert!(policies.values().all(|count| *count == 3 * 10), "{policies:?}");
}

/// Eight orders on ten sequences: of a model with run times, of five logs with run times, requested times, and EASY. Four
/// orders on 30 weeks of six logs, and on the whole logs.
#[test]
fn the_studies_of_queue_orders_run_every_order_on_every_log() {
    assert_eq!(sweep("sc17").task_count(), 8 * 10 * (1 + 5 * 3));
    assert_eq!(sweep("ccgrid2019_weeks").task_count(), 4 * 30 * 6);
    assert_eq!(sweep("ccgrid2019").task_count(), 4 * 6);
}
