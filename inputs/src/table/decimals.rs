//! The decimal separator of a text whose columns are not separated by commas: a comma or a point, of all its numbers.

use std::cell::{Cell, RefCell};

use crate::error::{Place, Problem, shortened};

/// The separators that the numbers of a text had so far.
#[derive(Debug, Default)]
pub(super) struct Decimals {
    /// The first number with a point, and the first one with a comma, in their order.
    seen: RefCell<Vec<(Place, String)>>,
    /// Whether a number had a separator that cannot be one of thousands.
    is_known: Cell<bool>,
}

impl Decimals {
    /// Notes a number with one separator, which is between these two parts.
    pub(super) fn note(&self, place: Place, text: &str, (whole, fraction): (&str, &str)) {
        let mut seen = self.seen.borrow_mut();
        if seen.iter().all(|(_, other)| other.contains('.') != text.contains('.')) {
            seen.push((place, shortened(text)));
        }
        let whole = whole.trim_start_matches(['-', '+']);
        let may_be_thousands = fraction.len() == 3 && (1..=3).contains(&whole.len()) && !whole.starts_with('0');
        self.is_known.set(self.is_known.get() || !may_be_thousands);
    }

    /// Refuses numbers with different separators, and numbers that can all be whole ones with separators of thousands.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let (place, reason) = match &self.seen.borrow()[..] {
            [(first, text), (place, other)] => {
                let reason = format!("{other:?} has another separator than {text:?} ({first})");
                (*place, reason)
            }
            [(place, text)] if !self.is_known.get() => {
                (*place, format!("{text:?} can have three decimals or a separator of thousands"))
            }
            _ => return Ok(()),
        };
        let help =
            "write numbers without separators of thousands, or separate the columns by commas: then a point is decimal";
        Err(Problem::At { place, reason: format!("{reason}: {help}") })
    }
}
