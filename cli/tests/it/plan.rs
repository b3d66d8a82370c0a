//! `plan` knows physics and size before anything runs; `run` and `submit` repeat its warnings.

use crate::sandbox::Sandbox;
use crate::sweeps::{TINY_LOG, synthetic};

/// A log's sweep under a cap: job 2 needs all four procs, 1130 W at the lowest gear.
fn capped(cap: &str) -> String {
    format!(
        r#"version = 1
name = "capped"
[workloads.w]
source = "swf"
log = "tiny"
[platforms.p]
power_top_w = 1_000
[policies.q]
power_cap = "admission"
{cap}
"#
    )
}

fn sandbox(manifest: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("logs/tiny.swf", TINY_LOG);
    sandbox.write("s.toml", manifest);
    sandbox
}

const LOGS: [&str; 2] = ["--traces", "logs"];

#[test]
fn plan_run_and_submit_warn_of_a_cap_that_never_binds() {
    let sandbox = sandbox(&capped("cap_schedule_w = [4_000]"));
    let warning =
        ["warning: the cap of 4000 W never binds: all 4 procs draw at most 4000 W", "at s.toml:10 [policies.q]"];
    sandbox.run(&[&["plan", "s.toml"], &LOGS[..]].concat()).exits(0).prints(&warning);
    let plan = sandbox.run(&[&["plan", "s.toml", "--format", "json"], &LOGS[..]].concat()).exits(0).json();
    assert_eq!((&plan["warnings"][0]["kind"], &plan["warnings"][0]["line"]), (&"cap-never-binds".into(), &10.into()));
    let _served = sandbox.serve(&["--data", "served"]);
    sandbox.run(&[&["submit", "s.toml", "--data", "served"], &LOGS[..]].concat()).exits(0).says(&warning);
    sandbox.run(&[&["run", "s.toml"], &LOGS[..]].concat()).exits(0).says(&warning);
}

#[test]
fn a_job_over_every_cap_is_named_before_its_task_fails_and_can_be_dropped() {
    let sandbox = sandbox(&capped("cap_schedule_w = [1_050]"));
    sandbox.run(&[&["plan", "s.toml"], &LOGS[..]].concat()).exits(0).prints(&[
        "warning: job 2 of 4 procs needs a cap of at least ",
        "the greatest cap is 1050 W: it never starts, and the task fails",
        "choose `over_cap_jobs` = \"drop\"",
    ]);
    sandbox.run(&[&["run", "s.toml"], &LOGS[..]].concat()).exits(3).says(&["job 2 starves"]);
    sandbox.write("s.toml", capped("cap_schedule_w = [1_050]\nover_cap_jobs = \"drop\""));
    let plan = sandbox.run(&[&["plan", "s.toml"], &LOGS[..]].concat()).exits(0);
    assert!(!plan.stdout.contains("needs a cap"), "{plan}");
    let columns = ["results", "capped", "--format", "csv", "--columns", "jobs_count,dropped_over_cap_count"];
    sandbox.run(&[&["run", "s.toml"], &LOGS[..]].concat()).exits(0);
    sandbox.run(&columns).exits(0).prints(&["2,1"]);
}

#[test]
fn relative_power_is_said_by_plan_and_by_the_table() {
    let sandbox = sandbox(&synthetic("plain", 1));
    sandbox.run(&["plan", "s.toml"]).exits(0).prints(&["note: power is relative: `power_top_w` is left at 1 W"]);
    sandbox.run(&["run", "s.toml"]).exits(0).prints(&["energy (relative)"]).says(&["note: power is relative"]);
    sandbox
        .write("s.toml", synthetic("plain", 1).replace("[platforms.cluster]", "[platforms.cluster]\npower_top_w = 95"));
    let plan = sandbox.run(&["plan", "s.toml"]).exits(0);
    assert!(!plan.stdout.contains("note:"), "{plan}");
}

#[test]
fn a_sweep_of_10_to_the_12_has_its_time_and_size_at_once() {
    let sandbox = sandbox(&synthetic("huge", 1).replace("count = 1 }", "count = 500_000_000_000 }"));
    let begun = std::time::Instant::now();
    let plan = sandbox.run(&["plan", "s.toml"]).exits(0);
    plan.prints(&["estimate: 1000000000000 rows of `tasks`, about ", " TB; ", " of one core, "]);
    // An unoptimised binary on a busy machine.
    assert!(begun.elapsed().as_secs_f64() < 10.0, "{:?}", begun.elapsed());
    let json = sandbox.run(&["plan", "s.toml", "--format", "json"]).exits(0).json();
    assert!(
        json["estimate"]["bytes"].as_f64() > Some(1e14) && json["estimate"]["core_s"].as_f64() > Some(1e6),
        "{json}"
    );
}

#[test]
fn a_workload_without_jobs_and_a_series_that_nothing_records_are_said() {
    let manifest = capped("cap_schedule_w = [2_000]").replace("power_cap", "# power_cap").replace("cap_s", "# cap_s");
    let sandbox = sandbox(&format!("series = [\"power_w\"]\n{manifest}"));
    sandbox.run(&[&["plan", "s.toml"], &LOGS[..]].concat()).exits(0).prints(&[
        "warning: no task records the series `power_w`\n  at s.toml:1, first in task 0;",
        "set watch_machine = true in [statistics]",
    ]);
    sandbox.write("s.toml", format!("series = [\"power_w\"]\n{manifest}\n[statistics]\nwatch_machine = true\n"));
    let plan = sandbox.run(&[&["plan", "s.toml"], &LOGS[..]].concat()).exits(0);
    assert!(!plan.stdout.contains("warning:"), "{plan}");
    // The estimate counts the rows of the table `series`.
    plan.prints(&["estimate: 1 row of `tasks`, ", " of `series`, about "]);
    sandbox.write("logs/tiny.swf", "; an empty log\n");
    sandbox.run(&[&["plan", "s.toml"], &LOGS[..]].concat()).exits(0).prints(&[
        "tiny.swf: no job is left of 0 records",
        "the task fails when it begins",
        "[workloads.w]",
    ]);
}

#[test]
fn designs_are_shown_and_their_points_run_once() {
    let sandbox = Sandbox::new();
    let manifest = |count: u32| {
        format!(
            r#"version = 1
name = "designed"
[designs.knobs]
kind = "saltelli"
count = {count}
[designs.listed]
kind = "points"
file = "points.csv"
[workloads.w]
source = "lublin"
synthetic_jobs_count = 50
interarrival_factor = {{ design = "listed" }}
[platforms.p]
size_factor = {{ from = 1, to = 2, design = "knobs" }}
[policies.q]
gear_rule = "bsld"
bsld_threshold = {{ from = 1.5, to = 3, step = 0.5, design = "knobs" }}
"#
        )
    };
    sandbox.write("study/s.toml", manifest(4));
    let missing = sandbox.run(&["plan", "study/s.toml"]).exits(2);
    missing.says(&["there is no file `points.csv` (line 8, [designs.listed]): looked in study"]);
    sandbox.write("study/points.csv", "interarrival_factor\n1\n0.5\n1.0\n");
    let shown = sandbox.run(&["plan", "study/s.toml"]).exits(0).prints(&[
        "design  kind      points  repeated  discrepancy  parameter",
        "1 to 2",
        "1.5 to 3, 4 values",
        "listed  points    3       1",
        "of them left out: repeated points",
    ]);
    assert!(!shown.stdout.contains("no axis has"), "{shown}");
    let plan = sandbox.run(&["plan", "study/s.toml", "--format", "json"]).exits(0).json();
    assert_eq!((&plan["designs"][0]["design"], &plan["designs"][0]["points"]), (&"knobs".into(), &16.into()));
    assert_eq!(plan["designs"][1]["repeated_points"], 1);
    let repeated = plan["designs"][0]["repeated_points"].as_u64().expect("a number");
    assert_eq!(plan["tasks"].as_u64(), Some(2 * (16 - repeated)));
    sandbox.run(&["run", "study/s.toml", "--quiet"]).exits(0);
    sandbox.write("study/s.toml", manifest(8));
    let more = sandbox.run(&["plan", "study/s.toml", "--format", "json"]).exits(0).json();
    assert_eq!(more["done"], plan["tasks"]);
    sandbox.run(&["run", "study/s.toml", "--quiet"]).exits(0);
    let rows =
        sandbox.run(&["results", "designed", "--format", "csv", "--columns", "size_factor,bsld_threshold"]).exits(0);
    assert_eq!(rows.stdout.lines().count() as u64, 1 + more["tasks"].as_u64().expect("a number"), "{rows}");
}
