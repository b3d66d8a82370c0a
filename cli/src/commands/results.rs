//! `powersweep results`: the rows of an experiment, including unpublished rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use powersweep_coordinator::records::Table;
use powersweep_results::tasks;

use crate::args::{ResultsArgs, RowFormat};
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::ordered::Order;
use crate::reading::{Reading, relaxed, schema_of};
use crate::results_table::Wanted;
use crate::writing::{Encoding, Writing};
use crate::{client, results_table, rows, screen, stored};

/// Columns of tables other than `tasks` that are shown by default.
const SHOWN: &[(Table, &[&str])] = &[
    (Table::Failures, &["task_index", "task_id", "attempt", "worker", "failed_at", "failure_kind", "message"]),
    (Table::Jobs, &["task_index", "job_id", "submit_s", "start_s", "finish_s", "wait_s", "run_s", "procs", "energy_j"]),
    (Table::Series, &["task_index", "series", "level", "x", "value"]),
];

/// Shows the first rows, or writes all rows.
pub fn run(args: &ResultsArgs) -> Outcome {
    let table = args.table;
    let all = relaxed(&schema_of(table));
    let default = SHOWN.iter().find(|(shown, _)| *shown == table && args.format() == RowFormat::Table);
    let names = match args.columns.is_empty() {
        true => default.map_or(Vec::new(), |(_, names)| names.to_vec()),
        false => args.columns.iter().map(|name| name.trim()).collect(),
    };
    let chosen = chosen(&all, &names, table)?;
    let encoding = match args.format() {
        RowFormat::Table => None,
        RowFormat::Csv => Some(Encoding::Csv),
        RowFormat::Json => Some(Encoding::Json),
        RowFormat::Parquet => Some(Encoding::Parquet),
        RowFormat::Arrow => Some(Encoding::Arrow),
    };
    if encoding.is_none() && args.output.is_some() {
        return Err(failure!(Usage, "--output needs --format csv, json, parquet or arrow"));
    }
    client::block_on(async {
        let tables = stored::tables(&args.from).await?;
        let reading = Reading::open(&tables, &args.experiment, table).await?;
        reading.check_table()?;
        if reading.is_without_state() {
            screen::note(&format!(
                "powersweep: {tables} has no state of {}: only published rows are read; `powersweep adopt` rebuilds the state",
                args.experiment
            ));
        }
        match encoding {
            _ if args.some.is_given() => some(&reading, chosen.unwrap_or(all), encoding, args).await,
            None => shown(&reading, chosen, args).await,
            Some(encoding) => {
                let schema = chosen.unwrap_or(all);
                let mut out = Writing::begin(args.output.as_deref(), encoding, &schema, &args.experiment)?;
                reading.each(&schema, |batch| out.write(&batch)).await?;
                out.finish()?;
                Ok(Exit::Done)
            }
        }
    })
}

/// The columns of these names, in this order; `None` without names.
pub fn chosen(all: &SchemaRef, names: &[&str], table: Table) -> Result<Option<SchemaRef>, Failure> {
    if names.is_empty() {
        return Ok(None);
    }
    let known: Vec<&str> = all.fields().iter().map(|field| field.name().as_str()).collect();
    let mut seen = BTreeSet::new();
    let mut fields = Vec::new();
    for &name in names {
        let Some((_, field)) = all.column_with_name(name) else {
            let near = screen::nearest(name, &known);
            let hint = match near.is_empty() {
                _ if tasks::schema().column_with_name(name).is_some() => {
                    "`tasks` has it: join the tables on `task_id`, or use `powersweep export --wide`".to_owned()
                }
                false => format!("did you mean {}?", near.join(" or ")),
                true => format!("`powersweep columns {table}` lists them"),
            };
            return Err(failure!(Usage, "{table} has no column `{name}`; {hint}"));
        };
        if !seen.insert(name) {
            return Err(failure!(Usage, "--columns names `{name}` twice"));
        }
        fields.push(field.clone());
    }
    Ok(Some(Arc::new(Schema::new(fields))))
}

/// Some rows in an order, in any format.
async fn some(reading: &Reading, columns: SchemaRef, encoding: Option<Encoding>, args: &ResultsArgs) -> Outcome {
    if args.table != Table::Tasks {
        return Err(failure!(Usage, "--sort, --descending, --where and --skip are for the table `tasks`"));
    }
    let some = &args.some;
    let order = Order::new(some.sort.as_deref(), some.descending, &some.only)?;
    let is_default = encoding.is_none() && args.columns.is_empty();
    let names = columns.fields().iter().map(|field| field.name().clone()).filter(|_| !is_default).collect();
    let wanted = Wanted { columns: names, order, skip: some.skip, rows: args.rows };
    let found = results_table::shown(reading, &wanted).await?;
    let Some(encoding) = encoding else {
        return screen::print(&match found {
            None => "no rows yet".to_owned(),
            Some(found) if found.count == 0 => "no row has these values".to_owned(),
            Some(found) => found.text(),
        });
    };
    let mut out = Writing::begin(args.output.as_deref(), encoding, &columns, &args.experiment)?;
    if let Some(found) = &found {
        out.write(&found.rows)?;
    }
    out.finish()?;
    if let Some(more) = found.map(|found| found.more()).filter(|more| *more > 0) {
        screen::note(&format!("powersweep: {more} more rows: --rows N writes more"));
    }
    Ok(Exit::Done)
}

async fn shown(reading: &Reading, chosen: Option<SchemaRef>, args: &ResultsArgs) -> Outcome {
    let Some(schema) = chosen else {
        let text = results_table::table(reading, args.rows).await?;
        return screen::print(text.as_deref().unwrap_or("no rows yet"));
    };
    let mut text = screen::table();
    text.set_header(schema.fields().iter().map(|field| field.name().clone()));
    let (mut count, mut more) = (0, false);
    reading
        .each(&schema, |batch| {
            for row in 0..batch.num_rows() {
                if count == args.rows {
                    more = true;
                    return Ok(false);
                }
                count += 1;
                text.add_row(batch.columns().iter().map(|column| rows::shown(column, row)));
            }
            Ok(true)
        })
        .await?;
    match (count, more) {
        (0, false) => screen::print("no rows yet"),
        (_, false) => screen::print(&text.to_string()),
        (_, true) => screen::print(&format!("{text}\n… and more rows: --rows N shows more, --format csv writes all")),
    }
}
