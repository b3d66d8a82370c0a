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
    /// What its `use` lines name, by the name that they bind.
    imports: BTreeMap<String, Path>,
    /// The same of its `pub use` lines.
    exports: BTreeMap<String, Path>,
}

/// The modules of a crate by their paths.
type Crate<'a> = BTreeMap<Path, Module<'a>>;

pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    let mut crates: BTreeMap<&str, Crate<'_>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is("rs")) {
        if let Some((name, path)) = file.name.split_once("/src/") {
            let path = module_path(path);
            let code = code(&file.text);
            let (imports, exports) = imports(&code, &path);
            crates.entry(name).or_default().insert(path, Module { file: &file.name, code, imports, exports });
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

/// The names that a module's `use` lines bind, with what they stand for; then those that it gives on.
fn imports(code: &str, module: &[String]) -> (BTreeMap<String, Path>, BTreeMap<String, Path>) {
    let (mut imports, mut exports) = (BTreeMap::new(), BTreeMap::new());
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let before = rest[..at].rsplit('\n').next().unwrap_or_default().trim();
        let end = rest[at..].find(';').map_or(rest.len(), |end| at + end);
        if before.is_empty() || before.starts_with("pub") {
            let bound = if before.is_empty() { &mut imports } else { &mut exports };
            tree(&rest[at + 4..end], &Path::new(), &mut |name, path| {
                bound.insert(name, absolute(&path, module));
            });
        }
        rest = &rest[at + 4..];
    }
    (imports, exports)
}

/// Takes a `use` tree apart.
fn tree(text: &str, before: &Path, found: &mut impl FnMut(String, Path)) {
    let text = text.trim();
    let (head, group) = match text.split_once('{') {
        Some((head, group)) => (head.trim_end_matches("::"), group.rsplit_once('}').map(|(group, _)| group)),
        None => (text, None),
    };
    let (head, alias) = head.split_once(" as ").unwrap_or((head, ""));
    let mut path = before.clone();
    path.extend(head.split("::").map(str::trim).filter(|s| !s.is_empty() && *s != "self").map(str::to_owned));
    let Some(group) = group else {
        let name = if alias.is_empty() { path.last().cloned().unwrap_or_default() } else { alias.trim().to_owned() };
        found(name, path);
        return;
    };
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !group[begin..at].trim().is_empty() {
                    tree(&group[begin..at], &path, found);
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
}

/// A path from the root of the crate; one that names neither the root nor a parent is relative to the module.
fn absolute(path: &[String], module: &[String]) -> Path {
    let mut from = module.to_vec();
    let mut rest = path;
    match path.first().map(String::as_str) {
        Some("crate") => {
            from.clear();
            rest = &path[1..];
        }
        Some("super") => {
            let ups = path.iter().take_while(|segment| *segment == "super").count();
            from.truncate(module.len().saturating_sub(ups));
            rest = &path[ups..];
        }
        _ => {}
    }
    from.extend_from_slice(rest);
    from
}

/// The module that defines what a path names, if it names more than a module.
fn defined_in(path: &[String], modules: &Crate<'_>, hops: usize) -> Option<Path> {
    let depth = (0..path.len()).rev().find(|depth| modules.contains_key(&path[..*depth]))?;
    let (module, name) = (&path[..depth], &path[depth]);
    if modules.contains_key(path) {
        return None;
    }
    match modules[module].exports.get(name) {
        Some(target) if hops > 0 => {
            let target: Path = target.iter().chain(&path[depth + 1..]).cloned().collect();
            match defined_in(&target, modules, hops - 1) {
                Some(definer) => Some(definer),
                None if modules.contains_key(&target) => None,
                None => Some(module.to_vec()),
            }
        }
        _ => Some(module.to_vec()),
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
            if let Some(import) = module.imports.get(first).or_else(|| module.exports.get(first)) {
                return Some(import.iter().chain(&named[1..]).cloned().collect());
            }
            let mut child = path.clone();
            child.push(first.clone());
            let ours = matches!(first.as_str(), "crate" | "super") || modules.contains_key(&child);
            ours.then(|| absolute(&named, path))
        });
        let used: Vec<Path> = named.chain(module.imports.values().cloned()).collect();
        for definer in used.iter().filter_map(|used| defined_in(used, modules, 8)) {
            if definer != *path {
                arrows.insert((module.file, modules[&definer].file));
            }
        }
    }
    arrows
}

/// Sets of files, each of which reaches all others of its set (Tarjan 1972), sorted.
fn circles<'a>(arrows: &BTreeSet<(&'a str, &'a str)>) -> Vec<Vec<&'a str>> {
    let mut search = Search { arrows, numbers: BTreeMap::new(), low: BTreeMap::new(), open: Vec::new(), found: vec![] };
    for (file, _) in arrows {
        if !search.numbers.contains_key(file) {
            search.visit(file);
        }
    }
    search.found
}

struct Search<'a, 's> {
    arrows: &'s BTreeSet<(&'a str, &'a str)>,
    /// Files in order of their first visit.
    numbers: BTreeMap<&'a str, usize>,
    /// The least number that is reached from a file, through files of no finished set.
    low: BTreeMap<&'a str, usize>,
    open: Vec<&'a str>,
    found: Vec<Vec<&'a str>>,
}

impl<'a> Search<'a, '_> {
    fn visit(&mut self, file: &'a str) {
        let number = self.numbers.len();
        self.numbers.insert(file, number);
        self.open.push(file);
        let mut low = number;
        for &(_, to) in self.arrows.range((file, "")..).take_while(|(from, _)| *from == file) {
            if !self.numbers.contains_key(to) {
                self.visit(to);
                low = low.min(self.low[to]);
            } else if self.open.contains(&to) {
                low = low.min(self.numbers[to]);
            }
        }
        self.low.insert(file, low);
        if low == number {
            let first = self.open.iter().position(|open| *open == file).unwrap_or(0);
            let mut circle = self.open.split_off(first);
            circle.sort_unstable();
            self.found.push(circle);
        }
    }
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
