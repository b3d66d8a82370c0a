//! The ledger of a file: which rule dropped, changed or added how many rows.

use std::collections::BTreeMap;

/// The effect of a rule on rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The row is in no result of the reading.
    Dropped,
    /// The row is in the result with another value, or with a value that had to be chosen.
    Changed,
    /// A value of the result is in no row of the file.
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

/// A rule that drops, changes or adds rows.
pub trait Rule: Copy + Ord + 'static {
    /// All rules in their order.
    const ALL: &'static [Self];

    /// Its effect, its name in tables, and the reason for people.
    fn described(self) -> (Effect, &'static str, &'static str);

    /// Its effect.
    fn effect(self) -> Effect {
        self.described().0
    }

    /// Its name in tables.
    fn name(self) -> &'static str {
        self.described().1
    }

    /// The reason, for people.
    fn sentence(self) -> &'static str {
        self.described().2
    }
}

/// Declares the rules of one kind of file, each with its effect, its name in tables and its sentence.
macro_rules! rules {
    ($(#[$doc:meta])* $($rule:ident: $effect:ident $name:literal $sentence:literal,)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $sentence] $rule,)*
        }

        impl $crate::ledger::Rule for Rule {
            const ALL: &'static [Rule] = &[$(Rule::$rule),*];

            fn described(self) -> ($crate::ledger::Effect, &'static str, &'static str) {
                match self {
                    $(Rule::$rule => ($crate::ledger::Effect::$effect, $name, $sentence),)*
                }
            }
        }
    };
}
pub(crate) use rules;

/// The rows that a rule dropped, changed or added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Rows.
    pub rows: u64,
    /// Line of the first one, or its row in a file without lines, from 1; 0 without rows. An added value has the line of the
    /// row that it follows.
    pub first_line: u64,
}

/// The rows of a file: read = kept + dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger<R> {
    /// Rows of the file, without its header.
    pub read: u64,
    /// Rows that are in the result, changed or not.
    pub kept: u64,
    pub(crate) counts: BTreeMap<R, Count>,
}

impl<R> Default for Ledger<R> {
    fn default() -> Self {
        Ledger { read: 0, kept: 0, counts: BTreeMap::new() }
    }
}

impl<R: Rule> Ledger<R> {
    /// Rows that a rule dropped, changed or added.
    pub fn count(&self, rule: R) -> Count {
        self.counts.get(&rule).copied().unwrap_or_default()
    }

    /// Rows by effect. A changed row can be changed by several rules, so that this is no number of changed rows.
    pub fn total(&self, effect: Effect) -> u64 {
        self.rules().filter(|(rule, _)| rule.effect() == effect).map(|(_, count)| count.rows).sum()
    }

    /// Rows that rules dropped.
    pub fn dropped(&self) -> u64 {
        self.total(Effect::Dropped)
    }

    /// The rules that applied, in the order of their enum.
    pub fn rules(&self) -> impl Iterator<Item = (R, Count)> + '_ {
        self.counts.iter().map(|(rule, count)| (*rule, *count))
    }

    /// Counts a row. Rows come in any order.
    pub(crate) fn add(&mut self, rule: R, line: u64) {
        let count = self.counts.entry(rule).or_insert(Count { rows: 0, first_line: line });
        count.first_line = count.first_line.min(line);
        count.rows += 1;
    }
}
