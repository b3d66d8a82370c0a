//! Papers: their claims, figures and tables beside the rows of their experiments.

pub mod check;
pub mod presets;
#[cfg(feature = "figures")]
pub mod reproduce;

use powersweep_claims::{Claims, Preset, Presets, papers};
use powersweep_dataset::{Error, Kind, OrKind, failure};
use powersweep_experiments::reading::unknown;
use serde::Serialize;

pub use self::check::{Checked, Sweeps};
pub use self::presets::{Chosen, choose};

/// A paper or study that is part of the program.
#[derive(Debug, Clone)]
pub struct Paper {
    /// Its name, such as `etinski2010`.
    pub name: &'static str,
    /// The claims.
    pub claims: Claims,
    /// The figures and tables.
    pub presets: Presets,
}

/// A paper in a list.
#[derive(Debug, Clone, Serialize)]
pub struct ListedPaper {
    /// Its name.
    pub paper: String,
    /// Authors, year and title.
    pub title: String,
    /// Number of claims.
    pub claims: usize,
    /// Number of demanded claims.
    pub demanded: usize,
    /// The manifests whose rows the claims need.
    pub manifests: Vec<String>,
}

/// Every paper.
pub fn all() -> Result<Vec<Paper>, Error> {
    papers::names().into_iter().map(Paper::read).collect()
}

impl Paper {
    fn read(name: &'static str) -> Result<Paper, Error> {
        let file = format!("{name} (shipped)");
        let claims = Claims::parse(&file, papers::find(name).unwrap_or_default()).or_kind(Kind::Usage)?;
        let presets = papers::presets(name).unwrap_or_default();
        let presets = Presets::parse(&file, presets, &claims).or_kind(Kind::Usage)?;
        Ok(Paper { name, claims, presets })
    }

    /// The paper in a list.
    pub fn listed(&self) -> ListedPaper {
        let claims = &self.claims;
        ListedPaper {
            paper: claims.paper().to_owned(),
            title: claims.title().to_owned(),
            claims: claims.count(false),
            demanded: claims.count(true),
            manifests: claims.manifests(false).into_iter().map(str::to_owned).collect(),
        }
    }

    /// The paper of this name.
    pub fn find(name: &str) -> Result<Paper, Error> {
        let names = papers::names();
        match names.iter().find(|known| **known == name) {
            Some(known) => Paper::read(known),
            None => Err(failure!(Usage, "{}", unknown("paper", name, &names))),
        }
    }

    /// The paper that has an experiment.
    pub fn of(experiment: &str) -> Result<Paper, Error> {
        all()?.into_iter().find(|paper| paper.has(experiment)).ok_or_else(|| {
            let known = papers::names();
            failure!(
                Usage,
                "{experiment} is no experiment of a paper: name the paper, too; papers: {}",
                known.join(", ")
            )
        })
    }

    /// Whether this is the name of the paper or of one of its experiments.
    pub fn has(&self, experiment: &str) -> bool {
        self.name == experiment || self.presets.all().iter().any(|preset| preset.manifests().contains(experiment))
    }

    /// The manifests of the claims and of the figures and tables, each once, in their order.
    pub fn manifests(&self) -> Vec<String> {
        let mut all: Vec<String> = self.claims.manifests(false).into_iter().map(str::to_owned).collect();
        for manifest in self.presets.all().iter().flat_map(Preset::manifests) {
            if !all.contains(&manifest) {
                all.push(manifest);
            }
        }
        all
    }
}
