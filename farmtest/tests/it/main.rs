//! End to end: what the farm writes equals what the engine says, whatever happens to coordinator and workers.

mod dataset;
mod farm;
mod faults;
mod sweeps;
mod undisturbed;
