//! Rows for other tools: CSV, JSON lines, Parquet or an Arrow stream, to standard output or to a file that appears whole
//! or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef, TimestampMicrosecondType};
use arrow::ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;
use powersweep_results::part;

use crate::exit::{Exit, Failure, OrExit};
use crate::reading::partial_beside;

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
    Csv(Out),
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
            Encoder::Csv(out) => lines(out, batch, csv_row),
            Encoder::Json(out) => lines(out, batch, json_row),
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
            Encoder::Csv(mut out) | Encoder::Json(mut out) => out.flush().map_err(|error| error.to_string()),
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

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Storage, format!("cannot write {}: {error}", path.display()))
}

fn finished<E: std::error::Error>(out: Result<Out, E>) -> Result<(), String> {
    out.map_err(|error| error.to_string())?.flush().map_err(|error| error.to_string())
}

fn encoder(encoding: Encoding, schema: &SchemaRef, experiment: &str, mut out: Out) -> Result<Encoder, String> {
    Ok(match encoding {
        Encoding::Csv => {
            out.write_all(header(schema).as_bytes()).map_err(|error| error.to_string())?;
            Encoder::Csv(out)
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

/// All rows of a batch as CSV with its header.
pub fn csv(batch: &RecordBatch) -> Result<String, Failure> {
    let mut text = header(&batch.schema()).into_bytes();
    lines(&mut text, batch, csv_row).map_err(|error| Failure::new(Exit::Failure, error))?;
    String::from_utf8(text).or_exit(Exit::Failure)
}

fn header(schema: &SchemaRef) -> String {
    let mut line = schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

fn lines(out: &mut dyn Write, batch: &RecordBatch, row: fn(&mut String, &RecordBatch, usize)) -> Result<(), String> {
    let mut line = String::new();
    for at in 0..batch.num_rows() {
        line.clear();
        row(&mut line, batch, at);
        line.push('\n');
        out.write_all(line.as_bytes()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn csv_row(line: &mut String, batch: &RecordBatch, row: usize) {
    for (position, column) in batch.columns().iter().enumerate() {
        if position > 0 {
            line.push(',');
        }
        if column.is_null(row) {
            continue;
        }
        let from = line.len();
        match column.data_type() {
            DataType::Utf8 => line.push_str(column.as_string::<i32>().value(row)),
            DataType::List(_) => push_json(line, column, row),
            _ => push_plain(line, column, row),
        }
        if line[from..].contains([',', '"', '\n', '\r']) {
            let quoted = format!("\"{}\"", line[from..].replace('"', "\"\""));
            line.replace_range(from.., &quoted);
        }
    }
}

fn json_row(line: &mut String, batch: &RecordBatch, row: usize) {
    let schema = batch.schema();
    for (position, (field, column)) in schema.fields().iter().zip(batch.columns()).enumerate() {
        line.push(if position == 0 { '{' } else { ',' });
        push_text(line, field.name());
        line.push(':');
        push_json(line, column, row);
    }
    line.push('}');
}

/// A value that needs no quotes in CSV. Reals have all their digits; infinity is `inf`.
fn push_plain(line: &mut String, column: &dyn Array, row: usize) {
    use std::fmt::Write as _;
    let _ = match column.data_type() {
        DataType::Boolean => write!(line, "{}", column.as_boolean().value(row)),
        DataType::Int64 => write!(line, "{}", column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => write!(line, "{:?}", column.as_primitive::<Float64Type>().value(row)),
        DataType::Timestamp(..) => {
            write!(line, "{}", instant(column.as_primitive::<TimestampMicrosecondType>().value(row)))
        }
        other => write!(line, "({other})"),
    };
}

/// JSON has no infinite number: "unlimited", as everywhere on the command line.
fn push_json(line: &mut String, column: &dyn Array, row: usize) {
    if column.is_null(row) {
        return line.push_str("null");
    }
    match column.data_type() {
        DataType::Utf8 => push_text(line, column.as_string::<i32>().value(row)),
        DataType::Float64 => match column.as_primitive::<Float64Type>().value(row) {
            f64::INFINITY => line.push_str("\"unlimited\""),
            value if value.is_finite() => push_plain(line, column, row),
            _ => line.push_str("null"),
        },
        DataType::Timestamp(..) => {
            line.push('"');
            push_plain(line, column, row);
            line.push('"');
        }
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            line.push('[');
            for at in 0..items.len() {
                if at > 0 {
                    line.push(',');
                }
                push_json(line, &items, at);
            }
            line.push(']');
        }
        _ => push_plain(line, column, row),
    }
}

fn push_text(line: &mut String, text: &str) {
    line.push_str(&serde_json::Value::from(text).to_string());
}

/// RFC 3339 in UTC of microseconds since 1970, by Hinnant's `civil_from_days`.
fn instant(us: i64) -> String {
    let (seconds, micros) = (us.div_euclid(1_000_000), us.rem_euclid(1_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_read_well() {
        for (us, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_700_000_000_000_001, "2023-11-14T22:13:20.000001Z"),
        ] {
            assert_eq!(instant(us), text);
        }
    }
}
