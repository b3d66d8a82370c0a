//! docs/reference/files.md names every file in a data folder.

use std::path::Path;

use crate::sandbox::{Sandbox, contents};
use crate::sweeps::{TINY_LOG, WIDE, synthetic};

/// Folders of the page that this test does not fill: one needs Slurm, one is empty after a sweep.
const NOT_FILLED: [&str; 2] = ["DATA/.powersweep/launch/", "DATA/.powersweep/staging/"];

/// The paths below `DATA` on the page.
fn documented() -> Vec<String> {
    let page =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../docs/reference/files.md");
    let text = std::fs::read_to_string(page).expect("the page exists");
    let rows = text.lines().filter(|line| line.starts_with("| `DATA/"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Whether a path is one of a pattern: a name in capitals stands for any text, a `/` at the end for all files below.
fn matches(pattern: &str, path: &str) -> bool {
    let any = pattern.replace("EXPERIMENT", "*").replace("ID", "*").replace("@N", "@*");
    let (names, rest): (Vec<&str>, _) = (any.trim_end_matches('/').split('/').collect(), any.ends_with('/'));
    let parts: Vec<&str> = path.split('/').collect();
    let has_length = if rest { parts.len() > names.len() } else { parts.len() == names.len() };
    has_length && names.iter().zip(&parts).all(|(name, part)| is_like(name, part))
}

/// Whether a text is like a pattern, in which `*` stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((start, end)) = pattern.split_once('*') else { return pattern == text };
    let ends =
        |rest: &str| rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| is_like(end, &rest[at..]));
    text.strip_prefix(start).is_some_and(ends)
}

#[test]
fn the_page_has_every_file_of_a_data_folder() {
    let sandbox = Sandbox::new();
    let tables = "\ntables = [\"jobs\", \"series\"]\n[workloads.w]";
    let signals = "[signals.tariff]\nquantity = \"price\"\nfile = \"tariff.csv\"\nbeyond = \"hold\"\n";
    let manifest = |text: &str| {
        sandbox.write("wide.toml", text.replace("\n[workloads.w]", tables) + signals);
    };
    sandbox.write("tiny.swf", TINY_LOG);
    sandbox.write("tariff.csv", "seconds,price (EUR/MWh)\n0,100\n3600,50\n7200,50\n");
    sandbox.write("shards.toml", synthetic("shards", 2));
    manifest(WIDE);
    sandbox.run(&["run", "wide.toml", "--quiet", "--data", "DATA"]).exits(3);
    manifest(&WIDE.replace("[\"fcfs\", \"sjf\"]", "\"fcfs\""));
    sandbox.run(&["run", "wide.toml", "--quiet", "--data", "DATA"]).exits(3);
    sandbox.run(&["run", "wide.toml", "--quiet", "--data", "DATA", "--restart"]).exits(3);
    sandbox.run(&["shard", "shards.toml", "--data", "DATA", "--index", "0", "--of", "2"]).exits(0);
    let (serving, _) = sandbox.serve(&["--data", "DATA"]);
    let root = sandbox.path("");
    let found: Vec<String> = contents(&sandbox.path("DATA"))
        .into_keys()
        .map(|path| path.strip_prefix(&root).expect("it is below").to_string_lossy().into_owned())
        // A file that is being written, such as the record of the owner, which is renewed.
        .filter(|path| !path.contains('#'))
        .collect();
    crate::farm::terminate(serving);
    let documented = documented();
    for path in &found {
        assert!(documented.iter().any(|pattern| matches(pattern, path)), "docs/reference/files.md lacks {path}");
    }
    for pattern in documented.iter().filter(|pattern| !NOT_FILLED.contains(&pattern.as_str())) {
        assert!(found.iter().any(|path| matches(pattern, path)), "no file is {pattern}: {found:#?}");
    }
}

/// The newest file below a folder whose path has this part.
fn newest(folder: &Path, part: &str) -> std::path::PathBuf {
    let files = contents(folder).into_keys().filter(|path| path.to_string_lossy().contains(part));
    files.max().expect("there is one")
}

#[test]
fn a_copied_part_counts_once_and_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write("plain.toml", synthetic("plain", 2));
    sandbox.run(&["run", "plain.toml", "--quiet", "--data", "data"]).exits(0);
    let part = newest(&sandbox.path("data/plain/tasks"), "part-");
    std::fs::copy(&part, part.with_file_name("part (copy).parquet")).expect("a copy");
    let note = ["plain/tasks/part (copy).parquet is a copy of a part: its rows count once"];
    let count = ["results", "plain", "--data", "data", "--stat", "count", "--by", "policy", "--columns", "wait_s_mean"];
    let csv = ["--format", "csv"];
    sandbox.run(&[&count[..], &csv].concat()).exits(0).says(&note).prints(&["plain,4"]);
    let rows = sandbox.run(&["results", "plain", "--data", "data", "--format", "csv"]).exits(0).says(&note);
    assert_eq!(rows.stdout.lines().count(), 5, "{rows}");
    sandbox.run(&["verify", "plain", "--data", "data"]).exits(0).says(&note).prints(&["of 4 tasks"]);
    std::fs::remove_dir_all(sandbox.path("data/.powersweep")).expect("the state is there");
    sandbox.run(&["adopt", "plain.toml", "--data", "data"]).exits(0).prints(&["4 of 4 tasks have rows"]);
    sandbox.run(&count).exits(0).says(&note);
}

#[test]
fn a_cut_state_names_the_way_out() {
    let sandbox = Sandbox::new();
    sandbox.write("plain.toml", synthetic("plain", 1));
    sandbox.run(&["run", "plain.toml", "--quiet", "--data", "data"]).exits(0);
    for part in ["/compacted/", "/manifest/"] {
        let files = contents(&sandbox.path("data/.powersweep/state")).into_iter();
        let files = files.filter(|(path, _)| path.to_string_lossy().contains(part));
        // The newest manifest is read; of sorted files, the largest has the records.
        let (file, bytes) = match part {
            "/manifest/" => files.max().expect("there is one"),
            _ => files.max_by_key(|(_, bytes)| bytes.len()).expect("there is one"),
        };
        std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("it is cut");
        for command in [&["status"][..], &["results", "plain"]] {
            let ended = sandbox.run(&[command, &["--data", "data"]].concat()).exits(5);
            let ended = ended.says(&["state was cut; `powersweep adopt MANIFEST --set-aside` rebuilds the state"]);
            assert_eq!(ended.stderr.lines().count(), 1, "no line is the database's: {ended}");
        }
        let adopt = ["adopt", "plain.toml", "--data", "data", "--set-aside"];
        sandbox.run(&adopt).exits(0).prints(&["2 of 2 tasks have rows"]);
    }
}
