//! The top of a manifest: its keys, its sections, and the checks across sections.

use std::ops::Range;
use std::sync::Arc;

use powersweep_engine::Value;
use powersweep_engine::components::SERIES;
use powersweep_engine::spec::{Default, Param, Section, Type};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Digest;
use crate::errors::Problem;
use crate::exclusion::{Exclusion, Rule, TooIntertwined};
use crate::names::{NAME_RULE, is_name, suggestion};
use crate::space::{Column, DESIGN_LEVEL, Digit, LEVELS, Level, Variant};
use crate::url::{has_user, is_url};
use crate::values::Values;

use super::block::Block;
use super::designs::Designs;
use super::until::{self, Until};
use super::values::{integer, kind, named_tables, read as read_values, unknown_keys};
use super::{Given, Inner, LogRef, TEXT_MAX, Tables, combos, design_level, exclude, logs, modules, signals, unique};

/// The keys at the top of a manifest.
pub(crate) const KEYS: [&str; 15] = [
    "version",
    "name",
    "description",
    "tables",
    "series",
    "limits",
    "workloads",
    "platforms",
    "policies",
    "designs",
    "signals",
    "statistics",
    "seeds",
    "exclude",
    "zip",
];

/// Greatest number of blocks in a section.
const BLOCKS_MAX: usize = 10_000;
/// Greatest length of a description (bytes).
const DESCRIPTION_MAX: usize = 10_000;

/// Seeds are read like an integer parameter.
pub(crate) const SEEDS: Param = Param {
    name: "seeds",
    ty: Type::Int { min: 0, max: i64::MAX },
    unit: "",
    default: Default::Int(1),
    doc: "Seeds of the random streams: one, a list, or a range such as { from = 1, count = 10 }. Each is a replication. With \
          `until`, such as { until = \"ci95(bsld_mean) < 2%\", at_least = 10, at_most = 500 }, each combination gets as many as its \
          means need.",
};

/// Reads the whole manifest; `None` if a problem prevents it.
pub(crate) fn read(text: &Arc<str>, problems: &mut Vec<Problem>) -> Option<Inner> {
    if text.len() > TEXT_MAX {
        let message = format!("the manifest has {} bytes", text.len());
        problems.push(Problem::new(0..0, message, format!("expected at most {TEXT_MAX} bytes")));
        return None;
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    problems.extend(errors.iter().map(|error| Problem::syntax(text, error)));
    if !errors.is_empty() {
        return None;
    }
    let table = table.get_ref();
    unknown_keys(table, &KEYS, "a manifest", problems);
    version(table, problems);
    let name = name(table, problems);
    let description = description(table, problems);
    let mut tables = tables(table, problems);
    let series = series(table, problems);
    tables.series |= series.is_some();
    let limits = crate::limits::limits(table, problems);
    let designs = Designs::read(table, problems);
    let workloads = section(table, Section::Workloads, &designs, problems);
    let platforms = section(table, Section::Platforms, &designs, problems);
    let policies = section(table, Section::Policies, &designs, problems);
    let statistics = section(table, Section::Statistics, &designs, problems);
    let until = read_until(table, problems);
    let seeds = seeds(table, until.as_ref(), problems);
    let signals = signals::read_all(table, &designs, problems);
    tables.accounts = !signals.is_empty();
    let sections = [workloads?, platforms?, policies?, statistics?];
    let seeds = seeds?;
    if !problems.is_empty() {
        return None;
    }
    let (points, repeated) = design_level::level(table, &designs, &sections, problems)?;
    let [workloads, platforms, policies, statistics] = sections;
    let levels = [workloads, platforms, policies, statistics, points, seeds];
    size(&levels, problems)?;
    let modules = modules(&levels[2]);
    let logs = checked_logs(table, &levels[0], problems);
    signals::check(table, &signals, &logs, problems);
    signals::check_read(table, &levels, &signals, problems);
    signals::check_facilities(table, &signals, problems);
    unique::check(table, &levels[..DESIGN_LEVEL], problems);
    let mut rules = exclude::rules(table, &levels, problems);
    rules.extend(repeated);
    let exclusion = exclusion(table, &levels, &rules, problems);
    if problems.is_empty()
        && let Some(exclusion) = &exclusion
    {
        combos::check(table, &levels, exclusion, tables, problems);
    }
    Some(Inner {
        name: name?.into(),
        description,
        tables,
        series,
        limits,
        text: text.clone(),
        source: text.clone(),
        places: std::collections::BTreeMap::new(),
        levels,
        logs,
        signals,
        designs: designs.all,
        until,
        modules,
        rules,
        exclusion: exclusion?,
    })
}

fn version(table: &DeTable<'_>, problems: &mut Vec<Problem>) {
    let expected = "expected version = 1, the version of the manifest's format";
    match table.get("version") {
        None => problems.push(Problem::new(0..0, "`version` is missing", expected)),
        Some(value) => {
            let found = value.get_ref().as_integer().and_then(integer);
            if found != Some(1) {
                let message = format!("this program cannot read version {}", kind(value.get_ref()));
                problems.push(Problem::new(value.span(), message, expected));
            }
        }
    }
}

fn name(table: &DeTable<'_>, problems: &mut Vec<Problem>) -> Option<String> {
    let expected = format!("expected {NAME_RULE}");
    let Some(value) = table.get("name") else {
        problems.push(Problem::new(0..0, "`name` is missing", format!("expected name = \"...\": {NAME_RULE}")));
        return None;
    };
    match value.get_ref().as_str() {
        Some(name) if is_name(name) => Some(name.to_owned()),
        Some(name) => {
            let lower: String = name
                .to_lowercase()
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' })
                .collect();
            let help = is_name(&lower).then(|| format!("`{lower}` would be valid"));
            let message = "this cannot be an experiment's name: it becomes a folder";
            problems.push(Problem::new(value.span(), message, expected).maybe_help(help));
            None
        }
        None => {
            problems.push(Problem::new(value.span(), "`name` must be a text", expected));
            None
        }
    }
}

fn description(table: &DeTable<'_>, problems: &mut Vec<Problem>) -> String {
    let Some(value) = table.get("description") else { return String::new() };
    match value.get_ref().as_str() {
        Some(text) if text.len() <= DESCRIPTION_MAX => text.to_owned(),
        _ => {
            let expected = format!("expected a text of at most {DESCRIPTION_MAX} bytes");
            problems.push(Problem::new(value.span(), "`description` has a wrong value", expected));
            String::new()
        }
    }
}

fn tables(table: &DeTable<'_>, problems: &mut Vec<Problem>) -> Tables {
    let expected = || {
        let names = Tables::LISTED.map(|name| format!("\"{name}\""));
        format!("expected {}", names.join(" or "))
    };
    let mut tables = Tables::default();
    let Some(value) = table.get("tables") else { return tables };
    let Some(items) = value.get_ref().as_array() else {
        problems.push(Problem::new(value.span(), "`tables` must be a list", "expected such as tables = [\"jobs\"]"));
        return tables;
    };
    for item in items {
        let name = item.get_ref().as_str();
        match (name, name.filter(|name| *name != "accounts").and_then(|name| tables.asked(name))) {
            (_, Some(asked)) if !*asked => *asked = true,
            (Some(name), Some(_)) => {
                problems.push(Problem::new(
                    item.span(),
                    format!("`{name}` is listed twice"),
                    "expected each table once",
                ));
            }
            (Some("tasks" | "failures"), _) => {
                let always = "this table is always written";
                problems.push(Problem::new(item.span(), always, expected()).help("remove it"));
            }
            (Some("accounts"), _) => {
                let always = "this table is written if the manifest has [signals]";
                problems.push(Problem::new(item.span(), always, expected()).help("remove it"));
            }
            _ => {
                let message = format!("there is no optional table {}", kind(item.get_ref()));
                let help = name.map(|name| suggestion(name, Tables::LISTED));
                problems.push(Problem::new(item.span(), message, expected()).maybe_help(help));
            }
        }
    }
    tables
}

/// The names of all series.
pub(crate) fn series_names() -> Vec<&'static str> {
    SERIES.iter().map(|series| series.name).collect()
}

/// The chosen series; `None` if the manifest chooses none, so that all are recorded.
fn series(table: &DeTable<'_>, problems: &mut Vec<Problem>) -> Option<Vec<&'static str>> {
    let value = table.get("series")?;
    let expected = "expected such as series = [\"power_w\"]";
    let Some(items) = value.get_ref().as_array().filter(|items| !items.is_empty()) else {
        let help = "leave it out and use tables = [\"series\"] to record all series";
        problems.push(Problem::new(value.span(), "`series` must be a list of series", expected).help(help));
        return None;
    };
    let mut chosen: Vec<&'static str> = Vec::new();
    for item in items {
        let known = item.get_ref().as_str().and_then(|name| series_names().into_iter().find(|known| *known == name));
        match known {
            Some(name) if chosen.contains(&name) => {
                let message = format!("`{name}` is listed twice");
                problems.push(Problem::new(item.span(), message, "expected each series once"));
            }
            Some(name) => chosen.push(name),
            None => {
                let message = format!("there is no series {}", kind(item.get_ref()));
                let help = item.get_ref().as_str().map(|name| suggestion(name, series_names()));
                let expected = format!("expected one of {}", series_names().join(", "));
                problems.push(Problem::new(item.span(), message, expected).maybe_help(help));
            }
        }
    }
    Some(chosen)
}

/// Reads a section; `None` after a problem in it.
fn section(top: &DeTable<'_>, section: Section, designs: &Designs, problems: &mut Vec<Problem>) -> Option<Level> {
    let before = problems.len();
    let key = section.key();
    let empty = DeTable::new();
    let mut blocks: Vec<Block<'_, '_>> = Vec::new();
    match (top.get_key_value(key), section) {
        (None, Section::Workloads | Section::Policies) => {
            let expected = format!("expected at least one block [{key}.NAME]");
            problems.push(Problem::new(0..0, format!("`{key}` is missing"), expected));
        }
        (None, Section::Platforms | Section::Statistics) => {
            let label = if section == Section::Platforms { "default" } else { "" };
            blocks.push(Block { section, label: label.into(), at: 0, span: 0..0, table: &empty });
        }
        (Some((name, value)), Section::Statistics) => match value.get_ref().as_table() {
            Some(table) => blocks.push(Block { section, label: "".into(), at: 0, span: name.span(), table }),
            None => problems.push(Problem::new(value.span(), "`statistics` must be a table", "expected [statistics]")),
        },
        (Some((name, value)), _) => match value.get_ref().as_table() {
            Some(table) => labelled(section, name.span(), table, &mut blocks, problems),
            None => {
                let expected = format!("expected blocks [{key}.NAME]");
                problems.push(Problem::new(value.span(), format!("`{key}` must be a table of blocks"), expected));
            }
        },
    }
    if blocks.len() > BLOCKS_MAX {
        let message = format!("[{key}] has more than {BLOCKS_MAX} blocks");
        problems.push(Problem::new(blocks[0].span.clone(), message, "expected fewer blocks, with lists as axes"));
        return None;
    }
    let variants: Vec<Variant> = blocks.iter().flat_map(|block| block.variants(designs, problems)).collect();
    if problems.len() > before {
        return None;
    }
    let level = Level::new(variants);
    if level.is_none() {
        let span = top.get_key_value(key).map_or(0..0, |(name, _)| name.span());
        problems.push(too_large(span));
    }
    level
}

fn labelled<'a, 'i>(
    section: Section,
    span: Range<usize>,
    table: &'a DeTable<'i>,
    blocks: &mut Vec<Block<'a, 'i>>,
    problems: &mut Vec<Problem>,
) {
    let key = section.key();
    if table.is_empty() {
        problems.push(Problem::new(span, format!("[{key}] is empty"), format!("expected a block [{key}.NAME]")));
    }
    for (label, table) in named_tables(table, key, ("blocks", "block"), problems) {
        blocks.push(Block {
            section,
            label: label.get_ref().as_ref().into(),
            at: blocks.len(),
            span: label.span(),
            table,
        });
    }
}

/// The conditions of seeds that are added until means are known.
fn read_until(table: &DeTable<'_>, problems: &mut Vec<Problem>) -> Option<Until> {
    table.get("seeds").filter(|value| until::is_until(value)).and_then(|value| until::read(value, problems))
}

fn seeds(table: &DeTable<'_>, until: Option<&Until>, problems: &mut Vec<Problem>) -> Option<Level> {
    let values = match table.get("seeds") {
        None => Values::one(Value::Int(1)),
        Some(value) if until::is_until(value) => until?.values(),
        Some(value) => {
            let read = read_values(&SEEDS, value, problems)?;
            if let Some((at, twice)) = read.values.repeated().next() {
                let message = format!("`seeds` has the value {twice} twice");
                let span = read.spans.get(at).cloned().unwrap_or(value.span());
                problems.push(Problem::new(span, message, "expected seeds that all differ"));
                return None;
            }
            read.values
        }
    };
    let count = values.len();
    let column = Column { name: "seed", identity: true, choices: Vec::new(), values };
    let digits = vec![Digit { columns: vec![column] }];
    Level::new(vec![Variant { label: "".into(), block: 0, choices: Vec::new(), digits, designed: Vec::new(), count }])
}

fn too_large(span: Range<usize>) -> Problem {
    Problem::new(span, "the sweep has more than 2^63 combinations", "expected shorter or fewer axes")
}

/// Refuses a sweep whose number of combinations exceeds the range of an index.
fn size(levels: &[Level; LEVELS], problems: &mut Vec<Problem>) -> Option<u64> {
    let product = levels.iter().try_fold(1_u64, |n, level| n.checked_mul(level.count));
    let product = product.filter(|n| i64::try_from(*n).is_ok());
    if product.is_none() {
        problems.push(too_large(0..0));
    }
    product
}

/// The excluded indices. Reports rules that leave no task, and rules that take too long to evaluate.
fn exclusion(
    top: &DeTable<'_>,
    levels: &[Level; LEVELS],
    rules: &[Rule],
    problems: &mut Vec<Problem>,
) -> Option<Exclusion> {
    let span = ["exclude", "zip"].iter().find_map(|key| top.get_key_value(*key)).map_or(0..0, |(key, _)| key.span());
    match Exclusion::new(levels, rules) {
        Ok(exclusion) if exclusion.included() == 0 && !waits_for_points(levels) => {
            problems.push(Problem::new(span, "every task is excluded", "expected at least one task to run"));
            None
        }
        Ok(exclusion) => Some(exclusion),
        Err(TooIntertwined) => {
            let message = "evaluating the [[exclude]] tables takes too long";
            problems.push(Problem::new(span, message, "expected fewer tables, or conditions on fewer axes"));
            None
        }
    }
}

/// Whether some blocks use a design of listed points that has none yet.
fn waits_for_points(levels: &[Level; LEVELS]) -> bool {
    let designed = levels.iter().flat_map(|level| &level.variants).flat_map(|variant| &variant.designed);
    designed.into_iter().any(|designed| designed.points.design.is_empty)
}

/// The logs. Reports digests that are malformed, and digests or formats that contradict each other.
fn checked_logs(top: &DeTable<'_>, level: &Level, problems: &mut Vec<Problem>) -> Vec<LogRef> {
    let span_of = |wanted: &str| find_text(top.get("workloads"), wanted).unwrap_or(0..0);
    let mut found = Vec::new();
    for (log, Given { formats, sums, imports }) in logs(level) {
        let mut sha256 = None;
        for sum in &sums {
            match sum.parse::<Digest>() {
                Ok(digest) => sha256 = Some(digest),
                Err(error) => {
                    problems.push(Problem::new(span_of(sum), "`log_sha256` is malformed", error.to_string()));
                }
            }
        }
        if sums.len() > 1 {
            let message = format!("log `{log}` is given {} different digests", sums.len());
            problems.push(Problem::new(span_of(&sums[1]), message, "expected one `log_sha256` for each log"));
        }
        problems.extend(secret(&log, span_of(&log)));
        if is_url(&log) && sums.is_empty() {
            let help = "add log_sha256 = \"...\", the SHA-256 of the file as downloaded";
            problems.push(Problem::new(span_of(&log), "a URL needs `log_sha256`", "the digest is missing").help(help));
        }
        if let [first, second, ..] = formats[..] {
            let [first, second] = [first, second].map(|format| format.component.name);
            let message = format!("log `{log}` has the sources `{first}` and `{second}`");
            let help = "if they are two files, give the whole name of each, such as x.swf.gz";
            problems.push(Problem::new(span_of(&log), message, "expected one `source` for each log").help(help));
        }
        if imports.len() > 1 {
            let message = format!("log `{log}` is read in {} ways", imports.len());
            let help = "the results would not say which one they belong to: convert the file by `powersweep import`";
            problems.push(Problem::new(span_of(&log), message, "expected one `log_import` for each log").help(help));
        }
        let import = imports.into_iter().next().flatten();
        found.extend(formats.first().map(|&format| LogRef { log, format, sha256, import }));
    }
    found
}

/// The problem of a URL with a user name or a password.
pub(crate) fn secret(name: &str, span: Range<usize>) -> Option<Problem> {
    let message = "the URL has a user name or a password";
    let expected = "everyone who reads the manifest, the state or the rows would read it";
    has_user(name).then(|| Problem::new(span, message, expected).help("download the file, and give its path"))
}

/// The place of a text as a value.
pub(crate) fn find_text(value: Option<&Spanned<DeValue<'_>>>, wanted: &str) -> Option<Range<usize>> {
    let value = value?;
    match value.get_ref() {
        DeValue::String(text) => (text == wanted).then(|| value.span()),
        DeValue::Array(items) => items.iter().find_map(|item| find_text(Some(item), wanted)),
        DeValue::Table(table) => table.values().find_map(|item| find_text(Some(item), wanted)),
        _ => None,
    }
}
