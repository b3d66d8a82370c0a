//! The house rules that a program can check; CONTRIBUTING.md has them for people. Each module is one rule: it checks
//! one file, or the tree, and pushes each violation as `file:line: sentence`.

mod arrows;
mod circles;
mod links;
mod machine;
mod pages;
mod shell;
mod source;
mod tables;
mod versions;
mod words;

use std::fs;
use std::path::Path;

/// A file of the tree.
struct File {
    /// Path below the root, with `/`.
    name: String,
    text: String,
}

impl File {
    fn is(&self, extension: &str) -> bool {
        self.name.rsplit_once('.').is_some_and(|(_, end)| end == extension)
    }
}

/// Checks the whole tree; the error lists every violation with file and line.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let mut files = Vec::new();
    collect(root, root, &mut files)?;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let violations = violations(root, &files);
    if violations.is_empty() {
        Ok(format!("tidy: {} files keep the house rules", files.len()))
    } else {
        Err(format!("{}\ntidy: {} violations", violations.join("\n"), violations.len()))
    }
}

fn violations(root: &Path, files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        machine::check(file, &mut found);
        if file.is("rs") {
            source::check(file, &mut found);
            tables::check(&file.name, &file.text, &mut found);
        }
        if file.name.ends_with("Cargo.toml") {
            arrows::check(file, &mut found);
        }
    }
    circles::check(files, &mut found);
    links::check(root, files, &mut found);
    pages::check(files, &mut found);
    versions::check(files, &mut found);
    words::check(files, &mut found);
    shell::check(root, files, &mut found);
    found
}

/// Every text file below a folder, without the output of tools and runs, and without the libraries of others.
fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) -> Result<(), String> {
    let error = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    for entry in fs::read_dir(folder).map_err(|e| error(folder, e))? {
        let path = entry.map_err(|e| error(folder, e))?.path();
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let last = name.rsplit('/').next().unwrap_or(&name);
        if path.is_dir() {
            let foreign = matches!(last, ".git" | "target" | "generated" | "node_modules" | ".venv" | "__pycache__");
            if !foreign && name != "results/data" {
                collect(root, &path, files)?;
            }
        } else if name != "Cargo.lock" && last != ".git" && !name.ends_with(".min.js") {
            // A binary file has no lines to check.
            if let Ok(text) = String::from_utf8(fs::read(&path).map_err(|e| error(&path, e))?) {
                files.push(File { name, text });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        if let Err(violations) = run(&crate::root()) {
            panic!("{violations}");
        }
    }

    #[test]
    fn every_rule_checks_the_files() {
        let folder = std::env::temp_dir().join(format!("powersweep-tidy-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        write("engine/src/utils/x.rs", "");
        write("engine/Cargo.toml", "[dependencies]\npowersweep-worker.workspace = true\n");
        write("page.md", "[gone](nowhere.md)\n");
        write("run", "#!/bin/bash\nif\n");
        write("notes", concat!("/work", "/shared\n"));
        write("words.sh", concat!("# Who", "ever reads this\n"));
        write("target/x.rs", "not checked: utils");
        let report = run(&folder).expect_err("six violations");
        fs::remove_dir_all(&folder).expect("removed");
        let places =
            ["engine/src/utils/x.rs:1:", "engine/Cargo.toml:2:", "page.md:1:", "run:3:", "notes:1:", "words.sh:1:"];
        for place in places {
            assert!(report.contains(place), "{place} is missing in:\n{report}");
        }
        assert!(report.ends_with("tidy: 6 violations"), "{report}");
    }
}
