//! Tables that fit a terminal: sentences and headings are wrapped, numbers and names stay whole. Elsewhere a row is one
//! line, for other programs.
//!
//! The widths are chosen here: with widths that comfy-table arranges above the least ones, `policies` took an eighth more lines
//! at 80 columns (1,452 in place of 1,285), and more headings of `results` were broken.

use std::fmt;
use std::ops::{Deref, DerefMut};

use comfy_table::{ColumnConstraint, ContentArrangement, Row, Width, presets};

/// What stays whole, the best first: words of cells and of headings up to these widths, at this padding of a column. 36 is
/// the width of a UUID.
const TRIES: [(usize, usize, usize); 7] =
    [(36, 36, 2), (36, 36, 1), (36, 8, 1), (36, 5, 1), (36, 3, 1), (36, 2, 1), (8, 2, 1)];

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
        if let Some(width) = table.width() {
            fit(&mut table, width.into());
        }
        table.fmt(f)
    }
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
    let least = |(names, headings, padding)| {
        (over(&|text| longest_word(text, names), &|text| longest_word(text, headings)), padding)
    };
    let mut tries = TRIES.into_iter().map(least);
    let fitting = tries.find(|(widths, padding)| !is_too_wide(widths, *padding));
    let (widths, padding) = fitting.unwrap_or_else(|| least(TRIES[TRIES.len() - 1]));
    let widths = spread(widths, &natural, width.saturating_sub(padding * columns));
    for (column, width) in table.column_iter_mut().zip(widths) {
        // A width includes the padding.
        let whole = u16::try_from(width + padding).unwrap_or(u16::MAX);
        column.set_padding((u16::from(padding > 1), 1)).set_constraint(ColumnConstraint::Absolute(Width::Fixed(whole)));
    }
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
    fn too_many_numbers_stay_whole() {
        assert!(lines(15).iter().any(|line| line.contains("307039") && line.contains("1.153e8")));
    }
}
