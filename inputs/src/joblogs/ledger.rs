//! The rules of job logs.

/// The ledger of a job log.
pub type Ledger = crate::ledger::Ledger<Rule>;

crate::ledger::rules! {
    /// A rule that dropped or changed rows. The sentences are for users, too.
    Banner: Dropped "banner" "a line before the header",
    Unreadable: Dropped "unreadable"
        "a row that cannot be read: a cell that is no time, number or size, or another number of cells than columns",
    RepeatedHeader: Dropped "repeated_header" "the header again, where files were joined",
    Step: Dropped "step" "a step of a job; the row of the job counts",
    StepWithoutJob: Dropped "step_without_job" "a step of a job that has no row of its own",
    OtherRecord: Dropped "other_record" "a record of another event than the end of a job",
    ArrayParent: Dropped "array_parent" "a record of an array of jobs as a whole; its jobs count",
    NotEnded: Dropped "not_ended" "the job had not ended, so its run time is not known",
    UnknownState: Dropped "unknown_state" "a state that is not known",
    NeverStarted: Dropped "never_started" "the job ended before it started",
    NoRunTime: Dropped "no_run_time" "no run time, and not both a start and an end",
    NoSubmit: Dropped "no_submit" "no submit time, or one in 1970",
    Contradiction: Dropped "contradictory_times"
        "the end is before the start, or the run time longer than from start (or arrival) to end",
    NoProcs: Dropped "no_procs" "no processors, nodes or GPUs, whichever are counted",
    Duplicate: Dropped "duplicate" "the same job, submit and start again; the row with the latest end counts",
    StartBeforeSubmit: Changed "start_before_submit" "the job arrives at its start, which is before its arrival",
    WaitDiffers: Changed "wait_differs" "the stated wait is not the time from submit to start, which counts",
    Suspended: Changed "suspended"
        "the stated run time is less than from start to end, as after a suspension; it counts",
    RunTimeLonger: Changed "run_time_longer" "the stated run time is longer than from start to end, which counts",
    EndFromElapsed: Changed "end_from_elapsed" "no end; the run time is the elapsed time",
    StartFromElapsed: Changed "start_from_elapsed" "no start; it is the elapsed time before the end",
    NoLimit: Changed "no_limit" "no time limit, so there is no requested time",
    LimitUnknown: Changed "limit_unknown"
        "the time limit is the partition's or not stated, so there is no requested time",
    EligibleUnknown: Changed "eligible_unknown" "no eligible time; the job arrives at its submit time",
    EligibleBeforeSubmit: Changed "eligible_before_submit"
        "the eligible time is before the submit time, at which the job arrives",
    TimeShownTwice: Changed "time_shown_twice"
        "a local time that the clocks showed twice; the first one that fits the other times",
    SizesDiffer: Changed "sizes_differ" "two columns have different sizes of the allocation; the first counts",
    SizeRequested: Changed "size_requested" "the allocated size is not stated; the requested one counts",
    RoundedUp: Changed "rounded_up" "a part of a CPU or GPU counts as a whole one",
    Restart: Changed "restart" "the job ran before and was queued again; each run is a job",
    IdAgain: Changed "id_again" "the id is that of a job that ended months before; this is another job",
    SeveralClusters: Changed "several_clusters" "the file has jobs of several clusters; the id begins with the cluster",
    ArrayRange: Changed "array_range" "a row of several tasks of an array; one job",
    PartOfJob: Changed "part_of_job" "a part of a heterogeneous job; a job of its own",
    DependenciesIgnored: Changed "dependencies_ignored" "the job waits for other jobs; it arrives at its submit time",
    SampleMissing: Changed "sample_missing" "samples of the power are missing; the one before holds, or the first one",
    SamplesShort: Changed "samples_short"
        "the samples of the power end more than a step before the job; the last one holds to the end",
    SamplesLong: Changed "samples_long"
        "samples of the power lie more than a step behind the end of the job; they do not count",
    EnergyShared: Changed "energy_shared"
        "other jobs ran on its nodes at the same time; the energy is its share of the nodes', by CPUs and time",
    NoPower: Changed "no_power"
        "the file has powers or energies, but none of this job: empty, 0 or a placeholder; it has no measured power",
    PowerFromEnergy: Changed "power_from_energy" "the mean power is the energy over the run time",
    PowerAndEnergyDiffer: Changed "power_and_energy_differ"
        "the stated power and the energy over the run time differ by more than 5%; the power counts",
    ImplausiblePower: Changed "implausible_power"
        "more than 20 kW a node, or 1 kW a processor where nodes are not known, also in one sample; the job has no measured \
         power",
    Renumbered: Changed "renumbered" "the job has another number, because its id is taken or is no whole number",
}

#[cfg(test)]
mod tests {
    use super::Rule;
    use crate::ledger::{Count, Ledger, Rule as _};

    #[test]
    fn the_rules_have_names_of_their_own() {
        for rule in Rule::ALL {
            assert_eq!(Rule::ALL.iter().filter(|other| other.name() == rule.name()).count(), 1, "{}", rule.name());
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
