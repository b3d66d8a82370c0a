//! Builds the guide as a book with mdBook, and checks the pages: each link between them leads to a page and a heading, and no
//! page loads a file from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pages of mdBook's own: all pages in one, the page for wrong addresses, the list beside the pages.
const OWN: [&str; 3] = ["print.html", "404.html", "toc.html"];

/// Problems that are shown.
const SHOWN: usize = 20;

/// Builds the book into the target folder `target`.
pub(crate) fn run(root: &Path, target: &Path) -> Result<String, String> {
    let book = target.join("book");
    let built = Command::new("mdbook").arg("build").arg("--dest-dir").arg(&book).arg(root).output();
    let hint = "install mdBook: cargo install --locked mdbook --version '^0.5'";
    let built = built.map_err(|error| format!("cannot start mdbook: {error}\n{hint}"))?;
    // Its warnings are about pages that look wrong, such as those with a `<word>` that is no tag.
    let told = String::from_utf8_lossy(&built.stderr);
    if !built.status.success() || told.contains(" WARN ") {
        return Err(format!("{told}mdbook is not content with the pages"));
    }
    let mut files = BTreeMap::new();
    collect(&book, &book, &mut files)?;
    let problems = problems(&files);
    let pages = files.values().filter(|text| text.is_some()).count();
    match problems.is_empty() {
        true => Ok(format!("book: {pages} pages in {}, every link leads to a heading", book.display())),
        false => {
            let shown: Vec<&str> = problems.iter().take(SHOWN).map(String::as_str).collect();
            Err(format!("{}\nbook: {} problems", shown.join("\n"), problems.len()))
        }
    }
}

/// The files of the book by their paths; the text of those that are pages.
fn collect(book: &Path, folder: &Path, files: &mut BTreeMap<PathBuf, Option<String>>) -> Result<(), String> {
    let error = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    for entry in fs::read_dir(folder).map_err(|e| error(folder, e))? {
        let path = entry.map_err(|e| error(folder, e))?.path();
        if path.is_dir() {
            collect(book, &path, files)?;
            continue;
        }
        let name = path.strip_prefix(book).unwrap_or(&path).to_owned();
        let is_page =
            name.extension().is_some_and(|end| end == "html") && !OWN.iter().any(|own| name == Path::new(own));
        let text = is_page.then(|| fs::read_to_string(&path)).transpose().map_err(|e| error(&path, e))?;
        files.insert(name, text);
    }
    Ok(())
}

fn problems(files: &BTreeMap<PathBuf, Option<String>>) -> Vec<String> {
    let pages = || files.iter().filter_map(|(name, text)| Some((name, text.as_deref()?)));
    let ids: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages().map(|(name, text)| (name, attributes(text, "id").map(|(_, id)| id).collect())).collect();
    let mut found = Vec::new();
    for (page, text) in pages() {
        let links = attributes(text, "href").chain(attributes(text, "src"));
        for (tag, link) in links.filter(|(_, link)| !link.starts_with("data:") && !link.starts_with("mailto:")) {
            let mut report = |problem: &str| found.push(format!("{}: `{link}` {problem}", page.display()));
            if link.contains("://") {
                // A reader may follow a link to another server; a page loads nothing from there.
                if tag != "a" {
                    report("is loaded from elsewhere");
                }
                continue;
            }
            let (path, id) = link.split_once('#').unwrap_or((link, ""));
            let folder = page.parent().unwrap_or(Path::new(""));
            let path = if path.is_empty() { page.clone() } else { crate::paths::plain(&folder.join(path)) };
            if !files.contains_key(&path) {
                report("does not exist");
            } else if !id.is_empty() && ids.get(&path).is_some_and(|ids| !ids.contains(id)) {
                report("names a heading that does not exist");
            }
        }
    }
    found
}

/// The values of an attribute in a page, each with the name of its tag.
fn attributes<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    text.split('<').skip(1).filter_map(move |piece| {
        let tag = piece.split('>').next().unwrap_or_default();
        let value = tag.split_once(&format!(" {name}=\""))?.1.split('"').next()?;
        Some((tag.split_whitespace().next().unwrap_or_default(), value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_and_foreign_files_are_found() {
        let page = "<h1 id=\"one\"><a class=\"x\" href=\"#one\">1</a></h1><a href=\"b.html#two\">2</a><a href=\"b.html#no\">\
                    </a><a href=\"../c.html\"></a><a href=\"https://x.org\"></a><script src=\"https://x.org/x.js\"></script>";
        let files = [("sub/a.html", Some(page)), ("sub/b.html", Some("<p id=\"two\">")), ("x.css", None)];
        let files = files.map(|(name, text)| (PathBuf::from(name), text.map(str::to_owned)));
        let expected = [
            "sub/a.html: `b.html#no` names a heading that does not exist",
            "sub/a.html: `../c.html` does not exist",
            "sub/a.html: `https://x.org/x.js` is loaded from elsewhere",
        ];
        assert_eq!(problems(&BTreeMap::from(files)), expected);
    }
}
