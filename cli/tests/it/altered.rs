//! Exported files that somebody has altered: `verify` says so.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;

use crate::sandbox::Sandbox;
use crate::sweeps::{JOBS, TINY_LOG, synthetic};

/// Writes an exported file with other rows, and the same facts in its footer.
fn rewritten(from: &Path, to: &Path, alter: impl FnOnce(RecordBatch) -> RecordBatch) {
    let bytes = Bytes::from(std::fs::read(from).expect("it can be read"));
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).expect("it is Parquet");
    let facts = builder.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let facts = facts.into_iter().filter(|fact| fact.key.starts_with("powersweep.")).collect();
    let batches: Vec<RecordBatch> = builder.build().expect("it reads").map(|batch| batch.expect("it reads")).collect();
    let whole = alter(concat_batches(&batches[0].schema(), &batches).expect("one schema"));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(facts)).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), whole.schema(), Some(properties)).expect("it can be written");
    writer.write(&whole).expect("it can be written");
    std::fs::write(to, writer.into_inner().expect("it ends")).expect("it can be written");
}

fn with(batch: &RecordBatch, name: &str, column: ArrayRef) -> RecordBatch {
    let at = batch.schema().index_of(name).expect("a column");
    let mut columns = batch.columns().to_vec();
    columns[at] = column;
    RecordBatch::try_new(batch.schema(), columns).expect("the same schema")
}

/// Names the items of lists as the Parquet specification does.
fn with_elements(batch: &RecordBatch) -> RecordBatch {
    let schema = batch.schema();
    let renamed = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
        let DataType::List(item) = field.data_type() else { return (field.as_ref().clone(), Arc::clone(column)) };
        let item = Arc::new(item.as_ref().clone().with_name("element"));
        let (_, offsets, values, nulls) = column.as_list::<i32>().clone().into_parts();
        let list = ListArray::new(Arc::clone(&item), offsets, values, nulls);
        (field.as_ref().clone().with_data_type(DataType::List(item)), Arc::new(list) as ArrayRef)
    });
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = renamed.unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("the columns have their types")
}

#[test]
fn a_row_that_is_not_of_its_task_is_found() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 3));
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
    sandbox.run(&["export", "sweep", "--table", "tasks", "--output", "tasks.parquet"]).exits(0);
    let verify = |alter: &dyn Fn(RecordBatch) -> RecordBatch| {
        rewritten(&sandbox.path("tasks.parquet"), &sandbox.path("altered.parquet"), alter);
        sandbox.run(&["verify", "altered.parquet"])
    };
    verify(&|batch| with_elements(&batch)).exits(0).prints(&["6 rows equal"]);
    let fewer = verify(&|mut batch| {
        let at = batch.schema().index_of("wait_s_mean").expect("a column");
        batch.remove_column(at);
        batch
    });
    let lacks = "not compared: 1 column of tasks that the files lack, among them wait_s_mean";
    fewer.exits(0).prints(&["6 rows equal in every column of the files"]).says(&[lacks]);
    let swapped = verify(&|batch| {
        let indices = batch.column_by_name("task_index").expect("a column").as_primitive::<Int64Type>().values();
        let other = |index: &i64| if *index < 2 { 1 - index } else { *index };
        let indices: Int64Array = indices.iter().map(other).map(Some).collect();
        with(&batch, "task_index", Arc::new(indices))
    });
    swapped.exits(10).prints(&["task_id"]).says(&["2 rows differ"]);
    let false_id = verify(&|batch| {
        let ids = batch.column_by_name("task_id").expect("a column").as_string::<i32>();
        let ids =
            ids.iter().enumerate().map(|(row, id)| if row == 0 { Some("0".repeat(8)) } else { id.map(str::to_owned) });
        with(&batch, "task_id", Arc::new(ids.collect::<StringArray>()))
    });
    false_id.exits(10).says(&["1 row differs"]);
    let doubled = verify(&|batch| concat_batches(&batch.schema(), [&batch, &batch.slice(1, 1)]).expect("one schema"));
    doubled.exits(10).prints(&["2 rows", "1 row"]).says(&["1 row differs"]);
    verify(&|batch| batch.slice(1, 5)).exits(0).says(&["without a row in the file: 1 task of its manifest"]);
    // The manifest of another experiment.
    sandbox.write("other.toml", synthetic("other", 3));
    let other = sandbox.run(&["verify", "sweep", "--manifest", "other.toml"]).exits(2);
    other.says(&["the rows are of the experiment sweep, and the given manifest is of other"]);
}

/// Rows of the other tables are compared with those of the tasks that ran again.
#[test]
fn a_false_row_of_another_table_is_found() {
    let sandbox = Sandbox::new();
    sandbox.write("jobs.toml", JOBS);
    sandbox.write("logs/tiny.swf", TINY_LOG);
    sandbox.run(&["run", "jobs.toml", "--traces", "logs", "--quiet"]).exits(0);
    sandbox.run(&["export", "jobs", "--output", "out"]).exits(0);
    let verify = |rows: &str| sandbox.run(&["verify", rows, "--traces", "logs"]);
    let equal = "4 rows equal in every column, bit for bit; and of other tables: jobs 12 rows";
    verify("jobs").exits(0).prints(&[equal]);
    verify("out/tasks.parquet").exits(0).prints(&[equal]);
    let file = sandbox.path("out/jobs.parquet");
    let alter = |alter: &dyn Fn(RecordBatch) -> RecordBatch| rewritten(&file, &file, alter);
    alter(&|batch| {
        let mut waits =
            batch.column_by_name("wait_s").expect("a column").as_primitive::<Float64Type>().values().to_vec();
        waits[4] += 1.0;
        with(&batch, "wait_s", Arc::new(Float64Array::from(waits)))
    });
    let wrong = verify("out/tasks.parquet").exits(10);
    wrong.prints(&["jobs.wait_s, row 2"]).says(&["the rows of 1 task differ in jobs"]);
    alter(&|batch| batch.slice(6, 6));
    verify("out/tasks.parquet").exits(1).says(&["not compared: jobs of 2 tasks: they have none there"]);
    std::fs::remove_file(&file).expect("it is there");
    let alone = verify("out/tasks.parquet").exits(0);
    alone.prints(&["4 rows equal"]).says(&["not compared: jobs of 4 tasks: no file of this table"]);
}

/// A task of another log has no row here, and the manifest is not to blame.
#[test]
fn rows_of_another_log_are_not_compared() {
    let sandbox = Sandbox::new();
    sandbox.write("logs/jobs.swf", TINY_LOG);
    let log = "[workloads.site]\nsource = \"swf\"\nlog = \"./logs/jobs.swf\"\n[platforms.cluster]";
    sandbox.write("mixed.toml", synthetic("mixed", 1).replace("[platforms.cluster]", log));
    sandbox.run(&["run", "mixed.toml", "--quiet"]).exits(0);
    sandbox.run(&["verify", "mixed"]).exits(0).prints(&["4 of 4 tasks of mixed ran again", "4 rows equal"]);
    sandbox.write("logs/jobs.swf", TINY_LOG.replace(" 30 ", " 31 "));
    let other = sandbox.run(&["verify", "mixed"]).exits(1).prints(&["2 of 4 tasks of mixed ran again", "2 rows equal"]);
    other.says(&["not compared: 2 rows: ./logs/jobs.swf is another file than the rows were made from: its digest is"]);
    std::fs::remove_dir_all(sandbox.path("results/data/.powersweep")).expect("it is there");
    let refused = sandbox.run(&["adopt", "mixed.toml"]).exits(8);
    refused.says(&["2 rows of no task of this manifest: ./logs/jobs.swf is another file than the rows were made from"]);
}
