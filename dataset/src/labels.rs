//! Long names in little room: shortened names can still be told apart.

/// The sign in place of a part that is left out.
const CUT: &str = "…";

/// The names, shortened until they fit, as far as they stay different. What all long names begin and end with is left out
/// first, then the middle of a name.
pub fn shortened(names: &[String], fits: impl Fn(&str) -> bool) -> Vec<String> {
    if names.iter().all(|name| fits(name)) {
        return names.to_vec();
    }
    let own = without_common(names, &fits);
    let cut: Vec<String> = own.iter().map(|name| middle_cut(name, &fits)).collect();
    [cut, own].into_iter().find(|shown| are_different(shown)).unwrap_or_else(|| names.to_vec())
}

fn are_different(names: &[String]) -> bool {
    let different: std::collections::BTreeSet<&String> = names.iter().collect();
    different.len() == names.len()
}

/// The names without what all long ones begin and end with, up to whole words. Short names that have it lose it, too.
fn without_common(names: &[String], fits: &impl Fn(&str) -> bool) -> Vec<String> {
    let is_long = |name: &&String| !fits(name);
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
fn middle_cut(name: &str, fits: &impl Fn(&str) -> bool) -> String {
    let letters: Vec<char> = name.chars().collect();
    let cut = |kept: usize| -> String {
        let begin = kept.div_ceil(2);
        let tail = letters.len() - (kept - begin);
        letters[..begin].iter().chain(CUT.chars().collect::<Vec<_>>().iter()).chain(&letters[tail..]).collect()
    };
    if fits(name) {
        return name.to_owned();
    }
    (1..letters.len()).rev().map(cut).find(|shown| fits(shown)).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str], most: usize) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        shortened(&names, |name| name.chars().count() <= most)
    }

    #[test]
    fn long_names_lose_what_they_share() {
        assert_eq!(of(&["worker-5bce98-25542", "worker-5bce98-25731"], 14), ["…25542", "…25731"]);
        let names = ["power-saving-with-sjf", "power-saving-with-fcfs", "power-saving-with-f1", "easy"];
        assert_eq!(of(&names, 14), ["…sjf", "…fcfs", "…f1", "easy"]);
    }
}
