//! The stored bytes of each format version, kept in a file: later programs must read them.

use std::fmt::Write;

use bytes::Bytes;
use powersweep_coordinator::records::Record;
use powersweep_coordinator::store::{DecodeError, FORMAT_VERSION, decode, encode};

use crate::store_samples::one_of_each;

fn golden() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/records-v1.txt"))
        .expect("the golden file")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

/// The samples, and the headers that are stored beside rows.
fn records() -> Vec<Record> {
    let stored = one_of_each().into_iter().flat_map(|record| match &record {
        Record::Rows(rows) => vec![Record::Header(rows.header()), record],
        _ => vec![record],
    });
    stored.collect()
}

fn pairs() -> Vec<(Vec<u8>, Bytes)> {
    let pair = |record: &Record| encode(record).map(|(key, value)| (key, Bytes::from(value))).expect("encodes");
    records().iter().map(pair).collect()
}

#[test]
fn the_stored_bytes_stay() {
    let mut now = String::new();
    for (key, value) in pairs() {
        writeln!(now, "{} {}", hex(&key), hex(&value)).expect("a string grows");
    }
    // Never edit the golden file to please this test once it is released: raise FORMAT_VERSION and add a file.
    assert_eq!(now, golden(), "the stored format has changed");
}

#[test]
fn stored_bytes_are_read() {
    let mut records = records().into_iter();
    for line in golden().lines() {
        let (key, value) = line.split_once(' ').expect("key and value");
        let record = decode(&unhex(key), &Bytes::from(unhex(value))).expect("decodes");
        assert_eq!(record, records.next().expect("as many records"));
    }
    assert_eq!(records.next(), None);
}

/// A value with a valid checksum is refused if its record would have other bytes.
#[test]
fn bytes_that_no_record_has_are_refused() {
    let (key, value) = pairs().into_iter().find(|(key, _)| key.starts_with(b"intent/")).expect("an intent");
    let message = &value[1..value.len() - 4];
    let sealed = |message: &[u8]| {
        let mut bytes = [&[FORMAT_VERSION], message].concat();
        let check = crc32fast::hash(&[&key, bytes.as_slice()].concat());
        bytes.extend_from_slice(&check.to_le_bytes());
        decode(&key, &bytes.into())
    };
    assert!(sealed(message).is_ok());
    assert!(sealed(&[]).is_err(), "no record");
    assert!(sealed(&[message, &[0xF8, 0x01, 0x01]].concat()).is_err(), "a field that this program does not know");
    let id = key.strip_prefix(b"intent/").expect("its kind");
    let at = message.windows(id.len()).position(|window| window == id).expect("the id is in it");
    let mut other = message.to_vec();
    other[at] ^= 1;
    assert!(sealed(&other).is_err(), "another id than the key's");
    // The lengths of record, field and bytes, each one less.
    let mut short = message.to_vec();
    short.remove(at);
    short[1] -= 1;
    short[at - 3] -= 1;
    short[at - 1] -= 1;
    assert!(sealed(&short).is_err(), "an id of 15 bytes");
}

#[test]
fn damage_is_found() {
    for (key, value) in pairs() {
        for at in 0..value.len() {
            let mut bytes = value.to_vec();
            bytes[at] ^= 0x10;
            assert!(decode(&key, &bytes.into()).is_err(), "byte {at} of {}", key.escape_ascii());
        }
        for end in 0..value.len() {
            assert!(decode(&key, &value.slice(..end)).is_err(), "{end} bytes of {}", key.escape_ascii());
        }
        let mut longer = value.to_vec();
        longer.push(0);
        assert!(decode(&key, &longer.into()).is_err());
    }
}

#[test]
fn a_value_belongs_to_its_key() {
    let pairs = pairs();
    for (n, (key, _)) in pairs.iter().enumerate() {
        let (_, value) = &pairs[(n + 1) % pairs.len()];
        assert_eq!(decode(key, value), Err(DecodeError::Checksum));
    }
}

#[test]
fn a_later_version_is_named() {
    let (key, value) = pairs().swap_remove(0);
    let mut bytes = value.to_vec();
    bytes[0] = 2;
    let error = decode(&key, &bytes.into()).expect_err("later");
    assert_eq!(error, DecodeError::Version(2));
    assert_eq!(error.to_string(), "format version 2 is not this program's 1");
}

#[test]
fn a_full_chunk_is_small() {
    let full = one_of_each().into_iter().find(|record| matches!(record, Record::DoneChunk(chunk) if chunk.chunk == 3));
    let (_, value) = encode(&full.expect("a full chunk")).expect("encodes");
    assert!(value.len() < 60, "{} bytes", value.len());
}
