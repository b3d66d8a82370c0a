//! SHA-256 digests, which identify logs and check files.

use std::array::TryFromSliceError;
use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest. The digest of a log's decompressed bytes identifies the log, whatever its name, place or
/// compression.
///
/// Shown as 64 lower-case hexadecimal digits; parsed from digits of either case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// The digest of all bytes of a reader.
    pub fn of_reader(mut reader: impl Read) -> io::Result<Digest> {
        let mut digest = DigestWriter::default();
        io::copy(&mut reader, &mut digest)?;
        Ok(digest.finish())
    }

    /// The 32 raw bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The digest of bytes that come piece by piece.
#[derive(Debug, Clone, Default)]
pub struct DigestWriter(Sha256);

impl DigestWriter {
    /// Appends bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl Write for DigestWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }
}

/// Reads the 32 raw bytes of a message.
impl TryFrom<&[u8]> for Digest {
    type Error = TryFromSliceError;

    fn try_from(bytes: &[u8]) -> Result<Digest, TryFromSliceError> {
        bytes.try_into().map(Digest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// A text that is not 64 hexadecimal digits. Final.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 digest is 64 hexadecimal digits, not {0:?}")]
pub struct DigestError(pub String);

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Digest, DigestError> {
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(DigestError(text.chars().take(80).collect()));
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("two hexadecimal digits");
        }
        Ok(Digest(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_and_parses_the_published_digest_of_abc() {
        let digest = Digest::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        assert_eq!(text.to_uppercase().parse(), Ok(digest));
        assert_eq!(Digest::of_reader(&b"abc"[..]).expect("reads"), digest);
        assert_eq!(serde_json::to_string(&digest).ok(), Some(format!("\"{text}\"")));
    }

    #[test]
    fn refuses_other_texts() {
        for text in ["", "ba78", &"g".repeat(64), &"a".repeat(65), "é"] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
