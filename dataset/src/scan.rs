//! The columns in which the rows of `tasks` differ.
//!
//! The footers of the parts tell most of it: a column whose smallest and greatest value are equal in a row group has one
//! value there. A column is read where its statistics do not decide: a list, a long text, or a column of a row group in
//! which several labels meet. Reading ends as soon as the answer is known, and the answer is exact.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::RowGroupSelection;
use powersweep_results::folded::{Folded, FoldedBatch};
use powersweep_results::{Table, tasks};

use crate::Cell;
use crate::reading::{self, ColumnStats, Part, Reading, fitted};
pub use crate::replicates::SEED;
pub use crate::subject::LABELS;
use crate::{Error, Kind, OrKind};

/// The index of a task; rows of equal value are in its order.
pub const INDEX: &str = "task_index";

/// Parameters that no manifest chooses.
const NOT_AXES: [&str; 3] = ["kernel_version", "log_digest", "log_sha256"];

/// Rows of a batch: one batch for a page.
const BATCH_ROWS: usize = 4096;

/// The rows of `tasks` in groups whose columns are read one by one.
pub struct Tasks {
    parts: Vec<Part>,
    /// Unpublished rows, with the columns that a search or a table needs.
    unpublished: Vec<FoldedBatch>,
}

/// Some rows that are stored together.
#[derive(Clone, Copy)]
pub enum RowGroup<'a> {
    /// A row group of a part.
    Stored(&'a Part, usize),
    /// Unpublished rows.
    Unpublished(&'a FoldedBatch),
}

impl Tasks {
    /// Reads the footers of the parts, and these columns of the unpublished rows.
    pub async fn open(reading: &Reading, columns: &SchemaRef) -> Result<Tasks, Error> {
        let unpublished = reading.unpublished().map(|batch| Ok(batch?.project(columns)));
        Ok(Tasks { parts: reading.parts().await?, unpublished: unpublished.collect::<Result<_, Error>>()? })
    }

    /// All groups.
    pub fn groups(&self) -> Vec<RowGroup<'_>> {
        let stored = self.parts.iter().flat_map(|part| (0..part.groups().len()).map(|at| RowGroup::Stored(part, at)));
        stored.chain(self.unpublished.iter().map(RowGroup::Unpublished)).collect()
    }
}

impl RowGroup<'_> {
    /// The name of its part; `None` of unpublished rows.
    pub fn part(self) -> Option<String> {
        match self {
            RowGroup::Stored(part, _) => Some(part.path().to_string()),
            RowGroup::Unpublished(_) => None,
        }
    }

    /// Number of rows.
    pub fn rows(self) -> usize {
        match self {
            RowGroup::Stored(part, group) => part.rows(group),
            RowGroup::Unpublished(batch) => batch.rows(),
        }
    }

    /// What is known of a column without reading it.
    pub fn stats(self, name: &str) -> ColumnStats {
        match self {
            RowGroup::Stored(part, group) => part.stats(name, group),
            RowGroup::Unpublished(batch) => match batch.column(name) {
                Some(Folded::Equal(row)) => ColumnStats::Equal(Cell::of(row, 0)),
                Some(Folded::Rows(_)) => ColumnStats::Unknown,
                None => ColumnStats::Equal(Cell::Null),
            },
        }
    }

    /// Calls `each` with batches of these columns until it returns false. `from`: the row group, or some of its rows.
    pub async fn each(
        self,
        schema: &SchemaRef,
        from: impl FnOnce(usize) -> RowGroupSelection,
        mut each: impl FnMut(&RecordBatch) -> bool,
    ) -> Result<(), Error> {
        match self {
            RowGroup::Stored(part, group) => {
                let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                let fit = |batch| Ok(each(&fitted(&batch, schema, part.path())?));
                part.each(&names, vec![from(group)], BATCH_ROWS, fit).await.map(drop)
            }
            RowGroup::Unpublished(batch) => {
                each(&batch.project(schema).unfold().or_kind(Kind::Storage)?);
                Ok(())
            }
        }
    }
}

/// A whole row group.
pub fn whole(group: usize) -> RowGroupSelection {
    RowGroupSelection::new(group, None)
}

/// These columns of `tasks`, all nullable.
pub fn columns<'a>(names: impl IntoIterator<Item = &'a str>) -> SchemaRef {
    reading::columns(Table::Tasks, names)
}

/// The columns that can distinguish rows: labels, seed, components and parameters, in the order of the table.
pub fn candidates() -> Vec<String> {
    let axes: BTreeSet<String> = tasks::axes().into_iter().map(|column| column.name).collect();
    let named = |name: &str| LABELS.contains(&name) || name == SEED || axes.contains(name);
    let names = tasks::columns().into_iter().map(|column| column.name);
    names.filter(|name| named(name) && !NOT_AXES.contains(&name.as_str())).collect()
}

/// The labels of a row.
type Labels = [String; 3];

/// A column, and what its rows have shown so far.
#[derive(Debug, Clone, Default)]
pub struct ColumnScan {
    /// Its name.
    pub name: String,
    /// A value that is not null.
    value: Option<Cell>,
    varies: bool,
    by_labels: BTreeMap<Labels, Cell>,
    varies_beside_labels: bool,
    /// Groups that must be read, with their value if they have only one.
    unread: BTreeMap<usize, Option<Cell>>,
}

impl ColumnScan {
    /// Whether there are several values. Rows without a value do not count: the component that has the parameter differs.
    pub fn varies(&self) -> bool {
        self.varies
    }

    /// The first value; `None` if no row has one.
    pub(crate) fn value(&self) -> Option<&Cell> {
        self.value.as_ref()
    }

    /// Its only value, if it has one; null if no row has a value.
    pub fn only(&self) -> Option<Cell> {
        (!self.varies).then(|| self.value.clone().unwrap_or(Cell::Null))
    }

    /// Whether the column distinguishes rows for people: a label with several values, or a column with several values
    /// that the labels do not determine.
    pub fn distinguishes(&self) -> bool {
        self.varies && (LABELS.contains(&self.name.as_str()) || self.varies_beside_labels)
    }

    fn is_decided(&self) -> bool {
        self.varies && self.varies_beside_labels
    }

    /// Some rows have this value.
    fn note(&mut self, value: &Cell) {
        if !value.is_null() {
            self.varies |= *self.value.get_or_insert_with(|| value.clone()) != *value;
        }
    }

    /// Some rows of these labels have this value.
    fn note_with(&mut self, labels: &Labels, value: &Cell) {
        self.note(value);
        match self.by_labels.get(labels) {
            Some(known) => self.varies_beside_labels |= known != value,
            None => drop(self.by_labels.insert(labels.clone(), value.clone())),
        }
    }

    /// Notes the values of a group that its footers tell. `labels`: the labels of the group's rows, if all have the same.
    fn note_seen(&mut self, group: usize, seen: ColumnStats, labels: Option<&Labels>) {
        match (&seen, labels) {
            (ColumnStats::Equal(value), Some(labels)) => return self.note_with(labels, value),
            (ColumnStats::Equal(value), None) => self.note(value),
            (ColumnStats::Between { least, greatest, .. }, _) => {
                [least, greatest].into_iter().for_each(|value| self.note(value));
                if labels.is_some() {
                    self.varies_beside_labels = true;
                    return;
                }
            }
            (ColumnStats::Unknown, _) => {}
        }
        let value = if let ColumnStats::Equal(value) = seen { Some(value) } else { None };
        self.unread.insert(group, value);
    }
}

/// Searches these columns. Labels are among them.
pub async fn search(groups: &[RowGroup<'_>], names: &[String]) -> Result<Vec<ColumnScan>, Error> {
    let mut found: Vec<ColumnScan> =
        names.iter().map(|name| ColumnScan { name: name.clone(), ..ColumnScan::default() }).collect();
    for (at, group) in groups.iter().enumerate() {
        let labels = labels_of_all(*group);
        for candidate in &mut found {
            candidate.note_seen(at, group.stats(&candidate.name), labels.as_ref());
        }
    }
    for (at, group) in groups.iter().enumerate() {
        let mut open: Vec<&mut ColumnScan> =
            found.iter_mut().filter(|c| !c.is_decided() && c.unread.contains_key(&at)).collect();
        if !open.is_empty() {
            read(*group, at, &mut open).await?;
        }
    }
    Ok(found)
}

/// The labels of a group's rows, if all have the same.
fn labels_of_all(group: RowGroup<'_>) -> Option<Labels> {
    let label = |name| match group.stats(name) {
        ColumnStats::Equal(Cell::Text(label)) => Some(label),
        _ => None,
    };
    Some([label(LABELS[0])?, label(LABELS[1])?, label(LABELS[2])?])
}

/// Reads the labels and these columns of a group, until all are decided.
async fn read(group: RowGroup<'_>, at: usize, open: &mut [&mut ColumnScan]) -> Result<(), Error> {
    let unread: Vec<&str> = open.iter().filter(|c| c.unread[&at].is_none()).map(|c| c.name.as_str()).collect();
    let others = unread.into_iter().filter(|name| !LABELS.contains(name));
    let schema = columns(LABELS.into_iter().chain(others));
    group
        .each(&schema, whole, |batch| {
            for run in runs(batch) {
                note_run(&run, at, open);
            }
            !open.iter().all(|candidate| candidate.is_decided())
        })
        .await
}

/// The rows of a batch, split where the labels change.
fn runs(batch: &RecordBatch) -> Vec<RecordBatch> {
    let labels: Vec<_> = LABELS.iter().filter_map(|name| batch.column_by_name(name)).collect();
    let is_border = |row: &usize| labels.iter().any(|label| label.slice(row - 1, 1) != label.slice(*row, 1));
    let folded = FoldedBatch::of(batch);
    if LABELS.iter().all(|name| matches!(folded.column(name), Some(Folded::Equal(_)))) {
        return vec![batch.clone()];
    }
    let borders: Vec<usize> = (1..batch.num_rows()).filter(is_border).collect();
    let begins = std::iter::once(0).chain(borders.iter().copied());
    let ends = borders.iter().copied().chain([batch.num_rows()]);
    begins.zip(ends).map(|(begin, end)| batch.slice(begin, end - begin)).collect()
}

/// Notes rows of equal labels.
fn note_run(run: &RecordBatch, at: usize, open: &mut [&mut ColumnScan]) {
    let folded = FoldedBatch::of(run);
    let label = |name| match folded.column(name) {
        Some(Folded::Equal(row) | Folded::Rows(row)) => Cell::of(row, 0).shown(),
        None => String::new(),
    };
    let labels = LABELS.map(label);
    for candidate in open.iter_mut().filter(|candidate| !candidate.is_decided()) {
        if let Some(value) = candidate.unread[&at].clone() {
            candidate.note_with(&labels, &value);
            continue;
        }
        match folded.column(&candidate.name) {
            Some(Folded::Equal(row)) => candidate.note_with(&labels, &Cell::of(row, 0)),
            Some(Folded::Rows(column)) => {
                let mut rows_left = 0..column.len();
                while let Some(row) = rows_left.next().filter(|_| !candidate.is_decided()) {
                    candidate.note_with(&labels, &Cell::of(column, row));
                }
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use bytes::Bytes;
    use object_store::path::Path;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    use super::*;

    /// A part with labels, a text, a number and a list of each row: a row group for every `group_rows` rows.
    fn part(rows: &[(&str, Option<&str>, Option<i64>)], group_rows: usize) -> Part {
        let texts = |of: &dyn Fn(usize) -> Option<String>| -> ArrayRef {
            Arc::new((0..rows.len()).map(of).collect::<StringArray>())
        };
        let same = texts(&|_| Some("x".to_owned()));
        let numbers: ArrayRef = Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>());
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("workload", same.clone(), true),
            ("platform", same, true),
            ("policy", texts(&|row| Some(rows[row].0.to_owned())), true),
            ("queue_order", texts(&|row| rows[row].1.map(str::to_owned)), true),
            ("synthetic_jobs_count", numbers, true),
        ])
        .expect("columns of one length");
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).expect("a writer");
        writer.write(&batch).expect("written");
        let bytes = Bytes::from(writer.into_inner().expect("closed"));
        futures::executor::block_on(Part::held(&Path::from("p"), bytes)).map_err(|f| f.message).expect("a footer")
    }

    /// For each column: whether it varies, and whether it is shown.
    fn searched(rows: &[(&str, Option<&str>, Option<i64>)], group_rows: usize) -> Vec<(bool, bool)> {
        let part = part(rows, group_rows);
        let groups: Vec<RowGroup<'_>> = (0..part.groups().len()).map(|at| RowGroup::Stored(&part, at)).collect();
        let names = ["policy", "queue_order", "synthetic_jobs_count"].map(str::to_owned);
        let found = futures::executor::block_on(search(&groups, &names)).map_err(|f| f.message).expect("readable");
        found.iter().map(|candidate| (candidate.varies(), candidate.distinguishes())).collect()
    }

    #[test]
    fn columns_are_found_however_the_rows_are_grouped() {
        let (no, varies, shown) = ((false, false), (true, false), (true, true));
        let long = "a".repeat(200);
        /// The rows, and for each column whether it varies and whether it is shown.
        type Case<'a> = (Vec<(&'a str, Option<&'a str>, Option<i64>)>, [(bool, bool); 3]);
        let cases: Vec<Case<'_>> = vec![
            (vec![("a", Some("x"), Some(1)); 6], [no, no, no]),
            // The label determines the order; the number has one value beside nulls.
            (vec![("a", Some("x"), Some(1)), ("b", Some("y"), None)], [shown, varies, no]),
            (
                vec![("a", Some("x"), Some(1)), ("b", Some("y"), Some(2)), ("b", Some("y"), Some(2))],
                [shown, varies, varies],
            ),
            (
                vec![("a", Some("x"), Some(1)), ("b", Some("y"), Some(2)), ("a", Some("x"), Some(3))],
                [shown, varies, shown],
            ),
            (vec![("a", Some("x"), None), ("a", None, Some(2)), ("a", Some("x"), None)], [no, no, no]),
            (vec![("a", Some(&long), Some(0)), ("a", Some(&long), Some(0))], [no, no, no]),
            (vec![("a", Some(&long), Some(0)), ("a", Some("a"), Some(1))], [no, shown, shown]),
        ];
        for (rows, expected) in cases {
            for group_rows in 1..=rows.len() {
                assert_eq!(searched(&rows, group_rows), expected, "{rows:?} in groups of {group_rows}");
            }
        }
    }

    #[test]
    fn footers_tell_equal_values() {
        let part = part(&[("a", Some("x"), None), ("a", Some("y"), Some(3))], 2);
        assert_eq!(part.stats("policy", 0), ColumnStats::Equal(Cell::Text("a".to_owned())));
        assert_eq!(part.stats("bsld_threshold", 0), ColumnStats::Equal(Cell::Null), "a column that the part lacks");
        let numbers = ColumnStats::Between { least: Cell::Int(3), greatest: Cell::Int(3), nulls: true };
        assert_eq!(part.stats("synthetic_jobs_count", 0), numbers);
        let texts = ColumnStats::Between {
            least: Cell::Text("x".to_owned()),
            greatest: Cell::Text("y".to_owned()),
            nulls: false,
        };
        assert_eq!(part.stats("queue_order", 0), texts);
    }
}
