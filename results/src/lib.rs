//! What came out: column tables, Arrow, Parquet dataset
