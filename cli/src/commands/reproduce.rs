//! `powersweep reproduce`: whole papers as one page, with their figures, tables and claims beside ours.

use crate::args::ReproduceArgs;
use crate::exit::Outcome;

/// Says how to get figures.
#[cfg(not(feature = "figures"))]
pub fn run(_: &ReproduceArgs) -> Outcome {
    Err(super::plot::without_figures())
}

/// Runs the missing tasks of the papers, and writes their page.
#[cfg(feature = "figures")]
pub fn run(args: &ReproduceArgs) -> Outcome {
    use std::collections::BTreeSet;
    use std::time::Instant;

    use powersweep::block_on;
    use powersweep::papers::reproduce::{Ran, page};
    use powersweep::papers::{self, Chosen, Paper};
    use powersweep_claims::Counts;
    use powersweep_claims::papers::is_study;
    use powersweep_dataset::writing::write_whole;

    use super::check;
    use crate::exit::{Exit, Failure, failure};
    use crate::{inputs, interrupt, screen};

    let papers: Vec<Paper> = match args.papers.is_empty() {
        true => papers::all()?.into_iter().filter(|paper| !is_study(&paper.name)).collect(),
        false => args.papers.iter().map(|name| Paper::open(name, inputs::problems)).collect::<Result<_, _>>()?,
    };
    let mut names = BTreeSet::new();
    if let Some(paper) = papers.iter().find(|paper| !names.insert(&paper.name)) {
        return Err(failure!(Usage, "two papers have the name {}, which is that of their folder", paper.name));
    }
    let began = Instant::now();
    let mut reproduced = Vec::new();
    for paper in &papers {
        let ran = |manifest: String| {
            let begun = Instant::now();
            let sweep = check::swept(&paper.name, &paper.path_of(&manifest), &manifest, &args.local)?;
            Ok(Ran { manifest, sweep, seconds: begun.elapsed().as_secs_f64() })
        };
        let ran: Vec<Ran> = paper.manifests().into_iter().map(ran).collect::<Result<_, Failure>>()?;
        let tell = |chosen: &Chosen| {
            if !args.local.quiet {
                screen::note(&format!("{}: {}", paper.name, chosen.preset.source()));
            }
        };
        let (place, stop) = (args.local.data.place(), interrupt::token());
        reproduced.push(block_on(async {
            tokio::select! {
                drawn = place.reproduce(paper, &ran, &args.output, tell) => drawn,
                () = stop.cancelled() => Err(failure!(
                    Interrupted,
                    "interrupted; finished tasks and figures are kept. Run the same command to continue"
                )),
            }
        })?);
    }
    let file = args.output.join("report.html");
    write_whole(Some(&file), page(&reproduced, began.elapsed()).as_bytes())?;
    screen::note(&format!("powersweep: {} has the page", file.display()));
    let claims = || reproduced.iter().flat_map(|paper| &paper.claims);
    screen::note(&Counts::of(claims()).to_string());
    match claims().filter(|claim| claim.is_failure()).count() {
        0 => Ok(Exit::Done),
        failed => Err(failure!(ClaimFails, "{}", check::failing(failed))),
    }
}
