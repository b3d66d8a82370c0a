//! The stored bytes of each format version, kept in a file: later programs must read them.

use crate::store_samples::{one_of_each, one_of_each_in_version_1, one_of_each_in_version_2};
use bytes::Bytes;
use powersweep_coordinator::records::Record;
use powersweep_coordinator::store::{DecodeError, Stored, decode, encode_record};
use std::fmt::Write;

const VERSION_1: &str = include_str!("../golden/records-v1.txt");
const VERSION_2: &str = include_str!("../golden/records-v2.txt");
const VERSION_3: &str = include_str!("../golden/records-v3.txt");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

fn pairs() -> Vec<(Vec<u8>, Bytes)> {
    let pairs = one_of_each().into_iter().flat_map(|record| encode_record(&record).expect("encodes"));
    pairs.map(|(key, value)| (key, Bytes::from(value))).collect()
}

#[test]
fn this_program_writes_version_3() {
    let mut now = String::new();
    for (key, value) in pairs() {
        writeln!(now, "{} {}", hex(&key), hex(&value)).expect("a string grows");
    }
    // Never edit the golden file to please this test: raise FORMAT_VERSION and add a file.
    assert_eq!(now, VERSION_3, "the stored format has changed");
}

#[test]
fn every_version_is_read() {
    is_read(VERSION_1, one_of_each_in_version_1());
    is_read(VERSION_2, one_of_each_in_version_2());
    is_read(VERSION_3, one_of_each());
}

fn is_read(golden: &str, records: Vec<Record>) {
    let mut records = records.into_iter();
    for line in golden.lines() {
        let (key, value) = line.split_once(' ').expect("key and value");
        match decode(&unhex(key), &Bytes::from(unhex(value))).expect("decodes") {
            Stored::Record(record) => assert_eq!(record, records.next().expect("as many records")),
            Stored::Header(header) => {
                let rows = records.clone().find_map(|record| match record {
                    Record::Rows(rows) => Some(rows),
                    _ => None,
                });
                assert_eq!(header, rows.expect("a record of rows").header());
            }
        }
    }
    assert_eq!(records.next(), None);
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
    bytes[0] = 4;
    let error = decode(&key, &bytes.into()).expect_err("later");
    assert_eq!(error, DecodeError::Version(4));
    assert_eq!(error.to_string(), "format version 4 is later than this program's 3");
}

#[test]
fn a_full_chunk_is_small() {
    let full = one_of_each().into_iter().find(|record| matches!(record, Record::DoneChunk(chunk) if chunk.chunk == 3));
    let pairs = encode_record(&full.expect("a full chunk")).expect("encodes");
    assert!(pairs[0].1.len() < 40, "{} bytes", pairs[0].1.len());
}
