//! Tables that fit a terminal: texts are wrapped between words, else between the parts of a name, and numbers and times stay
//! whole. Where this is not enough, each row is a list of its headings and values. Without a terminal, a row is one line, whose long
//! texts are not padded.

use std::fmt;
use std::ops::{Deref, DerefMut};

use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Row, Width, presets};

/// The width of a UUID, up to which words of cells stay whole.
const WORD_MAX: usize = 36;
/// The width up to which parts of a word stay whole in any case.
const PART_MIN: usize = 8;
/// Texts up to this width are aligned where no terminal limits a line.
const ALIGNED_MAX: usize = 40;

/// A table without borders.
pub struct Table(comfy_table::Table);

impl Table {
    /// An empty table.
    pub fn new() -> Table {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        Table(table)
    }
}

impl Deref for Table {
    type Target = comfy_table::Table;

    fn deref(&self) -> &comfy_table::Table {
        &self.0
    }
}

impl DerefMut for Table {
    fn deref_mut(&mut self) -> &mut comfy_table::Table {
        &mut self.0
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = self.0.clone();
        let Some(width) = table.width().map(usize::from) else { return f.write_str(&without_padding(&table)) };
        match fit(&mut table, width) {
            true => table.fmt(f),
            false => f.write_str(&lists(&self.0, width)),
        }
    }
}

/// The text without blanks at the end of a line, and without those that pad long texts.
fn without_padding(table: &comfy_table::Table) -> String {
    let widths = table.column_max_content_widths();
    let line = |line: &str| {
        let mut rest = line.chars();
        let mut shown = String::new();
        for width in &widths {
            let width = usize::from(*width);
            // comfy-table puts one blank before and behind a cell.
            let cell: String = rest.by_ref().take(width + 2).collect();
            match width > ALIGNED_MAX {
                true => shown.push_str(cell.trim()),
                false => shown.extend(cell.chars().skip(1).take(width)),
            }
            shown.push_str("  ");
        }
        shown.trim_end().to_owned()
    };
    table.to_string().lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A list of headings and values for each row, without the headings of empty cells.
fn lists(table: &comfy_table::Table, width: usize) -> String {
    let headings: Vec<String> = table.header().into_iter().flat_map(Row::cell_iter).map(Cell::content).collect();
    let widest = headings.iter().map(|heading| heading.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(widest + 2).max(PART_MIN);
    let item = |(heading, cell): (&String, &Cell)| {
        let text = wrapped(&cell.content(), room).replace('\n', &format!("\n{:widest$}  ", ""));
        (!text.is_empty()).then(|| format!("{heading:widest$}  {text}"))
    };
    let list = |row: &Row| headings.iter().zip(row.cell_iter()).filter_map(item).collect::<Vec<_>>().join("\n");
    table.row_iter().map(list).collect::<Vec<_>>().join("\n\n")
}

/// Sets the widths of the columns. Padding, headings and names shrink before a number would be broken: half a number looks
/// like another number. Returns whether the table fits, or has no headings for [`lists`]: it may then be wider than the terminal.
fn fit(table: &mut comfy_table::Table, width: usize) -> bool {
    let columns = table.column_count();
    let widest = |row: &Row, widths: Vec<usize>, measure: &dyn Fn(&str) -> usize| -> Vec<usize> {
        let cells = row.cell_iter().map(|cell| measure(&cell.content())).chain(std::iter::repeat(0));
        widths.into_iter().zip(cells).map(|(width, cell)| width.max(cell)).collect()
    };
    let over = |of_cells: &dyn Fn(&str) -> usize, of_headings: &dyn Fn(&str) -> usize| {
        let cells = table.row_iter().fold(vec![1; columns], |widths, row| widest(row, widths, of_cells));
        table.header().into_iter().fold(cells, |widths, row| widest(row, widths, of_headings))
    };
    let is_too_wide = |widths: &[usize], padding: usize| widths.iter().sum::<usize>() + padding * columns > width;
    let whole = |text: &str| text.chars().count();
    let natural = over(&whole, &whole);
    if !is_too_wide(&natural, 2) {
        return true;
    }
    let least = |ends: Ends, most, padding| {
        let widths = over(&|text| longest(ends(text), most), &|text| longest(pieces(text), usize::MAX));
        (widths, padding)
    };
    let of_words = [2, 1].into_iter().map(|padding| least(words, WORD_MAX, padding));
    // Words are broken inside only where there are no headings for a list.
    let part_min = if table.header().is_some() { WORD_MAX } else { PART_MIN };
    let of_parts = (part_min..=WORD_MAX).rev().map(|most| least(pieces, most, 1));
    let fitting = of_words.chain(of_parts).find(|(widths, padding)| !is_too_wide(widths, *padding));
    let (widths, padding) = match fitting {
        Some(fitting) => fitting,
        None if table.header().is_some() => return false,
        None => least(pieces, PART_MIN, 1),
    };
    let widths = spread(widths, &natural, width.saturating_sub(padding * columns));
    if let Some(header) = table.header() {
        let headings = header.cell_iter().zip(&widths).map(|(cell, width)| wrapped(&cell.content(), *width));
        let headings: Vec<String> = headings.collect();
        table.set_header(headings);
    }
    for row in table.row_iter_mut() {
        let cells = row.cell_iter().zip(&widths);
        *row = cells.map(|(cell, width)| Cell::new(wrapped(&cell.content(), *width))).collect::<Vec<Cell>>().into();
    }
    for (column, width) in table.column_iter_mut().zip(widths) {
        // A width includes the padding.
        let whole = u16::try_from(width + padding).unwrap_or(u16::MAX);
        column.set_padding((u16::from(padding > 1), 1)).set_constraint(ColumnConstraint::Absolute(Width::Fixed(whole)));
    }
    true
}

/// Divides a text where a line may end.
type Ends = fn(&str) -> Vec<&str>;

/// The words of a text, with the blanks behind them.
fn words(text: &str) -> Vec<&str> {
    text.split_inclusive([' ', '\n']).collect()
}

/// The parts of the words of a text. Numbers and times are whole.
fn pieces(text: &str) -> Vec<&str> {
    words(text).into_iter().flat_map(parts).collect()
}

/// The parts of a word.
fn parts(word: &str) -> Vec<&str> {
    match is_number(word.trim_end()) {
        true => vec![word],
        false => word.split_inclusive(['_', '-', '/', ',', '=', ' ', '\n']).collect(),
    }
}

/// Whether a word is a number, a list of numbers or a time.
fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit() || "+-.,e[]%:TZ".contains(c))
}

/// A text in lines of at most this width, as far as its parts allow. A word that is wider is divided between its parts.
fn wrapped(text: &str, width: usize) -> String {
    let whole = |text: &str| text.trim_end().chars().count();
    let wrapped_line = |line: &str| {
        let mut lines = vec![String::new()];
        for word in words(line) {
            for part in if whole(word) > width { parts(word) } else { vec![word] } {
                match lines.last_mut() {
                    Some(line) if line.is_empty() || line.chars().count() + whole(part) <= width => line.push_str(part),
                    _ => lines.push(part.to_owned()),
                }
            }
        }
        lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    };
    text.split('\n').map(wrapped_line).collect::<Vec<_>>().join("\n")
}

/// The width of the longest part. Only a number counts for more than `most`.
fn longest(parts: Vec<&str>, most: usize) -> usize {
    let width = |part: &str| match (part.chars().count(), is_number(part)) {
        (width, true) => width,
        (width, false) => width.min(most),
    };
    parts.into_iter().map(str::trim_end).map(width).max().unwrap_or(1)
}

/// Widens the columns evenly, each up to its natural width, until the room is used.
fn spread(mut widths: Vec<usize>, natural: &[usize], room: usize) -> Vec<usize> {
    let mut left = room.saturating_sub(widths.iter().sum());
    while left > 0 {
        let narrow = widths.iter_mut().zip(natural).filter(|(width, natural)| **width < **natural);
        let widened = narrow.take(left).map(|(width, _)| *width += 1).count();
        if widened == 0 {
            break;
        }
        left -= widened;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(width: u16) -> Vec<String> {
        let mut table = Table::new();
        table.set_width(width);
        table.set_header(["policy", "mean wait (s)", "energy_total_j", "what it is"]);
        table.add_row(["full-speed", "307039", "1.153e8", "every job runs at the highest gear of the machine"]);
        table.to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_wide_terminal_wraps_nothing() {
        assert_eq!(lines(120).len(), 2);
    }

    #[test]
    fn a_narrow_terminal_breaks_sentences_and_headings_but_no_number() {
        for width in [80, 60, 45, 34] {
            let lines = lines(width);
            assert!(lines.iter().all(|line| line.chars().count() <= width.into()), "{width}: {lines:#?}");
            for whole in ["307039", "1.153e8"] {
                assert_eq!(lines.iter().filter(|line| line.contains(whole)).count(), 1, "{width}: {lines:#?}");
            }
        }
    }

    #[test]
    fn no_heading_is_broken_inside_a_word() {
        for width in [60, 45, 34, 20] {
            let all = lines(width);
            let words: Vec<&str> = all.iter().flat_map(|line| line.split([' ', '_'])).collect();
            for whole in ["policy", "mean", "wait", "energy", "total"] {
                assert!(words.contains(&whole), "{width}: {all:#?}");
            }
        }
    }

    #[test]
    fn a_row_is_one_line_without_padding_where_there_is_no_terminal() {
        let mut table = Table::new();
        table.0.force_no_tty();
        table.set_header(["policy", "what it is", "wait"]);
        table.add_row(["full-speed", &"word ".repeat(20), "3"]);
        table.add_row(["easy", "short", "14"]);
        let text = table.to_string();
        assert_eq!(text.lines().next(), Some("policy      what it is  wait"), "{text}");
        assert_eq!(text.lines().nth(2), Some("easy        short  14"), "{text}");
    }

    #[test]
    fn a_name_ends_its_lines_between_its_parts_and_a_time_is_whole() {
        let mut table = Table::new();
        table.set_width(70);
        table.set_header(["policy", "state", "begin", "end"]);
        let time = "2026-11-30T07:01:04Z";
        table.add_row(["conservative-power-precedence", "finished", time, time]);
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 70), "{text}");
        assert!(lines.iter().any(|line| line.matches(time).count() == 2), "{text}");
        assert!(["conservative-", "power-", "precedence"].iter().all(|part| text.contains(part)), "{text}");
    }

    #[test]
    fn rows_that_are_too_wide_are_lists() {
        let mut table = Table::new();
        table.set_width(50);
        table.set_header(["signal", "file", "from", "to", "step", "changes to rows"]);
        let times = ["2021-01-01T00:00:00Z", "2025-01-01T00:00:00Z"];
        table.add_row(["carbon", "SE_2021-2024.parquet", times[0], times[1], "3600 s", ""]);
        table.add_row([
            "price",
            "p.csv",
            times[0],
            times[1],
            "3600 s",
            "1 dropped (no_such_time), 1 added (second_of_two)",
        ]);
        let expected = "signal           carbon\n\
                        file             SE_2021-2024.parquet\n\
                        from             2021-01-01T00:00:00Z\n\
                        to               2025-01-01T00:00:00Z\n\
                        step             3600 s\n\n\
                        signal           price\n\
                        file             p.csv\n\
                        from             2021-01-01T00:00:00Z\n\
                        to               2025-01-01T00:00:00Z\n\
                        step             3600 s\n\
                        changes to rows  1 dropped (no_such_time), 1 added\n                 (second_of_two)";
        assert_eq!(table.to_string(), expected);
        // Numbers are whole, however narrow the terminal is.
        assert!(["307039", "1.153e8"].iter().all(|number| lines(15).iter().any(|line| line.ends_with(number))));
    }
}
