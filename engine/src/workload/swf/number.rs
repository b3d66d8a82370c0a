//! The numbers of a record, read byte by byte: this is where the time of reading a log goes.

/// Greatest size of a number: up to here every whole number is an exact `f64`.
pub(super) const LARGEST: f64 = (1u64 << 53) as f64;

/// Whole numbers with at most this many digits cannot overflow and are below [`LARGEST`].
const SAFE_DIGITS: usize = 15;

/// Why a field is not a number that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberProblem {
    NotANumber,
    TooLarge,
}

/// Whether a byte separates fields. The line feed does not: it ends the record.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c')
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

    /// Goes to the next byte of this line that is not blank and returns it; `None` at the end of the line.
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

    /// The bytes up to the line's end, which become read.
    pub(super) fn rest_of_line(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let line = &rest[..rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())];
        self.at += line.len();
        line
    }

    /// Goes behind the line feed at the cursor.
    pub(super) fn next_line(&mut self) {
        debug_assert!(self.at_end() || self.bytes[self.at] == b'\n', "a line is read to its end");
        self.at += 1;
    }

    /// Reads the number at the cursor.
    #[inline]
    pub(super) fn number(&mut self) -> Result<f64, NumberProblem> {
        let rest = &self.bytes[self.at..];
        let (negative, digits) = match rest.split_first() {
            Some((b'-', digits)) => (true, digits),
            _ => (false, rest),
        };
        let mut value = 0i64;
        let mut count = 0;
        for &byte in digits.iter().take(SAFE_DIGITS + 1) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value * 10 + i64::from(digit);
            count += 1;
        }
        let ended = digits.get(count).is_none_or(|b| is_blank(*b) || *b == b'\n');
        if ended && (1..=SAFE_DIGITS).contains(&count) {
            self.at += count + usize::from(negative);
            return Ok((if negative { -value } else { value }) as f64);
        }
        self.decimal()
    }

    /// Reads a number with a fraction, an exponent or many digits.
    #[cold]
    fn decimal(&mut self) -> Result<f64, NumberProblem> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|b| is_blank(*b) || *b == b'\n').unwrap_or(rest.len());
        let field = &rest[..end];
        let allowed = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E');
        // Names such as `inf` and `nan`, which the library would read, are no numbers here.
        let text = std::str::from_utf8(field).ok().filter(|_| field.iter().all(allowed));
        let value: f64 = text.and_then(|t| t.parse().ok()).ok_or(NumberProblem::NotANumber)?;
        if value.abs() > LARGEST {
            return Err(NumberProblem::TooLarge);
        }
        self.at += end;
        Ok(value + 0.0)
    }
}
