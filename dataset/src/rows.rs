//! Rows in memory: values of axes as numbers, measures as reals.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type, Schema};
use powersweep_engine::Value;
use powersweep_engine::seeds::{self, Dependence};

use crate::cell::array;
use crate::error::{Error, usage};
use crate::frame::{UNIT, unit_of};
use crate::{Cell, Column, Frame};

/// Maximum number of rows that are held: a row takes 4 bytes for each axis and 8 for each measure.
pub const ROWS_MAX: usize = 200_000_000;

/// A column whose values distinguish rows.
#[derive(Debug, Clone)]
pub struct Axis {
    field: FieldRef,
    /// The different values, in the order in which they came.
    values: Vec<Cell>,
    known: HashMap<Vec<u8>, u32>,
    /// For each row the position of its value.
    codes: Vec<u32>,
}

impl Axis {
    fn new(field: FieldRef) -> Axis {
        Axis { field, values: Vec::new(), known: HashMap::new(), codes: Vec::new() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.field.name()
    }

    /// The different values, in the order in which they came.
    pub fn values(&self) -> &[Cell] {
        &self.values
    }

    /// For each of the values its position in another axis of the same column; `None` where that has no such value.
    pub(crate) fn positions_in(&self, other: &Axis) -> Vec<Option<u32>> {
        let mut positions = vec![None; self.values.len()];
        for (key, code) in &self.known {
            positions[*code as usize] = other.known.get(key).copied();
        }
        positions
    }

    /// The position of a row's value in [`Axis::values`].
    pub fn code(&self, row: usize) -> u32 {
        self.codes[row]
    }

    /// The value of a row.
    pub fn cell(&self, row: usize) -> &Cell {
        &self.values[self.codes[row] as usize]
    }

    fn push(&mut self, column: &dyn Array, rows: &[usize]) {
        let (mut key, mut last) = (Vec::new(), Vec::new());
        for (at, &row) in rows.iter().enumerate() {
            Cell::write_key(column, row, &mut key);
            // Neighbours often have the same value.
            if at > 0 && key == last {
                self.codes.extend(self.codes.last().copied());
                continue;
            }
            std::mem::swap(&mut key, &mut last);
            let key = &last;
            let code = match self.known.get(key) {
                Some(code) => *code,
                None => {
                    let code = self.values.len() as u32;
                    self.known.insert(key.clone(), code);
                    self.values.push(Cell::of(column, row));
                    code
                }
            };
            self.codes.push(code);
        }
    }

    /// The values of some rows.
    pub(crate) fn column(&self, rows: impl Iterator<Item = usize>) -> Column {
        let values = array(self.field.data_type(), rows.map(|row| self.cell(row)));
        Column::of(&FieldRef::new(self.field.as_ref().clone().with_nullable(true)), &values)
    }
}

/// Rows with chosen columns.
#[derive(Debug, Clone)]
pub struct Rows {
    axes: Vec<Axis>,
    measures: Vec<(FieldRef, Vec<f64>)>,
    /// What rows are ordered by.
    index: Vec<i64>,
    index_column: String,
    /// The dependence of the seeds of each row; empty where it is not known.
    dependence: Vec<Dependence>,
}

impl Rows {
    /// No rows yet. `axes` and `measures` name columns of the batches to come; measures must be numbers. Groups are shown
    /// in the order of the column `index`, which has whole numbers.
    pub fn new(schema: &Schema, axes: &[&str], measures: &[&str], index: &str) -> Result<Rows, Error> {
        let field = |name: &&str| match schema.fields().find(name) {
            Some((_, field)) => Ok(FieldRef::clone(field)),
            None => Err(usage(format!("there is no column `{name}`"))),
        };
        let axes = axes.iter().map(|name| field(name).map(Axis::new)).collect::<Result<_, _>>()?;
        let measure = |name: &&str| match field(name)? {
            field if is_number(field.data_type()) => Ok((field, Vec::new())),
            field => {
                let has = if field.data_type().is_nested() { "lists" } else { "no numbers" };
                Err(usage(format!("`{name}` has {has}, so that it has no statistics; group by it instead")))
            }
        };
        let measures = measures.iter().map(measure).collect::<Result<_, _>>()?;
        Ok(Rows { axes, measures, index: Vec::new(), index_column: index.to_owned(), dependence: Vec::new() })
    }

    /// The rows of a frame, ordered by their positions.
    pub fn of(frame: &Frame, axes: &[&str], measures: &[&str]) -> Result<Rows, Error> {
        let mut rows = Rows::new(frame.batch().schema_ref(), axes, measures, "")?;
        rows.add_columns(frame.batch(), &(0..frame.rows()).collect::<Vec<_>>())?;
        rows.index.extend(0..frame.rows() as i64);
        Ok(rows)
    }

    /// Adds these rows of a batch, which has all columns.
    pub fn add(&mut self, batch: &RecordBatch, rows: &[usize]) -> Result<(), Error> {
        self.add_columns(batch, rows)?;
        let index = column(batch, &self.index_column)?.as_primitive_opt::<Int64Type>();
        self.index.extend(
            rows.iter()
                .map(|row| index.filter(|index| index.is_valid(*row)).map_or(i64::MAX, |index| index.value(*row))),
        );
        Ok(())
    }

    fn add_columns(&mut self, batch: &RecordBatch, rows: &[usize]) -> Result<(), Error> {
        if self.len() + rows.len() > ROWS_MAX {
            let hint = "choose fewer by conditions, or query the Parquet files with SQL";
            return Err(usage(format!("more than {ROWS_MAX} rows: {hint}")));
        }
        for axis in &mut self.axes {
            axis.push(column(batch, axis.field.name())?, rows);
        }
        for (field, values) in &mut self.measures {
            push_numbers(column(batch, field.name())?, rows, values);
        }
        Ok(())
    }

    /// Adds a row without measures. `cell` gives its value of each axis, from the axis's only value if it has one.
    pub(crate) fn add_empty(&mut self, cell: impl Fn(&str, Option<&Cell>) -> Cell) {
        for axis in &mut self.axes {
            let only = axis.values.first().filter(|_| axis.values.len() == 1);
            let column = array(axis.field.data_type(), std::iter::once(&cell(axis.name(), only)));
            axis.push(&column, &[0]);
        }
        self.measures.iter_mut().for_each(|(_, values)| values.push(f64::NAN));
        self.index.push(i64::MAX);
        if !self.dependence.is_empty() {
            self.dependence.push(self.dependence(0..self.dependence.len()));
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The axes, in the order of their names at the start.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The axis of a name.
    pub fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.name() == name)
    }

    /// The measures with their values, NaN for none.
    pub fn measures(&self) -> &[(FieldRef, Vec<f64>)] {
        &self.measures
    }

    /// These rows with relative energies, powers, emissions and costs.
    pub fn with_relative_units(self) -> Rows {
        self.with_units(|field| {
            let unit = field.metadata().get(UNIT).map_or("", String::as_str);
            Some(unit_of(field.name(), unit, true)).filter(|unit| !unit.is_empty()).map(str::to_owned)
        })
    }

    /// These rows with the units that a function gives to measures.
    pub fn with_units(mut self, unit: impl Fn(&Field) -> Option<String>) -> Rows {
        for (field, _) in &mut self.measures {
            let Some(unit) = unit(field) else { continue };
            let mut metadata = field.metadata().clone();
            metadata.insert(UNIT.to_owned(), unit);
            *field = FieldRef::new(field.as_ref().clone().with_metadata(metadata));
        }
        self
    }

    /// These rows with one more axis, of a text or nothing for each row.
    pub fn with_texts(mut self, name: &str, texts: impl Iterator<Item = Option<String>>) -> Rows {
        let texts: StringArray = texts.collect();
        let mut axis = Axis::new(FieldRef::new(Field::new(name, DataType::Utf8, true)));
        axis.push(&texts, &(0..self.len()).collect::<Vec<_>>());
        self.axes.push(axis);
        self
    }

    /// These rows without an axis.
    pub fn without(mut self, axis: &str) -> Rows {
        self.axes.retain(|own| own.name() != axis);
        self
    }

    /// These rows with the dependence of their seeds. Axes tell it ([`seeds::columns`]).
    pub(crate) fn with_dependence(mut self) -> Rows {
        let names = seeds::columns();
        let axes: Vec<Option<&Axis>> = names.iter().map(|name| self.axis(name)).collect();
        let value = |name: &str, row: usize| {
            let at = names.iter().position(|read| *read == name)?;
            parameter(axes[at]?.cell(row))
        };
        let mut known: HashMap<Vec<Option<u32>>, Dependence> = HashMap::new();
        let of_row = |row: usize| {
            let key = axes.iter().map(|axis| axis.map(|axis| axis.code(row))).collect();
            *known.entry(key).or_insert_with(|| seeds::dependence_by(|name| value(name, row)))
        };
        self.dependence = (0..self.len()).map(of_row).collect();
        self
    }

    /// The dependence of the seeds of rows. Seeds of rows of which it is not known are independent.
    pub fn dependence(&self, rows: impl Iterator<Item = usize>) -> Dependence {
        rows.map(|row| self.dependence.get(row).copied().unwrap_or_default()).max().unwrap_or(Dependence::Alike)
    }

    /// Whether no seed changes these rows: rows that differ in the seed alone are one replicate.
    pub fn are_fixed(&self, rows: impl Iterator<Item = usize>) -> bool {
        self.dependence(rows) == Dependence::Alike
    }

    /// The rows of each combination of values of these axes, in the order of the least index of a group. Without axes there
    /// is one group, also of no rows.
    pub fn groups(&self, by: &[&str]) -> Result<Vec<Vec<u32>>, Error> {
        let axis = |name: &&str| self.axis(name).ok_or_else(|| usage(format!("there is no column `{name}`")));
        let axes: Vec<&Axis> = by.iter().map(axis).collect::<Result<_, _>>()?;
        if axes.is_empty() {
            return Ok(vec![(0..self.len() as u32).collect()]);
        }
        let mut known: HashMap<Vec<u32>, usize> = HashMap::new();
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut key = Vec::with_capacity(axes.len());
        for row in 0..self.len() {
            key.clear();
            key.extend(axes.iter().map(|axis| axis.code(row)));
            let at = match known.get(&key) {
                Some(at) => *at,
                None => {
                    known.insert(key.clone(), groups.len());
                    groups.push(Vec::new());
                    groups.len() - 1
                }
            };
            groups[at].push(row as u32);
        }
        let first = |group: &Vec<u32>| group.iter().map(|row| self.index(*row as usize)).min();
        groups.sort_by_cached_key(first);
        Ok(groups)
    }

    /// The rows as a frame of some of their columns, in the order of the rows' index.
    pub fn frame(&self, names: &[&str]) -> Result<Frame, Error> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|row| self.index(*row));
        let mut columns: Vec<Column> = Vec::new();
        for name in names {
            if columns.iter().any(|column| column.name() == *name) {
                continue;
            }
            let measure = self.measures.iter().find(|(field, _)| field.name() == name);
            columns.push(match (self.axis(name), measure) {
                (Some(axis), _) => axis.column(order.iter().copied()),
                (None, Some((field, values))) => {
                    let number = |row: &usize| Some(values[*row]).filter(|value| !value.is_nan());
                    let unit = field.metadata().get(UNIT).map_or("", String::as_str);
                    Column::numbers(name, name, unit, order.iter().map(number))
                }
                (None, None) => return Err(usage(format!("the rows have no column `{name}`"))),
            });
        }
        Ok(Frame::of(columns))
    }

    /// What a row is ordered by.
    pub fn index(&self, row: usize) -> i64 {
        self.index[row]
    }
}

/// The value of a component or a parameter.
pub(crate) fn parameter(cell: &Cell) -> Option<Value> {
    match cell {
        Cell::Int(value) => Some(Value::Int(*value)),
        Cell::Real(value) => Some(Value::Real(*value)),
        Cell::Text(text) => Some(Value::Text(text.clone())),
        _ => None,
    }
}

/// Whether a type has numbers.
pub fn is_number(of: &DataType) -> bool {
    matches!(of, DataType::Int64 | DataType::Float64 | DataType::Boolean)
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, Error> {
    batch.column_by_name(name).ok_or_else(|| usage(format!("the rows have no column `{name}`")))
}

fn push_numbers(column: &dyn Array, rows: &[usize], values: &mut Vec<f64>) {
    match column.data_type() {
        DataType::Float64 if column.null_count() == 0 => {
            let column = column.as_primitive::<Float64Type>().values();
            values.extend(rows.iter().map(|row| column[*row]));
        }
        _ => values.extend(rows.iter().map(|row| Cell::of(column, *row).number().unwrap_or(f64::NAN))),
    }
}
