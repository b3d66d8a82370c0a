//! Names of files without what a manifest should not tell: the folder of an absolute path, and the secrets of a URL.
//!
//! The text of a manifest is in the state of its experiment, in every part of its rows and in copies of them, and a name in it
//! is in columns, ledgers and messages. So a manifest is read twice where it has such names: as it was written, for the places
//! of its files, and with the names that stand for them, for everything else. A file is known by its digest: its name
//! identifies nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Digest;
use crate::url::{is_url, public_name};

/// Digits of the digest that tells files of one name apart.
const DIGITS: usize = 8;

/// The name of a file that shares its name with another one.
fn distinct(place: &str, name: &str) -> String {
    let digest = &Digest::of(place.as_bytes()).to_string()[..DIGITS];
    match name.split_once('.') {
        _ if is_url(name) => format!("{name}#{digest}"),
        Some((stem, ending)) if !stem.is_empty() => format!("{stem}-{digest}.{ending}"),
        _ => format!("{name}-{digest}"),
    }
}

/// The names of the files that are not called by their places.
pub(super) fn public_names<'a>(places: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    let places: BTreeSet<&str> = places.into_iter().collect();
    let named: Vec<(&str, String)> = places.into_iter().map(|place| (place, public_name(place))).collect();
    let is_shared = |name: &str| named.iter().filter(|(_, other)| other == name).count() > 1;
    let changed = named.iter().filter(|(place, name)| place != name);
    let changed = changed.map(|(place, name)| match is_shared(name) {
        true => ((*place).to_owned(), distinct(place, name)),
        false => ((*place).to_owned(), name.clone()),
    });
    changed.collect()
}

/// The text of a manifest with these names in place of the places.
pub(super) fn replaced(text: &str, names: &BTreeMap<String, String>) -> String {
    let (table, _) = DeTable::parse_recoverable(text);
    let mut found = Vec::new();
    table.get_ref().values().for_each(|value| find(value, names, &mut found));
    found.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut text = text.to_owned();
    for (span, name) in found {
        // A string of JSON is one of TOML, but for one character.
        text.replace_range(span, &serde_json::Value::from(name).to_string().replace('\u{7f}', "\\u007f"));
    }
    text
}

fn find<'a>(
    value: &Spanned<DeValue<'_>>,
    names: &'a BTreeMap<String, String>,
    found: &mut Vec<(Range<usize>, &'a str)>,
) {
    match value.get_ref() {
        DeValue::String(text) => found.extend(names.get(text.as_ref()).map(|name| (value.span(), name.as_str()))),
        DeValue::Array(items) => items.iter().for_each(|item| find(item, names, found)),
        DeValue::Table(table) => table.values().for_each(|item| find(item, names, found)),
        _ => {}
    }
}

/// Line of a manifest's text, from 1, and block of the first value that is this text, such as the place of a file.
pub fn place_in(text: &str, place: &str) -> Option<(usize, String)> {
    let names = BTreeMap::from([(place.to_owned(), String::new())]);
    let (table, _) = DeTable::parse_recoverable(text);
    let sections = table.get_ref().iter().filter_map(|(name, value)| Some((name, value.get_ref().as_table()?)));
    let blocks = sections.flat_map(|(section, blocks)| blocks.iter().map(move |block| (section, block)));
    let first = blocks.filter_map(|(section, (label, block))| {
        let mut found = Vec::new();
        find(block, &names, &mut found);
        let start = found.into_iter().map(|(span, _)| span.start).min()?;
        Some((start, format!("[{}.{}]", section.get_ref(), label.get_ref())))
    });
    let (start, block) = first.min()?;
    Some((text[..start].matches('\n').count() + 1, block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Manifest;

    #[test]
    fn places_become_names_that_are_told_apart() {
        let names = public_names(["/home/ann/a.swf.gz", "/data/a.swf.gz", "b", "./c.swf", "/x/d", "https://h/q?id=1"]);
        let of = |place: &str| names.get(place).map(String::as_str);
        assert_eq!(
            (of("/x/d"), of("https://h/q?id=1"), of("b"), of("./c.swf")),
            (Some("d"), Some("https://h/q"), None, None)
        );
        let [one, other] = ["/home/ann/a.swf.gz", "/data/a.swf.gz"].map(|place| of(place).expect("it has a folder"));
        assert!(one != other && one.starts_with("a-") && other.ends_with(".swf.gz"), "{one} {other}");
        let shared = public_names(["https://h/q?id=1", "https://h/q?id=2", "d", "/x/d"]);
        assert!(
            shared["https://h/q?id=1"].starts_with("https://h/q#") && shared["/x/d"].starts_with("d-"),
            "{shared:?}"
        );
        assert_ne!(shared["https://h/q?id=1"], shared["https://h/q?id=2"]);
    }

    const MANIFEST: &str = r#"version = 1
name = "places"
[workloads.w]   # a comment stays
source = "swf"
log = ["/home/ann/a.swf", 'https://h/b.swf?X-Signature=secret', "c"]
log_sha256 = ["0000000000000000000000000000000000000000000000000000000000000001", "0000000000000000000000000000000000000000000000000000000000000002", "0000000000000000000000000000000000000000000000000000000000000003"]
zip = [["log", "log_sha256"]]
[signals.co2]
quantity = "carbon"
file = "/home/ann/co2.csv"
anchor = "2021-01-01"
[policies.q]
[[exclude]]
log = "/home/ann/a.swf"
"#;

    #[test]
    fn a_manifest_has_names_and_knows_the_places() {
        let manifest = Manifest::parse("places", MANIFEST).expect("valid");
        for secret in ["/home", "ann", "Signature", "secret"] {
            assert!(!manifest.text().contains(secret), "{}", manifest.text());
        }
        assert!(manifest.text().contains("# a comment stays") && manifest.source() == MANIFEST);
        let files: Vec<(String, String)> = manifest.files().into_iter().map(|file| (file.name, file.place)).collect();
        let expected = [
            ("a.swf", "/home/ann/a.swf"),
            ("c", "c"),
            ("https://h/b.swf", "https://h/b.swf?X-Signature=secret"),
            ("co2.csv", "/home/ann/co2.csv"),
        ];
        assert_eq!(files, expected.map(|(name, place)| (name.to_owned(), place.to_owned())));
        // A part has the text with the names.
        let again = Manifest::parse("part", manifest.text()).expect("valid");
        assert_eq!(again.text(), manifest.text());
    }
}
