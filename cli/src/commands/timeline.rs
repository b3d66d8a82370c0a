//! `powersweep timeline`: when each task ran, as a trace for ui.perfetto.dev and chrome://tracing.

use powersweep::block_on;
use powersweep_dataset::writing::Output;

use crate::args::{TimelineArgs, TimelineFormat};
use crate::exit::{Exit, Outcome};
use crate::screen;

/// Writes the timeline of an experiment.
pub fn run(args: &TimelineArgs) -> Outcome {
    let TimelineFormat::Perfetto = args.format;
    let mut out = Output::open(args.output.as_deref())?;
    let written = block_on(async { args.from.place()?.timeline(&args.experiment, &mut out).await })?;
    out.finish()?;
    if let Some(output) = &args.output {
        screen::note(&format!(
            "powersweep: {} of {} on {} in {}; open it in https://ui.perfetto.dev or chrome://tracing",
            screen::count(written.tasks as u64, "task"),
            args.experiment,
            screen::count(written.workers as u64, "worker"),
            output.display()
        ));
    }
    Ok(Exit::Done)
}
