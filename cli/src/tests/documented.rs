//! Pages that are generated from the command line, the exit codes and the list of components: `cargo xtask docs` writes
//! them, the tests here compare them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory};

use powersweep::policy_costs as costs;
use powersweep_engine::components;
use powersweep_engine::components::refusals::refusals;
use powersweep_engine::spec::{Component, Role, Section};

use crate::args::Cli;
use crate::commands::policies;
use crate::config::KEYS;
use crate::exit;

/// Variables of the environment that are no defaults of options, with their meanings.
const VARIABLES: &[(&str, &str)] = &[
    ("POWERSWEEP_LOG", "Levels of log messages by target, such as `powersweep=debug,warn`."),
    ("POWERSWEEP_ALLOCATION", "The name of the allocation that a worker runs in; `launch` sets it."),
    (
        "POWERSWEEP_ALLOCATION_END",
        "When the allocation ends, in seconds since 1970: as `SLURM_JOB_END_TIME`, for other systems. `launch pbs` sets it.",
    ),
    (
        "POWERSWEEP_COORDINATOR_JOB",
        "The job in which a coordinator runs beside this launcher; the script of that job sets it.",
    ),
    ("NO_COLOR", "No colours, if it is not empty."),
    ("CLICOLOR_FORCE", "Colours also where standard output is no terminal, if it is neither empty nor 0."),
    ("TERM", "`dumb`: nothing is drawn over, and no pager is used."),
    ("PAGER", "The pager of `help TOPIC`; without this variable `less`, if it is installed; none if it is empty."),
    ("LESS", "The options of `less`; `FRX` without this variable."),
    ("PATH", "Where `less`, `duckdb` and the commands of Slurm are searched for."),
    ("HOME", "The home folder."),
    ("XDG_CONFIG_HOME", "The folder of `powersweep/config.toml` and of access files; `~/.config` without it."),
    ("XDG_CACHE_HOME", "The folder of `powersweep`, which caches logs; `~/.cache` without it."),
    ("XDG_STATE_HOME", "The folder of access files for object stores; `~/.local/state` without it."),
    ("USER", "The user who submits, as `status` shows the owner of an experiment."),
    ("LOGNAME", "The user who submits, where `USER` is not set."),
    ("HOSTNAME", "The machine's name, whose digest gives the digits in a worker's name."),
    ("SLURM_JOB_ID", "The allocation's name, in a job of Slurm."),
    ("SLURM_ARRAY_JOB_ID", "With `SLURM_ARRAY_TASK_ID`, the allocation's name and the shard's number in a job array."),
    ("PBS_JOBID", "The same for PBS, with `PBS_ARRAY_INDEX` or Torque's `PBS_ARRAYID`."),
    ("FLUX_JOB_ID", "The same for Flux, with `FLUX_JOB_CC`."),
    ("LSB_JOBID", "The same for LSF, with `LSB_JOBINDEX`, from 1."),
    ("JOB_ID", "The same for Grid Engine, with `SGE_TASK_ID`, from 1."),
    ("HQ_JOB_ID", "The same for HyperQueue, with `HQ_TASK_ID`."),
    ("AWS_BATCH_JOB_ID", "The same for AWS Batch, with `AWS_BATCH_JOB_ARRAY_INDEX`."),
    ("NOMAD_ALLOC_ID", "The same for Nomad, with `NOMAD_ALLOC_INDEX`."),
    ("JOB_COMPLETION_INDEX", "The shard's number in an indexed Job of Kubernetes."),
    (
        "SLURM_JOB_END_TIME",
        "When the allocation ends: a worker ends a tenth of its time earlier, 30 s to 2 min, or more.",
    ),
];

/// Most commands of an option that are named.
const NAMED: usize = 10;

/// Variables that libraries read.
const OF_LIBRARIES: &str = "\
Object stores read the variables of their clouds, such as `AWS_*`, `GOOGLE_APPLICATION_CREDENTIALS` and `AZURE_*`
(`powersweep doctor` says which it found), and downloads of logs read `HTTPS_PROXY` and `NO_PROXY`. Tests and benches have
variables of their own, which `CONTRIBUTING.md` in the source lists.
";

/// Compares a page with the generated text, or writes it.
pub(super) fn check(page: &str, generated: &str) {
    let path = root().join("docs").join(page);
    if std::env::var_os("POWERSWEEP_REGENERATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, generated).expect("the repository is writable");
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = generated.lines().zip(committed.lines().chain(std::iter::repeat(""))).find(|(new, old)| new != old);
    assert!(committed == generated, "docs/{page} is generated: run `cargo xtask docs`. First line: {differs:?}");
}

pub(super) fn root() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("..")
}

pub(super) fn program() -> Command {
    let mut program = Cli::command();
    program.build();
    program
}

/// Text in a cell or a line: no line breaks, no marks of Markdown.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "\\<")
}

// ---- commands

#[test]
fn commands_md_is_up_to_date() {
    let program = program();
    let mut text =
        "# Commands\n\nThis page is generated from the program by `cargo xtask docs`. `powersweep help COMMAND` \
                    shows the options of one command in the terminal.\n\n## Options of every command\n\n"
            .to_owned();
    let of_all = program.get_arguments().filter(|arg| arg.is_global_set());
    text += &options(of_all);
    text += "\n`-h` prints a short help, `--help` the whole one.\n";
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        describe(command, &mut text, 2);
    }
    check("reference/commands.md", &text);
}

fn describe(command: &Command, text: &mut String, level: usize) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").split_whitespace().collect::<Vec<_>>().join(" ");
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = write!(text, "\n{} {name}\n\n`{usage}`\n\n", "#".repeat(level));
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    for paragraph in about.split("\n\n") {
        let _ = writeln!(text, "{}\n", plain(paragraph));
    }
    let own = |arg: &&Arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help";
    if command.get_arguments().any(|arg| own(&arg)) {
        *text += &options(command.get_arguments().filter(own));
        text.push('\n');
    }
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for example in examples.lines().filter_map(|line| line.strip_prefix("  ")) {
        let (line, effect) = example.split_once("  ").unwrap_or((example, ""));
        let effect = if effect.is_empty() { String::new() } else { format!(": {}", plain(effect)) };
        let _ = writeln!(text, "- `{}`{effect}", line.trim());
    }
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        describe(inner, text, level + 1);
    }
}

/// A table of options and arguments.
fn options<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let mut text = "| option | meaning |\n|---|---|\n".to_owned();
    for arg in arguments {
        let short = arg.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
        let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
        let mut facts = Vec::new();
        if arg.get_action().takes_values() {
            let values: Vec<String> =
                arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
            facts.extend((!values.is_empty()).then(|| format!("one of {}", values.join(", "))));
            let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
            facts.extend((!defaults.is_empty()).then(|| format!("default `{}`", defaults.join(" "))));
        }
        facts.extend(arg.get_env().map(|name| format!("variable `{}`", name.to_string_lossy())));
        let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join("; ")) };
        let _ = writeln!(text, "| {short}`{arg}` | {}{facts} |", plain(&help));
    }
    text
}

// ---- exit codes

#[test]
fn exit_codes_md_is_up_to_date() {
    let mut text = "# Exit codes\n\nThis page is generated from the program by `cargo xtask docs`. Scripts may rely on the \
                    codes; [Errors](../errors.md) says what to do about some of them.\n\n| code | meaning |\n|---|---|\n"
        .to_owned();
    for (code, meaning) in exit::TABLE {
        let _ = writeln!(text, "| {} | {meaning} |", code.code());
    }
    check("reference/exit-codes.md", &text);
}

// ---- components of policies

/// The head of the page of score cards.
const CARDS: &str = "\
# Policy components

This page is generated from the program by `cargo xtask docs`. It has a score card for each component that a policy is composed
of. `powersweep policies NAME` shows a card in the terminal, `--json` prints it for programs. [Manifest](manifest.md) has the
parameters.

- **Reads**: the facts on which the component decides. An estimate is the run time that the scheduler expects of a job: the
  request of the user, or the prediction of a `predictor`. Components that read an oracle, true run times or the true future of a
  signal, are bounds of what a real scheduler can reach.
- **Guarantees**: what holds in every run, with the conditions. A bound that is not named does not hold.
- **Cost**: @MEASURED@
- **Cannot be combined with**: the program tries every component of the other roles, and their settings one by one, with defaults
  elsewhere, and shows the sentence with which it refuses. Other values of parameters may be refused, too: `powersweep plan`
  says so before anything runs.
";

#[test]
fn policies_md_is_up_to_date() {
    let mut text = CARDS.replace("@MEASURED@", costs::MEASURED);
    let of_policies = Role::ALL.into_iter().filter(|role| role.section() == Section::Policies && *role != Role::Policy);
    for role in of_policies {
        let _ = write!(text, "\n## {}\n", role.key());
        components::of(role).for_each(|component| card(component, &mut text));
    }
    check("reference/policies.md", &text);
}

fn card(component: &'static Component, text: &mut String) {
    let Component { role, name, doc, source, .. } = component;
    let default = if role.default_component() == *name { " (default)" } else { "" };
    let _ = write!(text, "\n### {} {name}{default}\n\n{}\n\n| | |\n|---|---|\n", role.key(), plain(doc));
    for (fact, sentences) in policies::facts(component) {
        let _ = writeln!(text, "| {fact} | {} |", plain(&sentences));
    }
    if !source.is_empty() {
        let _ = writeln!(text, "| Paper | {} |", plain(source));
    }
    let refused = refusals(component);
    if refused.is_empty() {
        return;
    }
    *text += "\n| cannot be combined with | because |\n|---|---|\n";
    for (with, reason) in refused {
        let _ = writeln!(text, "| {} | {} |", plain(&with), plain(&reason));
    }
}

// ---- environment

/// An option that has a variable or a key.
#[derive(Default)]
struct Setting {
    option: String,
    help: String,
    commands: BTreeSet<String>,
}

/// The options of a command and its subcommands, by a name of each that `name` gives.
fn settings(command: &Command, name: &dyn Fn(&Arg) -> Option<String>, found: &mut BTreeMap<String, Setting>) {
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let Some(name) = name(arg) else { continue };
        let setting = found.entry(name).or_default();
        if setting.option.is_empty() {
            setting.option = arg.get_long().map(|long| format!("--{long}")).unwrap_or_default();
            setting.help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        }
        let bin = command.get_bin_name().unwrap_or_default();
        let of = bin.strip_prefix("powersweep ").filter(|_| !arg.is_global_set()).unwrap_or("every command");
        setting.commands.insert(of.to_owned());
    }
    command.get_subcommands().for_each(|inner| settings(inner, name, found));
}

fn table(found: &BTreeMap<String, Setting>) -> String {
    let mut text = "| variable | option | of | meaning |\n|---|---|---|---|\n".to_owned();
    for (name, Setting { option, help, commands }) in found {
        let commands = match commands.len() {
            _ if commands.contains("every command") => "every command".to_owned(),
            many if many > NAMED => format!("{many} commands"),
            _ => commands.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", "),
        };
        let _ = writeln!(text, "| `{name}` | `{option}` | {commands} | {} |", plain(help));
    }
    text
}

/// The variables that are defaults of options.
fn of_options() -> BTreeMap<String, Setting> {
    let mut found = BTreeMap::new();
    settings(&program(), &|arg| arg.get_env().map(|name| name.to_string_lossy().into_owned()), &mut found);
    found
}

#[test]
fn environment_md_is_up_to_date() {
    let mut options = BTreeMap::new();
    let key = |arg: &Arg| KEYS.iter().find(|key| arg.get_id() == key.name).map(|key| key.name.to_owned());
    settings(&program(), &key, &mut options);
    let of_options = of_options();
    let mut text = "# Environment\n\nThis page is generated from the program by `cargo xtask docs`. \
                    [Configuration](../configuration.md) says which of flag, variable and file decides.\n\n## Keys of \
                    configuration files\n\n| key | option |\n|---|---|\n"
        .to_owned();
    for (key, Setting { option, .. }) in &options {
        let _ = writeln!(text, "| `{key}` | `{option}` |");
    }
    text += "\n`traces` is a list in a file, and has `:` between the folders in its variable.\n\n## Variables of options\n\n";
    text += &table(&of_options);
    text += "\n## Other variables\n\n| variable | meaning |\n|---|---|\n";
    for (name, meaning) in VARIABLES {
        let _ = writeln!(text, "| `{name}` | {meaning} |");
    }
    let _ = write!(text, "\n{OF_LIBRARIES}");
    check("reference/environment.md", &text);
}

/// The names in quotes that a line of source reads from the environment.
fn read_variables(line: &str) -> impl Iterator<Item = &str> {
    let reads = ["var(", "var_os(", "variable(", "is_set(", "is_forced(", "absolute(", "base_folder(", "find_map("];
    let is_name = |text: &&str| text.len() > 3 && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let reads = reads.iter().any(|read| line.contains(read));
    line.split('"').skip(1).step_by(2).filter(move |text| reads && is_name(text))
}

/// The variables that the sources of the programs read.
fn variables_of(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() && path.ends_with("tests") {
            continue;
        }
        if path.is_dir() {
            variables_of(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).expect("sources are text");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            found.extend(code.lines().flat_map(read_variables).map(str::to_owned));
        }
    }
}

#[test]
fn every_variable_that_is_read_is_on_the_page() {
    let mut found = BTreeSet::new();
    for member in ["cli", "powersweep", "coordinator", "worker", "inputs", "launch", "dashboard", "figures", "proto"] {
        variables_of(&root().join(member).join("src"), &mut found);
    }
    assert!(found.contains("XDG_STATE_HOME"), "{found:?}");
    let options = of_options();
    let known = |name: &String| options.contains_key(name) || VARIABLES.iter().any(|(known, _)| known == name);
    let missing: Vec<&String> = found.iter().filter(|name| !known(name)).collect();
    assert!(missing.is_empty(), "VARIABLES lacks {missing:?}");
}
