//! The pages of one experiment in a file that needs no server.

use powersweep_dashboard::{Report, RowsQuery};
use powersweep_dataset::Error;
use powersweep_dataset::activity::Activity;
use powersweep_dataset::survey::Choice;
use powersweep_proto::v1;

use crate::place::Place;
use crate::status::{Status, StatusOptions};
use crate::survey;

/// Failures of a report.
const FAILURES: u32 = 40;
/// Cells of the grid of tasks.
const BINS: u32 = 2_000;

impl Place {
    /// A report of an experiment: its state, if there is one, the first rows, and the survey of all rows.
    ///
    /// # Errors
    /// A chosen metric or axis is unknown, or the rows cannot be read.
    pub async fn report(&self, experiment: &str, choice: &Choice) -> Result<Report, Error> {
        let datasets = self.datasets().await?;
        let survey = survey::survey(&datasets, experiment, choice, None).await?;
        let activity = Activity::read(&datasets, experiment, None).await?;
        let name = experiment.to_owned();
        let rows = survey::rows(&datasets, &RowsQuery { experiment: name.clone(), ..RowsQuery::default() }).await?;
        let wanted = StatusOptions { experiment: Some(name.clone()), failures: FAILURES, bins: BINS, ledgers: false };
        let status = self.status(&wanted).await;
        if let Err(error) = &status {
            self.notes.say(&format!("the report has no state of {name}: {}", error.message));
        }
        let now = chrono::Utc::now().format("%Y-%m-%d %H:%M UTC");
        // A report leaves the house: it names no folder, no host and no user.
        let made = format!("Made by powersweep {} on {now}.", env!("CARGO_PKG_VERSION"));
        let experiment = status.ok().and_then(Status::into_first);
        let experiment = experiment.map(|found| v1::ExperimentStatus { owner: String::new(), ..found });
        Ok(Report { experiment, name, made, survey, activity, rows })
    }
}
