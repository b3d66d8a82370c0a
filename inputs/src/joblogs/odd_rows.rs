//! Rows that cannot be read.
//!
//! One odd row does not refuse a dump of a year: it is dropped by a rule. Many odd rows, or no other row, are the sign of a wrong
//! setting or of another kind of file: then the file is refused for the problem of the first one.

use crate::error::Problem;
use crate::joblogs::ledger::{Ledger, Rule};

/// Share of the rows, one in this many, up to which odd rows are dropped.
const DROPPED_IN: u64 = 10;

/// The odd rows of a file.
#[derive(Debug, Default)]
pub(super) struct OddRows {
    first: Option<Problem>,
}

impl OddRows {
    /// Drops a row that has been counted as read. A problem of the file or of a setting is returned.
    pub(super) fn drop_row(&mut self, problem: Problem, ledger: &mut Ledger) -> Result<(), Problem> {
        let Some(place) = problem.row() else { return Err(problem) };
        ledger.add(Rule::Unreadable, place.number());
        self.first.get_or_insert(problem);
        Ok(())
    }

    /// Refuses a file with too many odd rows.
    pub(super) fn finish(self, ledger: &Ledger) -> Result<(), Problem> {
        let odd = ledger.count(Rule::Unreadable).rows;
        match self.first {
            Some(problem)
                if odd > (ledger.read / DROPPED_IN).max(1) || odd + ledger.count(Rule::Banner).rows == ledger.read =>
            {
                Err(problem)
            }
            _ => Ok(()),
        }
    }
}
