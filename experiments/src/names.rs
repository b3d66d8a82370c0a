//! Names: which are allowed, and the nearest valid name for a mistyped one.

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

/// The candidate nearest to a mistyped name, if one is near.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Beyond this length a name is not a typing error, and the comparison is quadratic.
    if name.len() > 100 {
        return None;
    }
    let folded = name.to_lowercase().replace('-', "_");
    candidates
        .into_iter()
        .map(|candidate| (likeness(&folded, &candidate.to_lowercase().replace('-', "_")), candidate))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// 1 for equal names. A single typing error counts as near even in a short name.
fn likeness(a: &str, b: &str) -> f64 {
    let near = if a.len() >= 3 && strsim::osa_distance(a, b) <= 1 { 0.9 } else { 0.0 };
    strsim::jaro_winkler(a, b).max(near)
}

/// "did you mean `x`?" for the nearest candidate; nothing if none is near.
pub(crate) fn hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// "did you mean `x`?" for the nearest candidate, or else for the candidates that contain the name, or else the list of
/// valid names.
pub fn suggestion<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(hint) = hint(name, candidates.clone()) {
        return hint;
    }
    let mut all = Vec::new();
    for candidate in candidates {
        // A key that several components share occurs once for each of them.
        if !all.contains(&candidate) {
            all.push(candidate);
        }
    }
    let quoted = |names: &[&str]| names.iter().take(40).map(|name| format!("`{name}`")).collect::<Vec<_>>();
    let holding: Vec<&str> =
        all.iter().copied().filter(|candidate| name.len() > 2 && candidate.contains(name)).collect();
    if holding.is_empty() {
        format!("valid here: {}", quoted(&all).join(", "))
    } else {
        format!("did you mean {}?", quoted(&holding).join(" or "))
    }
}

/// Maximum number of names suggested for an unknown name.
const SUGGESTED: usize = 3;

/// An error about an unknown name, with the most similar names, or with all names if none is similar.
pub fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    format!("unknown {kind} `{name}`; {}", instead_of(name, known))
}

/// "did you mean `x`?" with the most similar names, or all names if none is similar.
pub fn instead_of(name: &str, known: &[&str]) -> String {
    let near = similar(name, known);
    match near.is_empty() {
        false => format!("did you mean {}?", near.join(" or ")),
        true => format!("there are {}", known.join(", ")),
    }
}

/// The known names that are similar to a name, the most similar first, in back quotes.
pub fn similar(name: &str, known: &[&str]) -> Vec<String> {
    // The comparison is quadratic, and no known name is that long.
    if name.len() > 100 {
        return Vec::new();
    }
    let name = name.to_lowercase().replace('-', "_");
    let likeness = |candidate: &str| {
        let part_of_it = name.len() > 3 && (candidate.contains(&name) || name.contains(candidate));
        strsim::jaro_winkler(&name, candidate).max(if part_of_it { 0.9 } else { 0.0 })
    };
    let mut scored: Vec<(f64, &str)> = known.iter().map(|k| (likeness(k), *k)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    let near = scored.iter().take(SUGGESTED).filter(|(score, _)| *score > 0.75 && *score > best - 0.05);
    near.map(|(_, known)| format!("`{known}`")).collect()
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
        assert_eq!(nearest("bsld_treshold", ["wq_threshold", "bsld_threshold"]), Some("bsld_threshold"));
        assert_eq!(nearest("Gear-Rule", ["gear_rule", "queue_order"]), Some("gear_rule"));
        assert_eq!(nearest("sfj", ["fcfs", "sjf"]), Some("sjf"));
        assert_eq!(nearest("zzz", ["gear_rule", "queue_order"]), None);
        let keys = ["lublin_jobs_max", "factor_max", "factor_max", "poisson_jobs_count"];
        assert_eq!(suggestion("jobs", keys), "did you mean `lublin_jobs_max` or `poisson_jobs_count`?");
        assert_eq!(suggestion("zz", keys), "valid here: `lublin_jobs_max`, `factor_max`, `poisson_jobs_count`");
    }

    #[test]
    fn unknown_names_get_similar_names() {
        assert_eq!(unknown("component", "easey", &["easy", "fcfs"]), "unknown component `easey`; did you mean `easy`?");
        assert!(unknown("component", "zzz", &["easy", "fcfs"]).contains("there are easy, fcfs"));
        assert_eq!(similar("jobs_count", &["synthetic_jobs_count", "procs"]), ["`synthetic_jobs_count`"]);
    }
}
