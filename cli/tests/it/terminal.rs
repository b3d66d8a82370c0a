//! What a terminal and other programs get: widths, messages, names.

use std::process::Stdio;

use crate::sandbox::{BINARY, Ended, Sandbox};
use crate::sweeps::{TINY_LOG, WIDE, synthetic};

/// Runs a command on a terminal of 80 columns; `None` where script(1), which makes the terminal, is missing.
pub(crate) fn on_a_terminal(sandbox: &Sandbox, command: &str, variables: &[(&str, &str)]) -> Option<Ended> {
    if sandbox.command("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: there is no script(1) here to make a terminal with");
        return None;
    }
    let mut script = sandbox.command("script");
    script.args(["--quiet", "--return", "--command"]);
    script.arg(format!("stty cols 80; '{BINARY}' {command}")).arg("/dev/null");
    script
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("LESS")
        .envs(variables.iter().copied());
    Some(sandbox.spawn(script).wait())
}

#[test]
fn tables_fit_a_terminal_and_have_one_line_for_each_row_elsewhere() {
    let sandbox = Sandbox::new();
    for command in ["check --list", "columns tasks", "plan quickstart"] {
        let args: Vec<&str> = command.split(' ').collect();
        let elsewhere = sandbox.run(&args).exits(0);
        assert!(elsewhere.stdout.lines().any(|line| line.chars().count() > 80), "{elsewhere}");
        let Some(ended) = on_a_terminal(&sandbox, command, &[]) else { return };
        let ended = ended.exits(0);
        let is_table =
            |line: &&str| !line.contains('`') && !line.starts_with("quickstart") && !line.contains("Source:");
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
    sandbox.run(&["pause", "sweap"]).exits(2).says(&["there is no experiment sweap; did you mean `sweep`"]);
    sandbox.run(&["delete", "sweep", "--data-too"]).exits(0);
    unknown("sweep", 2, "there is no experiment sweep; did you mean `sweep-2`?");

    // The rows of a deleted experiment are still there.
    sandbox.run(&["delete", "sweep-2"]).exits(0);
    sandbox.run(&["export", "sweep-2", "--output", "copy"]).exits(0).prints(&["tasks: 2 rows"]);
    sandbox.run(&["results", "sweep-2", "--table", "failures"]).exits(0).prints(&["no rows yet"]);
    let hint = "`powersweep results sweep-2` shows its rows";
    sandbox.run(&["status", "sweep-2"]).exits(2).says(&["has no state of sweep-2", hint]);
    sandbox.run(&["export", "sweep", "--output", "other"]).exits(2).says(&["did you mean `sweep-2`?"]);

    let (served, _) = sandbox.serve(&["--data", "farm"]);
    sandbox.run(&["submit", "sweep.toml", "--data", "farm"]).exits(0);
    let at = ["--data", "farm"];
    for command in ["status", "pause"] {
        let ended = sandbox.run(&[&[command, "sweap"][..], &at].concat()).exits(2);
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

    // Failures for one reason do not hide another reason.
    sandbox.write("wide.toml", WIDE.replace("procs = [3, 4]", "procs = [2, 3, 4]").replace("\"wide\"", "\"wider\""));
    sandbox.run(&["run", "wide.toml", "--quiet"]).exits(3).says(&["wider: 4 tasks failed"]);
    let status = sandbox.run(&["status", "wider", "--failures", "2"]).exits(0);
    status.prints(&["2 tasks, such as task 0", "the machine has 2", "2 tasks, such as task 2", "the machine has 3"]);
}

/// Without a terminal there is neither a colour nor a redraw, whatever the command.
#[test]
fn colors_follow_the_flag_the_environment_and_the_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write("wrong.toml", crate::sweeps::WRONG);
    let escapes = |args: &[&str], variables: &[(&str, &str)]| {
        let ended = sandbox.run_with(&[&["plan", "wrong.toml"], args].concat(), variables).exits(2);
        ended.stderr.contains("\x1b[")
    };
    let (no_color, forced) = (("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1"));
    assert!(!escapes(&[], &[]));
    assert!(escapes(&["--color", "always"], &[]));
    assert!(escapes(&["--color=always"], &[no_color]), "a flag comes before the environment");
    assert!(escapes(&[], &[forced]));
    assert!(!escapes(&[], &[forced, no_color]));
    assert!(!escapes(&["--color", "never"], &[forced]));
    sandbox.write("powersweep.toml", "color = \"always\"\n");
    assert!(escapes(&[], &[]), "the configuration decides");
    assert!(!escapes(&[], &[no_color]), "the environment comes before the configuration");
    let help = |args: &[&str]| sandbox.run(&[&["plan", "--help"], args].concat()).exits(0).stdout.contains("\x1b[");
    assert!(help(&[]) && !help(&["--color=never"]));
    sandbox.write("powersweep.toml", "");
    for (variable, expected) in [(("X", "1"), true), (("NO_COLOR", "1"), false)] {
        let Some(ended) = on_a_terminal(&sandbox, "plan wrong.toml", &[variable]) else { return };
        assert_eq!(ended.exits(2).stdout.contains("\x1b[1m"), expected, "{variable:?}");
    }
}

#[test]
fn progress_is_drawn_on_terminals_that_can_redraw_only() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    let ended = sandbox.run_with(&["run", "sweep.toml", "--data", "a"], &[("CLICOLOR_FORCE", "1")]).exits(0);
    assert!(!ended.stderr.contains(['\r', '\x1b']), "{ended}");
    let Some(ended) = on_a_terminal(&sandbox, "run sweep.toml --data b", &[("TERM", "dumb")]) else { return };
    assert!(!ended.stdout.contains('\x1b'), "{ended}");
}

#[test]
fn every_listing_is_a_json_document_with_a_version() {
    let sandbox = Sandbox::new();
    sandbox.write("tiny.swf", TINY_LOG);
    sandbox.write("sweep.toml", synthetic("sweep", 1));
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
    let at = |list: &'static str, command: &'static str| (list, command);
    for (list, command) in [
        at("experiments", "status"),
        at("axes", "plan sweep.toml"),
        at("components", "plan sweep.toml --index 0"),
        at("components", "policies"),
        at("columns", "columns"),
        at("header", "trace info tiny.swf"),
        at("papers", "check --list"),
        at("systems", "lp"),
        at("settings", "config show"),
    ] {
        let args: Vec<&str> = command.split(' ').collect();
        let short = sandbox.run(&[&args[..], &["--json"]].concat()).exits(0);
        let json = short.json();
        assert_eq!(json["version"], 1, "{short}");
        assert!(json[list].as_array().is_some_and(|list| !list.is_empty()) || json[list].is_object(), "{short}");
        let long = sandbox.run(&[&args[..], &["--format", "json"]].concat()).exits(0);
        assert_eq!(long.stdout, short.stdout);
    }
    // A row has the columns of its table.
    let row = sandbox.run(&["results", "sweep", "--json", "--columns", "task_index,queue_order"]).exits(0);
    assert_eq!(row.stdout.lines().count(), 2, "{row}");
}

#[test]
fn shells_and_man_get_every_command() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        sandbox.run(&["completions", shell]).exits(0).prints(&["powersweep", "submit", "color", "traces"]);
    }
    sandbox.run(&["completions", "cmd"]).exits(2);
    let script = sandbox.write("completions.bash", sandbox.run(&["completions", "bash"]).exits(0).stdout);
    let mut bash = sandbox.command("bash");
    let line = "COMP_WORDS=(powersweep sub); COMP_CWORD=1; _powersweep powersweep sub powersweep; echo ${COMPREPLY[@]}";
    bash.args(["-c", &format!("source '{}' && {line}", script.display())]);
    sandbox.spawn(bash).wait().exits(0).prints(&["submit"]);
    sandbox.run(&["man"]).exits(0).prints(&[".TH powersweep 1", "POWERSWEEP_LOG"]);
    sandbox.run(&["man", "--output", "pages"]).exits(0);
    for page in ["powersweep.1", "powersweep-run.1", "powersweep-trace-info.1", "powersweep-config-show.1"] {
        let text = std::fs::read_to_string(sandbox.path("pages").join(page)).expect(page);
        assert!(text.contains(".SH NAME") && text.contains("Example") == (page != "powersweep.1"), "{text}");
    }
}
