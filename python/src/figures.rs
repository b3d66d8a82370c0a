//! Figures of experiments.

use std::sync::Arc;

use powersweep_cli::embedded::figures::{self, Figure};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::calls::{Noted, run};

/// Reads the rows of a figure.
#[pyfunction]
pub(crate) fn plot(py: Python<'_>, options: Vec<String>) -> Noted<Drawing> {
    run(py, move |_| figures::plot(options).map(|figure| Drawing(Arc::new(figure))))
}

/// A figure with its rows.
#[pyclass(frozen, module = "powersweep._native")]
pub(crate) struct Drawing(Arc<Figure>);

#[pymethods]
impl Drawing {
    /// The figure in a format: svg, png, pdf, html, vl.json or csv.
    fn render<'py>(&self, py: Python<'py>, format: String) -> PyResult<Bound<'py, PyBytes>> {
        let figure = Arc::clone(&self.0);
        let (bytes, _) = run(py, move |_| figure.bytes(&format))?;
        Ok(PyBytes::new(py, &bytes))
    }
}
