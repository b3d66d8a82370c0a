//! The bytes of a column, and checked columns in bytes.
//!
//! The first byte says which elements follow (`WHOLE` and the constants after it). If some are null, one bit an element
//! follows, 0 for null. Then come the values: one bit an element; or 64 bits an element; or the begin of each element and
//! the end of the last one (u32), then the texts' bytes or the column of the lists' items.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;

use crate::ResultsError;
use crate::folded::is_constant;

#[cfg(target_endian = "big")]
compile_error!("numbers are sent in the byte order of the memory, which must be little endian");

/// All elements follow, none is null.
const WHOLE: u8 = 0;
/// All elements follow, some are null.
const WITH_NULLS: u8 = 1;
/// One element follows, which is not null; all rows equal it.
const EQUAL: u8 = 2;
/// No element follows: all rows are null.
const NULL: u8 = 3;

/// A column in which one element may stand for all.
pub(super) struct FoldedColumn<'a> {
    pub(super) column: Column<'a>,
    pub(super) is_equal: bool,
    /// Upper bound of the memory of the rows that one element, or none, stands for; else 0.
    pub(super) repeated_bytes: u64,
}

/// The elements of a column.
pub(super) struct Column<'a> {
    /// A bit an element, 0: null. None if no element is null.
    pub(super) validity: Option<&'a [u8]>,
    pub(super) values: Values<'a>,
}

/// Null elements have values, too, which mean nothing.
pub(super) enum Values<'a> {
    /// A bit an element.
    Bits(&'a [u8]),
    /// 64 bits an element: every column type but those of the other variants.
    Numbers(&'a [u8]),
    Texts {
        offsets: Offsets<'a>,
        data: &'a [u8],
    },
    Lists {
        offsets: Offsets<'a>,
        items: Box<Column<'a>>,
    },
}

/// The begin of each text or list, and the end of the last one. Offsets do not decrease, and none is negative.
pub(super) struct Offsets<'a>(&'a [[u8; OFFSET_BYTES]]);

const OFFSET_BYTES: usize = 4;
const NUMBER_BYTES: usize = 8;

impl Column<'static> {
    /// One null.
    pub(super) fn null(ty: &DataType) -> Column<'static> {
        Column { validity: Some(&[0]), values: Values::zeros(ty) }
    }
}

impl Values<'static> {
    /// One zero, empty text or empty list.
    fn zeros(ty: &DataType) -> Values<'static> {
        let offsets = Offsets(&[[0; OFFSET_BYTES]; 2]);
        match ty {
            DataType::Boolean => Values::Bits(&[0]),
            DataType::Utf8 => Values::Texts { offsets, data: &[] },
            DataType::List(item) => {
                let items = Column { validity: None, values: Values::zeros(item.data_type()) };
                Values::Lists { offsets, items: Box::new(items) }
            }
            _ => Values::Numbers(&[0; NUMBER_BYTES]),
        }
    }
}

impl<'a> Offsets<'a> {
    fn checked(bytes: &'a [[u8; OFFSET_BYTES]]) -> Option<Offsets<'a>> {
        let all = bytes.iter().map(|&offset| i32::from_le_bytes(offset));
        (bytes.first().is_some_and(|&first| i32::from_le_bytes(first) >= 0) && all.is_sorted())
            .then_some(Offsets(bytes))
    }

    pub(super) fn at(&self, element: usize) -> usize {
        usize::try_from(i32::from_le_bytes(self.0[element])).expect("checked")
    }

    fn end(&self) -> usize {
        self.at(self.0.len() - 1)
    }
}

/// Appends a column, as one element if all rows are equal; returns [`FoldedColumn::repeated_bytes`].
///
/// Fails as [`write`] does.
pub(super) fn write_folded(column: &ArrayRef, out: &mut Vec<u8>) -> Result<u64, ResultsError> {
    let rows = column.len();
    if !is_constant(column) {
        write(column, out)?;
        return Ok(0);
    }
    if column.null_count() == rows {
        out.push(NULL);
        return Ok(repeated(rows, NUMBER_BYTES));
    }
    out.push(EQUAL);
    let before = out.len();
    write_values(&column.slice(0, 1), out)?;
    Ok(repeated(rows, out.len() - before))
}

fn repeated(rows: usize, bytes: usize) -> u64 {
    (rows as u64).saturating_mul(bytes as u64)
}

/// Appends a column with all elements.
///
/// Fails if no table has columns of this type.
pub(super) fn write(column: &dyn Array, out: &mut Vec<u8>) -> Result<(), ResultsError> {
    match column.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => out.push(WHOLE),
        Some(nulls) => {
            out.push(WITH_NULLS);
            write_bits(nulls.inner(), out);
        }
    }
    write_values(column, out)
}

fn write_values(column: &dyn Array, out: &mut Vec<u8>) -> Result<(), ResultsError> {
    match column.data_type() {
        DataType::Boolean => write_bits(column.as_boolean().values(), out),
        DataType::Int64 => out.extend_from_slice(column.as_primitive::<Int64Type>().values().inner()),
        DataType::Float64 => out.extend_from_slice(column.as_primitive::<Float64Type>().values().inner()),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            out.extend_from_slice(column.as_primitive::<TimestampMicrosecondType>().values().inner());
        }
        DataType::Utf8 => {
            let texts = column.as_string::<i32>();
            let (begin, end) = write_offsets(texts.value_offsets(), out);
            out.extend_from_slice(&texts.value_data()[begin..end]);
        }
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            let (begin, end) = write_offsets(lists.value_offsets(), out);
            write(&lists.values().slice(begin, end - begin), out)?;
        }
        other => return Err(ArrowError::SchemaError(format!("no table has columns of type {other}")).into()),
    }
    Ok(())
}

fn write_bits(bits: &BooleanBuffer, out: &mut Vec<u8>) {
    out.extend_from_slice(&bits.sliced()[..bits.len().div_ceil(8)]);
}

/// Appends the offsets minus the first one; returns the first and the last one.
fn write_offsets(offsets: &[i32], out: &mut Vec<u8>) -> (usize, usize) {
    let (begin, end) = (offsets[0], offsets[offsets.len() - 1]);
    out.extend(offsets.iter().flat_map(|offset| (offset - begin).to_le_bytes()));
    (begin as usize, end as usize)
}

/// Reads columns from bytes. `None` means that the bytes are damaged.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next number (u32).
    pub(super) fn number(&mut self) -> Option<usize> {
        let number = u32::from_le_bytes(self.take(4)?.try_into().expect("4 bytes"));
        usize::try_from(number).ok()
    }

    /// The next column, of this field and this number of rows, if arrays can be made of it: no null in a required column,
    /// offsets that do not decrease, texts in UTF-8.
    pub(super) fn folded(&mut self, field: &Field, rows: usize) -> Option<FoldedColumn<'a>> {
        match self.byte()? {
            NULL if field.is_nullable() => {
                let column = Column::null(field.data_type());
                Some(FoldedColumn { column, is_equal: true, repeated_bytes: repeated(rows, NUMBER_BYTES) })
            }
            EQUAL => {
                let before = self.bytes.len();
                let column = Column { validity: None, values: self.values(field, 1)? };
                let repeated_bytes = repeated(rows, before - self.bytes.len());
                Some(FoldedColumn { column, is_equal: true, repeated_bytes })
            }
            kind => {
                let column = self.column(kind, field, rows)?;
                Some(FoldedColumn { column, is_equal: false, repeated_bytes: 0 })
            }
        }
    }

    /// A column with this number of elements, after its first byte.
    fn column(&mut self, kind: u8, field: &Field, elements: usize) -> Option<Column<'a>> {
        let validity = match kind {
            WHOLE => None,
            WITH_NULLS if field.is_nullable() => Some(self.take(elements.div_ceil(8))?),
            _ => return None,
        };
        Some(Column { validity, values: self.values(field, elements)? })
    }

    fn values(&mut self, field: &Field, elements: usize) -> Option<Values<'a>> {
        Some(match field.data_type() {
            DataType::Boolean => Values::Bits(self.take(elements.div_ceil(8))?),
            DataType::Utf8 => {
                let offsets = self.offsets(elements)?;
                let data = self.take(offsets.end())?;
                let text = std::str::from_utf8(data).ok()?;
                if !(0..=elements).all(|element| text.is_char_boundary(offsets.at(element))) {
                    return None;
                }
                Values::Texts { offsets, data }
            }
            DataType::List(item) => {
                let offsets = self.offsets(elements)?;
                let kind = self.byte()?;
                let items = Box::new(self.column(kind, item, offsets.end())?);
                Values::Lists { offsets, items }
            }
            _ => Values::Numbers(self.take(elements.checked_mul(NUMBER_BYTES)?)?),
        })
    }

    /// The offsets of this number of elements.
    fn offsets(&mut self, elements: usize) -> Option<Offsets<'a>> {
        let offsets = self.take(elements.checked_add(1)?.checked_mul(OFFSET_BYTES)?)?;
        Offsets::checked(offsets.as_chunks().0)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes.split_off_first().copied()
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        self.bytes.split_off(..bytes)
    }
}
