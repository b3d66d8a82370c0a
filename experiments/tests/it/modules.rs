//! Policy modules of a manifest: files by name, identities by digest.

use std::collections::BTreeMap;

use powersweep_experiments::{Digest, Manifest, Sweep, SweepError};

const TOP: &str = "version = 1\nname = \"t\"\n[workloads.w]\nsource = \"lublin\"\n";

fn parse(policies: &str) -> Manifest {
    Manifest::parse("test.toml", &format!("{TOP}{policies}")).expect("the test's manifest is right")
}

fn sweep(policies: &str, modules: &[(&str, &[u8])]) -> Result<Sweep, SweepError> {
    let digests: BTreeMap<String, Digest> =
        modules.iter().map(|(name, bytes)| ((*name).to_owned(), Digest::of(bytes))).collect();
    Sweep::new(parse(policies), digests)
}

const TWO: &str = "[policies.p]\nbackfill = [\"wasm\", \"easy\"]\nwasm_module = [\"a.wasm\", \"b.wasm\"]\n";

#[test]
fn a_list_of_modules_is_an_axis_and_a_list_of_files() {
    let manifest = parse(TWO);
    let names: Vec<String> = manifest.files().into_iter().map(|file| file.name).collect();
    assert_eq!(names, ["a.wasm", "b.wasm"]);
    let sweep = sweep(TWO, &[("a.wasm", b"a"), ("b.wasm", b"b")]).expect("it has its files");
    assert_eq!(sweep.task_count(), 3);
    let ids: Vec<_> = (0..3).map(|index| sweep.task(index).expect("a task").sim.module_id()).collect();
    let digest = |bytes: &[u8]| Some(*Digest::of(bytes).as_bytes());
    assert_eq!(ids, [digest(b"a"), digest(b"b"), None]);
}

#[test]
fn the_bytes_of_a_module_identify_a_task_and_its_name_does_not() {
    let one = |name: &str, bytes: &[u8]| {
        let policies = format!("[policies.p]\nbackfill = \"wasm\"\nwasm_module = \"{name}\"\n");
        sweep(&policies, &[(name, bytes)]).expect("it has its file")
    };
    let (first, renamed, other) = (one("a.wasm", b"a"), one("b.wasm", b"a"), one("a.wasm", b"other"));
    let task = first.task(0).expect("a task");
    assert_eq!(task.task_id, renamed.task(0).expect("a task").task_id);
    assert_ne!(task.task_id, other.task(0).expect("a task").task_id);
    assert_eq!(first.index_of(&task), Some(0));
    assert_eq!(renamed.index_of(&task), Some(0));
    assert_eq!(other.index_of(&task), None);
}

#[test]
fn a_module_is_no_url() {
    let error = crate::errors(&format!("{TOP}{}", TWO.replace("a.wasm", "https://h/a.wasm")));
    assert!(error.contains("expected the path of a file: a module is a file here, not a URL"), "{error}");
}

#[test]
fn two_names_of_one_module_are_refused() {
    let error = sweep(TWO, &[("a.wasm", b"a"), ("b.wasm", b"a")]).expect_err("the same tasks");
    assert_eq!(error.to_string(), "the policy modules `a.wasm` and `b.wasm` are the same file: keep one of them");
}
