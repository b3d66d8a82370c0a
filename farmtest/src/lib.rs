//! What tests of coordinator, workers and faults share; the tests are in `tests/`, here and in `cli/`.

pub mod dataset;
