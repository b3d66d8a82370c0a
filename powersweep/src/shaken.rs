//! An experiment once more with shaken input: each job is submitted a little earlier or later. A difference between two policies
//! that does not outlive it is one of the instants of the log, not of the policies (Tsafrir, Ouaknine & Feitelson 2007).

use powersweep_dataset::{Error, failure};
use powersweep_engine::Value;
use powersweep_experiments::{Derivation, Manifest};
use powersweep_results::Table;

use crate::compare::split_set;
use crate::derived::DerivedOptions;
use crate::find::{StepRun, begin};
use crate::inputs::Files;
use crate::place::Place;
use crate::results::without_manifest;

/// The first seed and the number of seeds: as many replicates as a narrow interval needs.
const SEEDS: (u64, u64) = (1, 10);

/// The parameter by which submits move.
const JITTER: &str = "submit_jitter_s";

/// Name of the experiment that has the shaken input of another one.
pub fn shaken_name(experiment: &str) -> String {
    format!("{experiment}-shaken")
}

/// A set of rows with its conditions, in the experiment that has the shaken input.
pub fn shaken_set(set: &str) -> String {
    let (experiment, conditions) = split_set(set);
    let name = shaken_name(experiment);
    if conditions.is_empty() { name } else { format!("{name}:{conditions}") }
}

impl Place {
    /// Begins to run the manifest of an experiment's rows as the experiment [`shaken_name`]: in each workload, each submit moves by
    /// at most `jitter_s` (s), earlier or later, differently for each of ten seeds. Tasks that have rows do not run again.
    ///
    /// # Errors
    /// The time is 0; the experiment has no published rows, or its manifest excludes or zips the jitter; a file of the manifest
    /// cannot be read.
    pub async fn shake(&self, experiment: &str, jitter_s: f64, options: &DerivedOptions) -> Result<StepRun, Error> {
        if jitter_s == 0.0 {
            return Err(failure!(Usage, "no submit moves by 0 s: the input is shaken by a time above 0, such as 60 s"));
        }
        let reading = self.datasets().await?.read(experiment, Table::Tasks).await?;
        let text = reading.manifest().await?.ok_or_else(|| without_manifest(experiment))?;
        let original = Manifest::parse(&options.file, &text);
        let original = original.map_err(|errors| (options.problems)(&options.file, &errors))?;
        let (name, workloads) = (shaken_name(experiment), Some((JITTER, Value::Real(jitter_s))));
        let derivation = Derivation { name: &name, workloads, seeds: Some(SEEDS), ..Derivation::default() };
        let manifest = options.derive(&original, &derivation, "shaken input")?;
        let files = Files::read(&manifest, &options.library, Some(&options.logs), &self.notes)?;
        begin(self, &manifest, &files, &options.library, &options.run).await
    }
}
