//! What the rows of an experiment come from, for the footers of its parts.

use powersweep_results::part::Origin;

use super::Farm;

impl Farm {
    /// The present manifest and pins of an experiment. Rows of the same part may have been made under an earlier
    /// manifest.
    pub fn origin(&self, experiment: &str) -> Origin {
        let build = self.config.build.clone();
        let Some(experiment) = self.experiments.get(experiment) else { return Origin { build, ..Origin::default() } };
        let record = &experiment.record;
        let manifest = experiment.sweep.as_ref().map(|sweep| sweep.manifest());
        Origin {
            manifest: manifest.map_or(&*record.manifest, |manifest| manifest.text()).to_owned(),
            log_digests: record.digests.iter().map(|(log, digest)| (log.clone(), digest.to_string())).collect(),
            component_versions: record.pins.clone(),
            ledgers: record.ledgers.clone(),
            build,
        }
    }
}
