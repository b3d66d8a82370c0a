//! The command line of `powersweep calibrate`.

use std::path::PathBuf;

use clap::Args;
use powersweep_experiments::signals::{ClockChange, Duplicates, Gaps, Quantity, Reading};

use super::{LogArgs, OutputArgs};
use powersweep_experiments::Digest;

#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Name, path or URL of the log, with the waits of its own scheduler, as `import` writes it.
    pub log: String,
    /// Name, path or URL of the meter: CSV or Parquet with times and powers. A value is the mean power up to the next time.
    #[arg(long, value_name = "FILE")]
    pub meter: String,
    /// Column of the powers; needed where several can be meant.
    #[arg(long, value_name = "NAME")]
    pub meter_column: Option<String>,
    /// Column of the times; needed where several can be meant.
    #[arg(long, value_name = "NAME")]
    pub meter_time_column: Option<String>,
    /// Unit of the powers: W, kW or MW; by default the one in the column's name.
    #[arg(long, value_name = "UNIT")]
    pub meter_unit: Option<String>,
    /// Time zone of times without an offset: an IANA name such as Europe/Berlin, or UTC.
    #[arg(long, value_name = "ZONE")]
    pub meter_timezone: Option<String>,
    /// Take the value before for missing times of the meter, which are refused otherwise.
    #[arg(long)]
    pub hold_gaps: bool,
    /// Processors of the machine; by default MaxProcs in the log's header.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    pub procs: Option<u32>,
    /// Watts of an idle processor, in place of a fitted value.
    #[arg(long, value_name = "W", value_parser = not_negative, allow_negative_numbers = true)]
    pub idle_w: Option<f64>,
    /// Watts of a busy processor of a job without a measured power, in place of a fitted value.
    #[arg(long, value_name = "W", value_parser = not_negative, allow_negative_numbers = true)]
    pub busy_w: Option<f64>,
    /// Power at the meter over the power of the processors, in place of a fitted value.
    #[arg(long, value_name = "FACTOR", value_parser = not_negative, allow_negative_numbers = true)]
    pub loss_factor: Option<f64>,
    /// Write the compared steps to this CSV file.
    #[arg(long, value_name = "FILE")]
    pub steps: Option<PathBuf>,
    /// SHA-256 of the log as downloaded; required for a URL.
    #[arg(long)]
    pub sha256: Option<Digest>,
    /// SHA-256 of the meter's file as downloaded; required for a URL.
    #[arg(long)]
    pub meter_sha256: Option<Digest>,
    #[command(flatten)]
    pub logs: LogArgs,
    #[command(flatten)]
    pub shown: OutputArgs,
}

impl CalibrateArgs {
    /// How the meter is read: as a series of caps, which is one of powers, too.
    pub fn reading(&self) -> Reading {
        Reading {
            quantity: Quantity::Cap,
            form: None,
            time_column: self.meter_time_column.clone(),
            column: self.meter_column.clone(),
            unit: self.meter_unit.clone(),
            interval_time: None,
            zone: None,
            timezone: self.meter_timezone.clone(),
            gaps: if self.hold_gaps { Gaps::Hold } else { Gaps::Error },
            duplicates: Duplicates::Error,
            clock_change: ClockChange::Error,
        }
    }
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| (0.0..=1e12).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 1e12".to_owned())
}
