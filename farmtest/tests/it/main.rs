//! End to end: what the farm writes equals what the engine says, whatever happens to coordinator and workers.

mod farm;
mod faults;
mod hazards;
mod simulation;
mod sweeps;
mod undisturbed;
