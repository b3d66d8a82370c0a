//! `powersweep results`: the rows of an experiment, including unpublished rows.

use arrow::array::RecordBatch;
use powersweep::block_on;
use powersweep::results::{GroupsOptions, Page, ResultRows, RowsOptions};
use powersweep_dataset::Frame;
use powersweep_dataset::writing::{Encoding, Writing};
use powersweep_results::Table;

use crate::args::{ResultsArgs, RowFormat};
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::framed::{encoding, framed, note_more, page_text};
use crate::{presets, screen};

/// Rows that people see unless they ask for a number.
const ROWS: usize = 24;

/// Shows the first rows, or writes all rows.
pub fn run(args: &ResultsArgs) -> Outcome {
    args.out.check()?;
    block_on(async {
        if let Some(found) = frame(args).await? {
            return framed(&found, 0, &args.out, &args.experiment);
        }
        let encoding = encoding(args.out.format());
        let rows = args.from.place()?.rows(&args.experiment, options(args, encoding.is_some())?).await?;
        match encoding {
            Some(encoding) => write(&rows, encoding, args).await,
            None => show(&rows, args).await,
        }
    })
}

/// The numbers of a preset, or groups of rows; `None` if rows are asked for.
async fn frame(args: &ResultsArgs) -> Result<Option<Frame>, Failure> {
    if let Some(preset) = &args.preset {
        return presets::numbers(args, preset).await.map(Some);
    }
    if !args.groups.is_given() {
        return Ok(None);
    }
    args.from.place()?.groups(&args.experiment, args.table, &groups(args)).await.map(Some)
}

/// The options for groups of rows.
fn groups(args: &ResultsArgs) -> GroupsOptions {
    let (some, groups) = (&args.some, &args.groups);
    GroupsOptions {
        columns: args.columns.clone(),
        only: some.only.clone(),
        by: groups.by.clone(),
        stats: groups.stats.clone(),
        ratio_to: groups.ratio_to.clone(),
        pivot: groups.pivot.clone(),
        sort: some.sort.clone(),
        descending: some.descending,
        skip: some.skip,
        rows: args.rows,
    }
}

/// The options for rows. Programs get all of them.
fn options(args: &ResultsArgs, for_programs: bool) -> Result<RowsOptions, Failure> {
    let (some, is_tasks) = (&args.some, args.table == Table::Tasks);
    if !is_tasks && (some.sort.is_some() || some.descending || some.skip > 0) {
        return Err(failure!(Usage, "--sort, --descending and --skip are for the table `tasks`, or need --by"));
    }
    Ok(RowsOptions {
        table: args.table,
        columns: args.columns.clone(),
        only: some.only.clone(),
        sort: some.sort.clone(),
        descending: some.descending,
        skip: some.skip,
        rows: if for_programs { args.rows } else { args.rows.or(Some(ROWS)) },
    })
}

/// Writes the rows for programs.
async fn write(rows: &ResultRows, encoding: Encoding, args: &ResultsArgs) -> Outcome {
    let mut out = Writing::begin(args.out.output.as_deref(), encoding, rows.schema(), &args.experiment)?;
    let mut count = 0;
    let write = |batch: &RecordBatch| {
        count += batch.num_rows();
        out.write(batch)
    };
    let more = rows.each(write).await?;
    out.finish()?;
    if count == 0 {
        screen::note(&format!("powersweep: {}", rows.why_none().await?));
    }
    match more {
        Some(more) => note_more(more),
        None => screen::note("powersweep: there are more rows: --rows N writes more"),
    }
    Ok(Exit::Done)
}

/// Shows the rows to people.
async fn show(rows: &ResultRows, args: &ResultsArgs) -> Outcome {
    let Some(Page { shown, more }) = rows.page().await? else { return screen::print(&rows.without_rows()) };
    let is_on_screen = args.out.format() == RowFormat::Table;
    match more {
        _ if shown.count == 0 && (is_on_screen || args.table == Table::Tasks) => screen::print(&rows.why_none().await?),
        _ if !is_on_screen => framed(&shown.frame()?, more.unwrap_or(0), &args.out, &args.experiment),
        Some(more) => screen::print(&page_text(&shown, more)),
        None => {
            let text = page_text(&shown, 0);
            screen::print(&format!("{text}\n… and more rows: --rows N shows more, --format csv writes all"))
        }
    }
}
