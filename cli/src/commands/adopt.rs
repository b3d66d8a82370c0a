//! `powersweep adopt`: rebuilds a lost state from the published rows.

use powersweep::adopt::{AdoptOptions, Adopted};
use powersweep::block_on;

use crate::args::AdoptArgs;
use crate::exit::Outcome;
use crate::{inputs, screen};

/// Rebuilds the state. An error leaves the data unchanged.
pub fn run(args: &AdoptArgs) -> Outcome {
    let manifest = inputs::manifest(&args.manifest)?;
    let files = inputs::files(&manifest, &inputs::library_of(&args.manifest, &args.logs), None)?;
    let options = AdoptOptions { accept: args.accept, set_aside: args.set_aside, take_over: args.take_over };
    let Adopted { experiment, tasks, done, uploads } = block_on(args.data.place().adopt(&manifest, files, options))?;
    let more = if uploads > 0 { format!(", {} adopted", screen::count(uploads, "upload")) } else { String::new() };
    screen::print(&format!(
        "{experiment}: {done} of {} have rows{more}; {} to run",
        screen::count(tasks, "task"),
        tasks - done
    ))
}
