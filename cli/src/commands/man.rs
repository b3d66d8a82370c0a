//! `powersweep man`: manual pages.

use clap::CommandFactory;
use clap_mangen::Man;
use powersweep_dataset::writing::cannot_write;

use crate::args::{Cli, ManArgs};
use crate::exit::{Exit, Outcome};
use crate::screen;

/// Writes one page for each command into a folder, or prints the page of the program.
pub fn run(args: &ManArgs) -> Outcome {
    let Some(folder) = &args.output else {
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page).map_err(|error| cannot_write("the page".as_ref(), &error))?;
        return screen::write_styled(&String::from_utf8_lossy(&page)).map(|_| Exit::Done);
    };
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written.map_err(|error| cannot_write(folder, &error))?;
    screen::print(&format!("the pages are in {0}: man -l {0}/powersweep.1", folder.display()))
}
