//! Predictions of run times in the kernel: when a prediction of a running job passes, and what follows.
use super::cluster::{Cluster, JobId};
use super::recorder::Recorder;
use crate::batch::prediction::Predictions;
use crate::summary::Predicted;

impl<'w, R: Recorder> Cluster<'w, R> {
    pub(super) fn set_predictions(&mut self, predictions: Predictions) {
        self.predictions = Some(Box::new(predictions));
    }

    /// The predictions of all jobs at the end.
    pub(in crate::batch) fn take_predictions(&mut self) -> Option<Vec<Predicted>> {
        self.predictions.take().map(|predictions| predictions.into_records())
    }

    /// The job in an entry of the running table has started: tells the predictor, and plans the first correction.
    pub(super) fn prediction_begins(&mut self, entry: usize) {
        let job = self.running[entry].job;
        if let Some(predictions) = &mut self.predictions {
            predictions.started(job, &self.jobs[job as usize], self.now_s);
        }
        self.plan_correction(entry);
    }

    /// A job has ended: later predictions may depend on its run time.
    #[inline]
    pub(super) fn learn(&mut self, job: JobId) {
        if let Some(predictions) = &mut self.predictions {
            predictions.ended(job, &self.jobs[job as usize], self.now_s);
        }
    }

    /// Remembers when the prediction of an executing job passes, if the job runs longer.
    pub(super) fn plan_correction(&mut self, entry: usize) {
        let Some(predictions) = &self.predictions else { return };
        let run = &self.running[entry];
        let is_short = predictions.present_s(run.job) < self.requested_s(run.job);
        if run.executing && run.estimate_left_s < run.run_left_s && is_short {
            self.corrections.push(self.estimated_end(run).max(self.now_s), run.job);
        }
    }

    /// Takes the next job whose prediction may pass at this instant, and corrects the prediction if it does. Returns the job
    /// and its estimated end before.
    pub(super) fn correct_next(&mut self) -> Option<(JobId, f64)> {
        let job = self.corrections.pop()?;
        // The job may have ended, or another gear or a suspension has moved the instant.
        let entry = self.entry(job)?;
        let before_s = self.estimated_end(&self.running[entry]);
        if !self.running[entry].executing || before_s > self.now_s {
            return None;
        }
        let predictions = self.predictions.as_mut()?;
        let passed_s = predictions.present_s(job);
        let corrected_s = predictions.correct(job, &self.jobs[job as usize])?;
        self.running[entry].estimate_left_s += corrected_s - passed_s;
        self.rescheduled_count += 1;
        self.plan_correction(entry);
        Some((job, before_s))
    }
}
