//! Rows of a table, which other libraries take without a copy by Arrow's PyCapsule interface.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, RecordBatchIterator};
use arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef, TimestampMicrosecondType};
use arrow::ffi::{FFI_ArrowArrayStream, FFI_ArrowSchema};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList};

/// Rows of a table in memory.
///
/// Any library with Arrow's PyCapsule interface takes them without a copy: `polars.DataFrame(rows)`,
/// `pyarrow.table(rows)`, `pandas.DataFrame.from_arrow(rows)`, `duckdb.sql("from rows")`.
///
/// >>> import powersweep
/// >>> jobs = powersweep.simulate(synthetic_jobs_count=20, jobs=True).jobs
/// >>> jobs
/// <powersweep.Rows: 20 rows, 26 columns>
/// >>> jobs["job_id"][:3]
/// [1, 2, 3]
#[pyclass(frozen, module = "powersweep")]
pub(crate) struct Rows {
    /// Columns of every batch.
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl From<RecordBatch> for Rows {
    fn from(batch: RecordBatch) -> Rows {
        Rows::new(batch.schema(), vec![batch])
    }
}

#[pymethods]
impl Rows {
    /// A PyCapsule with an Arrow C stream of all rows; each call gives another one. The rows have one representation:
    /// `requested_schema` changes nothing.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let batches = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// A PyCapsule with the columns as an Arrow C schema. Their metadata has `description` and `unit`.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema);
        let schema = schema.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.batches.iter().map(|batch| batch.num_rows()).sum()
    }

    /// The names of the columns, which an iteration over a data frame gives, too.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.columns())?.try_iter()
    }

    /// Whether there is a column of this name.
    fn __contains__(&self, column: &Bound<'_, PyAny>) -> bool {
        column.extract::<String>().is_ok_and(|name| self.schema.index_of(&name).is_ok())
    }

    /// The values of a column.
    fn __getitem__<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyList>> {
        let place = self
            .schema
            .index_of(column)
            .map_err(|_| PyKeyError::new_err(format!("no column `{column}`: `columns` has their names")))?;
        let values = PyList::empty(py);
        for batch in &self.batches {
            for row in 0..batch.num_rows() {
                values.append(value(py, batch.column(place), row)?)?;
            }
        }
        Ok(values)
    }

    /// Every row as a dict.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let dicts = PyList::empty(py);
        for (batch, of) in self.batches.iter().enumerate() {
            for row in 0..of.num_rows() {
                dicts.append(self.dict(py, batch, row)?)?;
            }
        }
        Ok(dicts)
    }

    /// The rows as a `polars.DataFrame`. Needs polars.
    fn to_polars<'py>(slf: &Bound<'py, Rows>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// The rows as a `pandas.DataFrame`. Needs pandas 3 and pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Rows>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pandas")?.getattr("DataFrame")?.call_method1("from_arrow", (slf,))
    }

    fn __repr__(&self) -> String {
        format!("<powersweep.Rows: {} rows, {} columns>", self.__len__(), self.schema.fields().len())
    }
}

impl Rows {
    /// Rows with these columns.
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Rows {
        Rows { schema, batches }
    }

    /// One row of one batch.
    pub(crate) fn dict<'py>(&self, py: Python<'py>, batch: usize, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (field, column) in self.schema.fields().iter().zip(self.batches[batch].columns()) {
            dict.set_item(field.name(), value(py, column, row)?)?;
        }
        Ok(dict)
    }
}

/// A value as Python's own type; an instant is a `datetime` in UTC.
fn value<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match column.data_type() {
        DataType::Boolean => Ok(column.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any()),
        DataType::Int64 => Ok(column.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any()),
        DataType::Float64 => Ok(column.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any()),
        DataType::Utf8 => Ok(column.as_string::<i32>().value(row).into_pyobject(py)?.into_any()),
        DataType::Timestamp(..) => instant(py, column.as_primitive::<TimestampMicrosecondType>().value(row)),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            let items: Vec<_> = (0..items.len()).map(|item| value(py, &items, item)).collect::<PyResult<_>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        other => Err(PyRuntimeError::new_err(format!("no Python type for {other}"))),
    }
}

/// Microseconds since 1970 as a `datetime`: exact, unlike a float of seconds.
fn instant(py: Python<'_>, us: i64) -> PyResult<Bound<'_, PyAny>> {
    let datetime = py.import("datetime")?;
    let utc = datetime.getattr("timezone")?.getattr("utc")?;
    let epoch = datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
    epoch.add(datetime.getattr("timedelta")?.call1((0, 0, us))?)
}
