//! Signals on simulated time, and the rows of the table `accounts`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::sync::Arc;

use powersweep_engine::account::{J_PER_KWH, Weight};
use powersweep_engine::battery::BatteryPolicy;
use powersweep_engine::energy::Cell;
use powersweep_engine::signal::{Edges, Signal as Placed, SignalError as Uncovered};
use powersweep_engine::{Account, SimSpec};

use powersweep_experiments::signals::{BatteryRule, Beyond, Facility, Pue, Quantity, Reading, Signal, Weighing, Word};

use crate::ReadError;
use crate::signals::{Base, Series};

/// Why a signal cannot be used for a workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The workload has no calendar time.
    #[error(
        "the signal `{label}` is on calendar time, and the workload does not state when it began: set `anchor` in \
         [signals.{label}]"
    )]
    NoAnchor {
        /// Label of the signal.
        label: String,
    },
    /// The file has a single time.
    #[error(
        "the file {file} of the signal `{label}` has a single time, so that nobody knows how long its value holds: set \
         beyond = \"hold\" in [signals.{label}] to make it a constant"
    )]
    SingleTime {
        /// Label of the signal.
        label: String,
        /// The file.
        file: String,
    },
    /// The temperatures of a PUE are none of the signals.
    #[error("there is no block [signals.{label}] of temperatures")]
    NoTemperatures {
        /// Label of the temperatures.
        label: String,
    },
    /// The run extends beyond the file.
    #[error(
        "the signal `{label}` ({file}) covers {from} to {to}, and the run needs it at {at}: choose another `anchor`, or set \
         beyond = \"hold\" or \"wrap\" in [signals.{label}]"
    )]
    NotCovered {
        /// Label of the signal.
        label: String,
        /// The file.
        file: String,
        /// Begin of the series.
        from: String,
        /// End of the series.
        to: String,
        /// The instant.
        at: String,
    },
}

/// A signal of a manifest with the content of its file.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub signal: Signal,
    /// The content.
    pub series: Arc<Series>,
}

/// The signals of a manifest on the time of one workload.
#[derive(Debug)]
pub struct Accounts {
    entries: Vec<Arc<Entry>>,
    /// None of the signals of one task.
    weighing: Weighing,
    edges: Arc<AllEdges>,
}

#[derive(Debug, Clone)]
struct Entry {
    loaded: Loaded,
    placed: Arc<Placed>,
    /// Calendar time of simulated time 0; `None` for a series on simulated time.
    anchor_s: Option<i64>,
    /// The first signal with changes at the same times.
    grid: Arc<Placed>,
    /// The temperatures that the PUE follows.
    temperatures: Option<Arc<Entry>>,
}

/// The changes of several signals.
#[derive(Debug)]
struct AllEdges(Vec<Arc<Placed>>);

impl Edges for AllEdges {
    fn next_after(&self, at_s: f64) -> f64 {
        self.0.iter().map(|signal| signal.next_after(at_s)).fold(f64::INFINITY, f64::min)
    }
}

impl Loaded {
    /// The signals of a manifest. A file that several signals read in the same way is read once.
    ///
    /// `bytes` returns the content of the file of a signal.
    ///
    /// # Errors
    /// Those of `bytes`, and [`ReadError`].
    pub fn all<E: From<ReadError>, B: AsRef<[u8]>>(
        signals: &[Signal],
        mut bytes: impl FnMut(&Signal) -> Result<B, E>,
    ) -> Result<Vec<Loaded>, E> {
        let mut read: BTreeMap<(&str, &Reading), Arc<Series>> = BTreeMap::new();
        let mut loaded = Vec::with_capacity(signals.len());
        for signal in signals {
            let series = match read.entry((&signal.file, &signal.reading)) {
                Slot::Occupied(known) => Arc::clone(known.get()),
                Slot::Vacant(slot) => {
                    let series = crate::signals::read(bytes(signal)?.as_ref(), &signal.file, &signal.reading)?;
                    Arc::clone(slot.insert(Arc::new(series)))
                }
            };
            loaded.push(Loaded { signal: signal.clone(), series });
        }
        Ok(loaded)
    }

    /// A time of the series (s) as text: calendar time, or seconds of simulated time.
    pub fn time_text(&self, time_s: f64) -> String {
        match self.series.base {
            Base::Calendar => calendar(time_s),
            Base::Offset => format!("{time_s} s"),
        }
    }

    /// Calendar time of simulated time 0; `None` for a series on simulated time.
    ///
    /// # Errors
    /// [`PlaceError::NoAnchor`].
    fn anchor_s(&self, unix_start_s: Option<i64>) -> Result<Option<i64>, PlaceError> {
        if self.series.base == Base::Offset {
            return Ok(None);
        }
        let no_anchor = || PlaceError::NoAnchor { label: self.signal.label.to_string() };
        self.signal.anchor_s.or(unix_start_s).ok_or_else(no_anchor).map(Some)
    }

    /// Checks that a run can have values of the signal, without placing them. `span_s`: the begin of the run, and an instant
    /// before which it does not end.
    ///
    /// # Errors
    /// [`PlaceError::NoAnchor`], [`PlaceError::SingleTime`], [`PlaceError::NotCovered`] with the first instant.
    pub fn check(&self, unix_start_s: Option<i64>, span_s: (f64, f64)) -> Result<(), PlaceError> {
        if self.signal.beyond != Beyond::Hold && self.series.end_s <= self.series.times_s[0] {
            return Err(self.single_time());
        }
        let anchor_s = self.anchor_s(unix_start_s)?;
        let shift_s = anchor_s.unwrap_or(0) as f64;
        let (from_s, to_s) = (self.series.times_s[0] - shift_s, self.series.end_s - shift_s);
        match self.signal.beyond {
            Beyond::Error if span_s.0 < from_s => Err(self.not_covered(anchor_s, span_s.0)),
            Beyond::Error if span_s.1 > to_s => Err(self.not_covered(anchor_s, span_s.0.max(to_s))),
            _ => Ok(()),
        }
    }

    /// How the signal lies on a workload that begins outside of its times by the log alone, in words; `None` where it begins
    /// within them, or the manifest or the file places it.
    pub fn elsewhere(&self, unix_start_s: Option<i64>, first_s: f64) -> Option<String> {
        let Loaded { signal, series } = self;
        let is_placed = signal.anchor_s.is_some() || series.base == Base::Offset;
        let begin_s = unix_start_s.filter(|_| !is_placed)? as f64 + first_s;
        let (from_s, to_s) = (series.times_s[0], series.end_s);
        let taken = match signal.beyond {
            _ if (from_s..to_s).contains(&begin_s) || to_s <= from_s => return None,
            Beyond::Error => return None,
            Beyond::Hold => format!("its {} value holds there", if begin_s < from_s { "first" } else { "last" }),
            Beyond::Wrap => {
                let at_s = from_s + (begin_s - from_s).rem_euclid(to_s - from_s);
                format!("it repeats, so that its values of {} come first", self.time_text(at_s))
            }
        };
        let [from, to, begin] = [from_s, to_s, begin_s].map(|time_s| self.time_text(time_s));
        let Signal { label, file, .. } = signal;
        Some(format!(
            "the signal `{label}` ({file}) covers {from} to {to}, and the workload begins at {begin}: {taken}"
        ))
    }

    fn single_time(&self) -> PlaceError {
        PlaceError::SingleTime { label: self.signal.label.to_string(), file: self.signal.file.to_string() }
    }

    fn not_covered(&self, anchor_s: Option<i64>, at_s: f64) -> PlaceError {
        let Loaded { signal, series } = self;
        PlaceError::NotCovered {
            label: signal.label.to_string(),
            file: signal.file.to_string(),
            from: self.time_text(series.times_s[0]),
            to: self.time_text(series.end_s),
            at: self.time_text(at_s + anchor_s.unwrap_or(0) as f64),
        }
    }

    /// The signal on the time of a workload that begins at a calendar time, and that calendar time.
    ///
    /// `unix_start_s`: calendar time of the workload's second 0, where its log states it.
    ///
    /// # Errors
    /// [`PlaceError::NoAnchor`], [`PlaceError::SingleTime`].
    pub fn place(&self, unix_start_s: Option<i64>) -> Result<(Placed, Option<i64>), PlaceError> {
        let Loaded { signal, series } = self;
        let anchor_s = self.anchor_s(unix_start_s)?;
        let shift_s = anchor_s.unwrap_or(0) as f64;
        let times_s: Vec<f64> = series.times_s.iter().map(|time| time - shift_s).collect();
        let (values, estimated) = (series.values.clone(), series.estimated.clone());
        // Without a regular step, the last time ends the series: nobody knows how long its value holds.
        let end_s = series.end_s - shift_s;
        // The times of a series increase, and its numbers are finite.
        let placed = Placed::new(times_s, values, estimated, end_s, signal.sample, signal.beyond);
        let placed = placed.map_err(|_| self.single_time())?;
        Ok((placed, anchor_s))
    }
}

impl Accounts {
    /// The signals on the time of a workload.
    ///
    /// # Errors
    /// See [`Loaded::place`].
    pub fn new(loaded: &[Loaded], unix_start_s: Option<i64>) -> Result<Accounts, PlaceError> {
        let mut placed_all: Vec<Entry> = Vec::with_capacity(loaded.len());
        // Signals of several zones mostly have the same times.
        let mut grids: BTreeMap<(Beyond, Vec<u64>), Arc<Placed>> = BTreeMap::new();
        for loaded in loaded {
            let (placed, anchor_s) = loaded.place(unix_start_s)?;
            let placed = Arc::new(placed);
            let grid = (loaded.signal.beyond, placed.edges().map(f64::to_bits).collect());
            let grid = Arc::clone(grids.entry(grid).or_insert_with(|| Arc::clone(&placed)));
            placed_all.push(Entry { loaded: loaded.clone(), placed, anchor_s, grid, temperatures: None });
        }
        let with_temperatures = |entry: &Entry| {
            let Pue::Curve { signal, .. } = &entry.loaded.signal.facility.pue else { return Arc::new(entry.clone()) };
            let followed = placed_all.iter().find(|other| other.loaded.signal.label == *signal);
            Arc::new(Entry { temperatures: followed.cloned().map(Arc::new), ..entry.clone() })
        };
        let entries = placed_all.iter().map(with_temperatures).collect();
        let signals: Vec<&Signal> = loaded.iter().map(|loaded| &loaded.signal).collect();
        let weighing = Weighing::new(&signals);
        Ok(Accounts { entries, weighing, edges: Arc::new(AllEdges(grids.into_values().collect())) })
    }

    /// The signals that weigh a task, see [`Weighing`].
    pub fn of_task(self: &Arc<Accounts>, sim: &SimSpec) -> Arc<Accounts> {
        let is_own = self.weighing.of(sim);
        if !is_own.contains(&false) {
            return Arc::clone(self);
        }
        let own = self.entries.iter().zip(is_own).filter(|(_, is_own)| *is_own);
        let entries: Vec<Arc<Entry>> = own.map(|(entry, _)| Arc::clone(entry)).collect();
        let mut grids: Vec<Arc<Placed>> = Vec::new();
        for entry in &entries {
            if !grids.iter().any(|grid| Arc::ptr_eq(grid, &entry.grid)) {
                grids.push(Arc::clone(&entry.grid));
            }
        }
        Arc::new(Accounts { entries, weighing: Weighing::default(), edges: Arc::new(AllEdges(grids)) })
    }

    /// The instants at which the energy of a run must be split.
    pub fn edges(&self) -> Arc<dyn Edges> {
        Arc::clone(&self.edges) as Arc<dyn Edges>
    }

    /// Gives a spec the signals that its policy reads.
    pub fn place(&self, spec: &mut SimSpec) {
        let labels: Vec<String> = spec.signal_labels().map(|(_, label)| label.to_owned()).collect();
        for label in labels {
            if let Some(entry) = self.entries.iter().find(|entry| *entry.loaded.signal.label == *label) {
                spec.place_signal(&label, Arc::clone(&entry.placed));
            }
        }
    }

    /// The error of a run that needs the signal of a label at an instant (s) that it does not cover.
    pub fn not_covered(&self, label: &str, at_s: f64) -> Option<PlaceError> {
        let entry = self.entries.iter().find(|entry| *entry.loaded.signal.label == *label)?;
        Some(entry.not_covered_at(at_s))
    }

    /// The rows of a run of this spec on a machine of this many procs.
    ///
    /// # Errors
    /// [`PlaceError::NotCovered`].
    pub fn of(&self, spec: &SimSpec, cells: &[Cell], procs: u32) -> Result<Vec<Account>, PlaceError> {
        let one = |entry: &Entry| {
            let is_read = spec.signal_labels().any(|(_, label)| *label == *entry.loaded.signal.label);
            entry.account(cells, &entry.factors(cells)?, procs, is_read)
        };
        self.entries.iter().map(|entry| one(entry)).collect()
    }
}

impl Entry {
    /// The facility's power divided by the machine's power, in each cell.
    fn factors(&self, cells: &[Cell]) -> Result<Vec<f64>, PlaceError> {
        let Facility { pue, supply_efficiency, .. } = &self.loaded.signal.facility;
        match (pue, &self.temperatures) {
            (Pue::Curve { points, .. }, Some(temperatures)) => {
                let factor = |cell: &Cell| {
                    let middle_s = 0.5 * (cell.from_s + cell.to_s);
                    let temperature = temperatures.placed.interval_mean(middle_s);
                    let temperature = temperature.ok_or_else(|| temperatures.not_covered_at(middle_s))?;
                    Ok(Pue::at(points, temperature) / supply_efficiency)
                };
                cells.iter().map(factor).collect()
            }
            (Pue::Constant(1.0), _) if *supply_efficiency == 1.0 => Ok(Vec::new()),
            (Pue::Constant(pue), _) => Ok(vec![pue / supply_efficiency; cells.len()]),
            (Pue::Curve { signal, .. }, None) => Err(PlaceError::NoTemperatures { label: signal.to_string() }),
        }
    }

    fn account(&self, cells: &[Cell], factors: &[f64], procs: u32, is_read: bool) -> Result<Account, PlaceError> {
        let hours = match (cells.first(), cells.last()) {
            (Some(first), Some(last)) => (last.to_s - first.from_s) / 3600.0,
            _ => 0.0,
        };
        let Loaded { signal, series } = &self.loaded;
        let weight = self.placed.weigh(cells, factors).map_err(|error| self.not_covered(&error))?;
        let Weight {
            machine,
            window: in_window,
            jobs,
            at_once,
            energy_j,
            facility_j,
            mean,
            time_mean,
            estimated_share,
        } = weight;
        let Facility { supply_efficiency, embodied_g_per_proc_hour, battery, battery_embodied_g_per_hour, .. } =
            signal.facility;
        let (rule, battery) = battery.unzip();
        let stored = battery.map(|battery| battery.run(&self.placed, cells, factors)).transpose();
        let stored = stored.map_err(|error| self.not_covered(&error))?;
        let total = machine + stored.map_or(0.0, |stored| stored.change);
        let embodied_g = embodied_g_per_proc_hour * f64::from(procs) + battery_embodied_g_per_hour;
        let (threshold, upper_threshold, window) = match battery.map(|battery| battery.policy) {
            Some(BatteryPolicy::Thresholds { lower, upper }) => {
                (Some(lower), (rule == Some(BatteryRule::Double)).then_some(upper), None)
            }
            Some(BatteryPolicy::Running { first, window, .. }) => (first, None, Some(window as u64)),
            None => (None, None, None),
        };
        let quantity = signal.reading.quantity;
        let carbon = |value: f64| (quantity == Quantity::Carbon).then_some(value);
        let price = |value: f64| (quantity == Quantity::Price).then_some(value);
        let number = |value: f64| Some(value).filter(|value| !value.is_nan());
        Ok(Account {
            signal: signal.label.to_string(),
            signal_index: signal.index,
            quantity: quantity.word(),
            read_by_policy: is_read,
            signal_file: signal.file.to_string(),
            zone: series.zone.clone(),
            signal_column: signal.reading.column.clone(),
            anchor: self.anchor_s.map(|anchor_s| calendar(anchor_s as f64)),
            facility_energy_j: facility_j,
            pue_mean: number(facility_j * supply_efficiency / energy_j),
            supply_efficiency,
            emissions_g: carbon(total),
            embodied_emissions_g: carbon(embodied_g * hours),
            cost: price(total),
            currency: series.currency.clone(),
            battery_policy: rule.map(|rule| rule.word().to_owned()),
            battery_kwh: battery.map(|battery| battery.capacity_j / J_PER_KWH),
            battery_charge_w: battery.map(|battery| battery.charge_w),
            battery_threshold: threshold,
            battery_upper_threshold: upper_threshold,
            battery_window: window,
            battery_initial_share: battery.and_then(|battery| number(battery.initial_j / battery.capacity_j)),
            battery_efficiency: battery.map(|battery| battery.efficiency),
            battery_charged_j: stored.map(|stored| stored.charged_j),
            battery_discharged_j: stored.map(|stored| stored.discharged_j),
            battery_end_j: stored.map(|stored| stored.end_j),
            signal_energy_mean: number(mean),
            signal_time_mean: number(time_mean),
            jobs_emissions_g: carbon(jobs),
            at_once_emissions_g: carbon(at_once),
            jobs_cost: price(jobs),
            at_once_cost: price(at_once),
            window_emissions_g: carbon(in_window),
            window_cost: price(in_window),
            estimated_share: estimated_share.and_then(number),
        })
    }

    fn not_covered(&self, error: &Uncovered) -> PlaceError {
        self.not_covered_at(match error {
            Uncovered::NotCovered(at_s) => *at_s,
            Uncovered::Malformed => f64::NAN,
        })
    }

    fn not_covered_at(&self, at_s: f64) -> PlaceError {
        self.loaded.not_covered(self.anchor_s, at_s)
    }
}

/// A calendar time as ISO 8601 writes it.
fn calendar(unix_s: f64) -> String {
    jiff::Timestamp::from_second(unix_s.floor() as i64)
        .map_or_else(|_| format!("{unix_s} s since 1970"), |time| time.to_string())
}
