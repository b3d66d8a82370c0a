//! Formats: each turns the rows of a file into entries, or drops them by a rule.

mod csv;
mod lines;
mod opendc;
mod pbs;
mod published;
mod slurm;
mod table;

use powersweep_engine::workload::kinds::PARQUET;

use crate::error::Problem;
use crate::joblogs::Ledger;
use crate::joblogs::entry::Entries;
use crate::joblogs::settings::{Format, Settings};
use crate::table::parquet::Limits;
use crate::table::{Sheet, content};

/// Limits of files of Parquet.
const LIMITS: Limits = Limits { rows: 20_000_000, bytes: 4_000 << 20 };

/// Reads the entries of a file.
pub(crate) fn read(bytes: &[u8], settings: &Settings, ledger: &mut Ledger) -> Result<Entries, Problem> {
    let bytes = content(bytes, if settings.format.may_be_parquet() { &[PARQUET] } else { &[] })?;
    if matches!(settings.format, Format::Slurm | Format::Pbs | Format::OpenDc) {
        settings.refuse_delimiter()?;
    }
    match settings.format {
        Format::Slurm => slurm::read(bytes, settings, ledger),
        Format::Pbs => pbs::read(bytes, settings, ledger),
        Format::Csv => csv::read(bytes, settings, ledger),
        Format::OpenDc => opendc::read(bytes, settings, ledger),
        Format::Helios | Format::Alibaba | Format::Pm100 | Format::FData | Format::Xdmod => {
            published::read(bytes, settings, ledger)
        }
    }
}

/// Opens a table of text or Parquet.
fn open<'a>(bytes: &'a [u8], settings: &Settings) -> Result<Sheet<'a>, Problem> {
    match bytes.starts_with(PARQUET) {
        true => settings.refuse_delimiter().and_then(|()| Sheet::of_parquet(bytes, LIMITS)),
        false => Sheet::of_text(bytes, settings.delimiter),
    }
}
