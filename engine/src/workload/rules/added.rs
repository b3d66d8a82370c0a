//! Records that a manifest adds to those of a log.
use crate::spec::{Choice, Default, Param, Type};

/// Numbers of an added record.
const NUMBERS: usize = 6;

/// Greatest job number.
const ID_MAX: f64 = 9_007_199_254_740_992.0;

/// Greatest processor count.
const PROCS_MAX: f64 = (1u32 << 30) as f64;

/// The added records.
pub(super) const ADDED_RECORDS: Param = Param {
    name: "added_records",
    ty: Type::Reals { min: 0.0, max: ID_MAX },
    unit: "",
    default: Default::Unset,
    doc: "Records that this version of the log lacks, six numbers each, one record after the other: job number, submit time (s), \
          run time (s), processors, requested time (s), user. They come after the records of the log; `arrival_ties` orders jobs \
          of one instant.",
};

/// A record that is added.
#[derive(Debug, Clone, Copy)]
pub(super) struct Added {
    /// Job number.
    pub(super) id: i64,
    /// Submit time (s).
    pub(super) submit_s: f64,
    /// Run time (s).
    pub(super) run_s: f64,
    /// Processors.
    pub(super) procs: i32,
    /// Requested time (s).
    pub(super) requested_s: f64,
    /// User.
    pub(super) user: i32,
}

/// The added records.
///
/// # Errors
/// Final: numbers that are no records.
pub(super) fn added(rules: &Choice) -> Result<Vec<Added>, String> {
    let numbers = rules.opt_reals(ADDED_RECORDS.name).unwrap_or_default();
    let (records, rest) = numbers.as_chunks::<NUMBERS>();
    if !rest.is_empty() {
        return Err(format!("`added_records` has {} numbers: a record has {NUMBERS}", numbers.len()));
    }
    records.iter().enumerate().map(|(at, record)| read(at + 1, record)).collect()
}

/// Record number `position`.
fn read(position: usize, &[id, submit_s, run_s, procs, requested_s, user]: &[f64; NUMBERS]) -> Result<Added, String> {
    let whole = |what: &str, value: f64, greatest: f64| {
        let fits = value.fract() == 0.0 && value <= greatest;
        fits.then_some(value as i64).ok_or_else(|| {
            format!("`added_records`, record {position}: the {what} {value} is no whole number up to {greatest}")
        })
    };
    Ok(Added {
        id: whole("job number", id, ID_MAX)?,
        submit_s,
        run_s,
        procs: whole("processor count", procs, PROCS_MAX)? as i32,
        requested_s,
        user: whole("user", user, f64::from(i32::MAX))? as i32,
    })
}
