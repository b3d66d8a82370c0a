//! The `series` table: one row a point of a series or distribution, on request.

use powersweep_engine::SeriesPoint;

crate::rows::table!(SeriesPoint, crate::columns::Declared::of_fields(SeriesPoint::FIELDS, "simulation"));

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
