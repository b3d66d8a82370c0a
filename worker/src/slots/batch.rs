//! The finished rows of one slot, until they are handed in.
//!
//! Each slot fills its own batch, so that building rows never makes slots wait for each other.

use std::ops::Add;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use bytes::Bytes;
use powersweep_engine::workload::RuleCounts;
use powersweep_engine::{Account, Details, Measured};
use powersweep_experiments::{Tables, TaskSpec};
use powersweep_proto::v1;
use powersweep_results::identity::RunFacts;
use powersweep_results::{ResultsError, accounts, jobs, part, series, tasks, wire};
use uuid::Uuid;

use super::clock::by_field;
use crate::session::{ExperimentKey, FinishedBatch, FlushRule, TaskRef};

/// One finished task.
pub(crate) struct Row {
    pub(crate) spec: TaskSpec,
    pub(crate) counts: RuleCounts,
    pub(crate) measured: Measured,
    pub(crate) facts: RunFacts,
    /// Its rows in the table `accounts`.
    pub(crate) accounts: Option<Vec<Account>>,
}

/// Rows of one experiment's generation.
#[derive(Default)]
pub(crate) struct Batch {
    experiment: Option<ExperimentKey>,
    done: Vec<v1::LeaseTasks>,
    tasks: tasks::Builder,
    jobs: Option<jobs::Builder>,
    series: Option<series::Builder>,
    accounts: Option<accounts::Builder>,
    first_row: Option<Instant>,
    spent: v1::TimeSpent,
    simulated_jobs: u64,
}

/// A batch taken from its slot, not encoded yet.
pub(crate) struct Taken {
    pub(crate) experiment: ExperimentKey,
    pub(crate) done: Vec<v1::LeaseTasks>,
    tasks: RecordBatch,
    /// Rows of the optional tables, by the table's name.
    optional: Vec<(&'static str, RecordBatch)>,
    spent: v1::TimeSpent,
    simulated_jobs: u64,
}

impl Batch {
    /// Whether a row of this experiment can be added.
    pub(crate) fn accepts(&self, experiment: &ExperimentKey) -> bool {
        self.experiment.as_ref().is_none_or(|mine| mine == experiment)
    }

    /// Adds a row; returns whether it is the first.
    pub(crate) fn push(&mut self, task: &TaskRef, row: &Row, details: &Details, tables: Tables) -> bool {
        debug_assert!(self.accepts(&task.experiment), "one batch, one experiment");
        let first = self.first_row.is_none();
        if first {
            self.first_row = Some(Instant::now());
            self.experiment = Some(task.experiment.clone());
        }
        self.tasks.push(&row.spec, &row.counts, &row.measured, &row.facts);
        self.simulated_jobs += row.measured.jobs_count();
        if tables.jobs {
            self.jobs.get_or_insert_default().push(&row.spec, details.jobs.as_deref().unwrap_or_default());
        }
        if tables.series {
            self.series.get_or_insert_default().push(&row.spec, details.series.as_deref().unwrap_or_default());
        }
        if tables.accounts {
            self.accounts.get_or_insert_default().push(&row.spec, row.accounts.as_deref().unwrap_or_default());
        }
        match self.done.last_mut() {
            Some(tasks) if tasks.lease == Some(task.lease) => tasks.indices.push(task.index),
            _ => self.done.push(v1::LeaseTasks { lease: Some(task.lease), indices: vec![task.index] }),
        }
        first
    }

    /// Adds slot time to the report of the next hand-in.
    pub(crate) fn spend(&mut self, spent: v1::TimeSpent) {
        self.spent = by_field(self.spent, spent, f64::add);
    }

    fn rule(&self) -> FlushRule {
        if self.jobs.is_some() || self.series.is_some() || self.accounts.is_some() {
            FlushRule::UPLOADS
        } else {
            FlushRule::TASKS
        }
    }

    /// Whether it should be handed in now, whatever tasks are left.
    pub(crate) fn is_due(&self) -> bool {
        let Some(first_row) = self.first_row else { return false };
        let optional = [
            self.jobs.as_ref().map(jobs::Builder::bytes),
            self.series.as_ref().map(series::Builder::bytes),
            self.accounts.as_ref().map(accounts::Builder::bytes),
        ];
        if self.tasks.bytes() >= FlushRule::TASKS.bytes {
            // The coordinator takes batches of rows of `tasks` up to a size, whatever uploads come with them.
            return true;
        }
        let bytes = self.tasks.bytes() + optional.into_iter().flatten().sum::<usize>();
        self.rule().is_due(self.tasks.len(), bytes, first_row.elapsed())
    }

    /// Number of its rows, if it is old enough to be handed in when no more tasks than that are left for its slot.
    pub(crate) fn half_due_rows(&self) -> Option<u64> {
        let rows = self.tasks.len();
        self.rule().is_half_due(rows, self.first_row?.elapsed()).then_some(rows as u64)
    }

    /// Whether the batch has rows.
    pub(crate) fn has_rows(&self) -> bool {
        self.first_row.is_some()
    }

    /// Time until the batch is due by its age, plus `grace`; `None` while it is empty.
    pub(crate) fn due_in(&self, grace: Duration) -> Option<Duration> {
        Some((self.rule().age + grace).saturating_sub(self.first_row?.elapsed()))
    }

    /// Empties the batch; `None` if it is empty already.
    pub(crate) fn take(&mut self) -> Option<Taken> {
        self.first_row.take()?;
        let optional = [
            self.jobs.take().map(|mut rows| ("jobs", rows.finish())),
            self.series.take().map(|mut rows| ("series", rows.finish())),
            self.accounts.take().map(|mut rows| ("accounts", rows.finish())),
        ];
        Some(Taken {
            experiment: self.experiment.take()?,
            done: std::mem::take(&mut self.done),
            tasks: self.tasks.finish(),
            // A task may record no series: no object is made without rows.
            optional: optional.into_iter().flatten().filter(|(_, batch)| batch.num_rows() > 0).collect(),
            spent: std::mem::take(&mut self.spent),
            simulated_jobs: std::mem::take(&mut self.simulated_jobs),
        })
    }
}

impl Taken {
    /// Encodes the rows for the wire, and each optional table as one Parquet object.
    pub(crate) fn encode(&self) -> Result<FinishedBatch, ResultsError> {
        let experiment = || self.experiment.name.to_string();
        let (mut objects, mut uploads) = (Vec::new(), Vec::new());
        for (table, batch) in &self.optional {
            let footer = part::Footer::new(&self.experiment.name, Uuid::now_v7(), batch.num_rows() as u64);
            let data = part::encode(&batch.schema(), std::slice::from_ref(batch), &footer)?;
            let (table, part_id) = ((*table).to_owned(), Bytes::copy_from_slice(footer.part_id.as_bytes()));
            let bytes = data.len() as u64;
            uploads.push(v1::Upload { table: table.clone(), part_id: part_id.clone(), rows: footer.rows, bytes });
            let lease = self.done.first().and_then(|tasks| tasks.lease);
            objects.push(v1::UploadPartRequest {
                experiment: experiment(),
                table,
                part_id,
                lease,
                data,
                staged_bytes: 0,
            });
        }
        let hand_in = v1::HandIn {
            id: 0,
            experiment: experiment(),
            generation: self.experiment.generation,
            done: self.done.clone(),
            rows: wire::encode(&self.tasks)?,
            uploads,
            spent: Some(self.spent),
            jobs: self.simulated_jobs,
        };
        Ok(FinishedBatch { hand_in, objects })
    }
}
