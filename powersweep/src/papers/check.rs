//! Claims of a paper beside the rows of its sweeps.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;
use powersweep_claims::{Claims, Counts, Finding, Rows};
use powersweep_dataset::reading::without_table;
use powersweep_dataset::source::Source;
use powersweep_dataset::{Datasets, Error, Kind, OrKind, dependence, failure};
use powersweep_experiments::{Manifest, Sweep};
use powersweep_results::{Table, join};
use serde::Serialize;

use crate::origin::digests;
use crate::place::Place;

/// The sweeps of a paper, by the names of their manifests.
pub type Sweeps = BTreeMap<String, Sweep>;

/// The claims of a paper, each beside our value.
#[derive(Debug, Clone, Serialize)]
pub struct Checked {
    /// Name of the paper.
    pub paper: String,
    /// Authors, year and title.
    pub title: String,
    /// Whether all demanded claims hold.
    pub holds: bool,
    /// How many claims hold.
    pub counts: Counts,
    /// The claims, one for each repetition: first those that differ from our value, demanded ones before the others, then
    /// in the order of the file.
    pub claims: Vec<Finding>,
}

impl Checked {
    /// Ids of the demanded claims that do not hold.
    pub fn failed(&self) -> Vec<&str> {
        self.claims.iter().filter(|claim| claim.is_failure()).map(|claim| claim.id.as_str()).collect()
    }
}

impl Place {
    /// The sweep of a manifest all of whose tasks have rows; `None` if some have none, or no file has any. It reads no log: the
    /// rows name the digests of the logs that they were made from.
    ///
    /// # Errors
    /// The rows cannot be read, or files of them are missing.
    pub async fn finished(&self, manifest: &Manifest) -> Result<Option<Sweep>, Error> {
        let datasets = self.datasets_here()?;
        let Ok(reading) = datasets.read_published(manifest.name(), Table::Tasks).await else { return Ok(None) };
        let parts = reading.parts().await?;
        if parts.is_empty() {
            return Ok(None);
        }
        let digests = parts.iter().flat_map(|part| digests(&part.origin())).collect();
        let Ok(sweep) = Sweep::new(manifest.clone(), digests) else { return Ok(None) };
        let rows = read(&datasets, &sweep, Table::Tasks, &BTreeSet::new()).await?;
        let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
        Ok((count as u64 == sweep.task_count()).then_some(sweep))
    }

    /// Compares claims with the rows of sweeps, all of which have run to their end.
    ///
    /// # Errors
    /// A sweep that the claims need is missing, or its rows cannot be read, or files of them are missing. A claim that fails is no error.
    pub async fn check(&self, claims: &Claims, sweeps: &Sweeps, demanded_only: bool) -> Result<Checked, Error> {
        let datasets = self.datasets_here()?;
        let mut rows = Rows::new();
        for ((manifest, table), columns) in claims.needed(demanded_only) {
            let missing = || failure!(Usage, "the claims of {} need the sweep of {manifest}", claims.paper());
            let sweep = sweeps.get(&manifest).ok_or_else(missing)?;
            let own = sweep.manifest();
            if table.is_optional() && !own.tables().names().any(|name| name == table.name()) {
                rows.set_lacking(&manifest, table, without_table(own.name(), table).message);
                continue;
            }
            rows.add(&manifest, table, read(&datasets, sweep, table, &columns).await?);
            rows.set_seeds(&manifest, dependence::of_experiment(&datasets, sweep.manifest().name()).await?);
        }
        let mut claims_beside = claims.check(&rows, demanded_only);
        claims_beside.sort_by_key(|claim| (!claim.is_failure(), !claim.differs()));
        Ok(Checked {
            paper: claims.paper().to_owned(),
            title: claims.title().to_owned(),
            holds: !claims_beside.iter().any(Finding::is_failure),
            counts: Counts::of(&claims_beside),
            claims: claims_beside,
        })
    }
}

/// The rows of a table with these columns. Columns that the table does not have come from `tasks`.
async fn read(
    datasets: &Datasets,
    sweep: &Sweep,
    table: Table,
    columns: &BTreeSet<String>,
) -> Result<Vec<RecordBatch>, Error> {
    let names: Vec<&str> = columns.iter().map(String::as_str).chain(["task_id"]).collect();
    let reading = datasets.read_whole(sweep.manifest().name(), table).await?;
    let rows = Source::open(datasets, &reading, &names, Vec::new()).await?.batches().await?;
    // An adopted dataset can also have rows of tasks of unknown manifests.
    let tasks = (0..sweep.index_count()).filter_map(|index| sweep.task(index));
    let ids: BTreeSet<String> = tasks.map(|task| task.task_id.to_string()).collect();
    rows.iter().map(|batch| join::of_tasks(batch, &ids)).collect::<Result<_, _>>().or_kind(Kind::Storage)
}
