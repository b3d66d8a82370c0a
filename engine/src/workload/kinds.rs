//! Kinds of files that are no text in rows, by their first bytes.
//!
//! Readers of logs, job logs and signals refuse such files by one sentence.

/// Begins a text in UTF-8 that some programs write.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Begins a text in JSON.
pub const JSON: &[u8] = b"{";
/// Begins a Parquet file.
pub const PARQUET: &[u8] = b"PAR1";

/// First bytes of a kind, and the kind with what helps.
const KINDS: [(&[u8], &str); 11] = [
    (
        b"\x1f\x8b",
        "compressed by gzip: decompress it, or give it the ending .gz; if it has that ending, it was compressed twice",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed by zstd: decompress it, or give it the ending .zst; if it has that ending, it was compressed twice",
    ),
    (b"\xfd7zXZ\0", "compressed by xz: decompress it"),
    (b"BZh", "compressed by bzip2: decompress it"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet: unpack it, or save its table as CSV"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8"),
    (PARQUET, "Parquet, not text"),
    (b"<", "a web page or a document of XML, not a table: download the file itself"),
    (JSON, "JSON, not rows of text"),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself: run `git lfs pull`"),
];

/// The mark of an archive of tar, and its place in the file.
const TAR: (usize, &[u8]) = (257, b"ustar");
const TAR_KIND: &str = "an archive of tar, not one file: unpack it";

/// The kind of a file that does not begin as text in rows does; `None` for such text, and for a beginning that is `expected`.
pub fn other_kind(bytes: &[u8], expected: &[&[u8]]) -> Option<&'static str> {
    let (at, mark) = TAR;
    if bytes.get(at..).is_some_and(|rest| rest.starts_with(mark)) {
        return Some(TAR_KIND);
    }
    // A page may begin with blank lines.
    let begin = bytes.trim_ascii_start();
    let found = KINDS.iter().find(|(magic, _)| begin.starts_with(magic) && !expected.contains(magic));
    found.map(|(_, kind)| *kind)
}
