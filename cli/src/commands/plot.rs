//! `powersweep plot`: a figure of an experiment.

#[cfg(feature = "figures")]
mod aggregate;
#[cfg(feature = "figures")]
mod drawing;
#[cfg(feature = "figures")]
mod kinds;
#[cfg(feature = "figures")]
mod preset;
#[cfg(feature = "figures")]
mod read;
#[cfg(feature = "figures")]
mod titles;

#[cfg(feature = "figures")]
pub use drawing::{Drawing, drawn, encoded, format_of, write_figure};
#[cfg(feature = "figures")]
pub use kinds::refused;
#[cfg(feature = "figures")]
pub use preset::of_paper;
#[cfg(feature = "figures")]
pub use titles::titled;

use crate::args::PlotArgs;
use crate::exit::Outcome;

/// Draws a figure.
#[cfg(feature = "figures")]
pub fn run(args: &PlotArgs) -> Outcome {
    drawing::run(args)
}

/// Says how to get figures.
#[cfg(not(feature = "figures"))]
pub fn run(args: &PlotArgs) -> Outcome {
    if args.presets {
        return crate::presets::list(Some(args.experiment()).filter(|name| !name.is_empty()));
    }
    Err(without_figures())
}

/// Why a binary draws no figures.
#[cfg(not(feature = "figures"))]
pub fn without_figures() -> crate::exit::Failure {
    crate::exit::failure!(
        Usage,
        "this binary draws no figures: build one that does with `cargo install --path cli --features figures`; released \
         binaries and the image draw them"
    )
}
