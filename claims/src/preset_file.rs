//! The reader of presets files.

use std::collections::BTreeMap;
use std::sync::Arc;

use powersweep_engine::Value;
use powersweep_results::Table;
use toml::de::{DeTable, DeValue};

use crate::compare::Comparison;
use crate::file::{Claims, required};
use crate::points;
use crate::presets::{Axis, Measure, Preset, Published, Shape, Values};
use crate::read::{ELEMENT, Item, Reader, column_of};
use crate::selection::{Context, Selection, manifest_name, span_of};

const TOP: [&str; 3] = ["version", "manifests", "presets"];
const PRESET: [&str; 12] =
    ["name", "caption", "kind", "wide", "manifest", "x", "y", "colour", "facet", "values", "jobs", "stacked"];
const AXIS: [&str; 12] =
    ["column", "title", "unit", "order", "names", "from", "to", "log", "minus", "divided_by", "cycle", "free"];
const MEASURE: [&str; 4] = ["title", "unit", "log", "free"];
const VALUES: [&str; 8] = ["value", "as", "everywhere", "half_width", "published", "cap", "title", "unit"];
const PUBLISHED: [&str; 4] = ["claim", "at", "one_minus", "times"];

const SHAPES: [(&str, Shape); 5] = [
    ("bars", Shape::Bars),
    ("lines", Shape::Lines),
    ("steps", Shape::Steps),
    ("jobs", Shape::Jobs),
    ("table", Shape::Table),
];

/// The presets of a file; `None` if they cannot be used.
pub(crate) fn read(text: &Arc<str>, claims: &Claims, reader: &mut Reader) -> Option<Vec<Preset>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        reader.problem_at(error.span().unwrap_or(0..0), "this is not TOML", error.message().to_owned());
    }
    if !errors.is_empty() {
        return None;
    }
    let table = table.get_ref();
    reader.keys("a presets file", table, &TOP);
    if reader.number(table, "version") != Some(1.0) {
        let expected = "expected version = 1, the version of the format of presets";
        reader.problem_at(span_of(table, "version"), "`version` is not 1", expected);
    }
    let manifests = reader.texts(table, "manifests");
    if table.get("manifests").is_none() {
        reader.problem_at(0..0, "`manifests` is missing", "expected the names of the manifests whose rows are shown");
    }
    let manifests = manifests?;
    let context = Context { manifests: &manifests, runs: &claims.runs };
    let mut found: Vec<Preset> = Vec::new();
    for item in tables(reader, table, "presets") {
        let Some(inner) = item.get_ref().as_table() else {
            reader.problem(item, "a preset must be a table", "expected [[presets]]");
            continue;
        };
        let Some(preset) = preset(reader, &context, claims, item, inner) else { continue };
        if found.iter().any(|known| known.name == preset.name) {
            let message = format!("two presets have the name `{}`", preset.name);
            reader.problem_at(span_of(inner, "name"), message, "expected a name that no other preset has");
        }
        found.push(preset);
    }
    Some(found)
}

/// The items of a list of tables that must not be empty.
fn tables<'a, 't>(reader: &mut Reader, table: &'a DeTable<'t>, key: &str) -> Vec<&'a Item<'t>> {
    let items = table.get(key).and_then(|item| item.get_ref().as_array());
    let found: Vec<&Item<'t>> = items.into_iter().flatten().collect();
    if found.is_empty() {
        reader.problem_at(span_of(table, key), format!("`{key}` has no table"), format!("expected [[{key}]]"));
    }
    found
}

fn preset(
    reader: &mut Reader,
    context: &Context<'_>,
    claims: &Claims,
    item: &Item<'_>,
    table: &DeTable<'_>,
) -> Option<Preset> {
    let place = item.span().start..item.span().start + 1;
    reader.keys("a preset", table, &PRESET);
    let name = required(reader, table, "name", "the place in the paper, such as \"figure3\"", place.clone());
    let caption = required(reader, table, "caption", "a sentence", place.clone());
    let kind = required(reader, table, "kind", "bars, lines, steps, jobs or table", place.clone());
    let shape = kind.as_ref().and_then(|kind| SHAPES.iter().find(|(name, _)| name == kind)).map(|(_, shape)| *shape);
    if let (None, Some(kind)) = (shape, &kind) {
        let expected = "expected bars, lines, steps, jobs or table";
        reader.problem_at(span_of(table, "kind"), format!("there is no kind `{kind}`"), expected);
    }
    let manifest = manifest_name(reader, context, table).unwrap_or_else(|| context.manifests[0].clone());
    let axis = |reader: &mut Reader, key: &str| {
        let found = reader.table(table, key)?;
        axis(reader, context, found)
    };
    let (x, colour, facet) = (axis(reader, "x"), axis(reader, "colour"), axis(reader, "facet"));
    let y = reader.table(table, "y").map(|table| measure(reader, table)).unwrap_or_default();
    let mut preset = Preset {
        name: name?,
        caption: caption?,
        shape: shape?,
        wide: reader.bool(table, "wide").unwrap_or(false),
        stacked: reader.bool(table, "stacked").unwrap_or(false),
        x: x.unwrap_or_default(),
        y,
        colour,
        facet,
        jobs: Vec::new(),
        manifest,
        values: Vec::new(),
    };
    if preset.shape == Shape::Jobs {
        let of_jobs = Table::Jobs;
        let jobs = reader.table(table, "jobs");
        let conditions = jobs.map(|table| reader.conditions(of_jobs, table, &[])).unwrap_or_default();
        let one = |(column, values): (String, Vec<Value>)| Some((column, values.first()?.to_string()));
        preset.jobs = conditions.into_iter().filter_map(one).collect();
        return Some(preset);
    }
    if preset.x.columns.is_empty() {
        reader.problem_at(place, "`x` is missing", "expected x = { column = ..., title = ... }");
        return None;
    }
    for item in tables(reader, table, "values") {
        let Some(inner) = item.get_ref().as_table() else {
            reader.problem(item, "a value must be a table", "expected [[presets.values]]");
            continue;
        };
        let values = values(reader, context, claims, &preset, item, inner);
        preset.values.extend(values);
    }
    Some(preset)
}

fn axis(reader: &mut Reader, context: &Context<'_>, table: &DeTable<'_>) -> Option<Axis> {
    reader.keys("an axis", table, &AXIS);
    let columns = match table.get("column").map(|item| item.get_ref()) {
        Some(DeValue::Array(_)) => reader.texts(table, "column"),
        _ => reader.text(table, "column").map(|column| vec![column]),
    };
    let tasks = Table::Tasks;
    let minus = reader.table(table, "minus").map(|minus| Selection::read(reader, context, minus, tasks));
    Some(Axis {
        columns: columns?,
        title: reader.text(table, "title").unwrap_or_default(),
        unit: reader.text(table, "unit").unwrap_or_default(),
        log: reader.bool(table, "log").unwrap_or(false),
        free: reader.bool(table, "free").unwrap_or(false),
        order: reader.texts(table, "order").unwrap_or_default(),
        names: reader.table(table, "names").map(|names| keys(reader, names)).unwrap_or_default(),
        from: reader.number(table, "from"),
        to: reader.number(table, "to"),
        minus,
        divided_by: reader.number(table, "divided_by"),
        cycle: reader.number(table, "cycle").filter(|cycle| *cycle >= 1.0),
    })
}

fn measure(reader: &mut Reader, table: &DeTable<'_>) -> Measure {
    reader.keys("a vertical axis", table, &MEASURE);
    Measure {
        title: reader.text(table, "title").unwrap_or_default(),
        unit: reader.text(table, "unit").unwrap_or_default(),
        log: reader.bool(table, "log").unwrap_or(false),
        free: reader.bool(table, "free").unwrap_or(false),
    }
}

/// Texts by key; a number becomes the text of its cell.
fn keys(reader: &mut Reader, table: &DeTable<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for key in table.keys() {
        let name: &str = key.get_ref();
        let is_text = table.get(name).is_some_and(|item| item.get_ref().as_str().is_some());
        let text = match is_text {
            true => reader.text(table, name),
            false => reader.number(table, name).map(|number| Value::Real(number).to_string()),
        };
        found.extend(text.map(|text| (name.to_owned(), text)));
    }
    found
}

fn values(
    reader: &mut Reader,
    context: &Context<'_>,
    claims: &Claims,
    preset: &Preset,
    item: &Item<'_>,
    table: &DeTable<'_>,
) -> Option<Values> {
    let place = item.span().start..item.span().start + 1;
    reader.keys("a value", table, &VALUES);
    let tasks = Table::Tasks;
    let Some(value) = reader.table(table, "value") else {
        reader.problem_at(place, "`value` is missing", "expected value = { column = ... }");
        return None;
    };
    let selection = Selection::read(reader, context, value, tasks);
    let fixed = reader.table(table, "as").map(|table| keys(reader, table)).unwrap_or_default();
    let is_everywhere = reader.bool(table, "everywhere").unwrap_or(false);
    let rows = selection.table.unwrap_or(tasks);
    for axis in preset.axes() {
        let is_x = axis.columns == preset.x.columns;
        for column in axis.columns.iter().filter(|column| !(fixed.contains_key(*column) || is_x && is_everywhere)) {
            if column != ELEMENT && column_of(rows, column).is_none() {
                let message = format!("the table {rows} has no column `{column}` for an axis");
                reader.problem_at(place.clone(), message, format!("expected as = {{ {column} = \"...\" }}"));
            }
        }
    }
    let half_width = reader.table(table, "half_width");
    let half_width = half_width.map(|table| Selection::read(reader, context, table, rows));
    let mut published = Vec::new();
    if let Some(items) = table.get("published").and_then(|item| item.get_ref().as_array()) {
        published.extend(items.iter().filter_map(|item| one_published(reader, claims, item)));
    }
    let values = Values {
        selection,
        half_width,
        fixed,
        is_everywhere,
        is_cap: reader.bool(table, "cap").unwrap_or(false),
        published,
        title: reader.text(table, "title").unwrap_or_default(),
        unit: reader.text(table, "unit").unwrap_or_default(),
    };
    for published in &values.published {
        if points::is_foreign(&values, published) {
            let message =
                format!("no number of the claim `{}` is under the conditions of this value", published.claim.id);
            reader.problem_at(span_of(table, "published"), message, "expected a claim about the same rows");
        }
        if let Some(column) = points::open_column(preset, &values, published) {
            let message = format!("the claim `{}` leaves open the column `{column}` of an axis", published.claim.id);
            reader.problem_at(span_of(table, "published"), message, format!("expected at = {{ {column} = ... }}"));
        }
    }
    Some(values)
}

fn one_published(reader: &mut Reader, claims: &Claims, item: &Item<'_>) -> Option<Published> {
    let named = |reader: &mut Reader, id: &str| {
        let claim = claims.claims.iter().find(|claim| claim.id == id).cloned();
        let claim = claim.filter(|claim| claim.comparisons.iter().any(|c| Comparison::published(c).is_some()));
        if claim.is_none() {
            let message = format!("there is no claim `{id}` with a published number");
            reader.problem(item, message, "expected the id of a claim of the paper");
        }
        claim
    };
    if let Some(id) = item.get_ref().as_str() {
        return Some(Published { claim: named(reader, id)?, at: BTreeMap::new(), one_minus: false, times: 1.0 });
    }
    let Some(table) = item.get_ref().as_table() else {
        reader.problem(item, "a published number must be an id or a table", "expected such as { claim = \"...\" }");
        return None;
    };
    reader.keys("a published number", table, &PUBLISHED);
    let id = required(reader, table, "claim", "the id of a claim", item.span())?;
    Some(Published {
        claim: named(reader, &id)?,
        at: reader.table(table, "at").map(|table| keys(reader, table)).unwrap_or_default(),
        one_minus: reader.bool(table, "one_minus").unwrap_or(false),
        times: reader.number(table, "times").unwrap_or(1.0),
    })
}
