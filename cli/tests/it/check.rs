//! `powersweep check`: claims beside the results of sweeps.

use crate::sandbox::{Sandbox, traces};
use crate::sweeps::{TINY_LOG, synthetic};

/// Claims on the sweep [`synthetic`]: two that hold, one that does not hold if `waits_at_most` is less than ours.
pub(crate) fn claims(manifest: &str, waits_at_most: f64, demanded: bool) -> String {
    let why = if demanded { "" } else { "why = \"a test\"" };
    format!(
        r#"version = 1
paper = "mine"
title = "A paper of our own"
manifests = ["{manifest}"]
[runs.first]
queue_order = "fcfs"
[[claims]]
id = "jobs"
text = "jobs of the sweep, {{queue_order}}"
source = "Table 1"
per.queue_order = ["fcfs", "sjf"]
published = 120
within = {{ absolute = 0 }}
value = {{ column = "jobs_count", aggregate = "sum" }}
[[claims]]
id = "order"
text = "both orders wait as the paper says"
source = "Figure 1"
demanded = {demanded}
{why}
at_most = {waits_at_most}
value = {{ runs = "first", column = "wait_s_mean", aggregate = "mean" }}
"#
    )
}

/// A figure and a table for the claims of [`claims`], in one file with them.
pub(crate) const FIGURES: &str = r#"
[[presets]]
name = "figure1"
caption = "Mean wait of two queue orders."
kind = "bars"
x = { column = "queue_order", title = "queue order" }
y = { title = "mean wait", unit = "s" }
[[presets.values]]
value = { column = "wait_s_mean", aggregate = "mean" }

[[presets]]
name = "table1"
caption = "Jobs of the sweep."
kind = "table"
x = { column = "queue_order", title = "queue order" }
[[presets.values]]
title = "jobs"
value = { column = "jobs_count", aggregate = "sum" }
published = ["jobs"]
"#;

#[test]
fn every_demanded_claim_must_hold() {
    let sandbox = Sandbox::new();
    sandbox.write("two.toml", synthetic("two", 2));
    sandbox.write("good.toml", claims("two.toml", 1e9, true));
    sandbox.write("bad.toml", claims("two.toml", -1.0, true));
    sandbox.write("lenient.toml", claims("two.toml", -1.0, false));
    let good = sandbox.run(&["check", "good.toml"]).exits(0);
    let good = good.prints(&["A paper of our own", "jobs of the sweep, sjf", "120 ± 0", "two.toml.tasks.wait_s_mean"]);
    let good = good.says(&["3 of 3 demanded claims of the paper hold"]);
    assert_eq!(good.stdout.matches(" holds ").count(), 3, "{good}");
    assert!(sandbox.path("results/data/two/tasks").exists(), "missing tasks have been run");
    sandbox
        .run(&["check", "bad.toml"])
        .exits(10)
        .prints(&["FAILS"])
        .says(&["1 demanded claim fails: order", "2 of 3 demanded claims of the paper hold"]);
    let lenient = sandbox.run(&["check", "lenient.toml"]).exits(0);
    let lenient = lenient
        .prints(&["reported, differs", "order is not demanded: a test"])
        .says(&["2 of 2 demanded claims of the paper hold; only reported: 0 of 1 hold, 1 differ"]);
    assert!(
        lenient.stdout.find("reported, differs") < lenient.stdout.find("120 ± 0"),
        "differences are first: {lenient}"
    );
    let only = sandbox.run(&["check", "lenient.toml", "--demanded"]).exits(0);
    assert!(!only.stdout.contains("Figure 1"), "{only}");
}

/// A check of rows that are all there reads no log: here it is gone.
#[test]
fn a_check_without_work_reads_no_log() {
    let sandbox = Sandbox::new();
    sandbox.write("jobs.swf", TINY_LOG);
    let log = "[workloads.log]\nsource = \"swf\"\nlog = \"./jobs.swf\"\n[platforms.p]\nprocs = 4\n";
    let policies = "[policies.plain]\nqueue_order = [\"fcfs\", \"sjf\"]\n";
    sandbox.write("two.toml", format!("version = 1\nname = \"two\"\n{log}{policies}"));
    sandbox.write("claims.toml", claims("two.toml", 1e9, true).replace("published = 120", "published = 3"));
    sandbox.run(&["check", "claims.toml"]).says(&["running the missing tasks of two.toml"]);
    std::fs::remove_file(sandbox.path("jobs.swf")).expect("the log was there");
    let again = sandbox.run(&["check", "claims.toml"]).says(&["demanded claims of the paper hold"]);
    assert!(!again.stderr.contains("running the missing tasks"), "{again}");
}

#[test]
fn programs_get_every_claim_with_its_numbers() {
    let sandbox = Sandbox::new();
    sandbox.write("two.toml", synthetic("two", 2));
    sandbox.write("bad.toml", claims("two.toml", -1.0, true));
    let found = sandbox.run(&["check", "bad.toml", "--format", "json", "--quiet"]).exits(10).json();
    assert_eq!((&found["paper"], &found["holds"]), (&"mine".into(), &false.into()));
    let claims = found["claims"].as_array().expect("a list");
    assert_eq!(claims.len(), 3);
    assert_eq!((&claims[0]["verdict"], &claims[2]["id"]), (&"FAILS".into(), &"jobs[sjf]".into()));
    assert_eq!((&claims[2]["stated_value"], &claims[2]["our_value"]), (&120.0.into(), &120.0.into()));
    assert_eq!((&claims[2]["holds"], &claims[0]["holds"]), (&true.into(), &false.into()));
    assert_eq!(claims.iter().filter(|claim| claim["kind"] == "published").count(), 3);
    let count = |claims: u64, hold: u64| serde_json::json!({ "claims": claims, "hold": hold });
    assert_eq!((&found["counts"]["published"], &found["counts"]["guards"]), (&count(3, 2), &count(0, 0)));
}

/// The dataset also has rows of tasks that left the manifest.
#[test]
fn rows_of_an_earlier_manifest_do_not_count() {
    let sandbox = Sandbox::new();
    sandbox.write("two.toml", synthetic("two", 5));
    sandbox.run(&["run", "two.toml", "--quiet"]).exits(0);
    sandbox.write("two.toml", synthetic("two", 2));
    sandbox.write("good.toml", claims("two.toml", 1e9, true));
    sandbox.run(&["check", "good.toml"]).exits(0).prints(&["120 ± 0"]);
}

/// `queue_order` is a column of `tasks`. Jobs of tasks that left the manifest do not count.
#[test]
fn claims_on_jobs_may_name_parameters() {
    let sandbox = Sandbox::new();
    let with_jobs = |seeds| synthetic("two", seeds).replace("version = 1\n", "version = 1\ntables = [\"jobs\"]\n");
    sandbox.write("two.toml", with_jobs(3));
    sandbox.run(&["run", "two.toml", "--quiet"]).exits(0);
    sandbox.write("two.toml", with_jobs(2));
    let value = "value = { column = \"jobs_count\", aggregate = \"sum\" }";
    let of_jobs = "value = { table = \"jobs\", column = \"wait_s\", aggregate = \"count\" }";
    sandbox.write("jobs.toml", claims("two.toml", 1e9, true).replace(value, of_jobs));
    let checked = sandbox.run(&["check", "jobs.toml"]).exits(0).says(&["3 of 3 demanded claims of the paper hold"]);
    checked.prints(&["jobs of the sweep, sjf", "120 ± 0", "two.toml.jobs.wait_s"]);
    // A sweep without this table has no such rows, whatever the conditions are.
    sandbox.write("bare.toml", synthetic("bare", 2));
    sandbox.write("lacking.toml", claims("bare.toml", 1e9, true).replace(value, of_jobs));
    let found = sandbox.run(&["check", "lacking.toml", "--format", "json", "--quiet"]).exits(10).json();
    let lacking = &found["claims"][0];
    assert_eq!(lacking["verdict"], "MISSING");
    let why = "the manifest of bare has no table `jobs`: add tables = [\"jobs\"] at its top and give it a new name, so that \
               all its tasks run with this table";
    assert_eq!(lacking["ours"], why);
    // Of a table that lost a file, no number is ours.
    let folder = std::fs::read_dir(sandbox.path("results/data/two/jobs")).expect("a folder");
    let part =
        folder.map(|file| file.expect("a file").path()).find(|path| path.extension().is_some_and(|of| of == "parquet"));
    std::fs::remove_file(part.expect("a part")).expect("it was there");
    sandbox.run(&["check", "jobs.toml"]).exits(5).says(&["of two/jobs: the state counts", "Bring the files back"]);
}

#[test]
fn wrong_papers_and_claims_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.run(&["check", "etinski2011"]).exits(2).says(&["did you mean `etinski2010`?", "papers: "]);
    sandbox.run(&["check", "none.toml"]).exits(2).says(&["papers: "]);
    let listed = sandbox.run(&["check", "nosuch"]).exits(2).stderr;
    assert_eq!(listed.matches("etinski2010").count(), 1, "{listed}");
    sandbox.run(&["check", "etinski2010"]).exits(4).says(&["POWERSWEEP_TRACES"]);
    sandbox.write(
        "wrong.toml",
        claims("two.toml", 1.0, true).replace("wait_s_mean", "wait_mean").replace("version = 1", ""),
    );
    let wrong = sandbox.run(&["check", "wrong.toml"]).exits(2);
    wrong.says(&["2 problems in wrong.toml", "`version` is not 1", "has no column `wait_mean`", "wrong.toml:22:"]);
    sandbox.write("lost.toml", claims("two.toml", 1.0, true));
    sandbox.run(&["check", "lost.toml"]).exits(2).says(&["there is no manifest file two.toml"]);
    sandbox.run(&["check"]).exits(2);
}

#[test]
fn list_shows_every_paper() {
    let sandbox = Sandbox::new();
    sandbox.run(&["check", "--list"]).exits(0).prints(&["etinski2010", "BSLD Threshold Driven"]);
    let found = sandbox.run(&["check", "--list", "--format", "json"]).exits(0).json();
    let etinski = found["papers"].as_array().into_iter().flatten().find(|paper| paper["paper"] == "etinski2010");
    assert!(etinski.is_some_and(|paper| paper["demanded"].as_u64() > Some(40)), "{found}");
}

/// The demanded claims of the papers whose sweeps take seconds.
#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn the_claims_of_the_papers_hold() {
    for paper in ["lawson2005", "etinski2010"] {
        Sandbox::new().run(&["check", paper, "--demanded", "--traces", &traces()]).exits(0);
    }
}

/// The papers of the test above, on cuts of their logs.
#[test]
fn claims_of_the_papers_hold_on_cuts_of_their_logs() {
    let folder = |name: &str| format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
    let traces = folder("../engine/tests/logs");
    for (paper, counts) in [
        ("lawson2005", "4 of 4 demanded claims of the paper hold; 6 of 6 guards hold"),
        ("etinski2010", "9 of 9 demanded claims of the paper hold; 14 of 14 guards hold"),
    ] {
        let claims = folder(&format!("tests/papers/{paper}.toml"));
        let checked = Sandbox::new().run(&["check", &claims, "--traces", &traces]).exits(0);
        checked.says(&[counts]);
    }
}

/// A guard's number is no published number: `check` shows it in a table of its own.
#[test]
fn guards_are_counted_apart_from_the_numbers_of_the_paper() {
    let sandbox = Sandbox::new();
    sandbox.write("two.toml", synthetic("two", 2));
    let guarded = claims("two.toml", 1e9, true)
        .replace("source = \"Table 1\"", "guard = \"reading\"")
        .replace("published = 120", "expected = 120");
    sandbox.write("guarded.toml", guarded.clone());
    let shown = sandbox.run(&["check", "guarded.toml"]).exits(0);
    let shown = shown.says(&["1 of 1 demanded claim of the paper holds; 2 of 2 guards hold"]);
    let (published, guards) = shown.stdout.split_once("expected").expect("two tables");
    assert!(published.contains("published") && !published.contains("120 ± 0") && guards.contains("120 ± 0"), "{shown}");
    sandbox.write("wrong.toml", guarded.replace("expected = 120", "published = 120"));
    sandbox.run(&["check", "wrong.toml"]).exits(2).says(&["a guard has no published number"]);
}

#[test]
fn the_claims_of_a_paper_without_logs_hold() {
    Sandbox::new().run(&["check", "tracsim2014", "--demanded"]).exits(0);
}
