//! Artifacts: one ZIP file with everything that a reviewer needs to check experiments, without a network and without the source.
//!
//! ```text
//! README.md                     what the files are
//! SHA256SUMS                    the digest of every other file, as `sha256sum --check` reads it
//! study.json                    experiments, inputs, figures: [`Study`]
//! inputs/NAME.toml              the manifest of each experiment; beside it its modules, and the logs and signals whose licence allows it
//! rows/NAME/TABLE/TABLE.parquet every table; `rows` is a data folder, which every command reads
//! failed/NAME.csv               tasks without a row, and why they failed
//! ledgers/NAME.json             what happened to the rows of job logs and signals when they were read
//! versions.json                 versions of the components, and of the programs that simulated
//! paper/                        claims, figures and tables as data, with the manifests that they name
//! claims.json                   the verdicts on the claims
//! figures/                      every figure and table of the paper
//! description.tex               two pages with what forms of reviewers ask
//! Containerfile, reproduce.sh   an image of the program that made the rows; the command that verifies
//! bin/powersweep                the program, on request
//! ro-crate-metadata.json        the same facts as an RO-Crate 1.1
//! ```

mod archive;
mod check;
mod describe;
mod inputs;
mod make;
mod metadata;
mod rows;
mod scripts;
#[cfg(test)]
mod tests;
mod zip;

use std::collections::BTreeMap;
use std::path::PathBuf;

use powersweep_dataset::{Error, failure};
use powersweep_inputs::library::Library;
use serde::{Deserialize, Serialize};

pub use self::archive::Problem;
pub use self::check::{Artifact, CheckedArtifact, CheckedExperiment, DrawnAgain, is_artifact};
pub use self::make::Made;
use crate::papers::Paper;

/// Names of files in an artifact.
const SUMS: &str = "SHA256SUMS";
const STUDY: &str = "study.json";
const VERDICTS: &str = "claims.json";
const VERSIONS: &str = "versions.json";
const DESCRIPTION: &str = "description.tex";
const SCRIPT: &str = "reproduce.sh";
const CONTAINER: &str = "Containerfile";
const METADATA: &str = "ro-crate-metadata.json";
const README: &str = "README.md";
const PROGRAM: &str = "bin/powersweep";
/// Folders in an artifact.
const ROWS: &str = "rows";
const INPUTS: &str = "inputs";
const FIGURES: &str = "figures";
const PAPER: &str = "paper";

/// The version of [`Study`].
const VERSION: u32 = 1;

/// The contents of an artifact, and where they are searched for.
#[derive(Debug, Clone)]
pub struct ArtifactOptions {
    /// The paper whose claims, figures and tables are in it.
    pub paper: Option<Paper>,
    /// Where the files of the manifests are searched for. Paths in a manifest of the paper start in its folder.
    pub library: Library,
    /// The licence that allows to pass the logs and signals on; without one they are named, with their digests.
    pub logs_licence: Option<String>,
    /// The licence of the artifact, best as an identifier of SPDX.
    pub licence: Option<String>,
    /// The authors, each a name, or a name and an address: `Ada Lovelace <https://orcid.org/...>`.
    pub authors: Vec<String>,
    /// The program that is put into it.
    pub program: Option<PathBuf>,
    /// Makes it although tasks have no row.
    pub incomplete: bool,
}

impl Default for ArtifactOptions {
    fn default() -> ArtifactOptions {
        ArtifactOptions {
            paper: None,
            library: Library::new(Vec::new(), None),
            logs_licence: None,
            licence: None,
            authors: Vec::new(),
            program: None,
            incomplete: false,
        }
    }
}

/// The contents of an artifact, for programs: the file `study.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// The version of this format, 1.
    pub version: u32,
    /// Authors, year and title of the paper, or the names of the experiments.
    pub title: String,
    /// The program that made the artifact, with its version and commit.
    pub made_by: String,
    /// The day on which the last task ran, in UTC.
    pub date: String,
    /// The authors.
    pub authors: Vec<String>,
    /// The licence of the artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// The licence by which logs and signals are in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs_licence: Option<String>,
    /// Whether it has the program.
    pub has_program: bool,
    /// The experiments.
    pub experiments: Vec<StudiedExperiment>,
    /// The paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<StudiedPaper>,
}

/// An experiment of an artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudiedExperiment {
    /// Its name.
    pub name: String,
    /// Number of rows of each table.
    pub tables: BTreeMap<String, u64>,
    /// Number of tasks of the manifest.
    pub tasks: u64,
    /// Number of tasks with a row.
    pub done: u64,
    /// Number of tasks without a row that failed: `failed/NAME.csv` lists them.
    pub failed: u64,
    /// Time of all tasks on their slots, together (s).
    pub slot_s: f64,
    /// Time of the longest task (s).
    pub longest_s: f64,
    /// The programs that simulated the tasks.
    pub simulated_by: Vec<String>,
    /// Logs, signals and modules.
    pub inputs: Vec<StudiedInput>,
}

impl StudiedExperiment {
    /// Number of tasks that have neither a row nor a failure.
    pub fn missing(&self) -> u64 {
        self.tasks.saturating_sub(self.done + self.failed)
    }

    /// Whether each task has a row.
    pub fn is_complete(&self) -> bool {
        self.done == self.tasks
    }
}

/// A file that a manifest names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudiedInput {
    /// Its name or address in the manifest.
    pub name: String,
    /// Its kind: `log`, `signal` or `module`.
    pub kind: String,
    /// SHA-256 of the decompressed content, which rows have, too; of a job log, that of the log that was made from it.
    pub content_sha256: String,
    /// The name of the file that was found on the machine where the artifact was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// SHA-256 of this file, which may be compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_sha256: Option<String>,
    /// Where it is in the artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// The paper of an artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudiedPaper {
    /// Its short name.
    pub name: String,
    /// The file of the claims.
    pub claims: String,
    /// The file of figures and tables, where it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presets: Option<String>,
    /// The experiment of each manifest that the claims name.
    pub experiments: BTreeMap<String, String>,
    /// The figures and tables.
    pub figures: Vec<StudiedFigure>,
}

/// A figure or table of a paper, and what uses it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudiedFigure {
    /// The preset.
    pub name: String,
    /// The place in the paper, such as `Figure 3`.
    pub shows: String,
    /// A sentence about it.
    pub caption: String,
    /// Its files; none if it could not be drawn.
    pub files: Vec<String>,
    /// Sentences and numbers of the paper that use it.
    pub used_by: Vec<Sentence>,
}

/// A sentence or number of a paper.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sentence {
    /// The id of the claim.
    pub claim: String,
    /// The sentence.
    pub text: String,
    /// The place in the paper, such as `Section 3.3, Figure 3`.
    pub source: String,
}

impl Study {
    /// Whether figures or tables are in it. None are if the program that made it draws none, or tasks have no row.
    fn has_figures(&self) -> bool {
        self.paper.iter().flat_map(|paper| &paper.figures).any(|figure| !figure.files.is_empty())
    }

    /// Reads the file `study.json` of an artifact, which may be a stranger's. `files`: the paths that it has.
    fn parse(text: &str, has: impl Fn(&str) -> bool) -> Result<Study, Error> {
        let wrong = |what: &str| failure!(Usage, "{STUDY} is not that of an artifact: {what}");
        let study: Study = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        if study.version != VERSION {
            return Err(wrong(&format!("it has version {}, this program reads version {VERSION}", study.version)));
        }
        for experiment in &study.experiments {
            let needed = [manifest_path(&experiment.name), table_path(&experiment.name, "tasks")];
            if let Some(lacking) = needed.iter().find(|path| !has(path)) {
                return Err(wrong(&format!("there is no {lacking}")));
            }
        }
        let paper = study.paper.iter().flat_map(|paper| std::iter::once(&paper.claims).chain(&paper.presets));
        match paper.into_iter().find(|path| !has(path)) {
            Some(lacking) => Err(wrong(&format!("there is no {lacking}"))),
            None => Ok(study),
        }
    }
}

/// Where an experiment's manifest is.
fn manifest_path(experiment: &str) -> String {
    format!("{INPUTS}/{experiment}.toml")
}

/// Where a table is, in a data folder.
fn table_path(experiment: &str, table: &str) -> String {
    format!("{ROWS}/{experiment}/{table}/{table}.parquet")
}

/// Where the tasks without a row are listed that failed.
fn failed_path(experiment: &str) -> String {
    format!("failed/{experiment}.csv")
}

/// Where an experiment's ledgers are.
fn ledgers_path(experiment: &str) -> String {
    format!("ledgers/{experiment}.json")
}
