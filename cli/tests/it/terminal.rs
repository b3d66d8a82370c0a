//! What a terminal and other programs get: widths, messages, names.

use std::process::Stdio;

use crate::sandbox::{BINARY, Ended, Sandbox};
use crate::sweeps::{TINY_LOG, WIDE, synthetic};

/// Runs a command on a terminal of 80 columns; `None` where script(1), which makes the terminal, is missing.
fn on_a_terminal(sandbox: &Sandbox, command: &str, variables: &[(&str, &str)]) -> Option<Ended> {
    if sandbox.command("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: there is no script(1) here to make a terminal with");
        return None;
    }
    let mut script = sandbox.command("script");
    script.args(["--quiet", "--return", "--command"]);
    script.arg(format!("stty cols 80; '{BINARY}' {command}")).arg("/dev/null");
    script.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied());
    Some(sandbox.spawn(script).wait())
}

#[test]
fn tables_fit_a_terminal_and_have_one_line_for_each_row_elsewhere() {
    let sandbox = Sandbox::new();
    for command in ["check --list", "policies", "columns tasks", "plan quickstart"] {
        let args: Vec<&str> = command.split(' ').collect();
        let elsewhere = sandbox.run(&args).exits(0);
        assert!(elsewhere.stdout.lines().any(|line| line.chars().count() > 80), "{elsewhere}");
        let Some(ended) = on_a_terminal(&sandbox, command, &[]) else { return };
        let ended = ended.exits(0);
        let is_table = |line: &&str| !line.contains('`') && !line.starts_with("quickstart") && !line.contains("Source:");
        for line in ended.stdout.lines().filter(is_table) {
            assert!(line.chars().count() <= 80, "{line:?} in\n{ended}");
        }
    }
}

#[test]
fn a_broken_log_filter_is_reported() {
    let sandbox = Sandbox::new();
    let plan = |filter: &str| sandbox.run_with(&["plan"], &[("POWERSWEEP_LOG", filter)]).exits(0);
    plan("powersweep=debgu,warn").says(&["POWERSWEEP_LOG: `powersweep=debgu` is ignored", "did you mean `debug`?"]);
    plan("info, powersweep").says(&["POWERSWEEP_LOG: `powersweep` is ignored: expected LEVEL or TARGET=LEVEL"]);
    assert!(plan("powersweep_worker=trace,warn").stderr.is_empty());
}

/// A name that is not there gets similar names, never the same one.
#[test]
fn an_unknown_experiment_gets_similar_names() {
    let sandbox = Sandbox::new();
    for name in ["sweep", "sweep-2"] {
        sandbox.write(&format!("{name}.toml"), synthetic(name, 1));
        sandbox.run(&["run", &format!("{name}.toml"), "--quiet"]).exits(0);
    }
    let unknown = |name: &str, code: i32, said: &str| {
        for command in ["results NAME", "export NAME -o copy", "status NAME"] {
            let args: Vec<&str> = command.split(' ').map(|word| if word == "NAME" { name } else { word }).collect();
            sandbox.run(&args).exits(code).says(&[said]);
        }
    };
    unknown("sweap", 2, "there is no experiment sweap; did you mean `sweep`");
    sandbox.run(&["pause", "sweap"]).exits(8).says(&["there is no experiment sweap; did you mean `sweep`"]);
    sandbox.run(&["delete", "sweep", "--data-too"]).exits(0);
    unknown("sweep", 2, "there is no experiment sweep; did you mean `sweep-2`?");

    // The rows of a deleted experiment are still there.
    sandbox.run(&["delete", "sweep-2"]).exits(0);
    sandbox.run(&["export", "sweep-2", "--output", "copy"]).exits(0).prints(&["tasks: 2 rows"]);
    sandbox.run(&["results", "sweep-2", "--table", "failures"]).exits(0).prints(&["no rows yet"]);
    let hint = "`powersweep results sweep-2` shows its rows";
    sandbox.run(&["status", "sweep-2"]).exits(2).says(&["has no state of sweep-2", hint]);
    sandbox.run(&["export", "sweep", "--output", "other"]).exits(2).says(&["did you mean `sweep-2`?"]);

    let (served, url) = sandbox.serve(&["--data", "farm"]);
    sandbox.run(&["submit", "sweep.toml", "--coordinator", &url]).exits(0);
    let at = ["--coordinator", url.as_str()];
    for command in ["status", "pause"] {
        let ended = sandbox.run(&[&[command, "sweap"][..], &at].concat()).exits(8);
        ended.says(&["there is no experiment sweap; did you mean `sweep`?"]);
    }
    crate::farm::terminate(served);
}

/// Two of eight tasks fail for one reason.
#[test]
fn equal_failures_are_shown_once() {
    let sandbox = Sandbox::new();
    sandbox.write("wide.toml", WIDE);
    sandbox.write("tiny.swf", TINY_LOG);
    let cause = "2 tasks, such as task 0 (attempt 1, local-";
    sandbox.run(&["run", "wide.toml", "--quiet"]).exits(3).says(&["wide: 2 tasks failed", cause, "reproduce: "]);
    let status = sandbox.run(&["status", "wide", "--failures", "1"]).exits(0).prints(&[cause]);
    assert_eq!(status.stdout.matches("reproduce: ").count(), 1, "{status}");
    assert!(!status.stdout.contains("more:"), "the equal failure is counted: {status}");
}
