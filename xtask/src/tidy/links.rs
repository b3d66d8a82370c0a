//! The target of every link between pages exists: the file, and the heading after `#`.

use std::path::{Path, PathBuf};

use super::File;

pub(super) fn check(root: &Path, files: &[File], violations: &mut Vec<String>) {
    for page in files.iter().filter(|file| file.is("md")) {
        for (number, target) in links(&page.text) {
            if is_address(target) {
                continue;
            }
            let (path, heading) = resolved(page, target);
            let exists = root.join(&path).exists() || file_at(files, &path).is_some();
            let wrong = if !exists {
                "does not exist"
            } else if heading.is_empty() || has_heading(files, &path, heading) {
                continue;
            } else {
                "names a heading that does not exist"
            };
            violations.push(format!("{}:{number}: `{target}` {wrong}", page.name));
        }
    }
}

/// The files of the tree that a page links to, the page itself left out.
pub(super) fn pages_of(page: &File) -> Vec<PathBuf> {
    let inner = links(&page.text).into_iter().filter(|(_, target)| !is_address(target));
    let targets = inner.map(|(_, target)| resolved(page, target).0);
    targets.filter(|path| path != Path::new(&page.name)).collect()
}

fn is_address(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// Path below the root and heading of a link's target.
fn resolved<'a>(page: &File, target: &'a str) -> (PathBuf, &'a str) {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(&page.name).parent().unwrap_or(Path::new(""));
    let path = if path.is_empty() { PathBuf::from(&page.name) } else { crate::paths::plain(&folder.join(path)) };
    (path, heading)
}

/// Targets of `[text](target)` outside code, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // Pieces with an odd number are between backticks.
        for piece in line.split('`').step_by(2) {
            let targets = piece.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
            found.extend(targets.map(|target| (number, target)));
        }
    }
    found
}

/// Lines outside fenced code, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((number + 1, line))
    })
}

fn has_heading(files: &[File], page: &Path, wanted: &str) -> bool {
    let Some(file) = file_at(files, page) else { return false };
    prose(&file.text).any(|(_, line)| line.starts_with('#') && slug(line.trim_start_matches('#')) == wanted)
}

fn file_at<'a>(files: &'a [File], path: &Path) -> Option<&'a File> {
    let name = path.to_string_lossy().replace('\\', "/");
    files.iter().find(|file| file.name == name)
}

/// A heading as the part of a link after `#`.
fn slug(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_without_a_target_are_found() {
        let root = crate::root();
        let page = File {
            name: "results/x.md".into(),
            text: "# One two: *three*\n[a](../README.md) [b](#one-two-three) [c](https://x.org) `[d](code)`\n\
                   ```\n[e](fenced)\n```\n[f](gone.md)\n[g](#four) and [h](../gone/)\n"
                .into(),
        };
        let mut found = Vec::new();
        check(&root, &[page], &mut found);
        let expected = [
            "results/x.md:6: `gone.md` does not exist",
            "results/x.md:7: `#four` names a heading that does not exist",
            "results/x.md:7: `../gone/` does not exist",
        ];
        assert_eq!(found, expected);
    }
}
