//! The indices of a design, for each combination of the other columns.

use std::collections::HashMap;

use powersweep_dataset::replicates::seed;
use powersweep_dataset::scan::SEED;
use powersweep_dataset::sensitivity::morris::{Morris, Step};
use powersweep_dataset::sensitivity::saltelli::Saltelli;
use powersweep_dataset::sensitivity::{Index, Values, indices};
use powersweep_dataset::{Error, Rows};
use powersweep_experiments::DesignPoints;

use super::asked::several;
use super::{Analysis, Points, Row, sort};

/// Positions of the indices of a parameter by which parameters are sorted: mu*, ST.
const BY: [usize; 2] = [0, 1];

/// A design with the values of its points.
pub(super) struct Design<'a> {
    of: &'a DesignPoints,
    parameters: Vec<&'static str>,
    /// The trajectories of a Morris design; `None` of a design of Saltelli.
    trajectories: Option<Morris>,
}

/// Rows of one combination: where the value of a point and a seed is.
struct Places {
    /// The ranges that have values in these rows.
    used: Vec<usize>,
    seeds: Vec<i64>,
    /// For each seed and point the row.
    rows: Vec<Vec<Option<u32>>>,
}

impl<'a> Design<'a> {
    pub(super) fn new(of: &'a DesignPoints) -> Design<'a> {
        let trajectories = (of.kind().name == "morris").then(|| trajectories(of));
        Design { of, parameters: of.parameters().collect(), trajectories }
    }

    /// Adds the indices of all combinations and metrics.
    pub(super) fn analyse(&self, analysis: &mut Analysis<'_>) -> Result<Points, Error> {
        let points: Vec<Vec<String>> = (0..self.of.points_count())
            .map(|point| self.of.values(point).iter().map(ToString::to_string).collect())
            .collect();
        let names = analysis.by.clone();
        let by: Vec<&str> = names.iter().map(String::as_str).collect();
        for group in analysis.rows.groups(&by)? {
            let first = group[0] as usize;
            let keys: Vec<String> =
                by.iter().filter_map(|name| Some(analysis.rows.axis(name)?.cell(first).exact())).collect();
            let places = self.places(&analysis.rows, &group, &points)?;
            if places.used.is_empty() {
                continue;
            }
            self.of_group(analysis, (&names, &keys), &places, &points);
        }
        let count = self.of.count();
        Ok(if self.trajectories.is_some() { Points::Trajectories(count) } else { Points::BasePoints(count) })
    }

    /// The rows of the points in a group.
    fn places(&self, rows: &Rows, group: &[u32], points: &[Vec<String>]) -> Result<Places, Error> {
        let axes: Vec<_> = self.parameters.iter().map(|name| rows.axis(name)).collect();
        let has_values =
            |at: &usize| axes[*at].is_some_and(|axis| group.iter().any(|row| !axis.cell(*row as usize).is_null()));
        let used: Vec<usize> = (0..axes.len()).filter(has_values).collect();
        // Seeds that change nothing are one seed.
        let is_one = rows.are_fixed(group.iter().map(|row| *row as usize));
        let seed_of = |row: u32| rows.axis(SEED).filter(|_| !is_one).map_or(0, |axis| seed(axis, row as usize));
        let mut seeds: Vec<i64> = group.iter().map(|row| seed_of(*row)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        // Texts of the values, each once.
        let texts: Vec<Vec<String>> = used
            .iter()
            .map(|at| axes[*at].map_or_else(Vec::new, |axis| axis.values().iter().map(|cell| cell.exact()).collect()))
            .collect();
        let mut known: HashMap<(Vec<&str>, i64), u32> = HashMap::with_capacity(group.len());
        for row in group {
            let value = |(place, at): (usize, &usize)| {
                axes[*at].map_or("", |axis| texts[place][axis.code(*row as usize) as usize].as_str())
            };
            let values: Vec<&str> = used.iter().enumerate().map(value).collect();
            if let Some(other) = known.insert((values, seed_of(*row)), *row).filter(|_| !is_one) {
                return Err(several("point", rows, [*row, other]));
            }
        }
        let row = |seed: i64, point: &Vec<String>| {
            known.get(&(used.iter().map(|at| point[*at].as_str()).collect(), seed)).copied()
        };
        let rows = seeds.iter().map(|seed| points.iter().map(|point| row(*seed, point)).collect()).collect();
        Ok(Places { used, seeds, rows })
    }

    /// Adds the indices of a combination; `by`: the columns that tell combinations apart.
    fn of_group(
        &self,
        analysis: &mut Analysis<'_>,
        (by, keys): (&[String], &[String]),
        places: &Places,
        points: &[Vec<String>],
    ) {
        let measures: Vec<(String, String)> =
            analysis.rows.measures().iter().map(|(field, _)| (field.name().clone(), super::unit(field))).collect();
        let point = |at: usize| {
            let used = places.used.iter().map(|range| format!("{}={}", self.parameters[*range], points[at][*range]));
            let own = by.iter().zip(keys).map(|(name, key)| format!("{name}={key}"));
            own.chain(used).collect::<Vec<_>>().join(", ")
        };
        for (at, (metric, unit)) in measures.into_iter().enumerate() {
            let values = &analysis.rows.measures()[at].1;
            let value = |row: &Option<u32>| row.map_or(f64::NAN, |row| values[row as usize]);
            let by_seed: Vec<Vec<f64>> = places.rows.iter().map(|rows| rows.iter().map(value).collect()).collect();
            let Some(range) = analysis.range(&metric, by_seed.iter().flatten().copied()) else {
                analysis.refused.push(format!("No row of {} has a value of {metric}.", super::told(by, keys)));
                continue;
            };
            let seeds = analysis.rows.dependence(places.rows.iter().flatten().flatten().map(|row| *row as usize));
            let values = Values { by_seed, seeds, range };
            let has_row = |seed: usize, at: usize| places.rows[seed][at].is_some();
            analysis.note_missing(&metric, &values, &places.seeds, point, has_row);
            let row = |(range, with, indices): (usize, Option<usize>, Vec<Option<Index>>)| Row {
                keys: keys.to_vec(),
                metric: metric.clone(),
                unit: unit.clone(),
                parameter: self.parameters[range].to_owned(),
                with: with.map(|with| self.parameters[with].to_owned()),
                indices,
            };
            let mut found: Vec<Row> = self.indices(&places.used, &values).into_iter().map(row).collect();
            if !found.iter().flat_map(|row| row.indices.iter().flatten()).all(Index::is_finite) {
                let of = super::told(by, keys);
                analysis.refused.push(format!("{metric} of {of} may have one value at all points: it has no shares."));
            }
            sort(&mut found, BY[usize::from(self.trajectories.is_none())]);
            analysis.found.extend(found);
        }
    }

    /// The indices of the ranges that have values, then of their pairs.
    fn indices(&self, used: &[usize], values: &Values) -> Vec<(usize, Option<usize>, Vec<Option<Index>>)> {
        if let Some(trajectories) = &self.trajectories {
            let all = indices(trajectories, values);
            let own = |range: &usize| {
                let [mu, mu_star, sigma] = [0, 1, 2].map(|at| Some(all[3 * range + at]));
                (*range, None, vec![mu_star, mu, sigma])
            };
            return used.iter().map(own).collect();
        }
        let design = Saltelli {
            count: self.of.count() as usize,
            ranges: self.parameters.len(),
            is_second_order: self.of.is_second_order(),
        };
        let all = indices(&design, values);
        let own = |range: &usize| (*range, None, vec![Some(all[2 * range]), Some(all[2 * range + 1]), None]);
        let pairs = design.pairs().zip(&all[2 * design.ranges..]);
        let pairs = pairs.filter(|((one, other), _)| used.contains(one) && used.contains(other));
        let of_pair =
            |((one, other), index): ((usize, usize), &Index)| (one, Some(other), vec![None, None, Some(*index)]);
        used.iter().map(own).chain(pairs.map(of_pair)).collect()
    }
}

/// The steps of the trajectories of a design. The values of a list, or of integers, change by other parts of their range than the
/// coordinates.
fn trajectories(of: &DesignPoints) -> Morris {
    let ranges = of.parameters().count();
    let points: Vec<_> = (0..of.points_count()).map(|point| (of.coordinates(point), of.places(point))).collect();
    let step = |pair: &[(Vec<f64>, Vec<f64>)]| {
        let [(from, place), (to, next)] = pair else { return None };
        let range = (0..ranges).find(|at| from[*at] != to[*at])?;
        Some(Step { range, by: next[range] - place[range] })
    };
    let steps = points.chunks(ranges + 1).flat_map(|own| own.windows(2).filter_map(step)).collect();
    Morris { ranges, steps }
}

#[cfg(test)]
mod tests {
    use powersweep_experiments::Manifest;

    use powersweep_engine::seeds::Dependence;

    use super::*;

    #[test]
    fn the_effect_of_a_metric_is_its_change_over_the_whole_range() {
        let effects = |range: &str| {
            let manifest = format!(
                "version = 1\nname = \"t\"\nseeds = [1]\n[designs.d]\nkind = \"morris\"\ncount = 8\n\
                 [workloads.w]\nsource = \"lublin\"\nsynthetic_jobs_count = {{ {range}, design = \"d\" }}\n\
                 [policies.q]\nbackfill = \"none\"\n"
            );
            let manifest = Manifest::parse("t", &manifest).expect("a manifest");
            let design = manifest.designs().next().expect("a design");
            // The metric is the value.
            let value = |point| design.values(point)[0].to_string().parse::<f64>().expect("a number");
            let values = Values {
                by_seed: vec![(0..design.points_count()).map(value).collect()],
                seeds: Dependence::Alike,
                range: (f64::NAN, f64::NAN),
            };
            let found = indices(&trajectories(&design), &values);
            found.iter().filter_map(|index| index.span.value()).collect::<Vec<f64>>()
        };
        for (range, whole) in [
            ("from = 1, to = 2", 1.0),
            ("from = 1, to = 3", 2.0),
            ("from = 10, to = 90, step = 20", 80.0),
            ("values = [1, 2, 100]", 99.0),
            ("values = [6, 2]", 4.0),
        ] {
            let found = effects(range);
            let differences = [found[0] - whole, found[1] - whole, found[2]];
            assert!(found.len() == 3 && differences.iter().all(|of| of.abs() < 1e-12 * whole), "{range}: {found:?}");
        }
    }
}
