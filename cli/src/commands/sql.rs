//! `powersweep sql`: the user's DuckDB with a view for each table of an experiment.

use std::io::ErrorKind;
use std::process::Command;

use powersweep::block_on;
use powersweep_dataset::partial::Partial;

use crate::args::SqlArgs;
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::{interrupt, screen};

/// The program of DuckDB's command line.
const DUCKDB: &str = "duckdb";

/// Opens DuckDB, or runs a query.
pub fn run(args: &SqlArgs) -> Outcome {
    if args.print {
        return screen::print_exact(
            block_on(async { args.from.place()?.views(&args.experiment, None).await })?.trim_end(),
        );
    }
    let folder = Partial::scratch().map_err(|error| failure!(Storage, "cannot make a temporary folder: {error}"))?;
    let views = block_on(async { args.from.place()?.views(&args.experiment, Some(folder.path())).await })?;
    let database = folder.path().join("views.duckdb");
    // Ctrl-C is for DuckDB, which reads the folder until it ends.
    interrupt::leave_to_child();
    let Some(made) = ended(Command::new(DUCKDB).arg(&database).arg("-c").arg(&views))? else {
        screen::print_exact(views.trim_end())?;
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
        _ => Err(failure!(Failure, "{DUCKDB} has failed: its message above says where the query is wrong")),
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
