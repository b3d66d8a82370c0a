//! Tests of coordinator, workers and faults together; everything is in `tests/`.
