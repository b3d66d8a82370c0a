//! The columns of an Arrow message as they lie in its body, checked.

use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::ipc::{Buffer, FieldNode, RecordBatch};
use arrow::util::bit_chunk_iterator::UnalignedBitChunk;

use super::{ALIGNMENT, MAX_BATCH_BYTES};

/// The elements of a column.
pub(super) struct Column<'a> {
    pub(super) rows: usize,
    /// A bit an element, 0: null. None if no element is null.
    pub(super) validity: Option<&'a [u8]>,
    pub(super) values: Values<'a>,
}

/// Of elements that are null there are some values too.
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

/// Where each text or list begins, and where the last one ends. They do not decrease, and none is negative.
pub(super) struct Offsets<'a>(&'a [[u8; OFFSET_BYTES]]);

const OFFSET_BYTES: usize = 4;

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

/// Rows and columns of a batch that arrays can be made of: every buffer lies inside the body, begins aligned, holds whole
/// elements and enough of them; there are as many nulls as it says, none where none may be; texts and lists begin where
/// the one before ends, and texts are UTF-8. Arrow's reader panics at some of what this refuses, and making arrays costs
/// several times as much for the few rows of most hand-ins.
pub(super) fn of<'a, 'f>(
    batch: &RecordBatch<'_>,
    body: &'a [u8],
    fields: impl IntoIterator<Item = &'f FieldRef>,
) -> Option<(usize, Vec<Column<'a>>)> {
    let rows = usize::try_from(batch.length()).ok()?;
    let mut check = Check { nodes: batch.nodes()?.iter(), buffers: batch.buffers()?.iter(), body };
    let column = |field: &FieldRef| check.column(field).filter(|column| column.rows == rows);
    let columns = fields.into_iter().map(column).collect::<Option<Vec<_>>>()?;
    (check.nodes.next().is_none() && check.buffers.next().is_none()).then_some((rows, columns))
}

struct Check<'a, N, B> {
    nodes: N,
    buffers: B,
    body: &'a [u8],
}

impl<'a, 'm, N, B> Check<'a, N, B>
where
    N: Iterator<Item = &'m FieldNode>,
    B: Iterator<Item = &'m Buffer>,
{
    fn column(&mut self, field: &Field) -> Option<Column<'a>> {
        let node = self.nodes.next()?;
        let (rows, nulls) = (usize::try_from(node.length()).ok()?, usize::try_from(node.null_count()).ok()?);
        if rows as u64 > MAX_BATCH_BYTES || nulls > rows || (nulls > 0 && !field.is_nullable()) {
            return None;
        }
        let validity = Some(self.buffer(1, 0)?).filter(|_| nulls > 0);
        if let Some(bits) = validity
            && (bits.len() < rows.div_ceil(8) || UnalignedBitChunk::new(bits, 0, rows).count_ones() != rows - nulls)
        {
            return None;
        }
        let values = match field.data_type() {
            DataType::Boolean => Values::Bits(self.buffer(1, rows.div_ceil(8))?),
            DataType::Utf8 => {
                let offsets = self.offsets(rows)?;
                let data = self.buffer(1, 0)?.get(..offsets.end())?;
                let text = std::str::from_utf8(data).ok()?;
                if !(0..=rows).all(|element| text.is_char_boundary(offsets.at(element))) {
                    return None;
                }
                Values::Texts { offsets, data }
            }
            DataType::List(item) => {
                let offsets = self.offsets(rows)?;
                let items = self.column(item)?;
                if items.rows < offsets.end() {
                    return None;
                }
                Values::Lists { offsets, items: Box::new(items) }
            }
            _ => Values::Numbers(self.buffer(8, rows * 8)?),
        };
        Some(Column { rows, validity, values })
    }

    /// Those of so many elements.
    fn offsets(&mut self, elements: usize) -> Option<Offsets<'a>> {
        let (offsets, _) = self.buffer(OFFSET_BYTES, 0)?.as_chunks();
        // Arrow writes none for no element.
        let offsets = if elements == 0 && offsets.is_empty() { &[[0; OFFSET_BYTES]] } else { offsets };
        Offsets::checked(offsets.get(..elements + 1)?)
    }

    /// The next buffer, of elements of so many bytes and at least so long.
    fn buffer(&mut self, width: usize, least: usize) -> Option<&'a [u8]> {
        let buffer = self.buffers.next()?;
        let (offset, length) = (usize::try_from(buffer.offset()).ok()?, usize::try_from(buffer.length()).ok()?);
        let whole = offset.is_multiple_of(ALIGNMENT) && length.is_multiple_of(width);
        self.body.get(offset..offset.checked_add(length)?).filter(|_| whole && length >= least)
    }
}
