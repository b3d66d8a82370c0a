//! Long texts of this program in the user's pager.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use crate::exit::{Exit, Outcome};
use crate::{interrupt, screen};

/// The pager where `PAGER` is not set.
const LESS: &str = "less";

/// What `less` does where `LESS` is not set: end at once if the text fits the screen, show styles, keep the text on the
/// screen.
const LESS_OPTIONS: &str = "FRX";

/// The exit code of a shell that did not find its command.
const NOT_FOUND: i32 = 127;

/// Shows a text in the pager if standard output is a terminal and there is a pager; prints it elsewhere.
pub fn show(text: &str) -> Outcome {
    match pager() {
        Some(pager) if screen::redraws(&io::stdout()) && page(&pager, text) => Ok(Exit::Done),
        _ => screen::write_styled(text).map(|_| Exit::Done),
    }
}

/// The command in `PAGER`; none if `PAGER` is empty. Without the variable, `less` if it is installed.
fn pager() -> Option<String> {
    match std::env::var("PAGER") {
        Ok(pager) => Some(pager).filter(|pager| !pager.trim().is_empty()),
        Err(_) => {
            let folders = std::env::var_os("PATH")?;
            std::env::split_paths(&folders).any(|folder| folder.join(LESS).is_file()).then(|| LESS.to_owned())
        }
    }
}

/// Whether the pager has shown the text.
fn page(pager: &str, text: &str) -> bool {
    // Ctrl-C is for the pager: this program outlives it, so that the shell waits for the pager.
    interrupt::leave_to_child();
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS_OPTIONS);
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // A pager may end before it has read the whole text.
        let _ = input.write_all(text.as_bytes());
    }
    child.wait().is_ok_and(|status| status.code() != Some(NOT_FOUND))
}
