//! Watts of a processor by gear and state.
pub mod etinski;
pub mod table;
