//! The bill of materials of the released binary in CycloneDX: every crate that is linked, with version, licence and
//! checksum. `cargo tree` knows the crates of a target, `Cargo.lock` their checksums.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// The package of the program.
const PROGRAM: &str = "powersweep-cli";

/// A crate: name, version, licence. One of this workspace has no checksum.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Linked {
    name: String,
    version: String,
    licence: String,
}

/// The document for the binary of a target.
pub(crate) fn run(root: &Path, target: &str) -> Result<String, String> {
    let tree = crate::cargo()
        .args(["tree", "--locked", "--package", PROGRAM, "--features", "cloud,figures,wasm", "--target", target])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{p};{l}"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !tree.status.success() {
        return Err(String::from_utf8_lossy(&tree.stderr).into_owned());
    }
    let lock = root.join("Cargo.lock");
    let lock = std::fs::read_to_string(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    document(&String::from_utf8_lossy(&tree.stdout), &checksums(&lock))
}

/// The crates of `cargo tree`, each once.
fn linked(tree: &str) -> Result<BTreeSet<Linked>, String> {
    let crates = tree.lines().filter(|line| !line.is_empty()).map(|line| {
        let (package, licence) = line.split_once(';').ok_or_else(|| format!("no licence in {line:?}"))?;
        let mut words = package.split(' ');
        let name = words.next().unwrap_or_default().to_owned();
        let version = words.next().and_then(|word| word.strip_prefix('v'));
        let version = version.ok_or_else(|| format!("no version in {line:?}"))?.to_owned();
        // A crate that was shown before ends in a mark.
        let licence = licence.trim_end_matches(" (*)").replace('/', " OR ").replace("  ", " ");
        Ok(Linked { name, version, licence })
    });
    crates.collect()
}

/// Checksums in `Cargo.lock` by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        line.and_then(|rest| rest.strip_suffix('"')).map(str::to_owned)
    };
    let blocks = lock.split("[[package]]").skip(1);
    let known =
        blocks.filter_map(|block| Some(((value(block, "name")?, value(block, "version")?), value(block, "checksum")?)));
    known.collect()
}

fn document(tree: &str, checksums: &BTreeMap<(String, String), String>) -> Result<String, String> {
    let crates = linked(tree)?;
    let own = crates.iter().find(|linked| linked.name == PROGRAM).ok_or("the tree has no program")?;
    let mut json = String::from("{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.5\",\n  \"version\": 1,\n");
    let _ = writeln!(json, "  \"metadata\": {{\"component\": {}}},", component("application", own, None));
    let others = crates.iter().filter(|linked| linked.name != PROGRAM).map(|linked| {
        let checksum = checksums.get(&(linked.name.clone(), linked.version.clone()));
        component("library", linked, checksum.map(String::as_str))
    });
    let others: Vec<String> = others.collect();
    let _ = write!(json, "  \"components\": [\n    {}\n  ]\n}}", others.join(",\n    "));
    Ok(json)
}

fn component(kind: &str, linked: &Linked, checksum: Option<&str>) -> String {
    let Linked { name, version, licence } = linked;
    let purl = format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"));
    let mut fields = vec![
        format!("\"type\": {}", quoted(kind)),
        format!("\"bom-ref\": {}", quoted(&purl)),
        format!("\"name\": {}", quoted(name)),
        format!("\"version\": {}", quoted(version)),
        format!("\"purl\": {}", quoted(&purl)),
    ];
    if !licence.is_empty() {
        fields.push(format!("\"licenses\": [{{\"expression\": {}}}]", quoted(licence)));
    }
    if let Some(checksum) = checksum {
        fields.push(format!("\"hashes\": [{{\"alg\": \"SHA-256\", \"content\": {}}}]", quoted(checksum)));
    }
    format!("{{{}}}", fields.join(", "))
}

/// A JSON text. Names, versions and licences have no control characters.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "powersweep-cli v0.1.0 (/x/cli);Apache-2.0 OR MIT\nserde v1.0.2;MIT/Apache-2.0\n\
                        derive v1.0.2+a (proc-macro);MIT\n\nserde v1.0.2;MIT/Apache-2.0 (*)\n";
    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"powersweep-cli\"\nversion = \"0.1.0\"\n\n[[package]]\n\
                        name = \"serde\"\nversion = \"1.0.2\"\nsource = \"r\"\nchecksum = \"ab12\"\n";

    #[test]
    fn each_crate_is_listed_once_with_its_checksum() {
        let json = document(TREE, &checksums(LOCK)).expect("the tree is right");
        assert_eq!(json.matches("pkg:cargo/serde@1.0.2\", \"licenses\"").count(), 1, "{json}");
        assert!(json.contains(
            "\"expression\": \"MIT OR Apache-2.0\"}], \"hashes\": [{\"alg\": \"SHA-256\", \"content\": \"ab12\"}]"
        ));
        assert!(json.contains("pkg:cargo/derive@1.0.2%2Ba"), "{json}");
        assert!(json.contains("\"metadata\": {\"component\": {\"type\": \"application\""));
        assert_eq!(json.matches("\"name\": \"powersweep-cli\"").count(), 1);
    }

    #[test]
    fn unknown_lines_are_refused() {
        assert!(linked("powersweep v0.1.0\n").is_err());
        assert!(linked("powersweep;MIT\n").is_err());
        assert!(document("serde v1.0.2;MIT\n", &BTreeMap::new()).is_err());
    }
}
