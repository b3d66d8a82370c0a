//! What a figure or a page was made from: manifests, logs, versions, programs.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_dataset::Datasets;
use powersweep_experiments::Digest;
use powersweep_results::Table;
use serde_json::{Value as Json, json};

use crate::exit::Failure;

/// Version and commit of this program.
pub const BUILD: &str = powersweep::BUILD;

/// What the rows of experiments come from, as the files of their `tasks` say, and the program that shows them. The same
/// rows and the same program give the same value.
pub async fn of(datasets: &Datasets, experiments: &BTreeSet<String>) -> Result<Json, Failure> {
    let mut all = Vec::new();
    for experiment in experiments {
        all.push(one(datasets, experiment).await?);
    }
    Ok(json!({ "made_by": format!("powersweep {BUILD}"), "experiments": all }))
}

/// The manifests, logs and versions of an experiment; those of several after an edit.
async fn one(datasets: &Datasets, experiment: &str) -> Result<Json, Failure> {
    let parts = datasets.read(experiment, Table::Tasks).await?.parts().await?;
    let (mut manifests, mut builds) = (BTreeSet::new(), BTreeSet::new());
    let (mut logs, mut versions): (BTreeMap<String, String>, BTreeMap<String, u32>) = Default::default();
    for origin in parts.iter().map(|part| part.origin()) {
        manifests.extend((!origin.manifest.is_empty()).then(|| Digest::of(origin.manifest.as_bytes()).to_string()));
        builds.extend((!origin.build.is_empty()).then_some(origin.build));
        logs.extend(origin.log_digests);
        versions.extend(origin.component_versions);
    }
    Ok(json!({
        "experiment": experiment,
        "manifest_sha256": manifests,
        "log_sha256": logs,
        "component_versions": versions,
        "simulated_by": builds,
    }))
}
