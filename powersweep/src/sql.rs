//! SQL statements by which DuckDB reads the tables of an experiment.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use powersweep_dataset::reading::relaxed;
use powersweep_dataset::writing::{Encoding, Writing};
use powersweep_dataset::{Datasets, Error, failure};
use powersweep_results::Table;

use crate::place::{Answerer, Place};
use crate::results::no_rows;

impl Place {
    /// A statement for each table with rows that makes a view of it. Parts of a data folder are read where they are; other
    /// rows are copied into the folder `copies`, or are left out without one.
    ///
    /// # Errors
    /// The experiment is unknown or has no rows, or they cannot be copied.
    pub async fn views(&self, experiment: &str, copies: Option<&Path>) -> Result<String, Error> {
        let answerer = self.tables().await?;
        let datasets = self.datasets_of(&answerer)?;
        let data = if let Answerer::State(location) = &answerer { location.path() } else { None };
        let mut text = String::new();
        for table in Table::ALL {
            let files = files(&datasets, data, experiment, table, copies).await?;
            if !files.is_empty() {
                let list: Vec<String> = files.iter().map(|file| quoted(&file.to_string_lossy())).collect();
                let list = list.join(", ");
                // A folder such as `run=3` above the data would add a column `run`.
                let _ = writeln!(
                    text,
                    "CREATE VIEW {table} AS SELECT * FROM read_parquet([{list}], union_by_name = true, hive_partitioning = false);"
                );
            }
        }
        if text.is_empty() {
            return Err(failure!(Usage, "{}", no_rows(experiment)));
        }
        Ok(text)
    }
}

/// The files with the rows of a table: parts that DuckDB can read where they are, and a copy of the other rows.
async fn files(
    datasets: &Datasets,
    data: Option<&Path>,
    experiment: &str,
    table: Table,
    copies: Option<&Path>,
) -> Result<Vec<PathBuf>, Error> {
    let mut reading = datasets.read(experiment, table).await?;
    let mut files = Vec::new();
    if let Some(data) = data {
        let data = std::path::absolute(data).map_err(|error| failure!(Storage, "{}: {error}", data.display()))?;
        let parts: BTreeSet<_> = reading.published_parts().iter().map(|part| part.path.clone()).collect();
        files.extend(parts.iter().map(|part| data.join(part.as_ref())));
        reading.skip(&parts);
    }
    if !reading.has_rows() {
        return Ok(files);
    }
    let Some(copies) = copies else {
        datasets.notes().say(&format!(
            "rows of {table} that are not published are left out: `powersweep flush` publishes them, and only published rows \
             of a data folder can be read without a copy"
        ));
        return Ok(files);
    };
    let (copy, schema) = (copies.join(format!("{table}.parquet")), relaxed(&table.schema()));
    let mut out = Writing::begin(Some(&copy), Encoding::Parquet, &schema, experiment)?;
    reading.each(&schema, |batch| out.write(&batch)).await?;
    out.finish()?;
    files.push(copy);
    Ok(files)
}

/// A text of SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
