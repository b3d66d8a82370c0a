//! The reader of claims files and the comparison with rows. Every case is small enough to check by hand.

mod compared;
mod errors;
mod shipped;
