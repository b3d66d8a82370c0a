//! `powersweep check`: compares a paper's claims with the results of its sweeps.

use std::collections::BTreeSet;

use comfy_table::CellAlignment;
use powersweep::papers::{self, Checked, ListedPaper, Paper, Sweeps};
use powersweep::{RunOptions, block_on};
use powersweep_claims::ClaimKind;
use powersweep_experiments::Sweep;
use serde_json::json;

use super::run;
use crate::args::{CheckArgs, LocalArgs, OutputArgs};
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::{inputs, screen};

/// Runs the missing tasks of the claims' manifests, then compares.
pub fn run(args: &CheckArgs) -> Outcome {
    let Some(name) = &args.paper else { return list(args.output) };
    let paper = Paper::open(name, inputs::problems)?;
    let claims = &paper.claims;
    let mut sweeps = Sweeps::new();
    for manifest in claims.manifests(args.demanded) {
        let path = paper.path_of(manifest);
        sweeps.insert(manifest.to_owned(), swept(&paper.name, &path, manifest, &args.local)?);
    }
    let checked = block_on(args.local.data.place().check(claims, &sweeps, args.demanded))?;
    match args.output.is_json() {
        true => screen::print_json(json!(&checked))?,
        false => screen::print(&text(&checked))?,
    };
    screen::note(&checked.counts.to_string());
    let failed = checked.failed();
    if failed.is_empty() {
        return Ok(Exit::Done);
    }
    Err(failure!(ClaimFails, "{}: {}", failing(failed.len()), failed.join(", ")))
}

/// Runs the missing tasks of a manifest of a paper; without one, no log is read. `path`: its file, or its shipped name.
pub(super) fn swept(paper: &str, path: &str, manifest: &str, local: &LocalArgs) -> Result<Sweep, Failure> {
    let parsed = inputs::manifest(path)?;
    if let Some(sweep) = block_on(local.data.place().finished(&parsed))? {
        return Ok(sweep);
    }
    if !local.quiet {
        screen::note(&format!("{paper}: running the missing tasks of {manifest}"));
    }
    run::to_its_end((path, parsed), local, RunOptions::default(), 0)
}

/// How many demanded claims fail.
pub(super) fn failing(count: usize) -> String {
    format!("{} {}", screen::count(count as u64, "demanded claim"), if count == 1 { "fails" } else { "fail" })
}

fn list(output: OutputArgs) -> Outcome {
    let papers: Vec<ListedPaper> = papers::all()?.iter().map(Paper::listed).collect();
    if output.is_json() {
        return screen::print_json(json!({ "papers": papers }));
    }
    let mut table = screen::table();
    table.set_header(["paper", "claims", "demanded", "manifests", "title"]);
    for ListedPaper { paper, title, claims, demanded, manifests } in papers {
        table.add_row([paper, claims.to_string(), demanded.to_string(), manifests.join(", "), title]);
    }
    screen::print(&table.to_string())
}

/// The claims as tables.
pub(super) fn text(checked: &Checked) -> String {
    let mut text = checked.title.clone();
    for (kind, stated) in [(ClaimKind::Published, "published"), (ClaimKind::Guard, "expected")] {
        let mut table = screen::table();
        table.set_header(["claim", stated, "ours", "verdict", "source", "from"]);
        for claim in checked.claims.iter().filter(|claim| claim.kind == kind) {
            table.add_row([&claim.text, &claim.stated, &claim.ours, claim.words, &claim.source, &claim.from]);
        }
        for column in table.column_iter_mut().skip(1).take(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if !table.is_empty() {
            text.push_str(&format!("\n{table}"));
        }
    }
    let mut reasons = BTreeSet::new();
    for claim in checked.claims.iter().filter(|claim| claim.holds != Some(true)) {
        let id = claim.id.split('[').next().unwrap_or_default();
        if let Some(why) = claim.why.as_deref().filter(|_| reasons.insert(id)) {
            text.push_str(&format!("\n{id} is not demanded: {why}"));
        }
    }
    text
}
