//! A manifest that is a dict in Python.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use toml::{Table, Value};

/// The TOML of a manifest. An error names the key whose value TOML does not have.
#[pyfunction]
pub(crate) fn manifest_text(manifest: &Bound<'_, PyDict>) -> PyResult<String> {
    let table = table(manifest, "")?;
    toml::to_string(&table).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn table(dict: &Bound<'_, PyDict>, path: &str) -> PyResult<Table> {
    let mut table = Table::new();
    for (key, value) in dict {
        let key: String = key.extract().map_err(|_| wrong(path, "a key that is no text"))?;
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        table.insert(key, toml_value(&value, &path)?);
    }
    Ok(table)
}

fn toml_value(value: &Bound<'_, PyAny>, path: &str) -> PyResult<Value> {
    // A bool is an int, too.
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Boolean(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return value.extract().map(Value::Integer).map_err(|_| wrong(path, "an integer of more than 64 bits"));
    }
    if value.is_instance_of::<PyFloat>() {
        // Manifests have a word for it.
        let number: f64 = value.extract()?;
        return Ok(if number == f64::INFINITY { Value::String("unlimited".to_owned()) } else { Value::Float(number) });
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Value::String(value.extract()?));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return Ok(Value::Table(table(dict, path)?));
    }
    match value.try_iter() {
        Ok(items) => {
            let items = items.enumerate().map(|(at, item)| toml_value(&item?, &format!("{path}[{at}]")));
            Ok(Value::Array(items.collect::<PyResult<_>>()?))
        }
        Err(_) => {
            // Such as a path, or a number of NumPy.
            if let Ok(item) = value.call_method0("item") {
                return toml_value(&item, path);
            }
            if let Ok(text) = value.call_method0("__fspath__") {
                return Ok(Value::String(text.extract()?));
            }
            Err(wrong(path, &format!("a value of type {}", value.get_type().name()?)))
        }
    }
}

fn wrong(path: &str, what: &str) -> PyErr {
    let place = if path.is_empty() { "the manifest".to_owned() } else { format!("`{path}`") };
    PyTypeError::new_err(format!("{place} has {what}; a manifest has dicts, lists, texts, numbers and booleans"))
}
