//! The shares of variance of a grid.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use powersweep_dataset::replicates::seed;
use powersweep_dataset::scan::SEED;
use powersweep_dataset::sensitivity::grid::{Grid, Refused, Shares};
use powersweep_dataset::sensitivity::{Index, Values};
use powersweep_dataset::{Axis, Cell, Error, failure};

use super::asked::several;
use super::{Analysis, Points, Row, condition, sort};

/// Rows in which the same axes have values.
struct Stratum {
    /// The columns with several values, by name.
    axes: Vec<String>,
    /// The values of the other columns, as conditions.
    constant: String,
    rows: Vec<u32>,
}

/// The cells of a stratum, and the row of each seed in each cell.
struct Cells {
    grid: Grid,
    /// For each axis the values of its levels.
    levels: Vec<Vec<Cell>>,
    seeds: Vec<i64>,
    rows: Vec<Vec<Option<u32>>>,
}

/// Adds the shares of all strata.
pub(super) fn analyse(analysis: &mut Analysis<'_>, axes: &[&str]) -> Result<Points, Error> {
    let by: Vec<&str> = analysis.by.iter().map(String::as_str).collect();
    let axes: Vec<&str> = axes.iter().copied().filter(|name| !by.contains(name)).collect();
    let (mut strata, mut cells) = (Vec::new(), 0);
    for group in analysis.rows.groups(&by)? {
        let keys: Vec<String> =
            by.iter().filter_map(|name| Some(analysis.rows.axis(name)?.cell(group[0] as usize).exact())).collect();
        strata.extend(of_group(analysis, &axes, &group).into_iter().map(|stratum| (keys.clone(), stratum)));
    }
    let has_strata = strata.iter().any(|(_, stratum)| !stratum.constant.is_empty());
    let mut is_any = false;
    for (mut keys, stratum) in strata {
        if has_strata {
            keys.push(stratum.constant.clone());
        }
        if stratum.axes.is_empty() {
            continue;
        }
        is_any = true;
        cells += of_stratum(analysis, keys, &stratum)?;
    }
    match is_any {
        true => Ok(Points::Cells(cells)),
        false => {
            Err(failure!(Usage, "no column beside the seed has several values: there is no axis that could matter"))
        }
    }
}

/// The rows of a group, by the axes that have values in them.
fn of_group(analysis: &Analysis<'_>, axes: &[&str], group: &[u32]) -> Vec<Stratum> {
    let columns: Vec<&Axis> = axes.iter().filter_map(|name| analysis.rows.axis(name)).collect();
    let mut by_values: BTreeMap<Vec<bool>, Vec<u32>> = BTreeMap::new();
    for row in group {
        let pattern = columns.iter().map(|axis| axis.cell(*row as usize).is_null()).collect();
        by_values.entry(pattern).or_default().push(*row);
    }
    let is_one = by_values.len() == 1;
    let parts: Vec<Vec<u32>> = by_values.into_values().collect();
    let stratum = |(at, rows): (usize, &Vec<u32>)| {
        let codes = |axis: &Axis| rows.iter().map(|row| axis.code(*row as usize)).collect::<BTreeSet<u32>>();
        let (several, one): (Vec<&&Axis>, Vec<&&Axis>) = columns.iter().partition(|axis| codes(axis).len() > 1);
        let first = rows[0] as usize;
        // Conditions on values, and those on axes without one where other rows have all these values, too.
        let valued: Vec<&&Axis> = one.iter().copied().filter(|axis| !axis.cell(first).is_null()).collect();
        let is_own = |row: &u32| valued.iter().any(|axis| axis.code(*row as usize) != axis.code(first));
        let mut others = parts.iter().enumerate().filter(|(other, _)| *other != at);
        let told = if others.all(|(_, rows)| rows.iter().all(is_own)) { &valued } else { &one };
        let constant = told.iter().map(|axis| condition(axis.name(), axis.cell(first)));
        let constant: Vec<String> = constant.filter(|_| !is_one).collect();
        Stratum {
            axes: several.iter().map(|axis| axis.name().to_owned()).collect(),
            constant: constant.join(", "),
            rows: rows.clone(),
        }
    };
    parts.iter().enumerate().map(stratum).collect()
}

/// Adds the shares of a stratum; returns its number of cells.
fn of_stratum(analysis: &mut Analysis<'_>, keys: Vec<String>, stratum: &Stratum) -> Result<u64, Error> {
    let cells = cells(analysis, stratum)?;
    let measures: Vec<String> = analysis.rows.measures().iter().map(|(field, _)| field.name().clone()).collect();
    for (at, metric) in measures.into_iter().enumerate() {
        let values = &analysis.rows.measures()[at].1;
        let value = |row: &Option<u32>| row.map_or(f64::NAN, |row| values[row as usize]);
        let by_seed: Vec<Vec<f64>> = cells.rows.iter().map(|rows| rows.iter().map(value).collect()).collect();
        let Some(range) = analysis.range(&metric, by_seed.iter().flatten().copied()) else {
            analysis.refused.push(format!("No row has a value of {metric}."));
            continue;
        };
        let seeds = analysis.rows.dependence(stratum.rows.iter().map(|row| *row as usize));
        let values = Values { by_seed, seeds, range };
        let point = |at: usize| {
            let level =
                |(axis, name): (usize, &String)| condition(name, &cells.levels[axis][cells.grid.cells[at][axis]]);
            let own = stratum.axes.iter().enumerate().map(level);
            let constant = Some(stratum.constant.clone()).filter(|text| !text.is_empty());
            constant.into_iter().chain(own).collect::<Vec<_>>().join(", ")
        };
        let real = analysis.real;
        let has_row = |seed: usize, at: usize| cells.rows[seed][at].is_some_and(|row| (row as usize) < real);
        analysis.note_missing(&metric, &values, &cells.seeds, point, has_row);
        match cells.grid.shares(&values) {
            Ok(shares) => {
                let is_finite = shares.of_axes.iter().flatten().all(Index::is_finite);
                if !is_finite {
                    analysis.refused.push(format!(
                        "Some shares of {metric} are left out: the metric may have one value in all cells, or a partial grid \
                         has no line along the axis, or lacks values."
                    ));
                }
                analysis.found.extend(rows(&keys, &metric, stratum, &shares));
            }
            Err(Refused::Confounded(axis)) => analysis.refused.push(format!(
                "{metric} has no shares: `{}` changes with other axes, so that its effect cannot be told from theirs.",
                stratum.axes[axis]
            )),
            Err(Refused::TooMany(effects)) => {
                analysis.refused.push(format!("{metric} has no shares: the partial grid has {effects} levels."));
            }
        }
    }
    Ok(cells.grid.cells.len() as u64)
}

fn rows(keys: &[String], metric: &str, stratum: &Stratum, shares: &Shares) -> Vec<Row> {
    let row = |axis: usize, with: Option<usize>, indices| Row {
        keys: keys.to_vec(),
        metric: metric.to_owned(),
        unit: String::new(),
        parameter: stratum.axes[axis].clone(),
        with: with.map(|with| stratum.axes[with].clone()),
        indices,
    };
    let own = shares
        .of_axes
        .iter()
        .enumerate()
        .map(|(axis, [first, total])| row(axis, None, vec![Some(*first), Some(*total), None]));
    let pairs =
        shares.of_pairs.iter().map(|((one, other), index)| row(*one, Some(*other), vec![None, None, Some(*index)]));
    let mut rows: Vec<Row> = own.chain(pairs).collect();
    sort(&mut rows, 1);
    rows
}

fn cells(analysis: &Analysis<'_>, stratum: &Stratum) -> Result<Cells, Error> {
    let rows = &analysis.rows;
    let axes: Vec<&Axis> = stratum.axes.iter().filter_map(|name| rows.axis(name)).collect();
    // Seeds that change nothing are one seed.
    let is_one = rows.are_fixed(stratum.rows.iter().map(|row| *row as usize));
    let seed_of = |row: u32| rows.axis(SEED).filter(|_| !is_one).map_or(0, |axis| seed(axis, row as usize));
    let mut codes: Vec<HashMap<u32, usize>> = vec![HashMap::new(); axes.len()];
    let mut levels: Vec<Vec<Cell>> = vec![Vec::new(); axes.len()];
    let mut places: HashMap<(Vec<usize>, i64), u32> = HashMap::new();
    let mut found: BTreeSet<Vec<usize>> = BTreeSet::new();
    for row in &stratum.rows {
        let mut cell = Vec::with_capacity(axes.len());
        for (at, axis) in axes.iter().enumerate() {
            let next = levels[at].len();
            let level = *codes[at].entry(axis.code(*row as usize)).or_insert(next);
            if level == next {
                levels[at].push(axis.cell(*row as usize).clone());
            }
            cell.push(level);
        }
        found.insert(cell.clone());
        if let Some(other) = places.insert((cell, seed_of(*row)), *row).filter(|_| !is_one) {
            return Err(several("combination", rows, [*row, other]));
        }
    }
    let counts: Vec<usize> = levels.iter().map(Vec::len).collect();
    let mut seeds: Vec<i64> = stratum.rows.iter().map(|row| seed_of(*row)).collect();
    seeds.sort_unstable();
    seeds.dedup();
    if let Some(asked) = analysis.asked.as_ref().filter(|_| !is_one) {
        seeds.retain(|seed| asked.contains(seed));
    }
    let all: Vec<Vec<usize>> = found.into_iter().collect();
    let of_seed = |seed: &i64| all.iter().map(|cell| places.get(&(cell.clone(), *seed)).copied()).collect();
    let rows = seeds.iter().map(of_seed).collect();
    Ok(Cells { grid: Grid { levels: counts, cells: all }, levels, seeds, rows })
}
