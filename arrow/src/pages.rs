//! Sizes that the pages of a Parquet file state. The decoder allocates what they state before it has read as much, so that a
//! damaged file of a kilobyte could take gigabytes.
//!
//! A page begins with a struct `PageHeader` in Thrift's compact protocol; both are described at
//! <https://parquet.apache.org/docs/file-format/> and
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

/// Fields of `PageHeader`, and of its `DictionaryPageHeader`.
const UNCOMPRESSED_SIZE: i16 = 2;
const COMPRESSED_SIZE: i16 = 3;
const DATA: i16 = 5;
const DICTIONARY: i16 = 7;
const DATA_OF_VERSION_2: i16 = 8;
/// The first field of `DataPageHeader`, `DictionaryPageHeader` and `DataPageHeaderV2`.
const VALUES: i16 = 1;

/// Least bytes of a value in a dictionary, but for one of a fixed length that its column states.
pub const VALUE_BYTES_MIN: u64 = 4;

/// Maximum number of structs and lists inside each other.
const DEPTH_MAX: u32 = 8;

/// Bytes of the pages of a column, decompressed, as their headers state them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stated {
    /// Of all pages.
    pub sum: u64,
    /// Of the largest page: the decoder has one page of a column in memory.
    pub largest: u64,
    /// Values in all pages of data, with nulls. A value may take far fewer bytes in its page than in memory.
    pub values: u64,
}

/// The stated sizes of the pages of a column whose values take at least `value_bytes` in a dictionary; `None` if a header is not
/// one, or states more values than fit in its page.
pub fn stated(mut pages: &[u8], value_bytes: u64) -> Option<Stated> {
    let mut all = Stated::default();
    while !pages.is_empty() {
        let mut header = Compact(pages);
        let fields = header.fields(0)?;
        let number = |id: i16| match fields.iter().find(|(field, _)| *field == id)?.1 {
            Field::Number(number) => u64::try_from(number).ok(),
            Field::Struct(_) | Field::Other => None,
        };
        let (uncompressed, compressed) = (number(UNCOMPRESSED_SIZE)?, number(COMPRESSED_SIZE)?);
        if values(&fields, DICTIONARY)?.checked_mul(value_bytes)? > uncompressed {
            return None;
        }
        all.values =
            all.values.checked_add(values(&fields, DATA)?)?.checked_add(values(&fields, DATA_OF_VERSION_2)?)?;
        all.sum = all.sum.checked_add(uncompressed)?;
        all.largest = all.largest.max(uncompressed);
        pages = header.0.get(usize::try_from(compressed).ok()?..)?;
    }
    Some(all)
}

/// Values of a page of this kind, 0 if it is of another; `None` if their number is not one.
fn values(fields: &[(i16, Field)], kind: i16) -> Option<u64> {
    let Some((_, Field::Struct(header))) = fields.iter().find(|(field, _)| *field == kind) else {
        return Some(0);
    };
    match header.iter().find(|(field, _)| *field == VALUES)? {
        (_, Field::Number(number)) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// A value of a struct, as far as it matters here.
enum Field {
    Number(i64),
    Struct(Vec<(i16, Field)>),
    Other,
}

/// What is left of a text in the compact protocol.
struct Compact<'a>(&'a [u8]);

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// A number in groups of seven bits, the lowest first.
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// A number with a sign, whose last bit is the sign.
    fn zigzag(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// The fields of a struct with their ids.
    fn fields(&mut self, depth: u32) -> Option<Vec<(i16, Field)>> {
        let (mut fields, mut id) = (Vec::new(), 0_i16);
        loop {
            let byte = self.byte()?;
            let (step, kind) = (i16::from(byte >> 4), byte & 0x0f);
            match (kind, step) {
                (0, _) => return Some(fields),
                (_, 0) => id = i16::try_from(self.zigzag()?).ok()?,
                _ => id = id.checked_add(step)?,
            }
            // The kind of a field is also the value of a boolean.
            let value = if matches!(kind, 1 | 2) { Field::Other } else { self.value(kind, depth)? };
            fields.push((id, value));
        }
    }

    /// A value of a kind.
    fn value(&mut self, kind: u8, depth: u32) -> Option<Field> {
        if depth > DEPTH_MAX {
            return None;
        }
        match kind {
            // A boolean in a list, and a byte.
            1..=3 => self.skip(1)?,
            4..=6 => return self.zigzag().map(Field::Number),
            7 => self.skip(8)?,
            8 => {
                let length = self.varint()?;
                self.skip(length)?;
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                for _ in 0..count {
                    self.value(head & 0x0f, depth + 1)?;
                }
            }
            12 => return self.fields(depth + 1).map(Field::Struct),
            // Page headers have no maps.
            _ => return None,
        }
        Some(Field::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dictionary page of 5 bytes, 40 decompressed, with 4 values, and its bytes.
    const PAGE: [u8; 16] = [0x15, 4, 0x15, 80, 0x15, 10, 0x4c, 0x15, 8, 0x15, 0, 0, 0, 1, 2, 3];

    fn page(values: u8) -> Vec<u8> {
        let mut page = [&PAGE[..], &[4, 5]].concat();
        page[8] = values * 2;
        page
    }

    fn stated(pages: &[u8]) -> Option<Stated> {
        super::stated(pages, VALUE_BYTES_MIN)
    }

    #[test]
    fn sizes_of_pages_are_added() {
        let stated_bytes = |pages: &[u8]| stated(pages).map(|all| all.sum);
        assert_eq!(stated_bytes(&[]), Some(0));
        assert_eq!(stated_bytes(&page(4)), Some(40));
        assert_eq!(stated(&[page(4), page(10)].concat()), Some(Stated { sum: 80, largest: 40, values: 0 }));
        assert_eq!(stated_bytes(&page(11)), None, "11 values do not fit in 40 bytes");
        assert_eq!([2, 3].map(|bytes| super::stated(&page(20), bytes).is_some()), [true, false]);
        for length in 1..page(4).len() {
            assert_eq!(stated_bytes(&page(4)[..length]), None, "{length}");
        }
    }

    #[test]
    fn values_of_pages_of_data_are_added() {
        let of = |kind: u8| [0x15, 0, 0x15, 80, 0x15, 0, (kind - 3) << 4 | 0xc, 0x15, 200, 1, 0, 0];
        assert_eq!(stated(&of(5)).map(|all| all.values), Some(100));
        assert_eq!(stated(&[of(5), of(8)].concat()).map(|all| all.values), Some(200));
        assert_eq!(stated(&[of(5)].concat()[..7]), None);
    }

    #[test]
    fn other_fields_are_skipped() {
        // A field of a high id, a boolean, a byte, a double, a text, lists of booleans and of texts.
        let others = [0x05, 0xc8, 1, 1, 0x11, 0x13, 9, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x18, 1, 7, 0x19, 0x21, 1, 2];
        let header = [&[0x15, 0, 0x15, 6, 0x15, 2][..], &others, &[0x19, 0x18, 1, 7, 0, 99]].concat();
        assert_eq!(stated(&header).map(|all| all.sum), Some(3));
        let deep = [&[0x15, 0, 0x15, 6, 0x15, 2][..], &[0x1c; 100]].concat();
        assert_eq!(stated(&deep), None);
    }
}
