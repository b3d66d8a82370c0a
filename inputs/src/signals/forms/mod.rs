//! Forms of files: each makes a table of rows, or says what is wrong.

mod csv;
mod electricity_maps;
mod json;
mod open_meteo;
mod sheet;

use powersweep_engine::workload::kinds::{JSON, PARQUET};
use powersweep_experiments::signals::{Form, Quantity, Reading, Word};

use crate::error::Problem;
use crate::signals::table::Table;
use crate::signals::{BYTES_MAX, ROWS_MAX};
use crate::table::parquet::Limits;
use crate::table::{Sheet, content};

/// Limits of files of Parquet.
const LIMITS: Limits = Limits { rows: ROWS_MAX, bytes: BYTES_MAX as u64 };

/// Reads the rows of a file.
pub(crate) fn read(bytes: &[u8], reading: &Reading) -> Result<Table, Problem> {
    if bytes.len() > BYTES_MAX {
        return Err(Problem::TooLarge { limit: format!("{} MiB of data", BYTES_MAX >> 20) });
    }
    let bytes = content(bytes, &[PARQUET, JSON])?;
    let is_parquet = bytes.starts_with(PARQUET);
    let is_json = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
    let parquet = || Sheet::of_parquet(bytes, LIMITS);
    let is_not = |form: Form, what: &str| {
        Problem::setting("form", format!("{:?} is {what}, which this file is not", form.word()))
    };
    match reading.form {
        Some(Form::OpenDc) if !is_parquet => Err(is_not(Form::OpenDc, "Parquet")),
        Some(form @ (Form::OpenMeteo | Form::Json)) if !is_json => Err(is_not(form, "JSON")),
        Some(form @ (Form::Csv | Form::ElectricityMaps)) if is_parquet || is_json => {
            Err(is_not(form, "a table of text"))
        }
        Some(Form::OpenDc) => csv::read(parquet()?, Form::OpenDc, reading),
        Some(Form::OpenMeteo) => open_meteo::read(bytes, reading),
        Some(Form::Json) => csv::read(json::sheet(bytes)?, Form::Json, reading),
        None if is_parquet => csv::read(parquet()?, Form::OpenDc, reading),
        None if is_json && json::is_list(bytes) => csv::read(json::sheet(bytes)?, Form::Json, reading),
        None if is_json => open_meteo::read(bytes, reading),
        Some(Form::Csv) => csv::read(Sheet::of_text(bytes, None)?, Form::Csv, reading),
        Some(Form::ElectricityMaps) => electricity_maps::read(Sheet::of_text(bytes, None)?, reading),
        None => {
            let sheet = Sheet::of_text(bytes, None)?;
            let exported = reading.quantity == Quantity::Carbon && electricity_maps::is_export(&sheet.names);
            if exported { electricity_maps::read(sheet, reading) } else { csv::read(sheet, Form::Csv, reading) }
        }
    }
}
