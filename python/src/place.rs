//! Experiments at a place: their rows, status and control.

use std::path::PathBuf;

use arrow::array::RecordBatch;
use powersweep::results::{GroupsOptions, RowsOptions};
use powersweep::{
    BestOptions, CompareOptions, Error, Goal, Notes, SensitivityOptions, StatusOptions, Table, block_on, failure,
    papers,
};
use powersweep_cli::defaults::{self, GivenPlace};
use pyo3::prelude::*;

use crate::calls::{Noted, one_of, run, wrong};
use crate::rows::Rows;

/// Where experiments are, with defaults from configurations and variables at each request.
#[pyclass(frozen, module = "powersweep._native")]
pub(crate) struct Place(GivenPlace);

impl Place {
    /// Runs a request to its end.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        request: impl AsyncFnOnce(powersweep::Place) -> Result<T, Error> + Send + 'static,
    ) -> Noted<T> {
        let given = self.0.clone();
        run(py, move |_, notes: Notes| block_on(async { request(defaults::place(given, notes)?).await }))
    }
}

/// The table of this name.
pub(crate) fn table_of(name: &str) -> Result<Table, Error> {
    one_of("--table", name, &Table::ALL.map(|table| (table.name(), table)))
}

#[pymethods]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
impl Place {
    #[new]
    #[pyo3(signature = (*, data, coordinator, access, insecure))]
    fn new(data: Option<String>, coordinator: Option<String>, access: Option<PathBuf>, insecure: bool) -> Place {
        Place(GivenPlace { data, coordinator, access, insecure })
    }

    /// Rows of a table, or statistics of groups of them.
    #[pyo3(signature = (experiment, *, table, columns, only, by, stats, ratio_to, pivot, sort, descending, rows, skip))]
    fn results(
        &self,
        py: Python<'_>,
        experiment: String,
        table: String,
        columns: Vec<String>,
        only: Vec<String>,
        by: Vec<String>,
        stats: Vec<String>,
        ratio_to: Vec<String>,
        pivot: Option<String>,
        sort: Option<String>,
        descending: bool,
        rows: Option<usize>,
        skip: usize,
    ) -> Noted<Rows> {
        self.ask(py, async move |place| {
            let table = table_of(&table)?;
            if pivot.is_some() && by.is_empty() {
                return Err(wrong("--pivot", "it needs --by"));
            }
            if by.is_empty() && stats.is_empty() && ratio_to.is_empty() {
                let explains = !only.is_empty() && rows != Some(0);
                let options = RowsOptions { table, columns, only, sort, descending, skip, rows };
                let found = place.rows(&experiment, options).await?;
                let mut batches = Vec::new();
                let keep = |batch: &RecordBatch| {
                    batches.push(batch.clone());
                    Ok(true)
                };
                found.each(keep).await?;
                if explains && batches.iter().all(|batch| batch.num_rows() == 0) {
                    place.notes.say(&found.why_none().await?);
                }
                return Ok(Rows::new(found.schema().clone(), batches));
            }
            let options = GroupsOptions { columns, only, by, stats, ratio_to, pivot, sort, descending, skip, rows };
            Ok(place.groups(&experiment, table, &options).await?.batch().clone().into())
        })
    }

    /// A table of a paper, or the numbers of a figure.
    fn preset(&self, py: Python<'_>, experiment: String, preset: String) -> Noted<Rows> {
        self.ask(py, async move |place| {
            let chosen = papers::choose(&experiment, &preset)?;
            Ok(chosen.frame(&place.datasets().await?).await?.batch().clone().into())
        })
    }

    /// Two sets of rows, pair by pair: a row for each compared column.
    #[pyo3(signature = (a, b, *, table, columns, only, by, pool))]
    fn compare(
        &self,
        py: Python<'_>,
        a: String,
        b: String,
        table: String,
        columns: Vec<String>,
        only: Vec<String>,
        by: Vec<String>,
        pool: Vec<String>,
    ) -> Noted<Rows> {
        self.ask(py, async move |place| {
            let options = CompareOptions { table: table_of(&table)?, columns, only, by, pool };
            let found = place.compare(&a, &b, &options).await?;
            if let Some(left_out) = found.left_out() {
                place.notes.say(&left_out);
            }
            Ok(found.rows().into())
        })
    }

    /// The best combinations of parameters.
    #[pyo3(signature = (experiment, *, minimise, maximise, subject_to, by, only, top))]
    fn best(
        &self,
        py: Python<'_>,
        experiment: String,
        minimise: Vec<String>,
        maximise: Vec<String>,
        subject_to: Vec<String>,
        by: Vec<String>,
        only: Vec<String>,
        top: usize,
    ) -> Noted<Rows> {
        self.ask(py, async move |place| {
            let small = minimise.into_iter().map(|column| Goal { column, is_maximised: false });
            let great = maximise.into_iter().map(|column| Goal { column, is_maximised: true });
            let options =
                BestOptions { goals: small.chain(great).collect(), subject_to, only, by, top, reference: Vec::new() };
            let found = place.best(&experiment, &options).await?;
            if let Some(why) = found.why_none.as_ref().filter(|_| found.combinations > 0) {
                return Err(failure!(Failure, "{why}"));
            }
            if !options.subject_to.is_empty() && found.combinations > 0 {
                place.notes.say(&found.satisfying());
            }
            Ok(found.frame.batch().clone().into())
        })
    }

    /// How much each parameter moves the metrics.
    #[pyo3(signature = (experiment, *, of, design, by, only, ranges))]
    fn sensitivity(
        &self,
        py: Python<'_>,
        experiment: String,
        of: Vec<String>,
        design: Option<String>,
        by: Vec<String>,
        only: Vec<String>,
        ranges: Vec<(String, f64, f64)>,
    ) -> Noted<Rows> {
        self.ask(py, async move |place| {
            let options = SensitivityOptions { of, design, by, only, ranges };
            let found = place.sensitivity(&experiment, &options).await?;
            if !found.missing.is_empty() || !found.refused.is_empty() {
                place.notes.say(&found.said());
            }
            for missing in &found.missing {
                place.notes.say(&missing.said());
            }
            Ok(found.frame().batch().clone().into())
        })
    }

    /// The hypervolume of the Pareto front, its share of the box of the best values, and the reference point.
    #[pyo3(signature = (experiment, *, minimise, maximise, subject_to, by, only, reference))]
    fn hypervolume(
        &self,
        py: Python<'_>,
        experiment: String,
        minimise: Vec<String>,
        maximise: Vec<String>,
        subject_to: Vec<String>,
        by: Vec<String>,
        only: Vec<String>,
        reference: Vec<f64>,
    ) -> Noted<(Option<f64>, Option<f64>, Vec<f64>)> {
        self.ask(py, async move |place| {
            let small = minimise.into_iter().map(|column| Goal { column, is_maximised: false });
            let great = maximise.into_iter().map(|column| Goal { column, is_maximised: true });
            let goals: Vec<Goal> = small.chain(great).collect();
            let found =
                place.best(&experiment, &BestOptions { goals, subject_to, only, by, top: 1, reference }).await?;
            let volume = found.volume.ok_or_else(|| match found.why_none {
                Some(why) => failure!(Failure, "{why}"),
                None => failure!(Usage, "one goal has no front: name several"),
            })?;
            let share = volume.share();
            Ok((volume.hypervolume, share, volume.reference))
        })
    }

    /// The status of an experiment, as JSON.
    fn status(&self, py: Python<'_>, experiment: String) -> Noted<String> {
        self.ask(py, async move |place| {
            let options = StatusOptions { experiment: Some(experiment), ..StatusOptions::default() };
            Ok(place.status(&options).await?.document(&options).to_string())
        })
    }

    /// Running tasks finish, and no other one starts.
    #[pyo3(signature = (experiment, *, any_owner))]
    fn pause(&self, py: Python<'_>, experiment: String, any_owner: bool) -> Noted<()> {
        let of = move |place| powersweep::Place { any_owner, ..place };
        self.ask(py, async move |place| of(place).pause(&experiment).await.map(drop))
    }

    /// Continues after a pause or a cancellation.
    #[pyo3(signature = (experiment, *, any_owner))]
    fn resume(&self, py: Python<'_>, experiment: String, any_owner: bool) -> Noted<()> {
        let of = move |place| powersweep::Place { any_owner, ..place };
        self.ask(py, async move |place| of(place).resume(&experiment).await.map(drop))
    }

    /// Stops the tasks.
    #[pyo3(signature = (experiment, *, any_owner))]
    fn cancel(&self, py: Python<'_>, experiment: String, any_owner: bool) -> Noted<()> {
        let of = move |place| powersweep::Place { any_owner, ..place };
        self.ask(py, async move |place| of(place).cancel(&experiment).await.map(drop))
    }
}
