//! Figures and tables of papers: which one is meant, and its values from the rows of experiments.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;
use powersweep_claims::{Claims, Lacking, Preset, Presets, Role, Row, Rows, Shape, papers};
use powersweep_dataset::source::Source;
use powersweep_dataset::{Column, Datasets, Frame};
use powersweep_experiments::reading::unknown;
use powersweep_results::Table;

use crate::args::ResultsArgs;
use crate::exit::{Failure, Outcome, failure};
use crate::{inputs, screen};

/// A figure or table of a paper, and the experiments that have its rows.
pub struct Chosen {
    /// Name of the paper.
    pub paper: &'static str,
    /// Authors, year and title of the paper.
    #[cfg_attr(not(feature = "figures"), allow(dead_code))]
    pub title: String,
    pub preset: Preset,
    /// The experiment that stands for the preset's first one.
    stand_in: Option<String>,
}

/// The claims and presets of every paper.
pub fn all() -> Result<Vec<(&'static str, Claims, Presets)>, Failure> {
    papers::builtin().iter().map(|(name, _)| of(name)).collect()
}

/// The claims and presets of a shipped paper.
fn of(name: &'static str) -> Result<(&'static str, Claims, Presets), Failure> {
    let file = format!("{name} (shipped)");
    let refused = |errors| inputs::problems(&file, &errors);
    let claims = Claims::parse(&file, papers::find(name).unwrap_or_default()).map_err(refused)?;
    let presets = Presets::parse(&file, papers::presets(name).unwrap_or_default(), &claims).map_err(refused)?;
    Ok((name, claims, presets))
}

/// The preset of this name for an experiment: `figure3` of the paper that has the experiment, or `etinski2010/figure3`,
/// where the experiment may be one of the user's own with the tasks of the paper's manifest.
pub fn choose(experiment: &str, preset: &str) -> Result<Chosen, Failure> {
    let (paper, name) = match preset.split_once('/') {
        Some((paper, name)) => (Some(paper), name),
        None => (None, preset),
    };
    let known: Vec<&str> = papers::builtin().iter().map(|(name, _)| *name).collect();
    let all = all()?;
    let has = |paper: &str, presets: &Presets| {
        paper == experiment || presets.all().iter().any(|preset| preset.manifests().contains(experiment))
    };
    let found = match paper {
        Some(paper) => all
            .into_iter()
            .find(|(known, ..)| *known == paper)
            .ok_or_else(|| failure!(Usage, "{}", unknown("paper", paper, &known)))?,
        None => all.into_iter().find(|(paper, _, presets)| has(paper, presets)).ok_or_else(|| {
            failure!(
                Usage,
                "{experiment} is no experiment of a paper: name the paper, too, such as --preset {}/{name}; papers: {}",
                known[0],
                known.join(", ")
            )
        })?,
    };
    let (paper, claims, presets) = found;
    let Some(preset) = presets.find(name) else {
        let names: Vec<&str> = presets.all().iter().map(|preset| preset.name.as_str()).collect();
        let unknown = unknown("preset", name, &names);
        return Err(failure!(Usage, "{unknown}\npresets of {paper}: {}", names.join(", ")));
    };
    let stand_in = (!has(paper, &presets)).then(|| experiment.to_owned());
    Ok(Chosen { paper, title: claims.title().to_owned(), preset: preset.clone(), stand_in })
}

impl Chosen {
    /// A preset of a paper, from the paper's own experiments.
    #[cfg(feature = "figures")]
    pub fn of_paper(paper: &'static str, claims: &Claims, preset: &Preset) -> Chosen {
        Chosen { paper, title: claims.title().to_owned(), preset: preset.clone(), stand_in: None }
    }

    /// The experiment that has the rows of a manifest.
    pub fn experiment<'a>(&'a self, manifest: &'a str) -> &'a str {
        let stand_in = self.stand_in.as_deref().filter(|_| manifest == self.preset.manifest);
        stand_in.unwrap_or(manifest)
    }

    /// What the preset shows, and what its rows come from.
    #[cfg(feature = "figures")]
    pub async fn origin(&self, datasets: &Datasets) -> Result<serde_json::Value, Failure> {
        let manifests = self.preset.manifests();
        let experiments = manifests.iter().map(|manifest| self.experiment(manifest).to_owned()).collect();
        let mut origin = crate::origin::of(datasets, &experiments).await?;
        origin["paper"] = self.title.clone().into();
        origin["shows"] = self.preset.source().into();
        Ok(origin)
    }

    /// The values of the preset.
    pub async fn rows(&self, datasets: &Datasets) -> Result<Vec<Row>, Failure> {
        let mut rows = Rows::new();
        for ((manifest, table), columns) in self.preset.needed() {
            let batches = self.read(datasets, self.experiment(&manifest), table, &columns).await;
            rows.add(&manifest, table, batches.map_err(|failure| self.lacks(&manifest, failure))?);
        }
        let lacking = |Lacking { manifest, reason }| self.lacks(&manifest, failure!(Usage, "{reason}"));
        self.preset.rows(&rows).map_err(lacking)
    }

    /// Why rows are missing, and what makes them.
    pub fn lacks(&self, manifest: &str, failure: Failure) -> Failure {
        let experiment = self.experiment(manifest);
        let hint = match experiment == manifest {
            true => format!("`powersweep run {manifest}` makes its rows"),
            false => format!("it must have the tasks of the manifest {manifest}"),
        };
        let message = format!(
            "{} of {} needs the experiment {experiment}: {}\n{hint}",
            self.preset.name, self.paper, failure.message
        );
        Failure { message, ..failure }
    }

    async fn read(
        &self,
        datasets: &Datasets,
        experiment: &str,
        table: Table,
        columns: &BTreeSet<String>,
    ) -> Result<Vec<RecordBatch>, Failure> {
        let reading = datasets.read(experiment, table).await?;
        reading.check_table()?;
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let source = Source::open(datasets, &reading, &names, Vec::new()).await?;
        source.batches().await
    }
}

/// Lists the presets of all papers, or of the one that has an experiment.
pub fn list(experiment: Option<&str>) -> Outcome {
    let mut table = screen::table();
    table.set_header(["preset", "shows", "experiments"]);
    let mut is_known = experiment.is_none();
    for (paper, _, presets) in all()? {
        let is_wanted =
            |preset: &&Preset| experiment.is_none_or(|name| name == paper || preset.manifests().contains(name));
        for preset in presets.all().iter().filter(is_wanted) {
            is_known = true;
            let manifests: Vec<String> = preset.manifests().into_iter().collect();
            table.add_row([format!("{paper}/{}", preset.name), preset.caption.clone(), manifests.join(", ")]);
        }
    }
    if !is_known {
        let known: Vec<&str> = papers::builtin().iter().map(|(name, _)| *name).collect();
        return Err(failure!(Usage, "{}", unknown("paper", experiment.unwrap_or_default(), &known)));
    }
    screen::print(&table.to_string())
}

/// The numbers of a figure, or a table, of a paper.
pub async fn numbers(args: &ResultsArgs, preset: &str) -> Result<Frame, Failure> {
    let chosen = choose(&args.experiment, preset)?;
    if chosen.preset.shape == Shape::Jobs {
        let shown = chosen.preset.source();
        return Err(failure!(
            Usage,
            "{shown} has no numbers: `powersweep plot {} --preset {preset}` draws it",
            args.experiment
        ));
    }
    let datasets = args.from.place()?.datasets().await?;
    let rows = chosen.rows(&datasets).await?;
    Ok(frame(&chosen.preset, &rows))
}

/// The values of a preset as a table, the published numbers beside ours.
pub fn frame(preset: &Preset, rows: &[Row]) -> Frame {
    let mut keys: Vec<[&String; 3]> = Vec::new();
    for row in rows {
        let key = [&row.facet, &row.colour, &row.x];
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
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
        if rows.iter().filter(of_column).any(|row| row.half_width.is_some()) {
            columns.push(number(&format!("{title} half width"), &|row| !is_published(row), &|row| row.half_width));
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
