//! The command that prints the rows of a page.

use powersweep_dashboard::{PAGE_ROWS, RowsQuery};
use powersweep_experiments::settings::quoted;

use crate::args::{CoordinatorArgs, DataArgs};

/// The options that a command needs in order to read the same data, with a blank before each.
pub fn options(coordinator: &CoordinatorArgs, data: &DataArgs) -> String {
    let mut options = String::new();
    let mut add = |name: &str, value: &str| options.push_str(&format!(" --{name} {}", quoted(value)));
    let absolute = |path: &str| match std::path::absolute(path) {
        Ok(path) if !path.as_os_str().is_empty() => path.display().to_string(),
        _ => path.to_owned(),
    };
    if !data.is_default() {
        add("data", &if data.data.contains("://") { data.data.clone() } else { absolute(&data.data) });
    }
    if let Some(file) = &coordinator.access {
        add("access", &absolute(&file.display().to_string()));
    }
    if let Some(address) = &coordinator.coordinator {
        add("coordinator", address);
    }
    if coordinator.insecure {
        options.push_str(" --insecure");
    }
    options
}

/// The command that prints these rows.
pub fn command(ask: &RowsQuery, options: &str) -> String {
    let mut line = format!("powersweep results {}{options}", quoted(&ask.experiment));
    let mut add = |name: &str, value: &str| line.push_str(&format!(" --{name} {}", quoted(value)));
    if !ask.columns.is_empty() {
        add("columns", &ask.columns.join(","));
    }
    if !ask.sort.is_empty() {
        add("sort", &ask.sort);
    }
    ask.only.iter().for_each(|only| add("where", only));
    if ask.page > 0 {
        add("skip", &(ask.page * PAGE_ROWS).to_string());
    }
    add("rows", &PAGE_ROWS.to_string());
    if ask.descending {
        line.push_str(" --descending");
    }
    line
}
