//! Forms of files: each makes a table of rows, or says what is wrong.

mod csv;
mod electricity_maps;
mod open_meteo;
mod opendc;
mod pages;
mod sheet;

use powersweep_experiments::signals::{Form, Quantity, Reading, Word};

use crate::error::Problem;
use crate::signals::BYTES_MAX;
use crate::signals::table::Table;
use sheet::Sheet;

/// Begins and ends a Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";

/// Beginnings of files that are no text, with their names.
const OTHERS: [(&[u8], &str); 7] = [
    (b"\x1f\x8b", "compressed by gzip: decompress it, or give it the ending .gz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd: decompress it, or give it the ending .zst"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet: save its table as CSV"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8"),
    (b"<", "a page or a document of XML, not a table"),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself: run `git lfs pull`"),
];

/// Reads the rows of a file.
pub(crate) fn read(bytes: &[u8], reading: &Reading) -> Result<Table, Problem> {
    if bytes.len() > BYTES_MAX {
        return Err(Problem::TooLarge { limit_bytes: BYTES_MAX as u64 });
    }
    let head = bytes.trim_ascii_start();
    if head.is_empty() {
        return Err(Problem::Content("the file is empty".to_owned()));
    }
    if let Some((_, kind)) = OTHERS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(Problem::Content(format!("the file is {kind}")));
    }
    let (is_parquet, is_json) = (bytes.starts_with(PARQUET_MAGIC), matches!(head[0], b'{' | b'['));
    let is_not = |form: Form, what: &str| Problem::Setting {
        setting: "form",
        reason: format!("{:?} is {what}, which this file is not", form.word()),
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
        Some(Form::Csv) => csv::read(Sheet::open(bytes)?, reading),
        Some(Form::ElectricityMaps) => electricity_maps::read(Sheet::open(bytes)?, reading),
        None => {
            let sheet = Sheet::open(bytes)?;
            let exported = reading.quantity == Quantity::Carbon && electricity_maps::is_export(&sheet.names);
            if exported { electricity_maps::read(sheet, reading) } else { csv::read(sheet, reading) }
        }
    }
}
