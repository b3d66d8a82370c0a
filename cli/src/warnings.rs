//! Warnings about a sweep, on the screen.

use powersweep_experiments::Warning;

use crate::screen;

/// Warnings shown; the others are counted.
const SHOWN: usize = 12;

/// The warnings as text; empty without one. `file`: the manifest as the user named it.
pub fn text(warnings: &[Warning], file: &str) -> String {
    let mut lines: Vec<String> = warnings.iter().take(SHOWN).map(|warning| warning.text(file)).collect();
    let more = warnings.len().saturating_sub(SHOWN);
    if more > 0 {
        lines.push(format!("… and {}", screen::count(more as u64, "more warning")));
    }
    lines.join("\n")
}

/// Prints the warnings to standard error.
pub fn note(warnings: &[Warning], file: &str) {
    if !warnings.is_empty() {
        screen::note(&text(warnings, file));
    }
}
