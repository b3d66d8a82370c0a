//! CSV exports of Electricity Maps, of any year.
//!
//! Since 2022, an export has `Datetime (UTC)` and two intensities, "(direct)" and "(LCA)" or, in later years, "(Life
//! cycle)". Older ones, which CarbonCast and GAIA use too, have the one intensity `carbon_intensity_avg` with `datetime` or
//! `timestamp`, among a hundred other columns.

use powersweep_experiments::signals::{Form, Reading};

use super::sheet::{Columns, column, problem, table};
use crate::error::Problem;
use crate::signals::table::{Table, ValueColumn};
use crate::table::{Sheet, find};

/// The intensity of older exports.
const AVERAGE: &str = "carbon_intensity_avg";

/// The setting for the emissions of power plants while they run.
const DIRECT: &str = "direct";
/// The setting for emissions that include the making of plants and fuels: Electricity Maps' own default, and ours.
const LIFECYCLE: &str = "lifecycle";

/// Whether these are the columns of an export.
pub(super) fn is_export(names: &[String]) -> bool {
    names.iter().any(|name| name == AVERAGE || intensity(name).is_some())
}

/// The setting that a column of intensities is the one of.
fn intensity(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let kind = lower.strip_prefix("carbon intensity gco")?.split_once('(')?.1;
    match kind.trim_end_matches(')') {
        DIRECT => Some(DIRECT),
        "lca" | "life cycle" | "life-cycle" | LIFECYCLE => Some(LIFECYCLE),
        _ => None,
    }
}

pub(super) fn read(sheet: Sheet<'_>, reading: &Reading) -> Result<Table, Problem> {
    let is_old = sheet.names.iter().any(|name| name == AVERAGE);
    let any = |names: &[&str]| names.iter().find_map(|name| find(&sheet.names, name).ok().flatten());
    let time = match &reading.time_column {
        Some(name) => column(&sheet.names, "time_column", name)?,
        // Unix times of older exports need no time zone.
        None => any(if is_old { &["timestamp", "datetime"] } else { &["datetime (utc)"] }).ok_or_else(|| {
            problem(
                &sheet.names,
                "time_column",
                "there is no column of times as Electricity Maps names them".to_owned(),
            )
        })?,
    };
    let value = match reading.column.as_deref() {
        None if is_old => column(&sheet.names, "column", AVERAGE)?,
        None | Some(LIFECYCLE) => of_kind(&sheet, LIFECYCLE)?,
        Some(DIRECT) => of_kind(&sheet, DIRECT)?,
        Some(name) => column(&sheet.names, "column", name)?,
    };
    let values = ValueColumn::new(&sheet.names[value], reading, Some("g/kWh"))?;
    let columns = Columns {
        time,
        hour: None,
        value,
        flag: any(&["data estimated"]),
        source: any(&["data source"]),
        zones: any(&["zone id", "zone_name", "zone_key"]).into_iter().collect(),
        currency: None,
        unit: None,
    };
    table(sheet, Form::ElectricityMaps, &columns, values, reading)
}

fn of_kind(sheet: &Sheet<'_>, kind: &'static str) -> Result<usize, Problem> {
    let found: Vec<usize> = (0..sheet.names.len()).filter(|at| intensity(&sheet.names[*at]) == Some(kind)).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(problem(&sheet.names, "column", format!("there is no column of {kind} carbon intensities"))),
        _ => Err(problem(&sheet.names, "column", format!("several columns are of {kind} carbon intensities"))),
    }
}
