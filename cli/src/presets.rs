//! Figures and tables of papers: their list, their numbers, and the options that choose them.

use powersweep::papers::{self, Chosen, Paper, presets};
use powersweep_dataset::Frame;

use crate::args::ResultsArgs;
use crate::exit::{Failure, Outcome, failure};
use crate::screen;

/// The figure or table of `--preset`.
pub fn choose(experiment: &str, preset: &str) -> Result<Chosen, Failure> {
    if !preset.contains('/') {
        let name = powersweep_claims::papers::names()[0];
        Paper::of(experiment)
            .map_err(|failure| failure!(Usage, "{}\nfor example: --preset {name}/{preset}", failure.message))?;
    }
    papers::choose(experiment, preset)
}

/// Lists the presets of all papers, or of the one that has an experiment.
pub fn list(experiment: Option<&str>) -> Outcome {
    let mut table = screen::table();
    table.set_header(["preset", "shows", "experiments"]);
    for Chosen { paper, preset, .. } in presets::list(experiment)? {
        let manifests: Vec<String> = preset.manifests().into_iter().collect();
        table.add_row([format!("{paper}/{}", preset.name), preset.caption, manifests.join(", ")]);
    }
    screen::print(&table.to_string())
}

/// The numbers of a figure, or a table, of a paper.
pub async fn numbers(args: &ResultsArgs, preset: &str) -> Result<Frame, Failure> {
    let chosen = choose(&args.experiment, preset)?;
    chosen.frame(&args.from.place()?.datasets().await?).await
}
