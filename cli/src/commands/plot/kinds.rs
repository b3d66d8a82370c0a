//! The figure that the arguments ask for, from the rows of the experiment.

use std::collections::BTreeSet;

use powersweep_dataset::condition::Op;
use powersweep_dataset::scan::{self, SEED};
use powersweep_dataset::{Cell, Condition};
use powersweep_engine::components::SERIES;
use powersweep_experiments::reading::unknown;
use powersweep_figures::kinds::{self, Axes, Better, Gantt};
use powersweep_figures::{Column, Figure, FigureError, Look, Table};
use powersweep_results::Table as Stored;

use super::aggregate::{SEEDS, groups, interval, means, mixed};
use super::read::{Source, table_of};
use super::{preset, titles};
use crate::args::{FigureKind, LogAxis, PlotArgs};
use crate::exit::{Failure, failure};
use crate::origin;
use crate::presets::Chosen;

/// Name of the column of combinations.
const SETTING: &str = "combination";
const TASK: &str = "task_id";

/// A request for a figure.
pub(super) struct Wanted<'a> {
    pub(super) args: &'a PlotArgs,
    pub(super) look: Look,
    /// A figure of a paper.
    pub(super) chosen: Option<Chosen>,
}

/// A figure, and what the user should know about it.
pub(super) type Made = (Figure, Vec<String>);

impl Wanted<'_> {
    /// The figure, with what it is drawn from.
    pub(super) async fn drawn(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let (mut figure, notes) = self.figure(source).await?;
        let origin = match &self.chosen {
            Some(chosen) => chosen.origin(source.datasets).await?,
            None => origin::of(source.datasets, &BTreeSet::from([self.experiment().to_owned()])).await?,
        };
        figure.set_origin(&origin);
        Ok((figure, notes))
    }

    /// Reads the rows and builds the figure.
    async fn figure(&self, source: &Source<'_>) -> Result<Made, Failure> {
        if let Some(chosen) = &self.chosen {
            return preset::figure(chosen, source.datasets, &self.look).await;
        }
        let figure = self.args.figure.ok_or_else(|| failure!(Usage, "a figure needs --figure KIND"))?;
        match figure {
            FigureKind::Bars | FigureKind::Lines => self.means(source).await,
            FigureKind::Cdf => self.cdf(source).await,
            FigureKind::Series => self.series(source).await,
            FigureKind::Gantt => self.gantt(source).await,
            FigureKind::Heatmap => self.heatmap(source).await,
            FigureKind::Effect => self.effect(source).await,
            FigureKind::Parallel => self.parallel(source).await,
            FigureKind::Pareto => self.pareto(source).await,
        }
    }

    /// The experiment whose rows are read, the first one of a paper's figure.
    pub(super) fn experiment(&self) -> &str {
        match &self.chosen {
            Some(chosen) => chosen.experiment(&chosen.preset.manifest),
            None => self.args.experiment(),
        }
    }

    fn x(&self) -> Result<&String, Failure> {
        match self.args.x.as_slice() {
            [x] => Ok(x),
            _ => Err(failure!(Usage, "this figure needs one column: --x COLUMN")),
        }
    }

    fn y(&self) -> Result<&String, Failure> {
        self.args.y.as_ref().ok_or_else(|| failure!(Usage, "this figure needs a vertical axis: --y COLUMN"))
    }

    fn is_log(&self, axis: LogAxis) -> bool {
        self.args.log.contains(&axis)
    }

    fn axes(&self, x: &str, y: &str) -> Axes {
        let (log_x, log_y) = (self.is_log(LogAxis::X), self.is_log(LogAxis::Y));
        let (colour, facet) = (self.args.colour.clone(), self.args.facet.clone());
        Axes { colour, facet, log_x, log_y, ..Axes::of(x, y) }
    }

    /// The columns of colour and panels.
    fn names(&self) -> impl Iterator<Item = &String> {
        self.args.colour.iter().chain(&self.args.facet)
    }

    fn table(&self, x: &str) -> Stored {
        self.args.table.unwrap_or_else(|| table_of(x))
    }

    async fn means(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let (x, y) = (self.x()?, self.y()?);
        let others = source.varying().await?;
        let names: Vec<String> = [x, y].into_iter().chain(self.names()).chain(&others).cloned().collect();
        let rows = rows(source, self.table(y), &names).await?;
        let by: Vec<&str> = std::iter::once(x).chain(self.names()).map(String::as_str).collect();
        let notes = mixture(&rows, &by, &others)?;
        let means = means(&rows, &by, &[y]).map_err(refused)?;
        let axes = Axes { interval: Some(interval(y)), ..self.axes(x, y) };
        let figure = match self.args.figure {
            Some(FigureKind::Bars) => kinds::bars(&means, &axes, &self.look),
            _ => kinds::lines(&means, &axes, &self.look),
        };
        Ok((figure.map_err(refused)?, notes))
    }

    async fn cdf(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let x = self.x()?;
        let table = self.table(x);
        let seed = SEED.to_owned();
        let names: Vec<String> = [x, &seed].into_iter().chain(self.names()).cloned().collect();
        let rows = rows(source, table, &names).await?;
        let axes = self.axes(x, &format!("share of {table}"));
        Ok((kinds::cdf(&rows, &axes, Some(SEEDS), &self.look).map_err(refused)?, Vec::new()))
    }

    async fn series(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let name = self.y()?;
        let (rows, is_over_time) = self.points(source, name).await?;
        let caps = match &self.args.cap {
            None => None,
            Some(cap) => Some(self.caps(source, cap, &rows, name).await?),
        };
        let axes = self.axes("x", "value");
        let figure = match is_over_time {
            true => kinds::steps(&rows, caps.as_ref(), &axes, &self.look),
            false => kinds::lines(&rows, &axes, &self.look),
        };
        Ok((figure.map_err(refused)?, Vec::new()))
    }

    /// The points of a series, one task in each line.
    async fn points(&self, source: &Source<'_>, name: &str) -> Result<(Table, bool), Failure> {
        let known: Vec<&str> = SERIES.iter().map(|series| series.name).collect();
        if !known.contains(&name) {
            return Err(failure!(Usage, "{}", unknown("series", name, &known)));
        }
        let names: Vec<String> = ["x", "value", TASK].map(str::to_owned).iter().chain(self.names()).cloned().collect();
        let only = Condition { column: "series".to_owned(), op: Op::Equal, value: Cell::Text(name.to_owned()) };
        let mut rows = source.read(Stored::Series, &names, &[only]).await?;
        if let Some((from, to)) = self.args.between {
            let x = rows.numeric("x").map_err(refused)?;
            let inside: Vec<usize> =
                (0..rows.rows()).filter(|row| x.number(*row).is_some_and(|x| (from..=to).contains(&x))).collect();
            rows = rows.taken(&inside);
        }
        if rows.rows() == 0 {
            let hint = "a manifest asks for series by series = [\"NAME\"]; series of the machine need a power cap, or \
                        watch_machine = true";
            return Err(failure!(Usage, "{} has no points of {name}; {hint}", source.experiment));
        }
        self.check_one_task(source, &rows).await?;
        let (value, is_over_time) = titles::series(name, rows.column("value").map_err(refused)?.values.clone());
        rows.push(value);
        if is_over_time {
            let x = rows.column("x").map_err(refused)?;
            rows.push(Column { title: "time".to_owned(), unit: "s".to_owned(), ..x.clone() });
        }
        Ok((rows, is_over_time))
    }

    /// Several tasks in one line would be drawn as one zigzag.
    async fn check_one_task(&self, source: &Source<'_>, rows: &Table) -> Result<(), Failure> {
        let by: Vec<&str> = self.names().map(String::as_str).collect();
        let task = rows.column(TASK).map_err(refused)?;
        for line in groups(rows, &by).map_err(refused)? {
            let tasks: std::collections::BTreeSet<String> = line.iter().map(|row| task.text(*row)).collect();
            if tasks.len() > 1 {
                let differ = source.varying().await?.join(", ");
                return Err(failure!(
                    Usage,
                    "{} tasks would share a line: choose one by --where COLUMN=VALUE, or tell them apart by --colour or \
                     --facet; the tasks of the experiment differ in {differ}",
                    tasks.len()
                ));
            }
        }
        Ok(())
    }

    /// The lines of a cap: a number over the whole time, or a series.
    async fn caps(&self, source: &Source<'_>, cap: &str, rows: &Table, name: &str) -> Result<Table, Failure> {
        let Ok(level) = cap.parse::<f64>() else {
            let (mut caps, _) = self.points(source, cap).await?;
            if let Some(colour) = &self.args.colour {
                let named = caps.column(colour).map_err(refused)?;
                let levels = (0..caps.rows()).map(|row| format!("cap of {}", named.text(row)));
                let named = Column::texts(colour, &named.title, levels);
                caps.push(named);
            }
            return Ok(caps);
        };
        // One point at the begin and one at the end of each panel's time.
        let by: Vec<&str> = self.args.facet.iter().map(String::as_str).collect();
        let x = rows.numeric("x").map_err(refused)?;
        let mut ends = Vec::new();
        for panel in groups(rows, &by).map_err(refused)? {
            let at = |row: &usize| x.number(*row).unwrap_or_default();
            ends.extend(panel.iter().min_by(|one, other| at(one).total_cmp(&at(other))));
            ends.extend(panel.iter().max_by(|one, other| at(one).total_cmp(&at(other))));
        }
        let mut caps = rows.taken(&ends);
        let (value, _) = titles::series(name, powersweep_figures::Values::Numbers(vec![Some(level); ends.len()]));
        caps.push(Column { title: "cap".to_owned(), ..value });
        if let Some(colour) = &self.args.colour {
            let title = caps.column(colour).map_err(refused)?.title.clone();
            caps.push(Column::texts(colour, &title, vec!["cap"; ends.len()]));
        }
        Ok(caps)
    }

    async fn gantt(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let (colour, facet) = (self.args.colour.as_deref(), self.args.facet.as_deref());
        gantt(source, colour, facet, self.args.between, &self.look).await
    }

    async fn heatmap(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let (x, y) = (self.x()?, self.y()?);
        if self.args.colour.is_some() {
            return Err(failure!(Usage, "a heat map has no --colour: --value COLUMN shows the mean of a column"));
        }
        let seed = SEED.to_owned();
        let columns = [x, y, &seed].into_iter().chain(&self.args.value).chain(&self.args.facet);
        let names: Vec<String> = columns.cloned().collect();
        let rows = rows(source, self.table(x), &names).await?;
        let figure = kinds::heatmap(&rows, &self.axes(x, y), self.args.value.as_deref(), Some(SEEDS), &self.look);
        Ok((figure.map_err(refused)?, Vec::new()))
    }

    async fn effect(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let (x, y) = (self.x()?, self.y()?);
        if self.args.colour.is_some() {
            return Err(failure!(Usage, "the effect of an axis has no --colour: --facet splits it into panels"));
        }
        let others = source.varying().await?;
        let seed = SEED.to_owned();
        let names: Vec<String> = [x, y, &seed].into_iter().chain(&self.args.facet).chain(&others).cloned().collect();
        let mut rows = rows(source, self.table(y), &names).await?;
        combine(&mut rows, &others, &[x])?;
        let facet: Vec<&str> = self.args.facet.iter().map(String::as_str).collect();
        let by: Vec<&str> = std::iter::once(x.as_str()).chain(facet.iter().copied()).collect();
        let within: Vec<&str> = by.iter().copied().chain([SETTING]).collect();
        let settings = means(&rows, &within, &[y]).map_err(refused)?;
        // Combinations are no sample. So the interval is over the seeds: each seed counts with its mean over the combinations.
        let of_seed: Vec<&str> = by.iter().copied().chain([SEED]).collect();
        let seeds = means(&rows, &of_seed, &[y]).map_err(refused)?;
        let averages = means(&seeds, &by, &[y]).map_err(refused)?;
        let axes = Axes { interval: Some(interval(y)), colour: Some(SETTING.to_owned()), ..self.axes(x, y) };
        let figure = kinds::effect(&averages, Some(&settings), &axes, &self.look).map_err(refused)?;
        Ok((figure, Vec::new()))
    }

    async fn parallel(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let first = self.args.x.first().ok_or_else(|| failure!(Usage, "this figure needs columns: --x A,B,C"))?;
        if self.args.facet.is_some() || self.args.y.is_some() {
            return Err(failure!(Usage, "parallel coordinates have no --y and no --facet: --x A,B,C has all columns"));
        }
        let names: Vec<String> = self.args.x.iter().chain(&self.args.colour).cloned().collect();
        let rows = rows(source, self.table(first), &names).await?;
        let figure = kinds::parallel(&rows, &self.args.x, self.args.colour.as_deref(), &self.look);
        Ok((figure.map_err(refused)?, Vec::new()))
    }

    async fn pareto(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let (x, y) = (self.x()?, self.y()?);
        if let Some(other) = self.args.maximise.iter().find(|name| *name != x && *name != y) {
            return Err(failure!(Usage, "--maximise {other}: the front is of {x} and {y}"));
        }
        let others = source.varying().await?;
        let names: Vec<String> = [x, y].into_iter().chain(self.names()).chain(&others).cloned().collect();
        let mut rows = rows(source, self.table(x), &names).await?;
        combine(&mut rows, &others, &[])?;
        let by: Vec<&str> = self.names().map(String::as_str).chain([SETTING]).collect();
        let means = means(&rows, &by, &[x, y]).map_err(refused)?;
        let better = |name: &String| if self.args.maximise.contains(name) { Better::Higher } else { Better::Lower };
        let axes = Axes { interval: Some(interval(y)), interval_x: Some(interval(x)), ..self.axes(x, y) };
        let figure = kinds::pareto(&means, &axes, (better(x), better(y)), &self.look);
        Ok((figure.map_err(refused)?, Vec::new()))
    }
}

/// Jobs on processors over time, with colours by gear where no column is given.
pub(super) async fn gantt(
    source: &Source<'_>,
    colour: Option<&str>,
    facet: Option<&str>,
    between: Option<(f64, f64)>,
    look: &Look,
) -> Result<Made, Failure> {
    let fixed = ["start_s", "finish_s", "procs", "node_list", TASK];
    let colour = colour.unwrap_or("gear_index");
    let names: Vec<String> = fixed.into_iter().chain([colour]).chain(facet).map(str::to_owned).collect();
    let rows = rows(source, Stored::Jobs, &names).await?;
    let by: Vec<&str> = facet.into_iter().collect();
    let task = rows.column(TASK).map_err(refused)?;
    for panel in groups(&rows, &by).map_err(refused)? {
        if panel.iter().any(|row| task.text(*row) != task.text(panel[0])) {
            let differ = source.varying().await?.join(", ");
            return Err(failure!(
                Usage,
                "the jobs of several tasks would share a chart: choose one task by --where COLUMN=VALUE, or give each \
                 one a panel by --facet; the tasks of the experiment differ in {differ}"
            ));
        }
    }
    let columns = Gantt {
        start: "start_s".to_owned(),
        finish: "finish_s".to_owned(),
        procs: "procs".to_owned(),
        list: Some("node_list".to_owned()),
        colour: Some(colour.to_owned()),
        facet: facet.map(str::to_owned),
        between,
    };
    Ok((kinds::gantt(&rows, &columns, look).map_err(refused)?, Vec::new()))
}

/// Reads columns; no row is an error.
async fn rows(source: &Source<'_>, table: Stored, names: &[String]) -> Result<Table, Failure> {
    let rows = source.read(table, names, &[]).await?;
    match rows.rows() {
        0 if source.only.is_empty() => Err(failure!(Usage, "{} has no rows in {table} yet", source.experiment)),
        0 => Err(failure!(Usage, "no row of {table} satisfies --where")),
        _ => Ok(rows),
    }
}

/// Adds the combination of a row: its values in the columns that vary, without the seed and some others.
fn combine(rows: &mut Table, others: &[String], without: &[&str]) -> Result<(), Failure> {
    let is_part = |name: &&String| *name != SEED && !without.contains(&name.as_str());
    // A label stands for parameters: where a parameter is the axis, the labels of its values differ, too.
    let is_label = |name: &str| scan::LABELS.contains(&name) && !without.is_empty();
    let parts: Vec<&String> = others.iter().filter(is_part).collect();
    let has_parameters = parts.iter().any(|name| !is_label(name));
    let parts = parts.into_iter().filter(|name| !is_label(name) || !has_parameters);
    let columns: Vec<&Column> = parts.map(|name| rows.column(name)).collect::<Result<_, _>>().map_err(refused)?;
    let text = |row| columns.iter().map(|column| column.text(row)).collect::<Vec<_>>().join(", ");
    let combinations: Vec<String> = (0..rows.rows()).map(text).collect();
    rows.push(Column::texts(SETTING, "", combinations));
    Ok(())
}

/// A note if a mean is over more than seeds.
fn mixture(rows: &Table, by: &[&str], others: &[String]) -> Result<Vec<String>, Failure> {
    let others: Vec<String> = others.iter().filter(|name| *name != SEED).cloned().collect();
    let mixed = mixed(rows, by, &others).map_err(refused)?;
    Ok(match mixed.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "the means are over all values of {}: --where, --colour or --facet tells them apart",
            mixed.join(", ")
        )],
    })
}

/// An error of the figure's crate: of the arguments, unless the drawing failed.
pub fn refused(error: FigureError) -> Failure {
    match &error {
        FigureError::Drawing(_) | FigureError::Format { .. } | FigureError::Stopped | FigureError::Memory(_) => {
            failure!(Failure, "{error}")
        }
        _ => failure!(Usage, "{error}"),
    }
}
