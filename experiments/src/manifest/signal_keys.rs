//! The keys of a block `[signals.NAME]`.

use std::sync::LazyLock;

use powersweep_engine::spec::{Default, Param, Type};
use toml::de::DeTable;

use crate::designs::DesignPoints;

/// Greatest number of signals of a manifest: each gives a row for each task.
pub(super) const SIGNALS_MAX: u64 = 10_000;

/// The name of the key of the file.
pub(super) const FILE: &str = "file";

/// The keys of a block.
pub(crate) static KEYS: LazyLock<Vec<Param>> = LazyLock::new(|| [&FILE_KEYS[..], &FACILITY_KEYS[..]].concat());

/// The key of this name.
pub(crate) fn key(name: &str) -> Option<&'static Param> {
    KEYS.iter().find(|key| key.name == name)
}

/// The tables of the blocks.
pub(super) fn blocks<'a, 'i>(top: &'a DeTable<'i>) -> impl Iterator<Item = &'a DeTable<'i>> {
    let blocks = top.get("signals").and_then(|value| value.get_ref().as_table());
    blocks.into_iter().flat_map(|blocks| blocks.values()).filter_map(|block| block.get_ref().as_table())
}

impl DesignPoints {
    /// Those of the parameters that are keys of blocks of signals.
    pub fn of_signals(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.parameters().filter(|name| key(name).is_some())
    }
}

const fn text(name: &'static str, default: Default, doc: &'static str) -> Param {
    Param { name, ty: Type::Locator, unit: "", default, doc }
}

const fn one_of(name: &'static str, words: &'static [&'static str], default: Default, doc: &'static str) -> Param {
    Param { name, ty: Type::OneOf(words), unit: "", default, doc }
}

const fn real(
    name: &'static str,
    unit: &'static str,
    (min, max): (f64, f64),
    default: Default,
    doc: &'static str,
) -> Param {
    Param { name, ty: Type::Real { min, max, min_allowed: true, unlimited: false }, unit, default, doc }
}

/// The keys of the file, and of its place in time.
static FILE_KEYS: [Param; 16] = [
    one_of(
        "quantity",
        &["carbon", "price", "cap", "cap-share", "temperature"],
        Default::Required,
        "Carbon intensity (g/kWh), price (currency/kWh), greatest power (W, or as a share of the machine's peak), or temperature of \
         the air (degrees Celsius).",
    ),
    text(FILE, Default::Required, "Path from the manifest's folder, or http(s) URL, of the signal's file."),
    text("file_sha256", Default::Unset, "SHA-256 of the file as downloaded; required for a URL."),
    one_of(
        "form",
        &["electricity-maps", "opendc", "csv", "open-meteo", "json"],
        Default::Unset,
        "Form of the file; without this key it is found from the content.",
    ),
    text("column", Default::Unset, "Column of the values. Of Electricity Maps also `direct` or `lifecycle`."),
    text("time_column", Default::Unset, "Column of the times; without this key it is found from the header."),
    text(
        "unit",
        Default::Unset,
        "Unit of the values in the file, such as `lb/MWh`, `EUR/MWh`, `kW`. A number before it is a factor, such as an exchange \
         rate: with `0.087 EUR/MWh`, a value of 1 is 0.087 EUR/MWh.",
    ),
    one_of(
        "interval_time",
        &["begin", "end"],
        Default::Unset,
        "Whether times are the begins or the ends of the intervals of their values; without this key, the ends if the name of \
         the column of times says so, else the begins.",
    ),
    text(
        "zone",
        Default::Unset,
        "Zone of the grid whose rows are read, such as `DK1`, in a file with a column of zones or areas.",
    ),
    text(
        "timezone",
        Default::Unset,
        "Time zone of times without an offset, by its IANA name, such as `Europe/Berlin` or `UTC`.",
    ),
    one_of(
        "sample",
        &["mean", "point"],
        Default::Text("mean"),
        "A value is the mean of the interval up to the next time, or the value at its time with lines between them.",
    ),
    one_of(
        "beyond",
        &["error", "hold", "wrap"],
        Default::Text("error"),
        "Outside of the file: tasks fail, the first or last value holds, or the series is repeated.",
    ),
    one_of(
        "gaps",
        &["error", "hold", "interpolate"],
        Default::Text("error"),
        "Missing times: the file is refused, the value before holds, or values are interpolated.",
    ),
    one_of(
        "duplicates",
        &["error", "first", "last", "mean"],
        Default::Text("error"),
        "Times with several values: the file is refused unless they are equal, or one of them or the mean counts.",
    ),
    one_of(
        "clock_change",
        &["error", "repair"],
        Default::Text("error"),
        "Local times that do not exist, or exist twice and are in the file once: the file is refused, or they are \
         dropped or hold for both hours.",
    ),
    text(
        "anchor",
        Default::Unset,
        "Calendar time of the workload's second 0 (UTC), such as `2023-01-01` or `2023-01-01T06:00:00Z`; without this \
         key it is that of the log.",
    ),
];

/// The keys of losses between the machine and the meter, and of a battery there.
pub(super) static FACILITY_KEYS: [Param; 14] = [
    real(
        "pue",
        "",
        (1.0, 10.0),
        Default::Real(1.0),
        "Power usage effectiveness: the facility's energy divided by the energy of the machine's supply.",
    ),
    text(
        "pue_signal",
        Default::Unset,
        "Label of a block of temperatures, in place of `pue`: the PUE follows the mean temperature of each of its intervals.",
    ),
    Param {
        name: "pue_curve",
        ty: Type::Reals { min: -100.0, max: 100.0 },
        unit: "",
        default: Default::Unset,
        doc: "Temperatures (degrees Celsius) and the PUE at each, for `pue_signal`: [10, 1.1, 30, 1.4]. Linear between them.",
    },
    Param::positive(
        "supply_efficiency",
        1.0,
        "",
        Default::Real(1.0),
        "Share of the supplied power that reaches the machine: efficiency of power supplies and their batteries.",
    ),
    real(
        "embodied_g_per_proc_hour",
        "g/h",
        (0.0, 1e9),
        Default::Real(0.0),
        "Emissions of making the machine, for each proc and hour: a node's emissions divided by its procs and the hours of its life.",
    ),
    one_of(
        "battery_policy",
        &["single", "double", "running-mean", "running-mean-plus", "running-median", "running-quartiles"],
        Default::Unset,
        "When a battery between the grid and the facility charges and discharges: by one or two thresholds, or by the mean, median \
         or quartiles of the last values. `running-mean-plus` charges only while the signal does not fall. Needs `sample` = \
         \"mean\".",
    ),
    real(
        "battery_kwh",
        "kWh",
        (0.0, 1e12),
        Default::Unset,
        "Energy that the battery stores at most; required with a battery.",
    ),
    real(
        "battery_charge_w",
        "W",
        (0.0, 1e15),
        Default::Unset,
        "Power that the battery draws from the grid while it charges; required with a battery. It discharges with the power of the \
         facility.",
    ),
    real(
        "battery_initial_share",
        "",
        (0.0, 1.0),
        Default::Real(0.0),
        "Charge of the battery at the begin of the run, as a share of `battery_kwh`.",
    ),
    Param::positive(
        "battery_efficiency",
        1.0,
        "",
        Default::Real(1.0),
        "Energy that a battery gives over the energy that it draws for that.",
    ),
    real(
        "battery_threshold",
        "",
        (-1e9, 1e9),
        Default::Unset,
        "The battery charges below this value of the signal, and discharges from it on. Of `running` policies: a value before the \
         first one; without this key there is none.",
    ),
    real(
        "battery_upper_threshold",
        "",
        (-1e9, 1e9),
        Default::Unset,
        "The battery discharges from this value of the signal on; for `double`.",
    ),
    Param {
        name: "battery_window",
        ty: Type::Int { min: 1, max: 10_000 },
        unit: "",
        default: Default::Unset,
        doc: "Number of values of the signal in the mean, the median or the quartiles; for the `running` policies.",
    },
    real(
        "battery_embodied_g_per_hour",
        "g/h",
        (0.0, 1e12),
        Default::Real(0.0),
        "Emissions of making the battery over the hours of its life.",
    ),
];
