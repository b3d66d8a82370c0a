//! The command line of `powersweep timeline`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::TablesArgs;

/// The form of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TimelineFormat {
    /// Trace events in JSON, for ui.perfetto.dev and chrome://tracing.
    Perfetto,
}

#[derive(Debug, Args)]
pub struct TimelineArgs {
    /// Name of the experiment.
    pub experiment: String,
    #[command(flatten)]
    pub from: TablesArgs,
    /// The form of the timeline.
    #[arg(long, value_enum, default_value = "perfetto")]
    pub format: TimelineFormat,
    /// Write to this file instead of standard output, compressed if its name ends in .gz. An incomplete file is never left
    /// behind.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
