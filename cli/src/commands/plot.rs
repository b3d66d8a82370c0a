//! `powersweep plot`: a figure of an experiment.

#[cfg(feature = "figures")]
mod aggregate;
#[cfg(feature = "figures")]
mod drawing;
#[cfg(feature = "figures")]
mod kinds;
#[cfg(feature = "figures")]
mod read;
#[cfg(feature = "figures")]
mod titles;

use crate::args::PlotArgs;
use crate::exit::Outcome;

/// Draws a figure.
#[cfg(feature = "figures")]
pub fn run(args: &PlotArgs) -> Outcome {
    drawing::run(args)
}

/// Says how to get figures.
#[cfg(not(feature = "figures"))]
pub fn run(_: &PlotArgs) -> Outcome {
    Err(crate::exit::failure!(
        Usage,
        "this binary draws no figures: build one that does with `cargo install --path cli --features figures`; released \
         binaries and the image draw them"
    ))
}
