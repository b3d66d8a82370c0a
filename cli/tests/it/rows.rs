//! Rows of the Parquet files of a dataset.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use powersweep_farmtest::dataset::OF_THE_RUN;
use serde_json::{Value as Json, json};

use crate::sandbox::Sandbox;

/// The values of a row by column; infinity is "unlimited", as in the commands' JSON.
pub(crate) type Row = BTreeMap<String, Json>;

/// A number of a row.
pub(crate) fn number(row: &Row, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} in {row:?}"))
}

/// The rows that a command prints as JSON lines.
pub(crate) fn lines(sandbox: &Sandbox, args: &[&str]) -> Vec<Row> {
    let ended = sandbox.run(&[args, &["--json"]].concat()).exits(0);
    ended.stdout.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// Whether two numbers differ by at most this share.
pub(crate) fn near(one: f64, other: f64, share: f64) -> bool {
    (one - other).abs() <= share * other.abs()
}

/// Every row of a table; none without its folder. A file that is not Parquet fails the test.
pub(crate) fn read(data: &Path, experiment: &str, table: &str) -> Vec<Row> {
    let folder = data.join(experiment).join(table);
    let mut rows = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return rows };
    for path in entries.map(|entry| entry.expect("it can be listed").path()) {
        assert_eq!(path.extension().and_then(|e| e.to_str()), Some("parquet"), "{}", path.display());
        let file = File::open(&path).expect("it can be read");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("it is Parquet").build().expect("it reads");
        for batch in reader {
            let batch = batch.expect("it reads");
            for row in 0..batch.num_rows() {
                let schema = batch.schema();
                let names = schema.fields().iter().map(|field| field.name().clone());
                let row: Row = names.zip(batch.columns().iter().map(|column| cell(column, row))).collect();
                // Like the rows of a command, through text: parsing JSON may round the last digit.
                let text = serde_json::to_string(&row).expect("it is JSON");
                rows.push(serde_json::from_str(&text).expect("it is JSON"));
            }
        }
    }
    rows
}

/// The `task_id` of every row of `tasks` in these folders, listed first and read then; `None` if a part was deleted in
/// between.
pub(crate) fn try_ids(data: &Path, experiments: &[&str]) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    for folder in experiments.iter().map(|experiment| data.join(experiment).join("tasks")) {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        parts.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    let mut ids = Vec::new();
    for part in parts {
        let bytes = bytes::Bytes::from(std::fs::read(part).ok()?);
        let each = |key: powersweep_results::identity::RowKey| ids.push(key.task_id.to_string());
        powersweep_results::split::for_each_key(&bytes, each).expect("a part");
    }
    Some(ids)
}

/// The rows of the `tasks` table by task index; each index occurs once.
pub(crate) fn tasks(data: &Path, experiment: &str) -> BTreeMap<u64, Row> {
    let rows = read(data, experiment, "tasks");
    let count = rows.len();
    let by_index: BTreeMap<u64, Row> =
        rows.into_iter().map(|row| (row["task_index"].as_u64().expect("every task has an index"), row)).collect();
    assert_eq!(by_index.len(), count, "an index has two rows");
    by_index
}

/// A row without the columns that differ between two runs of a task.
pub(crate) fn without_run_facts(row: &Row) -> Row {
    row.iter().filter(|(name, _)| !OF_THE_RUN.contains(&name.as_str())).map(|(n, v)| (n.clone(), v.clone())).collect()
}

fn cell(column: &dyn Array, row: usize) -> Json {
    if column.is_null(row) {
        return Json::Null;
    }
    match column.data_type() {
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::Int64 => json!(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => match column.as_primitive::<Float64Type>().value(row) {
            f64::INFINITY => json!("unlimited"),
            value => json!(value),
        },
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        DataType::Timestamp(..) => json!(column.as_primitive::<TimestampMicrosecondType>().value(row)),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            (0..items.len()).map(|i| cell(&items, i)).collect()
        }
        other => panic!("no column has type {other}"),
    }
}
