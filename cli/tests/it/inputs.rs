//! Wrong manifests, logs and parameters: each error has its exit code, the place and a hint. No file is written.

use std::io::Write;

use crate::sandbox::{Ended, Sandbox, contents};
use crate::sweeps::{TINY_LOG, WIDE, WRONG, synthetic};

/// Runs a command that must be refused and change no file.
#[track_caller]
fn refused(sandbox: &Sandbox, args: &[&str], code: i32) -> Ended {
    let before = contents(&sandbox.path(""));
    let ended = sandbox.run(args).exits(code);
    assert!(ended.stdout.is_empty(), "{ended}");
    assert!(ended.stderr.starts_with("powersweep: "), "{ended}");
    assert_eq!(contents(&sandbox.path("")), before, "{ended}");
    ended
}

#[test]
fn a_wrong_manifest_shows_every_problem_with_its_place() {
    let sandbox = Sandbox::new();
    sandbox.write("wrong.toml", WRONG);
    for command in ["run", "plan", "submit"] {
        refused(&sandbox, &[command, "wrong.toml"], 2).says(&[
            "7 problems in wrong.toml",
            "wrong.toml:2:8",
            "`my-sweep` would be valid",
            "wrong.toml:3:29",
            "expected an integer of at least 1",
            "there is no source \"lublim\"",
            "did you mean `lublin`?",
            "[workloads.synthetic] has no key `synthetic_job_count`",
            "did you mean `synthetic_jobs_count`?",
            "did you mean `backfill`?",
            "12 | bsld_threshold = { from = 1.5, to = 3, step = 0 }\n",
            "   |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ expected a `step` above 0",
            "13 | wq_threshold = [0, 16, \"unlimitd\"]\n",
            "   |                        ^^^^^^^^^^ expected a number of at least 0 jobs or \"unlimited\"",
        ]);
    }
    refused(&sandbox, &["simulate", "wrong.toml", "--index", "0"], 2).says(&["7 problems in wrong.toml"]);
}

/// The drawing of the problems on a terminal has their head only once.
#[test]
fn a_terminal_shows_each_problem_once() {
    let sandbox = Sandbox::new();
    sandbox.write("wrong.toml", WRONG);
    let mut script = sandbox.command("script");
    script.args(["--quiet", "--return", "--command"]);
    script.arg(format!("'{}' plan wrong.toml", crate::sandbox::BINARY)).arg("/dev/null");
    if script.stdout(std::process::Stdio::null()).status().is_err() {
        println!("skipped: there is no script(1) here to make a terminal with");
        return;
    }
    let mut script = sandbox.command("script");
    script.args(["--quiet", "--return", "--command"]);
    script.arg(format!("'{}' plan wrong.toml", crate::sandbox::BINARY)).arg("/dev/null");
    let ended = sandbox.spawn(script).wait().exits(2);
    assert_eq!(ended.stdout.matches("7 problems in").count(), 1, "{ended}");
    assert_eq!(ended.stdout.matches("did you mean `lublin`?").count(), 1, "{ended}");
}

#[test]
fn a_missing_manifest_or_wrong_toml_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("broken.toml", "version = 1\nname = \n");
    refused(&sandbox, &["plan", "broken.toml"], 2).says(&["1 problem in broken.toml", "broken.toml:2:8"]);
    refused(&sandbox, &["run", "nosuch.toml"], 2).says(&["no manifest file nosuch.toml", "quickstart, etinski2010"]);
    refused(&sandbox, &["run", "etinsky2010"], 2).says(&["did you mean `etinski2010`?"]);
    sandbox.write("binary.toml", [0xFF, 0xFE, 0]);
    refused(&sandbox, &["run", "binary.toml"], 2).says(&["cannot read the manifest binary.toml"]);
    sandbox.write("latin.toml", b"version = 1\nname = \"caf\xe9\"\n");
    refused(&sandbox, &["plan", "latin.toml"], 2).says(&["manifest latin.toml: line 2 is no text in UTF-8"]);
}

#[test]
fn wrong_settings_are_refused_with_the_expectation() {
    let sandbox = Sandbox::new();
    let simulate = |setting: &str| refused(&sandbox, &["simulate", "--set", setting], 2);
    simulate("queue_order=sjff").says(&["unknown queue_order `sjff`; did you mean `sjf`?"]);
    simulate("bsld_treshold=2").says(&["unknown component or parameter `bsld_treshold`", "`bsld_threshold`"]);
    simulate("synthetic_job_count=2").says(&["did you mean `synthetic_jobs_count`"]);
    simulate("zzzzzz=2").says(&["unknown component or parameter `zzzzzz`", "powersweep policies"]);
    simulate("bsld_threshold=2").says(&["`bsld_threshold` belongs to gear_rule `bsld`: add -s gear_rule=bsld"]);
    simulate("gear_rule=bsld").says(&["`bsld_threshold` is required by `bsld`"]);
    simulate("synthetic_jobs_count=-1").says(&["`synthetic_jobs_count` must be an integer from 1 to", "not -1"]);
    simulate("synthetic_jobs_count=100000000000").says(&["takes up to", "bytes of memory"]);
    simulate("synthetic_procs=many").says(&["`synthetic_procs` must be an integer", "not \"many\""]);
    simulate("gears_ghz=[1, -2]")
        .says(&["`gears_ghz` must be a list of numbers, each of at least 1e-6", "not -2 (value 2 of 2)"]);
    simulate("gears_ghz=[]").says(&["not an empty list"]);
    simulate("queue_order").says(&["--set queue_order: a setting is KEY=VALUE"]);
    refused(&sandbox, &["policies", "easey"], 2)
        .says(&["unknown component or parameter `easey`; did you mean `easy`?"]);
    refused(&sandbox, &["columns", "task"], 2)
        .says(&["unknown table or column `task`; did you mean `tasks` or `task_id`?"]);
    refused(&sandbox, &["status", "nope"], 2).says(&["give the folder of the results with --data"]);
    sandbox.run(&["run", "--slots", "100000"]).exits(2).says(&["100000 is not in 0..=1024"]);
    let ended = sandbox.run(&["runn"]).exits(2);
    assert!(ended.stderr.contains("similar") && ended.stderr.contains("'run'"), "{ended}");
}

#[test]
fn an_index_without_a_task_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("small.toml", synthetic("small", 2) + "[[exclude]]\nseed = 2\nqueue_order = \"sjf\"\n");
    for command in ["plan", "simulate"] {
        refused(&sandbox, &[command, "small.toml", "--index", "9"], 2).says(&["has no task 9: indices end at 3"]);
        refused(&sandbox, &[command, "small.toml", "--index", "3"], 2).says(&["has no task 3", "exclude"]);
    }
}

#[test]
fn a_job_wider_than_the_machine_is_refused_or_clamped() {
    let sandbox = Sandbox::new();
    sandbox.write("tiny.swf", TINY_LOG);
    let args = ["simulate", "--log", "./tiny.swf", "--set", "procs=3"];
    refused(&sandbox, &args, 2).says(&["job 2 (record 2) needs 4 procs, the machine has 3", "wide_jobs = \"clamp\""]);
    let ended = sandbox.run(&[&args[..], &["-s", "wide_jobs=clamp", "--format", "json"]].concat()).exits(0);
    assert_eq!(ended.json()["clamped_count"], 1);
}

/// `TINY_LOG` many times, compressed by gzip.
fn gzipped(sandbox: &Sandbox) -> Vec<u8> {
    let mut gzip = sandbox.command("gzip");
    gzip.arg("--stdout").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut gzip = gzip.spawn().expect("gzip is there");
    gzip.stdin.take().expect("it is piped").write_all(TINY_LOG.repeat(50).as_bytes()).expect("it reads");
    gzip.wait_with_output().expect("it ends").stdout
}

#[test]
fn a_damaged_log_is_refused_with_its_place() {
    let sandbox = Sandbox::new();
    let whole = gzipped(&sandbox);
    assert!(whole.len() > 60);
    let mut flipped = whole.clone();
    flipped[40] ^= 0xFF;
    sandbox.write("cut.swf.gz", &whole[..whole.len() / 2]);
    sandbox.write("flipped.swf.gz", flipped);
    sandbox.write("not.swf.gz", "not gzip\n");
    sandbox.write("cut.swf", &TINY_LOG[..TINY_LOG.len() - 20]);
    sandbox.write("words.swf", "; MaxProcs: 4\nhello\n");
    for (name, place, hint) in [
        ("cut.swf.gz", "./cut.swf.gz is a damaged or incomplete gzip file", "download it again"),
        ("flipped.swf.gz", "./flipped.swf.gz is a damaged or incomplete gzip file", "download it again"),
        ("not.swf.gz", "./not.swf.gz is a damaged or incomplete gzip file", "download it again"),
        ("cut.swf", "./cut.swf, line 4, field 10 (requested memory)", "is the file truncated?"),
        ("words.swf", "./words.swf, line 2, field 1 (job number)", "expected a number, found `hello`"),
    ] {
        let log = format!("./{name}");
        refused(&sandbox, &["trace", "info", &log], 4).says(&[place, hint]);
        refused(&sandbox, &["simulate", "--log", &log], 4).says(&[place, hint]);
    }
}

/// A sweep reads its logs before it stores anything.
#[test]
fn a_sweep_on_a_damaged_log_stores_nothing() {
    let sandbox = Sandbox::new();
    let whole = gzipped(&sandbox);
    sandbox.write("wide.toml", WIDE);
    sandbox.write("tiny.swf.gz", &whole[..whole.len() / 2]);
    refused(&sandbox, &["run", "wide.toml", "--traces", "."], 4).says(&["damaged or incomplete gzip file"]);
    refused(&sandbox, &["submit", "wide.toml", "--traces", "."], 4).says(&["damaged or incomplete gzip file"]);
}

#[test]
fn a_missing_log_is_refused_with_a_hint() {
    let sandbox = Sandbox::new();
    sandbox.write("wide.toml", WIDE);
    sandbox.write("logs/tiny2.swf", TINY_LOG);
    let hint = "POWERSWEEP_TRACES";
    for command in ["run", "plan", "submit"] {
        refused(&sandbox, &[command, "wide.toml"], 4).says(&["there is no log `tiny`", hint]);
        let args = [command, "wide.toml", "--traces", "logs"];
        refused(&sandbox, &args, 4).says(&["there is no log `tiny`", "looked in logs", "tiny2", hint]);
    }
    refused(&sandbox, &["trace", "info", "KTH"], 4).says(&["there is no log `KTH`", hint]);
    refused(&sandbox, &["trace", "info", "./logs"], 4).says(&["logs is a folder, not a file"]);
    let ended = refused(&sandbox, &["trace", "info", "./nope.swf"], 4).says(&["./nope.swf"]);
    assert!(!ended.stderr.contains(hint), "a path is not searched for: {ended}");
}

#[test]
fn a_manifest_may_be_a_pipe_and_a_log_may_not() {
    let sandbox = Sandbox::new();
    let pipe = sandbox.path("pipe.swf");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    sandbox.run(&["trace", "info", "./pipe.swf"]).exits(4).says(&["pipe.swf is a pipe: a file is needed"]);
    let pipe = sandbox.path("pipe.toml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    let manifest = std::thread::spawn(move || std::fs::write(pipe, crate::sweeps::synthetic("piped", 1)));
    sandbox.run(&["plan", "pipe.toml"]).exits(0).prints(&["piped"]);
    manifest.join().expect("no panic").expect("it was read");
}
