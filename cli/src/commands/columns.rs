//! `powersweep columns`: the columns of the result tables.

use powersweep_dataset::titles::labelled;
use powersweep_results::Table;
use powersweep_results::columns::{self, Column};
use serde_json::{Value as Json, json};

use crate::args::ColumnsArgs;
use crate::exit::{Exit, Outcome, failure};
use crate::screen;

/// Lists the columns of one table or of all tables, or explains the column of a name in each table that has it.
pub fn run(args: &ColumnsArgs) -> Outcome {
    let chosen = columns::of_name(args.name.as_deref()).map_err(|reason| failure!(Usage, "{reason}"))?;
    if args.output.is_json() {
        let of_table = |(table, columns): &(Table, Vec<Column>)| {
            columns.iter().map(|column| column_json(table.name(), column)).collect::<Vec<Json>>()
        };
        return screen::print_json(json!({ "columns": chosen.iter().flat_map(of_table).collect::<Vec<Json>>() }));
    }
    for (table, columns) in chosen {
        let mut shown = screen::table();
        for column in columns {
            let null = if column.nullable { "or null" } else { "" };
            let of = labelled(column.type_name(), column.unit);
            shown.add_row([format!("  {}", column.name), of, null.to_owned(), column.doc]);
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
