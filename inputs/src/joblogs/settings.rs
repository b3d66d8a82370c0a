//! Settings of a reading.

use std::fmt::Write as _;

use crate::joblogs::error::Problem;

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
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 8] = [
        Format::Slurm,
        Format::Pbs,
        Format::Csv,
        Format::Helios,
        Format::Alibaba,
        Format::OpenDc,
        Format::Pm100,
        Format::FData,
    ];

    /// Whether its files may be Parquet.
    pub(crate) fn may_be_parquet(self) -> bool {
        matches!(self, Format::Csv | Format::OpenDc | Format::Pm100 | Format::FData)
    }

    /// Its name on the command line and in manifests.
    pub fn word(self) -> &'static str {
        match self {
            Format::Slurm => "slurm",
            Format::Pbs => "pbs",
            Format::Csv => "csv",
            Format::Helios => "helios",
            Format::Alibaba => "alibaba",
            Format::OpenDc => "opendc",
            Format::Pm100 => "pm100",
            Format::FData => "fdata",
        }
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

impl Procs {
    /// All choices.
    pub const ALL: [Procs; 3] = [Procs::Cpus, Procs::Nodes, Procs::Gpus];

    /// Its name on the command line and in manifests.
    pub fn word(self) -> &'static str {
        match self {
            Procs::Cpus => "cpus",
            Procs::Nodes => "nodes",
            Procs::Gpus => "gpus",
        }
    }
}

/// The instant at which a job arrives in the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arrival {
    /// When it was submitted.
    #[default]
    Submit,
    /// When it could start for the first time: after its dependencies, its hold or its begin time.
    Eligible,
}

impl Arrival {
    /// All choices.
    pub const ALL: [Arrival; 2] = [Arrival::Submit, Arrival::Eligible];

    /// Its name on the command line and in manifests.
    pub fn word(self) -> &'static str {
        match self {
            Arrival::Submit => "submit",
            Arrival::Eligible => "eligible",
        }
    }
}

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

impl TimeUnit {
    /// All units.
    pub const ALL: [TimeUnit; 4] = [TimeUnit::Milliseconds, TimeUnit::Seconds, TimeUnit::Minutes, TimeUnit::Hours];

    /// Its name on the command line and in manifests.
    pub fn word(self) -> &'static str {
        match self {
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Seconds => "s",
            TimeUnit::Minutes => "min",
            TimeUnit::Hours => "h",
        }
    }

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

/// How a job log is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its format.
    pub format: Format,
    /// The time zone of times without an offset: an IANA name. Required where a file has such times.
    pub timezone: Option<String>,
    /// The columns. Slurm, for a file without a header: the list that `sacct --format` was given. CSV: the fields and their
    /// columns, such as `submit=arrival_time,run=length,cpus=cpus`.
    pub columns: Option<String>,
    /// The unit of numbers that are times, in tables; seconds by default, milliseconds for OpenDC.
    pub time_unit: Option<TimeUnit>,
    /// Time from one sample of a job's power to the next (s), where a table has lists of samples. Without it, lists count
    /// by their means, except those of PM100, whose step is known.
    pub power_step_s: Option<u32>,
    /// The resource that counts as processors.
    pub procs: Procs,
    /// The instant at which jobs arrive.
    pub arrival: Arrival,
    /// Processors of the machine, for the header; job logs do not say it.
    pub machine_procs: Option<u32>,
}

impl Settings {
    /// The default settings of a format.
    pub fn new(format: Format) -> Settings {
        Settings {
            format,
            timezone: None,
            columns: None,
            time_unit: None,
            power_step_s: None,
            procs: Procs::default(),
            arrival: Arrival::default(),
            machine_procs: None,
        }
    }

    /// Refuses the setting `columns`.
    pub(crate) fn refuse_columns(&self, reason: &str) -> Result<(), Problem> {
        match self.columns {
            None => Ok(()),
            Some(_) => Err(Problem::Setting { setting: "columns", reason: format!("{reason}; leave the setting out") }),
        }
    }

    /// Refuses the setting `time_unit`.
    pub(crate) fn refuse_time_unit(&self) -> Result<(), Problem> {
        match self.time_unit {
            None => Ok(()),
            Some(_) => {
                let reason = format!("times of {} are dates or seconds; leave the setting out", self.format.word());
                Err(Problem::Setting { setting: "time_unit", reason })
            }
        }
    }

    /// The settings in one line.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "format = {}, procs = {}, arrival = {}",
            self.format.word(),
            self.procs.word(),
            self.arrival.word()
        );
        for (key, value) in [("timezone", &self.timezone), ("columns", &self.columns)] {
            if let Some(value) = value {
                let _ = write!(text, ", {key} = {value}");
            }
        }
        if let Some(unit) = self.time_unit {
            let _ = write!(text, ", time_unit = {}", unit.word());
        }
        if let Some(step_s) = self.power_step_s {
            let _ = write!(text, ", power_step_s = {step_s}");
        }
        if let Some(procs) = self.machine_procs {
            let _ = write!(text, ", machine_procs = {procs}");
        }
        text
    }
}
