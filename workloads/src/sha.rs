//! SHA-256 digests.
use std::io::{self, Read};

use sha2::Digest;

/// A SHA-256.
pub type Sha256 = [u8; 32];

/// The SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> Sha256 {
    sha2::Sha256::digest(bytes).into()
}

/// A digest as 64 lower-case hex digits.
pub fn hex(digest: &Sha256) -> String {
    digest.iter().map(|b| format!("{b:02x}")).collect()
}

/// Reads 64 hex digits of either case; `None` for anything else.
pub fn parse_hex(text: &str) -> Option<Sha256> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(digest)
}

/// Hashes what is read through it.
pub(crate) struct Hashing<R> {
    inner: R,
    hasher: sha2::Sha256,
}

impl<R: Read> Hashing<R> {
    pub(crate) fn new(inner: R) -> Self {
        Hashing { inner, hasher: sha2::Sha256::new() }
    }

    /// Reads to the end and returns the digest of everything read.
    pub(crate) fn finish(mut self) -> io::Result<Sha256> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(self.hasher.finalize().into())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..n]);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_and_read_as_hex() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hex(&sha256(b"")), empty);
        assert_eq!(parse_hex(empty), Some(sha256(b"")));
        assert_eq!(parse_hex(&empty.to_uppercase()), Some(sha256(b"")));
        assert_eq!(parse_hex(&empty[1..]), None);
        assert_eq!(parse_hex(&empty.replace('e', "g")), None);
        assert_eq!(parse_hex(&empty.replace("e3", "é")), None, "64 bytes that are no digits");
    }

    #[test]
    fn hashing_covers_what_the_reader_did_not_want() {
        let mut reader = Hashing::new(&b"head and tail"[..]);
        let mut head = [0; 4];
        reader.read_exact(&mut head).expect("4 bytes");
        assert_eq!(reader.finish().expect("reads"), sha256(b"head and tail"));
    }
}
