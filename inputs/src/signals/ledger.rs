//! The rules of signals.

/// The ledger of a signal's file.
pub type Ledger = crate::ledger::Ledger<Rule>;

crate::ledger::rules! {
    /// A rule that dropped, changed or added rows. The sentences are for users, too.
    Banner: Dropped "banner" "lines before the header",
    OtherZone: Dropped "other_zone" "rows of other zones, by `zone`",
    EmptyAtStart: Dropped "empty_at_start" "rows before the first value",
    EmptyAtEnd: Dropped "empty_at_end" "rows behind the last value",
    EqualDuplicate: Dropped "equal_duplicate" "rows that repeat a time with the same value",
    Duplicate: Dropped "duplicate" "rows that repeat a time with another value, by `duplicates`",
    NoSuchTime: Dropped "no_such_time" "rows at local times that the clocks skipped, by `clock_change`",
    Averaged: Changed "averaged" "values that are the mean of several rows of one time, by `duplicates`",
    ValueFilled: Changed "value_filled" "empty values that got one, by `gaps`",
    TimeFilled: Added "time_filled" "times without a row, by `gaps`",
    SecondOfTwo: Added "second_of_two"
        "local times that the clocks showed twice and the file has once, by `clock_change`",
}
