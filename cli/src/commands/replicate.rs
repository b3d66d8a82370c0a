//! Sweeps whose seeds are added until means are known, for `run` and `submit --wait`.

use powersweep::replicate::lines;
use powersweep::{DerivedOptions, Manifest, Place, block_on};

use super::progress::to_its_end;
use crate::exit::{Exit, Outcome};
use crate::screen;

/// Runs all stages, and shows the means.
pub fn replicate(manifest: &Manifest, place: &Place, options: DerivedOptions, quiet: bool) -> Outcome {
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
            to_its_end(quiet, replication.run(stage).await?).await?;
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
