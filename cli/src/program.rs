//! How this program is started again: `worker` replaces itself, and jobs of a batch system start workers.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

static PROGRAM: OnceLock<(Option<PathBuf>, Vec<OsString>)> = OnceLock::new();

/// Sets the program and the arguments of the command line, once.
pub fn set(program: Option<PathBuf>, arguments: &[OsString]) {
    let _ = PROGRAM.set((program, arguments.to_vec()));
}

/// The program: inside of Python a script, else the executable of this process.
pub fn path() -> io::Result<PathBuf> {
    match PROGRAM.get() {
        Some((Some(program), _)) => Ok(program.clone()),
        _ => std::env::current_exe(),
    }
}

/// The arguments of the command line, without the name of the program.
pub fn arguments() -> &'static [OsString] {
    PROGRAM.get().map_or(&[], |(_, arguments)| arguments)
}
