//! Fields of stored values: integers as LEB128, byte strings with their length, a checksum at the end.

use super::encoding::{DecodeError, FORMAT_VERSION};
use bytes::Bytes;
use roaring::RoaringBitmap;

/// Size of the checksum at a value's end.
const CHECK_BYTES: usize = 4;
/// Longest encoding of a length.
const LEN_BYTES_MAX: usize = 10;

/// Builds a value.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new() -> Writer {
        Writer(vec![FORMAT_VERSION])
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn uint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7F) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn int(&mut self, value: i64) {
        self.uint(((value << 1) ^ (value >> 63)) as u64);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        // Rows are most of what is written, and the last field: no growing by doubling.
        self.0.reserve_exact(bytes.len() + LEN_BYTES_MAX + CHECK_BYTES);
        self.uint(bytes.len() as u64);
        self.raw(bytes);
    }

    pub(super) fn str(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(super) fn bitmap(&mut self, bitmap: &RoaringBitmap) {
        // Runs make a full chunk 20 bytes instead of 8 KiB; the copy is at most one chunk.
        let mut bitmap = bitmap.clone();
        bitmap.optimize();
        self.uint(bitmap.serialized_size() as u64);
        bitmap.serialize_into(&mut self.0).expect("writing to memory cannot fail");
    }

    pub(super) fn finish(mut self, key: &[u8]) -> Vec<u8> {
        let check = checksum(key, &self.0);
        self.0.extend_from_slice(&check.to_le_bytes());
        self.0
    }
}

fn checksum(key: &[u8], versioned_body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(versioned_body);
    hasher.finalize()
}

/// Takes a value apart.
pub(super) struct Reader<'a> {
    all: &'a Bytes,
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn open(key: &[u8], value: &'a Bytes) -> Result<Reader<'a>, DecodeError> {
        let end = value.len().checked_sub(CHECK_BYTES).ok_or(DecodeError::Malformed("value is too short"))?;
        let version = *value[..end].first().ok_or(DecodeError::Malformed("value is too short"))?;
        if version > FORMAT_VERSION {
            return Err(DecodeError::Version(version));
        }
        if checksum(key, &value[..end]).to_le_bytes() != value[end..] {
            return Err(DecodeError::Checksum);
        }
        if version == 0 {
            return Err(DecodeError::Malformed("format version 0"));
        }
        Ok(Reader { all: value, at: 1, end })
    }

    /// The format version that the value was written in.
    pub(super) fn version(&self) -> u8 {
        self.all[0]
    }

    pub(super) fn raw(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let end = self.at.checked_add(len).filter(|&end| end <= self.end);
        let end = end.ok_or(DecodeError::Malformed("value ends early"))?;
        let bytes = &self.all[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(self.raw(1)?[0])
    }

    pub(super) fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Malformed("a flag is neither 0 nor 1")),
        }
    }

    pub(super) fn uint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Malformed("an integer is too long"))
    }

    pub(super) fn u32(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.uint()?).map_err(|_| DecodeError::Malformed("an integer is too large"))
    }

    pub(super) fn int(&mut self) -> Result<i64, DecodeError> {
        let value = self.uint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number of entries; each takes a byte at least, which bounds what a damaged count can cost.
    pub(super) fn count(&mut self) -> Result<usize, DecodeError> {
        let count = self.uint()?;
        if count > (self.end - self.at) as u64 {
            return Err(DecodeError::Malformed("value ends early"));
        }
        Ok(count as usize)
    }

    pub(super) fn string(&mut self) -> Result<String, DecodeError> {
        let len = self.count()?;
        let text = std::str::from_utf8(self.raw(len)?).map_err(|_| DecodeError::Malformed("text is not UTF-8"))?;
        Ok(text.to_owned())
    }

    pub(super) fn shared_bytes(&mut self) -> Result<Bytes, DecodeError> {
        let len = self.count()?;
        let start = self.at;
        self.raw(len)?;
        Ok(self.all.slice(start..start + len))
    }

    pub(super) fn bitmap(&mut self) -> Result<RoaringBitmap, DecodeError> {
        let len = self.count()?;
        RoaringBitmap::deserialize_from(self.raw(len)?).map_err(|_| DecodeError::Malformed("a bitmap is damaged"))
    }

    pub(super) fn end(&self) -> Result<(), DecodeError> {
        if self.at == self.end { Ok(()) } else { Err(DecodeError::Malformed("bytes left over")) }
    }
}
