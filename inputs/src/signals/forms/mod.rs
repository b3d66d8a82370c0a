//! Forms of files: each makes a table of rows, or says what is wrong.

mod csv;
mod electricity_maps;
mod open_meteo;
mod opendc;
mod sheet;

use powersweep_experiments::signals::{Form, Quantity, Reading, Word};

use crate::error::Problem;
use crate::signals::BYTES_MAX;
use crate::signals::table::Table;
use crate::table::{JSON, Sheet, content, parquet};

/// Reads the rows of a file.
pub(crate) fn read(bytes: &[u8], reading: &Reading) -> Result<Table, Problem> {
    if bytes.len() > BYTES_MAX {
        return Err(Problem::TooLarge { limit: format!("{} MiB of data", BYTES_MAX >> 20) });
    }
    let bytes = content(bytes, &[parquet::MAGIC, JSON])?;
    let is_parquet = bytes.starts_with(parquet::MAGIC);
    let is_json = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
    let is_not = |form: Form, what: &str| {
        Problem::setting("form", format!("{:?} is {what}, which this file is not", form.word()))
    };
    match reading.form {
        Some(Form::OpenDc) if !is_parquet => Err(is_not(Form::OpenDc, "Parquet")),
        Some(Form::OpenMeteo) if !is_json => Err(is_not(Form::OpenMeteo, "JSON")),
        Some(form @ (Form::Csv | Form::ElectricityMaps)) if is_parquet || is_json => {
            Err(is_not(form, "a table of text"))
        }
        Some(Form::OpenDc) => opendc::read(bytes, reading),
        Some(Form::OpenMeteo) => open_meteo::read(bytes, reading),
        None if is_parquet => opendc::read(bytes, reading),
        None if is_json => open_meteo::read(bytes, reading),
        Some(Form::Csv) => csv::read(Sheet::of_text(bytes)?, reading),
        Some(Form::ElectricityMaps) => electricity_maps::read(Sheet::of_text(bytes)?, reading),
        None => {
            let sheet = Sheet::of_text(bytes)?;
            let exported = reading.quantity == Quantity::Carbon && electricity_maps::is_export(&sheet.names);
            if exported { electricity_maps::read(sheet, reading) } else { csv::read(sheet, reading) }
        }
    }
}
