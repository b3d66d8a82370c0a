//! Bounds of cells and rows: one row must not keep the rows of others from being published or read.
//!
//! A worker keeps the rows of a sound task below them: a long text is cut when its row is built. The coordinator refuses
//! what is above them, because it came from a worker that breaks the rules.

use std::borrow::Cow;

/// Longest text of a cell (bytes). A formula has at most 8 KiB, names are shorter.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
/// Longest list of a cell (bytes, eight for each value). A parameter has at most 100,000 values.
pub const LIST_BYTES_MAX: u64 = 1 << 20;
/// Largest row (bytes). A manifest has at most 1 MiB, so that the lists of a task's parameters have at most 4 MiB.
pub const ROW_BYTES_MAX: u64 = 8 << 20;

/// The text, or its first bytes with a mark if it has more than `bytes_max`, which must be more than the mark has.
pub fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let mark = format!(" [... cut, {} bytes in all]", text.len());
    let kept = text.floor_char_boundary(bytes_max.saturating_sub(mark.len()));
    Cow::Owned([&text[..kept], &mark].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_with_a_mark_between_characters() {
        assert_eq!(cut("short", 5), "short");
        let text = "é".repeat(100);
        let found = cut(&text, 64);
        assert!(found.len() <= 64 && found.starts_with("éé"), "{found}");
        assert!(found.ends_with("é [... cut, 200 bytes in all]"), "{found}");
    }
}
