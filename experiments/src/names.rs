//! Names: which are allowed, and the nearest valid name for a mistyped one.

use std::collections::BTreeSet;

/// Greatest length of a name: it becomes a folder and the value of a column.
pub(crate) const NAME_MAX: usize = 63;

/// The rule for names of experiments.
pub(crate) const NAME_RULE: &str = "1 to 63 of a-z, 0-9, `.`, `_`, `-`, beginning with a letter or digit";

/// The rule for labels of blocks.
pub(crate) const LABEL_RULE: &str = "1 to 63 of a-z, A-Z, 0-9, `.`, `_`, `-`, beginning with a letter or digit";

/// Whether an experiment may have this name.
pub(crate) fn is_name(name: &str) -> bool {
    is_label(name) && !name.chars().any(|c| c.is_ascii_uppercase())
}

/// Whether a block may have this label.
pub(crate) fn is_label(label: &str) -> bool {
    label.len() <= NAME_MAX
        && label.starts_with(|c: char| c.is_ascii_alphanumeric())
        && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Maximum number of valid names that a message lists.
const LISTED: usize = 40;

/// Maximum number of names suggested for an unknown name.
const SUGGESTED: usize = 3;

/// The known names that are similar to a name, the most similar first.
fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // Beyond this length a name is not a typing error, and the comparison is quadratic.
    if name.len() > 100 {
        return Vec::new();
    }
    let fold = |text: &str| text.to_lowercase().replace('-', "_");
    let name = fold(name);
    let likeness = |known: &str| {
        let known = fold(known);
        let is_part = name.len() > 2 && known.contains(&name) || known.len() > 3 && name.contains(&known);
        // A single typing error counts as near even in a short name.
        let is_near = is_part || name.len() > 2 && strsim::osa_distance(&name, &known) <= 1;
        strsim::jaro_winkler(&name, &known).max(if is_near { 0.9 } else { 0.0 })
    };
    // A key that several components share occurs once for each of them.
    let known: BTreeSet<&str> = known.into_iter().collect();
    let mut scored: Vec<(f64, &str)> = known.into_iter().map(|known| (likeness(known), known)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    let near = scored.into_iter().take(SUGGESTED).filter(|(score, _)| *score > 0.75 && *score > best - 0.05);
    near.map(|(_, known)| known).collect()
}

/// Adds those of some items that a list lacks, each once, in their order.
pub fn add_new<T: PartialEq>(list: &mut Vec<T>, items: impl IntoIterator<Item = T>) {
    for item in items {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

/// "did you mean `x`?" with the most similar names; nothing if none is similar.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near: Vec<String> = near(name, known).into_iter().map(|near| format!("`{near}`")).collect();
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
}

/// "did you mean `x`?" with the most similar names, or the list of valid names if none is similar.
pub fn suggestion<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    hint(name, candidates.clone()).unwrap_or_else(|| {
        let mut all = Vec::new();
        add_new(&mut all, candidates.into_iter().map(|candidate| format!("`{candidate}`")));
        all.truncate(LISTED);
        format!("valid here: {}", all.join(", "))
    })
}

/// An error about an unknown name, with the most similar names, or with all names if none is similar.
pub fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    format!("unknown {kind} `{name}`; {}", instead_of(name, known))
}

/// "did you mean `x`?" with the most similar names, or all names if none is similar.
pub fn instead_of(name: &str, known: &[&str]) -> String {
    hint(name, known.iter().copied()).unwrap_or_else(|| format!("there are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_folders() {
        for good in ["a", "etinski2010", "0.x_y-z", &"a".repeat(63)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ".", "..", "-a", "A", "a/b", "a b", "é", "a@1", &"a".repeat(64)] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn suggests_the_nearest() {
        assert_eq!(near("bsld_treshold", ["wq_threshold", "bsld_threshold"]), ["bsld_threshold"]);
        assert_eq!(near("Gear-Rule", ["gear_rule", "queue_order"]), ["gear_rule"]);
        assert_eq!(near("sfj", ["fcfs", "sjf"]), ["sjf"]);
        assert!(near("zzz", ["gear_rule", "queue_order"]).is_empty());
        let keys = ["lublin_jobs_max", "factor_max", "factor_max", "poisson_jobs_count"];
        assert_eq!(suggestion("jobs", keys), "did you mean `lublin_jobs_max` or `poisson_jobs_count`?");
        assert_eq!(suggestion("zz", keys), "valid here: `lublin_jobs_max`, `factor_max`, `poisson_jobs_count`");
    }

    #[test]
    fn unknown_names_get_similar_names() {
        assert_eq!(unknown("component", "easey", &["easy", "fcfs"]), "unknown component `easey`; did you mean `easy`?");
        assert!(unknown("component", "zzz", &["easy", "fcfs"]).contains("there are easy, fcfs"));
        assert_eq!(near("jobs_count", ["synthetic_jobs_count", "procs"]), ["synthetic_jobs_count"]);
    }
}
