//! Published numbers beside our values: their places on the axes of a preset.

use std::collections::BTreeMap;

use crate::presets::{NONE, Published, Values};
use crate::selection::Fixed;

/// The published numbers of a claim with their places, as the preset shows them.
pub(crate) fn numbers(values: &Values, published: &Published) -> Vec<(String, BTreeMap<String, String>, f64)> {
    let claim = &published.claim;
    let numbers = &claim.published;
    let one = |(at, fixed): (usize, &Fixed)| {
        let number = numbers.get(at).or(numbers.last()).copied()?;
        let number = if published.one_minus { 1.0 - number } else { number };
        let mut cells: BTreeMap<String, String> = BTreeMap::new();
        for (column, wanted) in claim.value.of_runs.iter().flatten().chain(&claim.value.conditions) {
            if let [value] = wanted.as_slice() {
                cells.insert(column.clone(), value.to_string());
            }
        }
        let cell = |text: &String| if text == NONE { String::new() } else { text.clone() };
        cells.extend(published.at.iter().map(|(column, text)| (column.clone(), cell(text))));
        cells.extend(fixed.iter().map(|(column, value)| (column.clone(), value.to_string())));
        if !fits(&cells, values) {
            return None;
        }
        cells.extend(values.fixed.clone());
        let repetition: Vec<String> = fixed.iter().map(|(_, value)| value.to_string()).collect();
        let id = if fixed.is_empty() { claim.id.clone() } else { format!("{}[{}]", claim.id, repetition.join(",")) };
        Some((id, cells, number * published.times.unwrap_or(1.0)))
    };
    claim.repetitions.iter().enumerate().filter_map(one).collect()
}

/// Whether a published number is under the conditions of our values, as far as it says.
fn fits(cells: &BTreeMap<String, String>, values: &Values) -> bool {
    let conditions = values.selection.of_runs.iter().flatten().filter(|(column, _)| {
        // A selection's own conditions override the conditions of its runs.
        !values.selection.conditions.contains_key(*column)
    });
    conditions.chain(&values.selection.conditions).all(|(column, wanted)| {
        cells.get(column).is_none_or(|cell| wanted.iter().any(|value| value.to_string() == *cell))
    })
}
