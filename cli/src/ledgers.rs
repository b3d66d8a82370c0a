//! Ledgers on the screen.

use serde_json::Value as Json;

use crate::screen;

/// A ledger for people.
pub fn text(ledger: &Json) -> String {
    let count = |name: &str| ledger[name].as_u64().unwrap_or_default();
    let word = |of: &Json, name: &str| of[name].as_str().map(|text| powersweep_proto::plain(text).into_owned());
    let (read, kept) = (count("read_count"), count("kept_count"));
    let mut table = screen::table();
    table.set_header(["effect", "rows", "rule", "first line", "meaning"]);
    table.add_row(["read", &read.to_string()]);
    table.add_row(["kept", &kept.to_string()]);
    for rule in ledger["rules"].as_array().into_iter().flatten() {
        let number = |name: &str| rule[name].as_u64().map(|count| count.to_string());
        let cells = [
            word(rule, "effect"),
            number("rows_count"),
            word(rule, "rule"),
            number("first_line"),
            word(rule, "meaning"),
        ];
        table.add_row(cells.map(Option::unwrap_or_default));
    }
    let signal = word(ledger, "signal").map_or_else(String::new, |label| format!("signal {label}, "));
    let file = word(ledger, "file").unwrap_or_default();
    let dropped = read.saturating_sub(kept);
    format!("{signal}{file}: {} read = {kept} kept + {dropped} dropped\n{table}", screen::count(read, "row"))
}
