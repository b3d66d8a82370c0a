//! One task per slot: run, deadline, hand in
