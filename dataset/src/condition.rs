//! Conditions on the rows of a table: `COLUMN=VALUE`, also with `!=`, `<`, `<=`, `>` and `>=`.

use std::cmp::Ordering;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;

use powersweep_experiments::reading::{converted, unit_in};

use crate::Cell;
use crate::error::{Error, usage};

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// The operators as they are written; one that begins with another one comes first.
const OPS: [(&str, Op); 7] = [
    ("==", Op::Equal),
    ("!=", Op::NotEqual),
    ("<=", Op::AtMost),
    (">=", Op::AtLeast),
    ("=", Op::Equal),
    ("<", Op::Less),
    (">", Op::Greater),
];

impl Op {
    fn sign(self) -> &'static str {
        OPS.iter().rev().find(|(_, op)| *op == self).map_or("", |(sign, _)| sign)
    }

    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            Op::Equal => order.is_eq(),
            Op::NotEqual => order.is_ne(),
            Op::Less => order.is_lt(),
            Op::AtMost => order.is_le(),
            Op::Greater => order.is_gt(),
            Op::AtLeast => order.is_ge(),
        }
    }
}

/// A condition on one column. An empty value stands for none: `bsld_threshold=` are the rows without a threshold. A row
/// without a value differs from every value, and is neither less nor greater.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Name of the column.
    pub column: String,
    /// The comparison.
    pub op: Op,
    /// What a row's value is compared with.
    pub value: Cell,
}

impl Condition {
    /// The column that the text of a condition begins with.
    pub fn column_of(text: &str) -> &str {
        let text = text.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &text[..end.unwrap_or(text.len())]
    }

    /// The conditions of a list, which commas separate. A comma inside brackets, parentheses or a value in quotes is no separator.
    pub fn split(text: &str) -> Vec<String> {
        let (mut parts, mut depth, mut is_quoted) = (vec![String::new()], 0_u32, false);
        for c in text.chars() {
            let part = parts.last().map_or("", |part| part.trim_end());
            match c {
                '"' if is_quoted || part.ends_with('=') => is_quoted = !is_quoted,
                '[' | '(' if !is_quoted => depth += 1,
                ']' | ')' if !is_quoted => depth = depth.saturating_sub(1),
                _ => {}
            }
            match parts.last_mut() {
                Some(part) if c != ',' || is_quoted || depth > 0 => part.push(c),
                _ => parts.push(String::new()),
            }
        }
        parts.retain(|part| !part.trim().is_empty());
        parts
    }

    /// Reads a condition. `type_of` gives the type of a column, or an error that names similar ones.
    pub fn parse<E: From<Error>>(
        text: &str,
        type_of: impl FnOnce(&str) -> Result<DataType, E>,
    ) -> Result<Condition, E> {
        let column = Condition::column_of(text);
        let rest = &text.trim_start()[column.len()..];
        let found = OPS.iter().find_map(|(sign, op)| Some((rest.trim_start().strip_prefix(sign)?.trim(), *op)));
        let Some((value, op)) = found.filter(|_| !column.is_empty()) else {
            let hint = "write COLUMN=VALUE, or one of != < <= > >=, such as policy=easy or procs>=100";
            return Err(usage(format!("`{text}` is no condition: {hint}")).into());
        };
        let of = type_of(column)?;
        let read = if value.is_empty() { Ok(Cell::Null) } else { parsed(value, &of) };
        let value = read.map_err(|wanted| {
            let in_unit = unit_in(column).and_then(|unit| converted(value, unit));
            let hint =
                in_unit.map_or(String::new(), |number| format!("; for {value}, write {column}{}{number}", op.sign()));
            usage(format!("`{text}`: a value of {column} is {wanted}{hint}"))
        })?;
        let has_order = !matches!(value, Cell::Null | Cell::List(_));
        if !has_order && !matches!(op, Op::Equal | Op::NotEqual) {
            let value = if value.is_null() { "no value" } else { "a list" };
            return Err(usage(format!("`{text}`: {value} has no order: use = or !=")).into());
        }
        if of == DataType::Utf8 && !matches!(op, Op::Equal | Op::NotEqual) {
            let hint = "which are neither less nor greater: use = or !=, or a column of numbers";
            return Err(usage(format!("`{text}`: {column} has texts, {hint}")).into());
        }
        Ok(Condition { column: column.to_owned(), op, value })
    }

    /// Whether a value satisfies it.
    pub fn holds(&self, cell: &Cell) -> bool {
        match (cell.is_null(), self.value.is_null()) {
            (true, true) => self.op == Op::Equal,
            (true, false) | (false, true) => self.op == Op::NotEqual,
            (false, false) => self.op.holds(cell.order(&self.value)),
        }
    }

    /// Whether all values satisfy it that lie from `least` to `greatest`, or none; `None` if only the values tell. Null
    /// may be among them.
    pub fn holds_between(&self, least: &Cell, greatest: &Cell) -> Option<bool> {
        if self.value.is_null() || least.is_null() || greatest.is_null() {
            return None;
        }
        let (low, high) = (least.order(&self.value), greatest.order(&self.value));
        // Null satisfies `!=` alone, so that no other condition is known to hold for all.
        match self.op {
            Op::Equal => (low.is_gt() || high.is_lt()).then_some(false),
            Op::NotEqual => (low.is_gt() || high.is_lt()).then_some(true),
            Op::Less | Op::AtMost => (!self.op.holds(low)).then_some(false),
            Op::Greater | Op::AtLeast => (!self.op.holds(high)).then_some(false),
        }
    }
}

/// The rows of a batch that satisfy all conditions. The batch has their columns.
pub fn satisfying(batch: &RecordBatch, conditions: &[Condition]) -> Result<Vec<usize>, Error> {
    let column = |condition: &Condition| {
        let missing = || usage(format!("the rows have no column `{}`", condition.column));
        batch.column_by_name(&condition.column).ok_or_else(missing)
    };
    let columns = conditions.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    let holds = |row: &usize| conditions.iter().zip(&columns).all(|(only, column)| only.holds(&Cell::of(column, *row)));
    Ok((0..batch.num_rows()).filter(holds).collect())
}

/// A value of a type, or what is expected.
fn parsed(text: &str, of: &DataType) -> Result<Cell, &'static str> {
    match of {
        DataType::Boolean => text.parse().map(Cell::Bool).map_err(|_| "true or false"),
        DataType::Int64 => text.parse().map(Cell::Int).or_else(|_| real(text).ok_or("a whole number")),
        DataType::Float64 if text == "unlimited" => Ok(Cell::Real(f64::INFINITY)),
        DataType::Float64 => real(text).ok_or("a number or unlimited"),
        DataType::List(_) => list(text).map(Cell::List).ok_or("a list such as [1,2]"),
        DataType::Timestamp(..) => Err("an instant, on which there are no conditions"),
        _ => {
            let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            Ok(Cell::Text(quoted.unwrap_or(text).to_owned()))
        }
    }
}

fn real(text: &str) -> Option<Cell> {
    text.parse::<f64>().ok().filter(|value| !value.is_nan()).map(Cell::Real)
}

fn list(text: &str) -> Option<Vec<f64>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?.trim();
    if inner.is_empty() {
        return Some(Vec::new());
    }
    inner.split(',').map(|item| item.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Condition, Error> {
        Condition::parse(text, |column| match column {
            "policy" => Ok(DataType::Utf8),
            "procs" => Ok(DataType::Int64),
            "is_down" => Ok(DataType::Boolean),
            "gears" => Ok(DataType::new_list(DataType::Float64, true)),
            "wait_s" => Ok(DataType::Float64),
            other => Err(usage(format!("no column {other}"))),
        })
    }

    fn holds(text: &str, cell: Cell) -> bool {
        parse(text).expect(text).holds(&cell)
    }

    #[test]
    fn operators_compare_by_the_type_of_the_column() {
        assert!(holds("policy=easy", Cell::Text("easy".to_owned())));
        assert!(holds("policy != easy", Cell::Text("fcfs".to_owned())));
        assert!(holds("policy==a=b", Cell::Text("a=b".to_owned())));
        assert!(holds("procs>=100", Cell::Int(100)) && !holds("procs>100", Cell::Int(100)));
        assert!(holds("procs<100.5", Cell::Int(100)) && holds("procs<=100", Cell::Int(100)));
        assert!(
            holds("wait_s=unlimited", Cell::Real(f64::INFINITY))
                && !holds("wait_s<unlimited", Cell::Real(f64::INFINITY))
        );
        assert!(holds("gears=[1, 2.5]", Cell::List(vec![1.0, 2.5])));
        assert!(holds("is_down=true", Cell::Bool(true)));
    }

    #[test]
    fn a_list_splits_at_commas_outside_brackets_and_quotes() {
        assert!(Condition::split("").is_empty());
        for (text, parts) in [
            ("policy=easy,gears_ghz=[1,2],seed<3", &["policy=easy", "gears_ghz=[1,2]", "seed<3"][..]),
            ("formula=pow(min(procs, 4), 2),seed=1", &["formula=pow(min(procs, 4), 2)", "seed=1"]),
            ("policy = \"a), b\",seed=1", &["policy = \"a), b\"", "seed=1"]),
        ] {
            assert_eq!(Condition::split(text), parts, "{text}");
        }
        assert!(holds("policy = \"a), b\"", Cell::Text("a), b".to_owned())));
    }

    #[test]
    fn a_row_without_a_value_is_only_different() {
        assert!(holds("procs=", Cell::Null) && !holds("procs=", Cell::Int(1)));
        assert!(holds("procs!=", Cell::Int(1)) && !holds("procs!=", Cell::Null));
        assert!(holds("procs!=3", Cell::Null) && !holds("procs<3", Cell::Null) && !holds("procs>=3", Cell::Null));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("policy", "is no condition"),
            ("=easy", "is no condition"),
            ("procs=many", "a value of procs is a whole number"),
            ("is_down=1", "true or false"),
            ("gears<[1]", "a list has no order"),
            ("procs<", "no value has no order"),
            ("wait_s=nan", "a number or unlimited"),
            ("wait_s <= 1h", "a number or unlimited; for 1h, write wait_s<=3600"),
            ("nothing=1", "no column nothing"),
            ("policy>=3", "policy has texts"),
        ] {
            let error = parse(text).expect_err(text).message;
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn bounds_decide_where_they_can() {
        let between = |text: &str, least: i64, greatest: i64| {
            parse(text).expect(text).holds_between(&Cell::Int(least), &Cell::Int(greatest))
        };
        assert_eq!(between("procs=5", 6, 9), Some(false));
        assert_eq!(between("procs=5", 5, 9), None);
        assert_eq!(between("procs!=5", 6, 9), Some(true));
        assert_eq!(between("procs<5", 5, 9), Some(false));
        assert_eq!(between("procs<=5", 5, 9), None);
        assert_eq!(between("procs>9", 5, 9), Some(false));
        assert_eq!(between("procs>=9", 5, 9), None);
        // Null may be among the values.
        assert_eq!(between("procs>=1", 5, 9), None);
    }
}
