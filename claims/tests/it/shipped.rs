//! The claims that are part of the program.

use powersweep_claims::{Claims, Rows, papers};
use powersweep_experiments::{Manifest, manifests};
use powersweep_results::Table;

fn shipped() -> impl Iterator<Item = Claims> {
    papers::builtin().iter().map(|(name, text)| Claims::parse(name, text).unwrap_or_else(|errors| panic!("{errors}")))
}

#[test]
fn every_claims_file_is_correct_and_named_after_its_paper() {
    for (claims, (name, _)) in shipped().zip(papers::builtin()) {
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
