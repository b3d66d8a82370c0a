//! Short ways to write specs.
use powersweep_engine::registry;
use powersweep_engine::workload::Workload;
use powersweep_engine::{Details, JobRecord, Limits, Part, SimError, SimSpec, Slot, Summary, Value};

/// The summary of a simulation of jobs, and their records if `rows` are wanted.
pub(crate) fn simulate(
    spec: &SimSpec,
    workload: &Workload,
    limits: &Limits<'_>,
    rows: Option<&mut Vec<JobRecord>>,
) -> Result<Summary, SimError> {
    let mut details = if rows.is_some() { Details::jobs() } else { Details::default() };
    let measured = powersweep_engine::simulate(spec, workload, limits, &mut details)?;
    if let Some(rows) = rows {
        *rows = details.jobs.take().unwrap_or_default();
    }
    Ok(measured.jobs().expect("the spec is of jobs").clone())
}

/// A spec on a log, with parts and parameters given by name.
pub(crate) struct Build(pub(crate) SimSpec);

impl Build {
    pub(crate) fn log() -> Build {
        let mut build = Build(SimSpec::new()).part(Slot::Source, "swf");
        build.0.part_mut(Slot::Source).set("log", Value::Text("test".to_owned())).unwrap();
        build
    }

    pub(crate) fn part(mut self, slot: Slot, name: &str) -> Build {
        self.0.choose(Part::new(registry::find(slot, name).unwrap()));
        self
    }

    /// Sets a parameter of whichever chosen part has it.
    pub(crate) fn set(mut self, name: &str, value: Value) -> Build {
        let slot = self.0.parts().find(|p| p.entry().params.iter().any(|q| q.name == name)).unwrap().entry().slot;
        self.0.part_mut(slot).set(name, value).unwrap();
        self
    }

    pub(crate) fn text(self, name: &str, value: &str) -> Build {
        self.set(name, Value::Text(value.to_owned()))
    }

    pub(crate) fn int(self, name: &str, value: i64) -> Build {
        self.set(name, Value::Int(value))
    }

    pub(crate) fn real(self, name: &str, value: f64) -> Build {
        self.set(name, Value::Real(value))
    }

    pub(crate) fn flag(self, name: &str, value: bool) -> Build {
        self.set(name, Value::Bool(value))
    }
}
