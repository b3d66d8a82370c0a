//! The scripts of an artifact, and its page for people.

use std::fmt::Write;

use powersweep_dataset::words::count;

use super::{PAPER, PROGRAM, ROWS, Study};
use crate::papers::Checked;

/// Tasks that are simulated again by default, and the time that they may take (s).
const TASKS_MAX: f64 = 100.0;
const SAMPLE_S: f64 = 240.0;

/// Number of tasks of each experiment that `reproduce.sh` simulates again, so that it ends within minutes.
pub(super) fn sample(study: &Study) -> u64 {
    let mean = |slot_s: f64, done: u64| if done > 0 { slot_s / done as f64 } else { 0.0 };
    let each: f64 = study.experiments.iter().map(|experiment| mean(experiment.slot_s, experiment.done)).sum();
    if each > 0.0 { (SAMPLE_S / each).clamp(1.0, TASKS_MAX) as u64 } else { TASKS_MAX as u64 }
}

/// A short name for files.
fn short_name(study: &Study) -> &str {
    let of_paper = study.paper.as_ref().map(|paper| paper.name.as_str());
    of_paper.or(study.experiments.first().map(|experiment| experiment.name.as_str())).unwrap_or("study")
}

/// The script that verifies.
pub(super) fn reproduce(study: &Study) -> String {
    let (tasks, name, figures) = (sample(study), short_name(study), study.has_figures());
    let output = if figures { format!(" --figures \"${{1:-../{name}-drawn-again}}\"") } else { String::new() };
    let claims = if study.paper.is_some() { ", and says which claims hold" } else { "" };
    let argument = if figures { " [FOLDER FOR FIGURES]" } else { "" };
    format!(
        r#"#!/bin/sh
# sh reproduce.sh{argument}
# Compares all digests, simulates some rows again bit for bit{claims}{and_figures}.
# No network is needed, as far as the logs are in inputs/ or in a folder of POWERSWEEP_TRACES.
# TASKS=N: the number of rows of each experiment.
set -eu
cd "$(dirname "$0")"
program=${{POWERSWEEP:-powersweep}}
if [ -f {PROGRAM} ]; then
    [ -x {PROGRAM} ] || chmod +x {PROGRAM}
    program=./{PROGRAM}
fi
"$program" --version
exec "$program" verify . --tasks "${{TASKS:-{tasks}}}"{output}
"#,
        and_figures = if figures { ", and draws every figure and table again" } else { "" },
    )
}

/// The recipe of an image.
pub(super) fn container(study: &Study) -> String {
    let built = study.experiments.iter().flat_map(|experiment| &experiment.simulated_by).next_back();
    let build = built.map_or(study.made_by.trim_start_matches("powersweep "), String::as_str);
    let commit = build.split_once('(').map_or("", |(_, commit)| commit.trim_end_matches(')'));
    let figures = if study.has_figures() { ", \"--figures\", \"/tmp/figures\"" } else { "" };
    let tasks = sample(study);
    let end = format!(
        "COPY . /study\nENTRYPOINT [\"/powersweep\", \"verify\", \"/study\", \"--tasks\", \"{tasks}\"{figures}]\n"
    );
    let head = "# In this folder: docker build --tag study --file Containerfile . && docker run --rm study\n\
                # Logs that are not in inputs/: docker run --rm --volume FOLDER:/logs --env POWERSWEEP_TRACES=/logs study\n";
    if study.has_program {
        return format!(
            "{head}# The program is in this artifact: with a static one nothing is fetched; another one needs an image with its C \
             library.\nARG BASE=scratch\nFROM ${{BASE}}\nCOPY {PROGRAM} /powersweep\n{end}"
        );
    }
    format!(
        "{head}# Builds powersweep {build}. SOURCE is the address of its repository:\n\
         #   docker build --build-arg SOURCE=ADDRESS --tag study --file Containerfile .\n\
         ARG BUILDER=rust:1.95.0-bookworm\nFROM ${{BUILDER}} AS build\nARG SOURCE\nARG COMMIT={commit}\n\
         RUN git clone \"$SOURCE\" /src && cd /src && git checkout \"${{COMMIT:-HEAD}}\"\nWORKDIR /src\n\
         ENV CARGO_TARGET_DIR=/target RUSTFLAGS=\"-C target-feature=+crt-static\"\n\
         RUN cargo build --release --locked --package powersweep-cli --features cloud,figures,wasm \\\n    \
         --target \"$(uname -m)-unknown-linux-gnu\" && mkdir -m 1777 /image /image/tmp \\\n    \
         && cp /target/*/release/powersweep /image/powersweep\n\nFROM scratch\nCOPY --from=build /image /\n{end}"
    )
}

/// The page for people.
pub(super) fn readme(study: &Study, checked: Option<&Checked>) -> String {
    let mut page = format!("# {}\n\nMade by {} from rows of {}.\n", study.title, study.made_by, study.date);
    let claims = if study.paper.is_some() { ", and says which claims hold" } else { "" };
    let _ = write!(
        page,
        "\n`sh reproduce.sh` compares all digests, simulates some rows again bit for bit{claims}. It needs the program powersweep"
    );
    page += if study.has_program { ", which is in `bin/`." } else { "; `Containerfile` builds an image with it." };
    page += " `description.tex` says what is needed and what comes out.\n\n";
    page += "| experiment | tasks | with a row | failed | not run |\n|---|---:|---:|---:|---:|\n";
    for experiment in &study.experiments {
        let (tasks, done, failed) = (experiment.tasks, experiment.done, experiment.failed);
        let _ = writeln!(page, "| {} | {tasks} | {done} | {failed} | {} |", experiment.name, experiment.missing());
    }
    let inputs = study.experiments.iter().flat_map(|experiment| &experiment.inputs);
    let mut inputs: Vec<String> = inputs
        .map(|input| {
            let digest = input.file_sha256.as_ref().unwrap_or(&input.content_sha256);
            let place = input.path.as_deref().unwrap_or("not in this artifact");
            format!("| {} | {} | {place} | `{digest}` |\n", input.kind, input.name)
        })
        .collect();
    inputs.sort();
    inputs.dedup();
    if !inputs.is_empty() {
        page += "\n| input | name | place | SHA-256 |\n|---|---|---|---|\n";
        page.extend(inputs);
    }
    if let Some(licence) = &study.logs_licence {
        let _ = write!(page, "\nLogs and signals are here under: {licence}.\n");
    }
    if let Some(checked) = checked {
        let _ = write!(page, "\n{}. `claims.json` has each of them.\n", checked.counts);
    }
    let figures = study.paper.iter().flat_map(|paper| &paper.figures);
    let mut lines = String::new();
    for figure in figures {
        let uses: Vec<String> = figure.used_by.iter().map(|used| format!("{}: {}", used.source, used.text)).collect();
        let files = if figure.files.is_empty() { "not drawn".to_owned() } else { figure.files.join(", ") };
        let _ = writeln!(lines, "| {} | {} | {} |", figure.shows, files, uses.join("; ").replace('|', "\\|"));
    }
    if !lines.is_empty() {
        let _ = write!(page, "\n| figure | files | sentences that use it |\n|---|---|---|\n{lines}");
    }
    let tables = study.experiments.iter().map(|experiment| experiment.tables.values().sum::<u64>()).sum();
    let _ = write!(
        page,
        "\n{} are in `{ROWS}/`, a data folder: `powersweep results NAME --data {ROWS}` shows them.",
        count(tables, "row")
    );
    if let Some(paper) = &study.paper {
        let _ = write!(
            page,
            " `powersweep check {PAPER}/{}.toml --data {ROWS}` shows each claim beside its value.",
            paper.name
        );
    }
    page + "\n"
}
