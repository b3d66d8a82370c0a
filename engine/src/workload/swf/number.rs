//! Reads the numbers of a record byte by byte. Most of the time of reading a log is spent here.

/// Greatest absolute value of a number: up to it every whole number is an exact `f64`.
pub(super) const LARGEST: f64 = (1u64 << 53) as f64;

/// Greatest number of digits with which a whole number is surely below [`LARGEST`].
const SAFE_DIGITS: usize = 15;

/// 10^0 to 10^15, all exact.
const POWERS_OF_TEN: [f64; SAFE_DIGITS + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Why a field cannot be used as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberProblem {
    NotANumber,
    TooLarge,
}

/// Whether a byte separates fields. The line feed does not: it ends the record.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c')
}

/// Whether a byte, or the end of the text, ends a field.
fn ends_field(byte: Option<&u8>) -> bool {
    byte.is_none_or(|b| is_blank(*b) || *b == b'\n')
}

/// Appends up to `most` digits to `value`; returns the new value and the number of digits.
#[inline]
fn digits(bytes: &[u8], mut value: i64, most: usize) -> (i64, usize) {
    let mut count = 0;
    for byte in bytes.iter().take(most) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value * 10 + i64::from(digit);
        count += 1;
    }
    (value, count)
}

/// A position in the text.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    pub(super) fn at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Moves to the next byte of this line that is not blank and returns it; `None` at the end of the line.
    #[inline]
    pub(super) fn skip_blanks(&mut self) -> Option<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !is_blank(byte) {
                return (byte != b'\n').then_some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Reads the bytes up to the line's end.
    pub(super) fn rest_of_line(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let line = &rest[..rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())];
        self.at += line.len();
        line
    }

    /// Moves past the line feed at the cursor.
    pub(super) fn next_line(&mut self) {
        debug_assert!(self.at_end() || self.bytes[self.at] == b'\n', "a line is read to its end");
        self.at += 1;
    }

    /// Reads the number at the cursor.
    #[inline]
    pub(super) fn number(&mut self) -> Result<f64, NumberProblem> {
        let rest = &self.bytes[self.at..];
        let negative = rest.first() == Some(&b'-');
        let sign = usize::from(negative);
        let (whole, count) = digits(&rest[sign..], 0, SAFE_DIGITS + 1);
        let mut end = sign + count;
        if ends_field(rest.get(end)) && (1..=SAFE_DIGITS).contains(&count) {
            self.at += end;
            return Ok((if negative { -whole } else { whole }) as f64);
        }
        if rest.get(end) == Some(&b'.') && (1..SAFE_DIGITS).contains(&count) {
            let (all, places) = digits(&rest[end + 1..], whole, SAFE_DIGITS - count + 1);
            end += 1 + places;
            if ends_field(rest.get(end)) && (1..=SAFE_DIGITS - count).contains(&places) {
                self.at += end;
                // Both are exact and the division rounds once: the nearest f64, as `parse` gives it (Clinger 1990).
                let value = all as f64 / POWERS_OF_TEN[places];
                return Ok(if negative { 0.0 - value } else { value });
            }
        }
        self.decimal()
    }

    /// Reads a number with an exponent, with many digits, or of another rare form.
    #[cold]
    fn decimal(&mut self) -> Result<f64, NumberProblem> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|b| is_blank(*b) || *b == b'\n').unwrap_or(rest.len());
        let field = &rest[..end];
        let allowed = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E');
        // The standard library would also read names such as `inf` and `nan`.
        let text = std::str::from_utf8(field).ok().filter(|_| field.iter().all(allowed));
        let value: f64 = text.and_then(|t| t.parse().ok()).ok_or(NumberProblem::NotANumber)?;
        if value.abs() > LARGEST {
            return Err(NumberProblem::TooLarge);
        }
        self.at += end;
        Ok(value + 0.0)
    }
}
