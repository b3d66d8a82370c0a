//! Origins of figures and pages: manifests, logs, versions, programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use powersweep_coordinator::farm::KERNEL;
use powersweep_dataset::{Datasets, Error};
use powersweep_experiments::Digest;
use powersweep_results::{Table, part};
use serde::Serialize;

/// The origin of the rows of experiments, and the program that shows them. It depends on nothing else, such as the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The program with its version and commit.
    pub made_by: String,
    /// The experiments.
    pub experiments: Vec<ExperimentOrigin>,
    /// Authors, year and title of the paper, for a figure of a paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
    /// The place in the paper: `Figure 3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shows: Option<String>,
}

/// The manifests, logs and versions of an experiment; after an edit several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExperimentOrigin {
    /// Its name.
    pub experiment: String,
    /// SHA-256 of the manifests.
    pub manifest_sha256: BTreeSet<String>,
    /// SHA-256 of each log by its name.
    pub log_sha256: BTreeMap<String, String>,
    /// The version of each component.
    pub component_versions: BTreeMap<String, u32>,
    /// The programs that simulated the tasks.
    pub simulated_by: BTreeSet<String>,
}

/// The origin of the rows of experiments, as the files of their `tasks` say.
pub async fn of(datasets: &Datasets, experiments: &BTreeSet<String>) -> Result<Origin, Error> {
    let mut all = Vec::new();
    for experiment in experiments {
        all.push(one(datasets, experiment).await?);
    }
    Ok(Origin { made_by: format!("powersweep {}", crate::BUILD), experiments: all, paper: None, shows: None })
}

async fn one(datasets: &Datasets, experiment: &str) -> Result<ExperimentOrigin, Error> {
    let mut all = ExperimentOrigin { experiment: experiment.to_owned(), ..ExperimentOrigin::default() };
    let parts = datasets.read(experiment, Table::Tasks).await?.parts().await?;
    for origin in parts.iter().map(|part| part.origin()) {
        let of_text = |text: &str| Digest::of(text.as_bytes()).to_string();
        all.manifest_sha256.extend((!origin.manifest.is_empty()).then(|| of_text(&origin.manifest)));
        all.simulated_by.extend((!origin.build.is_empty()).then_some(origin.build));
        all.log_sha256.extend(origin.log_digests);
        all.component_versions.extend(origin.component_versions);
    }
    Ok(all)
}

/// The digests of the files that rows were made from.
pub(crate) fn digests(made: &part::Origin) -> BTreeMap<String, Digest> {
    let digest = |(name, digest): (&String, &String)| Some((name.clone(), digest.parse().ok()?));
    made.log_digests.iter().filter_map(digest).collect()
}

/// The files that are other ones than rows were made from, each with a sentence. `now`: the digests of the present files.
pub(crate) fn other_files(made: &part::Origin, now: &BTreeMap<String, Digest>) -> BTreeMap<String, String> {
    let other = |(name, digest): (&String, &String)| {
        let now = now.get(name).filter(|now| now.to_string() != *digest)?;
        Some((name.clone(), another_file(name, now, digest)))
    };
    made.log_digests.iter().filter_map(other).collect()
}

/// The sentence about a file that is not the one that rows were made from.
pub(crate) fn another_file(file: &dyn Display, now: &Digest, made: &str) -> String {
    format!("{file} is another file than the rows were made from: its digest is {now}, rows have {made}")
}

/// The versions of the kernel and of components that are other ones than rows were made by, in sentences.
pub(crate) fn other_versions(made: &part::Origin) -> Vec<String> {
    let now = powersweep_proto::versions("", 0);
    let version = |name: &str| if name == KERNEL { Some(now.kernel) } else { now.parts.get(name).copied() };
    let other = |(name, made): (&String, &u32)| match version(name) {
        Some(now) if now == *made => None,
        Some(now) => Some(format!("{name} has version {now}, the rows were made by version {made}")),
        None => Some(format!("this version has no {name}, by which the rows were made")),
    };
    made.component_versions.iter().filter_map(other).collect()
}
