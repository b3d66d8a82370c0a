//! What happened to the rows of a file.

/// A rule that dropped, changed or added rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Rows before the first value.
    EmptyAtStart,
    /// Rows after the last value, such as half hours that are not published yet.
    EmptyAtEnd,
    /// Rows that repeat a time with the same value.
    EqualDuplicate,
    /// Rows that repeat a time with another value, by the setting `duplicates`.
    Duplicate,
    /// Rows at local times that do not exist, by the setting `clock_change`.
    NoSuchTime,
    /// Values that are the mean of duplicates.
    Averaged,
    /// Empty values that got one, by the setting `gaps`.
    ValueFilled,
    /// Missing times that were added, by the setting `gaps`.
    TimeFilled,
    /// Local times that the clocks showed twice and the file has once: the second one, by the setting `clock_change`.
    SecondOfTwo,
}

/// What a rule does to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The row is not in the series.
    Dropped,
    /// The row is in the series with another value.
    Changed,
    /// A time of the series is in no row of the file.
    Added,
}

impl Effect {
    /// Its name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Effect::Dropped => "dropped",
            Effect::Changed => "changed",
            Effect::Added => "added",
        }
    }
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 9] = [
        Rule::EmptyAtStart,
        Rule::EmptyAtEnd,
        Rule::EqualDuplicate,
        Rule::Duplicate,
        Rule::NoSuchTime,
        Rule::Averaged,
        Rule::ValueFilled,
        Rule::TimeFilled,
        Rule::SecondOfTwo,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Rule::EmptyAtStart => "empty_at_start",
            Rule::EmptyAtEnd => "empty_at_end",
            Rule::EqualDuplicate => "equal_duplicate",
            Rule::Duplicate => "duplicate",
            Rule::NoSuchTime => "no_such_time",
            Rule::Averaged => "averaged",
            Rule::ValueFilled => "value_filled",
            Rule::TimeFilled => "time_filled",
            Rule::SecondOfTwo => "second_of_two",
        }
    }

    /// What it does.
    pub fn effect(self) -> Effect {
        match self {
            Rule::EmptyAtStart | Rule::EmptyAtEnd | Rule::EqualDuplicate | Rule::Duplicate | Rule::NoSuchTime => {
                Effect::Dropped
            }
            Rule::Averaged | Rule::ValueFilled => Effect::Changed,
            Rule::TimeFilled | Rule::SecondOfTwo => Effect::Added,
        }
    }

    /// What it says about the rows.
    pub fn sentence(self) -> &'static str {
        match self {
            Rule::EmptyAtStart => "rows before the first value",
            Rule::EmptyAtEnd => "rows behind the last value",
            Rule::EqualDuplicate => "rows that repeat a time with the same value",
            Rule::Duplicate => "rows that repeat a time with another value, by `duplicates`",
            Rule::NoSuchTime => "rows at local times that the clocks skipped, by `clock_change`",
            Rule::Averaged => "values that are the mean of several rows of one time, by `duplicates`",
            Rule::ValueFilled => "empty values that got one, by `gaps`",
            Rule::TimeFilled => "times without a row, by `gaps`",
            Rule::SecondOfTwo => "local times that the clocks showed twice and the file has once, by `clock_change`",
        }
    }
}

/// The rows of a file: read = kept + dropped, and times of the series = kept + added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Rows of the file, without the header.
    pub read: u64,
    /// Rows that are in the series, changed or not.
    pub kept: u64,
    pub(crate) counts: [u64; Rule::ALL.len()],
}

impl Ledger {
    /// Rows that a rule dropped, changed or added.
    pub fn count(&self, rule: Rule) -> u64 {
        self.counts[rule as usize]
    }

    /// Rows by effect.
    pub fn total(&self, effect: Effect) -> u64 {
        self.rules().filter(|(rule, _)| rule.effect() == effect).map(|(_, count)| count).sum()
    }

    /// The rules that applied, with the number of rows.
    pub fn rules(&self) -> impl Iterator<Item = (Rule, u64)> + '_ {
        Rule::ALL.into_iter().map(|rule| (rule, self.count(rule))).filter(|(_, count)| *count > 0)
    }

    pub(crate) fn add(&mut self, rule: Rule, rows: usize) {
        self.counts[rule as usize] += rows as u64;
    }
}
