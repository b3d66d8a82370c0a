//! The ZIP file of an artifact, which has one form: the files in the order of their names, stored as they are, without times.
//!
//! So two ZIPs of equal files are equal, nothing is ever decompressed, and every byte that is not as it was written is found: what
//! a name, a size and a checksum say determines all other bytes. Fields and their order are those of section 4.3 of PKWARE's
//! APPNOTE 6.3.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use crc32fast::Hasher;
use powersweep_dataset::writing::cannot_write;
use powersweep_dataset::{Error, failure};

use super::archive::{FILES_MAX, Problem, is_path, listed};

/// Signatures of the parts.
const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
/// Versions that a reader needs: 2.0, and 4.5 for sizes and places of 64 bits.
const VERSION: u16 = 20;
const VERSION_64: u16 = 45;
/// Made on Unix, whose modes the files have.
const MADE_BY: u16 = 3 << 8 | VERSION_64;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
/// The first day of 1980, the least date of the format.
const DATE: u16 = 1 << 5 | 1;
/// The header of a field with 64 bits.
const FIELD_64: u16 = 1;
/// Bytes of a file's header without its name.
const HEADER_BYTES: usize = 30;
/// Longest path (bytes).
const PATH_BYTES_MAX: u16 = 4_096;
/// A regular file of Unix.
const REGULAR: u32 = 0o100_000;
/// Sizes and places from which on a field has 64 bits.
const LIMIT: u64 = u32::MAX as u64;

/// A file in the ZIP.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    name: String,
    bytes: u64,
    crc: u32,
    /// Where its header begins.
    at: u64,
}

/// The result of unpacking a ZIP.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    /// The files that are not as they were written.
    pub problems: Vec<Problem>,
    /// Whether all files before the directory were unpacked.
    pub is_whole: bool,
}

/// The form of a ZIP; tests use another limit.
#[derive(Debug, Clone, Copy)]
struct Form {
    limit: u64,
}

/// Bytes that are made field by field.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn u16(&mut self, values: impl IntoIterator<Item = u16>) -> &mut Fields {
        values.into_iter().for_each(|value| self.0.extend(value.to_le_bytes()));
        self
    }

    fn u32(&mut self, values: impl IntoIterator<Item = u32>) -> &mut Fields {
        values.into_iter().for_each(|value| self.0.extend(value.to_le_bytes()));
        self
    }

    fn u64(&mut self, values: impl IntoIterator<Item = u64>) -> &mut Fields {
        values.into_iter().for_each(|value| self.0.extend(value.to_le_bytes()));
        self
    }
}

impl Form {
    /// A number in 32 bits; all of them are set if it is in a field of 64 bits.
    fn short(self, value: u64) -> u32 {
        if value >= self.limit { u32::MAX } else { value as u32 }
    }

    /// The field of the numbers that need 64 bits.
    fn extra(self, values: &[u64]) -> Vec<u8> {
        let long: Vec<u64> = values.iter().copied().filter(|value| *value >= self.limit).collect();
        let mut extra = Fields::default();
        if !long.is_empty() {
            extra.u16([FIELD_64, 8 * long.len() as u16]).u64(long);
        }
        extra.0
    }

    /// The fields that the header before a file and the directory share.
    fn facts(self, out: &mut Fields, entry: &Entry, extra: &[u8]) {
        let version = if extra.is_empty() { VERSION } else { VERSION_64 };
        out.u16([version, FLAGS, 0, 0, DATE]).u32([entry.crc, self.short(entry.bytes), self.short(entry.bytes)]);
        out.u16([entry.name.len() as u16, extra.len() as u16]);
    }

    /// The header before a file.
    fn header(self, entry: &Entry) -> Vec<u8> {
        let extra = self.extra(&[entry.bytes, entry.bytes]);
        let mut out = Fields::default();
        self.facts(out.u32([LOCAL]), entry, &extra);
        [&out.0, entry.name.as_bytes(), &extra].concat()
    }

    /// The directory, which begins at `at`, and the end. Returns the bytes of each file, then those of the end.
    fn directory(self, entries: &[Entry], at: u64) -> Vec<Vec<u8>> {
        let one = |entry: &Entry| {
            let extra = self.extra(&[entry.bytes, entry.bytes, entry.at]);
            let mut out = Fields::default();
            self.facts(out.u32([CENTRAL]).u16([MADE_BY]), entry, &extra);
            out.u16([0, 0, 0]).u32([(REGULAR | mode(&entry.name)) << 16, self.short(entry.at)]);
            [&out.0, entry.name.as_bytes(), &extra].concat()
        };
        let mut parts: Vec<Vec<u8>> = entries.iter().map(one).collect();
        let (bytes, count) = (parts.iter().map(Vec::len).sum::<usize>() as u64, entries.len() as u64);
        let mut end = Fields::default();
        let short_count = u16::try_from(count).unwrap_or(u16::MAX);
        if [bytes, at].iter().any(|value| *value >= self.limit) || short_count == u16::MAX {
            end.u32([END_64]).u64([44]).u16([MADE_BY, VERSION_64]).u32([0, 0]).u64([count, count, bytes, at]);
            end.u32([LOCATOR_64, 0]).u64([at + bytes]).u32([1]);
        }
        end.u32([END]).u16([0, 0, short_count, short_count]).u32([self.short(bytes), self.short(at)]).u16([0]);
        parts.push(end.0);
        parts
    }

    fn pack(self, folder: &Path, out: &mut dyn Write) -> Result<(), Error> {
        let (files, _) = listed(folder)?;
        let (mut entries, mut at) = (Vec::new(), 0);
        for (name, path) in &files {
            let opened =
                || File::open(path).map_err(|error| failure!(Storage, "cannot read {}: {error}", path.display()));
            let (bytes, crc) = copied(&mut opened()?, &mut io::sink(), u64::MAX).map_err(write_failed)?;
            let entry = Entry { name: name.clone(), bytes, crc, at };
            let header = self.header(&entry);
            out.write_all(&header).map_err(write_failed)?;
            let again = copied(&mut opened()?, out, u64::MAX).map_err(write_failed)?;
            if again != (bytes, crc) {
                return Err(failure!(Storage, "{} changed while it was read", path.display()));
            }
            at += header.len() as u64 + bytes;
            entries.push(entry);
        }
        self.directory(&entries, at).iter().try_for_each(|part| out.write_all(part)).map_err(write_failed)
    }

    /// Unpacks the files until a byte is not as it was written. `length`: that of the ZIP.
    fn unpack(self, input: &mut dyn Read, length: u64, folder: &Path) -> Result<Unpacked, Error> {
        let mut unpacked = Unpacked::default();
        let Unpacked { problems, is_whole } = &mut unpacked;
        let (mut entries, mut at) = (Vec::<Entry>::new(), 0);
        loop {
            let first = some(input, 4)?;
            if first != LOCAL.to_le_bytes() {
                problems.extend(self.compare_end(input, first, &entries, at)?);
                *is_whole = true;
                return Ok(unpacked);
            }
            let rest = some(input, HEADER_BYTES as u64 - 4)?;
            let mut header = [first, rest].concat();
            let short = |from: usize| header.get(from..from + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
            let (name_bytes, extra_bytes) = (short(26), short(28));
            let more = some(input, u64::from(name_bytes.min(PATH_BYTES_MAX)) + u64::from(extra_bytes.min(64)))?;
            header.extend(more);
            let Some(entry) = entry_of(&header, usize::from(name_bytes), at) else {
                let after = entries.last().map_or(String::new(), |last| format!(", after {}", last.name));
                let what = format!("what follows byte {at}{after} is no header of a file");
                problems.push(Problem::new("the ZIP", what));
                return Ok(unpacked);
            };
            let expected = self.header(&entry);
            let is_next = entries.last().is_none_or(|last| last.name < entry.name);
            let what = match () {
                () if !is_path(&entry.name) => Some("no artifact has a file of this name".to_owned()),
                () if !is_next => Some("is there twice, or not in the order of names".to_owned()),
                () if header != expected => Some(format!(
                    "its header in the ZIP is not as it was written, from byte {}: a ZIP that another program has packed must be \
                     unpacked; give the folder",
                    at + difference(&header, &expected)
                )),
                () if entry.bytes > length => {
                    Some(format!("is cut: its header states {} bytes, and the whole ZIP has {length}", entry.bytes))
                }
                () if entries.len() == FILES_MAX => Some("is one file too many".to_owned()),
                () => None,
            };
            if let Some(what) = what {
                problems.push(Problem::new(&entry.name, what));
                return Ok(unpacked);
            }
            at += header.len() as u64 + entry.bytes;
            let found = write_file(input, entry.bytes, &folder.join(&entry.name))?;
            if found.0 != entry.bytes {
                problems.push(Problem::new(&entry.name, "is cut: the ZIP ends in it"));
                return Ok(unpacked);
            }
            if found.1 != entry.crc {
                problems.push(Problem::new(&entry.name, "has other bytes than its checksum in the ZIP says"));
            }
            entries.push(entry);
        }
    }

    /// Compares the directory and the end. `first`: bytes that were read already.
    fn compare_end(
        self,
        input: &mut dyn Read,
        first: Vec<u8>,
        entries: &[Entry],
        at: u64,
    ) -> Result<Option<Problem>, Error> {
        let parts = self.directory(entries, at);
        let expected: Vec<u8> = parts.concat();
        let found = [first, some(input, expected.len() as u64 + 1)?].concat();
        if found == expected {
            return Ok(None);
        }
        let wrong = difference(&found, &expected);
        let mut end = 0;
        let lengths = parts.iter().map(|part| part.len() as u64);
        let position = lengths.into_iter().position(|length| {
            end += length;
            wrong < end
        });
        let name = position.and_then(|position| entries.get(position)).map_or("the ZIP", |entry| entry.name.as_str());
        Ok(Some(Problem::new(
            name,
            format!("the directory at the end of the ZIP is not as it was written, from byte {}", at + wrong),
        )))
    }
}

/// The file that a header describes, if it is one.
fn entry_of(header: &[u8], name_bytes: usize, at: u64) -> Option<Entry> {
    let number = |from: usize| Some(u32::from_le_bytes(header.get(from..from + 4)?.try_into().ok()?));
    let name = String::from_utf8(header.get(HEADER_BYTES..HEADER_BYTES + name_bytes)?.to_vec()).ok()?;
    let extra = HEADER_BYTES + name_bytes + 4;
    let bytes = match number(18)? {
        u32::MAX => u64::from_le_bytes(header.get(extra..extra + 8)?.try_into().ok()?),
        short => u64::from(short),
    };
    Some(Entry { name, bytes, crc: number(14)?, at })
}

/// The first place where two texts differ.
fn difference(one: &[u8], other: &[u8]) -> u64 {
    one.iter().zip(other).take_while(|(one, other)| one == other).count() as u64
}

/// The mode of a file: scripts and programs can be started.
fn mode(name: &str) -> u32 {
    if name.ends_with(".sh") || name.starts_with("bin/") { 0o755 } else { 0o644 }
}

fn write_failed(error: io::Error) -> Error {
    failure!(Storage, "cannot write the artifact: {error}")
}

/// At most `count` bytes.
fn some(input: &mut dyn Read, count: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = input.take(count).read_to_end(&mut bytes);
    read.map_err(|error| failure!(Storage, "cannot read the artifact: {error}"))?;
    Ok(bytes)
}

/// Copies at most `most` bytes. Returns their number and checksum.
fn copied(input: &mut dyn Read, out: &mut dyn Write, most: u64) -> io::Result<(u64, u32)> {
    let (mut hasher, mut count, mut buffer) = (Hasher::new(), 0, vec![0; 1 << 16]);
    loop {
        let wanted = (most - count).min(buffer.len() as u64) as usize;
        match input.read(&mut buffer[..wanted]) {
            Ok(0) => return Ok((count, hasher.finalize())),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                out.write_all(&buffer[..read])?;
                count += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn write_file(input: &mut dyn Read, bytes: u64, path: &Path) -> Result<(u64, u32), Error> {
    let mut write = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let mut out = BufWriter::new(File::create_new(path)?);
        let found = copied(input, &mut out, bytes)?;
        out.flush()?;
        Ok(found)
    };
    write().map_err(|error: io::Error| cannot_write(path, &error))
}

/// Writes the ZIP of a folder.
pub(super) fn pack(folder: &Path, out: &mut dyn Write) -> Result<(), Error> {
    Form { limit: LIMIT }.pack(folder, out)
}

/// Unpacks a ZIP into an empty folder. Returns the first byte that is not as [`pack`] has written it, and every file whose bytes
/// are not those of its checksum.
pub(super) fn unpack(zip: &Path, folder: &Path) -> Result<Unpacked, Error> {
    let cannot_read = |error: io::Error| failure!(Usage, "cannot read {}: {error}", zip.display());
    let file = File::open(zip).map_err(cannot_read)?;
    let length = file.metadata().map_err(cannot_read)?.len();
    Form { limit: LIMIT }.unpack(&mut BufReader::new(file), length, folder)
}

#[cfg(test)]
mod tests;
