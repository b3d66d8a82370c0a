//! The differences of two manifests, key by key, for people.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::{DeTable, DeValue};

use crate::Manifest;

/// Longest value shown, in characters.
const VALUE_CHARS_MAX: usize = 60;

/// Maximum number of differences in an error.
const SHOWN_MAX: usize = 8;

/// One line for each key with another value: `workloads.w.source: "lublin" -> "swf"`. Values are shown as their
/// manifests write them, cut where they are long.
pub fn difference(old: &Manifest, new: &Manifest) -> Vec<String> {
    let (old, new) = (flat(old.text()), flat(new.text()));
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let line = |key: &String| {
        let (before, after) = (old.get(key), new.get(key));
        let shown = |value: Option<&String>| value.map_or_else(|| "(absent)".to_owned(), |value| cut(value));
        (before != after).then(|| format!("{key}: {} -> {}", shown(before), shown(after)))
    };
    keys.into_iter().filter_map(line).collect()
}

/// Differences for an error, one below the other. Of many, the first ones and the number of the others.
pub fn shown_differences(mut differences: Vec<String>) -> String {
    let more = differences.len().saturating_sub(SHOWN_MAX);
    differences.truncate(SHOWN_MAX);
    differences.extend((more > 0).then(|| format!("and {more} more")));
    differences.join("\n  ")
}

fn cut(value: &str) -> String {
    match value.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
}

/// The text of each value, by its dotted key.
fn flat(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    if let Ok(top) = DeTable::parse(text) {
        add_table("", top.get_ref(), text, &mut values);
    }
    values
}

fn add_table(path: &str, table: &DeTable<'_>, text: &str, values: &mut BTreeMap<String, String>) {
    if table.is_empty() && !path.is_empty() {
        values.insert(path.to_owned(), "{}".to_owned());
    }
    for (key, value) in table {
        let path = if path.is_empty() { key.get_ref().to_string() } else { format!("{path}.{}", key.get_ref()) };
        let own = || text.get(value.span()).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        match value.get_ref() {
            DeValue::Table(table) => add_table(&path, table, text, values),
            DeValue::Array(items) if items.iter().any(|item| matches!(item.get_ref(), DeValue::Table(_))) => {
                for (at, item) in items.iter().enumerate() {
                    let DeValue::Table(table) = item.get_ref() else { continue };
                    add_table(&format!("{path}[{at}]"), table, text, values);
                }
            }
            _ => drop(values.insert(path, own())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(text: &str) -> Manifest {
        let text = format!("version = 1\nname = \"e\"\n{text}");
        Manifest::parse("test", &text).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn each_changed_key_is_one_line() {
        let old = manifest(
            "seeds = [1, 2]\n[workloads.w]\nsource = \"lublin\"\n[policies.p]\nbackfill = \"conservative\"\n\
             [policies.q]\nbackfill = [\"none\",\n \"easy\"]",
        );
        let new = manifest(
            "seeds = [1, 2] # as before\n[workloads.v]\nsource = \"lublin\"\n[policies.q]\nbackfill = \"easy\"\n\
             [[exclude]]\nworkload = \"v\"\nseed = 1",
        );
        assert_eq!(
            difference(&old, &new),
            [
                "exclude[0].seed: (absent) -> 1",
                "exclude[0].workload: (absent) -> \"v\"",
                "policies.p.backfill: \"conservative\" -> (absent)",
                "policies.q.backfill: [\"none\", \"easy\"] -> \"easy\"",
                "workloads.v.source: (absent) -> \"lublin\"",
                "workloads.w.source: \"lublin\" -> (absent)",
            ]
        );
        assert!(difference(&old, &old).is_empty());
    }

    #[test]
    fn long_values_are_cut() {
        let many: Vec<u64> = (1..100).collect();
        let text =
            |seeds: &[u64]| manifest(&format!("seeds = {seeds:?}\n[workloads.w]\nsource = \"lublin\"\n[policies.p]"));
        let lines = difference(&text(&many), &text(&[1]));
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains("... -> [1]") && lines[0].len() < 90, "{lines:?}");
    }
}
