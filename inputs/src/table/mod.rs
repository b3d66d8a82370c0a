//! What readers of job logs and signals share: tables of text and of Parquet, and the times in their cells.

pub(crate) mod clock;
pub(crate) mod stamp;
