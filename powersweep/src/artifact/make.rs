//! Making an artifact: its files in a folder, then the ZIP.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use chrono::DateTime;
use powersweep_claims::Claims;
use powersweep_dataset::partial::Partial;
use powersweep_dataset::reading::Part;
use powersweep_dataset::words::count;
use powersweep_dataset::writing::{Output, cannot_write, write_whole};
use powersweep_dataset::{Error, Kind, OrKind, failure};
use powersweep_experiments::{Digest, Manifest, manifests};
use powersweep_inputs::library::Library;
use powersweep_results::{Table, part};
use serde_json::{Value as Json, json};

use super::rows::Survey;
use super::{
    ArtifactOptions, CONTAINER, DESCRIPTION, METADATA, PAPER, PROGRAM, README, ROWS, SCRIPT, STUDY, StudiedExperiment,
    StudiedFigure, StudiedPaper, Study, VERDICTS, VERSION, VERSIONS, archive, describe, failed_path, inputs,
    ledgers_path, manifest_path, metadata, scripts, table_path, zip,
};
use crate::export::ExportOptions;
use crate::origin;
use crate::papers::{Checked, Paper, Sweeps};
use crate::place::Place;

/// An artifact that was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// Its contents.
    pub study: Study,
    /// The size of the ZIP.
    pub bytes: u64,
    /// SHA-256 of the ZIP, which tells it from one that was changed together with its list of digests.
    pub sha256: Digest,
    /// The verdicts on the paper's claims.
    pub checked: Option<Checked>,
}

impl Place {
    /// Writes the artifact of experiments, and of those that the claims of a paper need, into a new ZIP file. Equal rows and options
    /// give equal bytes.
    ///
    /// # Errors
    /// The file exists, an experiment has no rows, or tasks have no row and the options do not allow that.
    pub async fn artifact(
        &self,
        experiments: &[String],
        output: &Path,
        options: &ArtifactOptions,
    ) -> Result<Made, Error> {
        if output.extension().is_none_or(|ending| ending != "zip") {
            return Err(failure!(Usage, "{}: an artifact is a ZIP file: end its name in .zip", output.display()));
        }
        refuse_existing(output)?;
        let folder = Partial::folder(output).map_err(|error| cannot_write(output, &error))?;
        let making = Making::begin(self, folder.path(), options, experiments)?;
        let (study, checked) = making.make().await?;
        archive::seal(folder.path())?;
        refuse_existing(output)?;
        let mut out = Output::open(Some(output))?;
        zip::pack(folder.path(), out.writer())?;
        out.finish()?;
        let file = fs::File::open(output).and_then(|file| Ok((file.metadata()?.len(), Digest::of_reader(file)?)));
        let (bytes, sha256) = file.or_kind(Kind::Storage)?;
        Ok(Made { study, bytes, sha256, checked })
    }
}

fn refuse_existing(output: &Path) -> Result<(), Error> {
    match output.symlink_metadata() {
        Ok(_) => Err(failure!(Usage, "{} exists already: name a new file", output.display())),
        Err(_) => Ok(()),
    }
}

/// An artifact while it is made.
struct Making<'a> {
    place: &'a Place,
    folder: &'a Path,
    /// The rows of the artifact.
    own: Place,
    options: &'a ArtifactOptions,
    /// The manifests that the paper names.
    of_paper: BTreeMap<String, Manifest>,
    experiments: Vec<String>,
}

impl<'a> Making<'a> {
    fn begin(
        place: &'a Place,
        folder: &'a Path,
        options: &'a ArtifactOptions,
        wanted: &[String],
    ) -> Result<Making<'a>, Error> {
        let mut of_paper = BTreeMap::new();
        let mut experiments = wanted.to_vec();
        if let Some(paper) = &options.paper {
            paper.check_names()?;
            for name in paper.manifests() {
                let manifest = paper.manifest(&name)?;
                experiments.push(manifest.name().to_owned());
                of_paper.insert(name, manifest);
            }
        }
        experiments.sort();
        experiments.dedup();
        let own = Place { notes: place.notes.clone(), ..Place::open(folder.join(ROWS).to_string_lossy()) };
        Ok(Making { place, folder, own, options, of_paper, experiments })
    }

    /// Writes all files but the list of digests.
    async fn make(&self) -> Result<(Study, Option<Checked>), Error> {
        let mut study = Study {
            version: VERSION,
            title: self.experiments.join(", "),
            made_by: format!("powersweep {}", crate::BUILD),
            authors: self.options.authors.clone(),
            licence: self.options.licence.clone(),
            logs_licence: self.options.logs_licence.clone(),
            has_program: self.options.program.is_some(),
            ..Study::default()
        };
        let (mut last_us, mut sweeps) = (0, Sweeps::new());
        for name in &self.experiments {
            let (experiment, sweep, experiment_us) = self.experiment(name).await?;
            last_us = last_us.max(experiment_us);
            study.experiments.push(experiment);
            sweeps.insert(name.clone(), sweep);
        }
        self.refuse_incomplete(&study)?;
        study.date = DateTime::from_timestamp_micros(last_us).unwrap_or_default().format("%Y-%m-%d").to_string();
        let names = self.experiments.iter().cloned().collect();
        let versions = json!(origin::of(&self.own.datasets_here()?, &names).await?);
        self.write(VERSIONS, format!("{versions:#}\n").as_bytes())?;
        let mut checked = None;
        if let Some(paper) = &self.options.paper {
            study.title = paper.claims.title().to_owned();
            let (studied, verdicts) = self.paper(paper, &study, &sweeps).await?;
            study.paper = Some(studied);
            checked = verdicts;
        }
        if let Some(program) = &self.options.program {
            let to = self.path(PROGRAM)?;
            fs::copy(program, &to).map_err(|error| failure!(Usage, "cannot read {}: {error}", program.display()))?;
        }
        self.write(STUDY, format!("{:#}\n", json!(study)).as_bytes())?;
        self.write(README, scripts::readme(&study, checked.as_ref()).as_bytes())?;
        self.write(CONTAINER, scripts::container(&study).as_bytes())?;
        self.write(SCRIPT, scripts::reproduce(&study).as_bytes())?;
        let (files, _) = archive::listed(self.folder)?;
        let bytes = files.values().filter_map(|path| Some(path.metadata().ok()?.len())).sum();
        self.write(DESCRIPTION, describe::latex(&study, checked.as_ref(), bytes).as_bytes())?;
        let (files, _) = archive::listed(self.folder)?;
        self.write(METADATA, format!("{:#}\n", metadata::ro_crate(&study, &files)).as_bytes())?;
        Ok((study, checked))
    }

    /// Refuses experiments with tasks that have no row.
    fn refuse_incomplete(&self, study: &Study) -> Result<(), Error> {
        let incomplete = study.experiments.iter().filter(|experiment| !experiment.is_complete());
        let lines: Vec<String> = incomplete
            .map(|experiment| {
                let (tasks, failed) = (count(experiment.tasks, "task"), experiment.failed);
                let missing = experiment.missing();
                format!("{}: of {tasks}, {failed} failed and {missing} have not run", experiment.name)
            })
            .collect();
        if lines.is_empty() {
            return Ok(());
        }
        let lines = lines.join("\n");
        if self.options.incomplete {
            self.place.notes.say(&format!("{lines}\nthe artifact says so, and has neither verdicts nor figures"));
            return Ok(());
        }
        Err(failure!(
            TasksFailed,
            "{lines}\nrun the missing tasks, or allow an artifact without them by --incomplete: it lists failed tasks"
        ))
    }

    /// The rows of an experiment, its manifest, ledgers and inputs. Returns when its last task began (µs since 1970), too.
    async fn experiment(&self, name: &str) -> Result<(StudiedExperiment, powersweep_experiments::Sweep, i64), Error> {
        for table in Table::ALL {
            self.path(&table_path(name, table.name()))?;
        }
        let target = |table: Table| self.folder.join(table_path(name, table.name()));
        let copied = self.place.copies(name, target, ExportOptions::default()).await;
        let copied = copied.map_err(|error| self.with_hint(name, error))?;
        for table in Table::ALL.iter().filter(|table| copied.iter().all(|(copied, _)| copied != *table)) {
            let path = target(*table);
            let _ = path.parent().map(fs::remove_dir);
        }
        if copied.iter().all(|(table, _)| *table != Table::Tasks) {
            let none = failure!(Usage, "{name} has no rows: `powersweep status {name}` says whether its tasks run");
            return Err(self.with_hint(name, none));
        }
        let datasets = self.own.datasets_here()?;
        let parts = datasets.read_published(name, Table::Tasks).await?.parts().await?;
        let origin = part::Origin::merged(parts.iter().map(Part::origin));
        let manifest = self.manifest(name, &origin)?;
        self.write(&manifest_path(name), manifest.text().as_bytes())?;
        let sweep = crate::inputs::sweep(&manifest, &origin::digests(&origin))?;
        let survey = Survey::of(&datasets, &sweep).await?;
        if !survey.failed.is_empty() {
            self.write(&failed_path(name), &survey.failed_csv()?)?;
        }
        let ledgers = crate::inputs::ledgers::parsed(&origin.ledgers);
        if !ledgers.is_empty() {
            self.write(&ledgers_path(name), format!("{:#}\n", Json::from(ledgers)).as_bytes())?;
        }
        let library = (&self.library(name), self.options.logs_licence.is_some());
        let files = manifest.files();
        let inputs = files.iter().map(|file| inputs::of(&manifest, file, &origin, library, self.folder));
        let experiment = StudiedExperiment {
            name: name.to_owned(),
            tables: copied.into_iter().map(|(table, rows)| (table.to_string(), rows)).collect(),
            tasks: sweep.task_count(),
            done: survey.done,
            failed: survey.failed.len() as u64,
            slot_s: survey.slot_ms / 1e3,
            longest_s: survey.longest_ms / 1e3,
            simulated_by: origin.build.split(", ").filter(|build| !build.is_empty()).map(str::to_owned).collect(),
            inputs: inputs.collect::<Result<_, Error>>()?,
        };
        Ok((experiment, sweep, survey.last_us))
    }

    /// Where the files of an experiment are: paths in a manifest of the paper start in its folder, as for `check`.
    fn library(&self, experiment: &str) -> Library {
        let library = self.options.library.clone();
        let of_paper = self.of_paper.iter().find(|(_, manifest)| manifest.name() == experiment);
        match self.options.paper.as_ref().zip(of_paper) {
            Some((paper, (name, _))) => library.with_base(crate::inputs::folder_of(&paper.path_of(name))),
            None => library,
        }
    }

    /// An error about an experiment of the paper also says what makes its rows.
    fn with_hint(&self, experiment: &str, error: Error) -> Error {
        let paper = self.options.paper.as_ref();
        let is_of_paper = self.of_paper.values().any(|manifest| manifest.name() == experiment);
        let Some(paper) = paper.filter(|_| is_of_paper && error.kind == Kind::Usage) else { return error };
        let name = paper.file.as_ref().unwrap_or(&paper.name);
        let hint = format!("`powersweep reproduce {name} -o FOLDER` runs all sweeps of its claims and figures");
        Error { message: format!("{}\n{hint}", error.message), ..error }
    }

    /// The manifest of the rows; their files name none that is very long.
    fn manifest(&self, name: &str, origin: &part::Origin) -> Result<Manifest, Error> {
        let of_paper = self.of_paper.values().find(|manifest| manifest.name() == name);
        let text = match (origin.manifest.as_str(), of_paper, manifests::find(name)) {
            ("", Some(manifest), _) => manifest.text(),
            ("", None, Some(shipped)) => shipped,
            ("", None, None) => {
                return Err(failure!(
                    Usage,
                    "no file of {name} has its manifest: `powersweep flush {name}` publishes rows with it, unless it has more \
                     than 64 KiB"
                ));
            }
            (text, _, _) => text,
        };
        let file = format!("the manifest of {name}");
        Manifest::parse(&file, text).map_err(|errors| crate::inputs::problems(&file, &errors))
    }

    /// The claims, figures and tables of the paper, from the rows of the artifact.
    async fn paper(
        &self,
        paper: &Paper,
        study: &Study,
        sweeps: &Sweeps,
    ) -> Result<(StudiedPaper, Option<Checked>), Error> {
        let claims = format!("{PAPER}/{}.toml", paper.name);
        self.write(&claims, paper.claims_text.as_bytes())?;
        let presets = paper.presets_text.as_ref().map(|_| format!("{PAPER}/{}.presets.toml", paper.name));
        if let (Some(path), Some(text)) = (&presets, &paper.presets_text) {
            self.write(path, text.as_bytes())?;
        }
        for (name, manifest) in &self.of_paper {
            // `check` and `reproduce` find it beside the claims, if they name it by a path below their folder.
            let path = inputs::below(name).map(|path| Path::new(PAPER).join(path).to_string_lossy().into_owned());
            if let Some(path) = path.filter(|path| path.ends_with(".toml") && *path != claims && archive::is_path(path))
            {
                self.write(&path, manifest.text().as_bytes())?;
            }
        }
        let experiments = self.of_paper.iter().map(|(name, manifest)| (name.clone(), manifest.name().to_owned()));
        let mut studied = StudiedPaper {
            name: paper.name.clone(),
            claims,
            presets,
            experiments: experiments.collect(),
            figures: figures(paper),
        };
        if study.experiments.iter().any(|experiment| !experiment.is_complete()) {
            return Ok((studied, None));
        }
        let of_paper: Sweeps = self
            .of_paper
            .iter()
            .filter_map(|(name, manifest)| Some((name.clone(), sweeps.get(manifest.name())?.clone())))
            .collect();
        let checked = self.own.check(&paper.claims, &of_paper, false).await?;
        self.write(VERDICTS, format!("{:#}\n", json!(&checked)).as_bytes())?;
        self.draw(paper, &of_paper, &mut studied).await?;
        Ok((studied, Some(checked)))
    }

    /// Draws every figure, and notes its files.
    #[cfg(feature = "figures")]
    async fn draw(&self, paper: &Paper, sweeps: &Sweeps, studied: &mut StudiedPaper) -> Result<(), Error> {
        super::check::draw(&self.own, paper, sweeps, &self.folder.join(super::FIGURES)).await?;
        for figure in &mut studied.figures {
            let of = |ending| format!("{}/{}/{}.{ending}", super::FIGURES, paper.name, figure.name);
            figure.files =
                ["svg", "pdf", "md"].map(of).into_iter().filter(|path| self.folder.join(path).exists()).collect();
        }
        Ok(())
    }

    #[cfg(not(feature = "figures"))]
    async fn draw(&self, _: &Paper, _: &Sweeps, _: &mut StudiedPaper) -> Result<(), Error> {
        self.place
            .notes
            .say("this program draws no figures: the artifact has none. It was built without --features figures");
        Ok(())
    }

    /// The place of a file, whose folder is made.
    fn path(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(|error| cannot_write(&path, &error))?;
        Ok(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        write_whole(Some(&self.path(name)?), bytes)
    }
}

/// The figures and tables of a paper with the sentences that use them: claims whose place names the figure, and claims whose
/// published numbers it shows.
fn figures(paper: &Paper) -> Vec<StudiedFigure> {
    let of = |preset: &powersweep_claims::Preset| StudiedFigure {
        name: preset.name.clone(),
        shows: preset.source(),
        caption: preset.caption.clone(),
        files: Vec::new(),
        used_by: used_by(&paper.claims, &preset.source(), &preset.published()),
    };
    paper.presets.all().iter().map(of).collect()
}

fn used_by(claims: &Claims, shows: &str, published: &[&str]) -> Vec<super::Sentence> {
    // `Figure 1` is not in `Figure 12`.
    let is_followed_by_digit = |rest: &str| rest.starts_with(|next: char| next.is_ascii_digit());
    let names = |source: &str| source.split(shows).skip(1).any(|rest| !is_followed_by_digit(rest));
    let sentences = claims.sentences().filter(|(id, _, source)| published.contains(id) || names(source));
    sentences
        .map(|(claim, text, source)| super::Sentence {
            claim: claim.to_owned(),
            text: text.to_owned(),
            source: source.to_owned(),
        })
        .collect()
}
