//! `powersweep columns`: the columns of the result tables.

use powersweep_experiments::reading::unknown;
use powersweep_results::{Table, columns::Column};
use serde_json::{Value as Json, json};

use crate::args::ColumnsArgs;
use crate::exit::{Exit, Outcome, failure};
use crate::screen;

/// Lists the columns of one table or of all tables.
pub fn run(args: &ColumnsArgs) -> Outcome {
    let chosen: Vec<_> =
        Table::ALL.into_iter().filter(|t| args.table.as_deref().is_none_or(|name| name == t.name())).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = Table::ALL.iter().map(|t| t.name()).collect();
        let name = args.table.as_deref().unwrap_or_default();
        return Err(failure!(Usage, "{}", unknown("table", name, &names)));
    }
    if args.output.is_json() {
        let of_table = |t: Table| t.columns().iter().map(|c| column_json(t.name(), c)).collect::<Vec<Json>>();
        let all: Vec<Json> = chosen.into_iter().flat_map(of_table).collect();
        return screen::print_json(json!({ "columns": all }));
    }
    for table in chosen {
        let mut shown = screen::table();
        for column in table.columns() {
            let null = if column.nullable { "or null" } else { "" };
            shown.add_row([format!("  {}", column.name), column.type_name().to_owned(), null.to_owned(), column.doc]);
        }
        screen::print(&format!("{}: a row is {}\n{shown}\n", table.name(), table.row()))?;
    }
    Ok(Exit::Done)
}

fn column_json(table: &str, column: &Column) -> Json {
    json!({
        "table": table,
        "name": column.name,
        "type": column.type_name(),
        "unit": column.unit,
        "nullable": column.nullable,
        "doc": column.doc,
        "source": column.source,
    })
}
