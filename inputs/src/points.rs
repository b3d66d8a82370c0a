//! Points of a design in a file: comma-separated values, or Parquet with a column for each parameter.

use powersweep_engine::workload::kinds::{BYTE_ORDER_MARK, PARQUET, other_kind};

use crate::error::{Place, Problem};
use crate::table::Sheet;
use crate::table::parquet::Limits;

/// A manifest with its points has at most 1 MiB, so that a longer file is refused in any case.
const LIMITS: Limits = Limits { rows: 1 << 20, bytes: 4 << 20 };
/// Characters that would end a value or a line.
const ENDS: [char; 4] = [',', '"', '\n', '\r'];

/// The points of a file as a manifest has them: a line of parameters, then a line of values for each point.
///
/// # Errors
/// The file is neither text nor readable Parquet, or a name or a value of Parquet has a comma, a quotation mark or a line break.
pub fn lines(bytes: &[u8]) -> Result<String, Problem> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if let Some(kind) = other_kind(bytes, &[PARQUET]) {
        return Err(Problem::Content(format!("the file is {kind}")));
    }
    if !bytes.starts_with(PARQUET) {
        return str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
            let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() as u64;
            Problem::At {
                place: Place::Line(line),
                reason: "it is no text in UTF-8: save the file as UTF-8".to_owned(),
            }
        });
    }
    let mut sheet = Sheet::of_parquet(bytes, LIMITS)?;
    if let Some(name) = sheet.names.iter().find(|name| name.contains(ENDS)) {
        return Err(Problem::Content(format!("the column {name:?} has no name of a parameter")));
    }
    let columns = sheet.names.len();
    let mut lines = sheet.names.join(",");
    while let Some(row) = sheet.next_row()? {
        let cells: Vec<&str> = (0..columns).map(|at| row.get(at)).collect();
        if let Some(at) = cells.iter().position(|cell| cell.contains(ENDS)) {
            return Err(row.problem(at, "is no value of a parameter"));
        }
        lines.push('\n');
        lines.push_str(&cells.join(","));
    }
    lines.push('\n');
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;

    use super::*;

    fn file(columns: [(&str, ArrayRef); 3]) -> Vec<u8> {
        let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("a schema");
        writer.write(&batch).expect("a batch");
        writer.close().expect("a file");
        bytes
    }

    fn columns(last: &str) -> [(&'static str, ArrayRef); 3] {
        let threshold = StringArray::from(vec!["16", last]);
        [
            ("size_factor", Arc::new(Float64Array::from(vec![0.1 + 0.2, 2.0]))),
            ("wait_s", Arc::new(Int64Array::from(vec![1 << 53, -1]))),
            ("wq_threshold", Arc::new(threshold)),
        ]
    }

    #[test]
    fn rows_of_parquet_are_lines_with_all_digits() {
        let expected = "size_factor,wait_s,wq_threshold\n0.30000000000000004,9007199254740992,16\n2,-1,unlimited\n";
        assert_eq!(lines(&file(columns("unlimited"))).expect("reads"), expected);
    }

    #[test]
    fn a_value_with_a_comma_is_refused_with_its_row() {
        let problem = lines(&file(columns("1,5"))).expect_err("two values").to_string();
        assert_eq!(problem, "row 2, column \"wq_threshold\": \"1,5\" is no value of a parameter");
    }

    #[test]
    fn files_of_other_kinds_are_named() {
        let problem = |bytes: &[u8]| lines(bytes).expect_err("no points").to_string();
        assert!(problem(b"\x1f\x8b\x08").contains("compressed by gzip"));
        assert!(problem(b"PAR1 and no more").contains("damaged"));
        assert!(problem(b"a\n\xff\n").contains("line 2: it is no text in UTF-8"));
        assert_eq!(lines(b"\xef\xbb\xbfa,b\n1,2\n").expect("reads"), "a,b\n1,2\n");
    }
}
