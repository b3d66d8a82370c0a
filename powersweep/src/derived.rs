//! Manifests that are derived from one, and how their tasks run.

use std::sync::Arc;

use powersweep_dataset::Error;
use powersweep_experiments::{Derivation, Manifest, ManifestErrors};
use powersweep_inputs::library::{Library, ParsedLogs};

use crate::inputs::{self, LOGS_BYTES};
use crate::run::RunOptions;

/// A manifest from which others are derived: where its files are, and how tasks run.
#[derive(Clone)]
pub struct DerivedOptions {
    /// The manifest's name in messages.
    pub file: String,
    /// Where the files of the manifest are searched for.
    pub library: Library,
    /// Keeps the parsed logs.
    pub logs: Arc<ParsedLogs>,
    /// How tasks run in this process, if no coordinator runs them.
    pub run: RunOptions,
    /// Makes an error of the problems of a manifest.
    pub problems: fn(&str, &ManifestErrors) -> Error,
}

impl Default for DerivedOptions {
    fn default() -> DerivedOptions {
        DerivedOptions {
            file: "the manifest".to_owned(),
            library: Library::new(Vec::new(), None),
            logs: Arc::new(ParsedLogs::new(LOGS_BYTES)),
            run: RunOptions::default(),
            problems: inputs::problems,
        }
    }
}

impl DerivedOptions {
    /// Reads the text of a manifest with other values: `with` names them in messages.
    pub(crate) fn parse(&self, text: &str, with: &str) -> Result<Manifest, Error> {
        let name = format!("{} with {with}", self.file);
        Manifest::parse(&name, text).map_err(|errors| (self.problems)(&name, &errors))
    }

    /// Derives a manifest from the original.
    pub(crate) fn derive(
        &self,
        original: &Manifest,
        derivation: &Derivation<'_>,
        with: &str,
    ) -> Result<Manifest, Error> {
        let text = original.derived(&self.file, derivation);
        self.parse(&text.map_err(|errors| (self.problems)(&self.file, &errors))?, with)
    }
}
