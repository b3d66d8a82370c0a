//! The reader of presets files.

use std::collections::BTreeSet;

use powersweep_experiments::ManifestErrors;
use powersweep_results::Table;

use crate::claim::Claims;
use crate::deserialize::{Node, parse};
use crate::presets::{Axis, Preset, Presets, Shape, Values};
use crate::published::numbers;
use crate::selection::Selection;

use super::{Context, check_conditions, check_head, column_of};

impl Presets {
    /// Reads and checks a presets file. `claims` are the claims of the same paper; `file` is the name shown in messages.
    ///
    /// # Errors
    /// Every problem at once, each with its line.
    pub fn parse(file: &str, text: &str, claims: &Claims) -> Result<Presets, ManifestErrors> {
        parse(file, text, |presets, at| check(presets, claims, at))
    }
}

fn check(presets: &mut Presets, claims: &Claims, at: Node<'_, '_>) {
    check_head(presets.version, "presets", at);
    at.require("presets", "at least one [[presets]]");
    let context = Context { manifests: &presets.manifests, runs: &claims.runs };
    let mut names = BTreeSet::new();
    for (preset, at) in presets.presets.iter_mut().zip(at.at("presets").items()) {
        context.preset(preset, claims, at);
        if !names.insert(&preset.name) {
            let message = format!("two presets have the name `{}`", preset.name);
            at.at("name").problem(message, "expected a name that no other preset has");
        }
    }
}

impl Context<'_> {
    /// Checks a preset, and fills in what its names stand for.
    fn preset(&self, preset: &mut Preset, claims: &Claims, at: Node<'_, '_>) {
        at.require("name", "the place in the paper, such as \"figure3\"");
        at.require("caption", "a sentence");
        at.require("kind", "bars, lines, steps, jobs or table");
        match self.manifests.first() {
            Some(first) if preset.manifest.is_empty() => preset.manifest.clone_from(first),
            _ => self.manifest(&preset.manifest, at.at("manifest")),
        }
        if preset.shape == Shape::Jobs {
            return check_conditions(&mut preset.jobs, at.at("jobs"), Table::Jobs);
        }
        at.require("x", "x = { column = ..., title = ... }");
        at.require("values", "at least one [[presets.values]]");
        let axes = [("x", Some(&mut preset.x)), ("colour", preset.colour.as_mut()), ("facet", preset.facet.as_mut())];
        for (key, axis) in axes {
            if let (Some(axis), Some(at)) = (axis, at.get(key)) {
                self.axis(axis, at);
            }
        }
        let mut values = std::mem::take(&mut preset.values);
        for (values, at) in values.iter_mut().zip(at.at("values").items()) {
            self.values(values, preset, claims, at);
        }
        preset.values = values;
    }

    fn axis(&self, axis: &mut Axis, at: Node<'_, '_>) {
        at.require("column", "a column, or a list of columns");
        axis.minus.iter_mut().for_each(|minus| self.selection(minus, at.at("minus"), Table::Tasks));
        axis.cycle = axis.cycle.filter(|cycle| *cycle >= 1.0);
    }

    fn values(&self, values: &mut Values, preset: &Preset, claims: &Claims, at: Node<'_, '_>) {
        at.require("value", "value = { column = ... }");
        self.selection(&mut values.selection, at.at("value"), Table::Tasks);
        let rows = values.selection.rows(Table::Tasks);
        values.half_width.iter_mut().for_each(|half| self.selection(half, at.at("half_width"), rows));
        let Selection { aggregate, divided_by, minus, absolute, then, .. } = &values.selection;
        let has_both = divided_by.is_some() && minus.is_some();
        let is_changed = aggregate.is_some() || absolute.is_some() || then.is_some() || values.half_width.is_some();
        if values.interval && (is_changed || has_both) {
            let message = "a mean with the interval over the seeds has neither `then` nor `half_width`, `aggregate` or \
                           `absolute`, and one of `divided_by` and `minus`";
            at.at("interval").problem(message.to_owned(), "expected the columns of the pairs in `by`".to_owned());
        }
        let by = preset.by(values);
        for column in by.iter().filter(|column| column_of(rows, column).is_none()) {
            let message = format!("the table {rows} has no column `{column}` for an axis");
            at.start().problem(message, format!("expected as = {{ {column} = \"...\" }}"));
        }
        let mut published = std::mem::take(&mut values.published);
        for (published, at) in published.iter_mut().zip(at.at("published").items()) {
            if published.id.is_empty() {
                at.require("claim", "the id of a claim");
                continue;
            }
            let found = claims.claims.iter().find(|claim| claim.id == published.id && !claim.published.is_empty());
            let Some(claim) = found else {
                let message = format!("there is no claim `{}` with a published number", published.id);
                at.problem(message, "expected the id of a claim of the paper");
                continue;
            };
            published.claim.clone_from(claim);
            let numbers = numbers(values, published);
            if numbers.is_empty() {
                let message = format!("no number of the claim `{}` is under the conditions of this value", claim.id);
                at.problem(message, "expected a claim about the same rows");
            }
            let is_open = |column: &&String| numbers.iter().any(|(_, cells, _)| !cells.contains_key(*column));
            if let Some(column) = by.iter().find(is_open) {
                let message = format!("the claim `{}` leaves open the column `{column}` of an axis", claim.id);
                at.problem(message, format!("expected at = {{ {column} = ... }}"));
            }
        }
        values.published = published;
    }
}
