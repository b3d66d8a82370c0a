//! Signals on simulated time, and the rows of the table `accounts`.

use std::collections::BTreeMap;
use std::sync::Arc;

use powersweep_engine::account::Weight;
use powersweep_engine::energy::Cell;
use powersweep_engine::signal::{Edges, Signal as Placed, SignalError as Uncovered};
use powersweep_engine::{Account, SimSpec};

use powersweep_experiments::signals::{Beyond, Quantity, Signal, Word};

use crate::{Base, Series};

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
    /// The file has a single time, or no regular step.
    #[error(
        "the file {file} of the signal `{label}` has {times}, so that nobody knows how long its last value holds: set \
         beyond = \"hold\" in [signals.{label}]"
    )]
    NoEnd {
        /// Label of the signal.
        label: String,
        /// The file.
        file: String,
        /// What its times are.
        times: &'static str,
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
    entries: Vec<Entry>,
    edges: Arc<AllEdges>,
}

#[derive(Debug)]
struct Entry {
    loaded: Loaded,
    placed: Arc<Placed>,
    /// Calendar time of simulated time 0; `None` for a series on simulated time.
    anchor_s: Option<i64>,
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
    /// The signal on the time of a workload that begins at a calendar time, and that calendar time.
    ///
    /// `unix_start_s`: calendar time of the workload's second 0, where its log states it.
    ///
    /// # Errors
    /// [`PlaceError::NoAnchor`], [`PlaceError::NoEnd`].
    pub fn place(&self, unix_start_s: Option<i64>) -> Result<(Placed, Option<i64>), PlaceError> {
        let Loaded { signal, series } = self;
        let label = || signal.label.to_string();
        let anchor_s = match series.base {
            Base::Offset => None,
            Base::Calendar => {
                let anchor_s = signal.anchor_s.or(unix_start_s);
                Some(anchor_s.ok_or_else(|| PlaceError::NoAnchor { label: label() })?)
            }
        };
        let shift_s = anchor_s.unwrap_or(0) as f64;
        let times_s = series.times_s.iter().map(|time| time - shift_s).collect();
        let (values, estimated) = (series.values.clone(), series.estimated.clone());
        let placed = Placed::new(times_s, values, estimated, series.end_s - shift_s, signal.sample, signal.beyond);
        // The times of a series increase, and its numbers are finite.
        let times = if series.times_s.len() == 1 { "a single time" } else { "times without a regular step" };
        let placed = placed.map_err(|_| PlaceError::NoEnd { label: label(), file: signal.file.to_string(), times })?;
        Ok((placed, anchor_s))
    }
}

impl Accounts {
    /// The signals on the time of a workload.
    ///
    /// # Errors
    /// See [`Loaded::place`].
    pub fn new(loaded: &[Loaded], unix_start_s: Option<i64>) -> Result<Accounts, PlaceError> {
        let mut entries = Vec::with_capacity(loaded.len());
        // Signals of several zones mostly have the same times.
        let mut grids: BTreeMap<(Beyond, Vec<u64>), Arc<Placed>> = BTreeMap::new();
        for loaded in loaded {
            let (placed, anchor_s) = loaded.place(unix_start_s)?;
            let placed = Arc::new(placed);
            let grid = (loaded.signal.beyond, placed.edges().map(f64::to_bits).collect());
            grids.entry(grid).or_insert_with(|| Arc::clone(&placed));
            entries.push(Entry { loaded: loaded.clone(), placed, anchor_s });
        }
        Ok(Accounts { entries, edges: Arc::new(AllEdges(grids.into_values().collect())) })
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

    /// The rows of a run.
    ///
    /// # Errors
    /// [`PlaceError::NotCovered`].
    pub fn of(&self, cells: &[Cell]) -> Result<Vec<Account>, PlaceError> {
        self.entries.iter().map(|entry| entry.account(cells)).collect()
    }
}

impl Entry {
    fn account(&self, cells: &[Cell]) -> Result<Account, PlaceError> {
        let Loaded { signal, series } = &self.loaded;
        let weight = self.placed.weigh(cells).map_err(|error| self.not_covered(&error))?;
        let Weight { machine, jobs, at_once, mean, time_mean, estimated_share } = weight;
        let quantity = signal.reading.quantity;
        let carbon = |value: f64| (quantity == Quantity::Carbon).then_some(value);
        let price = |value: f64| (quantity == Quantity::Price).then_some(value);
        let number = |value: f64| Some(value).filter(|value| !value.is_nan());
        Ok(Account {
            signal: signal.label.to_string(),
            signal_index: signal.index,
            quantity: quantity.word(),
            signal_file: signal.file.to_string(),
            zone: series.zone.clone(),
            signal_column: signal.reading.column.clone(),
            anchor: self.anchor_s.map(|anchor_s| calendar(anchor_s as f64)),
            emissions_g: carbon(machine),
            cost: price(machine),
            currency: series.currency.clone(),
            signal_energy_mean: number(mean),
            signal_time_mean: number(time_mean),
            jobs_emissions_g: carbon(jobs),
            at_once_emissions_g: carbon(at_once),
            jobs_cost: price(jobs),
            at_once_cost: price(at_once),
            estimated_share: estimated_share.and_then(number),
        })
    }

    fn not_covered(&self, error: &Uncovered) -> PlaceError {
        let Loaded { signal, series } = &self.loaded;
        let at_s = match error {
            Uncovered::NotCovered(at_s) => *at_s,
            Uncovered::Malformed => f64::NAN,
        };
        let shown = |time_s: f64| match self.anchor_s {
            Some(_) => calendar(time_s),
            None => format!("{time_s} s"),
        };
        PlaceError::NotCovered {
            label: signal.label.to_string(),
            file: signal.file.to_string(),
            from: shown(series.times_s[0]),
            to: shown(series.end_s),
            at: shown(at_s + self.anchor_s.unwrap_or(0) as f64),
        }
    }
}

/// A calendar time as ISO 8601 writes it.
fn calendar(unix_s: f64) -> String {
    jiff::Timestamp::from_second(unix_s.floor() as i64)
        .map_or_else(|_| format!("{unix_s} s since 1970"), |time| time.to_string())
}
