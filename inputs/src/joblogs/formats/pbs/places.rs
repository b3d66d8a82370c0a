//! Lists of the places of a job.

use std::collections::BTreeSet;

use crate::joblogs::entry::{COUNT_MAX, Size, count};

/// A memory such as `16gb`, `1993mb` or, in bytes, `4096` (KiB); in words of 8 bytes with a `w` for the `b`.
#[expect(clippy::option_option, reason = "as `entry::memory_kib`")]
pub(super) fn memory_kib(text: &str) -> Option<Option<u64>> {
    let text = text.to_ascii_lowercase();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let (prefix, of) = match unit.strip_suffix('w') {
        Some(prefix) => (prefix, 8.0),
        None => (unit.strip_suffix('b').unwrap_or(unit), 1.0),
    };
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|known| *known == prefix)?;
    crate::joblogs::entry::memory_kib(number.parse::<f64>().ok()? * of * 1024_f64.powi(power as i32 - 1))
}

/// A size from a number of CPUs, which a list may state as 0 where it does not say it.
fn size(cpus: u64, nodes: usize, gpus: u64) -> Option<Size> {
    let whole = |count: u64| u32::try_from(count).ok().filter(|count| *count <= COUNT_MAX);
    let some = |count: u64| Some(count).filter(|count| *count > 0).map(whole);
    let flat = |count: Option<Option<u32>>| match count {
        None => Some(None),
        Some(None) => None,
        Some(count) => Some(count),
    };
    Some(Size { cpus: flat(some(cpus))?, nodes: flat(some(nodes as u64))?, gpus: flat(some(gpus))? })
}

/// The size of `exec_host`: `node1/0+node1/1`, `node1/0*13+node2/0*13` or `node1/0-3,6`.
pub(super) fn hosts(text: &str) -> Option<Size> {
    let (mut cpus, mut nodes) = (0_u64, BTreeSet::new());
    for place in text.split('+') {
        let (node, slots) = place.split_once('/')?;
        nodes.insert(node);
        let of_node = match slots.split_once('*') {
            Some((_, times)) => u64::from(count(times)?),
            None => slots.split(',').try_fold(0_u64, |sum, range| Some(sum + range_length(range)?))?,
        };
        cpus = cpus.checked_add(of_node)?;
    }
    size(cpus, nodes.len(), 0)
}

/// The sum of the counts in an `exec_host` of the form `node1/4+node2/2`, in which a number is a number of slots.
pub(super) fn counted_slots(text: &str) -> Option<u64> {
    text.split('+').try_fold(0, |sum, place| Some(sum + u64::from(count(place.split_once('/')?.1)?)))
}

/// The length of `3` or `0-3`.
fn range_length(range: &str) -> Option<u64> {
    match range.split_once('-') {
        None => count(range).map(|_| 1),
        Some((first, last)) => {
            let (first, last) = (u64::from(count(first)?), u64::from(count(last)?));
            last.checked_sub(first).map(|more| more + 1)
        }
    }
}

/// The size of `exec_vnode`: `(node1:ncpus=4:ngpus=1)+(node2[0]:ncpus=2+node2[1]:ncpus=2)`.
pub(super) fn vnodes(text: &str) -> Option<Size> {
    let (mut cpus, mut gpus, mut nodes) = (0_u64, 0_u64, BTreeSet::new());
    for chunk in text.split(['+', '(', ')']).filter(|chunk| !chunk.is_empty()) {
        let mut parts = chunk.split(':');
        nodes.insert(parts.next()?);
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key {
                "ncpus" => cpus = cpus.checked_add(u64::from(count(value)?))?,
                "ngpus" => gpus = gpus.checked_add(u64::from(count(value)?))?,
                _ => {}
            }
        }
    }
    if nodes.is_empty() {
        return None;
    }
    size(cpus, nodes.len(), gpus)
}

/// The size of `Resource_List.nodes`: `4:ppn=8`, `node1:ppn=4+2:ppn=8:gpus=1`.
pub(super) fn requested_nodes(text: &str) -> Option<Size> {
    let (mut cpus, mut gpus, mut nodes) = (0_u64, 0_u64, 0_u64);
    for chunk in text.split('+') {
        let mut parts = chunk.split(':');
        // A number of nodes, or the name of one.
        let first = parts.next().filter(|first| !first.is_empty())?;
        let number = match first.bytes().all(|byte| byte.is_ascii_digit()) {
            true => u64::from(count(first)?),
            false => 1,
        };
        let (mut of_node, mut gpus_of_node) = (1, 0);
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key {
                "ppn" => of_node = u64::from(count(value)?),
                "gpu" | "gpus" => gpus_of_node = u64::from(count(value)?),
                _ => {}
            }
        }
        nodes += number;
        cpus = cpus.checked_add(number * of_node)?;
        gpus = gpus.checked_add(number * gpus_of_node)?;
    }
    size(cpus, usize::try_from(nodes).ok()?, gpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(cpus: u32, nodes: u32, gpus: u32) -> Option<Size> {
        let some = |count: u32| Some(count).filter(|count| *count > 0);
        Some(Size { cpus: some(cpus), nodes: some(nodes), gpus: some(gpus) })
    }

    #[test]
    fn places() {
        assert_eq!(hosts("n1/7+n1/6+n2/0"), size(3, 2, 0));
        assert_eq!(hosts("c1/0*13+c2/0*13"), size(26, 2, 0));
        assert_eq!(hosts("c1/0-3+c2/0-7,9"), size(13, 2, 0));
        assert_eq!(hosts("[hostname_2]/0*0"), size(0, 1, 0));
        assert_eq!(vnodes("(c1:ncpus=13)+(c2:ncpus=13:mem=5kb)"), size(26, 2, 0));
        assert_eq!(vnodes("(h[1]:mem=190000128kb:ngpus=2:ncpus=24+h[0]:ngpus=2:ncpus=24)"), size(48, 2, 4));
        assert_eq!(requested_nodes("4:ppn=8"), size(32, 4, 0));
        assert_eq!(requested_nodes("1:ppn=28:gpus=1:default+node7:ppn=2"), size(30, 2, 1));
        assert_eq!(requested_nodes("3"), size(3, 3, 0));
        let kib = |text: &str| memory_kib(text).flatten();
        assert_eq!([kib("1993mb"), kib("16GB"), kib("4097"), kib("2kw")], [2_040_832, 16 << 20, 5, 16].map(Some));
        assert_eq!(["0", "mb", "1xb", "-1kb", "9999999pb"].map(memory_kib), [Some(None), None, None, None, None]);
        for text in ["", "n1", "n1/x", "n1/3-1", "n1/0*-1"] {
            assert_eq!(hosts(text), None, "{text}");
        }
        assert_eq!(
            (vnodes(""), vnodes("(a:ncpus=x)"), requested_nodes("1:ppn=x"), requested_nodes("")),
            (None, None, None, None)
        );
        assert_eq!(requested_nodes("1073741824:ppn=1073741824+1073741824:ppn=1073741824"), None);
    }
}
