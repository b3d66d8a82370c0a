//! What happened to the rows of a file.

/// A rule that dropped or changed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "`Rule::sentence` is the documentation, for users, too")]
pub enum Rule {
    RepeatedHeader,
    Step,
    StepWithoutJob,
    OtherRecord,
    ArrayParent,
    NotEnded,
    UnknownState,
    NeverStarted,
    NoSubmit,
    Contradiction,
    NoProcs,
    Duplicate,
    StartBeforeSubmit,
    Suspended,
    EndFromElapsed,
    StartFromElapsed,
    NoLimit,
    LimitUnknown,
    EligibleUnknown,
    TimeShownTwice,
    SizesDiffer,
    SizeRequested,
    RoundedUp,
    Restart,
    ArrayRange,
    PartOfJob,
    DependenciesIgnored,
    NoPower,
    PowerFromEnergy,
    PowerAndEnergyDiffer,
    ImplausiblePower,
    Renumbered,
}

/// What a rule does to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The row is no job of the log.
    Dropped,
    /// The row is a job of the log with another value, or with a value that had to be chosen.
    Changed,
}

impl Effect {
    /// Its name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Effect::Dropped => "dropped",
            Effect::Changed => "changed",
        }
    }
}

/// A rule in tables.
struct Described {
    rule: Rule,
    effect: Effect,
    name: &'static str,
    sentence: &'static str,
}

const fn dropped(rule: Rule, name: &'static str, sentence: &'static str) -> Described {
    Described { rule, effect: Effect::Dropped, name, sentence }
}

const fn changed(rule: Rule, name: &'static str, sentence: &'static str) -> Described {
    Described { rule, effect: Effect::Changed, name, sentence }
}

/// The rules in the order of the enum.
const RULES: [Described; Rule::COUNT] = [
    dropped(Rule::RepeatedHeader, "repeated_header", "the header again, where files were joined"),
    dropped(Rule::Step, "step", "a step of a job; the row of the job counts"),
    dropped(Rule::StepWithoutJob, "step_without_job", "a step of a job that has no row of its own"),
    dropped(Rule::OtherRecord, "other_record", "a record of another event than the end of a job"),
    dropped(Rule::ArrayParent, "array_parent", "a record of an array of jobs as a whole; its jobs count"),
    dropped(Rule::NotEnded, "not_ended", "the job had not ended, so its run time is not known"),
    dropped(Rule::UnknownState, "unknown_state", "a state that is not known"),
    dropped(Rule::NeverStarted, "never_started", "the job ended before it started"),
    dropped(Rule::NoSubmit, "no_submit", "no submit time"),
    dropped(
        Rule::Contradiction,
        "contradictory_times",
        "the end is before the start, or the run time longer than from start (or arrival) to end",
    ),
    dropped(Rule::NoProcs, "no_procs", "no processors, nodes or GPUs, whichever are counted"),
    dropped(Rule::Duplicate, "duplicate", "the same job, submit and start again; the row with the latest end counts"),
    changed(
        Rule::StartBeforeSubmit,
        "start_before_submit",
        "the job arrives at its start, which is before its arrival",
    ),
    changed(Rule::Suspended, "suspended", "the run time is without the time in which the job was suspended"),
    changed(Rule::EndFromElapsed, "end_from_elapsed", "no end; the run time is the elapsed time"),
    changed(Rule::StartFromElapsed, "start_from_elapsed", "no start; it is the elapsed time before the end"),
    changed(Rule::NoLimit, "no_limit", "no time limit, so there is no requested time"),
    changed(
        Rule::LimitUnknown,
        "limit_unknown",
        "the time limit is the partition's or not stated, so there is no requested time",
    ),
    changed(Rule::EligibleUnknown, "eligible_unknown", "no eligible time; the job arrives at its submit time"),
    changed(
        Rule::TimeShownTwice,
        "time_shown_twice",
        "a local time that the clocks showed twice; the first one that fits the other times",
    ),
    changed(Rule::SizesDiffer, "sizes_differ", "two columns have different sizes of the allocation; the first counts"),
    changed(Rule::SizeRequested, "size_requested", "the allocated size is not stated; the requested one counts"),
    changed(Rule::RoundedUp, "rounded_up", "a part of a CPU or GPU counts as a whole one"),
    changed(Rule::Restart, "restart", "the job ran before and was queued again; each run is a job"),
    changed(Rule::ArrayRange, "array_range", "a row of several tasks of an array; one job"),
    changed(Rule::PartOfJob, "part_of_job", "a part of a heterogeneous job; a job of its own"),
    changed(
        Rule::DependenciesIgnored,
        "dependencies_ignored",
        "the job waits for other jobs; it arrives at its submit time",
    ),
    changed(
        Rule::NoPower,
        "no_power",
        "the file has powers or energies, but none of this job: empty, 0 or a placeholder; it has no measured power",
    ),
    changed(Rule::PowerFromEnergy, "power_from_energy", "the mean power is the energy over the run time"),
    changed(
        Rule::PowerAndEnergyDiffer,
        "power_and_energy_differ",
        "the stated power and the energy over the run time differ by more than 5%; the power counts",
    ),
    changed(
        Rule::ImplausiblePower,
        "implausible_power",
        "more than 20 kW a processor, also in one sample; the job has no measured power",
    ),
    changed(
        Rule::Renumbered,
        "renumbered",
        "the job has another number, because its id is taken or is no whole number",
    ),
];

impl Rule {
    const COUNT: usize = Rule::Renumbered as usize + 1;

    /// All rules.
    pub fn all() -> impl Iterator<Item = Rule> {
        RULES.iter().map(|described| described.rule)
    }

    fn described(self) -> &'static Described {
        &RULES[self as usize]
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        self.described().name
    }

    /// The reason, for people.
    pub fn sentence(self) -> &'static str {
        self.described().sentence
    }

    /// What it does.
    pub fn effect(self) -> Effect {
        self.described().effect
    }
}

/// The rows that a rule dropped or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Rows.
    pub rows: u64,
    /// Line of the first one, from 1; 0 without rows.
    pub first_line: u64,
}

/// The rows of a file: read = kept + dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Rows of the file, without its header.
    pub read: u64,
    /// Rows that are jobs of the log, changed or not.
    pub kept: u64,
    counts: [Count; Rule::COUNT],
}

impl Ledger {
    /// Rows that a rule dropped or changed.
    pub fn count(&self, rule: Rule) -> Count {
        self.counts[rule as usize]
    }

    /// Rows that rules dropped. A changed row can be changed by several rules, so changes have no sum.
    pub fn dropped(&self) -> u64 {
        self.rules().filter(|(rule, _)| rule.effect() == Effect::Dropped).map(|(_, count)| count.rows).sum()
    }

    /// The rules that applied.
    pub fn rules(&self) -> impl Iterator<Item = (Rule, Count)> + '_ {
        Rule::all().map(|rule| (rule, self.count(rule))).filter(|(_, count)| count.rows > 0)
    }

    /// Counts a row. Rows come in any order.
    pub(crate) fn add(&mut self, rule: Rule, line: u64) {
        let count = &mut self.counts[rule as usize];
        count.first_line = if count.rows == 0 { line } else { count.first_line.min(line) };
        count.rows += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_rules_in_their_order_under_names_of_their_own() {
        for (at, described) in RULES.iter().enumerate() {
            assert_eq!(described.rule as usize, at, "{}", described.name);
            assert_eq!(RULES.iter().filter(|other| other.name == described.name).count(), 1);
        }
    }

    #[test]
    fn counts_keep_the_first_line() {
        let mut ledger = Ledger::default();
        [7, 3, 9].into_iter().for_each(|line| ledger.add(Rule::Step, line));
        ledger.add(Rule::NoLimit, 2);
        assert_eq!(ledger.count(Rule::Step), Count { rows: 3, first_line: 3 });
        assert_eq!(ledger.dropped(), 3);
        assert_eq!(ledger.rules().map(|(rule, _)| rule).collect::<Vec<_>>(), [Rule::Step, Rule::NoLimit]);
    }
}
