//! Predicted run times: a predictor and a corrector.
//!
//! A [`predictor`] predicts the run time of a job at its submission. The prediction takes the place of the user's estimate in
//! every rule: queue orders, backfilling, gears, caps, deferral. The estimate stays the job's limit. A job that is still
//! running when its prediction has passed gets a longer one from the [`corrector`], until the prediction is not shorter than
//! the estimate. A job that outlives both is expected to end now, as without a predictor.
//!
//! Predictions and run times are those at the top gear (s). A prediction does not change while its job waits.
pub mod corrector;
pub mod predictor;

use crate::limits::list_bytes;
use crate::spec::SimSpec;
use crate::summary::Predicted;
use crate::workload::Job;
use corrector::{AnyCorrector, Corrector, Expired};
use predictor::{AnyPredictor, Facts, Predictor};

/// Shortest prediction, and shortest step of a correction, unless that exceeds the user's estimate (s).
const STEP_S: f64 = 1.0;

/// The predictions of a simulation.
#[derive(Debug, Clone)]
pub(crate) struct Predictions {
    /// `None` in a copy of the present state, in which no more jobs arrive.
    predictor: Option<AnyPredictor>,
    corrector: AnyCorrector,
    /// Present prediction of each job that has arrived (s).
    present_s: Vec<f64>,
    records: Vec<Predicted>,
}

impl Predictions {
    /// The predictions of a spec; `None` if the scheduler believes the users' estimates.
    ///
    /// `users`: the user of each record of the log; empty for a generated workload. Jobs without a user are those of one user.
    pub(crate) fn of(spec: &SimSpec, jobs: &[Job], users: &[i32]) -> Option<Predictions> {
        let predictor = AnyPredictor::of(spec, jobs.len())?;
        Some(Predictions {
            predictor: Some(predictor),
            corrector: AnyCorrector::of(spec)?,
            present_s: vec![0.0; jobs.len()],
            records: by_user(jobs, users),
        })
    }

    /// The predictions for a copy that has these jobs of the original.
    pub(super) fn copied(&self, numbers: &[u32]) -> Predictions {
        let numbers = || numbers.iter().map(|number| *number as usize);
        Predictions {
            predictor: None,
            corrector: self.corrector.clone(),
            present_s: numbers().map(|number| self.present_s[number]).collect(),
            records: numbers().map(|number| self.records[number]).collect(),
        }
    }

    /// The present prediction of a job (s).
    #[inline(always)]
    pub(super) fn present_s(&self, job: u32) -> f64 {
        self.present_s[job as usize]
    }

    /// A job arrives: predicts its run time.
    pub(super) fn submitted(&mut self, number: u32, job: &Job, now_s: f64) {
        let facts = self.facts(number, job);
        let Some(predictor) = &mut self.predictor else { return };
        let predicted_s = predictor.predict(&facts, now_s);
        // A prediction that is no time is none. Shorter ones than a second would cut the time of a waiting machine into any
        // number of instants.
        let usable = (0.0..f64::INFINITY).contains(&predicted_s);
        let first_s = if usable { predicted_s.max(STEP_S.min(job.estimate_s)) } else { job.estimate_s };
        self.present_s[number as usize] = first_s;
        self.records[number as usize].first_s = first_s;
    }

    /// A job starts.
    pub(super) fn started(&mut self, number: u32, job: &Job, now_s: f64) {
        let facts = self.facts(number, job);
        if let Some(predictor) = &mut self.predictor {
            predictor.started(&facts, now_s);
        }
    }

    /// A job has ended: the predictor learns its run time.
    pub(super) fn ended(&mut self, number: u32, job: &Job, now_s: f64) {
        let facts = self.facts(number, job);
        if let Some(predictor) = &mut self.predictor {
            predictor.ended(&facts, now_s);
        }
    }

    /// The prediction of a job has passed: a longer one (s). `None` if the prediction is not shorter than the estimate.
    pub(super) fn correct(&mut self, number: u32, job: &Job) -> Option<f64> {
        let present_s = self.present_s[number as usize];
        if present_s >= job.estimate_s {
            return None;
        }
        let record = &mut self.records[number as usize];
        record.corrections_count += 1;
        let expired = Expired {
            first_s: record.first_s,
            present_s,
            number: record.corrections_count,
            estimate_s: job.estimate_s,
        };
        let corrected_s = self.corrector.correct(&expired);
        let is_longer = corrected_s > present_s && corrected_s < f64::INFINITY;
        // Steps of less than a second would make a job pass any number of predictions in no time.
        let least_s = (present_s + STEP_S).min(job.estimate_s);
        let corrected_s = if is_longer { corrected_s.max(least_s) } else { job.estimate_s };
        self.present_s[number as usize] = corrected_s;
        Some(corrected_s)
    }

    /// The predictions of all jobs at the end.
    pub(crate) fn into_records(self) -> Vec<Predicted> {
        self.records
    }

    pub(super) fn bytes(&self) -> usize {
        let lists = [list_bytes(&self.present_s), list_bytes(&self.records)];
        lists.into_iter().sum::<usize>() + self.predictor.as_ref().map_or(0, Predictor::bytes)
    }

    fn facts(&self, number: u32, job: &Job) -> Facts {
        Facts {
            number,
            user: self.records[number as usize].user,
            submit_s: job.submit_s,
            run_s: job.run_s,
            estimate_s: job.estimate_s,
            procs: job.procs,
        }
    }
}

/// Records of jobs without a prediction, with the users of the jobs, numbered in the order of their first jobs.
fn by_user(jobs: &[Job], users: &[i32]) -> Vec<Predicted> {
    let mut numbers = std::collections::BTreeMap::new();
    // The users of recent jobs, by the last bits of their numbers in the log.
    let mut recent = [None; 1024];
    let records = jobs.iter().map(|job| {
        let user = (job.record as usize).checked_sub(1).and_then(|at| users.get(at)).copied().unwrap_or(-1);
        let place = &mut recent[user as usize % 1024];
        let number = match *place {
            Some((known, number)) if known == user => number,
            _ => {
                let next = numbers.len() as u32;
                *numbers.entry(user).or_insert(next)
            }
        };
        *place = Some((user, number));
        Predicted { user: number, ..Predicted::default() }
    });
    records.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_numbered_in_the_order_of_their_first_jobs() {
        let job = |record| Job {
            id: 1,
            submit_s: 0.0,
            run_s: 1.0,
            estimate_s: 1.0,
            procs: 1,
            record,
            killed: false,
            priority: 1,
            class: 0,
        };
        let jobs: Vec<Job> = (1..=6).map(job).collect();
        // Two pairs have the same last bits.
        let records = by_user(&jobs, &[7, 7 + 1024, 7, -1, 7 + 1024, 1023]);
        let numbers: Vec<u32> = records.iter().map(|record| record.user).collect();
        assert_eq!(numbers, [0, 1, 0, 2, 1, 3]);
    }
}
