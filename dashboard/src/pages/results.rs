//! Rows of one experiment: chosen columns, sorted, page by page.
//!
//! Buttons of one form change what is shown: the form has the present state in hidden fields, so that a button needs a
//! name and a value only.

use maud::{Markup, html};
use powersweep_dataset::words::{aligned, count};

use crate::address::{Query, link};

/// Rows of a page.
pub const PAGE_ROWS: usize = 40;
/// Columns of a page.
const COLUMNS_MAX: usize = 24;
/// Pages; the command shows rows beyond them.
const PAGES_MAX: usize = 50;
/// Characters of a cell.
const CELL_MAX: usize = 60;

/// Which rows are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RowsQuery {
    /// Name of the experiment.
    pub experiment: String,
    /// Names of columns; empty for those that `results` shows.
    pub columns: Vec<String>,
    /// The column of the order; empty for the task index.
    pub sort: String,
    /// Whether the greatest value comes first.
    pub descending: bool,
    /// Conditions such as `policy=easy`.
    pub only: Vec<String>,
    /// Number of the page, from 0.
    pub page: usize,
}

/// Rows as texts.
#[derive(Debug, Clone, Default)]
pub struct RowsPage {
    /// The columns.
    pub columns: Vec<ColumnHeader>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// Number of all rows that satisfy the conditions.
    pub count: usize,
    /// The command that prints these rows.
    pub command: String,
    /// All columns that can be shown.
    pub known: Vec<String>,
}

/// A column.
#[derive(Debug, Clone, Default)]
pub struct ColumnHeader {
    /// For people.
    pub heading: String,
    /// Its name in the table.
    pub name: String,
    /// Whether it has numbers, which are right-aligned.
    pub is_number: bool,
}

impl ColumnHeader {
    fn class(&self) -> Option<&'static str> {
        self.is_number.then_some("n")
    }
}

impl RowsQuery {
    /// What a form or a link asks for.
    pub(crate) fn of(experiment: &str, query: &Query) -> RowsQuery {
        let mut columns: Vec<String> = Vec::new();
        let named = query.all("columns").flat_map(|names| names.split(',')).chain(query.all("add"));
        for name in named.map(str::trim).filter(|name| !name.is_empty() && query.get("drop") != Some(name)) {
            if columns.len() < COLUMNS_MAX && !columns.iter().any(|known| known == name) {
                columns.push(name.to_owned());
            }
        }
        let sort = query.get("by").or_else(|| query.get("sort")).unwrap_or_default();
        let (sort, descending) = sort.strip_prefix('-').map_or((sort, false), |sort| (sort, true));
        let only = query.all("where").map(str::trim).filter(|only| !only.is_empty() && query.get("lift") != Some(only));
        let page = query.get("page").and_then(|page| page.parse::<usize>().ok()).unwrap_or(1);
        RowsQuery {
            experiment: experiment.to_owned(),
            columns,
            sort: sort.to_owned(),
            descending,
            only: only.take(COLUMNS_MAX).map(str::to_owned).collect(),
            page: page.clamp(1, PAGES_MAX) - 1,
        }
    }

    fn sorted(&self) -> String {
        format!("{}{}", if self.descending { "-" } else { "" }, self.sort)
    }

    /// The query of these rows.
    pub(super) fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = vec![("columns", self.columns.join(",")), ("sort", self.sorted())];
        query.extend(self.only.iter().map(|only| ("where", only.clone())));
        query.push(("page", (self.page + 1).to_string()));
        query
    }
}

pub(super) fn live(ask: &RowsQuery, seen: &RowsPage) -> Markup {
    let first = ask.page * PAGE_ROWS;
    html! {
        (form(ask, seen))
        @if seen.rows.is_empty() {
            p.empty { @if seen.count > 0 { "There are no more rows." } @else if ask.only.is_empty() { "No task has a row yet." } @else { "No row has these values." } }
        } @else {
            p role="status" {
                "Rows " (first + 1) " to " (first + seen.rows.len()) " of " (seen.count) ", by "
                (if ask.sort.is_empty() { "task_index" } else { &ask.sort }) @if ask.descending { ", the greatest first" } "."
            }
            div.table tabindex="0" role="region" aria-label="Rows" { table {
                thead { tr { @for column in &seen.columns { (head(ask, column)) } } }
                (body(seen))
            } }
        }
        (pages(ask, seen))
        @if seen.count > 0 {
            p { "Download all " (count(seen.count as u64, "row")) " in these columns and this order: "
                @for (format, words) in [("csv", "CSV"), ("parquet", "Parquet")] { a href=(download(ask, seen, format)) download { (words) } " " }
            }
        }
        h2 { "The same rows in a terminal" }
        code.command { (seen.command) }
        button.copy type="button" { "Copy" }
    }
}

/// The address of a file with all rows in the shown columns.
fn download(ask: &RowsQuery, seen: &RowsPage, format: &str) -> String {
    let columns = seen.columns.iter().map(|column| column.name.clone()).collect();
    let all = RowsQuery { columns, page: 0, ..ask.clone() };
    let query = all.query();
    let mut query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
    query.extend([("name", ask.experiment.as_str()), ("format", format)]);
    link("download", &query)
}

/// The state of the page, and fields that change it.
fn form(ask: &RowsQuery, seen: &RowsPage) -> Markup {
    let names: Vec<&str> = seen.columns.iter().map(|column| column.name.as_str()).collect();
    html! {
        form.choose id="rows" action="results" {
            // The first button is the one that the enter key presses.
            button.hidden tabindex="-1" aria-hidden="true" {}
            input type="hidden" name="name" value=(ask.experiment);
            input type="hidden" name="columns" value=(names.join(","));
            input type="hidden" name="sort" value=(ask.sorted());
            @for only in &ask.only {
                input type="hidden" name="where" value=(only);
                button name="lift" value=(only) { "Without the condition " (only) }
            }
            label { "Add a column " input.wide name="add" list="columns"; }
            label { "Only rows with " input.wide name="where" placeholder="policy=easy"; }
            button { "Show" }
            a href=(link("results", &[("name", &ask.experiment)])) { "Usual columns" }
        }
        datalist id="columns" { @for name in seen.known.iter().filter(|name| !names.contains(&name.as_str())) { option { (name) } } }
    }
}

/// A heading that sorts, and a button that removes its column.
fn head(ask: &RowsQuery, column: &ColumnHeader) -> Markup {
    let ColumnHeader { heading, name, .. } = column;
    let is_sorted = ask.sort == *name || ask.sort.is_empty() && name == "task_index";
    let (sorted, sign, next) = match (is_sorted, ask.descending) {
        (false, _) => (None, "", name.clone()),
        (true, false) => (Some("ascending"), " ▲", format!("-{name}")),
        (true, true) => (Some("descending"), " ▼", name.clone()),
    };
    html! {
        th class=[column.class()] scope="col" aria-sort=[sorted] {
            button.plain form="rows" name="by" value=(next) title="Sort" { (heading) (sign) }
            button.plain form="rows" name="drop" value=(name) aria-label=(format!("Remove {heading}")) { "×" }
        }
    }
}

fn pages(ask: &RowsQuery, seen: &RowsPage) -> Markup {
    let pages = seen.count.div_ceil(PAGE_ROWS).min(PAGES_MAX);
    html! {
        @if pages > 1 {
            nav.actions aria-label="Pages of rows" {
                @if ask.page > 0 { button form="rows" name="page" value=(ask.page) { "Previous" } }
                span { @if ask.page < pages { "Page " (ask.page + 1) " of " (pages) } @else { (pages) " pages" } }
                @if ask.page + 1 < pages { button form="rows" name="page" value=(ask.page + 2) { "Next" } }
            }
            @if seen.count > PAGES_MAX * PAGE_ROWS {
                p.soft { "Pages end after " (count((PAGES_MAX * PAGE_ROWS) as u64, "row")) ": sort, give conditions, or use the command." }
            }
        }
    }
}

/// A table without buttons, for a report.
pub(crate) fn frozen(seen: &RowsPage) -> Markup {
    html! {
        div.table { table {
            thead { tr { @for column in &seen.columns { th class=[column.class()] scope="col" { (column.heading) } } } }
            (body(seen))
        } }
        @if seen.count > seen.rows.len() { p.soft { "… and " (count((seen.count - seen.rows.len()) as u64, "more row")) ": " code { (seen.command) } } }
    }
}

fn body(seen: &RowsPage) -> Markup {
    let cells = |at: usize| {
        seen.rows.iter().map(|row| row.get(at).map_or_else(String::new, |cell| cut(cell))).collect::<Vec<_>>()
    };
    let column = |(at, column): (usize, &ColumnHeader)| if column.is_number { aligned(&cells(at)) } else { cells(at) };
    let columns: Vec<Vec<String>> = seen.columns.iter().enumerate().map(column).collect();
    html! {
        tbody { @for row in 0..seen.rows.len() { tr {
            @for (column, cells) in seen.columns.iter().zip(&columns) { td class=[column.class()] { (cells[row]) } }
        } } }
    }
}

/// The first characters of a long text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(CELL_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(query: &str) -> RowsQuery {
        RowsQuery::of("e", &Query::of(query.as_bytes()))
    }

    #[test]
    fn a_button_changes_the_state_of_its_form() {
        let before = ask("columns=a,b&sort=b&where=c%3D1&page=3");
        let again: String = before.query().iter().map(|(name, value)| format!("{name}={value}&")).collect();
        assert_eq!(ask(&again.replace("c=1", "c%3D1")), before, "a page asks for its own updates");
        assert_eq!((before.sort.as_str(), before.descending, before.page), ("b", false, 2));
        assert_eq!(ask("columns=a,b&drop=a&add=c&add=").columns, ["b", "c"]);
        assert_eq!(ask("columns=a&add=a").columns, ["a"]);
        let sorted = ask("sort=b&by=-a");
        assert_eq!((sorted.sort.as_str(), sorted.descending, sorted.page), ("a", true, 0));
        assert_eq!(ask("where=c%3D1&where=d%3D2&lift=c%3D1&where=").only, ["d=2"]);
        assert_eq!((ask("page=0").page, ask("page=x").page, ask("page=999").page), (0, 0, PAGES_MAX - 1));
    }

    #[test]
    fn a_page_is_small_whatever_its_columns_are() {
        let columns: Vec<String> = (0..99).map(|n| format!("a_column_of_a_usual_name_{n}")).collect();
        let ask = ask(&format!("columns={}&where=policy%3Da", columns.join(",")));
        assert_eq!(ask.columns.len(), COLUMNS_MAX);
        let cells = vec![vec!["12345.678".to_owned(); COLUMNS_MAX]; PAGE_ROWS];
        let column = |name: &String| ColumnHeader { heading: name.clone(), name: name.clone(), is_number: true };
        let shown = ask.columns.iter().map(column).collect();
        let known = (0..200).map(|n| format!("another_name_{n}")).collect();
        let seen = RowsPage { columns: shown, rows: cells, count: 9_999, command: "powersweep".into(), known };
        let page = live(&ask, &seen).into_string();
        assert!(page.len() < 50_000, "{} bytes", page.len());
        assert!(page.contains("Rows 1 to 40 of 9999") && page.contains("Pages end after 2000 rows"));
    }
}
