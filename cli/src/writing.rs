//! Rows for other tools: CSV, JSON lines, Parquet or an Arrow stream, to standard output or to a file that appears whole
//! or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;
use powersweep_results::part;
use serde::Serializer;
use serde_json::Value as Json;

use crate::exit::{Exit, Failure};
use crate::rows;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// RFC 4180 with a header; null is nothing.
    Csv,
    /// One JSON object a line.
    Json,
    /// One Parquet file.
    Parquet,
    /// One Arrow IPC stream.
    Arrow,
}

/// Where rows go.
enum Place {
    Stdout {
        gone: Arc<AtomicBool>,
    },
    /// The file and its name while it grows; removed unless it is finished.
    File {
        path: PathBuf,
        partial: PathBuf,
    },
}

/// Standard output that remembers that nobody reads it any more.
struct Stdout {
    out: io::Stdout,
    gone: Arc<AtomicBool>,
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.note(|out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.note(Write::flush)
    }
}

impl Stdout {
    fn note<T>(&mut self, work: impl FnOnce(&mut io::Stdout) -> io::Result<T>) -> io::Result<T> {
        let result = work(&mut self.out);
        if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.gone.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// Where bytes of any encoding go.
type Out = Box<dyn Write + Send>;

enum Encoder {
    Csv(Box<csv::Writer<Out>>),
    Json(Out),
    Parquet(Box<ArrowWriter<Out>>),
    Arrow(Box<StreamWriter<Out>>),
}

/// Rows on their way out.
pub struct Writing {
    encoder: Option<Encoder>,
    place: Place,
    sync: Option<File>,
}

impl Writing {
    /// Begins with the columns. Without `path` it is standard output.
    pub fn begin(
        path: Option<&Path>,
        encoding: Encoding,
        schema: &SchemaRef,
        experiment: &str,
    ) -> Result<Writing, Failure> {
        let (place, out, sync): (Place, Out, Option<File>) = match path {
            None => {
                let gone = Arc::new(AtomicBool::new(false));
                let out = Stdout { out: io::stdout(), gone: Arc::clone(&gone) };
                (Place::Stdout { gone }, Box::new(BufWriter::new(out)), None)
            }
            Some(path) => {
                let partial = partial_beside(path);
                let failed = |error: io::Error| cannot_write(path, &error);
                let file = File::create(&partial).map_err(failed)?;
                let sync = file.try_clone().map_err(failed)?;
                (Place::File { path: path.to_owned(), partial }, Box::new(BufWriter::new(file)), Some(sync))
            }
        };
        let mut writing = Writing { encoder: None, place, sync };
        let begun = encoder(encoding, schema, experiment, out);
        writing.encoder = Some(writing.checked(begun)?);
        Ok(writing)
    }

    /// Adds rows. False: nobody reads them any more.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<bool, Failure> {
        let Some(encoder) = &mut self.encoder else { return Ok(false) };
        let written = match encoder {
            Encoder::Csv(out) => write_csv(out, batch),
            Encoder::Json(out) => write_json(out, batch),
            Encoder::Parquet(writer) => writer.write(batch).map_err(|error| error.to_string()),
            Encoder::Arrow(writer) => writer.write(batch).map_err(|error| error.to_string()),
        };
        if written.is_err() && self.is_gone() {
            return Ok(false);
        }
        self.checked(written)?;
        Ok(true)
    }

    /// Ends: a file gets its name now.
    pub fn finish(mut self) -> Result<(), Failure> {
        let Some(encoder) = self.encoder.take() else { return Ok(()) };
        let ended = match encoder {
            Encoder::Csv(mut out) => out.flush().map_err(|error| error.to_string()),
            Encoder::Json(mut out) => out.flush().map_err(|error| error.to_string()),
            Encoder::Parquet(writer) => finished(writer.into_inner()),
            Encoder::Arrow(writer) => finished(writer.into_inner()),
        };
        if self.is_gone() {
            return Ok(());
        }
        self.checked(ended)?;
        let Place::File { path, partial } = &self.place else { return Ok(()) };
        let synced = self.sync.as_ref().map_or(Ok(()), File::sync_all);
        synced.and_then(|()| std::fs::rename(partial, path)).map_err(|error| cannot_write(path, &error))
    }

    fn is_gone(&self) -> bool {
        matches!(&self.place, Place::Stdout { gone } if gone.load(Ordering::Relaxed))
    }

    fn checked<T>(&self, result: Result<T, String>) -> Result<T, Failure> {
        result.map_err(|error| match &self.place {
            Place::Stdout { .. } => Failure::new(Exit::Failure, format!("cannot write to standard output: {error}")),
            Place::File { path, .. } => {
                Failure::new(Exit::Storage, format!("cannot write {}: {error}", path.display()))
            }
        })
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Place::File { partial, .. } = &self.place {
            // Finished, it has its name and nothing is left here.
            let _ = std::fs::remove_file(partial);
        }
    }
}

/// The name of a file or folder while it grows; its folder must exist.
pub fn partial_beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!("{name}.partial-{}", std::process::id()))
}

/// A file or folder of the user that cannot be written.
pub fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Storage, format!("cannot write {}: {error}", path.display()))
}

fn finished<E: std::error::Error>(out: Result<Out, E>) -> Result<(), String> {
    out.map_err(|error| error.to_string())?.flush().map_err(|error| error.to_string())
}

fn encoder(encoding: Encoding, schema: &SchemaRef, experiment: &str, out: Out) -> Result<Encoder, String> {
    Ok(match encoding {
        Encoding::Csv => {
            let mut out = csv::Writer::from_writer(out);
            let header = schema.fields().iter().map(|field| field.name());
            out.write_record(header).map_err(|error| error.to_string())?;
            Encoder::Csv(Box::new(out))
        }
        Encoding::Json => Encoder::Json(out),
        Encoding::Parquet => {
            Encoder::Parquet(Box::new(part::export_writer(schema, experiment, out).map_err(|error| error.to_string())?))
        }
        Encoding::Arrow => {
            Encoder::Arrow(Box::new(StreamWriter::try_new(out, schema).map_err(|error| error.to_string())?))
        }
    })
}

fn write_csv(out: &mut csv::Writer<Out>, batch: &RecordBatch) -> Result<(), String> {
    for row in 0..batch.num_rows() {
        let fields = batch.columns().iter().map(|column| csv_field(column, row));
        out.write_record(fields).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// A value as CSV readers know it: null is nothing, infinity is `inf`, a list is JSON.
fn csv_field(column: &dyn Array, row: usize) -> String {
    match rows::cell(column, row) {
        Json::Null => String::new(),
        Json::String(_) if *column.data_type() == DataType::Float64 => "inf".to_owned(),
        Json::String(text) => text,
        other => other.to_string(),
    }
}

fn write_json(out: &mut Out, batch: &RecordBatch) -> Result<(), String> {
    for row in 0..batch.num_rows() {
        let object = serde_json::Serializer::new(&mut *out).collect_map(rows::cells(batch, row));
        object.map_err(|error| error.to_string())?;
        out.write_all(b"\n").map_err(|error| error.to_string())?;
    }
    Ok(())
}
