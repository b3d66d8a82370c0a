//! Figures and tables of papers: which one is meant, and its values from the rows of experiments.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;
use powersweep_claims::presets::Axis;
use powersweep_claims::{Lacking, Preset, Role, Row, Rows, Shape, papers};
use powersweep_dataset::frame::unit_of;
use powersweep_dataset::grouped::FooterFacts;
use powersweep_dataset::source::Source;
use powersweep_dataset::titles::title;
use powersweep_dataset::{Column, Datasets, Error, Frame, dependence, failure};
use powersweep_experiments::reading::{add_new, unknown};
use powersweep_results::Table;

use super::Paper;
use crate::origin::{self, Origin};

/// A figure or table of a paper, and the experiments that have its rows.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Name of the paper.
    pub paper: String,
    /// Authors, year and title of the paper.
    pub title: String,
    /// The figure or table.
    pub preset: Preset,
    /// The values of the colours of the paper's figures that have this preset's column of colours: a policy has one colour in
    /// all of them.
    #[cfg_attr(not(feature = "figures"), allow(dead_code))]
    pub(crate) levels: Vec<String>,
    /// The experiments of manifests that have other names.
    experiments: BTreeMap<String, String>,
}

/// The presets of all papers, or of the one that has an experiment or this name.
pub fn list(experiment: Option<&str>) -> Result<Vec<Chosen>, Error> {
    let mut listed = Vec::new();
    for paper in super::all()? {
        let is_wanted =
            |preset: &&Preset| experiment.is_none_or(|name| paper.name == name || preset.manifests().contains(name));
        listed.extend(paper.presets.all().iter().filter(is_wanted).map(|preset| paper.preset(preset)));
    }
    match experiment {
        Some(name) if listed.is_empty() => Err(failure!(Usage, "{}", unknown("paper", name, &papers::names()))),
        _ => Ok(listed),
    }
}

/// The preset of this name for an experiment: `figure3` of the paper that has the experiment, or `etinski2010/figure3`,
/// where the experiment may be one of the user's own with the tasks of the paper's manifest.
///
/// # Errors
/// There is no such paper or preset.
pub fn choose(experiment: &str, preset: &str) -> Result<Chosen, Error> {
    let (paper, name) = match preset.split_once('/') {
        Some((paper, name)) => (Paper::find(paper)?, name),
        None => (Paper::of(experiment)?, preset),
    };
    let Some(found) = paper.presets.find(name) else {
        let names: Vec<&str> = paper.presets.all().iter().map(|preset| preset.name.as_str()).collect();
        let unknown = unknown("preset", name, &names);
        return Err(failure!(Usage, "{unknown}\npresets of {}: {}", paper.name, names.join(", ")));
    };
    let stand_in = (!paper.has(experiment)).then(|| (found.manifest.clone(), experiment.to_owned()));
    Ok(paper.preset(found).in_experiments(stand_in))
}

impl Paper {
    /// A figure or table, from the paper's own experiments.
    pub fn preset(&self, preset: &Preset) -> Chosen {
        let column = |preset: &Preset| preset.colour.as_ref().map(|axis| axis.columns.clone());
        let alike = self.presets.all().iter().filter(|other| column(other) == column(preset));
        let mut levels: Vec<String> = Vec::new();
        add_new(&mut levels, alike.flat_map(|other| &other.colour).flat_map(Axis::first_values).cloned());
        let (title, preset) = (self.claims.title().to_owned(), preset.clone());
        Chosen { paper: self.name.clone(), title, preset, levels, experiments: BTreeMap::new() }
    }
}

impl Chosen {
    /// The rows of these manifests are in the experiments of these names.
    pub(crate) fn in_experiments(self, experiments: impl IntoIterator<Item = (String, String)>) -> Chosen {
        Chosen { experiments: experiments.into_iter().collect(), ..self }
    }

    /// The experiment whose rows are read first.
    pub fn first_experiment(&self) -> &str {
        self.experiment(&self.preset.manifest)
    }

    /// The experiment that has the rows of a manifest.
    pub fn experiment<'a>(&'a self, manifest: &'a str) -> &'a str {
        self.experiments.get(manifest).map_or(manifest, String::as_str)
    }

    /// The origin of the rows, with the paper and the place in it.
    pub async fn origin(&self, datasets: &Datasets) -> Result<Origin, Error> {
        let manifests = self.preset.manifests();
        let experiments = manifests.iter().map(|manifest| self.experiment(manifest).to_owned()).collect();
        let (paper, shows) = (Some(self.title.clone()), Some(self.preset.source()));
        Ok(Origin { paper, shows, ..origin::of(datasets, &experiments).await? })
    }

    /// The values of the preset.
    pub(crate) async fn rows(&self, datasets: &Datasets) -> Result<Vec<Row>, Error> {
        let mut rows = Rows::new();
        for ((manifest, table), columns) in self.preset.needed() {
            let batches = self.read(datasets, self.experiment(&manifest), table, &columns).await;
            rows.add(&manifest, table, batches.map_err(|error| self.lacks(&manifest, error))?);
            rows.set_seeds(&manifest, dependence::of_experiment(datasets, self.experiment(&manifest)).await?);
        }
        let lacking = |Lacking { manifest, reason }| self.lacks(&manifest, failure!(Usage, "{reason}"));
        self.preset.rows(&rows).map_err(lacking)
    }

    /// The values as a table, the published numbers beside ours.
    ///
    /// # Errors
    /// An experiment of the preset has no rows, or the figure shows jobs one by one.
    pub async fn frame(&self, datasets: &Datasets) -> Result<Frame, Error> {
        if self.preset.shape == Shape::Jobs {
            let (shown, paper, name) = (self.preset.source(), &self.paper, &self.preset.name);
            return Err(failure!(Usage, "{shown} has no numbers: `powersweep plot` draws the preset {paper}/{name}"));
        }
        let rows = self.rows(datasets).await?;
        Ok(frame(&self.titled(datasets).await?, &rows))
    }

    /// The preset with the titles of its columns where it has none.
    pub(crate) async fn titled(&self, datasets: &Datasets) -> Result<Preset, Error> {
        let mut are_relative = false;
        for manifest in self.preset.manifests() {
            are_relative |= FooterFacts::read(datasets, self.experiment(&manifest)).await?.is_relative;
        }
        let title = |column: &str| {
            let (title, unit) = title(column);
            let unit = unit_of(column, &unit, are_relative).to_owned();
            (title, unit)
        };
        Ok(self.preset.clone().titled(title))
    }

    /// Why rows are missing, and what makes them.
    pub(crate) fn lacks(&self, manifest: &str, error: Error) -> Error {
        let experiment = self.experiment(manifest);
        let hint = match experiment == manifest {
            true => format!("`powersweep run {manifest}` makes its rows"),
            false => format!("it must have the tasks of the manifest {manifest}"),
        };
        let message = format!(
            "{} of {} needs the experiment {experiment}: {}\n{hint}",
            self.preset.name, self.paper, error.message
        );
        Error { message, ..error }
    }

    async fn read(
        &self,
        datasets: &Datasets,
        experiment: &str,
        table: Table,
        columns: &BTreeSet<String>,
    ) -> Result<Vec<RecordBatch>, Error> {
        let reading = datasets.read(experiment, table).await?;
        reading.check_table()?;
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let source = Source::open(datasets, &reading, &names, Vec::new()).await?;
        source.batches().await
    }
}

/// Values of a preset as a table, the published numbers beside ours.
fn frame(preset: &Preset, rows: &[Row]) -> Frame {
    let mut keys: Vec<[&String; 3]> = Vec::new();
    add_new(&mut keys, rows.iter().map(|row| [&row.facet, &row.colour, &row.x]));
    let axes = [preset.facet.as_ref(), preset.colour.as_ref(), Some(&preset.x)];
    let mut columns: Vec<Column> = Vec::new();
    for (at, axis) in axes.into_iter().enumerate() {
        let Some(axis) = axis else { continue };
        let name = if axis.title.is_empty() { axis.columns.join(" ") } else { axis.title.clone() };
        columns.push(Column::texts(&name, &name, keys.iter().map(|key| key[at])).titled(&name, &axis.unit));
    }
    let count = columns.len();
    let is_table = preset.shape == Shape::Table;
    let headings = match is_table {
        true => preset.columns(),
        false => vec![(preset.y.title.as_str(), preset.y.unit.as_str(), rows.iter().any(is_published))],
    };
    for (place, (title, unit, has_published)) in headings.into_iter().enumerate() {
        let title = if title.is_empty() { "value" } else { title };
        let of_column = |row: &&Row| !is_table || row.column == place;
        let number = |name: &str, wanted: &dyn Fn(&Row) -> bool, of: &dyn Fn(&Row) -> Option<f64>| {
            let found = keys.iter().map(|key| {
                let row = rows
                    .iter()
                    .filter(of_column)
                    .find(|row| wanted(row) && [&row.facet, &row.colour, &row.x] == *key)?;
                of(row)
            });
            Column::numbers(name, name, unit, found)
        };
        columns.push(number(title, &|row| !is_published(row), &|row| Some(row.y)));
        if rows.iter().filter(of_column).any(|row| row.ends.is_some()) {
            let low = |row: &Row| row.ends.map(|(low, _)| low);
            let high = |row: &Row| row.ends.map(|(_, high)| high);
            columns.push(number(&format!("{title} low"), &|row| !is_published(row), &low));
            columns.push(number(&format!("{title} high"), &|row| !is_published(row), &high));
        }
        if has_published {
            columns.push(number(&format!("{title} published"), &is_published, &|row| Some(row.y)));
        }
    }
    Frame::of(columns).with_keys(count)
}

fn is_published(row: &Row) -> bool {
    row.role == Role::Published
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 2 names all processors first, Figure 3 the two-level policy.
    #[test]
    fn a_policy_has_one_colour_in_all_figures_of_a_paper() {
        let levels = |figure: &str| choose("lawson2005", figure).expect("a figure").levels;
        assert_eq!(levels("figure2"), ["all processors", "two-level", "online simulation"]);
        assert_eq!(levels("figure3"), levels("figure2"));
    }
}
