//! Measured powers of the jobs of a log.
//!
//! A log has the mean power of some jobs ([`super::swf::POWER_KEY`]), and samples of some of these
//! ([`super::swf::POWER_SERIES_KEY`]). With `job_power` = "measured-mean" a job draws its own power while it runs, with
//! "measured-series" its samples one after the other. A job without a measurement draws the power of the model.

use super::swf::SwfLog;
use super::{Generator, Job, WorkloadError};
use crate::batch::power::etinski;
use crate::spec::{Choice, Default, Param, Role, SimSpec, Type};

/// Parameter: where the powers of jobs come from.
pub(super) const JOB_POWER: Param = Param::one_of(
    "job_power",
    &["model", "measured-mean", "measured-series"],
    "Power of a running job: the power of the platform's model, the measured mean power in the log, or the samples of the \
     measured power in the log. A job without samples draws its mean, and a job without a measurement the power of the \
     model. A measured power holds at the top gear; at a lower gear it is reduced as the model's power is. A sample holds \
     for its step of the run time at the top gear, and the last one to the end of the job.",
);

/// Parameter: what the scheduler knows.
pub(super) const POWER_KNOWLEDGE: Param = Param::one_of(
    "power_knowledge",
    &["oracle", "model", "user-history", "noise", "peak"],
    "What a power cap knows of the power of a job whose measured power counts (`job_power`): the measured mean; the power \
     of the model; the model times the mean of measured over model power of the user's ended jobs (1 before the first); the \
     measured mean with an error by `power_noise_sd`; the greatest sample, or the mean without samples. The power of the \
     whole machine now is always known.",
);

/// Parameter: the error.
pub(super) const POWER_NOISE_SD: Param = Param {
    name: "power_noise_sd",
    ty: Type::Real { min: 0.0, max: 10.0, min_allowed: true, unlimited: false },
    unit: "",
    default: Default::Real(0.1),
    doc: "With `power_knowledge` = \"noise\": standard deviation of the logarithm of known over measured power, normally \
          distributed, drawn by the seed for each job.",
};

/// What is known of the power of a record's job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerOfRecord {
    /// The record, from 1.
    pub record: u64,
    /// Its user in the log, -1 if not known.
    pub user: i32,
    /// Processors of the job in the log.
    pub procs: u32,
    /// Measured mean power of one of the job's procs (W), if it was measured.
    pub proc_w: Option<f64>,
}

/// Whether the rules of a spec use measured powers.
pub(crate) fn are_used(spec: &SimSpec) -> bool {
    spec.choice(Role::Rules).opt_text(JOB_POWER.name).is_some_and(|text| text != "model")
}

/// Whether the rules of a spec use samples of measured powers.
pub(crate) fn are_series(spec: &SimSpec) -> bool {
    spec.choice(Role::Rules).opt_text(JOB_POWER.name) == Some("measured-series")
}

/// What the log states of the powers of jobs, by record. Empty unless the rules use it.
pub(super) fn of(spec: &SimSpec, log: &SwfLog, jobs: &[Job]) -> Result<Vec<PowerOfRecord>, WorkloadError> {
    if !are_used(spec) {
        return Ok(Vec::new());
    }
    let mut records: Vec<(u64, u32)> = jobs.iter().map(|job| (job.record, job.procs)).collect();
    records.sort_unstable();
    records.dedup();
    let mut powers = log.powers.iter().peekable();
    let mut of = |(record, procs): (u64, u32)| {
        let at = record as usize - 1;
        while powers.next_if(|power| power.record < at).is_some() {}
        let power = powers.next_if(|power| power.record == at);
        let proc_w = power.map(|power| power.mean_w / f64::from(procs));
        PowerOfRecord { record, user: log.records[at].user, procs, proc_w }
    };
    let found: Vec<PowerOfRecord> = records.into_iter().map(&mut of).collect();
    let chosen = spec.choice(Role::Rules).text(JOB_POWER.name);
    if found.iter().all(|power| power.proc_w.is_none()) {
        return Err(WorkloadError::Power(format!(
            "{}: no job has a measured power, and `job_power` = \"{chosen}\" needs some: import the job log again with \
             its column of energies or powers, or leave `job_power` out",
            log.file
        )));
    }
    if are_series(spec) && found.iter().all(|power| log.power_series.of(power.record as usize - 1).is_none()) {
        return Err(WorkloadError::Power(format!(
            "{}: no job has samples of its power, and `job_power` = \"measured-series\" needs some: import the job log \
             again with a column of samples and their step, or set `job_power` = \"measured-mean\"",
            log.file
        )));
    }
    Ok(found)
}

/// Problems of the parameters, in sentences that name them.
pub(super) fn problems(spec: &SimSpec, rules: &Choice) -> Vec<String> {
    let mut problems = Vec::new();
    let (knowledge, job_power) = (rules.text(POWER_KNOWLEDGE.name), rules.text(JOB_POWER.name));
    if !are_used(spec) {
        if !rules.is_default(POWER_KNOWLEDGE.name) {
            problems.push(
                "`power_knowledge` is about measured powers: set `job_power` to one of them, or leave it out"
                    .to_owned(),
            );
        }
    } else {
        if let Some(generator) = Generator::of(spec.choice(Role::Source)) {
            let source = generator.component.name;
            problems.push(format!(
                "`job_power` = \"{job_power}\" reads powers of a log, and the source `{source}` is no log: leave it out"
            ));
        }
        let power = spec.choice(Role::Power);
        if *power.component() == etinski::COMPONENT && power.is_default("power_top_w") {
            problems.push(format!(
                "`job_power` = \"{job_power}\" has watts, and `power_top_w` is left at 1 W a proc: set `power_top_w`, or \
                 choose `power` = \"stated\" with the watts of the machine"
            ));
        }
    }
    if knowledge != "noise" && !rules.is_default(POWER_NOISE_SD.name) {
        problems.push("`power_noise_sd` needs `power_knowledge` = \"noise\"".to_owned());
    }
    problems
}
