//! `powersweep run`: complete, repeated, edited and interrupted sweeps, and sweeps with failures.

use std::fs::File;

use crate::rows;
use crate::sandbox::{BINARY, Sandbox, contents};
use crate::sweeps::{JOBS, TINY_LOG, WIDE, synthetic};

#[test]
fn the_quickstart_runs_each_task_once() {
    let sandbox = Sandbox::new();
    let first = sandbox.run(&["run"]).exits(0);
    let first = first.says(&["quickstart: 88 tasks, 0 done already, 88 to run", "88 of 88 tasks done in", "Next:"]);
    let mut lines = first.stdout.lines();
    let head = lines.next().expect("a head");
    for column in ["policy", "queue_order", "backfill", "bsld_threshold", "wq_threshold", "energy (relative)"] {
        assert!(head.contains(column), "{first}");
    }
    assert_eq!(
        lines.clone().filter(|line| line.contains("-speed ") || line.contains("-energy ")).count(),
        24,
        "{first}"
    );
    assert!(lines.any(|line| line == "… and 64 more rows"), "{first}");
    let rows = rows::tasks(&sandbox.path("results/data"), "quickstart");
    assert_eq!(rows.len(), 88);

    let again = sandbox.run(&["run", "--show", "2"]).exits(0);
    again.says(&["quickstart: 88 tasks, 88 done already, 0 to run"]).prints(&["… and 86 more rows"]);
    assert_eq!(rows::tasks(&sandbox.path("results/data"), "quickstart"), rows);
    let quiet = sandbox.run(&["run", "--quiet", "--show", "0"]).exits(0);
    assert!(quiet.stdout.is_empty() && quiet.stderr.is_empty(), "{quiet}");
}

#[test]
fn an_edited_manifest_runs_only_new_tasks() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let run = || sandbox.run(&["run", "sweep.toml", "--data", "data"]).exits(0);
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    run().says(&["sweep: 4 tasks, 0 done already, 4 to run"]);
    let before = rows::tasks(&data, "sweep");
    sandbox.write("sweep.toml", synthetic("sweep", 3).replace("\"sjf\"]", "\"sjf\", \"f1\"]"));
    run().says(&["sweep: 9 tasks, 4 done already, 5 to run"]);
    let ids = |rows: &mut dyn Iterator<Item = &rows::Row>| -> std::collections::BTreeSet<String> {
        rows.map(|row| row["task_id"].to_string()).collect()
    };
    let after = rows::read(&data, "sweep", "tasks");
    assert_eq!(after.len(), 9, "no task ran twice");
    assert_eq!(ids(&mut after.iter()).len(), 9);
    assert!(ids(&mut after.iter()).is_superset(&ids(&mut before.values())));
    // Rows of values that left the manifest move to another folder.
    sandbox.write("sweep.toml", synthetic("sweep", 1));
    run().says(&[
        "sweep: 2 tasks, 2 done already, 0 to run; 7 rows of values that left the manifest kept in sweep@left",
    ]);
    assert_eq!((rows::read(&data, "sweep", "tasks").len(), rows::read(&data, "sweep@left", "tasks").len()), (2, 7));
}

#[test]
fn a_formula_is_an_axis_and_the_order_of_a_task() {
    const F1: &str = "log10(max(estimate_s, 1)) * procs + 870 * log10(max(submit_s - first_submit_s, 1))";
    let sandbox = Sandbox::new();
    let manifest = |formulas: &str| {
        synthetic("sweep", 2).replace("[\"fcfs\", \"sjf\"]", &format!("[\"f1\", \"formula\"]\nformula = [{formulas}]"))
    };
    let run = |formulas: &str| {
        sandbox.write("sweep.toml", manifest(formulas));
        sandbox.run(&["run", "sweep.toml", "--show", "0"])
    };
    let formulas = |one: &str| format!("\"{one}\", \"-wait_s * queue_length\"");
    run(&formulas(F1)).exits(0).says(&["sweep: 6 tasks, 0 done already, 6 to run"]);
    // Another spelling is the same formula.
    let bare = F1.replace(' ', "").replace("870", "(8.7e2)");
    run(&formulas(&bare)).exits(0).says(&["sweep: 6 tasks, 6 done already, 0 to run"]);
    let rows = rows::read(&sandbox.path("results/data"), "sweep", "tasks");
    let of = |order: &str, formula: Option<&str>| {
        let is = |row: &&rows::Row| row["queue_order"] == order && row["formula"].as_str() == formula;
        let mut waits: Vec<(i64, String)> = rows
            .iter()
            .filter(is)
            .map(|row| (row["seed"].as_i64().expect("a seed"), format!("{} {}", row["wait_s_mean"], row["bsld_mean"])))
            .collect();
        waits.sort_unstable();
        waits
    };
    assert_eq!(of("f1", None).len(), 2);
    assert_eq!(of("formula", Some(F1)), of("f1", None));
    assert_ne!(of("formula", Some("-wait_s * queue_length")), of("f1", None));
    let kept =
        sandbox.run(&["results", "sweep", "--where", &format!("formula={F1}"), "--columns", "seed", "--format", "csv"]);
    assert_eq!(kept.exits(0).stdout.lines().count(), 1 + 2);

    run("\"max(procs\"")
        .exits(2)
        .says(&["`formula` cannot be \"max(procs\"", "at column 10, expected an operator or `,`"]);
    let simulate = |formula: &str| {
        sandbox.run(&[
            "simulate",
            "-s",
            "queue_order=formula",
            "-s",
            &format!("formula={formula}"),
            "-s",
            "synthetic_jobs_count=50",
            "--all",
        ])
    };
    simulate("if(procs == 1, 0, procs)").exits(0).prints(&["if(procs == 1, 0, procs)"]);
    simulate("procs = 1").exits(2).says(&["at column 7", "equality is `==`"]);
    simulate("sqrt(-procs)").exits(2).says(&["`formula` has no value (NaN) for job 1 at", "with procs = "]);
}

#[test]
fn an_interrupted_run_continues() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 200).replace("= 60", "= 2000"));
    let args = ["run", "sweep.toml", "--slots", "1", "--show", "0"];
    let mut run = sandbox.start(&args);
    let done = || {
        let status = sandbox.run(&["status", "--format", "json"]).exits(0).json();
        status["experiments"][0]["done"].as_u64().unwrap_or(0)
    };
    run.says("400 to run");
    while done() == 0 {
        assert!(run.runs());
    }
    run.signal("INT");
    run.wait().exits(130).says(&["interrupted; finished tasks are kept. Run the same command to continue"]);
    // Another sweep in the same folder neither waits for the interrupted one nor continues it.
    let before = rows::tasks(&sandbox.path("results/data"), "sweep").len();
    sandbox.write("other.toml", synthetic("other", 2));
    sandbox.run(&["run", "other.toml", "--slots", "1", "--show", "0"]).exits(0);
    assert_eq!(rows::tasks(&sandbox.path("results/data"), "other").len(), 4);
    assert_eq!(rows::tasks(&sandbox.path("results/data"), "sweep").len(), before);
    let kept = rows::tasks(&sandbox.path("results/data"), "sweep");
    assert!(!kept.is_empty() && kept.len() < 400, "{} of 400", kept.len());
    let again = sandbox.run(&args).exits(0);
    again.says(&[&format!("400 tasks, {0} done already, {1} to run", kept.len(), 400 - kept.len())]);
    let rows = rows::tasks(&sandbox.path("results/data"), "sweep");
    assert_eq!(rows.len(), 400);
    assert!(kept.iter().all(|(index, row)| rows[index] == *row));
}

/// Each run deletes old files of the state silently.
#[test]
fn old_state_files_are_deleted() {
    let sandbox = Sandbox::new();
    let state = sandbox.path("results/data/.powersweep/state");
    let manifests = || contents(&state.join("manifest")).len();
    let mut first = 0;
    for seeds in 1..=5 {
        sandbox.write("sweep.toml", synthetic("sweep", seeds));
        let run = sandbox.run(&["run", "sweep.toml", "--quiet", "--show", "0"]).exits(0);
        assert!(run.stderr.is_empty(), "{run}");
        if seeds == 1 {
            first = manifests();
        }
        // The files seem hours old.
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(20_000);
        for path in contents(&state).keys() {
            File::options().write(true).open(path).and_then(|f| f.set_modified(then)).expect("it can be dated");
        }
    }
    assert!(manifests() < 4 * first, "{} manifests, {first} after the first of five runs", manifests());
    assert_eq!(rows::read(&sandbox.path("results/data"), "sweep", "tasks").len(), 10);
}

/// The parts of an experiment were deleted, but not its state: the run must not look successful.
#[test]
fn deleted_parts_are_reported() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
    std::fs::remove_dir_all(sandbox.path("results/data/sweep")).expect("it can be deleted");
    let lacks = "lacks 1 of 1 file of sweep/tasks: the state counts 4 rows in them";
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(5).says(&[lacks, "`powersweep delete sweep` forgets"]);
    sandbox.run(&["results", "sweep"]).exits(5).says(&[lacks]);
    sandbox.run(&["delete", "sweep"]).exits(0);
    sandbox.run(&["run", "sweep.toml"]).exits(0).says(&["4 tasks, 0 done already, 4 to run"]);
}

/// One of two parts was lost, or is there twice: no command may look successful.
#[test]
fn a_lost_part_is_reported_and_its_tasks_run_again() {
    let sandbox = Sandbox::new();
    let run = || sandbox.run(&["run", "sweep.toml"]);
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    run().exits(0);
    let folder = sandbox.path("results/data/sweep/tasks");
    let part = contents(&folder).into_keys().next().expect("a part");
    sandbox.write("sweep.toml", synthetic("sweep", 3));
    run().exits(0);
    let id =
        part.file_stem().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("part-")).expect("an id");
    let copy = folder.join(format!("part-{}{}.parquet", &id[..35], if id.ends_with('0') { '1' } else { '0' }));
    std::fs::copy(&part, &copy).expect("it can be copied");
    for command in [&["results", "sweep"][..], &["verify", "sweep"], &["export", "sweep", "--output", "out"]] {
        sandbox.run(command).exits(5).says(&["under the name of another one"]);
    }
    std::fs::remove_file(copy).expect("it can be deleted");

    std::fs::rename(&part, sandbox.path("lost")).expect("it can be moved");
    let lacks = "lacks 1 of 2 files of sweep/tasks: the state counts 6 rows in them";
    sandbox.run(&["results", "sweep"]).exits(0).says(&[lacks]);
    let groups = sandbox.run(&["results", "sweep", "--by", "queue_order"]).exits(0);
    groups.says(&[lacks, "failed, have not run, or have a row in a missing file"]);
    sandbox.run(&["plan", "sweep.toml"]).exits(0).says(&[lacks]);
    sandbox.run(&["status"]).exits(0).prints(&[lacks]);
    for command in [&["run", "sweep.toml"][..], &["verify", "sweep"], &["export", "sweep", "--output", "out"]] {
        sandbox.run(command).exits(5).says(&[lacks]);
    }
    assert!(!sandbox.path("out").exists());
    // A coordinator tells its clients, who may have no access to the data.
    let (served, url) = sandbox.serve(&[]);
    let remote = |args: &[&str]| sandbox.run(&[args, &["--coordinator", &url]].concat());
    let lacks_there = "lacks 1 of 2 files of sweep/tasks";
    remote(&["submit", "sweep.toml", "--wait"]).exits(5).says(&[lacks_there]);
    remote(&["delete", "sweep"]).exits(0);
    remote(&["submit", "sweep.toml"])
        .exits(8)
        .says(&["While no coordinator serves the data, `powersweep adopt` restores"]);
    remote(&["delete", "sweep", "--data-too"]).exits(8).says(&["the data has rows of it", "delete the folder sweep"]);
    served.signal("TERM");
    served.wait().exits(0);
    sandbox.run(&["adopt", "sweep.toml"]).exits(0);
    run().exits(0).says(&["6 tasks, 2 done already, 4 to run"]);
    assert_eq!(rows::read(&sandbox.path("results/data"), "sweep", "tasks").len(), 6);
}

/// The reader of the output has ended.
#[test]
fn a_closed_pipe_does_not_change_the_exit_code() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    let shell = |line: &str| {
        let mut shell = sandbox.command("bash");
        shell.args(["-c", line]).env("POWERSWEEP", BINARY);
        sandbox.spawn(shell).wait()
    };
    let code = "echo ${PIPESTATUS[0]}";
    let end = "{ exec 0<&-; sleep 0.1; }";
    shell(&format!("\"$POWERSWEEP\" run sweep.toml 2>&1 | {end}; {code}")).prints(&["0"]);
    assert_eq!(rows::tasks(&sandbox.path("results/data"), "sweep").len(), 4);
    shell(&format!("\"$POWERSWEEP\" policies | {end}; {code}")).prints(&["0"]);
    shell(&format!("\"$POWERSWEEP\" run nosuch.toml 2>&1 | {end}; {code}")).prints(&["2"]);
}

/// Some tasks fail: the other rows are kept, each failure is a row, and its command reproduces it.
#[test]
fn failed_tasks_have_rows_and_can_be_reproduced() {
    let sandbox = Sandbox::new();
    sandbox.write("wide.toml", WIDE);
    sandbox.write("my logs/tiny.swf", TINY_LOG);
    let run = || sandbox.run(&["run", "wide.toml", "--traces", "my logs"]).exits(3);
    let cause = "job 2 (record 2) needs 4 procs, the machine has 3: choose wide_jobs = \"clamp\" or \"drop\"";
    let ended = run().says(&["wide: 8 tasks, 0 done already, 8 to run", "6 of 8 tasks done", "wide: 2 tasks failed"]);
    assert_eq!(ended.stderr.matches(cause).count(), 1, "equal failures are shown once:\n{ended}");
    let data = sandbox.path("results/data");
    assert_eq!(rows::tasks(&data, "wide").len(), 6);
    let failures = rows::read(&data, "wide", "failures");
    assert_eq!(failures.len(), 2, "{failures:?}");
    for failure in &failures {
        assert!(failure["message"].as_str().is_some_and(|message| message.contains(cause)), "{failure:?}");
        // A failed task has no row in `tasks`: `plan --index` shows its parameters.
        let plan = ["plan", "wide.toml", "--traces", "my logs", "--index", &failure["task_index"].to_string()];
        sandbox.run(&plan).exits(0).prints(&["procs = 3, ", "wide_jobs = error", "it failed once"]);
    }
    // Final failures are not retried; the exit code is the same.
    run().says(&["6 done already, 0 to run, 2 failed for good"]);
    assert_eq!(rows::read(&data, "wide", "failures").len(), 2);
    sandbox.run(&["plan", "wide.toml", "--traces", "my logs", "--index", "0"]).exits(0).prints(&["it failed once"]);
    sandbox.run(&["status", "wide"]).exits(0).prints(&[
        "failed",
        cause,
        "reproduce: powersweep simulate -s source=swf",
    ]);

    let status = sandbox.run(&["status", "wide", "--format", "json"]).exits(0).json();
    let failures = status["experiments"][0]["failures"].as_array().expect("a list").clone();
    assert_eq!(failures.len(), 2);
    let folder = std::path::Path::new(BINARY).parent().expect("it is in a folder");
    for failure in failures {
        let line = failure["reproduce"].as_str().expect("a command");
        assert!(line.contains("-s procs=3 -s 'gears_ghz=[1, 2]'"), "{line}");
        let mut shell = sandbox.command("sh");
        shell.args(["-c", line]).env("POWERSWEEP_TRACES", "my logs").env("PATH", path_with(folder));
        sandbox.spawn(shell).wait().exits(2).says(&[cause]);
    }
}

/// The search path of programs, with this folder first.
pub(crate) fn path_with(folder: &std::path::Path) -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([folder.to_owned()].into_iter().chain(std::env::split_paths(&path))).expect("no colon in it")
}

/// A damaged log is refused with its place before an experiment pins it.
#[test]
fn a_truncated_log_creates_no_experiment() {
    let sandbox = Sandbox::new();
    sandbox.write("jobs.toml", JOBS);
    sandbox.write("tiny.swf", &TINY_LOG[..TINY_LOG.len() - 20]);
    let run = || sandbox.run(&["run", "jobs.toml", "--traces", "."]);
    run().exits(4).says(&["tiny.swf, line 4, field 10", "is the file truncated?"]);
    assert!(!sandbox.path("results").exists());
    sandbox.write("tiny.swf", TINY_LOG);
    run().exits(0).says(&["4 of 4 tasks done"]);
}

#[test]
fn the_jobs_table_has_one_row_for_each_job() {
    let sandbox = Sandbox::new();
    sandbox.write("jobs.toml", JOBS);
    sandbox.write("tiny.swf", TINY_LOG);
    let data = sandbox.path("results/data");
    let traces = sandbox.path("").display().to_string();
    sandbox.run_with(&["run", "jobs.toml"], &[("POWERSWEEP_TRACES", &traces)]).exits(0).says(&["4 of 4 tasks done"]);
    let jobs = rows::read(&data, "jobs", "jobs");
    assert_eq!(jobs.len(), 4 * 3);
    let tasks = rows::tasks(&data, "jobs");
    for task in tasks.values() {
        assert_eq!(task["jobs_count"], 3);
        assert_eq!(jobs.iter().filter(|job| job["task_id"] == task["task_id"]).count(), 3);
    }
}
