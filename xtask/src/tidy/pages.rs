//! Pages that everybody reads stay short. The guide is a book: its summary lists every page once, every page is linked from
//! another page, and no page links to a file outside the book.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{File, links};

/// Maximum number of lines of a page.
const CEILINGS: &[(&str, usize)] = &[("README.md", 150), ("ARCHITECTURE.md", 120), ("CONTRIBUTING.md", 250)];

/// The folder of the guide.
const GUIDE: &str = "docs/";

/// The list of the book's pages.
const SUMMARY: &str = "docs/SUMMARY.md";

pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    for (name, ceiling) in CEILINGS {
        let lines = files.iter().find(|file| file.name == *name).map_or(0, |file| file.text.lines().count());
        if lines > *ceiling {
            violations.push(format!("{name}:{ceiling}: {lines} lines, the ceiling is {ceiling}"));
        }
    }
    let pages = || files.iter().filter(|file| file.is("md") && file.name != SUMMARY);
    let linked: BTreeSet<PathBuf> = pages().flat_map(links::pages_of).collect();
    let listed: Vec<PathBuf> = files.iter().filter(|file| file.name == SUMMARY).flat_map(links::pages_of).collect();
    for page in pages().filter(|page| page.name.starts_with(GUIDE)) {
        let path = Path::new(&page.name);
        let mut report = |problem: String| violations.push(format!("{}:1: {problem}", page.name));
        if !linked.contains(path) {
            report("no page links to this page".to_owned());
        }
        match listed.iter().filter(|listed| *listed == path).count() {
            1 => {}
            0 => report(format!("{SUMMARY} does not list this page")),
            _ => report(format!("{SUMMARY} lists this page twice")),
        }
        for target in links::pages_of(page).into_iter().filter(|target| !target.starts_with(GUIDE)) {
            report(format!("`{}` is not in the book: name it as code, without a link", target.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pages_and_pages_outside_the_book_are_found() {
        let file = |name: &str, text: String| File { name: name.into(), text };
        let files = [
            file("README.md", "x\n".repeat(150) + "[a](docs/a.md)\n"),
            file("ARCHITECTURE.md", "x\n".repeat(120)),
            file("docs/SUMMARY.md", "[a](a.md) [b](sub/b.md) [c](c.md) [b](sub/b.md)\n".into()),
            file("docs/a.md", "[self](a.md) [b](sub/b.md#x) [d](d.md)\n".into()),
            file("docs/sub/b.md", "[up](../../README.md) [elsewhere](https://x.org) [a](../a.md)\n".into()),
            file("docs/c.md", "[c](c.md)\n".into()),
            file("docs/d.md", String::new()),
        ];
        let mut found = Vec::new();
        check(&files, &mut found);
        let expected = [
            "README.md:150: 151 lines, the ceiling is 150",
            "docs/sub/b.md:1: docs/SUMMARY.md lists this page twice",
            "docs/sub/b.md:1: `README.md` is not in the book: name it as code, without a link",
            "docs/c.md:1: no page links to this page",
            "docs/d.md:1: docs/SUMMARY.md does not list this page",
        ];
        assert_eq!(found, expected);
    }
}
