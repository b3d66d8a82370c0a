//! Settings of a reading.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ColorChoice, Parser};
use powersweep_experiments::signals::Word;
use powersweep_experiments::words;

use crate::error::Problem;

/// The format of a job log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Output of Slurm's `sacct --parsable2`.
    Slurm,
    /// Accounting logs of PBS Pro, OpenPBS and Torque.
    Pbs,
    /// A table with columns of the user's naming: CSV or Parquet.
    Csv,
    /// `cluster_log.csv` of Helios.
    Helios,
    /// Tables of jobs of Alibaba's GPU clusters.
    Alibaba,
    /// Tasks of OpenDC (Parquet).
    OpenDc,
    /// The table of jobs with measured power of PM100 (Marconi100).
    Pm100,
    /// A month of jobs with measured power of F-DATA (Fugaku).
    FData,
    /// The table `shredded_job` of XDMoD.
    Xdmod,
}

words!(Format: Slurm = "slurm", Pbs = "pbs", Csv = "csv", Helios = "helios", Alibaba = "alibaba", OpenDc = "opendc",
    Pm100 = "pm100", FData = "fdata", Xdmod = "xdmod");

impl Format {
    /// Whether its files may be Parquet.
    pub(crate) fn may_be_parquet(self) -> bool {
        matches!(self, Format::Csv | Format::OpenDc | Format::Pm100 | Format::FData)
    }
}

/// The resource that counts as processors of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Procs {
    /// CPUs, as the system counts them: cores, or hardware threads where the site schedules threads.
    #[default]
    Cpus,
    /// Nodes.
    Nodes,
    /// GPUs. Jobs without a GPU are dropped.
    Gpus,
}

words!(Procs: Cpus = "cpus", Nodes = "nodes", Gpus = "gpus");

/// The instant at which a job arrives in the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arrival {
    /// When it was submitted.
    #[default]
    Submit,
    /// When it could start for the first time: after its dependencies, its hold or its begin time.
    Eligible,
}

words!(Arrival: Submit = "submit", Eligible = "eligible");

/// The unit of numbers that are times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
}

words!(TimeUnit: Milliseconds = "ms", Seconds = "s", Minutes = "min", Hours = "h");

impl TimeUnit {
    /// Microseconds of a number of units; `None` where they are too many for any time.
    pub(crate) fn us(self, number: f64) -> Option<i64> {
        let factor = match self {
            TimeUnit::Milliseconds => 1e3,
            TimeUnit::Seconds => 1e6,
            TimeUnit::Minutes => 60e6,
            TimeUnit::Hours => 3600e6,
        };
        let us = (number * factor).round();
        (us.abs() < 9e18).then_some(us as i64)
    }
}

/// How a job log is read. The fields are options of the command `import`, and of `log_import` in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Settings {
    /// Format of the job log.
    #[arg(id = "of", value_name = "FORMAT", value_parser = words::<Format>())]
    pub format: Format,
    /// Time zone of times without an offset: an IANA name such as Europe/Berlin, or UTC.
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
    /// Columns. slurm, for a file without a header: the list that `sacct --format` was given; csv: fields and their columns, such
    /// as submit=arrival_time,run=length,cpus=cpus.
    #[arg(long, value_name = "LIST")]
    pub columns: Option<String>,
    /// Separator of the columns of a table, one character, where it is no comma, semicolon or tab.
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    pub delimiter: Option<u8>,
    /// Unit of numbers that are times, in tables; seconds by default, milliseconds for opendc.
    #[arg(long, value_name = "UNIT", value_parser = words::<TimeUnit>())]
    pub time_unit: Option<TimeUnit>,
    /// Time from one sample of a job's power to the next, for lists of samples in a table (s): the log keeps the samples.
    /// Without it a list counts by its mean; the step of pm100 is known.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub power_step_s: Option<u32>,
    /// The resource that counts as processors.
    #[arg(long, default_value = "cpus", value_parser = words::<Procs>())]
    pub procs: Procs,
    /// When jobs arrive: at their submit, or when they could start after dependencies and holds.
    #[arg(long, default_value = "submit", value_parser = words::<Arrival>())]
    pub arrival: Arrival,
    /// Processors of the machine, which job logs do not say: for the header of the log.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    pub machine_procs: Option<u32>,
}

/// One character that can separate columns.
fn delimiter(text: &str) -> Result<u8, String> {
    let separates = |byte: &u8| (byte.is_ascii_punctuation() && !b"\"'".contains(byte)) || b"\t ".contains(byte);
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if separates(byte) => Ok(*byte),
        _ => Err("expected one character such as | or \\t".to_owned()),
    }
}

/// A parser of one of a few words.
fn words<T: Word + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let words = T::WORDS.iter().map(|(_, word)| *word);
    PossibleValuesParser::new(words).map(|text| T::of_word(&text).expect("the parser allows only these words"))
}

/// Refuses a setting that the format does not know.
fn refuse(setting: &'static str, is_set: bool, reason: &str) -> Result<(), Problem> {
    if is_set { Err(Problem::setting(setting, format!("{reason}; leave the setting out"))) } else { Ok(()) }
}

impl Settings {
    /// The default settings of a format.
    #[cfg(test)]
    pub(crate) fn new(format: Format) -> Settings {
        Settings::parse(format.word()).expect("a format is an option")
    }

    /// The settings in the value of `log_import` in a manifest.
    ///
    /// # Errors
    /// They are not options of the command `import`: what is wrong.
    pub fn parse(text: &str) -> Result<Settings, String> {
        #[derive(Debug, Parser)]
        #[command(no_binary_name = true, disable_help_flag = true, color = ColorChoice::Never)]
        struct Line {
            #[command(flatten)]
            settings: Settings,
        }
        let words = shlex::split(text).ok_or("a quotation mark is not closed")?;
        let line = Line::try_parse_from(words).map_err(|error| {
            // The message without the usage, which names no command here.
            let text = error.to_string();
            let lines = text.lines().take_while(|line| !line.starts_with("Usage:"));
            let text = lines.collect::<Vec<_>>().join("\n");
            text.trim_start_matches("error: ").trim_end().to_owned()
        })?;
        Ok(line.settings)
    }

    /// Refuses the setting `columns`.
    pub(crate) fn refuse_columns(&self, reason: &str) -> Result<(), Problem> {
        refuse("columns", self.columns.is_some(), reason)
    }

    /// Refuses the setting `delimiter`.
    pub(crate) fn refuse_delimiter(&self) -> Result<(), Problem> {
        let reason = format!("{} has no table whose separator is asked for", self.format.word());
        refuse("delimiter", self.delimiter.is_some(), &reason)
    }

    /// Refuses the setting `time_unit`.
    pub(crate) fn refuse_time_unit(&self) -> Result<(), Problem> {
        let reason = format!("times of {} are dates or seconds", self.format.word());
        refuse("time_unit", self.time_unit.is_some(), &reason)
    }

    /// The settings in one line.
    pub fn describe(&self) -> String {
        let stated = [
            ("format", Some(self.format.word().to_owned())),
            ("procs", Some(self.procs.word().to_owned())),
            ("arrival", Some(self.arrival.word().to_owned())),
            ("timezone", self.timezone.clone()),
            ("columns", self.columns.clone()),
            ("delimiter", self.delimiter.map(|delimiter| char::from(delimiter).to_string())),
            ("time_unit", self.time_unit.map(|unit| unit.word().to_owned())),
            ("power_step_s", self.power_step_s.map(|step_s| step_s.to_string())),
            ("machine_procs", self.machine_procs.map(|procs| procs.to_string())),
        ];
        let stated = stated.into_iter().filter_map(|(key, value)| Some(format!("{key} = {}", value?)));
        stated.collect::<Vec<_>>().join(", ")
    }
}
