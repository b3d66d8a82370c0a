//! Lists of nodes such as `n1,gpu[01-03,7]`.

use std::collections::HashMap;

use super::CLUSTER_END;

/// Maximum number of nodes of all jobs of a file whose names are kept.
const PLACES_MAX: usize = 10_000_000;

/// The nodes of a file by number.
#[derive(Debug, Default)]
pub(super) struct NodeNames {
    numbers: HashMap<String, u32>,
    places: usize,
}

impl NodeNames {
    /// The numbers of the nodes in a list; none if the list has another number of nodes than the job, or is no list. Clusters
    /// may have nodes of equal names.
    pub(super) fn numbers(&mut self, cluster: &str, list: &str, nodes: Option<u32>) -> Vec<u32> {
        let left = PLACES_MAX - self.places;
        let Some(nodes) = nodes.and_then(|nodes| usize::try_from(nodes).ok()).filter(|nodes| *nodes <= left) else {
            return Vec::new();
        };
        let names = names(list, nodes).filter(|names| names.len() == nodes).unwrap_or_default();
        self.places += names.len();
        let number = |name: String| {
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            *self.numbers.entry(format!("{cluster}{CLUSTER_END}{name}")).or_insert(next)
        };
        names.into_iter().map(number).collect()
    }
}

/// The names in a list; `None` if it is no list, or has more than `most` names.
fn names(list: &str, most: usize) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        // A name ends at a comma outside of brackets.
        let mut depth = 0_u32;
        let end = rest.find(|c: char| {
            depth = match c {
                '[' => depth + 1,
                ']' => depth.saturating_sub(1),
                _ => depth,
            };
            c == ',' && depth == 0
        });
        let (name, after) = end.map_or((rest, ""), |end| (&rest[..end], &rest[end + 1..]));
        let mut expanded = vec![String::new()];
        let mut parts = name.split('[');
        let begin = parts.next()?;
        expanded.iter_mut().for_each(|name| name.push_str(begin));
        for part in parts {
            let (ranges, text) = part.split_once(']')?;
            let suffixes = suffixes(ranges, most)?;
            if suffixes.len().checked_mul(expanded.len()).is_none_or(|count| count > most) {
                return None;
            }
            let product =
                expanded.iter().flat_map(|name| suffixes.iter().map(move |suffix| format!("{name}{suffix}{text}")));
            expanded = product.collect();
        }
        names.append(&mut expanded);
        if names.len() > most {
            return None;
        }
        rest = after;
    }
    Some(names)
}

/// The texts of `01-03,7`.
fn suffixes(ranges: &str, most: usize) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for range in ranges.split(',') {
        let Some((first, last)) = range.split_once('-') else {
            all.push(range.to_owned());
            continue;
        };
        let (width, first, last): (_, u64, u64) = (first.len(), first.parse().ok()?, last.parse().ok()?);
        if last.checked_sub(first)? as usize >= most.saturating_sub(all.len()) {
            return None;
        }
        all.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes() {
        let of = |list: &str, most| names(list, most).map(|names| names.join(" "));
        assert_eq!(of("n1", 1).as_deref(), Some("n1"));
        assert_eq!(of("a-[08-10,3],b2", 9).as_deref(), Some("a-08 a-09 a-10 a-3 b2"));
        assert_eq!(of("r[1-2]n[3-4]-ib", 4).as_deref(), Some("r1n3-ib r1n4-ib r2n3-ib r2n4-ib"));
        for (list, most) in [("n[1-9]", 8), ("n[0-18446744073709551615]", 9), ("n[1", 9), ("n[x-y]", 9), ("n[2-1]", 9)]
        {
            assert_eq!(of(list, most), None, "{list}");
        }
    }

    #[test]
    fn a_list_of_another_length_names_no_nodes() {
        let mut known = NodeNames::default();
        assert_eq!(known.numbers("", "n1,n2", Some(2)), [0, 1]);
        assert_eq!(known.numbers("", "n2", Some(1)), [1]);
        let none = [
            known.numbers("", "n2", Some(2)),
            known.numbers("", "n2", None),
            known.numbers("", "None assigned", Some(0)),
        ];
        assert!(none.iter().all(Vec::is_empty), "{none:?}");
        assert_eq!(known.numbers("beta", "n2", Some(1)), [2]);
    }
}
