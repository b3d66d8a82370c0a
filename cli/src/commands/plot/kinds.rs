//! The figure that the arguments ask for, from the rows of the experiment.

use std::collections::BTreeSet;

use powersweep_dataset::condition::Op;
use powersweep_dataset::group::mixed;
use powersweep_dataset::scan::{self, SEED};
use powersweep_dataset::{Cell, Column, Condition, Frame, Rows};
use powersweep_engine::components::SERIES;
use powersweep_experiments::reading::unknown;
use powersweep_figures::kinds::{self, Axes, Better, Gantt};
use powersweep_figures::{Figure, FigureError, Look};
use powersweep_results::Table as Stored;

use super::aggregate::{SEEDS, interval, means};
use super::read::{Source, frame, table_of};
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
        let by = with(&[x], self.names());
        let rows = rows(source, self.table(y), &with(&by, &others), &[y]).await?;
        let means = means(&rows, &by, &[y]).map_err(refused)?;
        let axes = Axes { interval: Some(interval(y)), ..self.axes(x, y) };
        let figure = match self.args.figure {
            Some(FigureKind::Bars) => kinds::bars(&means, &axes, &self.look),
            _ => kinds::lines(&means, &axes, &self.look),
        };
        Ok((figure.map_err(refused)?, mixture(&rows, &by, &others)?))
    }

    async fn cdf(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let x = self.x()?;
        let table = self.table(x);
        let names: Vec<&str> = std::iter::once(SEED).chain(self.names().map(String::as_str)).collect();
        let rows = frame(&rows(source, table, &names, &[x]).await?, &with(&[x], names.iter().copied()))?;
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
    async fn points(&self, source: &Source<'_>, name: &str) -> Result<(Frame, bool), Failure> {
        let known: Vec<&str> = SERIES.iter().map(|series| series.name).collect();
        if !known.contains(&name) {
            return Err(failure!(Usage, "{}", unknown("series", name, &known)));
        }
        let condition = |column: &str, op, value| Condition { column: column.to_owned(), op, value };
        let mut only = vec![condition("series", Op::Equal, Cell::Text(name.to_owned()))];
        if let Some((from, to)) = self.args.between {
            only.push(condition("x", Op::AtLeast, Cell::Real(from)));
            only.push(condition("x", Op::AtMost, Cell::Real(to)));
        }
        let names: Vec<&str> = std::iter::once(TASK).chain(self.names().map(String::as_str)).collect();
        let rows = source.read(Stored::Series, &names, &["x", "value"], &only).await?;
        if rows.is_empty() {
            let hint = "a manifest asks for series by series = [\"NAME\"]; series of the machine need a power cap, or \
                        watch_machine = true";
            return Err(failure!(Usage, "{} has no points of {name}; {hint}", source.experiment));
        }
        self.check_one_task(source, &rows).await?;
        let mut points = frame(&rows, &with(&["x", "value"], names.iter().copied()))?;
        let (value, is_over_time) = titles::series(name, &points.column("value")?);
        points.push(value);
        if is_over_time {
            points.push(points.column("x")?.titled("time", "s"));
        }
        Ok((points, is_over_time))
    }

    /// Several tasks in one line would be drawn as one zigzag.
    async fn check_one_task(&self, source: &Source<'_>, rows: &Rows) -> Result<(), Failure> {
        let by: Vec<&str> = self.names().map(String::as_str).collect();
        for line in rows.groups(&by)? {
            let code = |row: &u32| rows.axis(TASK).map(|task| task.code(*row as usize));
            let tasks: BTreeSet<Option<u32>> = line.iter().map(code).collect();
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
    async fn caps(&self, source: &Source<'_>, cap: &str, rows: &Frame, name: &str) -> Result<Frame, Failure> {
        let Ok(level) = cap.parse::<f64>() else {
            let (mut caps, _) = self.points(source, cap).await?;
            if let Some(colour) = &self.args.colour {
                let named = caps.column(colour)?;
                let levels = (0..caps.rows()).map(|row| format!("cap of {}", named.text(row)));
                caps.push(Column::texts(colour, named.title(), levels));
            }
            return Ok(caps);
        };
        // One point at the begin and one at the end of each panel's time.
        let x = rows.column("x")?;
        let mut ends: Vec<usize> = Vec::new();
        for (_, panel) in rows.groups(self.args.facet.as_deref())? {
            let at = |row: &usize| x.number(*row).unwrap_or_default();
            ends.extend(panel.iter().min_by(|one, other| at(one).total_cmp(&at(other))));
            ends.extend(panel.iter().max_by(|one, other| at(one).total_cmp(&at(other))));
        }
        let mut caps = rows.picked(&ends);
        let (value, _) = titles::series(name, &Column::numbers("value", "", "", vec![level; ends.len()]));
        caps.push(value.titled("cap", value.unit()));
        if let Some(colour) = &self.args.colour {
            let title = caps.column(colour)?.title().to_owned();
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
        let axes: Vec<&str> = std::iter::once(SEED).chain(self.args.facet.as_deref()).collect();
        let measures: Vec<&str> = [x.as_str(), y].into_iter().chain(self.args.value.as_deref()).collect();
        let rows =
            frame(&rows(source, self.table(x), &axes, &measures).await?, &with(&measures, axes.iter().copied()))?;
        let figure = kinds::heatmap(&rows, &self.axes(x, y), self.args.value.as_deref(), Some(SEEDS), &self.look);
        Ok((figure.map_err(refused)?, Vec::new()))
    }

    async fn effect(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let (x, y) = (self.x()?, self.y()?);
        if self.args.colour.is_some() {
            return Err(failure!(Usage, "the effect of an axis has no --colour: --facet splits it into panels"));
        }
        let others = source.varying().await?;
        let by: Vec<&str> = std::iter::once(x.as_str()).chain(self.args.facet.as_deref()).collect();
        let of_seed = with(&by, [SEED]);
        let rows = rows(source, self.table(y), &with(&of_seed, &others), &[y]).await?;
        let combination = combination(&others, &[x]);
        let mut settings = means(&rows, &with(&by, combination.iter().copied()), &[y]).map_err(refused)?;
        let parts = combination.iter().map(|name| settings.column(name)).collect::<Result<Vec<_>, _>>()?;
        let text = |row| parts.iter().map(|column| column.text(row)).collect::<Vec<_>>().join(", ");
        settings.push(Column::texts(SETTING, "", (0..settings.rows()).map(text)));
        // Combinations are no sample. So the interval is over the seeds: each seed counts with its mean over the combinations.
        let seeds = means(&rows, &of_seed, &[y]).map_err(refused)?;
        let averages = means(&Rows::of(&seeds, &by, &[y])?, &by, &[y]).map_err(refused)?;
        let axes = Axes { interval: Some(interval(y)), colour: Some(SETTING.to_owned()), ..self.axes(x, y) };
        let figure = kinds::effect(&averages, Some(&settings), &axes, &self.look).map_err(refused)?;
        Ok((figure, Vec::new()))
    }

    async fn parallel(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let first = self.args.x.first().ok_or_else(|| failure!(Usage, "this figure needs columns: --x A,B,C"))?;
        if self.args.facet.is_some() || self.args.y.is_some() {
            return Err(failure!(Usage, "parallel coordinates have no --y and no --facet: --x A,B,C has all columns"));
        }
        let colour: Vec<&str> = self.args.colour.as_deref().into_iter().collect();
        let measures: Vec<&str> = self.args.x.iter().map(String::as_str).collect();
        let rows = frame(
            &rows(source, self.table(first), &colour, &measures).await?,
            &with(&measures, colour.iter().copied()),
        )?;
        let figure = kinds::parallel(&rows, &self.args.x, self.args.colour.as_deref(), &self.look);
        Ok((figure.map_err(refused)?, Vec::new()))
    }

    async fn pareto(&self, source: &Source<'_>) -> Result<Made, Failure> {
        let (x, y) = (self.x()?, self.y()?);
        if let Some(other) = self.args.maximise.iter().find(|name| *name != x && *name != y) {
            return Err(failure!(Usage, "--maximise {other}: the front is of {x} and {y}"));
        }
        let others = source.varying().await?;
        let names: Vec<&str> = self.names().map(String::as_str).collect();
        let by = with(&names, combination(&others, &[]));
        let rows = rows(source, self.table(x), &by, &[x, y]).await?;
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
    let colour = colour.unwrap_or("gear_index");
    let panels: Vec<&str> = facet.into_iter().collect();
    let names = with(&["node_list", TASK, colour], panels.iter().copied());
    let measures = ["start_s", "finish_s", "procs"];
    let rows = rows(source, Stored::Jobs, &names, &measures).await?;
    if !mixed(&rows, &panels, &[TASK])?.is_empty() {
        let differ = source.varying().await?.join(", ");
        return Err(failure!(
            Usage,
            "the jobs of several tasks would share a chart: choose one task by --where COLUMN=VALUE, or give each one a \
             panel by --facet; the tasks of the experiment differ in {differ}"
        ));
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
    let jobs = frame(&rows, &with(&measures, names.iter().copied()))?;
    Ok((kinds::gantt(&jobs, &columns, look).map_err(refused)?, Vec::new()))
}

/// Reads columns; no row is an error.
async fn rows(source: &Source<'_>, table: Stored, axes: &[&str], measures: &[&str]) -> Result<Rows, Failure> {
    let rows = source.read(table, axes, measures, &[]).await?;
    match rows.len() {
        0 if source.only.is_empty() => Err(failure!(Usage, "{} has no rows in {table} yet", source.experiment)),
        0 => Err(failure!(Usage, "no row of {table} satisfies --where")),
        _ => Ok(rows),
    }
}

/// Some names, and those of others that are not among them.
fn with<'a, S>(names: &[&'a str], others: impl IntoIterator<Item = &'a S>) -> Vec<&'a str>
where
    S: AsRef<str> + ?Sized + 'a,
{
    let mut all = names.to_vec();
    for name in others.into_iter().map(AsRef::as_ref) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// The columns whose values are the combination of a row: those that vary, without the seed and some others.
fn combination<'a>(others: &'a [String], without: &[&str]) -> Vec<&'a str> {
    // A label stands for parameters: where a parameter is the axis, the labels of its values differ, too.
    let is_label = |name: &str| scan::LABELS.contains(&name) && !without.is_empty();
    let all = others.iter().map(String::as_str);
    let parts: Vec<&str> = all.filter(|name| *name != SEED && !without.contains(name)).collect();
    let has_parameters = parts.iter().any(|name| !is_label(name));
    parts.into_iter().filter(|name| !is_label(name) || !has_parameters).collect()
}

/// A note if a mean is over more than seeds.
fn mixture(rows: &Rows, by: &[&str], others: &[String]) -> Result<Vec<String>, Failure> {
    let others: Vec<&str> = others.iter().map(String::as_str).filter(|name| *name != SEED).collect();
    let mixed = mixed(rows, by, &others)?;
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
