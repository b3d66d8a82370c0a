//! Repetitions of a claim: `per`.

use powersweep_engine::Value;
use powersweep_experiments::Problem;
use powersweep_experiments::reading::suggestion;
use powersweep_results::Table;
use toml::de::{DeTable, DeValue};

use crate::read::{Conditions, Item, Reader};
use crate::selection::Context;

/// Most repetitions of one claim.
const REPETITIONS_MAX: usize = 10_000;

/// The key of `per` that chooses a manifest instead of the value of a column.
pub(crate) const MANIFEST: &str = "manifest";

/// The values of one repetition, by column.
pub(crate) type Fixed = Vec<(String, Value)>;

/// The conditions that a repetition adds.
pub(crate) fn conditions(fixed: &[(String, Value)]) -> Conditions {
    let columns = fixed.iter().filter(|(column, _)| column != MANIFEST);
    columns.map(|(column, value)| (column.clone(), vec![value.clone()])).collect()
}

/// The values of each repetition: every combination of a table of lists, or the entries of a list of tables. A claim
/// without `per` has one repetition without values.
pub(crate) fn repetitions(reader: &mut Reader, context: &Context<'_>, table: &DeTable<'_>, rows: Table) -> Vec<Fixed> {
    let Some(item) = table.get("per") else { return vec![Fixed::new()] };
    let found = match item.get_ref() {
        DeValue::Table(axes) => product(reader, context, axes, rows),
        DeValue::Array(items) if !items.is_empty() => items.iter().filter_map(|item| one(reader, item, rows)).collect(),
        _ => {
            let message = "`per` must be a table of lists, or a list of tables";
            reader.problem(item, message, "expected such as { workload = [\"CTC\"] }");
            Vec::new()
        }
    };
    if found.is_empty() { vec![Fixed::new()] } else { found }
}

fn product(reader: &mut Reader, context: &Context<'_>, axes: &DeTable<'_>, rows: Table) -> Vec<Fixed> {
    let mut found = vec![Fixed::new()];
    // In the order of the text: the lists of published numbers have the same order.
    let mut in_order: Vec<_> = axes.iter().collect();
    in_order.sort_by_key(|(key, _)| key.span().start);
    for (key, item) in in_order {
        let name = key.get_ref().to_string();
        let values = if name == MANIFEST {
            manifests(reader, context, axes, item)
        } else {
            let Some(column) = reader.column(rows, key) else { continue };
            reader.values(&column, item)
        };
        if found.len() * values.len() > REPETITIONS_MAX {
            let expected = format!("expected at most {REPETITIONS_MAX}");
            reader.problem(item, "the claim has too many repetitions", expected);
            return Vec::new();
        }
        let with = |fixed: &Fixed| -> Vec<Fixed> {
            values.iter().map(|value| fixed.iter().cloned().chain([(name.clone(), value.clone())]).collect()).collect()
        };
        found = found.iter().flat_map(with).collect();
    }
    found
}

fn one(reader: &mut Reader, item: &Item<'_>, rows: Table) -> Option<Fixed> {
    let Some(table) = item.get_ref().as_table() else {
        reader.problem(item, "a repetition must be a table", "expected such as { workload = \"CTC\" }");
        return None;
    };
    let first = |(name, values): (String, Vec<Value>)| Some((name, values.into_iter().next()?));
    Some(reader.conditions(rows, table, &[]).into_iter().filter_map(first).collect())
}

/// The manifests over which a claim is repeated.
fn manifests(reader: &mut Reader, context: &Context<'_>, axes: &DeTable<'_>, item: &Item<'_>) -> Vec<Value> {
    let names = reader.texts(axes, MANIFEST).unwrap_or_default();
    for name in names.iter().filter(|name| !context.manifests.contains(*name)) {
        let help = suggestion(name, context.manifests.iter().map(String::as_str));
        let message = format!("`manifests` does not list `{name}`");
        reader.problems.push(Problem::new(item.span(), message, "unknown manifest").help(help));
    }
    names.into_iter().map(Value::Text).collect()
}
