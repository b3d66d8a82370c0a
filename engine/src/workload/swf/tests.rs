use super::*;

const LINE: &str = "1 0 5 100 4 -1 -1 4 200 -1 1 3 1 -1 1 -1 -1 -1";

fn read(text: &str) -> Result<SwfLog, SwfError> {
    parse(text.as_bytes(), "a.swf")
}

fn only(text: &str) -> Record {
    let log = read(text).expect("reads");
    assert_eq!(log.records.len(), 1);
    log.records[0]
}

fn message(text: &str) -> String {
    read(text).expect_err("must be refused").to_string()
}

#[test]
fn reads_the_fields_that_are_used() {
    assert_eq!(
        only(LINE),
        Record {
            id: 1,
            submit_s: 0.0,
            wait_s: 5.0,
            run_s: 100.0,
            requested_s: 200.0,
            procs_allocated: 4,
            procs_requested: 4,
            user: 3,
            group: 1,
            queue: 1,
            partition: -1,
            memory_requested_kib: -1,
            memory_used_kib: -1,
            status: 1,
            line: 1,
        }
    );
}

#[test]
fn accepts_all_blanks_line_ends_comments_and_blank_lines_of_published_logs() {
    let wanted = Record { line: 4, ..only(LINE) };
    let tabs = LINE.replace(' ', "\t \t");
    for body in [
        format!("; x\n\n \t\n{LINE}"),
        format!("; x\n\n \t\n{LINE}\n"),
        format!("; x\r\n\r\n \t\r\n{LINE}\r\n"),
        format!(";\n;\n  ; y\n   {tabs}  \n\n\n;"),
    ] {
        assert_eq!(only(&body), wanted, "{body:?}");
    }
    let log = read(&format!("{LINE}\n; between: 3\n{LINE}\n")).expect("reads");
    assert_eq!(log.records.iter().map(|r| r.line).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(read("").expect("an empty log is a log").records, []);
}

#[test]
fn accepts_decimals_in_times_and_whole_decimals_in_other_fields() {
    let r = only("1.0 0.5 5.25 100.125 4.0 3.75 1e3 4 2.5e2 -1.0 271 3 1 -1 1 -1 -1 -0.5");
    assert_eq!((r.id, r.submit_s, r.wait_s, r.run_s, r.requested_s), (1, 0.5, 5.25, 100.125, 250.0));
    assert_eq!((r.procs_allocated, r.status), (4, 271));
    assert_eq!(only("1 -0 5 -0.0 4 -1 -1 4 200 -1 -4 3 1 -1 1 -1 -1 -1").run_s.to_bits(), 0.0f64.to_bits());
    assert_eq!(only("9007199254740992 0 5 9 4 -1 -1 4 200 -1 -4 3 1 -1 1 -1 -1 -1").id, 1 << 53);
    assert_eq!(only("000000000000000000001 0 5 9 4 -1 -1 4 200 -1 -4 3 1 -1 1 -1 -1 -1").id, 1);
}

#[test]
fn an_error_names_line_and_field_and_quotes_the_value() {
    let field = |n: usize, text: &str| {
        let mut fields: Vec<&str> = LINE.split(' ').collect();
        fields[n - 1] = text;
        message(&format!("; h\n{LINE}\n{}\n", fields.join(" ")))
    };
    assert_eq!(field(4, "1x0"), "a.swf, line 3, field 4 (run time): expected a number, found `1x0`");
    for text in ["-", "--1", "1-", "inf", "NaN", "1,5", "0x10", "+", ".", "e5", "1e", "\u{fc}", "\0"] {
        assert!(field(6, text).contains("field 6 (average CPU time): expected a number, found"), "{text}");
    }
    for text in ["9007199254740993000", "-99999999999999999999999", "1e300", "1e999"] {
        assert!(field(18, text).contains("field 18 (think time): expected a number of at most 2^53"), "{text}");
    }
    for (n, text) in [(2, "-2"), (3, "-0.5"), (4, "-7"), (9, "-3.5")] {
        assert!(field(n, text).contains("expected a time of 0 or more, or -1"), "{text}");
    }
    for (n, text) in [(5, "-2"), (8, "1.5"), (8, "1073741825"), (5, "99999999999")] {
        assert!(field(n, text).contains("expected a whole number from 0 to 2^30, or -1"), "{text}");
    }
    assert!(field(1, "-1").contains("field 1 (job number): expected a whole number of 0 or more, found `-1`"));
    for (n, text) in [(11, "2147483648"), (12, "0.5"), (13, "-2147483648"), (15, "1e10"), (16, "7.25")] {
        assert!(field(n, text).contains("expected a whole number of at most 2^31 - 1 in size"), "{text}");
    }
    assert!(field(6, &"7x".repeat(1000)).len() < 150, "long fields are cut");
    assert!(field(6, "\u{1b}[31m").contains("found `\\x1b[31m`"), "unprintable bytes are escaped");
}

#[test]
fn a_record_with_fewer_or_more_than_18_fields_is_an_error() {
    let short = LINE.rsplit_once(' ').expect("has blanks").0;
    assert_eq!(message(&format!("{short}\n")), "a.swf, line 1: a record has 18 fields, this line has 17");
    assert_eq!(message(&format!("{LINE} 7\n")), "a.swf, line 1: a record has 18 fields, this line has 19");
    assert_eq!(message(&format!("{LINE} x\n")), "a.swf, line 1: a record has 18 fields, this line has 19");
    assert_eq!(
        message(&format!("{LINE}\n{}", &LINE[..20])),
        "a.swf, line 2: a record has 18 fields, this line has 8; it is the last line and has no line end: \
         is the file truncated?"
    );
    assert_eq!(
        message(&format!("{LINE}\n1 0 -")),
        "a.swf, line 2, field 3 (wait time): expected a number, found `-`; it is the last line and has no line end: \
         is the file truncated?"
    );
}

/// An archive with one empty file.
fn tar() -> Vec<u8> {
    let mut header = vec![0; 1024];
    header[..5].copy_from_slice(b"a.swf");
    header[257..265].copy_from_slice(b"ustar\x0000");
    header
}

#[test]
fn compressed_files_are_recognised() {
    for (bytes, kind) in [
        (
            &b"\x1f\x8b\x08abc"[..],
            "compressed by gzip: decompress it, or give it the ending .gz; if it has that ending, it was",
        ),
        (b"\x28\xb5\x2f\xfdabc", "compressed by zstd: decompress it, or give it the ending .zst"),
        (b"PK\x03\x04abc", "a ZIP archive"),
        (&tar()[..], "an archive of tar, not one file: unpack it"),
        (b"\xef\xbb\xbf\n<!DOCTYPE html>", "a web page"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12345\n",
            "a pointer of Git LFS, not the file itself",
        ),
        (b"; MaxProcs: 4\r1 0 0 60 1\r", "a text whose lines end in CR alone"),
    ] {
        let message = parse(bytes, "a.swf").expect_err(kind).to_string();
        assert!(message.starts_with(&format!("a.swf: the file is {kind}")), "{message}");
    }
    assert_eq!(parse(format!("\u{feff}{LINE}").as_bytes(), "a").expect("byte order mark").records.len(), 1);
}

#[test]
fn reads_headers_of_published_logs() {
    let header = |text: &str| read(text).expect("reads").header;
    let h = header(
        ";Version: SWF v2\n;\t  MaxProcs:\t1664 (72, 1368, 224)\n; MaxNodes: 184  ( 6,  171,   7)\r\n;UnixStartTime: 1007061086\n\
         ; 2080 jobs removed: those\n;; Queue: 1 a:b\n; Queue: 2\n;       http://x\n; Note:\n;\n; Caf\u{e9}: x\n; Bad \u{ff}: y",
    );
    assert_eq!(h.get("version"), Some("SWF v2"));
    assert_eq!(h.procs(), Some(1664));
    assert_eq!(h.number("MaxNodes"), Some(184));
    assert_eq!(h.unix_start_s(), Some(1_007_061_086));
    assert_eq!(h.get("Queue"), Some("1 a:b"));
    assert_eq!(h.fields.iter().filter(|(k, _)| k == "Queue").count(), 2);
    assert_eq!(h.get("Note"), Some(""));
    assert_eq!(header("; MaxNodes: 256\n").procs(), Some(256), "MaxNodes where MaxProcs is absent");
    assert_eq!(header("; MaxProcs: -1\n; MaxNodes: 8\n").procs(), Some(8));
    assert_eq!(header("; MaxProcs: N/A\n").procs(), None);
    assert_eq!(header("; MaxProcs: 99999999999999999999999\n").procs(), None);
    assert_eq!(header(&format!("{LINE}\n; MaxProcs: 5\n")).procs(), Some(5), "header keys may follow records");
}

#[test]
fn numbers_of_the_header_have_no_separators() {
    for value in ["MaxProcs: 1,024", "MaxNodes: 1.024", "UnixStartTime: Mon Jan 8", "UnixStartTime: 2024-01-08"] {
        let (key, text) = value.split_once(": ").expect("a value");
        let wanted = format!("a.swf, line 2: `{key}` is {text:?}: write a whole number without separators");
        assert_eq!(message(&format!("{LINE}\n; {value}\n")), wanted);
    }
    let text = "; MaxProcs: 128.0\n; UnixStartTime: unknown\n; MaxJobs: 1,024\n";
    assert_eq!(read(text).expect("reads").header.procs(), Some(128));
}

/// A job that was swapped out has a record of the whole, and one for each partial execution. A status alone says nothing.
#[test]
fn partial_executions_beside_the_whole_job_have_no_submit_time() {
    let submits = |records: &[(i64, i32)]| {
        let record = |(id, status): &(i64, i32)| format!("{id} 7 0 100 8 -1 -1 8 400 -1 {status} 1 1 -1 1 1 -1 -1\n");
        let log = read(&records.iter().map(record).collect::<String>()).expect("reads");
        log.records.iter().map(|record| record.submit_s).collect::<Vec<_>>()
    };
    assert_eq!(submits(&[(1, 1), (1, 2), (1, 3), (2, 5)]), [7.0, -1.0, -1.0, 7.0]);
    assert_eq!(submits(&[(1, 2), (1, 4), (1, 0), (2, 2)]), [-1.0, -1.0, 7.0, 7.0]);
    assert_eq!(
        submits(&[(1, 2), (1, 3), (2, 1), (2, 1), (1, 2)]),
        [7.0; 5],
        "no record of the whole job, or jobs of one id"
    );
}

/// A record that powers stand behind.
const RECORD: &str = "7 0 -1 60 4 -1 -1 4 90 -1 1 1 1 -1 1 -1 -1 -1\n";

#[test]
fn a_power_belongs_to_the_record_above() {
    let text =
        format!("; MaxProcs: 8\n{RECORD}{RECORD}; JobPowerW: 7 412.5\n ;JobPowerWs: 3\n{RECORD};JobPowerW:7 1 2.2\n");
    let log = parse(text.as_bytes(), "x.swf").expect("reads");
    let power = |record, mean_w, ghz| RecordPower { record, mean_w, ghz };
    assert_eq!(log.powers, [power(1, 412.5, None), power(2, 1.0, Some(2.2))]);
    // Other keys stay in the header.
    assert_eq!(log.header.fields.len(), 2);
}

#[test]
fn a_wrong_power_is_an_error_with_its_line() {
    let error = |text: &str| parse(text.as_bytes(), "x.swf").expect_err("is wrong").to_string();
    assert!(error("; JobPowerW: 7 1\n").contains("x.swf, line 1: `JobPowerW` stands behind the record"));
    for (power, what) in [
        ("8 1", "job `8`"),
        ("7", "JOB WATTS"),
        ("7 0", "above 0"),
        ("7 nan", "above 0"),
        ("7 1e16", "above 0"),
        ("7 1 0", "a frequency"),
        ("7 1 2 3", "GHZ`"),
    ] {
        let found = error(&format!("{RECORD}; JobPowerW: {power}\n"));
        assert!(found.starts_with("x.swf, line 2: ") && found.contains(what), "{found}");
    }
    assert!(error(&format!("{RECORD}; JobPowerW: 7 1\n; JobPowerW: 7 1\n")).contains("line 3: job 7 has a second"));
}
