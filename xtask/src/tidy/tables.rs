//! One table of answers: rows with their cells are a `Frame` or `Rows` of the crate `dataset`. The crates that show answers
//! have no table type of their own.

/// The crates that show answers.
const SHOWING: [&str; 6] = ["claims", "figures", "dashboard", "powersweep", "cli", "python"];
/// Names of table types and of their parts.
const NAMES: [&str; 8] = ["Table", "Rows", "Frame", "Sheet", "Batch", "Coded", "Column", "Values"];
/// Types of fields that hold cells.
const CELLS: [&str; 6] =
    ["ArrayRef", "Vec<Cell>", "Vec<f64>", "Vec<Option<f64>>", "Vec<Option<String>>", "Vec<Column>"];

/// Checks the file of this name below the root.
pub(super) fn check(name: &str, text: &str, violations: &mut Vec<String>) {
    let (folder, path) = name.split_once('/').unwrap_or_default();
    if !SHOWING.contains(&folder) || !path.starts_with("src/") {
        return;
    }
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let words: Vec<&str> = line.trim().split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let is_type = |pair: &[&str]| matches!(pair[0], "struct" | "enum") && NAMES.contains(&pair[1]);
        if !words.windows(2).any(is_type) {
            continue;
        }
        let mut holds_cells = has_cells(line);
        if line.ends_with('{') {
            let body = lines.by_ref().take_while(|(_, line)| line.trim() != "}");
            holds_cells |= body.filter(|(_, line)| has_cells(line)).count() > 0;
        }
        if holds_cells {
            let what = "a table of answers is a Frame or Rows of the crate dataset";
            violations.push(format!("{name}:{}: {what}", number + 1));
        }
    }
}

fn has_cells(line: &str) -> bool {
    CELLS.iter().any(|cells| line.contains(cells))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(name, text, &mut found);
        found
    }

    #[test]
    fn tables_beside_the_frame_are_found() {
        let table = "/// Rows.\npub struct Table {\n    columns: Vec<Column>,\n}\n";
        assert_eq!(found("figures/src/table.rs", table).len(), 1);
        assert!(found("figures/src/table.rs", table)[0].starts_with("figures/src/table.rs:2: a table of answers"));
        assert_eq!(found("cli/src/x.rs", "enum Values {\n    Numbers(Vec<Option<f64>>),\n}\n").len(), 1);
        assert_eq!(found("cli/src/x.rs", "struct Rows(Vec<ArrayRef>);\n").len(), 1);
        assert!(found("dataset/src/frame.rs", table).is_empty());
        assert!(
            found("cli/src/x.rs", "struct Table(comfy_table::Table);\nstruct Other {\n    x: Vec<f64>,\n}\n")
                .is_empty()
        );
    }
}
