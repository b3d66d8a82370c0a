//! Every command of the documents runs as it is written.
//!
//! A fenced block's info string says what is done with it: `sh` runs; `toml file=NAME` becomes that file; `sql` and
//! `python` run where POWERSWEEP_PYTHON is set; `needs=traces` skips where POWERSWEEP_TRACES is not set;
//! `each=terminal` starts the lines side by side until the last one ends; `elsewhere: REASON` is not run here, only its
//! `powersweep` commands are read. Anything else fails.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::runs::path_with;
use crate::sandbox::{BINARY, Running, Sandbox};

/// One fenced block.
#[derive(Debug)]
struct Block {
    /// Document and line of its fence.
    place: String,
    language: String,
    tag: String,
    text: String,
}

fn blocks(document: &str) -> Vec<Block> {
    let path = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("..").join(document);
    let text = std::fs::read_to_string(path).expect("the document is there");
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(info) if !inside => {
                let (language, tag) = info.split_once(' ').unwrap_or((info, ""));
                let place = format!("{document}:{}", number + 1);
                let (language, tag) = (language.to_owned(), tag.to_owned());
                blocks.push(Block { place, language, tag, text: String::new() });
                inside = true;
            }
            Some(end) => {
                assert!(end.is_empty(), "{document}:{}: a fence in a block", number + 1);
                inside = false;
            }
            None if inside => {
                let block = blocks.last_mut().expect("a block is open");
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!inside, "{document}: the last block is not closed");
    blocks
}

/// Where blocks run: a scratch folder with `powersweep` and `cargo` on the path.
struct Desk {
    sandbox: Sandbox,
    home: PathBuf,
    traces: Option<PathBuf>,
    python: Option<PathBuf>,
}

impl Desk {
    fn new() -> Desk {
        let sandbox = Sandbox::new();
        let setting = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // The documents speak of $HOME/traces.
        let traces = setting("POWERSWEEP_TRACES");
        let home = sandbox.path("home");
        std::fs::create_dir(&home).expect("it can be made");
        if let Some(traces) = &traces {
            symlink(traces, home.join("traces")).expect("it can be linked");
        }
        // `cargo run --release --` is the binary under test: the documents' builds are not this test's business.
        let cargo = "#!/bin/sh\n[ \"$1 $2 $3\" = 'run --release --' ] || { echo \"cargo $*?\" >&2; exit 99; }\nshift 3\n\
                     exec powersweep \"$@\"\n";
        let cargo = sandbox.write("home/bin/cargo", cargo);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(cargo, mode).expect("it can be made a program");
        symlink(BINARY, home.join("bin/powersweep")).expect("it can be linked");
        Desk { sandbox, home, traces, python: setting("POWERSWEEP_PYTHON") }
    }

    fn start(&self, program: &Path, args: &[&str], variables: &[(&str, &str)]) -> Running {
        let mut command = self.sandbox.command(program.to_str().expect("a program's name is text"));
        command.args(args).env("HOME", &self.home).env("PATH", path_with(&self.home.join("bin")));
        if let Some(traces) = &self.traces {
            command.env("POWERSWEEP_TRACES", traces);
        }
        command.envs(variables.iter().copied());
        self.sandbox.spawn(command)
    }

    /// The commands of several terminals: the last one's end is the end of all.
    fn terminals(&self, block: &Block) {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").to_string();
        let url = format!("http://{port}");
        let variables = [("POWERSWEEP_LISTEN", port.as_str()), ("POWERSWEEP_COORDINATOR", url.as_str())];
        let start = |line: &str| self.start(Path::new("sh"), &["-ec", line], &variables);
        let lines: Vec<&str> = block.text.lines().collect();
        let (last, others) = lines.split_last().expect("a block has lines");
        let mut terminals = Vec::new();
        for line in others {
            let mut terminal = start(&format!("exec {line}"));
            terminal.says(if line.contains("serve") { "serving" } else { "connected to" });
            terminals.push(terminal);
        }
        let ended = start(last).wait();
        assert_eq!(ended.code(), Some(0), "{}: {ended}", block.place);
        for terminal in terminals.into_iter().rev() {
            terminal.signal("TERM");
            terminal.wait().exits(0);
        }
    }

    /// Whether the arguments of every `powersweep` of a block are ones that it knows.
    fn read(&self, block: &Block) {
        for command in block.text.lines().flat_map(|line| line.split("&&")) {
            let command = command.split('#').next().unwrap_or_default().trim();
            if let Some(arguments) = command.strip_prefix("powersweep ") {
                let mut arguments: Vec<&str> = arguments.split_whitespace().collect();
                arguments.push("--help");
                self.sandbox.run(&arguments).exits(0);
            }
        }
    }

    /// Runs a block, or says why not.
    fn perform(&self, block: &Block) {
        let Block { place, language, tag, text } = block;
        if let Some(reason) = tag.strip_prefix("elsewhere: ") {
            println!("{place}: not run here: {reason}");
            self.read(block);
            return;
        }
        if tag == "needs=traces" && self.traces.is_none() {
            println!("skipped: {place} needs POWERSWEEP_TRACES");
            return;
        }
        println!("{place}: {}", text.trim_end());
        let program = match (language.as_str(), tag.as_str()) {
            ("toml", tag) if tag.starts_with("file=") => {
                self.sandbox.write(&tag["file=".len()..], text);
                return;
            }
            ("sh", "each=terminal") => return self.terminals(block),
            ("sh", "" | "needs=traces") => (PathBuf::from("sh"), vec!["-ec", text]),
            ("sql" | "python", "" | "needs=traces") => {
                let Some(python) = &self.python else {
                    println!("skipped: {place} needs POWERSWEEP_PYTHON");
                    return;
                };
                let sql = ["-c", "import duckdb, sys; duckdb.sql(sys.argv[1]).show()", text];
                (python.clone(), if language == "sql" { sql.to_vec() } else { vec!["-c", text] })
            }
            _ => panic!("{place}: what is to be done with a block ```{language} {tag}?"),
        };
        let ended = self.start(&program.0, &program.1, &[]).wait();
        assert_eq!(ended.code(), Some(0), "{place}: {ended}");
    }

    fn document(&self, name: &str) {
        let blocks = blocks(name);
        assert!(!blocks.is_empty(), "{name} has no block");
        blocks.iter().for_each(|block| self.perform(block));
    }

    fn rows(&self, experiment: &str) -> usize {
        crate::rows::tasks(&self.sandbox.path("results/data"), experiment).len()
    }
}

#[test]
fn every_command_of_the_documents_runs() {
    let desk = Desk::new();
    desk.document("README.md");
    assert_eq!(desk.rows("quickstart"), 88);
    assert_eq!(desk.rows("my-sweep"), 36, "the product of all axes");
    assert!(desk.sandbox.path("jobs.csv").exists());
    assert_eq!(desk.rows("etinski2010"), if desk.traces.is_some() { 125 } else { 0 });
    desk.document("CONTRIBUTING.md");
    desk.document("results/queries/README.md");
}

/// The quickstart explains every section, as README says, and what stands in it as a comment can be used.
#[test]
fn the_quickstart_manifest_explains_every_section() {
    let path = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../experiments/manifests/quickstart.toml");
    let text = std::fs::read_to_string(path).expect("it is there");
    let schema = Sandbox::new().run(&["schema"]).exits(0).json();
    for section in schema["properties"].as_object().expect("a manifest has sections").keys() {
        assert!(text.contains(section.as_str()), "experiments/manifests/quickstart.toml does not explain `{section}`");
    }
    let sandbox = Sandbox::new();
    let used = text.replace("\n# tables = ", "\ntables = ").replace("\n# zip = ", "\nzip = ");
    let used = used.replace("\n# limits = ", "\nlimits = ");
    assert_eq!(used.len() + 6, text.len(), "three settings are commented out");
    sandbox.write("used.toml", used);
    sandbox.run(&["plan", "used.toml"]).exits(0).prints(&["quickstart: 88 tasks, 0 done already, 88 would run"]);
}
