//! How many claims hold.

use std::fmt;

use serde::Serialize;

use crate::evaluate::{ClaimKind, Finding, Verdict};

/// Claims of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All of them; each repetition counts.
    pub claims: u64,
    /// Those that hold.
    pub hold: u64,
}

/// How many claims hold, of each kind. The text names the kinds that occur.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Demanded claims that a paper states.
    pub published: Tally,
    /// Guards: demanded claims whose number no paper prints.
    pub guards: Tally,
    /// Claims that are not demanded and compare our value with something.
    pub reported: Tally,
    /// Claims that are not demanded and show a published number beside ours, without a comparison.
    pub shown: u64,
}

impl Counts {
    /// The counts of these claims.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Counts {
        let mut counts = Counts::default();
        for finding in findings {
            let tally = match (finding.demanded, finding.kind) {
                (true, ClaimKind::Published) => &mut counts.published,
                (true, ClaimKind::Guard) => &mut counts.guards,
                (false, _) if finding.verdict == Verdict::Shown => {
                    counts.shown += 1;
                    continue;
                }
                (false, _) => &mut counts.reported,
            };
            tally.claims += 1;
            tally.hold += u64::from(finding.verdict == Verdict::Holds);
        }
        counts
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |claims: u64| if claims == 1 { "" } else { "s" };
        let holding = |of: Tally, noun: &str, what: &str| {
            let Tally { claims, hold } = of;
            let verb = if hold == 1 { "holds" } else { "hold" };
            (claims > 0).then(|| format!("{hold} of {claims} {noun}{}{what} {verb}", plural(claims)))
        };
        let Tally { claims, hold } = self.reported;
        let reported =
            (claims > 0).then(|| format!("only reported: {hold} of {claims} hold, {} differ", claims - hold));
        let shown = (self.shown > 0).then(|| format!("{} published number{} shown", self.shown, plural(self.shown)));
        let published = holding(self.published, "demanded claim", " of the paper");
        let parts = [published, holding(self.guards, "guard", ""), reported, shown];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "no claims" } else { "" })?;
        f.write_str(&parts.join("; "))
    }
}
