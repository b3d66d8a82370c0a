//! Formats: each turns the rows of a file into entries, or drops them by a rule.

mod csv;
mod lines;
mod opendc;
mod parquet;
mod pbs;
mod published;
mod slurm;
mod table;

use crate::error::Problem;
use crate::joblogs::Ledger;
use crate::joblogs::entry::Entries;
use crate::joblogs::settings::{Format, Settings};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Beginnings of files that are no text, with their names.
const OTHERS: [(&[u8], &str); 9] = [
    (b"\x1f\x8b", "compressed by gzip: decompress it, or give it the ending .gz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd: decompress it, or give it the ending .zst"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet: save its table as text"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8"),
    (parquet::MAGIC, "Parquet, not text"),
    (b"<", "a page or a document of XML, not a job log"),
    (b"{", "JSON, not rows of text"),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself: run `git lfs pull`"),
];

/// Reads the entries of a file.
pub(crate) fn read(bytes: &[u8], settings: &Settings, ledger: &mut Ledger) -> Result<Entries, Problem> {
    if bytes.trim_ascii().is_empty() {
        return Err(Problem::Content("the file is empty".to_owned()));
    }
    let is_expected = |magic: &[u8]| magic == parquet::MAGIC && settings.format.may_be_parquet();
    let other = OTHERS.iter().find(|(magic, _)| bytes.starts_with(magic) && !is_expected(magic));
    if let Some((_, kind)) = other {
        return Err(Problem::Content(format!("the file is {kind}")));
    }
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    match settings.format {
        Format::Slurm => slurm::read(bytes, settings, ledger),
        Format::Pbs => pbs::read(bytes, settings, ledger),
        Format::Csv => csv::read(bytes, settings, ledger),
        Format::OpenDc => opendc::read(bytes, settings, ledger),
        Format::Helios | Format::Alibaba | Format::Pm100 | Format::FData => published::read(bytes, settings, ledger),
    }
}
