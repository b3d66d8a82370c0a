//! The readers of claims and presets, and the comparison with rows. Every case is small enough to check by hand.

mod compared;
mod documented;
mod errors;
mod presets;
mod shipped;
