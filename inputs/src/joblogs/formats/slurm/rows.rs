//! Rows between bars, as `sacct --parsable2` and `--parsable` print them: without quotes or escapes. Rows of another
//! `--delimiter` are read, too, and rows between commas, semicolons or tabs with quoted cells, as other programs save them.

use std::borrow::Cow;

use crate::error::{Place, Problem, shortened};
use crate::joblogs::formats::lines::Lines;
use crate::table::find;

const SEPARATOR: &str = "|";

/// Separators of files in which cells may be quoted.
const OF_QUOTED: [&str; 3] = [",", ";", "\t"];

/// Maximum number of lines before the header.
const BANNER_MAX: usize = 20;

/// A table before its rows are read.
pub(super) struct Table<'a> {
    lines: Lines<'a>,
    names: Vec<String>,
    separator: Cow<'a, str>,
    /// Lines before the header.
    banner: Vec<u64>,
    /// Places of columns that are read.
    used: Vec<usize>,
    header: Option<&'a str>,
    /// Whether each line ends with a separator, as `--parsable` prints it.
    ends_with_separator: bool,
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
        let lines = Lines::of(bytes);
        let (mut ahead, mut banner) = (lines.clone(), Vec::new());
        let mut first = None;
        for _ in 0..=BANNER_MAX {
            let Some((line, text)) = ahead.next_text()? else { break };
            first = first.or(Some((line, text)));
            let Some(separator) = header_separator(text) else {
                banner.push(line);
                continue;
            };
            if columns.is_some() {
                let reason = format!("line {line} names the columns; leave the setting out");
                return Err(Problem::setting("columns", reason));
            }
            let names = split(text.strip_suffix(separator).unwrap_or(text), separator, usize::MAX);
            let names = names.into_iter().map(|name| name.trim().to_owned()).collect();
            let (used, ends_with_separator) = (Vec::new(), text.ends_with(separator));
            let separator = Cow::Borrowed(separator);
            return Ok(Table { lines: ahead, names, separator, banner, used, header: Some(text), ends_with_separator });
        }
        let (line, text) = first.ok_or_else(|| Problem::Content("the file is empty".to_owned()))?;
        let Some(names) = columns.map(listed) else {
            let reason = match text.contains(SEPARATOR) {
                true => format!(
                    "line {line} does not name the columns: call sacct without --noheader, or set `columns` to the list that \
                     its --format was given"
                ),
                false => format!(
                    "line {line} has no `|` between columns and is no header with JobID: call sacct with --parsable2: {:?}",
                    shortened(text)
                ),
            };
            return Err(Problem::Content(reason));
        };
        // Without a header, the separator is the one that gives as many cells as there are names.
        let fits = |separator: &&str| split(text, separator, usize::MAX).len() == names.len();
        let separator = [SEPARATOR].into_iter().chain(OF_QUOTED).find(fits).unwrap_or(SEPARATOR);
        Ok(Table {
            lines,
            names,
            separator: Cow::Borrowed(separator),
            banner: Vec::new(),
            used: Vec::new(),
            header: None,
            ends_with_separator: false,
        })
    }

    /// Lines before the header.
    pub(super) fn banner(&self) -> &[u64] {
        &self.banner
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
        let separator = &*self.separator;
        let text = if self.ends_with_separator { text.strip_suffix(separator).unwrap_or(text) } else { text };
        // The last column may be a free text that has bars, such as a job's name.
        let is_free = self.names.len().checked_sub(1).is_some_and(|last| !self.used.contains(&last));
        let fields = split(text, separator, if is_free { self.names.len() } else { usize::MAX });
        let (found, expected) = (fields.len(), self.names.len());
        if found != expected {
            let hint = match (is_free || found < expected, self.header) {
                (true, Some(_)) => {
                    ": a text such as the name of a job may have a line end, or the file is cut; leave such columns out"
                }
                (true, None) => ": `columns` may be another list than --format was given, or a text has a line end",
                (false, _) => {
                    ": a text such as the name of a job may have a separator; leave such columns out, or put one at the end of --format"
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

/// The separator of a header, which names the column of ids: the text between two names. `None` for another line.
fn header_separator(text: &str) -> Option<&str> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '"' | '_');
    let name = text.trim_start().split(|c: char| !is_name(c)).next().filter(|name| !name.is_empty())?;
    let rest = text.trim_start().get(name.len()..)?;
    let separator = &rest[..rest.find(is_name)?];
    // Blanks separate columns of a fixed width, whose cells are cut.
    let is_separator = !separator.is_empty() && (separator == "\t" || !separator.trim().is_empty());
    let separator = if separator.trim().is_empty() { separator } else { separator.trim_matches(' ') };
    let names = |separator| split(text, separator, usize::MAX);
    (is_separator && names(separator).iter().any(|name| is_id(name.trim()))).then_some(separator)
}

/// The cells of a line, at most `most`, of which the last has the rest of the line.
fn split<'a>(text: &'a str, separator: &str, most: usize) -> Vec<&'a str> {
    if !OF_QUOTED.contains(&separator) || !text.contains('"') {
        return text.splitn(most, separator).collect();
    }
    let (mut cells, mut rest) = (Vec::new(), text);
    loop {
        let quoted = rest.strip_prefix('"').and_then(|inner| inner.split_once('"'));
        // A quoted cell ends at its second quote, if a separator or nothing follows.
        let quoted = quoted.filter(|(_, after)| after.is_empty() || after.starts_with(separator));
        let (cell, after) = match quoted {
            Some((cell, "")) => (cell, None),
            Some((cell, after)) => (cell, after.strip_prefix(separator)),
            None if cells.len() + 1 == most => (rest, None),
            None => rest.split_once(separator).map_or((rest, None), |(cell, after)| (cell, Some(after))),
        };
        cells.push(cell);
        match after {
            Some(after) => rest = after,
            None => return cells,
        }
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
