//! `powersweep results`: the rows of an experiment, including unpublished rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{Schema, SchemaRef};
use powersweep::block_on;
use powersweep_dataset::Datasets;
use powersweep_dataset::Frame;
use powersweep_dataset::grouped::{self, Query};
use powersweep_dataset::order::Order;
use powersweep_dataset::page::{self, Wanted};
use powersweep_dataset::reading::{Reading, relaxed};
use powersweep_dataset::source::{self, Source};
use powersweep_dataset::{Cell, scan};
use powersweep_experiments::reading::similar;
use powersweep_results::Table;
use powersweep_results::tasks;

use crate::args::{ResultsArgs, RowFormat};
use crate::exit::{Exit, Failure, Kind, OrKind, Outcome, failure};
use crate::framed::{encoding, framed, page_text, written};
use crate::{presets, screen};

/// Columns of tables other than `tasks` that are shown by default.
const SHOWN: &[(Table, &[&str])] = &[
    (Table::Failures, &["task_index", "task_id", "attempt", "worker", "failed_at", "failure_kind", "message"]),
    (Table::Jobs, &["task_index", "job_id", "submit_s", "start_s", "finish_s", "wait_s", "run_s", "procs", "energy_j"]),
    (Table::Series, &["task_index", "series", "level", "x", "value"]),
    (
        Table::Accounts,
        &[
            "task_index",
            "signal",
            "zone",
            "anchor",
            "emissions_g",
            "cost",
            "currency",
            "signal_energy_mean",
            "at_once_emissions_g",
        ],
    ),
];

/// Shows the first rows, or writes all rows.
pub fn run(args: &ResultsArgs) -> Outcome {
    let out = &args.out;
    out.check()?;
    block_on(async {
        if let Some(preset) = &args.preset {
            return presets::show(args, preset).await;
        }
        let datasets = args.from.place()?.datasets().await?;
        let reading = datasets.read(&args.experiment, args.table).await?;
        reading.check_table()?;
        if reading.is_without_state() {
            screen::note(&format!(
                "powersweep: {datasets} has no state of {}: only published rows are read; `powersweep adopt` rebuilds the state",
                args.experiment
            ));
        }
        if args.groups.is_given() {
            return framed(&grouped::answer(&datasets, &reading, &query(args)).await?, 0, out, &args.experiment);
        }
        match args.table {
            Table::Tasks => of_tasks(&reading, args).await,
            _ => of_another_table(&datasets, &reading, args).await,
        }
    })
}

/// The query about groups of rows that the options make.
fn query(args: &ResultsArgs) -> Query {
    let trimmed = |names: &[String]| names.iter().map(|name| name.trim().to_owned()).collect();
    Query {
        columns: trimmed(&args.columns),
        only: args.some.only.clone(),
        by: trimmed(&args.groups.by),
        stats: trimmed(&args.groups.stats),
        ratio_to: args.groups.ratio_to.clone(),
        pivot: args.groups.pivot.clone(),
        sort: args.some.sort.clone(),
        descending: args.some.descending,
        skip: args.some.skip,
        rows: args.rows,
    }
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
            let near = similar(name, &known);
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

/// Rows of `tasks`: some in an order, or all for programs.
async fn of_tasks(reading: &Reading, args: &ResultsArgs) -> Outcome {
    let all = relaxed(&Table::schema(Table::Tasks));
    let names: Vec<&str> = args.columns.iter().map(|name| name.trim()).collect();
    let columns = chosen(&all, &names, Table::Tasks)?;
    let (some, encoding) = (&args.some, encoding(args.out.format()));
    if let (Some(encoding), false, None) = (encoding, some.is_given(), args.rows) {
        let schema = columns.unwrap_or(all);
        let mut out = args.out.begin(encoding, &schema, &args.experiment)?;
        reading.each(&schema, |batch| out.write(&batch)).await?;
        out.finish()?;
        return Ok(Exit::Done);
    }
    let order = Order::new(some.sort.as_deref(), some.descending, &some.only)?;
    let wanted = match (encoding, columns) {
        (None, None) => Vec::new(),
        (_, columns) => columns.unwrap_or(all).fields().iter().map(|field| field.name().clone()).collect(),
    };
    let wanted = Wanted { columns: wanted, order, skip: some.skip, rows: args.shown() };
    match (page::shown(reading, &wanted).await?, encoding) {
        (Some(shown), Some(encoding)) => written(&shown.rows, encoding, shown.more(), &args.out, &args.experiment),
        (None, Some(encoding)) => {
            let schema = scan::columns(wanted.columns.iter().map(String::as_str));
            written(&RecordBatch::new_empty(schema), encoding, 0, &args.out, &args.experiment)
        }
        (None, None) => screen::print("no rows yet"),
        (Some(shown), None) if shown.count == 0 => screen::print("no row has these values"),
        (Some(shown), None) if args.out.format() == RowFormat::Table => screen::print(&page_text(&shown)),
        (Some(shown), None) => framed(&shown.frame()?, shown.more(), &args.out, &args.experiment),
    }
}

/// Rows of another table, in the order in which they are stored.
async fn of_another_table(datasets: &Datasets, reading: &Reading, args: &ResultsArgs) -> Outcome {
    let (table, encoding) = (args.table, encoding(args.out.format()));
    if args.some.sort.is_some() || args.some.descending || args.some.skip > 0 {
        return Err(failure!(Usage, "--sort, --descending and --skip are for the table `tasks`, or need --by"));
    }
    let usual = SHOWN.iter().find(|(shown, _)| *shown == table && encoding.is_none());
    let names: Vec<&str> = match args.columns.is_empty() {
        true => usual.map_or(Vec::new(), |(_, names)| names.to_vec()),
        false => args.columns.iter().map(|name| name.trim()).collect(),
    };
    let all = relaxed(&Table::schema(table));
    let schema = chosen(&all, &names, table)?.unwrap_or(all);
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let source = Source::open(datasets, reading, &names, source::conditions(table, &args.some.only)?).await?;
    let most = if encoding.is_some() { args.rows.unwrap_or(usize::MAX) } else { args.shown() };
    let mut out = match encoding {
        Some(encoding) => Some(args.out.begin(encoding, &schema, &args.experiment)?),
        None => None,
    };
    let (mut shown, mut left, mut more) = (Vec::new(), most, false);
    source
        .each(|batch, rows| {
            more |= rows.len() > left;
            let rows: UInt32Array = rows.iter().take(left).map(|row| Some(*row as u32)).collect();
            left -= rows.len();
            let columns = names.iter().filter_map(|name| Some(take(batch.column_by_name(name)?, &rows, None)));
            let columns = columns.collect::<Result<Vec<_>, _>>().or_kind(Kind::Storage)?;
            let batch = RecordBatch::try_new(SchemaRef::clone(&schema), columns).or_kind(Kind::Storage)?;
            match &mut out {
                Some(out) => Ok(out.write(&batch)? && !more),
                None => {
                    shown.push(batch);
                    Ok(!more)
                }
            }
        })
        .await?;
    if let Some(out) = out {
        out.finish()?;
        if more && args.out.kept.is_none() {
            screen::note("powersweep: there are more rows: --rows N writes more");
        }
        return Ok(Exit::Done);
    }
    let rows = concat_batches(&schema, &shown).or_kind(Kind::Storage)?;
    if args.out.format() != RowFormat::Table {
        return framed(&Frame::new(rows, names.len()), 0, &args.out, &args.experiment);
    }
    let mut text = screen::table();
    text.set_header(&names);
    for row in 0..rows.num_rows() {
        text.add_row(rows.columns().iter().map(|column| Cell::of(column, row).shown()));
    }
    match (rows.num_rows(), more) {
        (0, false) if args.some.only.is_empty() => screen::print("no rows yet"),
        (0, false) => screen::print("no row has these values"),
        (_, false) => screen::print(&text.to_string()),
        (_, true) => screen::print(&format!("{text}\n… and more rows: --rows N shows more, --format csv writes all")),
    }
}
