//! A column's declaration, from which schema, arrays and documentation follow.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field as ArrowField, Schema, SchemaRef, TimeUnit};
use powersweep_engine::components::SERIES;
use powersweep_engine::facts::{Datum, Field, Kind};
use powersweep_experiments::reading::hint;

use crate::table::Table;

/// Key of a column's meaning in the metadata of its Arrow field.
pub const DESCRIPTION: &str = "description";
/// Key of a column's unit; missing for a column without a unit.
pub const UNIT: &str = "unit";

/// The description of one column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name; unique in its table.
    pub name: String,
    /// Type of the values.
    pub ty: Kind,
    /// Symbol of the unit ("s", "J", "procs"); "" for a number without a unit, a ratio or a text.
    pub unit: &'static str,
    /// Whether a row may have no value: null means "does not apply".
    pub nullable: bool,
    /// Meaning of the values.
    pub doc: String,
    /// Origin of the values: the farm, the manifest, the components that have the parameter, or the simulation.
    pub source: String,
}

impl Column {
    /// A column without a unit that has a value in every row.
    pub(crate) fn new(name: &str, ty: Kind, source: &str, doc: &str) -> Column {
        let (name, doc, source) = (name.to_owned(), doc.to_owned(), source.to_owned());
        Column { name, ty, unit: "", nullable: false, doc, source }
    }

    /// The Arrow type.
    ///
    /// Only types that DuckDB, Polars, pandas, DataFusion and Spark all read without a conversion: no unsigned integers,
    /// no Arrow dictionaries (Parquet's own dictionary pages give the same size).
    pub(crate) fn arrow(&self) -> DataType {
        match self.ty {
            Kind::Bool => DataType::Boolean,
            Kind::Int => DataType::Int64,
            Kind::Real => DataType::Float64,
            Kind::Text => DataType::Utf8,
            Kind::Instant => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Kind::Ints => DataType::List(Arc::new(ArrowField::new_list_field(DataType::Int64, true))),
            Kind::Reals => DataType::List(Arc::new(ArrowField::new_list_field(DataType::Float64, true))),
        }
    }

    /// The Arrow field: its metadata has description and unit, which Parquet files keep for their readers.
    fn field(&self) -> ArrowField {
        let unit = (!self.unit.is_empty()).then(|| (UNIT.to_owned(), self.unit.to_owned()));
        let metadata: HashMap<_, _> = unit.into_iter().chain([(DESCRIPTION.to_owned(), self.doc.clone())]).collect();
        ArrowField::new(&self.name, self.arrow(), self.nullable).with_metadata(metadata)
    }

    /// The type's name in the documentation.
    pub fn type_name(&self) -> &'static str {
        match self.ty {
            Kind::Bool => "bool",
            Kind::Int => "int64",
            Kind::Real => "double",
            Kind::Text => "string",
            Kind::Instant => "timestamp(us, UTC)",
            Kind::Ints => "list<int64>",
            Kind::Reals => "list<double>",
        }
    }
}

/// A column, and the getter of its value from a record `R`.
pub(crate) struct Declared<R: 'static> {
    pub(crate) column: Column,
    pub(crate) get: for<'a> fn(&'a R) -> Datum<'a>,
}

impl<R> Declared<R> {
    /// The column of a record's field. The unit is read from the name.
    pub(crate) fn of_field(field: &Field<R>, source: &str) -> Declared<R> {
        let column = Column::new(field.name, field.kind, source, field.doc.trim());
        Declared { column: Column { unit: unit_in(field.name), nullable: field.optional, ..column }, get: field.get }
    }

    /// The columns of a record's fields.
    pub(crate) fn of_fields(fields: &[Field<R>], source: &str) -> Vec<Declared<R>> {
        fields.iter().map(|field| Declared::of_field(field, source)).collect()
    }
}

/// The unit that a metric's name states: `wait_s_mean` is in seconds, `busy_proc_h` in processor-hours.
///
/// Names without a unit are ratios and slowdowns (bare numbers), and texts.
pub fn unit_in(name: &str) -> &'static str {
    const BY_PHRASE: [(&str, &str); 6] = [
        ("jobs_per_h", "jobs/h"),
        ("per_s", "1/s"),
        ("proc_s", "proc s"),
        ("proc_h", "proc h"),
        ("proc_days", "proc days"),
        ("queue_length", "jobs"),
    ];
    const BY_WORD: [(&str, &str); 10] = [
        ("count", "count"),
        ("procs", "procs"),
        ("ms", "ms"),
        ("s", "s"),
        ("j", "J"),
        ("w", "W"),
        ("js", "J s"),
        ("ghz", "GHz"),
        ("g", "g"),
        ("kwh", "kWh"),
    ];
    let bare = name.replace("procs_weighted", "").replace("_size_1", "");
    if let Some((_, unit)) = BY_PHRASE.iter().find(|(phrase, _)| format!("_{bare}_").contains(&format!("_{phrase}_"))) {
        return unit;
    }
    if name.ends_with("_residual") {
        return ""; // the residual relative to the quantity that the name begins with
    }
    BY_WORD.iter().find(|(word, _)| bare.split('_').any(|w| w == *word)).map_or("", |(_, unit)| unit)
}

/// The columns of all tables, of the table of a name, or those of a name with their tables.
///
/// # Errors
/// The name is that of no table and of no column, in a sentence.
pub fn of_name(name: Option<&str>) -> Result<Vec<(Table, Vec<Column>)>, String> {
    let is_table = name.is_none_or(|name| Table::ALL.iter().any(|table| table.name() == name));
    let is_chosen = |table: Table, column: &Column| {
        name.is_none_or(|name| if is_table { table.name() == name } else { column.name == name })
    };
    let columns = |table: Table| table.columns().into_iter().filter(|column| is_chosen(table, column)).collect();
    let all = Table::ALL.into_iter().map(|table| (table, columns(table)));
    let found: Vec<(Table, Vec<Column>)> = all.filter(|(_, columns): &(_, Vec<_>)| !columns.is_empty()).collect();
    let Some(name) = name.filter(|_| found.is_empty()) else { return Ok(found) };
    let of_columns = Table::ALL.into_iter().flat_map(Table::columns).map(|column| column.name);
    let known: BTreeSet<String> = Table::ALL.iter().map(|table| table.name().to_owned()).chain(of_columns).collect();
    let hint = hint(name, known.iter().map(String::as_str));
    Err(format!("unknown table or column `{name}`; {}", hint.as_deref().unwrap_or("`powersweep columns` lists them")))
}

/// The Arrow schema of columns.
pub(crate) fn schema<'a>(columns: impl IntoIterator<Item = &'a Column>) -> SchemaRef {
    Arc::new(Schema::new(columns.into_iter().map(Column::field).collect::<Vec<_>>()))
}

/// A hash of the names, types, order and nullability of a schema's fields (FNV-1a, 64 bits). Descriptions and units are no
/// part of it: a better text must not part the builds of a farm.
pub fn fingerprint(schema: &Schema) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for field in schema.fields() {
        let line = format!("{}:{}:{}\n", field.name(), field.data_type(), field.is_nullable());
        for byte in line.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

/// The documentation of all columns, as committed in `docs/reference/columns.md`.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Columns of the results\n\n\
         Generated from the column tables; regenerate with `cargo xtask docs`. Null means \"does not apply\". Ratios are \
         0 to 1. Gear lists are slowest first. Units are in the names. The columns depend on the version of powersweep \
         alone, never on a manifest. The simulated spec is in `tasks` alone: the other tables join it on `task_id`, and \
         `powersweep export --wide` does so.\n",
    );
    for table in Table::ALL {
        let columns = table.columns();
        let _ = write!(text, "\n## {}\n\nA row is {}. {} columns.\n\n", table.name(), table.row(), columns.len());
        text.push_str("| column | type | unit | null | meaning | from |\n|---|---|---|---|---|---|\n");
        for c in columns {
            let null = if c.nullable { "yes" } else { "" };
            // Outside of code, `<double>` would be a tag of HTML.
            let doc = c.doc.replace('|', "\\|").replace('<', "\\<");
            let _ =
                writeln!(text, "| `{}` | `{}` | {} | {null} | {doc} | {} |", c.name, c.type_name(), c.unit, c.source);
        }
        if table == Table::Series {
            text.push_str(&series_markdown());
        }
    }
    text
}

/// The list of series.
fn series_markdown() -> String {
    let mut text = String::from("\n| series | unit | meaning |\n|---|---|---|\n");
    for series in SERIES {
        let _ = writeln!(text, "| `{}` | {} | {} |", series.name, series.unit, series.doc.replace('|', "\\|"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_in_each_table() {
        for table in Table::ALL {
            let mut seen = BTreeSet::new();
            for column in table.columns() {
                assert!(seen.insert(column.name.clone()), "{table} has two columns `{}`", column.name);
            }
        }
    }

    #[test]
    fn every_column_is_explained() {
        for (table, column) in
            Table::ALL.into_iter().flat_map(|t| t.columns().into_iter().map(move |column| (t, column)))
        {
            assert!(column.doc.len() > 5, "{table}.{} has no explanation", column.name);
            assert!(!column.source.is_empty(), "{table}.{} has no source", column.name);
        }
    }

    #[test]
    fn units_are_read_from_names() {
        for (name, unit) in [
            ("wait_s_mean", "s"),
            ("wait_s_mean_size_33_up", "s"),
            ("bsld_tau10s_mean", ""),
            ("bsld_tau10s_procs_weighted_mean", ""),
            ("energy_per_job_j", "J"),
            ("energy_delay_product_js", "J s"),
            ("gear_busy_proc_s", "proc s"),
            ("busy_proc_h", "proc h"),
            ("backlog_proc_s_mean", "proc s"),
            ("throughput_jobs_per_h", "jobs/h"),
            ("svd_rank_1_per_s", "1/s"),
            ("machine_procs", "procs"),
            ("waited_count", "count"),
            ("queue_length_mean", "jobs"),
            ("power_p95_w", "W"),
            ("utilization_active", ""),
            ("procs_residual", ""),
            ("jobs_emissions_g", "g"),
            ("battery_kwh", "kWh"),
        ] {
            assert_eq!(unit_in(name), unit, "{name}");
        }
    }

    #[test]
    fn the_fingerprint_sees_names_types_and_nullability() {
        let schema = |name: &str, ty: DataType, null: bool| Schema::new(vec![ArrowField::new(name, ty, null)]);
        let prints = BTreeSet::from([
            fingerprint(&schema("a", DataType::Int64, false)),
            fingerprint(&schema("b", DataType::Int64, false)),
            fingerprint(&schema("a", DataType::Float64, false)),
            fingerprint(&schema("a", DataType::Int64, true)),
        ]);
        assert_eq!(prints.len(), 4);
        let described = ArrowField::new("a", DataType::Int64, false)
            .with_metadata(HashMap::from([(DESCRIPTION.to_owned(), "Meaning.".to_owned())]));
        assert!(prints.contains(&fingerprint(&Schema::new(vec![described]))), "a description is no part of it");
    }
}
