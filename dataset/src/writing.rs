//! Rows for other tools as CSV, JSON lines, Parquet or an Arrow stream, to standard output or to a file. A file gets
//! its name when it is complete.

use std::error::Error as StdError;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use powersweep_experiments::plain::plain;
use powersweep_results::part;
use serde::Serializer;
use serde_json::Value as Json;

use crate::cell::{json_of, row_json};
use crate::partial::Partial;
use crate::{Error, failure};

/// Links that an output follows.
const LINKS_MAX: usize = 40;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// RFC 4180 with a header; null is an empty field.
    Csv,
    /// One JSON object for each line.
    Json,
    /// One Parquet file.
    Parquet,
    /// One Arrow IPC stream.
    Arrow,
}

/// Standard output that records that its reader has closed the pipe. On a terminal, characters that could steer it are
/// shown as escapes; elsewhere every byte stays unchanged.
struct Stdout {
    out: io::Stdout,
    closed: Arc<AtomicBool>,
    /// On a terminal: the begin of a character whose other bytes follow.
    begun: Option<Vec<u8>>,
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(begun) = &mut self.begun else { return self.note(|out| out.write(bytes)) };
        begun.extend_from_slice(bytes);
        let whole = whole_characters(begun);
        let text: Vec<u8> = begun.drain(..whole).collect();
        self.note(|out| out.write_all(plain(&String::from_utf8_lossy(&text)).as_bytes()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.note(Write::flush)
    }
}

impl Stdout {
    fn note<T>(&mut self, work: impl FnOnce(&mut io::Stdout) -> io::Result<T>) -> io::Result<T> {
        let result = work(&mut self.out);
        if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.closed.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// The length of the text without a character at its end whose last bytes are missing.
fn whole_characters(text: &[u8]) -> usize {
    let last = text.utf8_chunks().last();
    let rest = last.map_or(&[][..], |chunk| chunk.invalid());
    let is_begun = rest.len() < 4 && std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
    if is_begun { text.len() - rest.len() } else { text.len() }
}

/// Standard output or a file.
type Out = Box<dyn Write + Send>;

/// A regular file while it grows.
struct Unfinished {
    partial: Partial,
    file: File,
    /// The name that it gets when it is complete.
    path: PathBuf,
}

/// The place of an output.
struct Target {
    /// The name that the user gave. Without one, the output goes to standard output.
    path: Option<PathBuf>,
    /// Without one, the output goes to standard output, a device or a pipe.
    unfinished: Option<Unfinished>,
    closed: Arc<AtomicBool>,
}

impl Target {
    /// Opens a file, or standard output, which `-` names, too. A device or a pipe is written to directly. A link is followed.
    fn open(path: Option<&Path>) -> Result<(Target, Out), Error> {
        let closed = Arc::new(AtomicBool::new(false));
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            let begun = io::stdout().is_terminal().then(Vec::new);
            let out = Stdout { out: io::stdout(), closed: Arc::clone(&closed), begun };
            return Ok((Target { path: None, unfinished: None, closed }, Box::new(BufWriter::new(out))));
        };
        let (file, unfinished) = opened(path).map_err(|error| cannot_write(path, &error))?;
        Ok((Target { path: Some(path.to_owned()), unfinished, closed }, Box::new(BufWriter::new(file))))
    }

    /// False if the reader of standard output has closed the pipe.
    fn written(&self, result: Encoded<()>) -> Result<bool, Error> {
        match result {
            Ok(()) => Ok(true),
            Err(_) if self.closed.load(Ordering::Relaxed) => Ok(false),
            Err(error) => Err(self.failed(&*error)),
        }
    }

    /// Names the file, whose last bytes were written with this result.
    fn finish(self, ended: Encoded<()>) -> Result<(), Error> {
        if !self.written(ended)? {
            return Ok(());
        }
        let Some(Unfinished { partial, file, path }) = self.unfinished else { return Ok(()) };
        file.sync_all().and_then(|()| partial.publish(&path)).map_err(|error| cannot_write(&path, &error))
    }

    fn failed(&self, error: &dyn StdError) -> Error {
        match &self.path {
            None => failure!(Failure, "cannot write to standard output: {error}"),
            Some(path) => cannot_write(path, error),
        }
    }
}

/// Opens a file for an output. A regular file has a name of its own until it is complete, and the mode of the file that it replaces.
fn opened(path: &Path) -> io::Result<(File, Option<Unfinished>)> {
    let present = match path.metadata() {
        Ok(present) if present.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(present) if !present.is_file() => return Ok((OpenOptions::new().write(true).open(path)?, None)),
        Ok(present) => Some(present),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let path = followed(path);
    let (partial, file) = Partial::file(&path)?;
    if let Some(present) = present {
        file.set_permissions(present.permissions())?;
    }
    Ok((file.try_clone()?, Some(Unfinished { partial, file, path })))
}

/// The name behind links, also behind a link to a file that is missing.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = path.read_link() else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// Whether the name of an output says that it is compressed by gzip. Refuses the ending of another compression.
fn is_gzip(path: Option<&Path>) -> Result<bool, Error> {
    let Some((path, ending)) = path.and_then(|path| Some((path, path.extension()?))) else { return Ok(false) };
    match ending.eq_ignore_ascii_case("zst") {
        true => {
            Err(failure!(Usage, "{}: outputs are not compressed by zstd: name a file that ends in .gz", path.display()))
        }
        false => Ok(ending.eq_ignore_ascii_case("gz")),
    }
}

/// A text for other tools, compressed if the name of its file ends in .gz.
pub struct Output {
    out: Sink,
    target: Target,
}

enum Sink {
    Plain(Out),
    Compressed(Box<GzEncoder<Out>>),
}

impl Output {
    /// Opens a file, or standard output.
    pub fn open(path: Option<&Path>) -> Result<Output, Error> {
        let is_compressed = is_gzip(path)?;
        let (target, out) = Target::open(path)?;
        let out = match is_compressed {
            true => Sink::Compressed(Box::new(GzEncoder::new(out, Compression::default()))),
            false => Sink::Plain(out),
        };
        Ok(Output { out, target })
    }

    /// The place of the bytes, for an encoder.
    pub fn writer(&mut self) -> &mut (dyn Write + Send) {
        match &mut self.out {
            Sink::Plain(out) => out,
            Sink::Compressed(out) => out,
        }
    }

    /// Adds bytes. False: the reader of standard output has closed the pipe.
    pub fn write(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        let written = self.writer().write_all(bytes);
        self.target.written(written.map_err(boxed))
    }

    /// Ends the text. A file gets its name now.
    pub fn finish(self) -> Result<(), Error> {
        let ended = match self.out {
            Sink::Plain(mut out) => out.flush(),
            Sink::Compressed(out) => out.finish().and_then(|mut out| out.flush()),
        };
        self.target.finish(ended.map_err(boxed))
    }
}

/// Writes a whole file, or to standard output.
pub fn write_whole(path: Option<&Path>, bytes: &[u8]) -> Result<(), Error> {
    let mut out = Output::open(path)?;
    out.write(bytes)?;
    out.finish()
}

fn boxed(error: io::Error) -> Box<dyn StdError> {
    error.into()
}

enum Encoder {
    Csv(Box<csv::Writer<Out>>),
    Json(Out),
    Parquet(Box<ArrowWriter<Out>>),
    Arrow(Box<StreamWriter<Out>>),
}

/// A writer of rows.
pub struct Writing {
    encoder: Encoder,
    target: Target,
}

impl Writing {
    /// Begins with the columns. Without `path`, rows go to standard output.
    pub fn begin(
        path: Option<&Path>,
        encoding: Encoding,
        schema: &SchemaRef,
        experiment: &str,
    ) -> Result<Writing, Error> {
        if let Some(path) = path.filter(|path| is_gzip(Some(path)) != Ok(false)) {
            return Err(failure!(
                Usage,
                "{}: rows are not compressed: name a file without .gz and .zst",
                path.display()
            ));
        }
        let (target, out) = Target::open(path)?;
        let encoder = Encoder::new(encoding, schema, experiment, out);
        let encoder = encoder.map_err(|error| target.failed(&*error))?;
        Ok(Writing { encoder, target })
    }

    /// Adds rows. False: the reader of standard output has closed the pipe.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<bool, Error> {
        self.target.written(self.encoder.write(batch))
    }

    /// Writes the end of the format. A file gets its name now.
    pub fn finish(self) -> Result<(), Error> {
        self.target.finish(self.encoder.finish())
    }
}

/// Refuses the name of a folder if it is taken.
pub fn refuse_existing(output: &Path) -> Result<(), Error> {
    match output.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot_write(output, &error)),
        Ok(_) => Err(failure!(Usage, "{} exists already: name a new folder", output.display())),
    }
}

/// Refuses two outputs of one file, of which the second would replace the first.
pub fn refuse_equal(outputs: &[&Option<PathBuf>]) -> Result<(), Error> {
    let mut files = Vec::new();
    for output in outputs.iter().copied().flatten().filter(|output| !output.exists() || output.is_file()) {
        let path = followed(output);
        let folder = path.parent().unwrap_or(Path::new("")).join(".").canonicalize().unwrap_or_default();
        let file = folder.join(path.file_name().unwrap_or_default());
        if files.contains(&file) {
            return Err(failure!(Usage, "{} is the file of two outputs: name another one", output.display()));
        }
        files.push(file);
    }
    Ok(())
}

/// Refuses the name of an output that is also the file of an input, under this or another name.
pub fn refuse_input(output: &Path, inputs: &[&str]) -> Result<(), Error> {
    let identity = |path: &Path| path.metadata().ok().filter(Metadata::is_file).map(|file| (file.dev(), file.ino()));
    let Some(output_file) = identity(output) else { return Ok(()) };
    match inputs.iter().find(|input| identity(input.as_ref()) == Some(output_file)) {
        None => Ok(()),
        Some(input) => {
            Err(failure!(Usage, "{} is the file of the input {input}: name another output", output.display()))
        }
    }
}

/// An error about a file or folder of the user.
pub fn cannot_write(path: &Path, error: &dyn StdError) -> Error {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    match folder {
        Some(folder) => failure!(Storage, "cannot write {}: there is no folder {}", path.display(), folder.display()),
        None => failure!(Storage, "cannot write {}: {error}", path.display()),
    }
}

/// The errors of the encodings have no common type.
type Encoded<T> = Result<T, Box<dyn StdError>>;

impl Encoder {
    fn new(encoding: Encoding, schema: &SchemaRef, experiment: &str, out: Out) -> Encoded<Encoder> {
        Ok(match encoding {
            Encoding::Csv => {
                let mut out = csv::Writer::from_writer(out);
                out.write_record(schema.fields().iter().map(|field| field.name()))?;
                Encoder::Csv(Box::new(out))
            }
            Encoding::Json => Encoder::Json(out),
            Encoding::Parquet => Encoder::Parquet(Box::new(part::export_writer(schema, experiment, out)?)),
            Encoding::Arrow => Encoder::Arrow(Box::new(StreamWriter::try_new(out, schema)?)),
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Encoded<()> {
        let rows = 0..batch.num_rows();
        match self {
            Encoder::Csv(out) => {
                for row in rows {
                    out.write_record(batch.columns().iter().map(|column| csv_field(column, row)))?;
                }
            }
            Encoder::Json(out) => {
                for row in rows {
                    serde_json::Serializer::new(&mut *out).collect_map(row_json(batch, row))?;
                    out.write_all(b"\n")?;
                }
            }
            Encoder::Parquet(writer) => writer.write(batch)?,
            Encoder::Arrow(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    fn finish(self) -> Encoded<()> {
        Ok(match self {
            Encoder::Csv(mut out) => out.flush(),
            Encoder::Json(mut out) => out.flush(),
            Encoder::Parquet(writer) => writer.into_inner()?.flush(),
            Encoder::Arrow(writer) => writer.into_inner()?.flush(),
        }?)
    }
}

/// A value in CSV: null is empty, infinity is `inf`, a list is JSON.
fn csv_field(column: &dyn Array, row: usize) -> String {
    match json_of(column, row) {
        Json::Null => String::new(),
        Json::String(text) if *column.data_type() == DataType::Float64 => text.replace("unlimited", "inf"),
        Json::String(text) => text,
        other => other.to_string(),
    }
}
