//! `powersweep artifact`: one ZIP file for reviewers; and what `powersweep verify` says of one.

use std::path::Path;
use std::time::Instant;

use powersweep::artifact::{Artifact, ArtifactOptions, CheckedArtifact, CheckedExperiment};
use powersweep::block_on;
use powersweep::papers::Paper;

use super::{check, verified};
use crate::args::{ArtifactArgs, VerifyArgs};
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::{inputs, screen};

/// Makes an artifact.
pub fn run(args: &ArtifactArgs) -> Outcome {
    let paper = args.paper.as_deref().map(|name| Paper::open(name, inputs::problems)).transpose()?;
    let options = ArtifactOptions {
        // Relative paths in manifests that the claims do not name start in the folder of the claims.
        library: inputs::library_of(args.paper.as_deref().unwrap_or_default(), &args.logs),
        paper,
        logs_licence: args.with_logs.clone(),
        licence: args.licence.clone(),
        authors: args.authors.clone(),
        program: args.program.clone(),
        incomplete: args.incomplete,
    };
    let made = block_on(async { args.from.place()?.artifact(&args.experiments, &args.output, &options).await })?;
    for experiment in &made.study.experiments {
        let tables = experiment.tables.iter();
        let tables: Vec<String> =
            tables.map(|(table, rows)| format!("{table} {}", screen::count(*rows, "row"))).collect();
        screen::print(&format!("{}: {}", experiment.name, tables.join(", ")))?;
        for input in experiment.inputs.iter().filter(|input| input.path.is_none()) {
            screen::print(&format!("  {} {} is named, not included", input.kind, input.name))?;
        }
    }
    if let Some(checked) = &made.checked {
        screen::print(&checked.counts.to_string())?;
    }
    let (name, bytes, sha256) = (args.output.display(), made.bytes, made.sha256);
    screen::print(&format!("{name}: {}, SHA-256 {sha256}", screen::count(bytes, "byte")))?;
    screen::note(&format!(
        "powersweep: `powersweep verify {name}` is what a reviewer runs; name the SHA-256 in the paper"
    ));
    Ok(Exit::Done)
}

/// Checks an artifact: digests, rows, claims, figures.
pub fn verify(args: &VerifyArgs) -> Outcome {
    let (began, name) = (Instant::now(), &args.experiment);
    if args.manifest.is_some() {
        return Err(failure!(Usage, "an artifact has its manifests: leave out --manifest"));
    }
    let artifact = match Artifact::open(Path::new(name))? {
        Ok(artifact) => artifact,
        Err(problems) => {
            for problem in &problems {
                screen::print(&format!("{}: {}", problem.file, problem.what))?;
            }
            let count = screen::count(problems.len() as u64, "file");
            return Err(failure!(ClaimFails, "{name}: {count} not as they were made; nothing else was checked"));
        }
    };
    let digest = artifact.sha256.map_or(String::new(), |digest| format!("; SHA-256 of the ZIP {digest}"));
    let files = screen::count(artifact.files() as u64, "file");
    screen::print(&format!("{name}: {files} as they were made{digest}"))?;
    let options = verified::options(args)?;
    let found = block_on(artifact.verify(&options, args.figures.as_deref(), &screen::notes()))?;
    told(&found, args)?;
    screen::note(&format!("powersweep: checked in {}", screen::duration(began.elapsed().as_secs_f64())));
    verdict(name, &found)
}

/// Prints what came of the rows, claims and figures.
fn told(found: &CheckedArtifact, args: &VerifyArgs) -> Result<(), Failure> {
    for CheckedExperiment { studied, verified } in &found.experiments {
        let name = &studied.name;
        if !studied.is_complete() {
            let (tasks, failed) = (screen::count(studied.tasks, "task"), studied.failed);
            screen::print(&format!("{name}: of {tasks}, {failed} failed and {} have not run", studied.missing()))?;
        }
        match verified {
            Ok(verified) => screen::print(&verified::summary(name, verified))?,
            Err(error) => screen::print(&format!("{name}: no row was simulated again: {}", error.message))?,
        };
        if let Ok(verified) = verified
            && !verified.differing.is_empty()
        {
            screen::print(&verified::differences(verified))?;
        }
    }
    if let Some(checked) = &found.checked {
        screen::print(&check::text(checked))?;
        screen::print(&checked.counts.to_string())?;
    }
    if let (Some(drawn), Some(folder)) = (&found.drawn, &args.figures) {
        let (equal, folder) = (screen::count(drawn.equal as u64, "file"), folder.display());
        screen::print(&format!("figures and tables were drawn into {folder}: {equal} equal to those of the artifact"))?;
        if !drawn.differing.is_empty() {
            let why = if drawn.same_version { "" } else { ", which another version drew" };
            screen::print(&format!("not equal{why}: {}", drawn.differing.join(", ")))?;
        }
    }
    Ok(())
}

/// How the command ends.
fn verdict(name: &str, found: &CheckedArtifact) -> Outcome {
    let mut wrong = Vec::new();
    for CheckedExperiment { studied, verified } in &found.experiments {
        match verified {
            Ok(verified) if !verified.differing.is_empty() => {
                wrong.push(verified.differing_rows(&format!(" of {}", studied.name)));
            }
            Ok(verified) if verified.is_partial => {
                wrong.push(format!("some rows of {} could not be compared", studied.name));
            }
            Ok(verified) if verified.equal == 0 => wrong.push(format!("no row of {} could be compared", studied.name)),
            Ok(_) => {}
            Err(_) => wrong.push(format!("no row of {} was simulated again", studied.name)),
        }
    }
    if !found.changed_claims.is_empty() {
        wrong.push(format!("claims have other values than in the artifact: {}", found.changed_claims.join(", ")));
    }
    let failed = found.checked.as_ref().map(|checked| checked.failed()).unwrap_or_default();
    if !failed.is_empty() {
        wrong.push(format!("{}: {}", check::failing(failed.len()), failed.join(", ")));
    }
    if found.drawn.as_ref().is_some_and(|drawn| drawn.same_version && !drawn.differing.is_empty()) {
        wrong.push("figures differ".to_owned());
    }
    if wrong.is_empty() {
        return Ok(Exit::Done);
    }
    let kind =
        found.experiments.iter().find_map(|experiment| experiment.verified.as_ref().err().map(|error| error.kind));
    let is_only_that = wrong.iter().all(|wrong| wrong.ends_with("was simulated again"));
    let kind = kind.filter(|_| is_only_that).unwrap_or(powersweep::Kind::ClaimFails);
    Err(Failure::new(kind, format!("{name}: {}", wrong.join("; "))))
}
