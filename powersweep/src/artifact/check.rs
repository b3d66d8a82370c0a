//! Checking an artifact, which may be a stranger's: digests, a sample of rows, verdicts, figures.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use powersweep_dataset::partial::Partial;
use powersweep_dataset::{Error, Kind, Notes, OrKind, failure};
use powersweep_experiments::{Digest, Manifest};
use powersweep_inputs::library::Library;
use serde_json::{Value as Json, json};

use super::{
    Problem, ROWS, STUDY, StudiedExperiment, Study, VERDICTS, archive, inputs, manifest_path, table_path, zip,
};
use crate::papers::{Checked, Paper, Sweeps};
use crate::place::Place;
use crate::verify::{Verified, VerifyOptions, foreign_table};

/// An artifact whose files are those of its list of digests.
#[derive(Debug)]
pub struct Artifact {
    folder: PathBuf,
    /// The unpacked ZIP, which is deleted with this.
    _unpacked: Option<Partial>,
    files: BTreeSet<String>,
    /// Its contents.
    pub study: Study,
    /// SHA-256 of the ZIP; `None` for a folder.
    pub sha256: Option<Digest>,
}

/// The verdicts on an artifact.
#[derive(Debug, Clone, Default)]
pub struct CheckedArtifact {
    /// The verdict on the rows of each experiment.
    pub experiments: Vec<CheckedExperiment>,
    /// The claims of the paper beside the rows of the artifact; `None` without a paper, or with missing rows.
    pub checked: Option<Checked>,
    /// Claims whose value or verdict is another one than the artifact has.
    pub changed_claims: Vec<String>,
    /// The figures that were drawn.
    pub drawn: Option<DrawnAgain>,
}

/// The verdict on the rows of an experiment.
#[derive(Debug, Clone)]
pub struct CheckedExperiment {
    /// The experiment.
    pub studied: StudiedExperiment,
    /// The rows that were simulated again, or why none could be.
    pub verified: Result<Verified, Error>,
}

/// Figures and tables that were drawn again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrawnAgain {
    /// Files that are equal to those of the artifact.
    pub equal: usize,
    /// Files that differ, or that the artifact lacks.
    pub differing: Vec<String>,
    /// Whether they were drawn by the version that drew those of the artifact. Each figure names its version.
    pub same_version: bool,
}

/// Whether this is the path of an artifact: a ZIP, or a folder with the files of one.
pub fn is_artifact(path: &str) -> bool {
    let path = Path::new(path);
    path.extension().is_some_and(|ending| ending == "zip") || path.join(STUDY).is_file()
}

impl Artifact {
    /// Opens an artifact, a ZIP or its unpacked folder. Returns every file that is not as it was made, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Result<Artifact, Vec<Problem>>, Error> {
        let (mut problems, mut is_whole) = (Vec::new(), true);
        let (mut sha256, mut unpacked) = (None, None);
        if !path.is_dir() {
            let cannot_read = |error| failure!(Usage, "cannot read {}: {error}", path.display());
            sha256 = Some(File::open(path).and_then(Digest::of_reader).map_err(cannot_read)?);
            let folder = Partial::scratch().or_kind(Kind::Storage)?;
            zip::Unpacked { problems, is_whole } = zip::unpack(path, folder.path())?;
            unpacked = Some(folder);
        }
        let folder = unpacked.as_ref().map_or(path, Partial::path).to_owned();
        // A ZIP that ends early lacks files, which says nothing new.
        let (files, differing) = if is_whole { archive::checked(&folder)? } else { Default::default() };
        problems.extend(differing);
        let mut named = BTreeSet::new();
        problems.retain(|problem| named.insert(problem.file.clone()));
        if !problems.is_empty() {
            problems.sort();
            return Ok(Err(problems));
        }
        for file in files.iter().filter(|file| file.ends_with(".parquet")) {
            foreign_table(&folder.join(file).to_string_lossy())?;
        }
        let text = crate::inputs::text(&folder.join(STUDY).to_string_lossy(), "list of contents")?;
        let study = Study::parse(&text, |path| files.contains(path))?;
        Ok(Ok(Artifact { folder, _unpacked: unpacked, files, study, sha256 }))
    }

    /// Number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Simulates a sample of the rows of each experiment again, compares the claims with the rows, and draws the figures into the
    /// folder `figures`, if one is given. Logs come from the artifact, else from the search path of `options`.
    ///
    /// # Errors
    /// A file cannot be read. Rows, claims and figures that differ are no error.
    pub async fn verify(
        &self,
        options: &VerifyOptions,
        figures: Option<&Path>,
        notes: &Notes,
    ) -> Result<CheckedArtifact, Error> {
        let place = Place { notes: notes.clone(), ..Place::open(self.folder.join(ROWS).to_string_lossy()) };
        let mut found = CheckedArtifact::default();
        for studied in &self.study.experiments {
            let verified = self.sample(&place, studied, options).await;
            found.experiments.push(CheckedExperiment { studied: studied.clone(), verified });
        }
        let Some((paper, sweeps)) = self.paper(&place).await? else { return Ok(found) };
        let checked = place.check(&paper.claims, &sweeps, false).await?;
        found.changed_claims = self.changed_claims(&checked)?;
        found.checked = Some(checked);
        if let Some(output) = figures {
            found.drawn = Some(self.drawn(&place, &paper, &sweeps, output).await?);
        }
        Ok(found)
    }

    /// Some rows of an experiment, simulated again.
    async fn sample(
        &self,
        place: &Place,
        studied: &StudiedExperiment,
        options: &VerifyOptions,
    ) -> Result<Verified, Error> {
        let manifest = Some(self.manifest(&studied.name)?);
        let library: Library = inputs::library(&self.folder, options.library.clone());
        let rows = self.folder.join(table_path(&studied.name, "tasks"));
        place.verify(&rows.to_string_lossy(), &VerifyOptions { manifest, library, ..options.clone() }).await
    }

    fn manifest(&self, experiment: &str) -> Result<Manifest, Error> {
        let path = manifest_path(experiment);
        let text = crate::inputs::text(&self.folder.join(&path).to_string_lossy(), "manifest")?;
        Manifest::parse(&path, &text).map_err(|errors| crate::inputs::problems(&path, &errors))
    }

    /// The paper, and its sweeps if each of their tasks has a row.
    async fn paper(&self, place: &Place) -> Result<Option<(Paper, Sweeps)>, Error> {
        let Some(studied) = &self.study.paper else { return Ok(None) };
        let text = |path: &str| crate::inputs::text(&self.folder.join(path).to_string_lossy(), "claims");
        let presets_text = studied.presets.as_deref().map(text).transpose()?;
        let presets = studied.presets.as_deref().zip(presets_text.as_deref());
        let paper = Paper::parse(&studied.claims, &text(&studied.claims)?, presets, crate::inputs::problems)?;
        paper.check_names()?;
        let mut sweeps = Sweeps::new();
        for name in paper.manifests() {
            let Some(experiment) = studied.experiments.get(&name) else {
                return Err(failure!(
                    Usage,
                    "{STUDY} names no experiment for the manifest {name} of {}",
                    studied.claims
                ));
            };
            if !self.files.contains(&manifest_path(experiment)) {
                return Err(failure!(
                    Usage,
                    "{STUDY} names the experiment {experiment}, which the artifact does not have"
                ));
            }
            match place.finished(&self.manifest(experiment)?).await? {
                Some(sweep) => sweeps.insert(name, sweep),
                None => return Ok(None),
            };
        }
        Ok(Some((paper, sweeps)))
    }

    /// Ids of the claims whose verdict or value is not that of the artifact.
    fn changed_claims(&self, checked: &Checked) -> Result<Vec<String>, Error> {
        if !self.files.contains(VERDICTS) {
            return Ok(Vec::new());
        }
        let path = self.folder.join(VERDICTS);
        let stated = fs::read_to_string(&path).map_err(|error| failure!(Storage, "cannot read {VERDICTS}: {error}"))?;
        if stated == format!("{:#}\n", json!(checked)) {
            return Ok(Vec::new());
        }
        let stated: Json = serde_json::from_str(&stated)
            .map_err(|error| failure!(Usage, "{VERDICTS} is not that of an artifact: {error}"))?;
        let known = |id: &str| stated["claims"].as_array()?.iter().find(|claim| claim["id"] == id);
        // Another version may write a value with other words around it.
        let is_value = |known: &Json, claim: &powersweep_claims::Finding| {
            let value = known["our_value"].as_f64().filter(|_| !self.is_of_this_version());
            known["ours"] == claim.ours || (value.is_some() && value == claim.our_value)
        };
        let is_changed = |claim: &&powersweep_claims::Finding| {
            known(&claim.id).is_none_or(|known| !is_value(known, claim) || known["verdict"] != claim.words)
        };
        Ok(checked.claims.iter().filter(is_changed).map(|claim| claim.id.clone()).collect())
    }

    /// Whether this build has made the artifact.
    fn is_of_this_version(&self) -> bool {
        self.study.made_by == format!("powersweep {}", crate::BUILD)
    }

    #[cfg(feature = "figures")]
    async fn drawn(&self, place: &Place, paper: &Paper, sweeps: &Sweeps, output: &Path) -> Result<DrawnAgain, Error> {
        draw(place, paper, sweeps, output).await?;
        let mut drawn = DrawnAgain { same_version: self.is_of_this_version(), ..DrawnAgain::default() };
        let prefix = format!("{}/{}/", super::FIGURES, paper.name);
        for file in self.files.iter().filter_map(|file| file.strip_prefix(&prefix)) {
            let ours = fs::read(output.join(&paper.name).join(file)).unwrap_or_default();
            match fs::read(self.folder.join(format!("{prefix}{file}"))) {
                Ok(stated) if stated == ours => drawn.equal += 1,
                _ => drawn.differing.push(file.to_owned()),
            }
        }
        Ok(drawn)
    }

    #[cfg(not(feature = "figures"))]
    async fn drawn(&self, _: &Place, _: &Paper, _: &Sweeps, _: &Path) -> Result<DrawnAgain, Error> {
        Err(failure!(Usage, "this program draws no figures: use one that was built with --features figures"))
    }
}

/// Draws every figure and table of a paper into a folder.
#[cfg(feature = "figures")]
pub(super) async fn draw(place: &Place, paper: &Paper, sweeps: &Sweeps, folder: &Path) -> Result<(), Error> {
    use crate::papers::reproduce::Ran;

    let ran =
        sweeps.iter().map(|(manifest, sweep)| Ran { manifest: manifest.clone(), sweep: sweep.clone(), seconds: 0.0 });
    let ran: Vec<Ran> = ran.collect();
    place.reproduce(paper, &ran, folder, |_| {}).await.map(|_| ())
}
