//! The vendored files are those that their README names.

use std::process::Command;

fn folder() -> String {
    format!("{}/vendor", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn digests_and_versions_are_those_of_the_readme() {
    let readme = std::fs::read_to_string(format!("{}/README.md", folder())).expect("it is there");
    let rows: Vec<Vec<&str>> =
        readme.lines().filter(|line| line.starts_with("| `")).map(|line| line.split('`').collect()).collect();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let (file, digest) = (row[1], row[5]);
        let output = Command::new("sha256sum").arg(format!("{}/{file}", folder())).output();
        let Ok(output) = output else {
            println!("skipped: there is no sha256sum");
            return;
        };
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(digest), "{file}");
    }
    let script = |name: &str| std::fs::read_to_string(format!("{}/{name}", folder())).expect("it is there");
    assert!(readme.contains("Vega 6.4.0") && script("vega.min.js").contains("version=\"6.4.0\""));
    let lite = script("vega-lite.min.js");
    let at = readme.find("Vega-Lite 6.4.").expect("a version within 6.4");
    let version = &readme[at + "Vega-Lite ".len()..][..5];
    assert!(lite.contains(&format!("\"{version}\"")), "{version}");
}
