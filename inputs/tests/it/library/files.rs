use std::fs;
use std::path::{Path, PathBuf};

use powersweep_engine::workload::{LogFormat, swf};
use powersweep_experiments::{Digest, FileRef};
use powersweep_inputs::library::{Library, Limits, LoadError, Origin};
use tempfile::TempDir;

use crate::library::{EMPTY, LOG, gzip, long_log, zst};

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).expect("writes");
    }
    folder
}

fn library(folders: &[&Path]) -> Library {
    Library::new(folders.iter().map(|p| PathBuf::from(*p)).collect(), None)
}

#[test]
fn a_log_is_the_same_however_it_is_stored() {
    let folder =
        folder(&[("g.swf.gz", &gzip(LOG.as_bytes())), ("z.swf.zst", &zst(LOG.as_bytes())), ("p.swf", LOG.as_bytes())]);
    let library = library(&[folder.path()]);
    for name in ["g", "g.swf.gz", "z", "z.swf.zst", "p", "p.swf"] {
        let log = library.load(&swf::FORMAT, name, None).expect(name);
        assert_eq!(log.bytes, LOG.as_bytes(), "{name}");
        assert_eq!(log.digest, Digest::of(LOG.as_bytes()), "{name}");
        let by_path = folder.path().join(name);
        let by_path = library.load(&swf::FORMAT, by_path.to_str().expect("utf-8"), None).expect("by path");
        assert_eq!(by_path, log);
    }
}

#[test]
fn archives_are_recognised_by_content_and_members_are_joined() {
    let (a, b) = LOG.split_at(40);
    let two = [gzip(a.as_bytes()), gzip(b.as_bytes())].concat();
    let frames = [zst(a.as_bytes()), zst(b.as_bytes())].concat();
    let folder = folder(&[("a.swf", &two), ("b", &frames)]);
    for name in ["a", "b"] {
        assert_eq!(library(&[folder.path()]).load(&swf::FORMAT, name, None).expect("loads").bytes, LOG.as_bytes());
    }
}

#[test]
fn the_first_folder_and_the_first_ending_win() {
    let first = folder(&[("x.swf", b"1"), ("y", b"3"), ("y.swf", b"2")]);
    let second = folder(&[("x.swf.gz", &gzip(b"4")), ("w.swf.gz", &gzip(b"5"))]);
    let library = library(&[first.path(), second.path()]);
    let text = |name: &str| library.load(&swf::FORMAT, name, None).expect("loads").bytes;
    assert_eq!(text("x"), b"1");
    assert_eq!(text("y"), b"2");
    assert_eq!(text("w"), b"5");
    assert_eq!(
        library.load(&swf::FORMAT, "w", None).expect("loads").origin,
        Origin::File(second.path().join("w.swf.gz"))
    );
}

#[test]
fn the_format_decides_which_endings_are_searched() {
    let folder = folder(&[("x.swf", b"1"), ("x.empty.gz", &gzip(b"2")), ("y.empty", b"3")]);
    let library = library(&[folder.path()]);
    let text = |format: &LogFormat, name: &str| library.load(format, name, None).map(|log| log.bytes);
    assert_eq!(text(&swf::FORMAT, "x").expect("loads"), b"1");
    assert_eq!(text(&EMPTY, "x").expect("loads"), b"2");
    assert_eq!(text(&EMPTY, "x.swf").expect("loads"), b"1", "the whole name is a file of any format");
    let path = folder.path().join("x").display().to_string();
    assert_eq!(text(&EMPTY, &path).expect("loads"), b"2");
    let error = text(&swf::FORMAT, "y").expect_err("no file has an ending of the format");
    assert!(matches!(&error, LoadError::NotFound { nearest, .. } if nearest.is_empty()), "{error}");
}

#[test]
fn without_a_source_the_ending_of_the_file_decides_the_format() {
    let files: [(&str, &[u8]); 4] = [("x.empty.gz", b""), ("y.EMPTY", b""), ("y.swf", b""), ("notes.txt", b"")];
    let folder = folder(&files);
    let library = library(&[folder.path()]);
    let both: [&'static LogFormat; 2] = [&swf::FORMAT, &EMPTY];
    let path = folder.path().join("x").display().to_string();
    for (log, name) in [
        ("x", "empty"),
        ("x.empty.gz", "empty"),
        (path.as_str(), "empty"),
        ("y", "swf"),
        ("y.EMPTY", "empty"),
        ("https://host/z.empty.zst?version=1.swf", "empty"),
    ] {
        assert_eq!(library.format(log, &both).expect(log).component.name, name, "{log}");
    }
    let error = library.format("notes.txt", &both).expect_err("the ending is of no format");
    let file = folder.path().join("notes.txt");
    assert_eq!(
        error.to_string(),
        format!(
            "the ending of {} belongs to no log format: expected .swf.gz, .swf.zst, .swf (source `swf`) or .empty.gz, \
             .empty.zst, .empty (source `empty`)",
            file.display()
        )
    );
    assert!(matches!(library.format("z", &both), Err(LoadError::NotFound { .. })));
    let only: [&'static LogFormat; 1] = [&swf::FORMAT];
    assert_eq!(library.format("notes.txt", &only).expect("there is one format").component.name, "swf");
}

#[test]
fn the_error_for_a_missing_log_lists_folders_and_similar_names() {
    let folder = folder(&[("CTC-SP2-1996-3.1-cln.swf.gz", b""), ("KTH-SP2-1996-2.1-cln.swf", b""), ("README.md", b"")]);
    let message =
        |log: &str| library(&[folder.path()]).load(&swf::FORMAT, log, None).expect_err("is missing").to_string();
    let place = folder.path().display();
    assert_eq!(
        message("CTC-SP2-1996-3.1"),
        format!(
            "there is no log `CTC-SP2-1996-3.1`: looked in {place}, the current folder; similar names there: CTC-SP2-1996-3.1-cln, \
             KTH-SP2-1996-2.1-cln"
        )
    );
    assert!(message("kth").ends_with("similar names there: KTH-SP2-1996-2.1-cln"), "{}", message("kth"));
    assert!(message("zzz").ends_with("the current folder"));
    assert!(message("").starts_with("there is no log ``"));
    let signal = library(&[folder.path()]).load_file_of(&FileRef::plain("carbon.csv", None)).expect_err("is missing");
    assert_eq!(signal.to_string(), format!("there is no file `carbon.csv`: looked in {place}, the current folder"));
    let near = library(&[folder.path()]).load_file_of(&FileRef::plain("READ.md", None)).expect_err("is missing");
    assert!(near.to_string().ends_with("similar names there: README.md"), "{near}");
    assert!(message(&format!("{place}/CTC-SP2.swf")).contains(&format!("looked in {place}; similar")));
    let unset = library(&[]).load(&swf::FORMAT, "x", None).expect_err("is missing");
    assert!(unset.to_string().ends_with("looked in the current folder"), "{unset}");
    let unset = library(&[]).on_search_path().load(&swf::FORMAT, "x", None).expect_err("is missing");
    assert!(unset.to_string().contains("set POWERSWEEP_TRACES"), "{unset}");
    assert!(!unset.is_retryable());
}

#[test]
fn damaged_archives_are_errors_that_name_the_file() {
    let text = long_log();
    for (name, whole) in [("a.swf.gz", gzip(&text)), ("a.swf.zst", zst(&text))] {
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x55;
        let mut head = whole.clone();
        head[0] ^= 0xff;
        let tail = [&whole[..], b"garbage"].concat();
        let cuts = [0, 1, 3, 9, whole.len() / 2, whole.len() - 1].map(|n| whole[..n].to_vec());
        for (i, bytes) in [flipped, head, tail].into_iter().chain(cuts).enumerate() {
            let folder = folder(&[(name, &bytes)]);
            let error = library(&[folder.path()]).load(&swf::FORMAT, "a", None).expect_err("is damaged");
            assert!(matches!(error, LoadError::Damaged { .. }), "{name} {i}: {error:?}");
            assert!(error.to_string().contains(name), "{error}");
            assert!(!error.is_retryable());
        }
    }
}

#[test]
fn the_sha256_of_the_stored_file_is_checked() {
    let stored = gzip(LOG.as_bytes());
    let folder = folder(&[("a.swf.gz", &stored)]);
    let library = library(&[folder.path()]);
    library.load(&swf::FORMAT, "a", Some(Digest::of(&stored))).expect("is the file");
    let text_digest = Digest::of(LOG.as_bytes());
    let wrong = library
        .load(&swf::FORMAT, "a", Some(text_digest))
        .expect_err("the digest of the text differs from the digest of the file");
    assert!(matches!(&wrong, LoadError::WrongSha256 { expected, .. } if *expected == text_digest), "{wrong}");
}

#[test]
fn sizes_are_limited() {
    let zeros = vec![b'\n'; 1 << 20];
    let folder = folder(&[("g.swf.gz", &gzip(&zeros)), ("z.swf.zst", &zst(&zeros)), ("p.swf", &zeros)]);
    let with = |stored_bytes, text_bytes| library(&[folder.path()]).with_limits(Limits { stored_bytes, text_bytes });
    for name in ["g", "z", "p"] {
        assert_eq!(with(1 << 20, 1 << 20).load(&swf::FORMAT, name, None).expect("at the limit").bytes.len(), 1 << 20);
        let error = with(1 << 20, (1 << 20) - 1).load(&swf::FORMAT, name, None).expect_err("beyond the limit");
        assert!(matches!(error, LoadError::TooLarge { text: true, .. }), "{error}");
        let error = with(10, 1 << 20).load(&swf::FORMAT, name, None).expect_err("beyond the limit");
        assert!(matches!(error, LoadError::TooLarge { text: false, .. }), "{error}");
    }
}

/// The file of a signal may have 256 MiB, a log 2 GiB.
#[test]
fn a_compressed_signal_is_read_up_to_the_limit_of_signals() {
    let newlines = vec![b'\n'; 257 << 20];
    let (packed, fits) = (gzip(&newlines), gzip(&newlines[..1 << 20]));
    assert!(packed.len() < 1 << 20, "{} bytes", packed.len());
    let folder = folder(&[("bomb.csv.gz", &packed), ("fits.csv.gz", &fits)]);
    let load = |name: &str| {
        let loaded = library(&[folder.path()]).load_file_of(&FileRef::plain(name, None));
        loaded.map(|loaded| loaded.bytes.len())
    };
    assert_eq!(load("fits.csv.gz").expect("small"), 1 << 20);
    let error = load("bomb.csv.gz").expect_err("refused");
    assert!(matches!(error, LoadError::TooLarge { limit_bytes: 268_435_456, text: true, .. }), "{error}");
}

#[test]
fn a_folder_is_not_a_log() {
    let folder = folder(&[]);
    fs::create_dir(folder.path().join("x.swf")).expect("creates");
    let error = library(&[folder.path()]).load(&swf::FORMAT, "x", None).expect_err("is a folder");
    assert!(matches!(error, LoadError::NotFound { .. }), "{error}");
    assert!(library(&[folder.path()]).load(&swf::FORMAT, "a\0b", None).is_err(), "a name that no file can have");
}
