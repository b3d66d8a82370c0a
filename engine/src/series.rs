//! The declaration of a series, and its points. [`crate::components::SERIES`] lists all series.

/// The declaration of a series or of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    /// Its name, as in [`SeriesPoint::series`](crate::SeriesPoint::series); ends in its unit if it has one.
    pub name: &'static str,
    /// Unit of its values as people write it ("W", "procs"), "" for a ratio or a bare number.
    pub unit: &'static str,
    /// What its values are, what `x` is, what `level` counts (if it is split), which components record it, and the
    /// source.
    pub doc: &'static str,
}

/// Declares series as constants.
macro_rules! series {
    ($($const:ident: $name:literal, $unit:literal, $doc:literal;)*) => {
        $(pub(crate) const $const: Series = Series { name: $name, unit: $unit, doc: $doc };)*
    };
}

pub(crate) use series;

crate::record! {
/// One point of a series or of a distribution: a row of the `series` table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesPoint {
    /// Name of the series; the list of series has its unit and the meaning of `x` and `level`.
    pub series: &'static str,
    /// Key by which the series is split, such as a gear index, a week or a class; null for a series that is not split.
    pub level: Option<i64>,
    /// Abscissa: an instant of the workload's clock (s), from which a step function holds its value; or the value at
    /// which a distribution is taken.
    pub x: f64,
    /// Ordinate, in the unit that the name of the series ends in.
    pub value: f64,
}
}
