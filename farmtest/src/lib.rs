//! Tests of coordinator, workers and faults together
