//! The columns about powersweep in docs/comparison.md: each cell follows from components, keys of manifests, commands and
//! options that exist.
//!
//! A row names what powersweep has and what it lacks. A name that was removed fails here, as does a name that says what a row
//! lacks. Every role, every key of signals and every command is in a row or in a list of those that are not compared, so
//! that a new one is placed before the page is true again.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{Arg, Command};
use powersweep_engine::components::{self, COMPONENTS};
use powersweep_engine::spec::Role;
use powersweep_experiments::schema;

/// A name that must exist.
enum Has {
    /// All components of a role but `none`.
    Role(Role),
    Component(Role, &'static str),
    /// A parameter of a component, or a key of signals.
    Key(&'static str),
    /// A value of the key `quantity` of signals.
    Quantity(&'static str),
    Command(&'static str),
    /// A command and the long name of its option.
    Option(&'static str, &'static str),
    /// A file or folder of the source, with what it shows.
    Source(&'static str, &'static str),
}

/// Text for the page, and words that occur in no name as long as the text is true.
struct Lacks(&'static str, &'static [&'static str]);

struct Row {
    /// The first cell of the page's row.
    label: &'static str,
    /// The last cell; if it is empty, `Y`, `~` with something that is lacking, or `-`.
    cell: &'static str,
    has: &'static [Has],
    lacks: &'static [Lacks],
}

const fn row(label: &'static str, has: &'static [Has]) -> Row {
    Row { label, cell: "", has, lacks: &[] }
}

const ROWS: &[Row] = &[
    row("backfilling with estimates", &[Has::Role(Role::Backfill)]),
    row("estimates learned online and corrected", &[Has::Role(Role::Predictor), Has::Role(Role::Corrector)]),
    row("frequency scaling", &[Has::Role(Role::GearRule), Has::Key("gears_ghz")]),
    row("nodes that sleep", &[Has::Role(Role::Capacity)]),
    row("power cap", &[Has::Role(Role::Cap)]),
    row("measured power of jobs as input", &[Has::Key("job_power"), Has::Command("calibrate")]),
    row("GPUs that jobs need", &[Has::Key("gpus"), Has::Key("gpus_from")]),
    row("carbon intensity over time", &[Has::Quantity("carbon"), Has::Role(Role::Deferral)]),
    row("price over time", &[Has::Quantity("price"), Has::Role(Role::Deferral)]),
    Row {
        label: "battery, renewables",
        cell: "",
        has: &[Has::Key("battery_policy"), Has::Key("battery_kwh")],
        lacks: &[Lacks("renewables at the site", &["renewable", "renewables", "solar", "wind", "pv"])],
    },
    Row {
        label: "losses, cooling",
        cell: "",
        has: &[Has::Key("supply_efficiency"), Has::Key("pue"), Has::Key("pue_signal"), Has::Key("cooling_w")],
        lacks: &[Lacks("a model of a cooling loop", &["coolant", "chiller", "tower", "loop"])],
    },
    row("embodied carbon", &[Has::Key("embodied_g_per_proc_hour"), Has::Key("battery_embodied_g_per_hour")]),
    Row {
        label: "uncertainty",
        cell: "",
        has: &[
            Has::Key("resample_days"),
            Has::Key("submit_jitter_s"),
            Has::Key("defer_forecast_error"),
            Has::Key("power_noise_sd"),
            Has::Command("compare"),
            Has::Command("sensitivity"),
        ],
        lacks: &[],
    },
    Row {
        label: "schedulers from outside",
        cell: "WebAssembly, formulas; Python for one task",
        has: &[
            Has::Component(Role::Backfill, "wasm"),
            Has::Component(Role::Order, "formula"),
            Has::Command("conformance"),
            Has::Source("python/powersweep/_scheduler.py", "a class in Python"),
        ],
        lacks: &[Lacks("a scheduler in another process", &["zeromq", "socket", "pipe", "rpc"])],
    },
    row("a sweep as one input", &[Has::Command("plan"), Has::Command("run"), Has::Command("submit")]),
    row("resume after a crash or an edit", &[Has::Command("run"), Has::Command("prune"), Has::Command("adopt")]),
    row("results in Parquet", &[Has::Command("results"), Has::Command("export"), Has::Command("sql")]),
    row("figures", &[Has::Command("plot"), Has::Command("report")]),
    row("Slurm allocations by waiting work", &[Has::Command("launch slurm"), Has::Option("launch slurm", "max-nodes")]),
    row("back-off and pause, with the reason", &[Has::Command("launch status")]),
    row("no task that its worker cannot finish", &[Has::Option("worker", "time-limit")]),
    row(
        "preempted, suspended, lost node: no failure",
        &[Has::Option("worker", "drain-limit"), Has::Source(".ci/full", "its section `slurm` tests all three")],
    ),
    Row { cell: "Y, shards", ..row("works where no server may run", &[Has::Command("shard")]) },
    Row {
        cell: "Y, to zero",
        ..row("Kubernetes", &[Has::Option("serve", "scaler"), Has::Source("deploy/kubernetes", "overlays")])
    },
    row("encrypted and authenticated without set-up", &[Has::Command("access")]),
    row("dashboard in the browser", &[Has::Command("dashboard")]),
    row(
        "it loads nothing from elsewhere",
        &[Has::Command("dashboard"), Has::Source("dashboard", "scripts and styles are in the program")],
    ),
    row("a report as one file", &[Has::Command("report"), Has::Command("reproduce")]),
    row("Prometheus", &[Has::Option("serve", "metrics")]),
    row("results as one table", &[Has::Command("results"), Has::Command("export")]),
    row("a static binary", &[Has::Source("packaging/build-release.sh", "builds it")]),
];

/// Roles without a row: every simulator has workloads, machines and measures, and the models of queues of servers come from
/// two papers alone.
const ROLES_NOT_COMPARED: &[Role] = &[
    Role::Source,
    Role::Rules,
    Role::Platform,
    Role::Power,
    Role::Policy,
    Role::Order,
    Role::BackfillOrder,
    Role::Statistics,
];

/// Keys of signals that say how a file is read, and settings of the keys that a row has.
const KEYS_NOT_COMPARED: &[&str] = &[
    "quantity",
    "file",
    "file_sha256",
    "form",
    "column",
    "time_column",
    "unit",
    "interval_time",
    "zone",
    "timezone",
    "sample",
    "beyond",
    "gaps",
    "duplicates",
    "clock_change",
    "anchor",
    "pue_curve",
    "battery_charge_w",
    "battery_initial_share",
    "battery_efficiency",
    "battery_threshold",
    "battery_upper_threshold",
    "battery_window",
];

/// Commands that the rows about other tools do not ask for.
const COMMANDS_NOT_COMPARED: &[&str] = &[
    "check",
    "simulate",
    "lp",
    "serve",
    "worker",
    "status",
    "pause",
    "resume",
    "cancel",
    "retry",
    "priority",
    "flush",
    "delete",
    "prepare-upgrade",
    "best",
    "find",
    "verify",
    "artifact",
    "timeline",
    "events",
    "schema",
    "policies",
    "columns",
    "trace",
    "import",
    "config",
    "completions",
    "man",
    "help",
    "health",
    "doctor",
    "launch",
    "site",
];

/// The heading of the generated section, which is the last one of the page.
const HEADING: &str = "## What powersweep's columns count";

const HEAD: &str = "\n\nThis section and the columns of powersweep above are generated by `cargo xtask docs` from the components, \
                    the keys of manifests and the commands.\n\n| need | powersweep has | powersweep lacks |\n|---|---|---|\n";

#[test]
fn comparison_md_is_up_to_date() {
    let text = std::fs::read_to_string(super::documented::root().join("docs/comparison.md")).expect("the page exists");
    let (written, _) = text.split_once(HEADING).expect("the page has the generated section");
    let program = super::documented::program();
    let mut found = BTreeSet::new();
    let lines: Vec<String> = written.lines().map(|line| with_cell(line, &mut found)).collect();
    let missing: Vec<&str> = ROWS.iter().map(|row| row.label).filter(|label| !found.contains(label)).collect();
    assert!(missing.is_empty(), "docs/comparison.md has no row {missing:?}");
    let mut text = lines.join("\n") + "\n" + HEADING + HEAD;
    for Row { label, has, lacks, .. } in ROWS {
        let has: Vec<String> = has.iter().map(|has| shown(has, &program)).collect();
        let lacks: Vec<&str> = lacks.iter().map(|Lacks(text, _)| *text).collect();
        let _ = writeln!(text, "| {label} | {} | {} |", has.join(", "), lacks.join(", "));
    }
    super::documented::check("comparison.md", &text);
}

/// The line of a table, if it is one of a row, with the cell about powersweep.
fn with_cell(line: &str, found: &mut BTreeSet<&'static str>) -> String {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let Some(row) = ROWS.iter().find(|row| line.starts_with('|') && cells.first() == Some(&row.label)) else {
        return line.to_owned();
    };
    assert!(found.insert(row.label), "docs/comparison.md has the row `{}` twice", row.label);
    let own = match (row.has.is_empty(), row.lacks.is_empty()) {
        _ if !row.cell.is_empty() => row.cell,
        (false, true) => "Y",
        (false, false) => "~",
        (true, _) => "-",
    };
    let others = cells[..cells.len() - 1].join(" | ");
    format!("| {others} | {own} |")
}

/// A name for the page; a name that does not exist panics.
fn shown(has: &Has, program: &Command) -> String {
    match has {
        Has::Role(role) => {
            let names = components::of(*role).map(|component| component.name).filter(|name| *name != "none");
            let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
            assert!(!names.is_empty(), "`{}` has no component", role.key());
            format!("`{} = {}`", role.key(), names.join(", "))
        }
        Has::Component(role, name) => {
            assert!(components::find(*role, name).is_some(), "there is no component `{name}`");
            format!("`{} = \"{name}\"`", role.key())
        }
        Has::Key(name) => {
            assert!(keys().any(|key| key == *name), "there is no key `{name}`");
            format!("`{name}`")
        }
        Has::Quantity(name) => {
            let known = schema::signal_keys().iter().find(|key| key.name == "quantity").expect("signals have it");
            assert!(known.expectation().contains(&format!("\"{name}\"")), "there is no quantity `{name}`");
            format!("`quantity = \"{name}\"`")
        }
        Has::Command(name) => {
            let _ = command(program, name);
            format!("`powersweep {name}`")
        }
        Has::Option(name, option) => {
            let has_it = command(program, name).get_arguments().any(|arg| arg.get_long() == Some(option));
            assert!(has_it, "`{name}` has no option --{option}");
            format!("`{name} --{option}`")
        }
        Has::Source(path, shows) => {
            assert!(super::documented::root().join(path).exists(), "there is no {path}");
            format!("`{path}` in the source: {shows}")
        }
    }
}

/// The command, or the command of a command, of this name.
fn command<'a>(program: &'a Command, name: &str) -> &'a Command {
    let find =
        |of: &'a Command, name| of.find_subcommand(name).unwrap_or_else(|| panic!("there is no command `{name}`"));
    name.split(' ').fold(program, find)
}

/// The parameters of components and the keys of signals.
fn keys() -> impl Iterator<Item = &'static str> {
    let of_components = COMPONENTS.iter().flat_map(|component| component.params);
    of_components.chain(schema::signal_keys()).map(|key| key.name)
}

#[test]
fn no_name_says_what_powersweep_lacks() {
    let program = super::documented::program();
    let mut names: Vec<&str> = COMPONENTS.iter().map(|component| component.name).chain(keys()).collect();
    names.extend(program.get_subcommands().map(Command::get_name));
    names.extend(program.get_subcommands().flat_map(Command::get_arguments).filter_map(Arg::get_long));
    for Row { label, lacks, .. } in ROWS {
        for Lacks(text, words) in *lacks {
            let says_so = |name: &&&str| name.split(['-', '_']).any(|part| words.contains(&part));
            let found: Vec<&&str> = names.iter().filter(says_so).collect();
            assert!(found.is_empty(), "`{label}`: powersweep is said to lack {text}, and has {found:?}");
        }
    }
}

#[test]
fn everything_is_compared_or_said_to_be_not() {
    let of_rows = || ROWS.iter().flat_map(|row| row.has);
    let is_in = |name: &str, word: &str| name == word || name.split(' ').next() == Some(word);
    for role in Role::ALL {
        let has_row = of_rows().any(|has| matches!(has, Has::Role(of) if *of == role));
        assert!(has_row != ROLES_NOT_COMPARED.contains(&role), "place the role `{}`", role.key());
    }
    for key in schema::signal_keys() {
        let has_row = of_rows().any(|has| matches!(has, Has::Key(name) if *name == key.name));
        assert!(has_row != KEYS_NOT_COMPARED.contains(&key.name), "place the key `{}` of signals", key.name);
    }
    for command in super::documented::program().get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        let has_row = of_rows().any(|has| matches!(has, Has::Command(of) if is_in(of, name)));
        let is_not_compared = COMMANDS_NOT_COMPARED.contains(&name);
        assert!(has_row || is_not_compared, "place the command `{name}`");
    }
}
