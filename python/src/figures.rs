//! Figures of experiments.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use powersweep::plot::{self as drawing, Chart, Columns, Format, PlotOptions, Width};
use powersweep::{Error, failure, papers};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::calls::{Noted, one_of, run, wrong};
use crate::place::{Place, table_of};

/// Reads the rows of a figure: of a kind, or of a paper's preset.
#[pyfunction]
#[pyo3(signature = (place, experiment, *, figure, preset, x, y, colour, facet, value, table, only, cap, between, log,
                    free, maximise, width, style))]
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
    free: Vec<String>,
    maximise: Vec<String>,
    width: Option<String>,
    style: Option<PathBuf>,
) -> Noted<Drawing> {
    place.ask(py, async move |place| {
        let axes = |option: &str, names: &[String]| {
            let axes = names.iter().map(|axis| one_of(option, axis, &[("x", true), ("y", false)]));
            axes.collect::<Result<Vec<bool>, Error>>()
        };
        let (log, free) = (axes("--log", &log)?, axes("--free", &free)?);
        let width = width.map(|width| one_of("--width", &width, &[("column", Width::Column), ("page", Width::Page)]));
        if between.is_some_and(|(from, to)| from >= to) {
            return Err(wrong("--between", "a time is two numbers of seconds, such as 0..3600"));
        }
        let columns = Columns { x, y, value, cap, between, maximise };
        let options = PlotOptions {
            table: table.map(|table| table_of(&table)).transpose()?,
            colour,
            facet,
            only,
            log_x: log.contains(&true),
            log_y: log.contains(&false),
            free_x: free.contains(&true),
            free_y: free.contains(&false),
            width: width.transpose()?,
            style: style.map(|file| style_of(&file)).transpose()?,
        };
        let drawn = match (preset, figure) {
            (Some(preset), _) => place.plot_preset(&papers::choose(&experiment, &preset)?, &options).await?,
            (None, Some(kind)) => {
                let chart = Chart::of(&kind, columns, &options)?;
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
