//! Counter-based random numbers (Philox): a stream per purpose, the same on every machine.
