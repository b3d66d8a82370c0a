//! Gathers rows of many encoded batches into one batch.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayData, BooleanBufferBuilder, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::util::bit_util::get_bit;

use super::columns::{Column, FoldedColumn, Offsets, Values};
use super::{Columns, Frame, MAX_BATCH_BYTES};
use crate::ResultsError;
use crate::folded::{Folded, FoldedBatch};

/// Rows of a full batch. A part's writer takes as long for a batch of few rows.
const FULL_ROWS: usize = 1024;

/// Collects rows of encoded batches of one schema into one batch.
///
/// Most hand-ins have few rows: their values are appended to common columns, without arrays for each hand-in. A column
/// of equal rows stays one row.
#[derive(Debug)]
pub struct Gather {
    schema: SchemaRef,
    columns: Vec<Growing>,
    rows: usize,
    bytes: u64,
}

impl Gather {
    /// A gatherer without rows.
    pub fn new(schema: &SchemaRef) -> Gather {
        Gather { schema: Arc::clone(schema), columns: growing(schema), rows: 0, bytes: 0 }
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the caller should [`finish`](Gather::finish).
    pub fn is_full(&self) -> bool {
        self.rows >= FULL_ROWS || self.bytes >= MAX_BATCH_BYTES
    }

    /// Appends the rows of an encoded batch, except those at these positions, which increase.
    ///
    /// Every error is final: the bytes are damaged or come from a build with other columns, or a position has no row.
    /// After an error nothing is appended.
    pub fn push(&mut self, bytes: &[u8], left_out: impl IntoIterator<Item = u32>) -> Result<(), ResultsError> {
        if self.bytes >= MAX_BATCH_BYTES {
            // This keeps offsets below 2^31.
            return Err(ResultsError::TooLarge { bytes: self.bytes, limit: MAX_BATCH_BYTES });
        }
        let frame = Frame::read(bytes, &self.schema)?;
        let Columns { rows, columns, bytes } = frame.columns(&self.schema)?;
        let mut kept = Vec::new();
        let mut next = 0;
        for position in left_out {
            let position = position as usize;
            if position >= rows {
                return Err(ResultsError::Mask { position, rows });
            }
            kept.push(next..position);
            next = position + 1;
        }
        kept.push(next..rows);
        let kept_rows = kept.iter().map(Range::len).sum();
        for (own, FoldedColumn { column, is_equal, .. }) in self.columns.iter_mut().zip(&columns) {
            match (is_equal, &kept[..]) {
                (true, _) => own.append_equal(column, 0, kept_rows),
                (false, [range]) if range.len() == 1 => own.append_equal(column, range.start, 1),
                (false, ranges) => {
                    own.unfold();
                    ranges.iter().for_each(|range| own.append(column, range.clone()));
                }
            }
        }
        self.rows += kept_rows;
        self.bytes += bytes;
        Ok(())
    }

    /// The rows so far; the gatherer is empty afterwards.
    pub fn finish(&mut self) -> Result<FoldedBatch, ResultsError> {
        let columns = std::mem::replace(&mut self.columns, growing(&self.schema));
        let columns = columns.into_iter().map(Growing::finish).collect::<Result<_, _>>()?;
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        Ok(FoldedBatch::new(Arc::clone(&self.schema), rows, columns))
    }
}

fn growing(schema: &SchemaRef) -> Vec<Growing> {
    schema.fields().iter().map(|field| Growing::new(field.data_type())).collect()
}

/// A column to which elements are appended.
#[derive(Debug)]
struct Growing {
    ty: DataType,
    /// The column stores one element, which stands for this number of equal ones.
    equal: Option<usize>,
    /// A bit an element, 0: null.
    validity: BooleanBufferBuilder,
    values: Grown,
}

/// The growing values of a column, with a variant for each of [`Values`].
#[derive(Debug)]
enum Grown {
    Bits(BooleanBufferBuilder),
    Numbers(MutableBuffer),
    Texts { offsets: Vec<i32>, data: MutableBuffer },
    Lists { offsets: Vec<i32>, items: Box<Growing> },
}

impl Growing {
    fn new(ty: &DataType) -> Growing {
        let values = match ty {
            DataType::Boolean => Grown::Bits(BooleanBufferBuilder::new(0)),
            DataType::Utf8 => Grown::Texts { offsets: vec![0], data: MutableBuffer::new(0) },
            DataType::List(item) => Grown::Lists { offsets: vec![0], items: Box::new(Growing::new(item.data_type())) },
            _ => Grown::Numbers(MutableBuffer::new(0)),
        };
        Growing { ty: ty.clone(), equal: None, validity: BooleanBufferBuilder::new(0), values }
    }

    fn append(&mut self, column: &Column<'_>, range: Range<usize>) {
        match column.validity {
            Some(bits) => self.validity.append_packed_range(range.clone(), bits),
            None => self.validity.append_n(range.len(), true),
        }
        match (&mut self.values, &column.values) {
            (Grown::Bits(own), Values::Bits(bits)) => own.append_packed_range(range, bits),
            (Grown::Numbers(own), Values::Numbers(bytes)) => {
                own.extend_from_slice(&bytes[range.start * 8..range.end * 8]);
            }
            (Grown::Texts { offsets, data }, Values::Texts { offsets: from, data: bytes }) => {
                data.extend_from_slice(&bytes[from.at(range.start)..from.at(range.end)]);
                append_offsets(offsets, from, range);
            }
            (Grown::Lists { offsets, items }, Values::Lists { offsets: from, items: column }) => {
                items.append(column, from.at(range.start)..from.at(range.end));
                append_offsets(offsets, from, range);
            }
            _ => unreachable!("both are of one schema"),
        }
    }

    /// Appends one element of a column `times` times.
    fn append_equal(&mut self, column: &Column<'_>, at: usize, times: usize) {
        if times == 0 {
            return;
        }
        match self.equal {
            None if self.validity.is_empty() => {
                self.append(column, at..at + 1);
                self.equal = Some(times);
            }
            Some(_) if !self.equals(0, column, at) => {
                self.unfold();
                self.repeat(column, at, times);
            }
            Some(equal) => self.equal = Some(equal + times),
            None => self.repeat(column, at, times),
        }
    }

    /// Whether an element equals one of a column, bit by bit.
    fn equals(&self, own_at: usize, column: &Column<'_>, at: usize) -> bool {
        let valid = column.validity.is_none_or(|bits| get_bit(bits, at));
        if !valid || !self.validity.get_bit(own_at) {
            return valid == self.validity.get_bit(own_at);
        }
        let within = |offsets: &[i32]| offsets[own_at] as usize..offsets[own_at + 1] as usize;
        match (&self.values, &column.values) {
            (Grown::Bits(own), Values::Bits(bits)) => own.get_bit(own_at) == get_bit(bits, at),
            (Grown::Numbers(own), Values::Numbers(bytes)) => own[own_at * 8..][..8] == bytes[at * 8..][..8],
            (Grown::Texts { offsets, data }, Values::Texts { offsets: from, data: bytes }) => {
                data[within(offsets)] == bytes[from.at(at)..from.at(at + 1)]
            }
            (Grown::Lists { offsets, items }, Values::Lists { offsets: from, items: column }) => {
                let (own, others) = (within(offsets), from.at(at)..from.at(at + 1));
                own.len() == others.len() && own.zip(others).all(|(own, other)| items.equals(own, column, other))
            }
            _ => unreachable!("both are of one schema"),
        }
    }

    /// Stores every element.
    fn unfold(&mut self) {
        if let Some(equal) = self.equal.take() {
            self.repeat_all(equal - 1);
        }
    }

    /// Appends all elements `times` more times.
    fn repeat_all(&mut self, times: usize) {
        repeat_bits(&mut self.validity, times);
        match &mut self.values {
            Grown::Bits(own) => repeat_bits(own, times),
            Grown::Numbers(own) => repeat_bytes(own, times),
            Grown::Texts { offsets, data } => {
                repeat_bytes(data, times);
                repeat_offsets(offsets, times);
            }
            Grown::Lists { offsets, items } => {
                items.repeat_all(times);
                repeat_offsets(offsets, times);
            }
        }
    }

    /// Appends an element this number of times, and stores each of them.
    fn repeat(&mut self, column: &Column<'_>, at: usize, times: usize) {
        match (&mut self.values, &column.values) {
            _ if column.validity.is_some_and(|bits| !get_bit(bits, at)) => return self.append_nulls(times),
            (Grown::Bits(own), Values::Bits(bits)) => own.append_n(times, get_bit(bits, at)),
            (Grown::Numbers(own), Values::Numbers(bytes)) => own.repeat_slice_n_times(&bytes[at * 8..][..8], times),
            _ => return (0..times).for_each(|_| self.append(column, at..at + 1)),
        }
        self.validity.append_n(times, true);
    }

    fn append_nulls(&mut self, nulls: usize) {
        self.validity.append_n(nulls, false);
        match &mut self.values {
            Grown::Bits(own) => own.append_n(nulls, false),
            Grown::Numbers(own) => own.extend_zeros(nulls * 8),
            Grown::Texts { offsets, .. } | Grown::Lists { offsets, .. } => {
                offsets.resize(offsets.len() + nulls, offsets[offsets.len() - 1]);
            }
        }
    }

    fn finish(self) -> Result<Folded, ResultsError> {
        let equal = self.equal.is_some();
        let array = make_array(self.data()?);
        Ok(if equal { Folded::Equal(array) } else { Folded::of(&array) })
    }

    fn data(mut self) -> Result<ArrayData, ResultsError> {
        let validity = NullBuffer::new(self.validity.finish());
        let builder = ArrayData::builder(self.ty).len(validity.len());
        let builder = match self.values {
            Grown::Bits(mut bits) => builder.add_buffer(BooleanBuffer::into_inner(bits.finish())),
            Grown::Numbers(numbers) => builder.add_buffer(numbers.into()),
            Grown::Texts { offsets, data } => builder.add_buffer(Buffer::from_vec(offsets)).add_buffer(data.into()),
            Grown::Lists { offsets, items } => {
                builder.add_buffer(Buffer::from_vec(offsets)).add_child_data(items.data()?)
            }
        };
        Ok(builder.nulls(Some(validity).filter(|validity| validity.null_count() > 0)).build()?)
    }
}

/// Appends the ends of a range of elements, moved to the end of the last element.
fn append_offsets(own: &mut Vec<i32>, from: &Offsets<'_>, range: Range<usize>) {
    let (end, begin) = (own[own.len() - 1], from.at(range.start));
    let moved = |element| end + i32::try_from(from.at(element) - begin).expect("`push` limits the bytes");
    own.extend((range.start + 1..=range.end).map(moved));
}

fn repeat_bits(bits: &mut BooleanBufferBuilder, times: usize) {
    if bits.len() == 1 {
        return bits.append_n(times, bits.get_bit(0));
    }
    let (all, length) = (bits.as_slice().to_vec(), bits.len());
    (0..times).for_each(|_| bits.append_packed_range(0..length, &all));
}

fn repeat_bytes(bytes: &mut MutableBuffer, times: usize) {
    let all = bytes.to_vec();
    bytes.repeat_slice_n_times(&all, times);
}

fn repeat_offsets(offsets: &mut Vec<i32>, times: usize) {
    let (elements, end) = (offsets.len() - 1, offsets[offsets.len() - 1]);
    for _ in 0..times {
        // The same lengths again, after the last element.
        let begin = offsets.len() - elements;
        offsets.extend_from_within(begin..);
        let added = offsets.len() - elements;
        offsets[added..].iter_mut().for_each(|offset| *offset += end);
    }
}
