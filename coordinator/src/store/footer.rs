//! Which part a Parquet object says that it is.

use bytes::Bytes;
use parquet::file::metadata::ParquetMetaDataReader;
use uuid::Uuid;

/// Key of the part's id in the footer's key-value metadata.
const PART_ID_KEY: &str = "powersweep.part_id";

/// The part id in a Parquet object's footer, or what is there instead.
pub(crate) fn part_id(bytes: &Bytes) -> Result<Uuid, String> {
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(bytes)
        .map_err(|error| format!("no complete Parquet file: {error}"))?;
    let pairs = metadata.file_metadata().key_value_metadata();
    let text = pairs.into_iter().flatten().find(|pair| pair.key == PART_ID_KEY).and_then(|pair| pair.value.as_deref());
    let text = text.ok_or_else(|| "a Parquet file without a part id".to_owned())?;
    Uuid::parse_str(text).map_err(|_| format!("a Parquet file with part id {text:?}"))
}
