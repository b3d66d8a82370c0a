//! `powersweep artifact`, and `powersweep verify` of what it writes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::check::{FIGURES, claims};
use crate::sandbox::{Ended, Sandbox, contents};
use crate::sweeps::{TINY_LOG, WIDE, synthetic};

/// A study of one's own: a manifest with a log beside it, claims and figures; all tasks have run.
fn study() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("logs/jobs.swf", TINY_LOG);
    let log = "[workloads.log]\nsource = \"swf\"\nlog = \"./logs/jobs.swf\"\n[platforms.p]\nprocs = 4\n";
    let policies = "[policies.plain]\nqueue_order = [\"fcfs\", \"sjf\"]\n";
    sandbox.write("two.toml", format!("version = 1\nname = \"two\"\n{log}{policies}"));
    let claims = claims("two.toml", 1e9, true).replace("published = 120", "published = 3");
    sandbox.write("paper.toml", format!("{claims}{FIGURES}"));
    sandbox.run(&["run", "two.toml", "--quiet", "--show", "0"]).exits(0);
    sandbox
}

/// The arguments that make the artifact of [`study`].
fn arguments(output: &str) -> Vec<&str> {
    let licence = ["--with-logs", "CC0-1.0", "--licence", "CC-BY-4.0"];
    let author = ["--author", "Ada Lovelace <https://orcid.org/0000-0002-1825-0097>"];
    [&["artifact", "--paper", "paper.toml", "--output", output][..], &licence, &author].concat()
}

/// Unpacks an artifact. Its files are stored, which this reads by itself.
fn unpacked(zip: &Path, folder: &Path) {
    let bytes = std::fs::read(zip).expect("the ZIP");
    let mut at = 0;
    while bytes[at..].starts_with(b"PK\x03\x04") {
        let long = |from: usize| u32::from_le_bytes(bytes[at + from..at + from + 4].try_into().expect("four")) as usize;
        let short = |from: usize| usize::from(u16::from_le_bytes([bytes[at + from], bytes[at + from + 1]]));
        let (length, name, extra) = (long(18), short(26), short(28));
        let file = folder.join(std::str::from_utf8(&bytes[at + 30..at + 30 + name]).expect("a name"));
        at += 30 + name + extra;
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, &bytes[at..at + length]).expect("a file");
        at += length;
    }
}

/// The study, in another folder without the data, the log and the manifest; `study` has the artifact's files.
fn elsewhere(made: &Sandbox) -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::copy(made.path("study.zip"), sandbox.path("study.zip")).expect("a copy");
    unpacked(&sandbox.path("study.zip"), &sandbox.path("study"));
    sandbox
}

/// The files of a folder by their paths in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let relative = |path: PathBuf| path.strip_prefix(folder).expect("below it").to_owned();
    contents(folder).into_iter().map(|(path, bytes)| (relative(path), bytes)).collect()
}

/// Writes the digests of a changed folder, as a forger would.
fn sealed(folder: &Path) {
    let sums: String = files(folder)
        .iter()
        .filter(|(path, _)| path.as_os_str() != "SHA256SUMS")
        .map(|(path, bytes)| format!("{}  {}\n", powersweep_experiments::Digest::of(bytes), path.display()))
        .collect();
    std::fs::write(folder.join("SHA256SUMS"), sums).expect("the digests");
}

#[test]
fn equal_rows_give_equal_artifacts() {
    let sandbox = study();
    let made = sandbox.run(&arguments("study.zip")).exits(0).prints(&[
        "two: tasks 2 rows",
        "3 of 3 demanded claims of the paper hold",
        "study.zip: ",
        "SHA-256 ",
    ]);
    assert!(!made.stdout.contains("not included"), "{made}");
    sandbox.run(&arguments("again.zip")).exits(0);
    let read = |name: &str| std::fs::read(sandbox.path(name)).expect("an artifact");
    assert!(read("study.zip") == read("again.zip"), "two calls write equal bytes");
    sandbox.run(&arguments("study.zip")).exits(2).says(&["study.zip exists already"]);
    sandbox.run(&["artifact", "two", "-o", "study.tar"]).exits(2).says(&["end its name in .zip"]);
    sandbox.run(&["artifact", "three", "-o", "three.zip"]).exits(2).says(&["three"]);
    let hint = "`powersweep reproduce paper.toml -o FOLDER` runs all sweeps";
    sandbox.run(&["artifact", "--paper", "paper.toml", "--data", "none", "-o", "none.zip"]).exits(2).says(&[hint]);
    let named = sandbox.run(&["artifact", "two", "-o", "named.zip"]).exits(0);
    named.prints(&["log ./logs/jobs.swf is named, not included"]);
    let left: Vec<_> =
        contents(sandbox.home()).into_keys().filter(|path| path.to_string_lossy().contains("partial")).collect();
    assert!(left.is_empty(), "nothing unfinished is left: {left:?}");
}

#[test]
fn an_artifact_is_verified_without_data_logs_and_source() {
    let made = study();
    made.run(&arguments("study.zip")).exits(0);
    let sandbox = elsewhere(&made);
    let said = [
        "A paper of our own",
        "files as they were made; SHA-256 of the ZIP ",
        "2 of 2 tasks of two ran again",
        "2 rows equal in every column, bit for bit",
        "jobs of the sweep, sjf",
        "3 of 3 demanded claims of the paper hold",
    ];
    sandbox.run(&["verify", "study.zip"]).exits(0).prints(&said);
    sandbox.run(&["verify", "study", "--tasks", "1"]).exits(0).prints(&["1 of 2 tasks of two ran again"]);
    // `rows` is a data folder: other commands read it.
    let data = ["--data", "study/rows"];
    sandbox
        .run(&[&["check", "study/paper/mine.toml"][..], &data].concat())
        .exits(0)
        .prints(&["120 ± 0".replace("120", "3").as_str()]);
    sandbox.run(&[&["results", "two", "--columns", "wait_s_mean"][..], &data].concat()).exits(0);
    sandbox.run(&["run", "study/inputs/two.toml", "--quiet", "--show", "0"]).exits(0);
    sandbox.run(&["verify", "study.zip", "--manifest", "x.toml"]).exits(2).says(&["leave out --manifest"]);
    sandbox.run(&["verify", "two", "--figures", "x"]).exits(2).says(&["only an artifact has figures"]);
    sandbox.run(&["verify", "none.zip"]).exits(2).says(&["cannot read none.zip"]);
}

/// The script needs a shell, the program and nothing else; figures are drawn again, byte by byte.
#[cfg(feature = "figures")]
#[test]
fn the_script_of_an_artifact_verifies_it_and_draws_its_figures() {
    let made = study();
    made.run(&arguments("study.zip")).exits(0);
    let sandbox = elsewhere(&made);
    let program = crate::sandbox::BINARY;
    let ran = sandbox.command("sh").args(["study/reproduce.sh", "../drawn"]).env("POWERSWEEP", program).output();
    let ran = ran.expect("a shell");
    let text = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && text.contains("3 files equal to those of the artifact"), "{text}");
    for file in ["figure1.svg", "figure1.pdf", "table1.md"] {
        let read = |folder: &str| std::fs::read(sandbox.path(folder).join("mine").join(file)).expect("a figure");
        assert!(read("drawn") == read("study/figures"), "{file}");
    }
    let index = std::fs::read_to_string(sandbox.path("study/study.json")).expect("the contents");
    let index: serde_json::Value = serde_json::from_str(&index).expect("JSON");
    let figures = &index["paper"]["figures"];
    assert_eq!((&figures[0]["shows"], &figures[0]["used_by"][0]["claim"]), (&"Figure 1".into(), &"order".into()));
    assert_eq!((&figures[1]["shows"], &figures[1]["used_by"][0]["source"]), (&"Table 1".into(), &"Table 1".into()));
    // A changed figure with a fitting digest is not what the rows give.
    std::fs::write(sandbox.path("study/figures/mine/table1.md"), "| jobs |\n").expect("a file");
    sealed(&sandbox.path("study"));
    let changed = sandbox.run(&["verify", "study", "--figures", "drawn"]).exits(10);
    changed.says(&["figures differ"]).prints(&["not equal: table1.md"]);
}

/// Verifies a changed copy of the folder `study`, and takes the change back.
fn changed(sandbox: &Sandbox, change: impl Fn(&Path)) -> Ended {
    let (original, copy) = (sandbox.path("study"), sandbox.path("copy"));
    let _ = std::fs::remove_dir_all(&copy);
    for (path, bytes) in files(&original) {
        std::fs::create_dir_all(copy.join(&path).parent().expect("a folder")).expect("a folder");
        std::fs::write(copy.join(path), bytes).expect("a file");
    }
    change(&copy);
    sandbox.run(&["verify", "copy"])
}

#[test]
fn every_change_of_an_artifact_is_named() {
    let made = study();
    made.run(&arguments("study.zip")).exits(0);
    let sandbox = elsewhere(&made);
    let write = |folder: &Path, file: &str, text: &str| std::fs::write(folder.join(file), text).expect("a file");
    for file in files(&sandbox.path("study")).keys().filter(|path| path.as_os_str() != "SHA256SUMS") {
        let flip = |folder: &Path| {
            let mut bytes = std::fs::read(folder.join(file)).expect("a file");
            let at = bytes.len() / 2;
            bytes[at] ^= 1;
            std::fs::write(folder.join(file), bytes).expect("a file");
        };
        let name = file.display();
        changed(&sandbox, flip).exits(10).prints(&[&format!("{name}: has other bytes")]).says(&["1 file not as they"]);
    }
    let missing = changed(&sandbox, |folder| std::fs::remove_file(folder.join("versions.json")).expect("it was there"));
    missing.exits(10).prints(&["versions.json: is missing"]);
    changed(&sandbox, |folder| write(folder, "more.txt", "x")).exits(10).prints(&["more.txt: is unknown"]);
    changed(&sandbox, |folder| write(folder, "SHA256SUMS", "x"))
        .exits(10)
        .prints(&["SHA256SUMS: line 1 is not a digest"]);
    let without = changed(&sandbox, |folder| std::fs::remove_file(folder.join("SHA256SUMS")).expect("it was there"));
    without.exits(10).prints(&["SHA256SUMS: is missing"]);
    let link = |folder: &Path| std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).expect("a link");
    changed(&sandbox, link).exits(10).prints(&["link: is neither a file nor a folder"]);
    // One byte of the ZIP, in a table.
    let mut bytes = std::fs::read(sandbox.path("study.zip")).expect("the ZIP");
    let text = b"rows/two/tasks/tasks.parquetPAR1";
    let at = bytes.windows(text.len()).position(|found| found == text).expect("the table") + text.len() + 100;
    bytes[at] ^= 1;
    sandbox.write("changed.zip", bytes);
    sandbox.run(&["verify", "changed.zip"]).exits(10).prints(&["rows/two/tasks/tasks.parquet: has other bytes"]);
}

/// Who changes digests, too, is found by the simulation and by the claims.
#[test]
fn forged_rows_and_verdicts_are_found() {
    let made = study();
    made.run(&arguments("study.zip")).exits(0);
    // Rows of another log under the same names.
    made.write("logs/jobs.swf", TINY_LOG.replace("1 0 -1 10", "1 0 -1 12"));
    made.run(&["run", "two.toml", "--data", "other", "--quiet", "--show", "0"]).exits(0);
    made.run(&[&arguments("other.zip")[..], &["--data", "other"]].concat()).exits(0);
    let sandbox = elsewhere(&made);
    unpacked(&made.path("other.zip"), &sandbox.path("other"));
    let table = "rows/two/tasks/tasks.parquet";
    let forge = |folder: &Path, file: &str, text: &dyn Fn(String) -> String| {
        let path = folder.join(file);
        let before = std::fs::read_to_string(&path).expect("a file");
        std::fs::write(path, text(before)).expect("a file");
        sealed(folder);
    };
    let rows = changed(&sandbox, |folder| {
        std::fs::copy(sandbox.path("other").join(table), folder.join(table)).expect("a copy");
        sealed(folder);
    });
    assert_ne!(rows.code(), Some(0), "{rows}");
    assert!(rows.stderr.contains("of two"), "{rows}");
    let verdicts = changed(&sandbox, |folder| forge(folder, "claims.json", &|text| text.replacen("\"3\"", "\"4\"", 1)));
    verdicts.exits(10).says(&["claims have other values than in the artifact: jobs["]);
    let claims = changed(&sandbox, |folder| {
        forge(folder, "paper/mine.toml", &|text| text.replace("published = 3", "published = 4"));
    });
    claims.exits(10).says(&["2 demanded claims fail"]);
    // A manifest that names a file of the reader's: here the file has even the right jobs.
    sandbox.write("secret.swf", TINY_LOG);
    let outside = changed(&sandbox, |folder| {
        forge(folder, "inputs/two.toml", &|text| text.replace("./logs/jobs.swf", "../../secret.swf"));
    });
    outside.exits(4).prints(&["no row was simulated again"]).says(&["no row of two was simulated again"]);
}

/// Two of eight tasks fail: the artifact says so, or is refused.
#[test]
fn an_unfinished_experiment_is_refused_or_said() {
    let sandbox = Sandbox::new();
    sandbox.write("logs/tiny.swf", TINY_LOG);
    sandbox.write("wide.toml", WIDE);
    sandbox.run(&["run", "wide.toml", "--traces", "logs", "--quiet", "--show", "0"]).exits(3);
    let artifact = ["artifact", "wide", "--traces", "logs", "--output", "wide.zip"];
    sandbox.run(&artifact).exits(3).says(&["wide: of 8 tasks, 2 failed and 0 have not run", "--incomplete"]);
    assert!(!sandbox.path("wide.zip").exists());
    sandbox.run(&[&artifact[..], &["--incomplete"]].concat()).exits(0).says(&["2 failed"]);
    unpacked(&sandbox.path("wide.zip"), &sandbox.path("wide"));
    let failed = std::fs::read_to_string(sandbox.path("wide/failed/wide.csv")).expect("the failed tasks");
    assert!(failed.starts_with("task_index,attempt,failure_kind,message\n") && failed.lines().count() == 3, "{failed}");
    let verified = sandbox.run(&["verify", "wide.zip", "--traces", "logs"]).exits(0);
    verified.prints(&["of 8 tasks, 2 failed and 0 have not run", "6 of 6 tasks of wide ran again"]);
    // The log is not in it.
    sandbox.run(&["verify", "wide.zip"]).exits(4).prints(&["wide: no row was simulated again"]);
}

/// The description has the sections that forms ask for, in LaTeX whose braces and environments end; where a LaTeX is installed, it
/// makes at most two pages of it.
#[test]
fn the_description_is_two_pages_of_latex() {
    let made = study();
    made.run(&arguments("study.zip")).exits(0);
    let sandbox = elsewhere(&made);
    let text = std::fs::read_to_string(sandbox.path("study/description.tex")).expect("the description");
    for section in
        ["Hardware and software", "Time and disk", "Steps", "Expected results", "Badges", "Ada Lovelace", "CC0-1.0"]
    {
        assert!(text.contains(section), "{section}");
    }
    let mut depth: BTreeMap<&str, i64> = BTreeMap::new();
    for (open, close) in [("{", "}"), ("\\begin{", "\\end{")] {
        let without = text.replace("\\{", "").replace("\\}", "");
        *depth.entry(open).or_default() += without.matches(open).count() as i64 - without.matches(close).count() as i64;
    }
    assert!(depth.values().all(|depth| *depth == 0) && text.is_ascii(), "{depth:?}");
    let latex = ["-interaction=nonstopmode", "-halt-on-error", "description.tex"];
    let Ok(made) = Command::new("pdflatex").args(latex).current_dir(sandbox.path("study")).output() else { return };
    let log = String::from_utf8_lossy(&made.stdout);
    assert!(made.status.success() && (log.contains("(1 page,") || log.contains("(2 pages,")), "{log}");
}

#[test_with::env(POWERSWEEP_PYTHON)]
#[test]
fn the_crate_passes_the_validator_of_ro_crate() {
    let made = study();
    made.run(&arguments("study.zip")).exits(0);
    let sandbox = elsewhere(&made);
    let python = std::env::var("POWERSWEEP_PYTHON").expect("the interpreter");
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let script = Path::new(&root).join("tests/ro_crate.py");
    let validated = sandbox.command(&python).arg(script).arg(sandbox.path("study")).output().expect("Python");
    let text = String::from_utf8_lossy(&validated.stdout).into_owned() + &String::from_utf8_lossy(&validated.stderr);
    assert!(validated.status.success(), "{text}");
    // Python reads the ZIP, too.
    let listed = sandbox.command(&python).args(["-m", "zipfile", "-t", "study.zip"]).output().expect("Python");
    assert!(listed.status.success(), "{listed:?}");
}

/// Paths in a manifest start in its folder, as for `check`, and not in that of the paper.
#[test]
fn manifests_of_a_paper_may_be_in_another_folder() {
    let sandbox = Sandbox::new();
    sandbox.write("sweeps/site.swf", TINY_LOG);
    let log = "[workloads.log]\nsource = \"swf\"\nlog = \"./site.swf\"\n[platforms.p]\nprocs = 4\n";
    let policies = "[policies.plain]\nqueue_order = [\"fcfs\", \"sjf\"]\n";
    sandbox.write("sweeps/two.toml", format!("version = 1\nname = \"two\"\n{log}{policies}"));
    sandbox.write("paper.toml", claims("sweeps/two.toml", 1e9, true).replace("published = 120", "published = 3"));
    sandbox.run(&["run", "sweeps/two.toml", "--quiet", "--show", "0"]).exits(0);
    let artifact = ["artifact", "--paper", "paper.toml", "--with-logs", "CC0-1.0", "--output", "study.zip"];
    sandbox.run(&artifact).exits(0);
    let there = elsewhere(&sandbox);
    there.run(&["verify", "study.zip"]).exits(0).prints(&["2 of 2 tasks of two ran again", "2 rows equal"]);
}

/// Claims on a synthetic workload need no log.
#[test]
fn a_study_without_logs_needs_nothing_else() {
    let sandbox = Sandbox::new();
    sandbox.write("two.toml", synthetic("two", 2));
    sandbox.write("paper.toml", claims("two.toml", 1e9, true));
    sandbox.run(&["run", "two.toml", "--quiet", "--show", "0"]).exits(0);
    sandbox.write("program", "#!/bin/sh\n");
    let artifact = ["artifact", "two", "--paper", "paper.toml", "--program", "program", "--output", "study.zip"];
    sandbox.run(&artifact).exits(0);
    let there = elsewhere(&sandbox);
    assert!(there.path("study/bin/powersweep").is_file());
    there.run(&["verify", "study.zip", "--tasks", "2"]).exits(0).prints(&["2 of 4 tasks of two ran again"]);
}
