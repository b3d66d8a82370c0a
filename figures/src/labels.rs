//! Long names of levels in little room.

use serde_json::{Value, json};

use crate::font::{self, SIZE_PX};

/// The names in at most this width (px), as far as they stay different.
pub(crate) fn shortened(names: &[String], most_px: f64) -> Vec<String> {
    powersweep_dataset::labels::shortened(names, |name| fits(name, most_px))
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
