//! Findings: each claim beside our value.

use std::collections::BTreeSet;

use powersweep_engine::Value;
use serde::Serialize;

use crate::claim::{Claim, Claims};
use crate::compare::Compared;
use crate::measure::Scope;
use crate::rows::{Needed, Rows};

/// The outcome of a claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verdict {
    /// The claim holds.
    Holds,
    /// The claim does not hold.
    Fails,
    /// The claim has no comparison that could fail: the published number is shown beside ours.
    Shown,
    /// Our value could not be computed.
    #[default]
    Missing,
}

/// Who states a claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimKind {
    /// A paper: its number or sentence is printed there.
    #[default]
    Published,
    /// This project. The number comes from its own reading, an exact solution or a law, and guards the simulation.
    Guard,
}

/// The mean difference of pairs of two of our values, with its 95% interval over the seeds: the other value minus ours, or, of
/// values in an order, each minus the one before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The mean.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// One repetition of a claim, beside our value.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Finding {
    /// The claim's id, with the values of the repetition in brackets.
    pub id: String,
    /// The claim as a sentence.
    #[serde(rename = "claim")]
    pub text: String,
    /// Whether a paper states the claim, or the claim guards a number of our own.
    pub kind: ClaimKind,
    /// The place in the paper; what a guard's number is taken from.
    pub source: String,
    /// The published or expected number with its tolerance, or the other side of the comparison.
    pub stated: String,
    /// Our value, or why it is missing.
    pub ours: String,
    /// The published or expected number, where there is one.
    pub stated_value: Option<f64>,
    /// Our number, where there is one.
    pub our_value: Option<f64>,
    /// The 95% interval of our number over the seeds, where it has one.
    pub interval: Option<(f64, f64)>,
    /// Our number on the other side of a comparison of two.
    pub other_value: Option<f64>,
    /// The differences of the compared numbers, where they have an interval.
    pub differences: Vec<Difference>,
    /// Whether the claim holds for a part of an interval only, or a difference may be 0.
    pub uncertain: bool,
    /// The outcome.
    #[serde(skip)]
    pub verdict: Verdict,
    /// The outcome in words. A claim that is not demanded is only reported.
    #[serde(rename = "verdict")]
    pub words: &'static str,
    /// Whether the claim holds; `None` if nothing was compared.
    pub holds: Option<bool>,
    /// Whether the claim must hold.
    pub demanded: bool,
    /// The reason why the claim is not demanded.
    #[serde(rename = "why_not_demanded")]
    pub why: Option<String>,
    /// The rows from which our value is computed: manifest, table and column.
    pub from: String,
}

impl Finding {
    /// Whether our value differs from the claim, or is missing.
    pub fn differs(&self) -> bool {
        matches!(self.verdict, Verdict::Fails | Verdict::Missing)
    }

    /// Whether the claim is demanded and does not hold.
    pub fn is_failure(&self) -> bool {
        self.demanded && self.differs()
    }

    fn decide(&mut self, verdict: Verdict) {
        self.verdict = verdict;
        self.words = match (verdict, self.demanded) {
            (Verdict::Holds, true) => "holds",
            (Verdict::Fails, true) => "FAILS",
            (Verdict::Missing, true) => "MISSING",
            (Verdict::Holds, false) => "reported, holds",
            (Verdict::Fails, false) => "reported, differs",
            (Verdict::Shown, _) => "reported",
            (Verdict::Missing, false) => "reported, missing",
        };
        self.holds = match verdict {
            Verdict::Holds => Some(true),
            Verdict::Fails => Some(false),
            Verdict::Shown | Verdict::Missing => None,
        };
    }
}

impl Claims {
    /// Id, sentence and place in the paper of each claim; of a guard, what its number is taken from.
    pub fn sentences(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.claims.iter().map(|claim| {
            let source = claim.source.as_deref().or(claim.guard.as_deref()).unwrap_or_default();
            (claim.id.as_str(), claim.text.as_str(), source)
        })
    }

    /// Whether the file has figures and tables, too.
    pub fn has_presets(&self) -> bool {
        self.has_presets
    }

    /// The columns to read, by manifest and table.
    pub fn needed(&self, demanded_only: bool) -> Needed {
        let mut needed = Needed::new();
        for claim in self.chosen(demanded_only) {
            claim.need(&self.manifests[0], &mut needed);
        }
        needed
    }

    /// The manifests whose rows are read, in the order of the file.
    pub fn manifests(&self, demanded_only: bool) -> Vec<&str> {
        let needed: BTreeSet<String> = self.needed(demanded_only).into_keys().map(|(manifest, _)| manifest).collect();
        self.manifests.iter().map(String::as_str).filter(|name| needed.contains(*name)).collect()
    }

    /// Compares every claim with the rows.
    pub fn check(&self, rows: &Rows, demanded_only: bool) -> Vec<Finding> {
        self.chosen(demanded_only).flat_map(|claim| claim.check(&self.manifests[0], rows)).collect()
    }
}

impl Claim {
    fn need(&self, manifest: &str, needed: &mut Needed) {
        for repetition in &self.repetitions {
            let outer = Scope::outermost(manifest, repetition, &self.paired);
            for comparison in self.comparisons() {
                outer.of_value(&self.value).need(&self.value, needed);
                comparison.need(&self.value, &outer, needed);
            }
        }
    }

    /// The findings, one a repetition.
    fn check(&self, manifest: &str, rows: &Rows) -> Vec<Finding> {
        self.repetitions.iter().enumerate().map(|(i, per)| self.check_one(manifest, rows, i, per)).collect()
    }

    fn check_one(&self, manifest: &str, rows: &Rows, i: usize, per: &[(String, Value)]) -> Finding {
        let outer = Scope::outermost(manifest, per, &self.paired);
        let compared: Result<Vec<Compared>, String> =
            self.comparisons().iter().map(|comparison| comparison.compare(&self.value, &outer, rows, i)).collect();
        let mut finding = self.finding(&outer, per);
        // Shown if our value is missing.
        finding.stated = self.comparisons().iter().filter_map(|of| of.stated(i)).collect::<Vec<_>>().join(", ");
        match compared {
            Err(why) => {
                finding.ours = why;
                finding.decide(Verdict::Missing);
            }
            Ok(compared) => {
                let verdicts: Vec<bool> = compared.iter().filter_map(|c| c.holds).collect();
                finding.decide(match verdicts.iter().all(|holds| *holds) {
                    _ if verdicts.is_empty() => Verdict::Shown,
                    true => Verdict::Holds,
                    false => Verdict::Fails,
                });
                (finding.stated_value, finding.our_value) = compared.first().map_or((None, None), |c| c.numbers);
                finding.interval = compared.iter().find_map(|c| c.interval);
                finding.other_value = compared.iter().find_map(|c| c.other);
                finding.differences = compared.iter().flat_map(|c| c.differences.clone()).collect();
                finding.uncertain = compared.iter().any(|c| c.is_uncertain);
                let mut ours: Vec<String> = compared.iter().map(|c| c.ours.clone()).collect();
                ours.dedup();
                finding.ours = ours.join(", ");
                finding.stated = compared.into_iter().map(|c| c.stated).collect::<Vec<_>>().join(", ");
            }
        }
        finding
    }

    /// A finding without its verdict.
    fn finding(&self, outer: &Scope, per: &[(String, Value)]) -> Finding {
        let mut text = self.text.clone();
        for (column, value) in per {
            text = text.replace(&format!("{{{column}}}"), &value.to_string());
        }
        let values: Vec<String> = per.iter().map(|(_, value)| value.to_string()).collect();
        if !per.is_empty() && text == self.text {
            text = format!("{text}: {}", values.join(", "));
        }
        let scope = outer.of_value(&self.value);
        let column = scope.column.as_deref().unwrap_or("rows");
        Finding {
            id: if per.is_empty() { self.id.clone() } else { format!("{}[{}]", self.id, values.join(",")) },
            text,
            kind: if self.guard.is_some() { ClaimKind::Guard } else { ClaimKind::Published },
            source: self.source.as_ref().or(self.guard.as_ref()).cloned().unwrap_or_default(),
            demanded: self.demanded,
            why: self.why.clone(),
            from: format!("{}.{}.{column}", scope.manifest, scope.table),
            ..Finding::default()
        }
    }
}
