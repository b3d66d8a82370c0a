//! Tables that fit a terminal: sentences are wrapped between words, headings also behind an underscore, numbers and names
//! stay whole. Elsewhere a row is one line, whose long texts are not padded.

use std::fmt;
use std::ops::{Deref, DerefMut};

use comfy_table::{ColumnConstraint, ContentArrangement, Row, Width, presets};

/// Widths up to which words of cells stay whole, and paddings of columns, the best pair first. 36 is the width of a UUID.
const TRIES: [(usize, usize); 3] = [(36, 2), (36, 1), (8, 1)];
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
        match table.width() {
            Some(width) => fit(&mut table, width.into()),
            None => return f.write_str(&without_padding(&table)),
        }
        table.fmt(f)
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

/// Sets the widths of the columns. Padding, headings and names shrink before a number would be broken: half a number looks
/// like another number. A table of too many numbers stays wider than the terminal.
fn fit(table: &mut comfy_table::Table, width: usize) {
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
        return;
    }
    let longest_piece = |text: &str| pieces(text).map(whole).max().unwrap_or(1);
    let least = |(names, padding)| (over(&|text| longest_word(text, names), &longest_piece), padding);
    let mut tries = TRIES.into_iter().map(least);
    let fitting = tries.find(|(widths, padding)| !is_too_wide(widths, *padding));
    let (widths, padding) = fitting.unwrap_or_else(|| least(TRIES[TRIES.len() - 1]));
    let widths = spread(widths, &natural, width.saturating_sub(padding * columns));
    if let Some(header) = table.header() {
        let headings = header.cell_iter().zip(&widths).map(|(cell, width)| wrapped(&cell.content(), *width));
        let headings: Vec<String> = headings.collect();
        table.set_header(headings);
    }
    for (column, width) in table.column_iter_mut().zip(widths) {
        // A width includes the padding.
        let whole = u16::try_from(width + padding).unwrap_or(u16::MAX);
        column.set_padding((u16::from(padding > 1), 1)).set_constraint(ColumnConstraint::Absolute(Width::Fixed(whole)));
    }
}

/// The parts of a heading between which a line may end: words, which may end with an underscore.
fn pieces(heading: &str) -> impl Iterator<Item = &str> {
    heading.split_inclusive(['_', ' ']).map(str::trim_end)
}

/// A heading in lines of at most this width, as far as its parts allow.
fn wrapped(heading: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for part in heading.split_inclusive(['_', ' ']) {
        let line = lines.last_mut().expect("there is a line");
        match line.chars().count() + part.trim_end().chars().count() <= width {
            true => line.push_str(part),
            false if line.is_empty() => line.push_str(part),
            false => lines.push(part.to_owned()),
        }
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// The width of the longest word. Only a number counts for more than `most`.
fn longest_word(text: &str, most: usize) -> usize {
    let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit() || "+-.,e[]".contains(c));
    let width = |word: &str| word.chars().count();
    text.split_whitespace()
        .map(|word| if is_number(word) { width(word) } else { width(word).min(most) })
        .max()
        .unwrap_or(1)
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
            let heading: Vec<&str> =
                all.iter().take_while(|line| !line.contains("307039")).map(String::as_str).collect();
            let words: Vec<&str> = heading.iter().flat_map(|line| line.split([' ', '_'])).collect();
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
    fn too_many_numbers_stay_whole() {
        assert!(lines(15).iter().any(|line| line.contains("307039") && line.contains("1.153e8")));
    }
}
