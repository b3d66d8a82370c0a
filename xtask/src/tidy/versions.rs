//! Files that repeat the version, or the version of Rust, of `Cargo.toml` repeat it rightly.

use super::File;

/// The beginning of names of files, the text before a version, and the key in `Cargo.toml`.
type Copy = (&'static str, &'static str, &'static str);

/// All copies.
const COPIES: &[Copy] = &[
    ("deploy/kubernetes/overlays/", "newTag: \"", "version"),
    ("docs/kubernetes.md", "registry.example/powersweep:", "version"),
    ("docs/install.md", "powersweep-", "version"),
    ("docs/install.md", "/opt/powersweep/", "version"),
    ("docs/install.md", "copy `recipes/", "version"),
    ("Dockerfile", "ARG BUILDER=rust:", "rust-version"),
];

pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    check_copies(COPIES, files, violations);
}

fn check_copies(copies: &[Copy], files: &[File], violations: &mut Vec<String>) {
    let Some(manifest) = files.iter().find(|file| file.name == "Cargo.toml") else { return };
    for (name, before, key) in copies {
        let Some(wanted) = value(&manifest.text, key) else {
            violations.push(format!("Cargo.toml:1: it has no `{key}`"));
            continue;
        };
        let mut found = 0;
        for file in files.iter().filter(|file| file.name.starts_with(name)) {
            for (line, number) in file.text.lines().zip(1..) {
                for rest in line.split(before).skip(1) {
                    found += 1;
                    if !is_version(rest, wanted) {
                        violations.push(format!("{}:{number}: `{key}` is {wanted} in Cargo.toml", file.name));
                    }
                }
            }
        }
        if found == 0 {
            violations.push(format!("{name}:1: there is no `{before}`, which this rule looks for"));
        }
    }
}

fn value<'a>(manifest: &'a str, key: &str) -> Option<&'a str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
    line.and_then(|rest| rest.strip_suffix('"'))
}

/// Whether a text begins with this version, or with its first patch.
fn is_version(text: &str, wanted: &str) -> bool {
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let rest = text.strip_prefix(wanted).map(|rest| rest.strip_prefix(".0").unwrap_or(rest));
    rest.is_some_and(|rest| !digit(rest) && !rest.strip_prefix('.').is_some_and(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_are_found() {
        let file = |name: &str, text: &str| File { name: name.into(), text: text.into() };
        let copies = [("a/", "tag: \"", "version"), ("b.md", "x:", "version"), ("Dockerfile", "rust:", "rust-version")];
        let mut files = vec![
            file("Cargo.toml", "version = \"0.2.0\"\nrust-version = \"1.95\"\n"),
            file("a/b.yaml", "x\n  tag: \"0.2.0\"\n"),
            file("b.md", "x:0.2.0 . && x:0.2.0.eb\n"),
            file("Dockerfile", "ARG BUILDER=rust:1.95.0-bookworm\n"),
        ];
        let found = |files: &[File]| {
            let mut found = Vec::new();
            check_copies(&copies, files, &mut found);
            found
        };
        assert_eq!(found(&files), Vec::<String>::new());
        files[1].text = "tag: \"0.2.1\"\n".into();
        files[2].text = "x:0.2.0 . && x:0.2.01\n".into();
        files[3].text = "ARG BUILDER=rust:1.95.1-bookworm\n".into();
        let places: Vec<String> =
            found(&files).iter().map(|line| line[..line.find(": ").unwrap()].to_owned()).collect();
        assert_eq!(places, ["a/b.yaml:1", "b.md:1", "Dockerfile:1"]);
        files.truncate(1);
        assert_eq!(found(&files).len(), 3, "a rule that finds no file is no rule");
        assert_eq!(found(&[]), Vec::<String>::new());
    }
}
