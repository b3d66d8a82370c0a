//! Rows between bars, as `sacct --parsable2` and `--parsable` print them: without quotes or escapes.

use crate::error::{Place, Problem};
use crate::joblogs::formats::lines::Lines;
use crate::table::find;

const SEPARATOR: char = '|';

/// A table before its rows are read.
pub(super) struct Table<'a> {
    lines: Lines<'a>,
    names: Vec<String>,
    /// Places of columns that are read.
    used: Vec<usize>,
    header: Option<&'a str>,
    /// Whether each line ends with a bar, as `--parsable` prints it.
    ends_with_bar: bool,
}

/// A row.
pub(super) struct Row<'a> {
    /// Its line, from 1.
    pub(super) line: u64,
    fields: Vec<&'a str>,
    names: &'a [String],
    /// Whether it is the header again.
    pub(super) is_header: bool,
}

impl<'a> Table<'a> {
    /// Reads the header, or takes the names of `columns`, the list of `sacct --format`.
    pub(super) fn open(bytes: &'a [u8], columns: Option<&str>) -> Result<Table<'a>, Problem> {
        let mut lines = Lines::of(bytes);
        let mut ahead = lines.clone();
        let (line, text) = ahead.next_text()?.ok_or_else(|| Problem::Content("the file is empty".to_owned()))?;
        if !text.contains(SEPARATOR) {
            let reason = format!("line {line} has no `|` between columns: call sacct with --parsable2");
            return Err(Problem::Content(reason));
        }
        let is_header = text.split(SEPARATOR).any(|name| is_id(name.trim()));
        let given: Option<Vec<String>> = columns.map(listed);
        let names = match (given, is_header) {
            (Some(_), true) => {
                return Err(Problem::setting(
                    "columns",
                    format!("line {line} names the columns; leave the setting out"),
                ));
            }
            (Some(names), false) => names,
            (None, false) => {
                let reason = format!(
                    "line {line} does not name the columns: call sacct without --noheader, or set `columns` to the list that \
                     its --format was given"
                );
                return Err(Problem::Content(reason));
            }
            (None, true) => {
                lines = ahead;
                let names = text.strip_suffix(SEPARATOR).unwrap_or(text);
                names.split(SEPARATOR).map(|name| name.trim().to_owned()).collect()
            }
        };
        let header = is_header.then_some(text);
        let ends_with_bar = is_header && text.ends_with(SEPARATOR);
        Ok(Table { lines, names, used: Vec::new(), header, ends_with_bar })
    }

    /// The column of a name, without regard to case.
    pub(super) fn find(&mut self, name: &str) -> Result<Option<usize>, Problem> {
        let found = find(&self.names, name).map_err(Problem::Content)?;
        self.used.extend(found);
        Ok(found)
    }

    /// The column of a name, which must be there.
    pub(super) fn need(&mut self, wanted: &'static str, purpose: &'static str) -> Result<usize, Problem> {
        let found = self.find(wanted)?;
        found.ok_or_else(|| Problem::no_column(wanted, purpose, &self.names))
    }

    /// The next row that is not empty.
    pub(super) fn next_row(&mut self) -> Result<Option<Row<'_>>, Problem> {
        let Some((line, text)) = self.lines.next_text()? else { return Ok(None) };
        let is_header = self.header == Some(text);
        let text = if self.ends_with_bar { text.strip_suffix(SEPARATOR).unwrap_or(text) } else { text };
        // The last column may be a free text that has bars, such as a job's name.
        let is_free = self.names.len().checked_sub(1).is_some_and(|last| !self.used.contains(&last));
        let fields: Vec<&str> = match is_free {
            true => text.splitn(self.names.len(), SEPARATOR).collect(),
            false => text.split(SEPARATOR).collect(),
        };
        let (found, expected) = (fields.len(), self.names.len());
        if found != expected {
            let hint = match (is_free || found < expected, self.header) {
                (true, Some(_)) => {
                    ": a text such as the name of a job may have a line end, or the file is cut; leave such columns out"
                }
                (true, None) => ": `columns` may be another list than --format was given, or a text has a line end",
                (false, _) => {
                    ": a text such as the name of a job may have a `|`; leave such columns out, or put one at the end of --format"
                }
            };
            return Err(Problem::Fields { place: Place::Line(line), found, expected, hint });
        }
        Ok(Some(Row { line, fields, names: &self.names, is_header }))
    }
}

impl<'a> Row<'a> {
    /// The text of a column; empty for an absent column.
    pub(super) fn get(&self, at: Option<usize>) -> &'a str {
        at.map_or("", |at| self.fields[at].trim())
    }

    /// The name of a column.
    pub(super) fn name(&self, at: Option<usize>) -> &'a str {
        at.map_or("", |at| &self.names[at])
    }

    /// A problem with a cell.
    pub(super) fn problem(&self, at: Option<usize>, reason: &str) -> Problem {
        Problem::cell(Place::Line(self.line), self.name(at), self.get(at), reason)
    }
}

/// Whether a name is that of a column that every header has.
fn is_id(name: &str) -> bool {
    ["JobID", "JobIDRaw"].iter().any(|id| name.eq_ignore_ascii_case(id))
}

/// The names of a list such as `JobID,JobName%50`, without the widths.
fn listed(columns: &str) -> Vec<String> {
    let name = |item: &str| item.split('%').next().unwrap_or_default().trim().to_owned();
    columns.split(',').map(name).collect()
}
