//! The series that parts may record, each declared once: the documentation of the `series` table lists them.

use crate::policy::watch;
use crate::weekly;

/// A series or a distribution, declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    /// Its name, as in [`SeriesPoint::series`](crate::SeriesPoint::series); ends in its unit if it has one.
    pub name: &'static str,
    /// Unit of its values as people write it ("W", "procs"), "" for a ratio or a bare number.
    pub unit: &'static str,
    /// What its values are, what `x` is, what `level` counts (if it is split), which parts record it, and the source.
    pub doc: &'static str,
}

/// Every series. A part records nothing that is not here.
pub const SERIES: &[Series] = &[
    weekly::ARRIVALS,
    weekly::DEMAND,
    weekly::UTILIZATION,
    weekly::LOG_UTILIZATION,
    weekly::SLOWDOWN,
    weekly::OVER_SLA,
    weekly::ACTIVE_MEAN,
    weekly::ACTIVE,
    crate::queueing::steady_state::RESPONSE_TIME_CDF,
    watch::CPU_UTILIZATION,
    watch::CPU_UTILIZATION_SHARE,
    watch::FREQUENCY,
    watch::IDLE,
    watch::CAP,
    watch::POWER,
    watch::BY_GEAR,
    watch::BY_CLASS,
    watch::BY_PRIORITY,
    watch::SUSPENDED,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_series_has_a_name_of_its_own_and_an_explanation() {
        let mut names = BTreeSet::new();
        for series in SERIES {
            assert!(names.insert(series.name), "`{}` is declared twice", series.name);
            assert!(series.doc.len() > 20, "`{}` is not explained", series.name);
        }
    }
}
