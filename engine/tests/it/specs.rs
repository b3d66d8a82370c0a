//! Builds specs for tests.
use powersweep_engine::components;
use powersweep_engine::workload::Workload;
use powersweep_engine::{Choice, Details, JobRecord, Limits, Role, SimError, SimSpec, Summary, Value};

/// Simulates batch jobs: returns the summary, and writes the records of jobs to `rows`.
pub(crate) fn simulate(
    spec: &SimSpec,
    workload: &Workload,
    limits: &Limits<'_>,
    rows: Option<&mut Vec<JobRecord>>,
) -> Result<Summary, SimError> {
    let mut details = Details { jobs: rows.is_some().then(Vec::new), series: None, ..Details::default() };
    let measured = powersweep_engine::simulate(spec, workload, limits, &mut details)?;
    if let Some(rows) = rows {
        *rows = details.jobs.take().unwrap_or_default();
    }
    Ok(measured.jobs().expect("the spec is of jobs").clone())
}

/// Asks for the series alone.
pub(crate) fn series_alone() -> Details {
    Details { series: Some(Vec::new()), ..Details::default() }
}

/// Simulates batch jobs: instants (s) and values of a series without levels.
pub(crate) fn recorded(series: &str, spec: &SimSpec, workload: &Workload) -> Vec<(f64, f64)> {
    let mut details = series_alone();
    powersweep_engine::simulate(spec, workload, &Limits::NONE, &mut details).unwrap();
    let points = details.series.unwrap().into_iter().filter(|point| point.series == series);
    points.map(|point| (point.x, point.value)).collect()
}

/// A spec on a log, with components and parameters given by name.
pub(crate) struct Build(pub(crate) SimSpec);

impl Build {
    pub(crate) fn log() -> Build {
        let mut build = Build(SimSpec::new()).choose(Role::Source, "swf");
        build.0.choice_mut(Role::Source).set("log", Value::Text("test".to_owned())).unwrap();
        build
    }

    pub(crate) fn choose(mut self, role: Role, name: &str) -> Build {
        self.0.choose(Choice::new(components::find(role, name).unwrap()));
        self
    }

    /// Sets a parameter of the chosen component that has it.
    pub(crate) fn set(mut self, name: &str, value: Value) -> Build {
        let role =
            self.0.choices().find(|p| p.component().params.iter().any(|q| q.name == name)).unwrap().component().role;
        self.0.choice_mut(role).set(name, value).unwrap();
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

    pub(crate) fn reals(self, name: &str, value: &[f64]) -> Build {
        self.set(name, Value::Reals(value.to_vec()))
    }

    pub(crate) fn flag(self, name: &str, value: bool) -> Build {
        self.set(name, Value::Bool(value))
    }
}
