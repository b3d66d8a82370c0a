//! `powersweep check`: compares a paper's claims with the results of its sweeps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow::array::RecordBatch;
use comfy_table::CellAlignment;
use powersweep::{Place, block_on};
use powersweep_claims::{Claims, Finding, Rows, Verdict, papers};
use powersweep_coordinator::store::Location;
use powersweep_dataset::source::Source;
use powersweep_experiments::reading::{similar, unknown};
use powersweep_experiments::{Sweep, manifests};
use powersweep_results::Table;
use powersweep_results::join;
use serde_json::{Value as Json, json};

use super::run;
use crate::args::{CheckArgs, LocalArgs, OutputArgs, RunArgs};
use crate::exit::{Exit, Failure, Kind, OrKind, Outcome, failure};
use crate::{inputs, screen};

/// Runs the missing tasks of the claims' manifests, then compares.
pub fn run(args: &CheckArgs) -> Outcome {
    let Some(name) = &args.paper else { return list(args.output) };
    let claims = claims(name)?;
    let rows = rows(&claims, args)?;
    let findings = claims.check(&rows, args.demanded);
    match args.output.is_json() {
        true => screen::print_json(document(&claims, &findings))?,
        false => screen::print(&text(&claims, &findings))?,
    };
    let failed: Vec<&str> = findings.iter().filter(|f| f.is_failure()).map(|f| f.id.as_str()).collect();
    let demanded = findings.iter().filter(|f| f.demanded).count() as u64;
    if failed.is_empty() {
        screen::note(&format!(
            "{} {}",
            screen::count(demanded, "demanded claim"),
            if demanded == 1 { "holds" } else { "hold" }
        ));
        return Ok(Exit::Done);
    }
    Err(failure!(ClaimFails, "{} of {demanded} demanded claims fail: {}", failed.len(), failed.join(", ")))
}

/// The claims in the file of this name; if no such file exists, the shipped claims of this paper.
fn claims(name: &str) -> Result<Claims, Failure> {
    let path = Path::new(name);
    let (file, text) = if path.is_file() {
        (name.to_owned(), inputs::text(name, "claims")?)
    } else if let Some(text) = papers::find(name) {
        (format!("{name} (shipped)"), text.to_owned())
    } else {
        let known: Vec<&str> = papers::builtin().iter().map(|(name, _)| *name).collect();
        let kind = "paper (neither a file nor shipped claims)";
        let unknown = match similar(name, &known).is_empty() {
            true => format!("unknown {kind} `{name}`"),
            false => unknown(kind, name, &known),
        };
        return Err(failure!(Usage, "{unknown}\npapers: {}", known.join(", ")));
    };
    Claims::parse(&file, &text).map_err(|errors| inputs::problems(&file, &errors))
}

/// Runs the manifests of the claims, and reads the columns of the claims.
fn rows(claims: &Claims, args: &CheckArgs) -> Result<Rows, Failure> {
    let mut sweeps = BTreeMap::new();
    for name in claims.manifests(args.demanded) {
        let file = args.paper.as_deref().unwrap_or_default();
        sweeps.insert(name.to_owned(), swept(claims.paper(), file, name, &args.local)?);
    }
    read_rows(claims, &sweeps, &args.local.data.location()?, args.demanded)
}

/// Runs the missing tasks of a manifest. `file`: the file of claims that names it, or the name of shipped claims.
pub(super) fn swept(paper: &str, file: &str, manifest: &str, local: &LocalArgs) -> Result<Sweep, Failure> {
    if !local.quiet {
        screen::note(&format!("{paper}: running the missing tasks of {manifest}"));
    }
    run::to_its_end(&RunArgs {
        manifest: beside(file, manifest),
        local: local.clone(),
        listen: ([127, 0, 0, 1], 0).into(),
        take_over: false,
        restart: false,
        replace: false,
        show: 0,
        step: None,
    })
}

/// The columns of the claims in the rows of sweeps, by the names of their manifests.
pub(super) fn read_rows(
    claims: &Claims,
    sweeps: &BTreeMap<String, Sweep>,
    location: &Location,
    demanded_only: bool,
) -> Result<Rows, Failure> {
    let mut rows = Rows::new();
    for ((manifest, table), columns) in claims.needed(demanded_only) {
        let sweep = sweeps.get(&manifest).expect("every manifest that is needed has been run");
        rows.add(&manifest, table, read(location, sweep, table, columns)?);
    }
    Ok(rows)
}

/// The rows of a table with these columns. Columns that the table does not have come from `tasks`.
fn read(
    location: &Location,
    sweep: &Sweep,
    table: Table,
    columns: BTreeSet<String>,
) -> Result<Vec<RecordBatch>, Failure> {
    let datasets = Place { notes: screen::notes(), ..Place::open(location.to_string()) }.datasets_here()?;
    let names: Vec<&str> = columns.iter().map(String::as_str).chain(["task_id"]).collect();
    let rows = block_on(async {
        let reading = datasets.read_published(sweep.manifest().name(), table).await?;
        Source::open(&datasets, &reading, &names, Vec::new()).await?.batches().await
    })?;
    let ids = task_ids(sweep);
    rows.iter().map(|batch| join::of_tasks(batch, &ids)).collect::<Result<_, _>>().or_kind(Kind::Storage)
}

/// The tasks of the present manifest: an adopted dataset can also have rows of tasks of unknown manifests.
fn task_ids(sweep: &Sweep) -> BTreeSet<String> {
    (0..sweep.index_count()).filter_map(|index| sweep.task(index)).map(|task| task.task_id.to_string()).collect()
}

/// The path or shipped name of a manifest that a file of claims names: a path starts in the folder of that file.
fn beside(claims: &str, manifest: &str) -> String {
    let path = inputs::folder_of(claims).join(manifest);
    let is_shipped = !path.is_file() && manifests::find(manifest).is_some();
    if is_shipped { manifest.to_owned() } else { path.to_string_lossy().into_owned() }
}

fn list(output: OutputArgs) -> Outcome {
    let parsed = papers::builtin().iter().map(|(name, _)| claims(name)).collect::<Result<Vec<Claims>, Failure>>()?;
    if output.is_json() {
        let one = |claims: &Claims| {
            json!({
                "paper": claims.paper(),
                "title": claims.title(),
                "claims": claims.count(false),
                "demanded": claims.count(true),
                "manifests": claims.manifests(false),
            })
        };
        return screen::print_json(json!({ "papers": parsed.iter().map(one).collect::<Vec<Json>>() }));
    }
    let mut table = screen::table();
    table.set_header(["paper", "claims", "demanded", "manifests", "title"]);
    for claims in &parsed {
        table.add_row([
            claims.paper().to_owned(),
            claims.count(false).to_string(),
            claims.count(true).to_string(),
            claims.manifests(false).join(", "),
            claims.title().to_owned(),
        ]);
    }
    screen::print(&table.to_string())
}

/// The verdict as text. A claim that is not demanded is only reported.
pub(super) fn verdict(finding: &Finding) -> &'static str {
    match (finding.verdict, finding.demanded) {
        (Verdict::Holds, true) => "holds",
        (Verdict::Fails, true) => "FAILS",
        (Verdict::Missing, true) => "MISSING",
        (Verdict::Holds, false) => "reported, holds",
        (Verdict::Fails, false) => "reported, differs",
        (Verdict::Shown, _) => "reported",
        (Verdict::Missing, false) => "reported, missing",
    }
}

fn text(claims: &Claims, findings: &[Finding]) -> String {
    let mut table = screen::table();
    table.set_header(["claim", "published", "ours", "verdict", "source", "from"]);
    for finding in findings {
        table.add_row([
            &finding.text,
            &finding.published,
            &finding.ours,
            verdict(finding),
            &finding.source,
            &finding.from,
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = format!("{}\n{table}", claims.title());
    let mut reasons = BTreeSet::new();
    for finding in findings.iter().filter(|f| f.verdict != Verdict::Holds) {
        let id = finding.id.split('[').next().unwrap_or_default();
        if let Some(why) = finding.why.as_deref().filter(|_| reasons.insert(id)) {
            text.push_str(&format!("\n{id} is not demanded: {why}"));
        }
    }
    text
}

fn document(claims: &Claims, findings: &[Finding]) -> Json {
    let one = |finding: &Finding| {
        json!({
            "id": finding.id,
            "claim": finding.text,
            "source": finding.source,
            "published": finding.published,
            "published_value": finding.published_value,
            "ours": finding.ours,
            "our_value": finding.our_value,
            "verdict": verdict(finding),
            "holds": match finding.verdict {
                Verdict::Holds => Json::Bool(true),
                Verdict::Fails => Json::Bool(false),
                Verdict::Shown | Verdict::Missing => Json::Null,
            },
            "demanded": finding.demanded,
            "why_not_demanded": finding.why,
            "from": finding.from,
        })
    };
    json!({
        "paper": claims.paper(),
        "title": claims.title(),
        "holds": !findings.iter().any(Finding::is_failure),
        "claims": findings.iter().map(one).collect::<Vec<Json>>(),
    })
}
