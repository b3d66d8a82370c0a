//! `powersweep export`: copies an experiment's tables, each into one file sorted by task.

use powersweep::block_on;
use powersweep::export::{ExportColumns, ExportOptions};
use powersweep_results::Table;

use crate::args::ExportArgs;
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::screen;

/// Endings of the names of files in other formats.
const OTHER_FORMATS: &[&str] =
    &["csv", "json", "arrow", "tsv", "txt", "jsonl", "ndjson", "ipc", "feather", "xlsx", "gz", "zst", "zip", "pq"];

/// Copies one table or all tables.
pub fn run(args: &ExportArgs) -> Outcome {
    check_name(args)?;
    let columns = match (args.wide, args.tidy) {
        (true, _) => ExportColumns::Wide,
        (_, true) => ExportColumns::Tidy,
        _ => ExportColumns::Own,
    };
    let options = ExportOptions { table: args.table, columns };
    let copied = block_on(async { args.from.place()?.export(&args.experiment, &args.output, options).await })?;
    for (table, rows) in copied {
        screen::print(&format!("{table}: {}", screen::count(rows, "row")))?;
    }
    Ok(Exit::Done)
}

/// Refuses the name of one file for all tables, and that of a file in another format, of which a folder would be made.
fn check_name(args: &ExportArgs) -> Result<(), Failure> {
    let ending = args.output.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let (output, table) = (args.output.display(), args.table.unwrap_or(Table::Tasks));
    if ending == "parquet" && args.table.is_none() {
        let hint = "name a folder for all tables, or choose one table with --table";
        return Err(failure!(Usage, "{output} is the name of one file; {hint}"));
    }
    let ending = ending.to_lowercase();
    let hint = match ending.as_str() {
        ending if !OTHER_FORMATS.contains(&ending) => return Ok(()),
        "csv" | "json" | "arrow" => {
            format!("`powersweep results {} --table {table} --format {ending} --output {output}` does", args.experiment)
        }
        _ => "name a folder, or with --table a file whose name ends in .parquet".to_owned(),
    };
    Err(failure!(Usage, "{output}: an export does not write .{ending} files; {hint}"))
}
