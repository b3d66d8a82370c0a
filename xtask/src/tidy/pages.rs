//! Pages that everybody reads stay short, and every page of the guide is linked.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{File, links};

/// Most lines of a page.
const CEILINGS: &[(&str, usize)] = &[("README.md", 150), ("ARCHITECTURE.md", 120)];

/// The folder of the guide.
const GUIDE: &str = "docs/";

pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    for (name, ceiling) in CEILINGS {
        let lines = files.iter().find(|file| file.name == *name).map_or(0, |file| file.text.lines().count());
        if lines > *ceiling {
            violations.push(format!("{name}:{ceiling}: {lines} lines, the ceiling is {ceiling}"));
        }
    }
    let pages = || files.iter().filter(|file| file.is("md"));
    let linked: BTreeSet<PathBuf> = pages().flat_map(links::pages_of).collect();
    for page in pages().filter(|page| page.name.starts_with(GUIDE) && !linked.contains(&PathBuf::from(&page.name))) {
        violations.push(format!("{}:1: no page links to this page", page.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pages_and_pages_without_a_link_are_found() {
        let file = |name: &str, text: String| File { name: name.into(), text };
        let files = [
            file("README.md", "x\n".repeat(150) + "[a](docs/a.md)\n"),
            file("ARCHITECTURE.md", "x\n".repeat(120)),
            file("docs/a.md", "[self](a.md) [b](sub/b.md#x)\n".into()),
            file("docs/sub/b.md", String::new()),
            file("docs/c.md", "[c](c.md)\n".into()),
        ];
        let mut found = Vec::new();
        check(&files, &mut found);
        assert_eq!(found, ["README.md:150: 151 lines, the ceiling is 150", "docs/c.md:1: no page links to this page"]);
    }
}
