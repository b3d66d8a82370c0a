//! Tasks are unique: axes collapse if no chosen component has them.

use std::collections::BTreeMap;

use powersweep_experiments::{Digest, Manifest, Sweep, SweepError};

use crate::{errors, sweep};

fn with(policies: &str) -> String {
    format!("version = 1\nname = \"t\"\n[workloads.w]\n{policies}")
}

#[test]
fn parameters_collapse_if_their_component_is_not_chosen() {
    let sweep = sweep(&with(
        "[policies.p]\ngear_rule = [\"top\", \"bsld\"]\nbsld_threshold = [1.5, 2, 3]\nbackfill = [\"none\", \"easy\"]\nextra_procs = [true, false]\n",
    ));
    // (none: 1, easy: 2) x (top: 1, bsld: 3)
    assert_eq!(sweep.task_count(), 3 * 4);
}

#[test]
fn a_formula_is_an_axis() {
    let text = with(
        "[policies.p]\nqueue_order = [\"f1\", \"formula\"]\nformula = [\"procs*estimate_s\", \"-procs\", \"\"\"\n  if(procs<8,\n  1,2)\"\"\"]\n",
    );
    let sweep = sweep(&text);
    assert_eq!(sweep.task_count(), 1 + 3);
    let formula = |index| {
        let task = sweep.task(index).expect("a task");
        assert_eq!(sweep.index_of(&task), Some(index));
        task.sim.choice(powersweep_engine::Role::Order).opt_text("formula").map(str::to_owned)
    };
    let formulas: Vec<Option<String>> = (0..4).map(formula).collect();
    let expected = [None, Some("procs * estimate_s"), Some("-procs"), Some("if(procs < 8, 1, 2)")];
    assert_eq!(formulas, expected.map(|text| text.map(str::to_owned)));
}

#[test]
fn zipped_axes_advance_together() {
    let sweep = sweep(&with(
        "zip = [[\"job_number_from\", \"job_number_to\"]]\njob_number_from = [0, 10, 20]\njob_number_to = [10, 20, 30]\n[policies.p]\n",
    ));
    assert_eq!(sweep.task_count(), 3);
    for index in 0..3 {
        let task = sweep.task(index).expect("a task");
        let rules = task.sim.choice(powersweep_engine::Role::Rules);
        assert_eq!(rules.int("job_number_to"), rules.int("job_number_from") + 10);
        assert_eq!(sweep.index_of(&task), Some(index));
    }
}

#[test]
fn a_component_can_be_zipped_with_its_parameters() {
    let text = with(
        "[policies.p]\ngear_rule = [\"top\", \"bsld\", \"bsld\"]\nbsld_threshold = [1, 2, 3]\nzip = [[\"gear_rule\", \"bsld_threshold\"]]\n",
    );
    assert_eq!(sweep(&text).task_count(), 3);
    let twice = errors(&text.replace("[1, 2, 3]", "[1, 2, 2]"));
    assert!(twice.contains("gives the same values twice"), "{twice}");
}

#[test]
fn blocks_can_be_zipped_across_sections() {
    let text = "version = 1\nname = \"t\"\nzip = [[\"workload\", \"platform\"]]\n\
        [workloads.big]\nsynthetic_procs = 64\n[workloads.a-small]\nsynthetic_procs = 8\n\
        [platforms.large]\nprocs = 64\n[platforms.tiny]\nprocs = 8\n[policies.p]\nqueue_order = [\"fcfs\", \"sjf\"]\n";
    let sweep = sweep(text);
    assert_eq!((sweep.index_count(), sweep.task_count()), (8, 4));
    for task in (0..8).filter_map(|index| sweep.task(index)) {
        assert_eq!(&*task.workload == "big", &*task.platform == "large");
    }
}

#[test]
fn overlapping_blocks_are_refused_with_an_example() {
    let text = errors(&with(
        "[policies.a]\ngear_rule = \"bsld\"\nbsld_threshold = [1.5, 2]\n[policies.b]\ngear_rule = \"bsld\"\nbsld_threshold = { from = 2, to = 4, step = 0.5 }\n",
    ));
    assert!(text.contains("blocks `a` and `b` give the same values") && text.contains("bsld_threshold = 2"), "{text}");
    let text = errors(&with("[policies.a]\n[policies.b]\nbackfill = \"easy\"\n"));
    assert!(text.contains("they are equal"), "{text}");
    sweep(&with("[policies.a]\nbackfill = \"easy\"\nextra_procs = false\n[policies.b]\n"));
}

#[test]
fn equal_blocks_on_different_platforms_are_not_called_the_same_tasks() {
    let text = "version = 1\nname = \"t\"\nzip = [[\"workload\", \"platform\"]]\n[workloads.a]\n[workloads.b]\n\
        [platforms.a]\nprocs = 64\n[platforms.b]\nprocs = 32\n[policies.p]\n";
    let refused = errors(text);
    assert!(
        refused.contains("blocks `a` and `b` give the same values") && !refused.contains("same tasks"),
        "{refused}"
    );
    assert!(refused.contains("let [[exclude]] say what it goes with"), "{refused}");
    // As the help says.
    let one = "version = 1\nname = \"t\"\n[workloads.a]\n[workloads.c]\nsynthetic_procs = 8\n\
        [platforms.a]\nprocs = 64\n[platforms.b]\nprocs = 32\n[platforms.c]\n[policies.p]\n\
        [[exclude]]\nworkload = \"a\"\nplatform = \"c\"\n[[exclude]]\nworkload = \"c\"\nplatform = [\"a\", \"b\"]\n";
    assert_eq!(sweep(one).task_count(), 3);
}

#[test]
fn two_names_of_one_log_are_refused_when_the_digests_are_known() {
    let text = "version = 1\nname = \"t\"\n[workloads.a]\nsource = \"swf\"\nlog = \"x\"\n[workloads.b]\nsource = \"swf\"\nlog = \"y\"\n[policies.p]\n";
    let manifest = Manifest::parse("t.toml", text).expect("correct");
    let digests = |y: &[u8]| BTreeMap::from([("x".to_owned(), Digest::of(b"1")), ("y".to_owned(), Digest::of(y))]);
    assert!(Sweep::new(manifest.clone(), digests(b"2")).is_ok());
    let error = Sweep::new(manifest.clone(), digests(b"1")).expect_err("the same file");
    assert!(matches!(&error, SweepError::SameLog { .. }), "{error}");
    let error = Sweep::new(manifest, BTreeMap::new()).expect_err("no digests");
    assert!(matches!(&error, SweepError::MissingDigest { log } if log == "x"), "{error}");
    // Other slices of the same file are other tasks.
    let text = text.replace("log = \"y\"\n", "log = \"y\"\nrecord_from = 5\n");
    let manifest = Manifest::parse("t.toml", &text).expect("correct");
    assert!(Sweep::new(manifest, digests(b"1")).is_ok());
}

#[test]
fn an_edited_manifest_finds_the_tasks_it_had() {
    let before = sweep(&with("[policies.p]\ngear_rule = \"bsld\"\nbsld_threshold = [1.5, 2]\nwq_threshold = [0, 4]\n"));
    let after = sweep(&with(
        "[policies.renamed]\ngear_rule = \"bsld\"\nbsld_threshold = { from = 1.0, to = 3.0, step = 0.5 }\nwq_threshold = 4\n",
    ));
    let kept: Vec<Option<u64>> =
        (0..before.index_count()).map(|i| after.index_of(&before.task(i).expect("a task"))).collect();
    assert_eq!(kept, [None, Some(1), None, Some(2)]);
    let (old, new) = (before.task(1).expect("a task"), after.task(1).expect("a task"));
    assert_eq!(old.task_id, new.task_id);
}

#[test]
fn logs_are_listed_once_with_their_digest() {
    let sum = "AB".repeat(32);
    let text = format!(
        "version = 1\nname = \"t\"\n[workloads.a]\nsource = \"swf\"\nlog = [\"x\", \"y\"]\nlog_sha256 = [\"{sum}\", \"{}\"]\n\
         zip = [[\"log\", \"log_sha256\"]]\n[workloads.b]\nsource = \"swf\"\nlog = \"x\"\nrecord_to = 9\n[policies.p]\n",
        "0".repeat(64)
    );
    let manifest = Manifest::parse("t.toml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    let logs: Vec<(String, Option<Digest>)> = manifest.logs().into_iter().map(|log| (log.log, log.sha256)).collect();
    let digest = |text: &str| Some(text.parse().expect("64 digits"));
    assert_eq!(logs, [("x".to_owned(), digest(&sum)), ("y".to_owned(), digest(&"0".repeat(64)))]);
    let contradiction =
        errors(&text.replace("log = \"x\"\n", &format!("log = \"x\"\nlog_sha256 = \"{}\"\n", "1".repeat(64))));
    assert!(contradiction.contains("log `x` is given 2 different digests"), "{contradiction}");
    let url = errors(&text.replace("log = \"x\"\n", "log = \"https://host/x.swf.gz\"\n"));
    assert!(url.contains("a URL needs `log_sha256`"), "{url}");
}
