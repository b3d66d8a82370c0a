//! Names, values and messages of others on a terminal: nothing in them steers it.

use crate::sandbox::{Ended, Sandbox};
use crate::sweeps::{JOBS, TINY_LOG};
use crate::terminal::on_a_terminal;

/// Sets the window's title, clears the screen, begins a sequence by its other form, and turns the reading direction.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}1m\u{202e}";

/// A TOML string with control characters.
const HOSTILE_TOML: &str = "\\u001b]0;owned\\u0007\\u001b[2J\\u009b1m\\u202e";

const NO_COLOR: [(&str, &str); 1] = [("NO_COLOR", "1")];

fn harmless(ended: &Ended) {
    for part in ["\u{1b}]", "\u{7}", "\u{1b}[2J", "\u{9b}", "\u{202e}"] {
        assert!(!ended.stdout.contains(part), "{part:?} in {:?}", ended.stdout);
    }
}

/// A log whose name and header are hostile, and a manifest, which names it.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(&format!("log{HOSTILE}.swf"), format!("; Computer: {HOSTILE}\n; Note: {HOSTILE}\n{TINY_LOG}"));
    let manifest = JOBS.replace("\"tiny\"", &format!("\"./log{HOSTILE_TOML}.swf\""));
    sandbox.write(&format!("sweep{HOSTILE}.toml"), manifest);
    sandbox
}

#[test]
fn a_terminal_gets_no_escapes_of_manifests_logs_files_and_messages() {
    let sandbox = sandbox();
    sandbox
        .write("wrong.toml", format!("version = 1\nname = \"{HOSTILE_TOML}\"\n\"{HOSTILE_TOML}\" = 1\n# {HOSTILE}\n"));
    sandbox.write("broken.toml", format!("version = 1\nname {HOSTILE}\n"));
    let (log, manifest) = (format!("'./log{HOSTILE}.swf'"), format!("'sweep{HOSTILE}.toml'"));
    let commands = [
        (format!("plan {manifest}"), 0),
        (format!("plan {manifest} --index 0"), 0),
        (format!("plan {manifest} --json"), 0),
        (format!("trace info {log}"), 0),
        (format!("trace info {log} --json"), 0),
        (format!("run {manifest} -v -v --data 'data{HOSTILE}'"), 0),
        (format!("status --data 'data{HOSTILE}'"), 0),
        (format!("status jobs --data 'data{HOSTILE}' --json"), 0),
        (format!("events jobs --data 'data{HOSTILE}'"), 0),
        (format!("plan 'missing{HOSTILE}.toml'"), 2),
        (format!("plan '--no{HOSTILE}'"), 2),
        (format!("trace info 'missing{HOSTILE}'"), 4),
        (format!("results '{HOSTILE}'"), 2),
        (format!("results jobs --data 'data{HOSTILE}' --columns 'log,{HOSTILE}'"), 2),
        ("plan wrong.toml".to_owned(), 2),
        ("plan broken.toml".to_owned(), 2),
    ];
    for (command, code) in commands {
        let Some(ended) = on_a_terminal(&sandbox, &command, &NO_COLOR) else { return };
        let drawn = command.starts_with("run");
        assert!(drawn || !ended.stdout.contains('\u{1b}'), "{command:?}: {:?}", ended.stdout);
        harmless(&ended);
        ended.exits(code);
    }
    let by_variable = [("POWERSWEEP_SLOTS", HOSTILE), ("POWERSWEEP_LOG", HOSTILE)];
    harmless(&on_a_terminal(&sandbox, "worker", &by_variable).expect("there was a terminal").exits(2));
}

/// Colours are this program's own.
#[test]
fn a_coloured_message_has_no_other_escapes() {
    let sandbox = sandbox();
    let manifest =
        format!("version = 1\nname = \"n\"\n\"{HOSTILE_TOML}\" = 1\n# {HOSTILE}\n[policies.q]\n{HOSTILE} = 1\n");
    sandbox.write(&format!("wrong{HOSTILE}.toml"), manifest);
    let Some(ended) = on_a_terminal(&sandbox, &format!("plan 'wrong{HOSTILE}.toml'"), &[]) else { return };
    assert!(ended.stdout.contains("\u{1b}[1m"), "{:?}", ended.stdout);
    harmless(&ended.exits(2));
}

/// The values are in the column `log`.
#[test]
fn rows_are_shown_with_escapes_and_written_as_they_are() {
    let sandbox = sandbox();
    sandbox.run(&["run", &format!("sweep{HOSTILE}.toml"), "--quiet"]).exits(0);
    let columns = "results jobs --columns task_index,log";
    for format in ["table", "csv", "json", "markdown", "latex", "typst"] {
        for more in ["", " --by log"] {
            let command =
                format!("{columns}{more} --format {format}").replace(" --columns task_index,log --by", " --by");
            let Some(ended) = on_a_terminal(&sandbox, &command, &NO_COLOR) else { return };
            assert!(!ended.stdout.contains('\u{1b}'), "{command:?}: {:?}", ended.stdout);
            assert!(ended.stdout.contains("009b1m"), "{command:?}: {:?}", ended.stdout);
            harmless(&ended.exits(0));
        }
    }
    let piped =
        |format: &str| sandbox.run(&["results", "jobs", "--columns", "task_index,log", "--format", format]).exits(0);
    assert_eq!(piped("csv").stdout.matches(HOSTILE).count(), 4);
    let line = piped("json").stdout;
    let row: serde_json::Value = serde_json::from_str(line.lines().next().expect("a row")).expect("JSON");
    assert_eq!(row["log"], format!("./log{HOSTILE}.swf"));
    let facts = sandbox.run(&["trace", "info", &format!("./log{HOSTILE}.swf"), "--json"]).exits(0).stdout;
    assert!(facts.contains("\\u009b") && !facts.contains('\u{9b}'), "{facts}");
    let facts: serde_json::Value = serde_json::from_str(&facts).expect("JSON");
    assert!(facts["header"].to_string().contains('\u{9b}'), "{facts}");
}
