//! Manifests and logs on the command line.

use std::io::Read;
use std::sync::Arc;

use powersweep::DerivedOptions;
use powersweep::inputs::{self, Files, TEXT_BYTES_MAX};
use powersweep::run::RunOptions;
use powersweep_experiments::{Manifest, ManifestErrors};
use powersweep_inputs::library::{Library, ParsedLogs};

use crate::args::LogArgs;
use crate::exit::{Failure, failure};
use crate::screen;

pub use powersweep::inputs::{default_cache, file, folder_of, format, job_log, log, parsed, sweep, text};

/// The name that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// The manifest in the file of this name, or on standard input; if no such file exists, the shipped manifest of this name.
pub fn manifest(name: &str) -> Result<Manifest, Failure> {
    if name == STANDARD_INPUT {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(TEXT_BYTES_MAX + 1).read_to_string(&mut text);
        read.map_err(|error| failure!(Usage, "cannot read the manifest on standard input: {error}"))?;
        return parse("standard input", &text);
    }
    let (file, text) = inputs::manifest_text(name)?;
    parse(&file, &text)
}

/// The manifest of this text; `file` names it in errors.
pub fn parse(file: &str, text: &str) -> Result<Manifest, Failure> {
    Manifest::parse(file, text).map_err(|errors| problems(file, &errors))
}

/// All problems of a file, each with its place.
pub fn problems(file: &str, errors: &ManifestErrors) -> Failure {
    let count = errors.problems().len();
    let shown = screen::in_colours(&errors.to_string(), || errors.coloured());
    failure!(Usage, "{} in {file}\n{shown}", screen::count(count as u64, "problem"))
}

/// The log library of a manifest: relative paths start in the manifest's folder. `name`: as [`manifest`] takes it.
pub fn library_of(name: &str, args: &LogArgs) -> Library {
    library(args).with_base(folder_of(name))
}

/// How manifests that are derived from one run. `name`: as [`manifest`] takes it.
pub fn derived(name: &str, args: &LogArgs, logs: ParsedLogs, run: RunOptions) -> DerivedOptions {
    let run = RunOptions { search_path: args.traces.clone(), ..run };
    DerivedOptions { file: name.to_owned(), library: library_of(name, args), logs: Arc::new(logs), run, problems }
}

/// The log library of the command line, whose relative paths start in the current folder.
pub fn library(args: &LogArgs) -> Library {
    let folders = args.traces.iter().filter(|p| !p.as_os_str().is_empty()).cloned().collect();
    Library::new(folders, args.cache.clone().or_else(inputs::default_cache)).with_cache_limit(args.cache_size)
}

/// The files of a manifest, all of which are read; `logs` keeps the parsed logs.
pub fn files(manifest: &Manifest, library: &Library, logs: Option<&Arc<ParsedLogs>>) -> Result<Files, Failure> {
    Files::read(manifest, library, logs, &screen::notes())
}
