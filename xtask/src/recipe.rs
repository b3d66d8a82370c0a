//! Follows the examples of new components literally, in a copy of the tree: the one of CONTRIBUTING.md and those of the guide's
//! tutorials.
//!
//! A block `rust elsewhere: ... file=PATH` becomes that file; the `+` lines of a block `diff elsewhere: ... file=PATH` go
//! after its other lines, which that file must have side by side, once. Then the copy's conformance tests must pass and
//! have run each new component.

use std::path::Path;
use std::process::Command;

const DOCUMENTS: [&str; 3] = ["CONTRIBUTING.md", "docs/tutorials/components.md", "docs/tutorials/policy.md"];

/// The conformance tests of the engine by kind of component: a text in the file of such a component, the filter of the
/// tests, and the test that must have passed.
const TESTS: [(&str, &str, &str); 10] = [
    ("Keyed {", "combinations::", "combinations_conform"),
    (" ListRule for ", "combinations::", "combinations_conform"),
    (" Gears for ", "combinations::", "combinations_conform"),
    (" CapacityRule for ", "combinations::", "combinations_conform"),
    (" Predictor for ", "combinations::", "combinations_conform"),
    (" Corrector for ", "combinations::", "combinations_conform"),
    (" CapRule for ", "combinations::", "combinations_conform"),
    (" ClassPolicy for ", "aldaoud::conforming::", "policies_of_classes_conform"),
    ("Generator {", "sources::", "generators_conform"),
    ("LogFormat {", "sources::", "formats_conform"),
];

/// A new component: its name in manifests, and its kind.
#[derive(Debug, PartialEq)]
struct Added {
    name: String,
    kind: &'static str,
}

/// Copies the files that git tracks to a folder of the target folder `target`, follows the recipe there and runs the tests.
pub(crate) fn run(root: &Path, target: &Path) -> Result<String, String> {
    // Always the same place, so that cargo builds only what changed since the last run.
    let copy = target.join("recipe");
    let _ = std::fs::remove_dir_all(&copy);
    copy_tree(root, &copy)?;
    let added = follow(root, &copy)?;
    let result = added.iter().map(|added| test(&copy, target, added)).collect::<Result<Vec<String>, String>>();
    let _ = std::fs::remove_dir_all(&copy);
    Ok(result?.join("\n"))
}

fn copy_tree(root: &Path, copy: &Path) -> Result<(), String> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let listed = listed.map_err(|error| format!("cannot start git: {error}"))?;
    for name in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (root.join(name), copy.join(name));
        let folder = to.parent().unwrap_or(copy);
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        std::fs::copy(&from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    Ok(())
}

/// Applies the blocks; returns the new components.
fn follow(root: &Path, copy: &Path) -> Result<Vec<Added>, String> {
    let mut new = Vec::new();
    for document in DOCUMENTS {
        new.extend(follow_document(document, root, copy)?);
    }
    // Every kind has a recipe: one that is no longer recognised must not pass for followed.
    match TESTS.iter().find(|(kind, ..)| new.iter().all(|added: &Added| added.kind != *kind)) {
        Some((kind, ..)) => Err(format!("no document has a recipe with a new file that says `{}`", kind.trim())),
        None => Ok(new),
    }
}

fn follow_document(document: &str, root: &Path, copy: &Path) -> Result<Vec<Added>, String> {
    let text = read(&root.join(document))?;
    let mut new = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((language, file)) = line.strip_prefix("```").and_then(|info| info.split_once(" elsewhere: ")) else {
            continue;
        };
        let Some((_, file)) = file.split_once("file=") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        let path = copy.join(file);
        let content = match language {
            "rust" => {
                new.push(added(&block).map_err(|what| format!("{document}, {file}: {what}"))?);
                block.join("\n") + "\n"
            }
            "diff" => registered(&read(&path)?, &block).map_err(|what| format!("{document}, {file}: {what}"))?,
            other => return Err(format!("{document}: a block of `{other}` for {file}")),
        };
        std::fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(new)
}

/// The component that a new file describes.
fn added(block: &[&str]) -> Result<Added, String> {
    let field = |key: &str| block.iter().find_map(|line| line.trim().strip_prefix(key)?.trim().strip_suffix(','));
    let name = field("name:").and_then(|name| name.strip_prefix('"')?.strip_suffix('"')).ok_or("it has no `name`")?;
    let says = |text: &str| block.iter().any(|line| line.contains(text));
    let &(kind, ..) = TESTS.iter().find(|(kind, ..)| says(kind)).ok_or("no tests are known for it")?;
    Ok(Added { name: name.to_owned(), kind })
}

/// The text with the block's new lines.
fn registered(text: &str, block: &[&str]) -> Result<String, String> {
    let kept: Vec<&str> = block.iter().filter_map(|line| line.strip_prefix(' ')).collect();
    let added: Vec<&str> = block.iter().filter_map(|line| line.strip_prefix('+')).collect();
    if kept.is_empty() || added.is_empty() || kept.len() + added.len() != block.len() {
        return Err("a diff has lines that stay and lines that are new".to_owned());
    }
    let context = kept.join("\n") + "\n";
    if text.matches(&context).count() != 1 {
        return Err(format!("the file does not have these lines once:\n{context}"));
    }
    Ok(text.replace(&context, &(context.clone() + &added.join("\n") + "\n")))
}

fn test(copy: &Path, target: &Path, Added { name, kind }: &Added) -> Result<String, String> {
    for (_, filter, must_pass) in TESTS.iter().filter(|(of, ..)| of == kind) {
        let output = crate::cargo()
            .args(["test", "--locked", "--package", "powersweep-engine", "--test", "it", filter])
            // The tests must find it in the list of components.
            .env("POWERSWEEP_COMPONENT", name)
            .env("CARGO_TARGET_DIR", target)
            .current_dir(copy)
            .stderr(std::process::Stdio::inherit())
            .output()
            .map_err(|error| format!("cannot start cargo: {error}"))?;
        let told = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() || !told.contains(&format!("{must_pass} ... ok")) {
            return Err(format!("{told}`{name}`, added as its recipe says, does not conform"));
        }
    }
    Ok(format!("`{name}` was added as its recipe says and conforms"))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_component_is_recognised_by_a_text_in_its_file() {
        let order = added(&["pub static ORDER: Keyed = Keyed {", "    name: \"lifo\","]).expect("it is an order");
        assert_eq!((order.name.as_str(), order.kind), ("lifo", "Keyed {"));
        assert!(added(&["pub static ORDER: Keyed = Keyed {"]).is_err());
        assert!(added(&["    name: \"x\","]).is_err());
    }

    #[test]
    fn new_lines_follow_the_lines_that_stay() {
        assert_eq!(registered("a\nb\nc\n", &[" b", "+x"]), Ok("a\nb\nx\nc\n".to_owned()));
        assert!(registered("a\nb\nb\n", &[" b", "+x"]).is_err());
        assert!(registered("a\n", &["+x"]).is_err());
        assert!(registered("a\n", &[" a", "-x"]).is_err());
    }
}
