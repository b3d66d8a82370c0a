//! `powersweep completions`: a script that completes commands and options in a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{Exit, Outcome};
use crate::screen;

/// Prints the script of a shell.
pub fn run(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "powersweep", &mut script);
    screen::write_styled(&String::from_utf8_lossy(&script)).map(|_| Exit::Done)
}
