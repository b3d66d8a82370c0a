//! Charts from the rows of an experiment.

use std::collections::BTreeSet;

use powersweep_dataset::condition::Op;
use powersweep_dataset::group::mixed;
use powersweep_dataset::grouped::{check_one_signal, collected, differing, differing_settings, given, settings};
use powersweep_dataset::replicates::Method;
use powersweep_dataset::scan::{self, SEED};
use powersweep_dataset::source::{conditions, why_none};
use powersweep_dataset::{Cell, Column, Condition, Error, Frame, Rows, failure};
use powersweep_engine::components::SERIES;
use powersweep_engine::seeds::Dependence;
use powersweep_experiments::reading::{add_new, unknown};
use powersweep_figures::kinds::{self, Better, Gantt};
use powersweep_figures::{Figure, Look};
use powersweep_results::{Table as Stored, tasks};

use super::aggregate::{interval, means};
use super::read::{Request, frame, table_of};
use super::{Axes, Chart, PlotOptions, titles};

/// Name of the column of combinations.
const SETTING: &str = "combination";
const TASK: &str = "task_id";
/// Names of the columns of paths, and of places on them.
const PATH: &str = "joined_as";
const PLACE: &str = "joined_place";

/// The time that is drawn (s); all of it without one.
type Span = Option<(f64, f64)>;
/// A chart of means in the crate of figures.
type Kind = fn(&Frame, &kinds::Axes, &Look) -> powersweep_figures::Result<Figure>;

impl Request<'_> {
    /// Reads the rows and builds the figure.
    pub(super) async fn figure(&self, chart: &Chart) -> Result<Figure, Error> {
        match chart {
            Chart::Bars(axes) => self.means(axes, kinds::bars).await,
            Chart::Lines(axes) => self.means(axes, kinds::lines).await,
            Chart::Cdf(x) => self.cdf(x).await,
            Chart::Series { name, cap, between } => self.series(name, cap.as_deref(), *between).await,
            Chart::Gantt { between } => self.gantt(*between).await,
            Chart::Heatmap { axes, value } => self.heatmap(axes, value.as_deref()).await,
            Chart::Effect(axes) => self.effect(axes).await,
            Chart::Parallel(columns) => self.parallel(columns).await,
            Chart::Pareto { axes, maximise } => self.pareto(axes, maximise).await,
            Chart::Sensitivity(of) => self.sensitivity(of).await,
        }
    }

    async fn axes(&self, x: &str, y: &str) -> Result<kinds::Axes, Error> {
        let PlotOptions { log_x, log_y, free_x, free_y, .. } = *self.options;
        let (colour, facet, levels) = (self.options.colour.clone(), self.options.facet.clone(), self.levels().await?);
        Ok(kinds::Axes { colour, levels, facet, log_x, log_y, free_x, free_y, ..kinds::Axes::of(x, y) })
    }

    /// All values that the tasks have in the column of colours, whatever the conditions: one policy has one colour in all
    /// figures of a sweep.
    async fn levels(&self) -> Result<Vec<String>, Error> {
        match self.options.colour.as_deref().filter(|name| tasks::schema().column_with_name(name).is_some()) {
            None => Ok(Vec::new()),
            Some(name) => {
                let reading = self.datasets.read(self.experiment, Stored::Tasks).await?;
                let rows = collected(self.datasets, &reading, self.facts, [&[name][..], &[]], Vec::new()).await?;
                Ok(frame(&rows, &[name])?.column(name)?.levels())
            }
        }
    }

    /// The columns of colour and panels.
    fn names(&self) -> impl Iterator<Item = &String> {
        self.options.colour.iter().chain(&self.options.facet)
    }

    fn table(&self, x: &str) -> Stored {
        self.options.table.unwrap_or_else(|| table_of(x))
    }

    async fn means(&self, axes: &Axes, kind: Kind) -> Result<Figure, Error> {
        let Axes { x, y } = axes;
        let others = self.varying();
        let by = with(&[x], self.names());
        let axes =
            with(&with(&with(&by, &others), [SEED]), settings(self.table(y)).iter().copied().filter(|name| name != y));
        let rows = self.rows(self.table(y), &axes, &[y]).await?;
        let means = means(&rows, &by, &[y])?;
        let axes = kinds::Axes { interval: Some(interval(y)), ..self.axes(x, y).await? };
        let mut figure = kind(&means, &axes, self.look)?;
        // A mean should be over seeds alone.
        let others: Vec<&str> = others.iter().map(String::as_str).filter(|name| *name != SEED).collect();
        let mixed = differing(&rows, &by, &others)?.join(", ");
        if !mixed.is_empty() {
            let hint = "a condition, a colour or a facet tells them apart";
            figure.add_note(format!("the means are over all values of {mixed}: {hint}"));
        }
        self.lacking(self.table(y), &by).await?.into_iter().for_each(|said| figure.add_note(said));
        Ok(figure)
    }

    async fn cdf(&self, x: &str) -> Result<Figure, Error> {
        let table = self.table(x);
        let names: Vec<&str> = std::iter::once(SEED).chain(self.names().map(String::as_str)).collect();
        let rows = self.rows(table, &with(&names, settings(table).first()), &[x]).await?;
        check_one_signal(&rows, &names[1..])?;
        let replicates = replicates(&rows);
        let rows = frame(&rows, &with(&[x], names.iter().copied()))?;
        let axes = self.axes(x, &format!("share of {table}")).await?;
        kinds::cdf(&rows, &axes, replicates, self.look)
    }

    async fn series(&self, name: &str, cap: Option<&str>, between: Span) -> Result<Figure, Error> {
        let (rows, is_over_time) = self.points(name, between).await?;
        let caps = match cap {
            None => None,
            Some(cap) => Some(self.caps(cap, between, &rows, name).await?),
        };
        let axes = self.axes("x", "value").await?;
        Ok(match is_over_time {
            true => kinds::steps(&rows, caps.as_ref(), &axes, self.look)?,
            false => kinds::lines(&rows, &axes, self.look)?,
        })
    }

    /// The points of a series, one task in each line.
    async fn points(&self, name: &str, between: Span) -> Result<(Frame, bool), Error> {
        let known: Vec<&str> = SERIES.iter().map(|series| series.name).collect();
        if !known.contains(&name) {
            return Err(failure!(Usage, "{}", unknown("series", name, &known)));
        }
        let condition = |column: &str, op, value| Condition { column: column.to_owned(), op, value };
        let mut only = vec![condition("series", Op::Equal, Cell::Text(name.to_owned()))];
        if let Some((from, to)) = between {
            only.push(condition("x", Op::AtLeast, Cell::Real(from)));
            only.push(condition("x", Op::AtMost, Cell::Real(to)));
        }
        let names: Vec<&str> = std::iter::once(TASK).chain(self.names().map(String::as_str)).collect();
        let rows = self.read(Stored::Series, &names, &["x", "value"], &only).await?;
        if rows.is_empty() {
            let hint = "a manifest asks for series by series = [\"NAME\"]; series of the machine need a power cap, or \
                        watch_machine = true";
            return Err(failure!(Usage, "{} has no points of {name}; {hint}", self.experiment));
        }
        self.check_one_task(&rows).await?;
        let mut points = frame(&rows, &with(&["x", "value"], names.iter().copied()))?;
        let (value, is_over_time) = titles::series(name, &points.column("value")?, self.facts.is_relative);
        points.push(value);
        if is_over_time {
            points.push(points.column("x")?.titled("time", "s"));
        }
        Ok((points, is_over_time))
    }

    /// Several tasks in one line would be drawn as one zigzag.
    async fn check_one_task(&self, rows: &Rows) -> Result<(), Error> {
        let by: Vec<&str> = self.names().map(String::as_str).collect();
        for line in rows.groups(&by)? {
            let code = |row: &u32| rows.axis(TASK).map(|task| task.code(*row as usize));
            let tasks: BTreeSet<Option<u32>> = line.iter().map(code).collect();
            if tasks.len() > 1 {
                let differ = self.varying().join(", ");
                return Err(failure!(
                    Usage,
                    "{} tasks would share a line: choose one by a condition, or tell them apart by colour or facet; the \
                     tasks of the experiment differ in {differ}",
                    tasks.len()
                ));
            }
        }
        Ok(())
    }

    /// The lines of a cap: a number over the whole time, or a series.
    async fn caps(&self, cap: &str, between: Span, rows: &Frame, name: &str) -> Result<Frame, Error> {
        let Ok(level) = cap.parse::<f64>() else {
            let (mut caps, _) = self.points(cap, between).await?;
            if let Some(colour) = &self.options.colour {
                let named = caps.column(colour)?;
                let levels = (0..caps.rows()).map(|row| format!("cap of {}", named.text(row)));
                caps.push(Column::texts(colour, named.title(), levels));
            }
            return Ok(caps);
        };
        // One point at the begin and one at the end of each panel's time.
        let x = rows.column("x")?;
        let mut ends: Vec<usize> = Vec::new();
        for (_, panel) in rows.groups(self.options.facet.as_deref())? {
            let at = |row: &usize| x.number(*row).unwrap_or_default();
            ends.extend(panel.iter().min_by(|one, other| at(one).total_cmp(&at(other))));
            ends.extend(panel.iter().max_by(|one, other| at(one).total_cmp(&at(other))));
        }
        let mut caps = rows.picked(&ends);
        let (value, _) =
            titles::series(name, &Column::numbers("value", "", "", vec![level; ends.len()]), self.facts.is_relative);
        caps.push(value.titled("cap", value.unit()));
        if let Some(colour) = &self.options.colour {
            let title = caps.column(colour)?.title().to_owned();
            caps.push(Column::texts(colour, &title, vec!["cap"; ends.len()]));
        }
        Ok(caps)
    }

    /// Jobs on processors over time.
    pub(super) async fn gantt(&self, between: Span) -> Result<Figure, Error> {
        let PlotOptions { colour, facet, .. } = self.options;
        let colour = colour.as_deref().unwrap_or("gear_index");
        let panels: Vec<&str> = facet.as_deref().into_iter().collect();
        let names = with(&["node_list", TASK, colour], panels.iter().copied());
        let measures = ["start_s", "finish_s", "procs"];
        let rows = self.rows(Stored::Jobs, &names, &measures).await?;
        if !mixed(&rows, &panels, &[TASK])?.is_empty() {
            let differ = self.varying().join(", ");
            return Err(failure!(
                Usage,
                "the jobs of several tasks would share a chart: choose one by a condition, or give each one a panel by \
                 facet; the tasks of the experiment differ in {differ}"
            ));
        }
        let columns = Gantt {
            start: "start_s".to_owned(),
            finish: "finish_s".to_owned(),
            procs: "procs".to_owned(),
            list: Some("node_list".to_owned()),
            colour: Some(colour.to_owned()),
            facet: facet.clone(),
            between,
        };
        kinds::gantt(&frame(&rows, &with(&measures, names.iter().copied()))?, &columns, self.look)
    }

    async fn heatmap(&self, axes: &Axes, value: Option<&str>) -> Result<Figure, Error> {
        let Axes { x, y } = axes;
        let names: Vec<&str> = std::iter::once(SEED).chain(self.options.facet.as_deref()).collect();
        let measures: Vec<&str> = [x.as_str(), y].into_iter().chain(value).collect();
        let table = self.table(x);
        let rows = self.rows(table, &with(&names, settings(table).first()), &measures).await?;
        check_one_signal(&rows, &names[1..])?;
        let replicates = replicates(&rows);
        let rows = frame(&rows, &with(&measures, names.iter().copied()))?;
        let axes = kinds::Axes { colour: None, ..self.axes(x, y).await? };
        kinds::heatmap(&rows, &axes, value, replicates, self.look)
    }

    async fn effect(&self, axes: &Axes) -> Result<Figure, Error> {
        let Axes { x, y } = axes;
        let others = self.varying();
        let by: Vec<&str> = std::iter::once(x.as_str()).chain(self.options.facet.as_deref()).collect();
        let axes =
            with(&with(&with(&by, [SEED]), &others), settings(self.table(y)).iter().copied().filter(|name| name != y));
        let rows = self.rows(self.table(y), &axes, &[y]).await?;
        let mut combination = combination(&others, &[x]);
        combination.extend(differing_settings(&rows, &with(&by, combination.iter().copied()))?);
        let mut settings = means(&rows, &with(&by, combination.iter().copied()), &[y])?;
        let parts = combination.iter().map(|name| settings.column(name)).collect::<Result<Vec<_>, _>>()?;
        let text = |row| parts.iter().map(|column| column.text(row)).collect::<Vec<_>>().join(", ");
        settings.push(Column::texts(SETTING, "", (0..settings.rows()).map(text)));
        let averages = means(&rows, &by, &[y])?;
        let axes =
            kinds::Axes { interval: Some(interval(y)), colour: Some(SETTING.to_owned()), ..self.axes(x, y).await? };
        let mut figure = kinds::effect(&averages, Some(&settings), &axes, self.look)?;
        self.lacking(self.table(y), &with(&by, combination)).await?.into_iter().for_each(|said| figure.add_note(said));
        Ok(figure)
    }

    async fn parallel(&self, columns: &[String]) -> Result<Figure, Error> {
        let colour: Vec<&str> = self.options.colour.as_deref().into_iter().collect();
        let measures: Vec<&str> = columns.iter().map(String::as_str).collect();
        let table = self.table(measures.first().copied().unwrap_or_default());
        let rows = self.rows(table, &colour, &measures).await?;
        let rows = frame(&rows, &with(&measures, colour.iter().copied()))?;
        kinds::parallel(&rows, columns, self.options.colour.as_deref(), self.look)
    }

    async fn pareto(&self, axes: &Axes, maximise: &[String]) -> Result<Figure, Error> {
        let Axes { x, y } = axes;
        if let Some(other) = maximise.iter().find(|name| *name != x && *name != y) {
            return Err(failure!(Usage, "{other} cannot be maximised: the front is of {x} and {y}"));
        }
        let others = self.varying();
        let names: Vec<&str> = self.names().map(String::as_str).collect();
        let by = with(&names, combination(&others, &[]));
        let of_signals = settings(self.table(x)).iter().copied().filter(|name| name != x && name != y);
        let rows = self.rows(self.table(x), &with(&with(&by, [SEED]), of_signals), &[x, y]).await?;
        let by = with(&by, differing_settings(&rows, &by)?);
        let mut means = means(&rows, &by, &[x, y])?;
        let joined = joined(&mut means, &by, self.names().map(String::as_str).collect())?;
        let better = |name: &String| if maximise.contains(name) { Better::Higher } else { Better::Lower };
        let ends = (Some(interval(y)), Some(interval(x)));
        let axes = kinds::Axes { interval: ends.0, interval_x: ends.1, joined, ..self.axes(x, y).await? };
        let mut figure = kinds::pareto(&means, &axes, (better(x), better(y)), self.look)?;
        given(&rows, &by).into_iter().for_each(|said| figure.add_note(said));
        self.lacking(self.table(x), &by).await?.into_iter().for_each(|said| figure.add_note(said));
        Ok(figure)
    }

    /// Sentences about the tasks of a table without rows.
    async fn lacking(&self, table: Stored, by: &[&str]) -> Result<Vec<String>, Error> {
        let reading = self.datasets.read(self.experiment, table).await?;
        self.facts.lacking(self.datasets, &reading, by, &conditions(table, &self.options.only)?).await
    }

    /// Reads columns; no row is an error.
    async fn rows(&self, table: Stored, axes: &[&str], measures: &[&str]) -> Result<Rows, Error> {
        let rows = self.read(table, axes, measures, &[]).await?;
        match rows.len() {
            0 if self.options.only.is_empty() => Err(failure!(
                Usage,
                "{0} has no rows in {table} yet: `powersweep status {0}` says whether its tasks run",
                self.experiment
            )),
            0 => {
                let reading = self.datasets.read(self.experiment, table).await?;
                Err(failure!(Usage, "{}", why_none(self.datasets, &reading, &self.options.only).await?))
            }
            _ => Ok(rows),
        }
    }
}

/// Some names, and those of others that are not among them.
fn with<'a, S>(names: &[&'a str], others: impl IntoIterator<Item = &'a S>) -> Vec<&'a str>
where
    S: AsRef<str> + ?Sized + 'a,
{
    let mut all = names.to_vec();
    add_new(&mut all, others.into_iter().map(AsRef::as_ref));
    all
}

/// Adds the path of each point, and its place on it, if points differ in one parameter of numbers beside colour and panels: a
/// threshold joins the points of a policy.
fn joined(means: &mut Frame, by: &[&str], coded: Vec<&str>) -> Result<Option<(String, String)>, Error> {
    let others = by.iter().filter(|name| !coded.contains(name) && !scan::LABELS.contains(name));
    let others = others.map(|name| means.column(name)).collect::<Result<Vec<_>, _>>()?;
    let (numbers, names): (Vec<Column>, Vec<Column>) = others.into_iter().partition(Column::is_numeric);
    let [along] = numbers.as_slice() else { return Ok(None) };
    let levels = along.levels();
    let paths = coded.iter().map(|name| means.column(name)).collect::<Result<Vec<_>, _>>()?;
    let path = |row| paths.iter().chain(&names).map(|column| column.text(row)).collect::<Vec<_>>().join(", ");
    // An unlimited threshold has the last place.
    let place = |row| levels.iter().position(|level| *level == along.text(row)).map(|at| at as f64);
    let rows = 0..means.rows();
    let added = [Column::texts(PATH, "", rows.clone().map(path)), Column::numbers(PLACE, "", "", rows.map(place))];
    added.into_iter().for_each(|column| means.push(column));
    Ok(Some((PATH.to_owned(), PLACE.to_owned())))
}

/// The column of the replicates of rows; none where no seed changes them.
fn replicates(rows: &Rows) -> Option<kinds::By<'static>> {
    let seeds = rows.dependence(0..rows.len());
    (seeds != Dependence::Alike).then_some((SEED, Method::of(seeds, 95)))
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
