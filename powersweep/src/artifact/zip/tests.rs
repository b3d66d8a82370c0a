//! Every byte of a ZIP is determined, and each other byte is found.

use super::*;
use crate::artifact::archive;

/// A folder with three files, and its digests.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("b")).expect("a folder");
    for (name, text) in [("a.txt", "first"), ("b/run.sh", "second, which is longer"), ("c", "")] {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    archive::seal(folder.path()).expect("digests");
    folder
}

fn packed(folder: &Path, form: Form) -> Vec<u8> {
    let mut bytes = Vec::new();
    form.pack(folder, &mut bytes).expect("a ZIP");
    bytes
}

/// What is wrong with a ZIP of these bytes, and the folder that it was unpacked into.
fn problems(bytes: &[u8], form: Form) -> (Vec<Problem>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let unpacked = form.unpack(&mut &bytes[..], bytes.len() as u64, folder.path());
    let mut problems = unpacked.expect("it is read").problems;
    problems.extend(archive::checked(folder.path()).expect("it is read").1);
    (problems, folder)
}

const USUAL: Form = Form { limit: LIMIT };
/// Every number has 64 bits.
const LONG: Form = Form { limit: 0 };

#[test]
fn a_zip_gives_its_files_back_and_equal_files_give_equal_zips() {
    for form in [USUAL, LONG] {
        let (one, other) = (folder(), folder());
        let bytes = packed(one.path(), form);
        assert!(bytes == packed(other.path(), form));
        let (problems, unpacked) = problems(&bytes, form);
        assert_eq!(problems, []);
        let text = |folder: &Path| fs::read_to_string(folder.join("b/run.sh")).expect("the file");
        assert_eq!(text(unpacked.path()), text(one.path()));
    }
}

/// A changed byte in the header or in the text of a file names this file.
#[test]
fn each_changed_byte_is_found() {
    for form in [USUAL, LONG] {
        let bytes = packed(folder().path(), form);
        let find = |text: &[u8]| bytes.windows(text.len()).position(|found| found == text).expect("it is there");
        let (text, directory) = (find(b"second, which"), find(&CENTRAL.to_le_bytes()));
        let end = text + b"second, which is longer".len();
        let header = bytes[..text].windows(4).rposition(|four| four == LOCAL.to_le_bytes()).expect("a header");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            let (problems, _) = problems(&changed, form);
            assert!(!problems.is_empty(), "byte {at} of {}", bytes.len());
            let names = |file: &str| problems.iter().any(|problem| problem.file == file);
            // A header with another length says another name, or is none.
            if (header..text).contains(&at) {
                let is_name = (header + HEADER_BYTES..header + HEADER_BYTES + 8).contains(&at);
                assert!(names("b/run.sh") || (names("the ZIP") && !is_name), "byte {at}: {problems:?}");
            }
            if (text..end).contains(&at) {
                assert!(names("b/run.sh"), "byte {at}: {problems:?}");
            }
            if at >= directory {
                assert!(
                    problems[0].what.contains("directory") || problems[0].file == "the ZIP",
                    "byte {at}: {problems:?}"
                );
            }
        }
    }
}

#[test]
fn a_zip_that_is_cut_or_longer_is_found() {
    let bytes = packed(folder().path(), USUAL);
    for length in 0..bytes.len() {
        assert!(!problems(&bytes[..length], USUAL).0.is_empty(), "{length} bytes");
    }
    assert!(!problems(&[&bytes[..], b"x"].concat(), USUAL).0.is_empty());
}

/// Files outside of the folder, twice, hidden, or larger than the ZIP.
#[test]
fn names_and_sizes_of_a_stranger_write_nothing_outside() {
    let header = |name: &str, bytes: u64| {
        let entry = Entry { name: name.to_owned(), bytes, crc: 0, at: 0 };
        USUAL.header(&entry)
    };
    for name in ["../x", "/x", "a/../../x", "a//x", ".hidden", "a\\..\\x", "C:x", "", "a/./x", "x\n"] {
        let (problems, folder) = problems(&header(name, 0), USUAL);
        assert!(problems[0].what.contains("no artifact has a file of this name"), "{name}: {problems:?}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "{name}");
    }
    let twice = [header("a", 0), header("a", 0)].concat();
    assert!(problems(&twice, USUAL).0[0].what.contains("twice"));
    assert!(problems(&header("a", 1 << 40), USUAL).0[0].what.contains("is cut: its header states 1099511627776 bytes"));
    assert!(problems(&header("a", 30), USUAL).0[0].what.contains("cut"));
    // Method 8: a small ZIP could unpack to any size.
    let mut compressed = header("a", 0);
    compressed[8] = 8;
    assert!(problems(&compressed, USUAL).0[0].what.contains("another program has packed"));
}
