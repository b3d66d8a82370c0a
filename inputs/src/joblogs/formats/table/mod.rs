//! Tables of text with a header: CSV of any origin, and tables of published clusters.
//!
//! A [`Plan`] says which column has which field of a job. Fields without a column are not known; a table without ends has
//! run times.

mod cells;

use crate::error::Problem;
use crate::joblogs::clock::{JobClock, Time};
use crate::joblogs::entry::{COUNT_MAX, Entries, Entry, Measured, Outcome, PowerSamples, Size, TimeLimit, job_number};
use crate::joblogs::formats::slurm::{CLUSTER_END, duration, name_clusters};
use crate::joblogs::odd_rows::OddRows;
use crate::joblogs::settings::{Procs, Settings, TimeUnit};
use crate::joblogs::{Ledger, Rule};
use crate::table::clock::{SECOND_US, UNIX_S};
use crate::table::{Row, Sheet};
use cells::TableTimes;
pub(super) use cells::is_missing;

/// Declares the fields of a job, each with its name in the setting `columns`.
macro_rules! fields {
    ($($field:ident $name:literal,)*) => {
        /// A field of a job.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Field {
            $($field,)*
        }

        impl Field {
            /// All fields in their order.
            pub(super) const ALL: &'static [(Field, &'static str)] = &[$((Field::$field, $name),)*];
        }
    };
}

fields! {
    Id "id",
    Submit "submit",
    Eligible "eligible",
    Start "start",
    End "end",
    Wait "wait",
    Run "run",
    Limit "limit",
    Cpus "cpus",
    Nodes "nodes",
    Gpus "gpus",
    User "user",
    Group "group",
    Queue "queue",
    Cluster "cluster",
    State "state",
    PowerW "power_w",
    NodePowerW "node_power_w",
    EnergyJ "energy_j",
    Ghz "ghz",
    MemoryGib "memory_gib",
}

impl Field {
    /// The field that counts as processors.
    pub(super) fn of(procs: Procs) -> Field {
        match procs {
            Procs::Cpus => Field::Cpus,
            Procs::Nodes => Field::Nodes,
            Procs::Gpus => Field::Gpus,
        }
    }
}

/// Greatest power (W) or energy (J) of a job.
const MEASURED_MAX: f64 = 1e15;

/// Greatest plausible frequency (GHz).
const GHZ_MAX: f64 = 20.0;

/// The mean of a cell, and the samples of a list.
type Power = (f64, Option<Vec<f64>>);

/// How a table is read.
#[derive(Debug)]
pub(super) struct Plan {
    /// Places of the fields that have a column.
    columns: [Option<usize>; Field::ALL.len()],
    /// Unit of numbers that are times.
    unit: TimeUnit,
    pub(super) scales: Scales,
    /// Column of the thousandths of a GPU that a job has.
    pub(super) gpu_milli: Option<usize>,
    /// Column of the number of equal instances of which the job consists.
    pub(super) instances: Option<usize>,
}

/// The meaning of the cells of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scales {
    /// Number by which CPUs are divided: 1000 for thousandths.
    pub(super) cpu_parts: f64,
    /// Number by which memory is divided to be GiB: 1024 for MiB.
    pub(super) memory_parts: f64,
    /// Unit of numbers that are limits, where it differs from the unit of the other times.
    pub(super) limit_unit: Option<TimeUnit>,
    /// Time between samples of a power, if the table has lists with a known step (s).
    pub(super) power_step_s: Option<u32>,
    /// Whether frequencies are MHz.
    pub(super) is_mhz: bool,
    /// The outcome of a state.
    pub(super) outcome: fn(&str) -> Outcome,
}

impl Scales {
    pub(super) const USUAL: Scales = Scales {
        cpu_parts: 1.0,
        memory_parts: 1.0,
        limit_unit: None,
        power_step_s: None,
        is_mhz: false,
        outcome: Outcome::of,
    };
}

impl Plan {
    /// A plan without columns.
    pub(super) fn new(unit: TimeUnit) -> Plan {
        let columns = [None; Field::ALL.len()];
        Plan { columns, unit, scales: Scales::USUAL, gpu_milli: None, instances: None }
    }

    /// Sets the column of a field.
    pub(super) fn set(&mut self, field: Field, column: usize) {
        self.columns[field as usize] = Some(column);
    }

    pub(super) fn column(&self, field: Field) -> Option<usize> {
        self.columns[field as usize]
    }

    /// Reads the rows below the header.
    pub(super) fn read(
        &self,
        sheet: &mut Sheet<'_>,
        settings: &Settings,
        ledger: &mut Ledger,
    ) -> Result<Entries, Problem> {
        let clock = JobClock::new(settings.timezone.as_deref())?;
        let mut times = TableTimes::new(self.unit, clock);
        let mut list = Vec::new();
        sheet.read_only(self.columns.into_iter().flatten().chain(self.gpu_milli).chain(self.instances));
        let mut odd = OddRows::default();
        for line in sheet.banner() {
            ledger.read += 1;
            ledger.add(Rule::Banner, line);
        }
        loop {
            let read = match sheet.next_row() {
                Ok(None) => break,
                Ok(Some(row)) if row.is_header() => {
                    ledger.add(Rule::RepeatedHeader, row.place.number());
                    Ok(())
                }
                Ok(Some(row)) => {
                    let entry = Cells { plan: self, row: &row, settings }.entry(&mut times);
                    entry.map(|entry| list.push(entry))
                }
                Err(problem) => Err(problem),
            };
            ledger.read += 1;
            read.or_else(|problem| odd.drop_row(problem, ledger))?;
        }
        sheet.check_numbers()?;
        odd.finish(ledger)?;
        for entry in &mut list {
            let Entry { submit, eligible, start, end, .. } = entry;
            for time in [submit, eligible, start, end] {
                *time = time.filter(|time| !times.is_zero(*time));
            }
        }
        if self.column(Field::Cluster).is_some() {
            name_clusters(&mut list);
        }
        let is_calendar = times.finish()?;
        Ok(Entries { list, is_calendar })
    }
}

/// A row that is being read.
struct Cells<'a> {
    plan: &'a Plan,
    row: &'a Row<'a>,
    settings: &'a Settings,
}

impl Cells<'_> {
    /// The text of a field; `None` if it has no column or no value.
    fn get(&self, field: Field) -> Option<&str> {
        self.plan.column(field).map(|at| self.row.get(at)).filter(|text| !is_missing(text))
    }

    fn number(&self, text: &str) -> Option<f64> {
        self.row.number(text).ok()
    }

    fn text(&self, field: Field) -> String {
        self.get(field).unwrap_or_default().to_owned()
    }

    fn problem(&self, field: Field, reason: &str) -> Problem {
        match self.plan.column(field) {
            Some(at) => self.row.problem(at, reason),
            None => Problem::At { place: self.row.place, reason: reason.to_owned() },
        }
    }

    fn entry(&self, times: &mut TableTimes) -> Result<Entry, Problem> {
        let (submit, mut start) = (self.time(Field::Submit, times)?, self.time(Field::Start, times)?);
        let (wait_us, elapsed_us) = (self.span_us(Field::Wait)?, self.span_us(Field::Run)?);
        let mut outcome = match self.plan.column(Field::State) {
            Some(at) => (self.plan.scales.outcome)(self.row.get(at)),
            None => Outcome::Completed,
        };
        let has_start = self.plan.column(Field::Start).is_some();
        if outcome == Outcome::Cancelled && has_start && start.is_none() {
            outcome = Outcome::NeverStarted;
        }
        let mut changes = Vec::new();
        if let Some((submit, wait_us)) = submit.zip(wait_us) {
            let waits = |start: i64| submit.instants().any(|submit| (start - submit - wait_us).abs() <= SECOND_US);
            if start.is_some_and(|start| !start.instants().any(waits)) {
                changes.push(Rule::WaitDiffers);
            }
            start = start.or(submit.after(wait_us));
        }
        let mut end = self.time(Field::End, times)?;
        if self.plan.column(Field::End).is_none() {
            end = start.zip(elapsed_us).and_then(|(start, elapsed_us)| start.after(elapsed_us));
        }
        // Where every ended job has an end, a job without one has not ended. A state may say that it never started.
        let has_end = self.plan.column(Field::End).is_some();
        let may_run = start.is_some() || self.plan.column(Field::State).is_none();
        if has_end && end.is_none() && elapsed_us.is_none() && may_run {
            outcome = Outcome::NotEnded;
        }
        let id = self.text(Field::Id);
        let number = match self.plan.column(Field::Id) {
            Some(_) => job_number(&id),
            // Jobs without ids are numbered as the rows are.
            None => i64::try_from(self.row.number).ok(),
        };
        let id = number.filter(|_| id.is_empty()).map_or(id, |number| number.to_string());
        let id = match self.get(Field::Cluster) {
            Some(cluster) => format!("{cluster}{CLUSTER_END}{id}"),
            None => id,
        };
        Ok(Entry {
            line: self.row.place.number(),
            id,
            number,
            outcome,
            submit,
            eligible: self.time(Field::Eligible, times)?,
            start,
            end,
            wait_us,
            elapsed_us,
            limit: self.limit()?,
            allocated: self.size(&mut changes)?,
            user: self.text(Field::User),
            group: self.text(Field::Group),
            queue: self.text(Field::Queue),
            memory_kib: self.memory_kib()?,
            measured: self.measured(&mut changes)?,
            changes,
            ..Entry::default()
        })
    }

    fn time(&self, field: Field, times: &mut TableTimes) -> Result<Option<Time>, Problem> {
        let at = self.plan.column(field).filter(|at| !is_missing(self.row.get(*at)));
        Ok(at.map(|at| times.read(self.row, at)).transpose()?.flatten())
    }

    fn limit(&self) -> Result<TimeLimit, Problem> {
        let is_none = |text: &str| ["infinite", "unlimited"].iter().any(|word| text.eq_ignore_ascii_case(word));
        if self.get(Field::Limit).is_some_and(is_none) {
            return Ok(TimeLimit::None);
        }
        Ok(match (self.plan.column(Field::Limit), self.span_us(Field::Limit)?) {
            (None, _) => TimeLimit::Absent,
            (Some(_), None) => TimeLimit::Unknown,
            (Some(_), Some(limit_us)) => TimeLimit::Us(limit_us),
        })
    }

    /// A span of time: a number in the unit of the table, or `1-02:03:04`. `01:30` can be minutes or hours.
    fn span_us(&self, field: Field) -> Result<Option<i64>, Problem> {
        let Some(text) = self.get(field) else { return Ok(None) };
        if !text.contains('-') && text.split(':').count() == 2 {
            let reason = "can be hours and minutes, or minutes and seconds: write it as 1:30:00 or 0:01:30";
            // A problem of the file: rows with such times are not like those without.
            return Err(Problem::Content(self.problem(field, reason).to_string()));
        }
        let limit_unit = self.plan.scales.limit_unit.filter(|_| field == Field::Limit);
        let unit = limit_unit.unwrap_or(self.plan.unit);
        let number = || self.number(text).and_then(|number| unit.us(number));
        let span_us = if text.contains(':') { duration(text) } else { number() };
        let span_us = span_us.filter(|span_us| (0..=UNIX_S.end * SECOND_US).contains(span_us));
        span_us.map(Some).ok_or_else(|| self.problem(field, "is no time of at least 0, such as 90.5 or 1-02:03:04"))
    }

    fn measured(&self, changes: &mut Vec<Rule>) -> Result<Measured, Problem> {
        let fields = [Field::PowerW, Field::NodePowerW, Field::EnergyJ];
        let step_s = self.settings.power_step_s.or(self.plan.scales.power_step_s);
        let (of_job, of_node) = (self.power(Field::PowerW, changes)?, self.power(Field::NodePowerW, changes)?);
        let (power_w, node_power_w) = (of_job.as_ref().map(|power| power.0), of_node.as_ref().map(|power| power.0));
        let samples = of_job.or(of_node).and_then(|power| power.1);
        Ok(Measured {
            has_column: fields.iter().any(|field| self.plan.column(*field).is_some()),
            power_w,
            samples: step_s.zip(samples).map(|(step_s, watts)| PowerSamples { step_s: f64::from(step_s), watts }),
            node_power_w,
            energy_j: self.mean(Field::EnergyJ, changes)?.filter(|energy_j| *energy_j > 0.0),
            ghz: self.ghz(changes)?,
        })
    }

    fn ghz(&self, changes: &mut Vec<Rule>) -> Result<Option<f64>, Problem> {
        let Some(number) = self.mean(Field::Ghz, changes)?.filter(|number| *number > 0.0) else { return Ok(None) };
        let ghz = if self.plan.scales.is_mhz { number / 1000.0 } else { number };
        // Numbers in MHz or kHz are a wrong unit.
        if ghz > GHZ_MAX {
            return Err(self.problem(Field::Ghz, "is no frequency in GHz"));
        }
        Ok(Some(ghz))
    }

    fn memory_kib(&self) -> Result<Option<u64>, Problem> {
        let Some(text) = self.get(Field::MemoryGib) else { return Ok(None) };
        let gib = |number| number / self.plan.scales.memory_parts;
        let kib = self.number(text).and_then(|number| crate::joblogs::entry::memory_kib(gib(number) * 1024.0 * 1024.0));
        kib.ok_or_else(|| self.problem(Field::MemoryGib, "is no memory in GiB"))
    }

    /// A number of 0 or more, or the mean of a list of samples with equal steps such as `[300, 310]`.
    fn mean(&self, field: Field, changes: &mut Vec<Rule>) -> Result<Option<f64>, Problem> {
        Ok(self.power(field, changes)?.map(|(mean, _)| mean))
    }

    /// [`Cells::mean`], and the samples of a list. An empty list is no value, nor is a list without a sample. For a missing
    /// sample, the one before holds, so that those after it keep their times.
    fn power(&self, field: Field, changes: &mut Vec<Rule>) -> Result<Option<Power>, Problem> {
        let Some(text) = self.get(field) else { return Ok(None) };
        let Some(list) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
            let number = self.number(text).filter(|number| (0.0..=MEASURED_MAX).contains(number));
            let number = number.ok_or_else(|| self.problem(field, "is no number of at least 0"))?;
            return Ok(Some((number, None)));
        };
        let samples: Vec<&str> = match list.contains(',') {
            true => list.trim_end().strip_suffix(',').unwrap_or(list).split(',').map(str::trim).collect(),
            false => list.split_ascii_whitespace().collect(),
        };
        let sample = |text: &&str| {
            let sample = self.number(text).filter(|sample| (0.0..=MEASURED_MAX).contains(sample));
            sample.ok_or_else(|| self.problem(field, "has a sample that is no number of at least 0"))
        };
        let known = samples.iter().copied().find(|text| !is_missing(text));
        let Some(mut held) = known.map(|text| sample(&text)).transpose()? else { return Ok(None) };
        if samples.iter().any(|text| is_missing(text)) {
            changes.push(Rule::SampleMissing);
        }
        let samples = samples.iter().map(|text| {
            if !is_missing(text) {
                held = sample(text)?;
            }
            Ok(held)
        });
        let samples: Vec<f64> = samples.collect::<Result<_, Problem>>()?;
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        Ok(Some((mean, Some(samples))))
    }

    fn size(&self, changes: &mut Vec<Rule>) -> Result<Size, Problem> {
        let instances = match self.plan.instances.map(|at| (at, self.row.get(at))) {
            None => 1.0,
            Some((at, text)) => {
                let number = self.number(text).filter(|number| *number >= 0.0 && number.fract() == 0.0);
                number.ok_or_else(|| self.row.problem(at, "is no number of instances"))?
            }
        };
        let mut is_rounded = false;
        let mut count = |field: Field, parts: f64| -> Result<Option<u32>, Problem> {
            let Some(text) = self.get(field) else { return Ok(None) };
            let number = self.number(text).map(|number| number / parts * instances);
            let number = number.filter(|number| (0.0..=f64::from(COUNT_MAX)).contains(number));
            let number = number.ok_or_else(|| self.problem(field, "is no count from 0 to 2^30"))?;
            is_rounded |= [Field::of(self.settings.procs), Field::Gpus].contains(&field) && number.fract() != 0.0;
            Ok(Some(number.ceil() as u32))
        };
        let (cpus, nodes) = (count(Field::Cpus, self.plan.scales.cpu_parts)?, count(Field::Nodes, 1.0)?);
        let gpus = count(Field::Gpus, 1.0)?;
        let milli = self.plan.gpu_milli.and_then(|at| self.number(self.row.get(at)));
        is_rounded |=
            gpus.is_some_and(|gpus| gpus > 0) && milli.is_some_and(|milli| milli > 0.0 && milli % 1000.0 != 0.0);
        changes.extend(is_rounded.then_some(Rule::RoundedUp));
        Ok(Size { cpus, nodes, gpus })
    }
}
