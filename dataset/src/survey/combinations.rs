//! A bounded table of combinations, with sums over the seeds of each.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Choice;
use crate::replicates::{SEED, seed};
use crate::stats::Sum;
use crate::{Axis, Cell, Rows};

/// Maximum number of combinations that a survey keeps.
pub const COMBINATIONS_MAX: usize = 25_000;
/// Maximum number of values by seed that a survey keeps for intervals: two of a task.
const VALUES_MAX: usize = 2_000_000;

/// Sum and number of some values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Mean {
    /// Number of values.
    pub count: u64,
    sum: Sum,
}

impl Mean {
    /// Adds a value, unless it is infinite or none.
    pub(super) fn add(&mut self, value: f64) {
        if value.is_finite() {
            self.count += 1;
            self.sum.add(value);
        }
    }

    /// The mean; `None` without values.
    pub fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.value() / self.count as f64)
    }
}

/// The values of all axes except the seed: for each axis the position of a value.
pub(super) type Values = Vec<u32>;

/// The results of one combination, summed up over its seeds.
#[derive(Debug, Clone)]
pub(super) struct Combination {
    /// A hash of the texts of its values.
    pub(super) hash: u64,
    /// The least index of its tasks.
    pub(super) index: u64,
    /// Over the tasks with values of both metrics of the plot.
    pub(super) x: Mean,
    pub(super) y: Mean,
    /// Over the tasks with a value of the metric whose effects are shown.
    pub(super) of: Mean,
    /// Seed and value of these tasks.
    pub(super) by_seed: Vec<(i64, f64)>,
    /// Seed and values of the tasks with values of both metrics of the plot.
    pub(super) of_point: Vec<(i64, [f64; 2])>,
}

impl Combination {
    /// Number of its values by seed.
    fn values(&self) -> usize {
        self.by_seed.len() + self.of_point.len()
    }
}

/// Every combination while there are few; beyond that, a sample in which each combination is as likely as any other. The
/// sample depends on the values of the combinations alone, not on the order in which tasks ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Combinations {
    /// Number of rows.
    pub(super) rows: u64,
    /// Number of rows with values of both metrics of the plot.
    pub(super) rows_of_points: u64,
    /// Only combinations whose hash ends in this number of zero bits are kept.
    pub(super) level: u32,
    /// Only values of seeds whose hash ends in this number of zero bits are kept for intervals.
    pub(super) seed_level: u32,
    /// Number of the values by seed.
    values: usize,
    /// For each axis its texts with their positions.
    texts: Vec<HashMap<String, u32>>,
    kept: HashMap<Values, Combination>,
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A value as a condition names it; empty for none.
fn text(value: &Cell) -> String {
    if value.is_null() { String::new() } else { value.exact() }
}

impl Combinations {
    /// Adds rows with the axes of a survey, the seed and the measures of its choice.
    pub(super) fn add(&mut self, rows: &Rows, choice: &Choice) {
        self.add_up_to(COMBINATIONS_MAX, VALUES_MAX, rows, choice);
    }

    /// Adds rows, and keeps these numbers of combinations and of values by seed at most.
    fn add_up_to(&mut self, most: usize, most_values: usize, rows: &Rows, choice: &Choice) {
        self.rows += rows.len() as u64;
        let measure = |name: &str| rows.measures().iter().find(|(field, _)| field.name() == name);
        let (Some((_, x)), Some((_, y)), Some((_, of))) = (measure(&choice.x), measure(&choice.y), measure(&choice.of))
        else {
            return;
        };
        let has_both = |row: usize| x[row].is_finite() && y[row].is_finite();
        self.rows_of_points += (0..rows.len()).filter(|row| has_both(*row)).count() as u64;
        let axes: Vec<&Axis> = rows.axes().iter().filter(|axis| axis.name() != SEED).collect();
        self.texts.resize_with(axes.len(), HashMap::new);
        let texts: Vec<Vec<String>> = axes.iter().map(|axis| axis.values().iter().map(text).collect()).collect();
        let names: Vec<&str> = axes.iter().map(|axis| axis.name()).collect();
        // Rows without a seed are of one replicate.
        let seeds = rows.axis(SEED);
        let seed_of = |row: usize| seeds.map_or(0, |seeds| seed(seeds, row));
        for group in rows.groups(&names).expect("the rows have these axes") {
            let Some(&one) = group.first() else { continue };
            let pairs = axes.iter().zip(&texts);
            let values: Vec<&String> = pairs.map(|(axis, texts)| &texts[axis.code(one as usize) as usize]).collect();
            let hash = hash_of(&values);
            if hash.trailing_zeros() < self.level {
                continue;
            }
            let mean = Mean::default();
            let (by_seed, of_point) = (Vec::new(), Vec::new());
            let new = Combination { hash, index: u64::MAX, x: mean, y: mean, of: mean, by_seed, of_point };
            let positions = self.positions(&values);
            let seed_level = self.seed_level;
            let combination = self.kept.entry(positions).or_insert(new);
            for row in group.into_iter().map(|row| row as usize) {
                combination.index = combination.index.min(rows.index(row) as u64);
                combination.of.add(of[row]);
                let seed = seed_of(row);
                let is_kept = hash_of(&seed).trailing_zeros() >= seed_level;
                if of[row].is_finite() && is_kept {
                    combination.by_seed.push((seed, of[row]));
                    self.values += 1;
                }
                if has_both(row) && is_kept {
                    combination.of_point.push((seed, [x[row], y[row]]));
                    self.values += 1;
                }
                if has_both(row) {
                    combination.x.add(x[row]);
                    combination.y.add(y[row]);
                }
            }
            while self.kept.len() > most {
                self.level += 1;
                self.kept.retain(|_, combination| combination.hash.trailing_zeros() >= self.level);
                self.values = self.kept.values().map(Combination::values).sum();
            }
            while self.values > most_values {
                self.drop_seeds();
            }
        }
    }

    /// Keeps the values of about half of the seeds for intervals.
    fn drop_seeds(&mut self) {
        self.seed_level += 1;
        let level = self.seed_level;
        for combination in self.kept.values_mut() {
            combination.by_seed.retain(|(seed, _)| hash_of(seed).trailing_zeros() >= level);
            combination.of_point.retain(|(seed, _)| hash_of(seed).trailing_zeros() >= level);
        }
        self.values = self.kept.values().map(Combination::values).sum();
    }

    fn positions(&mut self, values: &[&String]) -> Values {
        let position = |(known, value): (&mut HashMap<String, u32>, &&String)| match known.get(*value) {
            Some(position) => *position,
            None => {
                let position = known.len() as u32;
                known.insert((*value).clone(), position);
                position
            }
        };
        self.texts.iter_mut().zip(values).map(position).collect()
    }

    /// The texts of an axis by their positions.
    pub(super) fn texts(&self, axis: usize) -> Vec<&str> {
        let known = self.texts.get(axis);
        let mut texts = vec![""; known.map_or(0, HashMap::len)];
        for (text, position) in known.into_iter().flatten() {
            texts[*position as usize] = text;
        }
        texts
    }

    /// All kept combinations, in the order of their least indices.
    pub(super) fn sorted(&self) -> Vec<(&Values, &Combination)> {
        let mut all: Vec<(&Values, &Combination)> = self.kept.iter().collect();
        all.sort_unstable_by_key(|(_, combination)| combination.index);
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};
    use arrow::datatypes::{DataType, Field};

    use super::*;
    use crate::{Column, Frame};

    /// Maximum number of combinations in these tests.
    const MOST: usize = 2_000;

    /// The kept combinations of rows with these values of one axis.
    fn kept(values: &[usize]) -> (Combinations, Vec<String>) {
        let choice = Choice { x: "x".into(), y: "x".into(), of: "x".into(), ..Choice::default() };
        let mut combinations = Combinations::default();
        for values in values.chunks(500) {
            let texts = Column::texts("a", "", values.iter().map(usize::to_string));
            let numbers = Column::numbers("x", "", "", values.iter().map(|value| *value as f64));
            let rows = Rows::of(&Frame::of([texts, numbers]), &["a"], &["x"]).expect("columns");
            combinations.add_up_to(MOST, usize::MAX, &rows, &choice);
        }
        let texts = combinations.texts(0);
        let mut found: Vec<String> =
            combinations.sorted().iter().map(|(values, _)| texts[values[0] as usize].to_owned()).collect();
        found.sort_unstable();
        (combinations, found)
    }

    #[test]
    fn a_sample_is_bounded_depends_on_no_order_and_has_all_seeds_of_a_combination() {
        let few: Vec<usize> = (0..MOST).collect();
        assert_eq!(kept(&few).1.len(), MOST, "all are kept while they are few");
        let many: Vec<usize> = (0..5 * MOST).chain(0..MOST).collect();
        let (combinations, found) = kept(&many);
        assert!((MOST / 3..=MOST).contains(&found.len()), "{} combinations", found.len());
        assert_eq!((combinations.level, combinations.rows), (3, many.len() as u64));
        for (_, combination) in combinations.sorted() {
            let seeds = if combination.x.value() < Some(MOST as f64) { 2 } else { 1 };
            assert_eq!(combination.x.count, seeds, "a combination has all of its rows, or is not kept");
        }
        let reversed: Vec<usize> = many.into_iter().rev().collect();
        assert_eq!(kept(&reversed).1, found);
    }

    #[test]
    fn equal_values_in_another_order_have_one_mean() {
        let mean = |values: &[f64]| {
            let mut mean = Mean::default();
            values.iter().for_each(|value| mean.add(*value));
            mean.value()
        };
        let plain = |values: &[f64]| values.iter().sum::<f64>();
        let (one, other) = ([0.1, 0.2, 0.3], [0.3, 0.2, 0.1]);
        assert!(plain(&one) != plain(&other));
        assert_eq!(mean(&one), mean(&other));
    }

    #[test]
    fn values_by_seed_are_bounded_and_those_of_a_kept_seed_are_complete() {
        let choice = Choice { x: "x".into(), y: "x".into(), of: "x".into(), ..Choice::default() };
        let mut combinations = Combinations::default();
        for seeds in (0..5_000).collect::<Vec<_>>().chunks(500) {
            let both =
                || ["a", "b"].into_iter().flat_map(|value| seeds.iter().map(move |seed| (value, f64::from(*seed))));
            let axis = Column::texts("a", "", both().map(|(value, _)| value));
            let whole: ArrayRef = Arc::new(both().map(|(_, seed)| Some(seed as i64)).collect::<Int64Array>());
            let seed = Column::of(&Arc::new(Field::new(SEED, DataType::Int64, true)), &whole);
            let numbers = Column::numbers("x", "", "", both().map(|(_, seed)| seed));
            let rows = Rows::of(&Frame::of([axis, seed, numbers]), &["a", SEED], &["x"]).expect("columns");
            combinations.add_up_to(MOST, MOST, &rows, &choice);
        }
        let sorted = combinations.sorted();
        assert_eq!(sorted.iter().map(|(_, of)| of.of.count).collect::<Vec<_>>(), [5_000, 5_000]);
        assert!((MOST / 4..=MOST).contains(&combinations.values), "{} values", combinations.values);
        assert_eq!(sorted[0].1.by_seed.len(), sorted[1].1.by_seed.len(), "a seed is kept in every combination");
    }
}
