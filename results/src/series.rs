//! The `series` table: one row a point of a series or distribution, on request.

use std::sync::LazyLock;

use arrow::datatypes::SchemaRef;
use powersweep_engine::SeriesPoint;

use crate::columns::{Column, Declared};
use crate::rows::{Layout, Record, Rows};

static LAYOUT: LazyLock<Layout<SeriesPoint>> =
    LazyLock::new(|| Layout::new(SeriesPoint::FIELDS.iter().map(|f| Declared::of_field(f, "simulation")).collect()));

/// The columns in order.
pub fn columns() -> Vec<Column> {
    LAYOUT.columns()
}

/// The Arrow schema.
pub fn schema() -> SchemaRef {
    LAYOUT.schema()
}

impl Record for SeriesPoint {
    fn layout() -> &'static Layout<SeriesPoint> {
        &LAYOUT
    }
}

/// Collects the series of tasks.
pub type Builder = Rows<SeriesPoint>;

#[cfg(test)]
mod tests {
    use powersweep_engine::components::SERIES;

    use crate::columns::unit_in;

    #[test]
    fn the_unit_of_a_series_is_in_its_name() {
        for series in SERIES {
            assert_eq!(series.unit, unit_in(series.name), "`{}`", series.name);
        }
    }
}
