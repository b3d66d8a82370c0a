//! Rows of many encoded batches, made into one.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayData, ArrayRef, BooleanBufferBuilder, RecordBatch, RecordBatchOptions, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::util::bit_util::get_bit;

use super::columns::{Column, Offsets, Values};
use super::{Columns, Frame, MAX_BATCH_BYTES};
use crate::ResultsError;

/// Rows that are worth a batch of their own: the writer of a part takes as long for a few.
const FULL_ROWS: usize = 1024;

/// Takes rows out of encoded batches of one schema and makes one batch of them.
///
/// Most hand-ins have few rows: their values go straight into common columns, without arrays of each.
#[derive(Debug)]
pub struct Gather {
    schema: SchemaRef,
    columns: Vec<Growing>,
    rows: usize,
    bytes: u64,
}

impl Gather {
    /// Without rows.
    pub fn new(schema: &SchemaRef) -> Gather {
        Gather { schema: Arc::clone(schema), columns: growing(schema), rows: 0, bytes: 0 }
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether it is time to [`finish`](Gather::finish).
    pub fn is_full(&self) -> bool {
        self.rows >= FULL_ROWS || self.bytes >= MAX_BATCH_BYTES
    }

    /// Appends the rows of an encoded batch, except those at these positions, which increase.
    ///
    /// Every error is final: the bytes are damaged or come from a build with other columns, or there is no row at one of
    /// the positions. Nothing is appended then.
    pub fn push(&mut self, bytes: &[u8], left_out: impl IntoIterator<Item = u32>) -> Result<(), ResultsError> {
        if self.bytes >= MAX_BATCH_BYTES {
            // So offsets stay below 2^31.
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
        for (own, (column, constant)) in self.columns.iter_mut().zip(&columns) {
            if *constant {
                own.repeat(column, kept_rows);
            } else {
                kept.iter().for_each(|range| own.append(column, range.clone()));
            }
        }
        self.rows += kept_rows;
        self.bytes += bytes;
        Ok(())
    }

    /// The rows so far; afterwards there are none.
    pub fn finish(&mut self) -> Result<RecordBatch, ResultsError> {
        let columns = std::mem::replace(&mut self.columns, growing(&self.schema));
        let columns = columns.into_iter().map(Growing::finish).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.bytes) = (0, 0);
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

fn growing(schema: &SchemaRef) -> Vec<Growing> {
    schema.fields().iter().map(|field| Growing::new(field.data_type())).collect()
}

/// A column to which elements are appended.
#[derive(Debug)]
struct Growing {
    ty: DataType,
    /// A bit an element, 0: null.
    validity: BooleanBufferBuilder,
    values: Grown,
}

/// Like [`Values`].
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
        Growing { ty: ty.clone(), validity: BooleanBufferBuilder::new(0), values }
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

    /// Appends the one element of a column so many times.
    fn repeat(&mut self, column: &Column<'_>, times: usize) {
        if column.validity.is_some() {
            return self.append_nulls(times);
        }
        match (&mut self.values, &column.values) {
            (Grown::Bits(own), Values::Bits(bits)) => own.append_n(times, get_bit(bits, 0)),
            (Grown::Numbers(own), Values::Numbers(bytes)) => own.repeat_slice_n_times(&bytes[..8], times),
            _ => return (0..times).for_each(|_| self.append(column, 0..1)),
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

    fn finish(self) -> Result<ArrayRef, ResultsError> {
        Ok(make_array(self.data()?))
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

/// Appends the ends of a range of elements, moved to where the last one ended.
fn append_offsets(own: &mut Vec<i32>, from: &Offsets<'_>, range: Range<usize>) {
    let (end, begin) = (own[own.len() - 1], from.at(range.start));
    let moved = |element| end + i32::try_from(from.at(element) - begin).expect("`push` limits the bytes");
    own.extend((range.start + 1..=range.end).map(moved));
}
