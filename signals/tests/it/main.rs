//! Tests of the readers of signals.
