//! `powersweep find`: a search that runs only the tasks that it needs.

#[cfg(feature = "figures")]
mod figure;
mod shown;

use powersweep::find::{FindOptions, Search, StepRun};
use powersweep::run::RunOptions;
use powersweep::{Goal, block_on};
use powersweep_dataset::grouped::FooterFacts;
use powersweep_experiments::Over;
use tokio_util::sync::CancellationToken;

use super::progress::to_its_end;
use super::submit;
use crate::args::FindArgs;
use crate::exit::{Failure, Outcome, failure};
use crate::{inputs, interrupt, screen};

/// Without figures, says how to get them.
#[cfg(not(feature = "figures"))]
mod figure {
    use std::path::Path;

    use powersweep::find::{Found, Search};

    use crate::commands::plot::without_figures;
    use crate::exit::Failure;

    pub(super) fn check(_: &Path) -> Result<(), Failure> {
        Err(without_figures())
    }

    pub(super) async fn draw(_: &Search, _: &Found, _: bool, _: &Path) -> Result<(), Failure> {
        Err(without_figures())
    }
}

/// Searches, and shows the answers.
pub fn run(args: &FindArgs) -> Outcome {
    if let Some(output) = &args.output {
        figure::check(output)?;
    }
    let original = inputs::manifest(&args.manifest)?;
    block_on(async {
        let place = args.coordinator.place(&args.local.data)?;
        let mut search = place.find(&original, options(args, interrupt::token())?)?;
        if !args.local.quiet {
            note_left_out(&search);
        }
        let mut number = 0;
        while let Some(step) = search.next().await? {
            number += 1;
            if !args.local.quiet {
                screen::note(&format!(
                    "powersweep: {}: step {number}: {} of {}; {} of {} have rows",
                    search.name(),
                    screen::count(step.tasks as u64, "task"),
                    screen::count(step.candidates as u64, "candidate"),
                    step.rows,
                    step.grid,
                ));
            }
            let begun = search.run(step).await?;
            let is_told = !args.local.quiet || matches!(begun, StepRun::AtCoordinator(_));
            if is_told && number == 1 && begun.submitted().extra > 0 {
                screen::note(&submit::describe(begun.submitted(), None));
            }
            to_its_end(args.local.quiet, begun).await?;
        }
        let found = search.found();
        let is_relative = is_relative(&search).await?;
        if let Some(output) = &args.output {
            figure::draw(&search, &found, is_relative, output).await?;
        }
        shown::show(&found, is_relative, args.json)
    })
}

/// Whether energies are relative, since no watts are known.
async fn is_relative(search: &Search) -> Result<bool, Failure> {
    let Some(datasets) = search.datasets().await? else { return Ok(false) };
    Ok(FooterFacts::read(&datasets, search.name()).await?.is_relative)
}

fn options(args: &FindArgs, stop: CancellationToken) -> Result<FindOptions, Failure> {
    let over = |text: &String| Over::parse(text).map_err(|reason| failure!(Usage, "--over {reason}"));
    let local = &args.local;
    let run = RunOptions { slots: local.slots.count(), replace: args.replace, stop, ..RunOptions::default() };
    Ok(FindOptions {
        over: args.over.iter().map(over).collect::<Result<_, _>>()?,
        goal: Goal {
            column: args.minimise.iter().chain(&args.maximise).next().cloned().unwrap_or_default(),
            is_maximised: args.maximise.is_some(),
        },
        subject_to: args.subject_to.clone(),
        rungs: args.rungs.clone(),
        name: args.name.clone(),
        manifest_out: args.manifest_out.clone(),
        manifest: inputs::derived(&args.manifest, &local.logs, local.slots.logs(), run),
    })
}

fn note_left_out(search: &Search) {
    if !search.left_out().is_empty() {
        let names: Vec<String> = search.left_out().iter().map(ToString::to_string).collect();
        let axes: Vec<&str> = search.axes().iter().map(|axis| axis.name).collect();
        let (axes, names) = (axes.join(" or "), names.join("; "));
        screen::note(&format!("powersweep: left out, since {axes} does not vary there: {names}"));
    }
}
