//! Every command of the documents runs word for word.
//!
//! The info string of a fenced block says how the test treats the block:
//!
//! | info string | treatment |
//! |---|---|
//! | `sh` | runs |
//! | `toml file=NAME` | is written to that file |
//! | `sql`, `python` | run where POWERSWEEP_PYTHON is set |
//! | `needs=figures` | runs where the binary has the feature `figures`; its arguments are checked everywhere |
//! | `needs=traces` | is skipped where POWERSWEEP_TRACES is not set |
//! | `needs=unfinished` | runs after the first sweep got more tasks |
//! | `needs=traces,figures` | needs both |
//! | `each=terminal` | its lines start side by side; the end of the last line ends the others |
//! | `printed` | each line, but for `...`, begins a line that the block before it printed |
//! | `elsewhere: REASON` | does not run; only the arguments of its `powersweep` commands are checked |
//!
//! Any other info string fails. The arguments of commands in the running text of the guide are checked, too.

use std::cell::RefCell;
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

/// The root of the workspace.
fn root() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("..")
}

/// The pages in a folder and its subfolders, sorted.
fn pages(folder: &str) -> Vec<String> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(root().join(folder)).expect("the folder exists") {
        let entry = entry.expect("the entry can be read");
        let name = format!("{folder}/{}", entry.file_name().to_str().expect("the name is UTF-8"));
        if entry.path().is_dir() {
            pages.extend(self::pages(&name));
        } else if name.ends_with(".md") {
            pages.push(name);
        }
    }
    pages.sort();
    pages
}

fn blocks(document: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(document)).expect("the document exists");
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

/// The commands in the running text of a page, one on each line. A word in capitals stands for the user's.
fn inline_commands(document: &str) -> Block {
    let text = std::fs::read_to_string(root().join(document)).expect("the document exists");
    let prose = text.split("```").step_by(2).collect::<String>();
    let pieces = prose.split('`').skip(1).step_by(2).filter(|code| code.starts_with("powersweep "));
    let is_placeholder =
        |word: &str| word.trim_matches(|c| "[]<>.".contains(c)).bytes().all(|b| b.is_ascii_uppercase());
    let mut commands = String::new();
    for words in pieces.map(|code| code.split_whitespace().collect::<Vec<_>>()) {
        if !words.iter().any(|word| is_placeholder(word)) {
            commands.push_str(&(words.join(" ") + "\n"));
        }
    }
    Block { place: document.to_owned(), language: String::new(), tag: String::new(), text: commands }
}

/// A scratch folder in which blocks run, with `powersweep` and `cargo` on the path.
struct Shell {
    sandbox: Sandbox,
    home: PathBuf,
    traces: Option<PathBuf>,
    python: Option<PathBuf>,
    /// What the last block printed; `None` if it did not run.
    printed: RefCell<Option<String>>,
}

impl Shell {
    fn new() -> Shell {
        let sandbox = Sandbox::new();
        let setting = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // The documents name the folder $HOME/traces.
        let traces = setting("POWERSWEEP_TRACES");
        let home = sandbox.path("home");
        std::fs::create_dir(&home).expect("it can be made");
        if let Some(traces) = &traces {
            symlink(traces, home.join("traces")).expect("it can be linked");
        }
        // `cargo run --release --` starts the binary under test instead of building another one.
        let cargo = "#!/bin/sh\n[ \"$1 $2 $3\" = 'run --release --' ] || { echo \"cargo $*?\" >&2; exit 99; }\nshift 3\n\
                     exec powersweep \"$@\"\n";
        let cargo = sandbox.write("home/bin/cargo", cargo);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(cargo, mode).expect("it can be made a program");
        symlink(BINARY, home.join("bin/powersweep")).expect("it can be linked");
        Shell { sandbox, home, traces, python: setting("POWERSWEEP_PYTHON"), printed: RefCell::default() }
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

    /// Runs each line in a terminal of its own until the last line ends.
    fn terminals(&self, block: &Block) {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").to_string();
        let variables = [("POWERSWEEP_LISTEN", port.as_str())];
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

    /// Makes the first sweep unfinished: submits it with more seeds to a coordinator without workers.
    fn add_tasks(&self) {
        let manifest = std::fs::read_to_string(self.sandbox.path("sweep.toml")).expect("the first manifest exists");
        let more = manifest.replace("count = 3", "count = 6");
        assert_ne!(manifest, more, "the first sweep has three seeds");
        self.sandbox.write("sweep.toml", more);
        let (serving, url) = self.sandbox.serve(&[]);
        self.sandbox.run(&["submit", "sweep.toml", "--coordinator", &url]).exits(0).prints(&["36 to run"]);
        serving.signal("TERM");
        serving.wait().exits(0);
    }

    /// Checks that `powersweep` knows the arguments of its commands in a block.
    fn check_arguments(&self, block: &Block) {
        for command in block.text.lines().flat_map(|line| line.split("&&")) {
            let command = command.split('#').next().unwrap_or_default().trim();
            if command.starts_with("powersweep ") {
                self.start(Path::new("sh"), &["-ec", &format!("{command} --help")], &[]).wait().exits(0);
            }
        }
    }

    /// Compares a block with what the block before it printed.
    fn compare(&self, Block { place, text, .. }: &Block) {
        let Some(printed) = &*self.printed.borrow() else {
            println!("skipped: {place}: the block before it did not run");
            return;
        };
        let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = printed.lines().map(squeezed).collect();
        for line in text.lines().map(squeezed).filter(|line| line != "...") {
            assert!(lines.iter().any(|printed| printed.starts_with(&line)), "{place}: {line:?} is not in\n{printed}");
        }
    }

    /// Treats a block as its info string says.
    fn perform(&self, block: &Block) {
        let Block { place, language, tag, text } = block;
        if tag == "printed" {
            return self.compare(block);
        }
        self.printed.take();
        if let Some(reason) = tag.strip_prefix("elsewhere: ") {
            println!("{place}: not run here: {reason}");
            self.check_arguments(block);
            return;
        }
        let needs: Vec<&str> = tag.strip_prefix("needs=").map(|all| all.split(',').collect()).unwrap_or_default();
        let is_known = needs.iter().all(|need| ["traces", "figures", "unfinished"].contains(need));
        if needs.contains(&"figures") {
            self.check_arguments(block);
        }
        if needs.contains(&"traces") && self.traces.is_none() {
            println!("skipped: {place} needs POWERSWEEP_TRACES");
            return;
        }
        if needs.contains(&"figures") && !cfg!(feature = "figures") {
            println!("skipped: {place} needs the feature `figures`");
            return;
        }
        if needs.contains(&"unfinished") {
            self.add_tasks();
        }
        println!("{place}: {}", text.trim_end());
        let program = match (language.as_str(), tag.as_str()) {
            ("toml", tag) if tag.starts_with("file=") => {
                self.sandbox.write(&tag["file=".len()..], text);
                return;
            }
            ("sh", "each=terminal") => return self.terminals(block),
            ("sh", tag) if is_known && (tag.is_empty() || !needs.is_empty()) => {
                (PathBuf::from("sh"), vec!["-ec", text])
            }
            ("sql" | "python", "" | "needs=traces") => {
                let Some(python) = &self.python else {
                    println!("skipped: {place} needs POWERSWEEP_PYTHON");
                    return;
                };
                let sql = ["-c", "import duckdb, sys; duckdb.sql(sys.argv[1]).show()", text];
                (python.clone(), if language == "sql" { sql.to_vec() } else { vec!["-c", text] })
            }
            _ => panic!("{place}: no treatment is known for a block ```{language} {tag}"),
        };
        let ended = self.start(&program.0, &program.1, &[]).wait();
        assert_eq!(ended.code(), Some(0), "{place}: {ended}");
        self.printed.replace(Some(format!("{}\n{}", ended.stdout, ended.stderr)));
    }

    fn document(&self, name: &str) {
        let blocks = blocks(name);
        assert!(!blocks.is_empty(), "{name} has no block");
        blocks.iter().for_each(|block| self.perform(block));
    }

    /// Writes the manifest of the page "Five minutes" and runs its sweep, which the other pages continue with.
    fn first_sweep(&self) {
        let files = blocks("docs/five-minutes.md").into_iter().filter(|block| block.tag.starts_with("file="));
        files.for_each(|block| self.perform(&block));
        self.start(Path::new("powersweep"), &["run", "sweep.toml", "--quiet"], &[]).wait().exits(0);
        assert_eq!(self.rows("my-sweep"), 36, "the product of all axes");
    }

    fn rows(&self, experiment: &str) -> usize {
        crate::rows::tasks(&self.sandbox.path("results/data"), experiment).len()
    }
}

#[test]
fn every_command_of_the_readme_runs() {
    let shell = Shell::new();
    shell.document("README.md");
    assert_eq!(shell.rows("quickstart"), 88);
    assert_eq!(shell.rows("my-sweep"), 120, "the product of all axes");
    assert!(shell.sandbox.path("jobs.csv").exists());
    if cfg!(feature = "figures") {
        let (drawn, committed) = (shell.sandbox.path("front.svg"), root().join("docs/front.svg"));
        assert!(elements(&drawn) == elements(&committed), "docs/front.svg differs from what README's command draws");
    }
    assert_eq!(shell.rows("etinski2010"), if shell.traces.is_some() { 125 } else { 0 });
    shell.document("CONTRIBUTING.md");
}

/// The elements of a figure in SVG, sorted: tasks that end in another order are drawn in another order. The origin is left
/// out, because it has the commit of the program.
fn elements(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).expect("the figure exists");
    let (before, after) = text.split_once("<metadata>").expect("it has an origin");
    let (_, after) = after.split_once("</metadata>").expect("the origin ends");
    let mut elements: Vec<String> = before.split('<').chain(after.split('<')).map(str::to_owned).collect();
    elements.sort_unstable();
    elements
}

/// Each page continues after the sweep of "Five minutes", independently of the other pages.
#[test]
fn every_command_of_the_guide_runs() {
    let pages: Vec<_> = pages("docs").into_iter().filter(|page| !blocks(page).is_empty()).collect();
    assert!(pages.contains(&"docs/results.md".to_owned()), "{pages:?}");
    for page in pages {
        let shell = Shell::new();
        if blocks(&page).iter().any(|block| !block.tag.starts_with("elsewhere: ")) {
            shell.first_sweep();
        }
        shell.document(&page);
    }
}

#[test]
fn every_command_in_the_text_of_the_guide_has_known_arguments() {
    let shell = Shell::new();
    // The page of commands shows the examples of `--help`, whose arguments another test checks.
    let pages: Vec<_> = pages("docs").into_iter().filter(|page| page != "docs/reference/commands.md").collect();
    let commands: Vec<Block> = pages.iter().map(|page| inline_commands(page)).collect();
    assert!(
        commands.iter().any(|block| block.text.contains("powersweep plan sweep.toml --index 12\n")),
        "{commands:?}"
    );
    commands.iter().for_each(|block| shell.check_arguments(block));
}

/// README promises that the quickstart manifest explains every section. Its settings that are commented out work, too.
#[test]
fn the_quickstart_manifest_explains_every_section() {
    let path = root().join("experiments/manifests/quickstart.toml");
    let text = std::fs::read_to_string(path).expect("the manifest exists");
    let schema = Sandbox::new().run(&["schema"]).exits(0).json();
    for section in schema["properties"].as_object().expect("a manifest has sections").keys() {
        assert!(text.contains(section.as_str()), "experiments/manifests/quickstart.toml does not explain `{section}`");
    }
    let sandbox = Sandbox::new();
    let used = text.replace("\n# tables = ", "\ntables = ").replace("\n# zip = ", "\nzip = ");
    let used = used.replace("\n# limits = ", "\nlimits = ").replace("\n# series = ", "\nseries = ");
    assert_eq!(used.len() + 8, text.len(), "four settings are commented out");
    sandbox.write("used.toml", used);
    sandbox.run(&["plan", "used.toml"]).exits(0).prints(&["quickstart: 88 tasks, 0 done already, 88 would run"]);
}
