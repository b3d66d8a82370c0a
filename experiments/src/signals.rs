//! Signals: series of values over time that a manifest names, such as carbon intensity and price. This module has their
//! settings; `signals` of the crate `inputs` reads their files.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

pub use powersweep_engine::battery::Battery;
pub use powersweep_engine::signal::{Beyond, Sample};
use powersweep_engine::{SimSpec, Value};

use crate::Digest;
use crate::canonical::compare;

/// The quantity of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// Carbon intensity of electricity (g/kWh of CO2 equivalent).
    Carbon,
    /// Price of electricity (currency/kWh).
    Price,
    /// Greatest power of the machine (W).
    Cap,
    /// Greatest power as a share of the machine's peak power, from 0 to 1.
    CapShare,
    /// Temperature of the outside air (degrees Celsius).
    Temperature,
}

/// The form of a signal's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// CSV exports of Electricity Maps, of any year.
    ElectricityMaps,
    /// Parquet with the columns `timestamp` and `carbon_intensity`, as OpenDC reads it.
    OpenDc,
    /// CSV with a column of times and one or more columns of values.
    Csv,
    /// JSON answer of Open-Meteo's interface for hourly values.
    OpenMeteo,
    /// JSON with a list of objects, each with a time and values: answers of carbonintensity.org.uk and of the Carbon Aware SDK.
    Json,
}

/// Times of the regular step that a file lacks, or that have no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gaps {
    /// The file is refused.
    Error,
    /// The value before holds.
    Hold,
    /// Values between the two neighbours, linear in time.
    Interpolate,
}

/// Times that a file has more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Duplicates {
    /// The file is refused unless the values are equal.
    Error,
    /// The first value counts.
    First,
    /// The last value counts.
    Last,
    /// The mean of the values counts.
    Mean,
}

/// Local times of a file on the days on which the clocks change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClockChange {
    /// A time that does not exist, and an hour that the file has once and the clocks twice, are refused.
    Error,
    /// A time that does not exist is dropped, and the value of such an hour holds for both.
    Repair,
}

/// The bound that the time of a row states of its interval. The value of the row holds for the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IntervalTime {
    /// Its begin.
    Begin,
    /// Its end.
    End,
}

/// When a battery charges and discharges, by the names of OpenDC. See [`BatteryPolicy`](powersweep_engine::battery::BatteryPolicy).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BatteryRule {
    /// One threshold.
    Single,
    /// Two thresholds.
    Double,
    /// The mean of the last values.
    RunningMean,
    /// The mean of the last values; the battery charges only while the signal does not fall.
    RunningMeanPlus,
    /// The median of the last values.
    RunningMedian,
    /// The quartiles of the last values.
    RunningQuartiles,
}

/// A word of a setting in a manifest.
pub trait Word: Copy + PartialEq + Sized + 'static {
    /// All values with their words.
    const WORDS: &'static [(Self, &'static str)];

    /// The word.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(value, _)| *value == self).map_or("", |(_, word)| word)
    }

    /// The value of a word.
    fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, known)| *known == word).map(|(value, _)| *value)
    }
}

/// Gives the values of an enum their words.
#[macro_export]
macro_rules! words {
    ($type:ty: $($value:ident = $word:literal),+ $(,)?) => {
        impl $crate::signals::Word for $type {
            const WORDS: &'static [(Self, &'static str)] = &[$((<$type>::$value, $word)),+];
        }
    };
}

words!(Quantity: Carbon = "carbon", Price = "price", Cap = "cap", CapShare = "cap-share", Temperature = "temperature");
words!(Form: ElectricityMaps = "electricity-maps", OpenDc = "opendc", Csv = "csv", OpenMeteo = "open-meteo",
    Json = "json");
words!(BatteryRule: Single = "single", Double = "double", RunningMean = "running-mean",
    RunningMeanPlus = "running-mean-plus", RunningMedian = "running-median", RunningQuartiles = "running-quartiles");
words!(Sample: Mean = "mean", Point = "point");
words!(Beyond: Error = "error", Hold = "hold", Wrap = "wrap");
words!(Gaps: Error = "error", Hold = "hold", Interpolate = "interpolate");
words!(Duplicates: Error = "error", First = "first", Last = "last", Mean = "mean");
words!(IntervalTime: Begin = "begin", End = "end");
words!(ClockChange: Error = "error", Repair = "repair");

/// How the file of a signal is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reading {
    /// The quantity, and with it the unit that values are converted to.
    pub quantity: Quantity,
    /// The form; `None`: found from the content.
    pub form: Option<Form>,
    /// Column of the times; `None`: found from the header.
    pub time_column: Option<String>,
    /// Column of the values; `None`: the only one that can be meant. Of Electricity Maps also "direct" and "lifecycle".
    pub column: Option<String>,
    /// Unit of the values in the file, such as "lb/MWh", "EUR/MWh", "ct/kWh", "kW"; `None`: from the header, else the
    /// usual one of the form.
    pub unit: Option<String>,
    /// The bound that a time states of its interval. `None`: the end where the name of the column of times says so, else the
    /// begin.
    pub interval_time: Option<IntervalTime>,
    /// Zone of the grid whose rows are read; `None`: the file has one zone.
    pub zone: Option<String>,
    /// Time zone of times without an offset, by its IANA name; `None`: from the header, else the file is refused unless
    /// its form has UTC.
    pub timezone: Option<String>,
    /// Gaps.
    pub gaps: Gaps,
    /// Duplicates.
    pub duplicates: Duplicates,
    /// Days on which the clocks change.
    pub clock_change: ClockChange,
}

/// The words of a column's name, in small letters. `TimeUTC` is two words.
pub fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && (before.is_lowercase() || before.is_numeric()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether the name of a column of times says that they are the ends of intervals.
pub fn says_end(name: &str) -> bool {
    words(name).iter().any(|word| matches!(word.as_str(), "end" | "ends" | "ending" | "to" | "until" | "bis"))
}

/// Facility energy over the energy of the machine's supply (power usage effectiveness, ISO/IEC 30134-2).
#[derive(Debug, Clone, PartialEq)]
pub enum Pue {
    /// One value at all times, at least 1.
    Constant(f64),
    /// By the temperature of the outside air.
    Curve {
        /// Label of a signal of temperatures.
        signal: Arc<str>,
        /// Temperatures (degrees Celsius), increasing, and the PUE at each; linear between them and constant outside.
        points: Vec<(f64, f64)>,
    },
}

/// What lies between the machine and the meter that a signal is accounted at.
#[derive(Debug, Clone, PartialEq)]
pub struct Facility {
    /// Power usage effectiveness.
    pub pue: Pue,
    /// Share of the supplied power that reaches the machine, above 0 up to 1.
    pub supply_efficiency: f64,
    /// Emissions of making the machine (g of CO2 equivalent for each proc and hour of a run).
    pub embodied_g_per_proc_hour: f64,
    /// The battery at the meter.
    pub battery: Option<(BatteryRule, Battery)>,
    /// Emissions of making the battery (g of CO2 equivalent for each hour of a run).
    pub battery_embodied_g_per_hour: f64,
}

impl Pue {
    /// The PUE at a temperature (degrees Celsius).
    pub fn at(points: &[(f64, f64)], temperature: f64) -> f64 {
        let after = points.partition_point(|(known, _)| *known <= temperature);
        match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
            (Some((t0, pue0)), Some((t1, pue1))) => pue0 + (pue1 - pue0) * (temperature - t0) / (t1 - t0),
            (Some((_, pue)), None) | (None, Some(&(_, pue))) => pue,
            (None, None) => 1.0,
        }
    }
}

/// One signal of a manifest: a file, how it is read, and how it lies on the time of the simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// Label of its block.
    pub label: Arc<str>,
    /// Number of the combination of its block's lists, from 0.
    pub index: u64,
    /// Path or URL of the file, as in the manifest.
    pub file: Arc<str>,
    /// SHA-256 of the stored file, where the manifest gives it.
    pub sha256: Option<Digest>,
    /// How the file is read.
    pub reading: Reading,
    /// What a value stands for.
    pub sample: Sample,
    /// The signal outside of the file.
    pub beyond: Beyond,
    /// Calendar time of simulated time 0 (s since 1970 UTC); `None`: that of the log.
    pub anchor_s: Option<i64>,
    /// The facility around the machine.
    pub facility: Facility,
    /// For each design with ranges in its block the points that have its values.
    pub points: Vec<SignalPoints>,
}

/// The points of one design that have the values of a signal.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalPoints {
    /// The keys of the signal's block with ranges of the design, and the signal's values.
    pub values: Vec<(&'static str, Value)>,
    /// The parameters of workloads, platforms and policies with ranges of the design.
    pub parameters: Vec<&'static str>,
    /// The values of these parameters at each of the points.
    pub of_parameters: Arc<[Vec<Value>]>,
}

/// Which signals of a manifest weigh a task. In each block these are the signals at whose points all parameters that the task has
/// are equal to the task's. A task that is at no point is weighed by all.
#[derive(Debug, Default)]
pub struct Weighing(Vec<OfBlock>);

/// The signals of a block.
#[derive(Debug)]
struct OfBlock {
    signals: usize,
    designs: Vec<Pairs>,
}

/// The points of a design with ranges in a block.
#[derive(Debug)]
struct Pairs {
    parameters: Vec<&'static str>,
    /// For each parameter its values at all points.
    columns: Vec<Vec<Value>>,
    /// For each of these points the number of its values in the block.
    rows: Vec<usize>,
    /// For each signal of the block the number of its values.
    of_signals: Vec<usize>,
}

impl Weighing {
    /// Of all signals of a manifest, in their order.
    pub fn new(signals: &[&Signal]) -> Weighing {
        let of_block = |block: &[&Signal]| {
            let designs = (0..block[0].points.len()).filter(|at| !block[0].points[*at].parameters.is_empty());
            OfBlock { signals: block.len(), designs: designs.map(|at| Pairs::new(block, at)).collect() }
        };
        Weighing(signals.chunk_by(|one, next| one.label == next.label).map(of_block).collect())
    }

    /// For each signal whether it weighs the task.
    pub fn of(&self, sim: &SimSpec) -> Vec<bool> {
        let mut all = Vec::new();
        for OfBlock { signals, designs } in &self.0 {
            let found: Vec<Vec<bool>> = designs.iter().map(|pairs| pairs.have(sim)).collect();
            let own = (0..*signals)
                .map(|at| found.iter().zip(designs).all(|(found, pairs)| found[pairs.of_signals[at]]))
                .collect::<Vec<bool>>();
            let is_at_none = !own.contains(&true);
            all.extend(own.into_iter().map(|is_own| is_own || is_at_none));
        }
        all
    }
}

impl Pairs {
    /// Of one of the designs of a block. Signals with equal values share their points.
    fn new(block: &[&Signal], design: usize) -> Pairs {
        let parameters = block[0].points[design].parameters.clone();
        let (mut columns, mut rows) = (vec![Vec::new(); parameters.len()], Vec::new());
        let mut known = HashMap::new();
        let of_signal = |signal: &&Signal| {
            let points = &signal.points[design].of_parameters;
            let number = known.len();
            *known.entry(Arc::as_ptr(points)).or_insert_with(|| {
                for point in points.iter() {
                    columns.iter_mut().zip(point).for_each(|(column, value)| column.push(value.clone()));
                    rows.push(number);
                }
                number
            })
        };
        let of_signals = block.iter().map(of_signal).collect();
        Pairs { parameters, columns, rows, of_signals }
    }

    /// For each number of values whether the task is at one of their points.
    fn have(&self, sim: &SimSpec) -> Vec<bool> {
        let value = |name: &&'static str| sim.choices().find_map(|choice| choice.get(name));
        let given = self.columns.iter().zip(self.parameters.iter().map(value));
        let given: Vec<(&Vec<Value>, &Value)> = given.filter_map(|(column, given)| Some((column, given?))).collect();
        let mut found = vec![false; self.rows.iter().max().map_or(0, |last| last + 1)];
        for (at, row) in self.rows.iter().enumerate() {
            found[*row] |= given.iter().all(|(column, given)| compare(&column[at], given).is_eq());
        }
        found
    }
}

impl Signal {
    /// All settings that change its values, as text: part of the identity of a task whose policy reads it.
    pub fn canonical(&self) -> String {
        let Signal { reading, sample, beyond, anchor_s, .. } = self;
        let mut text = format!("{} {} {}", reading.quantity.word(), sample.word(), beyond.word());
        let words = [reading.gaps.word(), reading.duplicates.word(), reading.clock_change.word()];
        let _ = write!(text, " {}", words.join(" "));
        let form = reading.form.map_or("", Word::word).to_owned();
        let texts = [Some(form), reading.time_column.clone(), reading.column.clone(), reading.unit.clone()];
        for setting in texts.into_iter().chain([reading.timezone.clone(), anchor_s.map(|s| s.to_string())]) {
            let _ = write!(text, " {:?}", setting.unwrap_or_default());
        }
        // Later keys are text only where they are set: the identity of other signals stays as it was.
        let by_name = reading.time_column.as_deref().filter(|name| says_end(name)).map(|_| IntervalTime::End);
        if reading.interval_time.or(by_name) == Some(IntervalTime::End) {
            text.push_str(" end");
        }
        if let Some(zone) = &reading.zone {
            let _ = write!(text, " zone {zone:?}");
        }
        text
    }
}
