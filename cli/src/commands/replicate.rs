//! Sweeps whose seeds are added until means are known, for `run` and `submit --wait`.

use std::sync::Arc;

use powersweep::find::StepRun;
use powersweep::replicate::lines;
use powersweep::run::RunOptions;
use powersweep::{DerivedOptions, Manifest, Place, block_on};
use powersweep_inputs::library::ParsedLogs;

use super::progress::follow;
use super::status::failures_text;
use crate::args::LogArgs;
use crate::exit::{Exit, Outcome, failure};
use crate::{inputs, screen};

/// Runs all stages, and shows the means.
pub fn to_its_end(
    (file, manifest): (&str, &Manifest),
    place: &Place,
    logs: (&LogArgs, ParsedLogs),
    options: RunOptions,
    quiet: bool,
) -> Outcome {
    let library = inputs::library_of(file, logs.0);
    let options = DerivedOptions {
        file: file.to_owned(),
        library,
        logs: Arc::new(logs.1),
        run: options,
        problems: inputs::problems,
    };
    block_on(async {
        let mut replication = place.replicate(manifest, options)?;
        while let Some(stage) = replication.next().await? {
            if !quiet {
                screen::note(&format!(
                    "powersweep: {}: stage {} of 2: {} of {}",
                    replication.name(),
                    stage.number,
                    screen::count(stage.tasks as u64, "task"),
                    screen::count(stage.combinations as u64, "combination"),
                ));
            }
            let ended = match replication.run(stage).await? {
                StepRun::AtCoordinator(waiting) => waiting.end().await?,
                StepRun::Here(mut running) => {
                    follow(quiet, &mut running).await;
                    running.end().await?
                }
            };
            if ended.failed + ended.quarantined > 0 {
                return Err(failure!(TasksFailed, "{}", failures_text(&ended)));
            }
        }
        if quiet {
            return Ok(Exit::Done);
        }
        let known = replication.known()?;
        let mut table = screen::table();
        table.set_header(["combination", "metric", "seeds", "mean"]);
        for line in lines(&known) {
            table.add_row(line);
        }
        screen::print(&format!("{table}\n\n{}", replication.said(&known)))
    })
}
