//! Follows CONTRIBUTING.md's recipe for a new queue order, literally, in a copy of the tree.
//!
//! A block `rust elsewhere: ... file=PATH` becomes that file; the `+` lines of a block `diff elsewhere: ... file=PATH` go
//! after its other lines, which that file must have side by side, once. Then the conformance tests of the copy's engine
//! must pass and have run the new order.

use std::path::Path;
use std::process::Command;

const DOCUMENT: &str = "CONTRIBUTING.md";

/// Copies what git tracks to a folder of the target folder `target`, follows the recipe there and runs the tests.
pub(crate) fn run(root: &Path, target: &Path) -> Result<String, String> {
    // Always the same place, so that cargo builds no more than what changed since the last time.
    let copy = target.join("recipe");
    let _ = std::fs::remove_dir_all(&copy);
    copy_tree(root, &copy)?;
    let name = follow(root, &copy)?;
    let result = test(&copy, target, &name);
    let _ = std::fs::remove_dir_all(&copy);
    result
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

/// Applies the blocks; returns the name of the new part: that of its file.
fn follow(root: &Path, copy: &Path) -> Result<String, String> {
    let text = read(&root.join(DOCUMENT))?;
    let mut new = None;
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
                new = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                block.join("\n") + "\n"
            }
            "diff" => registered(&read(&path)?, &block).map_err(|what| format!("{DOCUMENT}, {file}: {what}"))?,
            other => return Err(format!("{DOCUMENT}: a block of `{other}` for {file}")),
        };
        std::fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    new.ok_or_else(|| format!("{DOCUMENT} has no recipe with a new file"))
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

fn test(copy: &Path, target: &Path, name: &str) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--locked", "--package", "powersweep-engine", "--test", "it", "combinations::"])
        // The tests must see it by the registry alone.
        .env("POWERSWEEP_PART", name)
        .env("CARGO_TARGET_DIR", target)
        .current_dir(copy)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    let told = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && told.contains("combinations_conform ... ok") {
        Ok(format!("the queue order `{name}` was added as {DOCUMENT} says and conforms"))
    } else {
        Err(format!("{told}the queue order `{name}`, added as {DOCUMENT} says, does not conform"))
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_lines_follow_the_lines_that_stay() {
        assert_eq!(registered("a\nb\nc\n", &[" b", "+x"]), Ok("a\nb\nx\nc\n".to_owned()));
        assert!(registered("a\nb\nb\n", &[" b", "+x"]).is_err());
        assert!(registered("a\n", &["+x"]).is_err());
        assert!(registered("a\n", &[" a", "-x"]).is_err());
    }
}
