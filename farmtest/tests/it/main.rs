//! End to end: the rows of the farm equal those of the engine, also under faults of coordinator and workers.

mod farm;
mod hazards;
mod simulation;
mod sweeps;
mod undisturbed;
