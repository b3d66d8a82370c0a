//! The `series` table: one row a point of a series or distribution, on request.

use std::sync::LazyLock;

use arrow::datatypes::SchemaRef;
use powersweep_engine::SeriesPoint;
use powersweep_experiments::TaskSpec;

use crate::columns::{Column, Declared};
use crate::rows::{Layout, RowKind, Rows, columns_of};

struct Declarations {
    point: Vec<Declared<SeriesPoint>>,
    layout: Layout,
}

static DECLARATIONS: LazyLock<Declarations> = LazyLock::new(|| {
    let point: Vec<_> = SeriesPoint::FIELDS.iter().map(|f| Declared::of_field(f, "simulation")).collect();
    let layout = Layout::new(Vec::new(), columns_of(&point));
    Declarations { point, layout }
});

/// The columns in order.
pub fn columns() -> Vec<Column> {
    DECLARATIONS.layout.columns()
}

/// The Arrow schema.
pub fn schema() -> SchemaRef {
    DECLARATIONS.layout.schema()
}

/// The table.
pub struct Series;

impl RowKind for Series {
    fn layout() -> &'static Layout {
        &DECLARATIONS.layout
    }
}

/// Collects the series of tasks.
pub type Builder = Rows<Series>;

impl Rows<Series> {
    /// Adds one row a point of this task.
    pub fn push(&mut self, task: &TaskSpec, points: &[SeriesPoint]) {
        let d = &*DECLARATIONS;
        self.push_task(task, points.len());
        self.push_records(d.layout.behind_axes(), &d.point, points);
        self.end(points.len());
    }
}

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
