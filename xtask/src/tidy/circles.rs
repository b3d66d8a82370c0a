//! Files that import each other in a circle can only be understood together: a circle has a ceiling.
//!
//! An arrow goes from a file to each file of its crate whose items it names, in `use` lines and in code, tests aside.
//! Names that a module re-exports count for the file that defines them; re-exports and declarations of modules draw no
//! arrows of their own.

use std::collections::{BTreeMap, BTreeSet};

use super::File;
use super::source::Tests;

/// Files that may import each other in one circle.
const CEILING: usize = 10;

/// Segments of a path, from the root of a crate.
type Path = Vec<String>;

/// A file of a crate, as a module.
struct Module<'a> {
    file: &'a str,
    /// Code without comments and tests.
    code: String,
    /// The targets of its `use` lines, by the names that they bind, and whether the module re-exports the name.
    names: BTreeMap<String, (Path, bool)>,
}

/// The modules of a crate by their paths.
type Crate<'a> = BTreeMap<Path, Module<'a>>;

pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    let mut crates: BTreeMap<&str, Crate<'_>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is("rs")) {
        if let Some((name, path)) = file.name.split_once("/src/") {
            let path = module_path(path);
            let code = code(&file.text);
            let names = names(&code, &path);
            crates.entry(name).or_default().insert(path, Module { file: &file.name, code, names });
        }
    }
    for modules in crates.values() {
        let arrows = arrows(modules);
        for circle in circles(&arrows).into_iter().filter(|circle| circle.len() > CEILING) {
            let inside = |(from, to): &(&str, &str)| circle.contains(from) && circle.contains(to);
            let ties: Vec<String> =
                arrows.iter().copied().filter(inside).map(|(from, to)| format!("\n  {from} -> {to}")).collect();
            violations.push(format!(
                "{}:1: {} files import each other, at most {CEILING} may:{}",
                circle[0],
                circle.len(),
                ties.concat()
            ));
        }
    }
}

/// `a/b.rs` and `a/b/mod.rs` are the module a::b.
fn module_path(file: &str) -> Path {
    let name = file.trim_end_matches(".rs");
    let name = name.strip_suffix("/mod").unwrap_or(name);
    if matches!(name, "lib" | "main") { Path::new() } else { name.split('/').map(str::to_owned).collect() }
}

/// A file's code without comments and tests.
fn code(text: &str) -> String {
    let mut tests = Tests::new();
    let mut kept = String::new();
    for line in text.lines() {
        let code = line.trim_start();
        if code.is_empty() || code.starts_with("//") || tests.at(code, line.len() - code.len()) {
            continue;
        }
        kept.push_str(code.split(" // ").next().unwrap_or_default());
        kept.push('\n');
    }
    kept
}

/// The names that a module's `use` lines bind.
fn names(code: &str, module: &[String]) -> BTreeMap<String, (Path, bool)> {
    let mut names = BTreeMap::new();
    for (at, _) in code.match_indices("use ") {
        let before = code[..at].rsplit('\n').next().unwrap_or_default().trim();
        let exported = before.starts_with("pub");
        if !exported && !before.is_empty() {
            continue;
        }
        for path in flat(code[at + 4..].split(';').next().unwrap_or_default()) {
            let (path, alias) = path.split_once(" as ").unwrap_or((&path, ""));
            let segments = path.split("::").map(str::trim).filter(|s| !s.is_empty() && *s != "self");
            let path: Path = segments.map(str::to_owned).collect();
            let last = path.last().cloned().unwrap_or_default();
            let name = if alias.is_empty() { last } else { alias.trim().to_owned() };
            names.insert(name, (absolute(&path, module), exported));
        }
    }
    names
}

/// The paths of a `use` tree.
fn flat(tree: &str) -> Vec<String> {
    let Some((head, group)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let mut depth = 0;
    let items = group.rsplit_once('}').map_or(group, |(group, _)| group).split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    items.filter(|item| !item.trim().is_empty()).flat_map(|item| flat(&format!("{head}{}", item.trim()))).collect()
}

/// A path from the root of the crate; one that names neither the root nor a parent is relative to the module.
fn absolute(path: &[String], module: &[String]) -> Path {
    let ups = path.iter().take_while(|segment| *segment == "super").count();
    let (from, path) = match path {
        [first, below @ ..] if first == "crate" => (&[][..], below),
        _ => (&module[..module.len().saturating_sub(ups)], &path[ups..]),
    };
    [from, path].concat()
}

/// The module that defines the item that a path names; `None` if the path names a module.
fn defined_in(path: &[String], modules: &Crate<'_>, hops: usize) -> Option<Path> {
    if modules.contains_key(path) {
        return None;
    }
    let depth = (0..path.len()).rev().find(|depth| modules.contains_key(&path[..*depth]))?;
    let (module, name) = (&path[..depth], &path[depth]);
    let exported = modules[module].names.get(name).filter(|(_, exported)| *exported && hops > 0);
    match exported.map(|(target, _)| [&target[..], &path[depth + 1..]].concat()) {
        Some(target) if modules.contains_key(&target) => None,
        Some(target) => defined_in(&target, modules, hops - 1).or_else(|| Some(module.to_vec())),
        None => Some(module.to_vec()),
    }
}

/// Every path of some code: names joined by `::`. Without macros: `crate::name!` does not show where it is defined.
fn paths(code: &str) -> impl Iterator<Item = Path> + '_ {
    let in_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '!');
    let words = code.split(move |c| !in_path(c)).filter(|word| word.contains("::") && !word.ends_with('!'));
    words.map(|word| {
        let segments = word.split("::").map(|segment| segment.trim_matches([':', '!']));
        segments.filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
    })
}

fn arrows<'a>(modules: &Crate<'a>) -> BTreeSet<(&'a str, &'a str)> {
    let mut arrows = BTreeSet::new();
    for (path, module) in modules {
        let named = paths(&module.code).filter_map(|named: Path| {
            let first = named.first()?;
            if let Some((target, _)) = module.names.get(first) {
                return Some([&target[..], &named[1..]].concat());
            }
            let child = [&path[..], std::slice::from_ref(first)].concat();
            let ours = matches!(first.as_str(), "crate" | "super") || modules.contains_key(&child);
            ours.then(|| absolute(&named, path))
        });
        let imported = module.names.values().filter(|(_, exported)| !exported).map(|(target, _)| target.clone());
        for definer in named.chain(imported).filter_map(|used| defined_in(&used, modules, 8)) {
            if definer != *path {
                arrows.insert((module.file, modules[&definer].file));
            }
        }
    }
    arrows
}

/// Sets of files, each of which reaches all others of its set, sorted.
fn circles<'a>(arrows: &BTreeSet<(&'a str, &'a str)>) -> BTreeSet<Vec<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        arrows.iter().map(|(from, _)| (*from, reached(from, arrows))).collect();
    let circle = |(from, to): (&&'a str, &BTreeSet<&'a str>)| {
        to.iter().filter(|to| reached.get(*to).is_some_and(|back| back.contains(from))).copied().collect()
    };
    reached.iter().map(circle).collect()
}

/// The files to which arrows lead from a file.
fn reached<'a>(from: &'a str, arrows: &BTreeSet<(&'a str, &'a str)>) -> BTreeSet<&'a str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        let next = arrows.range((file, "")..).take_while(|(from, _)| *from == file);
        open.extend(next.map(|(_, to)| *to).filter(|to| found.insert(*to)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> File {
        File { name: name.to_owned(), text: text.to_owned() }
    }

    fn found(files: &[File]) -> Vec<String> {
        let mut found = Vec::new();
        check(files, &mut found);
        found
    }

    /// `n` files of a crate, each of which names the next; `last` is the text of the last.
    fn chain(n: usize, last: &str) -> Vec<File> {
        let mut files: Vec<File> =
            (1..n).map(|i| file(&format!("a/src/m{i}.rs"), &format!("use crate::m{}::X;\n", i + 1))).collect();
        files.push(file(&format!("a/src/m{n}.rs"), last));
        files
    }

    #[test]
    fn a_circle_above_the_ceiling_is_found_with_its_arrows() {
        assert!(found(&chain(CEILING + 1, "")).is_empty(), "a chain is no circle");
        assert!(found(&chain(CEILING, "use crate::m1::X;\n")).is_empty(), "a circle at the ceiling");
        for last in ["use crate::m1::X;\n", "use super::{m1::{X}, y};\n", "fn a() {\n    crate::m1::b();\n}\n"] {
            let found = found(&chain(CEILING + 1, last));
            assert_eq!(found.len(), 1, "{last}");
            assert!(found[0].starts_with("a/src/m1.rs:1: 11 files import each other, at most 10 may:"), "{found:?}");
            assert!(found[0].contains("a/src/m11.rs -> a/src/m1.rs"), "{found:?}");
        }
    }

    #[test]
    fn tests_comments_macros_and_other_crates_draw_no_arrows() {
        for last in [
            "#[cfg(test)]\nmod tests {\n    use crate::m1::X;\n}\n",
            "// crate::m1::X\n",
            "use b::m1::X;\n",
            "crate::m1::record! {}\n",
        ] {
            assert!(found(&chain(CEILING + 1, last)).is_empty(), "{last}");
        }
    }

    #[test]
    fn names_count_for_the_file_that_defines_them() {
        let named = |text: &str| {
            let mut files = chain(CEILING + 1, text);
            files.push(file("a/src/face/mod.rs", "pub mod inner;\npub use inner::Y;\npub struct Z;\n"));
            files.push(file("a/src/face/inner.rs", "use crate::m1::X;\n"));
            found(&files).len()
        };
        assert_eq!(named("use crate::face::Y;\n"), 1, "a re-export is followed");
        assert_eq!(named("use crate::face;\nfn a() { face::inner::b() }\n"), 1, "an imported module is followed");
        assert_eq!(named("use crate::face::Z;\n"), 1, "and so is the file that re-exports");
        assert_eq!(named("use crate::face;\n"), 0, "a module alone is no item");
    }
}
