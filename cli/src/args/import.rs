//! The command line of `powersweep import`, whose options a manifest can give, too.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ColorChoice, Parser};
use powersweep_inputs::joblogs::{Arrival, Format, Procs, Settings, TimeUnit};

use super::{LogArgs, OutputArgs};
use powersweep_experiments::Digest;

#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Name, path or URL of the job log, plain, .gz or .zst; - for standard input.
    pub log: String,
    /// Write the log to this file, compressed if its name ends in .gz. Without it, only the ledger is shown. An incomplete
    /// file is never left behind.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write ids, nodes, CPUs, GPUs and energies of the jobs to this CSV file, by job number.
    #[arg(long, value_name = "FILE")]
    pub details: Option<PathBuf>,
    /// SHA-256 of the file as downloaded; required for a URL.
    #[arg(long)]
    pub sha256: Option<Digest>,
    #[command(flatten)]
    pub logs: LogArgs,
    #[command(flatten)]
    pub shown: OutputArgs,
}

// How a job log is read.
#[derive(Debug, Args)]
pub struct ReadingArgs {
    /// Format of the job log.
    #[arg(value_name = "FORMAT", value_parser = words(Format::ALL, Format::word))]
    pub of: Format,
    /// Time zone of times without an offset: an IANA name such as Europe/Berlin, or UTC.
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
    /// Columns. slurm, for a file without a header: the list that `sacct --format` was given; csv: fields and their columns, such
    /// as submit=arrival_time,run=length,cpus=cpus.
    #[arg(long, value_name = "LIST")]
    pub columns: Option<String>,
    /// Unit of numbers that are times, in tables; seconds by default, milliseconds for opendc.
    #[arg(long, value_name = "UNIT", value_parser = words(TimeUnit::ALL, TimeUnit::word))]
    pub time_unit: Option<TimeUnit>,
    /// Time from one sample of a job's power to the next, for lists of samples in a table (s): the log keeps the samples.
    /// Without it a list counts by its mean; the step of pm100 is known.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub power_step_s: Option<u32>,
    /// The resource that counts as processors.
    #[arg(long, default_value = "cpus", value_parser = words(Procs::ALL, Procs::word))]
    pub procs: Procs,
    /// When jobs arrive: at their submit, or when they could start after dependencies and holds.
    #[arg(long, default_value = "submit", value_parser = words(Arrival::ALL, Arrival::word))]
    pub arrival: Arrival,
    /// Processors of the machine, which job logs do not say: for the header of the log.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    pub machine_procs: Option<u32>,
}

impl ReadingArgs {
    /// The settings of the reader.
    pub fn settings(&self) -> Settings {
        Settings {
            format: self.of,
            timezone: self.timezone.clone(),
            columns: self.columns.clone(),
            time_unit: self.time_unit,
            power_step_s: self.power_step_s,
            procs: self.procs,
            arrival: self.arrival,
            machine_procs: self.machine_procs,
        }
    }

    /// The settings in the value of `log_import` in a manifest.
    ///
    /// # Errors
    /// They are not options of `powersweep import`: what is wrong.
    pub fn parse(text: &str) -> Result<Settings, String> {
        #[derive(Debug, Parser)]
        #[command(no_binary_name = true, disable_help_flag = true, color = ColorChoice::Never)]
        struct Line {
            #[command(flatten)]
            reading: ReadingArgs,
        }
        let words = shlex::split(text).ok_or("a quotation mark is not closed")?;
        let line = Line::try_parse_from(words).map_err(|error| {
            // The message without the usage, which names no command here.
            let text = error.to_string();
            let lines = text.lines().take_while(|line| !line.starts_with("Usage:"));
            let text = lines.collect::<Vec<_>>().join("\n");
            text.trim_start_matches("error: ").trim_end().to_owned()
        })?;
        Ok(line.reading.settings())
    }
}

/// A parser of one of a few words.
fn words<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.map(word)).map(move |text| {
        let found = all.into_iter().find(|value| word(*value) == text);
        found.expect("the parser allows only these words")
    })
}
