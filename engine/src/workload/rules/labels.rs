//! Priorities and classes of jobs, read from a field of the log.
use crate::spec::{Choice, Default, Param, Type};

const FIELDS: &[&str] = &["none", "queue", "user", "group", "partition"];
/// Pairs of a value and its label.
pub(in crate::workload) const PAIRS: Type = Type::Reals { min: 0.0, max: 2_147_483_647.0 };

/// The field with priorities.
pub(super) const PRIORITY_FROM: Param = Param::one_of(
    "priority_from",
    FIELDS,
    "Field of the log with a job's priority (fields 15, 12, 13 and 16). With `none`, jobs of a generator keep its priority, \
     and jobs of a log have priority 1. Priority 1 is the highest.",
);
/// The mapping from values to priorities.
pub(super) const PRIORITY_MAP: Param = Param {
    name: "priority_map",
    ty: PAIRS,
    unit: "",
    default: Default::Unset,
    doc: "Pairs of a value of the field `priority_from` and its priority, one after the other ([3, 1, 4, 2]: 3 has priority \
          1, 4 has 2); values that are not listed, and jobs without a value, have priority 1. If not given, the value \
          itself is the priority, from 1 to 255.",
};
/// The field with classes.
pub(super) const CLASS_FROM: Param = Param::one_of(
    "class_from",
    FIELDS,
    "Field of the log with a job's class, which selects its tables of run time and power. With `none`, jobs of a \
     generator keep its class, and jobs of a log have class 1.",
);
/// The mapping from values to classes.
pub(super) const CLASS_MAP: Param = Param {
    name: "class_map",
    ty: PAIRS,
    unit: "",
    default: Default::Unset,
    doc: "Pairs of a value of the field `class_from` and its class (from 1), as in `priority_map`.",
};

/// Reads priorities or classes, from 1 to 255, from a field of the log.
#[derive(Debug, Clone)]
pub(in crate::workload) struct Labels {
    /// Index of the field among queue, user, group and partition.
    field: usize,
    /// Labels by value, sorted; without a map, the value is the label.
    map: Option<Vec<(i32, u8)>>,
}

impl Labels {
    /// Labels by the parameters of these names; `None` if no field is chosen.
    pub(in crate::workload) fn new(choice: &Choice, from: &str, map: &str) -> Result<Option<Labels>, String> {
        let pairs = choice.get(map).map(|_| choice.reals(map));
        let Some(field) = FIELDS[1..].iter().position(|name| *name == choice.text(from)) else {
            if pairs.is_some() {
                let why = format!("`{map}` says what the values of a field mean, but `{from}` names no field");
                return Err(why);
            }
            return Ok(None);
        };
        Ok(Some(Labels { field, map: pairs.map(|pairs| read(map, pairs)).transpose()? }))
    }

    /// The label of a job with these fields (queue, user, group, partition), from 1 to 255.
    #[inline]
    pub(super) fn of(&self, fields: [i32; 4]) -> u8 {
        self.number(fields).unwrap_or(1).clamp(1, 255) as u8
    }

    /// The label of a job with these fields; `None` if the map does not list the value, or without a map for a value below 0.
    #[inline]
    pub(in crate::workload) fn number(&self, fields: [i32; 4]) -> Option<u32> {
        let value = fields[self.field];
        match &self.map {
            None => u32::try_from(value).ok(),
            Some(map) => map.binary_search_by_key(&value, |pair| pair.0).ok().map(|at| u32::from(map[at].1)),
        }
    }
}

/// The map of a parameter, sorted by value.
fn read(name: &str, numbers: &[f64]) -> Result<Vec<(i32, u8)>, String> {
    let wrong = |why: String| Err(format!("`{name}` is a list of pairs of whole numbers: {why}"));
    if !numbers.len().is_multiple_of(2) {
        return wrong(format!("it has {} numbers", numbers.len()));
    }
    if let Some(number) = numbers.iter().find(|number| number.fract() != 0.0) {
        return wrong(format!("{number} is no whole number"));
    }
    if let Some(label) = numbers.iter().skip(1).step_by(2).find(|label| !(1.0..=255.0).contains(*label)) {
        return wrong(format!("the second number of a pair is from 1 to 255, not {label}"));
    }
    let mut map: Vec<(i32, u8)> = numbers.chunks(2).map(|pair| (pair[0] as i32, pair[1] as u8)).collect();
    map.sort_unstable();
    if let Some(twice) = map.windows(2).find(|two| two[0].0 == two[1].0) {
        return wrong(format!("{} occurs twice", twice[0].0));
    }
    Ok(map)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::spec::Value;

    fn labels(from: &str, map: Option<&[f64]>) -> Result<Option<Labels>, String> {
        let mut choice = Choice::new(&crate::workload::rules::COMPONENT);
        choice.set("priority_from", Value::Text(from.to_owned())).unwrap();
        if let Some(map) = map {
            choice.set("priority_map", Value::Reals(map.to_vec())).unwrap();
        }
        Labels::new(&choice, "priority_from", "priority_map")
    }

    #[test]
    fn fields_give_labels() {
        let queues = labels("queue", Some(&[7.0, 2.0, 3.0, 9.0])).unwrap().unwrap();
        assert_eq!([7, 3, 5, -1].map(|queue| queues.of([queue, 1, 1, 1])), [2, 9, 1, 1]);
        let groups = labels("group", None).unwrap().unwrap();
        assert_eq!([0, 4, 300, -1].map(|group| groups.of([7, 7, group, 7])), [1, 4, 255, 1]);
        assert!(labels("none", None).unwrap().is_none());
    }

    #[test]
    fn maps_are_pairs_of_whole_numbers() {
        let error = |from, map: &[f64]| labels(from, Some(map)).unwrap_err();
        assert!(error("queue", &[1.0]).contains("it has 1 numbers"));
        assert!(error("queue", &[1.5, 1.0]).contains("1.5 is no whole number"));
        assert!(error("queue", &[1.0, 0.0]).contains("from 1 to 255, not 0"));
        assert!(error("queue", &[1.0, 2.0, 1.0, 3.0]).contains("1 occurs twice"));
        assert!(error("none", &[1.0, 2.0]).contains("names no field"));
    }
}
