//! Long names of levels in little room: shortened names can still be told apart.

use serde_json::{Value, json};

use crate::font::{self, SIZE_PX};

/// What stands for a part that is left out.
const CUT: &str = "…";

/// The names in at most this width (px), as far as they stay different. What all long names begin and end with is left out
/// first, then the middle of a name.
pub(crate) fn shortened(names: &[String], most_px: f64) -> Vec<String> {
    if names.iter().all(|name| fits(name, most_px)) {
        return names.to_vec();
    }
    let own = without_common(names, most_px);
    let cut: Vec<String> = own.iter().map(|name| middle_cut(name, most_px)).collect();
    [cut, own].into_iter().find(|shown| are_different(shown)).unwrap_or_else(|| names.to_vec())
}

/// Adds the shortened names to an axis, a legend or the headers of panels.
pub(crate) fn show(guide: &mut Value, names: &[String], shown: &[String]) {
    if names != shown {
        let table: serde_json::Map<String, Value> =
            names.iter().zip(shown).map(|(name, shown)| (name.clone(), json!(shown))).collect();
        guide["labelExpr"] = json!(format!("{}[datum.value]", Value::Object(table)));
    }
}

fn fits(name: &str, most_px: f64) -> bool {
    font::width(name, SIZE_PX, false) <= most_px
}

fn are_different(names: &[String]) -> bool {
    let different: std::collections::BTreeSet<&String> = names.iter().collect();
    different.len() == names.len()
}

/// The names without what all long ones begin and end with, up to whole words. Short names that have it lose it, too.
fn without_common(names: &[String], most_px: f64) -> Vec<String> {
    let is_long = |name: &&String| !fits(name, most_px);
    let long: Vec<Vec<char>> = names.iter().filter(is_long).map(|name| name.chars().collect()).collect();
    let Some(first) = long.first().filter(|_| long.len() > 1) else { return names.to_vec() };
    let is_end = |letter: &char| !letter.is_alphanumeric();
    let shared = |at: &dyn Fn(&[char], usize) -> Option<char>| {
        let count = (0..).take_while(|place| {
            let letter = at(first, *place);
            letter.is_some() && long.iter().all(|name| at(name, *place) == letter)
        });
        let letters: Vec<char> = count.filter_map(|place| at(first, place)).collect();
        letters.iter().rposition(is_end).map_or(0, |last| last + 1)
    };
    let begin = shared(&|name: &[char], place: usize| name.get(place).copied());
    let end = shared(&|name: &[char], place: usize| {
        name.len().checked_sub(place + 1 + begin).map(|_| name[name.len() - 1 - place])
    });
    let own = |name: &String| {
        let letters: Vec<char> = name.chars().collect();
        let has_both = letters.starts_with(&first[..begin]) && letters.ends_with(&first[first.len() - end..]);
        if !has_both || begin + end >= letters.len() {
            return name.clone();
        }
        let middle: String = letters[begin..letters.len() - end].iter().collect();
        format!("{}{middle}{}", if begin > 0 { CUT } else { "" }, if end > 0 { CUT } else { "" })
    };
    names.iter().map(own).collect()
}

/// A name with as much of its begin and end as fits.
fn middle_cut(name: &str, most_px: f64) -> String {
    let letters: Vec<char> = name.chars().collect();
    let cut = |kept: usize| -> String {
        let begin = kept.div_ceil(2);
        let tail = letters.len() - (kept - begin);
        letters[..begin].iter().chain(CUT.chars().collect::<Vec<_>>().iter()).chain(&letters[tail..]).collect()
    };
    if fits(name, most_px) {
        return name.to_owned();
    }
    (1..letters.len()).rev().map(cut).find(|shown| fits(shown, most_px)).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str], most_px: f64) -> Vec<String> {
        shortened(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), most_px)
    }

    #[test]
    fn long_names_lose_what_they_share() {
        let names = [
            "policy-with-a-long-name-fcfs-easy",
            "policy-with-a-long-name-fcfs-none",
            "policy-with-a-long-name-sjf-easy",
            "full",
        ];
        assert_eq!(of(&names, 110.0), ["…fcfs-easy", "…fcfs-none", "…sjf-easy", "full"]);
        let ends = ["easy, on the first of the two machines", "fcfs, on the first of the two machines"];
        assert_eq!(of(&ends, 110.0), ["easy…", "fcfs…"]);
        assert_eq!(of(&["easy", "fcfs"], 110.0), ["easy", "fcfs"]);
        let short = "policy-with-a-long-name-sjf";
        let names = ["policy-with-a-long-name-fcfs-conservative", "policy-with-a-long-name-wfp3-increments", short];
        let shown = of(&names, font::width(short, SIZE_PX, false));
        assert_eq!(shown, ["…fcfs-conservative", "…wfp3-increments", "…sjf"]);
    }

    #[test]
    fn shortened_names_stay_different() {
        let one = of(&["one name that is much too long for its place"], 80.0);
        assert!(one[0].starts_with("one n") && one[0].ends_with("place") && fits(&one[0], 80.0), "{one:?}");
        // Their difference is in the middle: no cut keeps it.
        let names = [1, 2].map(|n| format!("abcdefghijklmnopqrstuvwx{n}yzabcdefghijklmnopqrstuvwx"));
        let shown = shortened(&names, 60.0);
        assert_ne!(shown[0], shown[1]);
    }
}
