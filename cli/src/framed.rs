//! Small tables: on the screen, as text for papers, or as rows for programs.

use arrow::array::RecordBatch;
use comfy_table::CellAlignment;
use powersweep_dataset::page::Shown;
use powersweep_dataset::text::{Column, Sheet};
use powersweep_dataset::writing::{Encoding, Writing, write_whole};
use powersweep_dataset::{Cell, Frame};

use crate::args::{OutArgs, RowFormat};
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::screen::{self, count};

impl OutArgs {
    /// Refuses a file for a table on the screen.
    pub fn check(&self) -> Result<(), Failure> {
        if self.format() == RowFormat::Table && self.output.is_some() {
            return Err(failure!(Usage, "--output needs --format csv, json, parquet, arrow, markdown, latex or typst"));
        }
        Ok(())
    }
}

/// How rows are written, if they are for programs.
pub fn encoding(format: RowFormat) -> Option<Encoding> {
    match format {
        RowFormat::Table | RowFormat::Markdown | RowFormat::Latex | RowFormat::Typst => None,
        RowFormat::Csv => Some(Encoding::Csv),
        RowFormat::Json => Some(Encoding::Json),
        RowFormat::Parquet => Some(Encoding::Parquet),
        RowFormat::Arrow => Some(Encoding::Arrow),
    }
}

/// Shows or writes a small table. `more`: rows that it lacks.
pub fn framed(frame: &Frame, more: usize, out: &OutArgs, experiment: &str) -> Outcome {
    if let Some(encoding) = encoding(out.format()) {
        return written(frame.batch(), encoding, more, out, experiment);
    }
    sheet(&Sheet::of(frame), more, out)
}

/// Shows or writes a table for people. `more`: rows that it lacks.
pub fn sheet(sheet: &Sheet, more: usize, out: &OutArgs) -> Outcome {
    match out.format() {
        RowFormat::Table if more > 0 => {
            screen::print(&format!("{}\n… and {}", on_screen(sheet), count(more as u64, "more row")))
        }
        RowFormat::Table => screen::print(&on_screen(sheet)),
        format => {
            write_whole(out.output.as_deref(), text_of(sheet, format)?.as_bytes())?;
            note_more(more);
            Ok(Exit::Done)
        }
    }
}

/// Shows or writes several tables for people, each under its title.
pub fn sheets(tables: &[(&str, Sheet)], out: &OutArgs) -> Outcome {
    let format = out.format();
    let titled = |(title, sheet): &(&str, Sheet)| match format {
        RowFormat::Table => Ok(format!("{title}\n{}\n", on_screen(sheet))),
        RowFormat::Markdown => Ok(format!("{title}\n\n{}", text_of(sheet, format)?)),
        RowFormat::Typst => Ok(format!("// {title}\n{}", text_of(sheet, format)?)),
        _ => Ok(format!("% {title}\n{}", text_of(sheet, format)?)),
    };
    let text = tables.iter().map(titled).collect::<Result<Vec<String>, Failure>>()?.join("\n");
    match format {
        RowFormat::Table => screen::print(text.trim_end()),
        _ => Ok(write_whole(out.output.as_deref(), text.as_bytes()).map(|()| Exit::Done)?),
    }
}

/// A table in a format for people other than the screen.
fn text_of(sheet: &Sheet, format: RowFormat) -> Result<String, Failure> {
    match format {
        RowFormat::Markdown => Ok(sheet.markdown()),
        RowFormat::Latex => Ok(sheet.latex()),
        RowFormat::Typst => Ok(sheet.typst()),
        format => Err(failure!(
            Failure,
            "{format:?} is a format of rows, and this is a table for people: use table, markdown, latex or typst"
        )),
    }
}

/// Writes rows for programs.
pub fn written(rows: &RecordBatch, encoding: Encoding, more: usize, out: &OutArgs, experiment: &str) -> Outcome {
    let mut file = Writing::begin(out.output.as_deref(), encoding, rows.schema_ref(), experiment)?;
    file.write(rows)?;
    file.finish()?;
    note_more(more);
    Ok(Exit::Done)
}

/// Says how many rows were not written.
pub fn note_more(more: usize) {
    if more > 0 {
        screen::note(&format!("powersweep: {}: --rows N writes more", count(more as u64, "more row")));
    }
}

/// A page of rows for a terminal. `more`: rows that it lacks.
pub fn page_text(page: &Shown, more: usize) -> String {
    let mut table = screen::table();
    table.set_header(&page.headings);
    for row in 0..page.rows.num_rows() {
        table.add_row(page.rows.columns().iter().map(|column| Cell::of(column, row).shown()));
    }
    table.column_iter_mut().skip(page.axes).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    match more {
        0 => table.to_string(),
        more => format!("{table}\n… and {}", count(more as u64, "more row")),
    }
}

/// A table for the screen.
fn on_screen(sheet: &Sheet) -> String {
    let mut table = screen::table();
    table.set_header(sheet.columns.iter().map(Column::heading));
    for row in 0..sheet.rows() {
        table.add_row(sheet.row(row));
    }
    for (column, of) in table.column_iter_mut().zip(&sheet.columns) {
        if of.is_numeric {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}
