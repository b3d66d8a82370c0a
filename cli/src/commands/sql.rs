//! `powersweep sql`: the user's DuckDB with a view for each table of an experiment.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use powersweep::{Answerer, block_on};
use powersweep_dataset::Datasets;
use powersweep_dataset::reading::relaxed;
use powersweep_dataset::writing::{Encoding, Scratch, Writing, cannot_write};
use powersweep_results::Table;

use crate::args::SqlArgs;
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::screen;

/// The program of DuckDB's command line.
const DUCKDB: &str = "duckdb";

/// Opens DuckDB, or runs a query.
pub fn run(args: &SqlArgs) -> Outcome {
    let folder = tempdir()?;
    let views = block_on(views(args, &folder.0))?;
    if args.print {
        return screen::print(views.trim_end());
    }
    let database = folder.0.join("views.duckdb");
    let Some(made) = ended(Command::new(DUCKDB).arg(&database).arg("-c").arg(&views))? else {
        screen::print(views.trim_end())?;
        let hint = "install it (https://duckdb.org, or pip install duckdb-cli), or give these lines to any DuckDB";
        return Err(failure!(Failure, "there is no program `{DUCKDB}` on the PATH: {hint}"));
    };
    let mut duckdb = Command::new(DUCKDB);
    duckdb.arg(&database);
    if let Some(query) = &args.query {
        duckdb.arg("-c").arg(query);
    }
    match if made { ended(&mut duckdb)? } else { Some(false) } {
        Some(true) => Ok(Exit::Done),
        // Its message is on standard error.
        _ => Err(failure!(Failure, "{DUCKDB} has failed")),
    }
}

/// Whether a program succeeds; `None` if there is no such program.
fn ended(command: &mut Command) -> Result<Option<bool>, Failure> {
    match command.status() {
        Ok(status) => Ok(Some(status.success())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failure!(Failure, "cannot run {DUCKDB}: {error}")),
    }
}

/// A view for each table that has rows.
async fn views(args: &SqlArgs, folder: &Path) -> Result<String, Failure> {
    let place = args.from.place()?;
    let answerer = place.tables().await?;
    let datasets = place.datasets_of(&answerer)?;
    let data = if let Answerer::State(location) = &answerer { location.path() } else { None };
    let mut text = String::new();
    for table in Table::ALL {
        let files = files(&datasets, data, args, table, folder).await?;
        if !files.is_empty() {
            let quoted: Vec<String> = files.iter().map(|file| quoted(&file.to_string_lossy())).collect();
            let list = quoted.join(", ");
            let _ =
                writeln!(text, "CREATE VIEW {table} AS SELECT * FROM read_parquet([{list}], union_by_name = true);");
        }
    }
    if text.is_empty() {
        return Err(failure!(Usage, "{} has no rows yet", args.experiment));
    }
    Ok(text)
}

/// The files with the rows of a table: parts that DuckDB can read where they are, and a copy of the other rows.
async fn files(
    datasets: &Datasets,
    data: Option<&Path>,
    args: &SqlArgs,
    table: Table,
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let mut reading = datasets.read(&args.experiment, table).await?;
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
    if args.print {
        let hint =
            "`powersweep flush` publishes them, and only published rows of a data folder can be read without a copy";
        screen::note(&format!("powersweep: rows of {table} that are not published are left out: {hint}"));
        return Ok(files);
    }
    let (copy, schema) = (folder.join(format!("{table}.parquet")), relaxed(&Table::schema(table)));
    let mut out = Writing::begin(Some(&copy), Encoding::Parquet, &schema, &args.experiment)?;
    reading.each(&schema, |batch| out.write(&batch)).await?;
    out.finish()?;
    files.push(copy);
    Ok(files)
}

/// A text of SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A new folder for this user alone.
fn tempdir() -> Result<Scratch, Failure> {
    use std::os::unix::fs::DirBuilderExt;
    let path = std::env::temp_dir().join(format!("powersweep-sql-{}", uuid::Uuid::new_v4().simple()));
    let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
    made.map_err(|error| cannot_write(&path, &error))?;
    Ok(Scratch(path))
}
