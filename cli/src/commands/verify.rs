//! `powersweep verify`: simulates some finished tasks again and compares their rows bit for bit.

use std::time::Instant;

use powersweep::artifact::is_artifact;
use powersweep::block_on;

use super::verified::{differences, note_rest, options, sampled, summary};
use crate::args::VerifyArgs;
use crate::exit::{Exit, Outcome, failure};
use crate::screen;

/// Simulates a random sample of tasks again.
pub fn run(args: &VerifyArgs) -> Outcome {
    if is_artifact(&args.experiment) {
        return super::artifact::verify(args);
    }
    if args.figures.is_some() {
        return Err(failure!(Usage, "only an artifact has figures: leave out --figures, or see `powersweep plot`"));
    }
    let began = Instant::now();
    let options = options(args)?;
    let found = block_on(async { args.from.place()?.verify(&args.experiment, &options).await })?;
    match (found.differing.len(), found.equal) {
        (0, 0) => {
            note_rest(&found);
            let hint = ": no task of the rows is one of the manifest. Give the manifest that made them by --manifest";
            Err(failure!(Failure, "no row could be compared{}", if found.foreign > 0 { hint } else { "" }))
        }
        (0, _) => {
            let time = screen::duration(began.elapsed().as_secs_f64());
            screen::print(&format!("{} ({time})", summary(&args.experiment, &found)))?;
            if found.is_partial { Err(failure!(Failure, "some rows could not be compared")) } else { Ok(Exit::Done) }
        }
        _ => {
            note_rest(&found);
            screen::print(&differences(&found))?;
            let sampled = sampled(&args.experiment, &found);
            Err(failure!(ClaimFails, "{sampled}: {}", found.differing_rows("")))
        }
    }
}
