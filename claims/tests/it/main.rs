//! The reader of claims files and the comparison with rows, each case small enough to check by hand.

mod compared;
mod errors;
mod shipped;
