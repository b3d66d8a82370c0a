//! `powersweep plot`: a figure of an experiment.

#[cfg(feature = "figures")]
mod drawn;

use crate::args::PlotArgs;
use crate::exit::Outcome;
use crate::presets;

#[cfg(feature = "figures")]
use drawn::draw;
#[cfg(feature = "figures")]
pub use drawn::write_figure;

/// Draws a figure.
pub fn run(args: &PlotArgs) -> Outcome {
    if args.presets {
        return presets::list(Some(args.experiment()).filter(|name| !name.is_empty()));
    }
    draw(args)
}

/// Says how to get figures.
#[cfg(not(feature = "figures"))]
fn draw(_: &PlotArgs) -> Outcome {
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
