//! Figures of experiments.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use powersweep::plot::{self as drawing, Axes, Chart, Format, PlotOptions, Width};
use powersweep::{Error, failure, papers};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::calls::{Noted, one_of, run, wrong};
use crate::place::{Place, table_of};

/// The columns of a chart.
struct Columns {
    x: Vec<String>,
    y: Option<String>,
    colour: bool,
    facet: bool,
    value: Option<String>,
    cap: Option<String>,
    between: Option<(f64, f64)>,
    maximise: Vec<String>,
}

/// The chart of some columns.
type OfColumns = fn(Columns) -> Result<Chart, Error>;

/// The kinds of figures by name.
const KINDS: [(&str, OfColumns); 9] = [
    ("bars", |of| Ok(Chart::Bars(of.axes()?))),
    ("lines", |of| Ok(Chart::Lines(of.axes()?))),
    ("cdf", |of| Ok(Chart::Cdf(of.one_x()?))),
    ("series", |of| {
        let name = of.y.ok_or_else(|| failure!(Usage, "this figure needs a series: --y SERIES"))?;
        Ok(Chart::Series { name, cap: of.cap, between: of.between })
    }),
    ("gantt", |of| Ok(Chart::Gantt { between: of.between })),
    ("heatmap", |of| match of.colour {
        true => Err(failure!(Usage, "a heat map has no --colour: --value COLUMN shows the mean of a column")),
        false => Ok(Chart::Heatmap { axes: of.axes()?, value: of.value }),
    }),
    ("effect", |of| match of.colour {
        true => Err(failure!(Usage, "the effect of an axis has no --colour: --facet splits it into panels")),
        false => Ok(Chart::Effect(of.axes()?)),
    }),
    ("parallel", |of| match of.facet || of.y.is_some() {
        _ if of.x.is_empty() => Err(failure!(Usage, "this figure needs columns: --x A,B,C")),
        true => Err(failure!(Usage, "parallel coordinates have no --y and no --facet: --x A,B,C has all columns")),
        false => Ok(Chart::Parallel(of.x)),
    }),
    ("pareto", |of| Ok(Chart::Pareto { axes: of.axes()?, maximise: of.maximise })),
];

impl Columns {
    fn axes(&self) -> Result<Axes, Error> {
        let y = self.y.clone().ok_or_else(|| failure!(Usage, "this figure needs a vertical axis: --y COLUMN"))?;
        Ok(Axes { x: self.one_x()?, y })
    }

    fn one_x(&self) -> Result<String, Error> {
        match self.x.as_slice() {
            [x] => Ok(x.clone()),
            _ => Err(failure!(Usage, "this figure needs one column: --x COLUMN")),
        }
    }
}

/// Reads the rows of a figure: of a kind, or of a paper's preset.
#[pyfunction]
#[pyo3(signature = (place, experiment, *, figure, preset, x, y, colour, facet, value, table, only, cap, between, log,
                    maximise, width, style))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn plot(
    py: Python<'_>,
    place: &Place,
    experiment: String,
    figure: Option<String>,
    preset: Option<String>,
    x: Vec<String>,
    y: Option<String>,
    colour: Option<String>,
    facet: Option<String>,
    value: Option<String>,
    table: Option<String>,
    only: Vec<String>,
    cap: Option<String>,
    between: Option<(f64, f64)>,
    log: Vec<String>,
    maximise: Vec<String>,
    width: Option<String>,
    style: Option<PathBuf>,
) -> Noted<Drawing> {
    place.ask(py, async move |place| {
        let log = log.iter().map(|axis| one_of("--log", axis, &[("x", true), ("y", false)]));
        let log: Vec<bool> = log.collect::<Result<_, Error>>()?;
        let width = width.map(|width| one_of("--width", &width, &[("column", Width::Column), ("page", Width::Page)]));
        if between.is_some_and(|(from, to)| from >= to) {
            return Err(wrong("--between", "a time is two numbers of seconds, such as 0..3600"));
        }
        let columns = Columns { x, y, colour: colour.is_some(), facet: facet.is_some(), value, cap, between, maximise };
        let options = PlotOptions {
            table: table.map(|table| table_of(&table)).transpose()?,
            colour,
            facet,
            only,
            log_x: log.contains(&true),
            log_y: log.contains(&false),
            width: width.transpose()?,
            style: style.map(|file| style_of(&file)).transpose()?,
        };
        let drawn = match (preset, figure) {
            (Some(preset), _) => place.plot_preset(&papers::choose(&experiment, &preset)?, &options).await?,
            (None, Some(kind)) => {
                let chart = one_of("--figure", &kind, &KINDS)?(columns)?;
                place.plot(&experiment, &chart, &options).await?
            }
            (None, None) => return Err(failure!(Usage, "a figure needs --figure KIND or --preset NAME")),
        };
        drawn.notes().iter().for_each(|note| place.notes.say(note));
        Ok(Drawing(Arc::new(Mutex::new(drawing::Drawing::of(drawn, experiment)))))
    })
}

/// Keys of Vega-Lite's config from a file.
fn style_of(file: &std::path::Path) -> Result<serde_json::Value, Error> {
    let named = |error: &dyn std::fmt::Display| failure!(Usage, "{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| named(&error))?;
    serde_json::from_str(&text).map_err(|error| named(&error))
}

/// A figure with its rows.
#[pyclass(frozen, module = "powersweep._native")]
pub(crate) struct Drawing(Arc<Mutex<drawing::Drawing>>);

#[pymethods]
impl Drawing {
    /// The figure in a format: svg, png, pdf, html, vl.json or csv.
    fn render<'py>(&self, py: Python<'py>, format: String) -> PyResult<Bound<'py, PyBytes>> {
        let figure = Arc::clone(&self.0);
        let (bytes, _) = run(py, move |_, _| {
            let format = Format::of(&format)?;
            figure.lock().unwrap_or_else(PoisonError::into_inner).bytes(format)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }
}
