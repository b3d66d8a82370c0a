//! Typed array builders, one a column, filled by position.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayBuilder, ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, RecordBatch, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow::datatypes::SchemaRef;
use powersweep_engine::facts::{Datum, Kind};

use crate::bounds::{TEXT_BYTES_MAX, cut};
use crate::columns::{Column, Declared};

/// The growing arrays of one table.
///
/// A column may be shorter than the table: its missing rows become null when a later value is pushed, or at the end.
/// Nulls are never pushed.
pub(crate) struct Arrays {
    schema: SchemaRef,
    arrays: Vec<Array>,
    rows: usize,
    /// Approximate bytes of a row without texts and elements of lists.
    row_bytes: usize,
    /// Bytes of texts and elements of lists so far.
    more_bytes: usize,
}

struct Array {
    values: Values,
    nullable: bool,
    type_name: &'static str,
}

enum Values {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Real(Float64Builder),
    Text(StringBuilder),
    Instant(TimestampMicrosecondBuilder),
    Ints(ListBuilder<Int64Builder>),
    Reals(ListBuilder<Float64Builder>),
}

/// Evaluates one expression with the builder, whatever its type.
macro_rules! each {
    ($values:expr, $builder:ident => $expression:expr) => {
        match $values {
            Values::Bool($builder) => $expression,
            Values::Int($builder) => $expression,
            Values::Real($builder) => $expression,
            Values::Text($builder) => $expression,
            Values::Instant($builder) => $expression,
            Values::Ints($builder) => $expression,
            Values::Reals($builder) => $expression,
        }
    };
}

impl Arrays {
    pub(crate) fn new(schema: SchemaRef, columns: &[Column]) -> Arrays {
        let array = |c: &Column| Array { values: Values::new(c.ty), nullable: c.nullable, type_name: c.type_name() };
        let arrays = columns.iter().map(array).collect();
        let row_bytes = columns.iter().map(|c| row_bytes(c.ty)).sum();
        Arrays { schema, arrays, rows: 0, row_bytes, more_bytes: 0 }
    }

    /// Finished rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Sets rows of the column at `position` to one value. The column must have no value for them or for later
    /// rows.
    pub(crate) fn push(&mut self, position: usize, datum: Datum<'_>, rows: &Range<usize>) {
        let array = &mut self.arrays[position];
        if array.is_null(&datum) {
            return;
        }
        self.more_bytes += rows.len() * more_bytes(&datum);
        array.fill_nulls(rows.start);
        debug_assert_eq!(array.values.len(), rows.start, "rows are set in order");
        array.push(datum, rows.len());
    }

    /// Pushes every declared value of each record into the columns from `position` on, a row a record; returns the
    /// position of the next column.
    pub(crate) fn push_records<R>(&mut self, position: usize, declared: &[Declared<R>], records: &[R]) -> usize {
        for (i, d) in declared.iter().enumerate() {
            for (row, record) in (self.rows..).zip(records) {
                self.push(position + i, (d.get)(record), &(row..row + 1));
            }
        }
        position + declared.len()
    }

    /// Ends `n` rows: columns without a pushed value for them get nulls.
    pub(crate) fn end_rows(&mut self, n: usize) {
        self.rows += n;
    }

    /// Approximate bytes of the rows so far.
    pub(crate) fn bytes(&self) -> usize {
        self.rows * self.row_bytes + self.more_bytes
    }

    /// The rows as a batch; the builder is empty afterwards.
    pub(crate) fn finish(&mut self) -> RecordBatch {
        let rows = std::mem::take(&mut self.rows);
        self.more_bytes = 0;
        let finish = |array: &mut Array| {
            array.fill_nulls(rows);
            array.values.finish()
        };
        let arrays = self.arrays.iter_mut().map(finish).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .expect("schema and builders come from the same columns, and rows end in all of them")
    }
}

/// Approximate bytes of one value, without the contents of a text or a list.
fn row_bytes(ty: Kind) -> usize {
    match ty {
        Kind::Bool => 1,
        Kind::Int | Kind::Real | Kind::Instant => 8,
        Kind::Text | Kind::Ints | Kind::Reals => 4,
    }
}

/// Bytes of the contents of a text or a list.
fn more_bytes(datum: &Datum<'_>) -> usize {
    match datum {
        Datum::Text(text) => text.len().min(TEXT_BYTES_MAX),
        Datum::Counts(values) => 8 * values.len(),
        Datum::Reals(values) => 8 * values.len(),
        Datum::Null | Datum::Bool(_) | Datum::Int(_) | Datum::Real(_) => 0,
    }
}

impl Array {
    /// Appends nulls up to this number of rows.
    fn fill_nulls(&mut self, rows: usize) {
        let missing = rows.saturating_sub(self.values.len());
        if missing > 0 {
            self.values.push_nulls(missing);
        }
    }

    /// Whether a value is stored as null: NaN is in a column that may have nulls.
    fn is_null(&self, datum: &Datum<'_>) -> bool {
        match datum {
            Datum::Null => true,
            Datum::Real(v) => self.nullable && v.is_nan(),
            _ => false,
        }
    }

    fn push(&mut self, datum: Datum<'_>, n: usize) {
        match (&mut self.values, datum) {
            (Values::Real(b), Datum::Real(v)) => b.append_value_n(v, n),
            (Values::Real(b), Datum::Int(v)) => b.append_value_n(v as f64, n),
            (Values::Int(b), Datum::Int(v)) => b.append_value_n(v, n),
            (Values::Text(b), Datum::Text(v)) => {
                let text = cut(v, TEXT_BYTES_MAX);
                (0..n).for_each(|_| b.append_value(&text));
            }
            (Values::Bool(b), Datum::Bool(v)) => b.append_n(n, v),
            (Values::Instant(b), Datum::Int(v)) => b.append_value_n(v, n),
            (Values::Ints(b), Datum::Counts(v)) => (0..n).for_each(|_| {
                v.iter().for_each(|&x| b.values().append_value(i64::try_from(x).unwrap_or(i64::MAX)));
                b.append(true);
            }),
            (Values::Reals(b), Datum::Reals(v)) => (0..n).for_each(|_| {
                v.iter().for_each(|&x| b.values().append_option((!x.is_nan()).then_some(x)));
                b.append(true);
            }),
            (_, other) => unreachable!("{other:?} pushed into a column of type {}", self.type_name),
        }
    }
}

impl Values {
    fn new(ty: Kind) -> Values {
        match ty {
            Kind::Bool => Values::Bool(BooleanBuilder::new()),
            Kind::Int => Values::Int(Int64Builder::new()),
            Kind::Real => Values::Real(Float64Builder::new()),
            Kind::Text => Values::Text(StringBuilder::new()),
            Kind::Instant => Values::Instant(TimestampMicrosecondBuilder::new().with_timezone("UTC")),
            Kind::Ints => Values::Ints(ListBuilder::new(Int64Builder::new())),
            Kind::Reals => Values::Reals(ListBuilder::new(Float64Builder::new())),
        }
    }

    fn push_nulls(&mut self, n: usize) {
        each!(self, b => b.append_nulls(n));
    }

    fn len(&self) -> usize {
        each!(self, b => b.len())
    }

    fn finish(&mut self) -> ArrayRef {
        each!(self, b => Arc::new(b.finish()))
    }
}
