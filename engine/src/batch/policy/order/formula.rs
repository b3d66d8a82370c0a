//! An expression of the manifest.
use std::cell::OnceCell;

use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::error::{Result, SimError, Stop};
use crate::formula::{Formula, Known, Trend, Variable};
use crate::spec::{Choice, Component, Default, Param, Role, Type};

/// The parameter with the expression of the queue order.
const FORMULA: Param = Param {
    name: "formula",
    ty: Type::Formula { variables: VARIABLES },
    unit: "",
    default: Default::Required,
    doc: "Expression over a waiting job and the queue. The estimate is the run time that the scheduler expects: the \
          prediction of a `predictor`, else what the user requested. `wait_s`, `now_s`, `queue_length` and `free_procs` change with time. Operators by precedence: `^`, unary `-`, `* /`, \
          `+ -`, `< <= > >= == !=` (1 or 0); functions: `min(a, b)`, `max(a, b)`, `pow(a, b)`, `if(condition, a, b)`, \
          `abs`, `sqrt`, `cbrt`, `ln`, `log2`, `log10`, `exp`, `floor`, `ceil`. A job without a value (NaN) ends the \
          task with an error.",
};

/// The parameter with the expression of the backfilling order.
const BACKFILL_FORMULA: Param =
    Param { name: "backfill_formula", doc: "Expression over a waiting job, as `formula`.", ..FORMULA };

/// Description of the order.
pub const COMPONENT: Component = Component {
    role: Role::Order,
    name: "formula",
    version: 1,
    doc: "Least value of `formula` first, ties by arrival; sorted again at each pass if the expression reads a variable \
          that changes with time.",
    reads: "The variables that the expression names.",
    guarantees: "Those of the expression. A job for which the expression has no value ends the task with an error.",
    params: &[FORMULA],
    ..Component::BATCH
};

/// The formula as an order in which jobs overtake.
pub const OF_BACKFILLING: Component = Component {
    role: Role::BackfillOrder,
    doc: "Least value of `backfill_formula` first, ties by arrival.",
    params: &[BACKFILL_FORMULA],
    ..COMPONENT
};

/// Declares the variables: name, least value, change with time, value.
macro_rules! variables {
    ($cluster:ident, $job:ident, $now_s:ident: $($name:ident $least:ident $trend:ident $value:expr;)*) => {
        /// The variables of a formula.
        pub const VARIABLES: &[Variable] =
            &[$(Variable { name: stringify!($name), changes: !matches!(Trend::$trend, Trend::Constant) }),*];

        /// Bounds and directions of the variables while a job waits.
        const KNOWN: &[Known] = &[$(Known { low: $least, high: f64::MAX, trend: Trend::$trend }),*];

        /// Their positions in the list.
        #[allow(non_camel_case_types)]
        enum At {
            $($name),*
        }

        /// The value of the variable at a position.
        #[inline(always)]
        fn read<R: Recorder>($cluster: &Cluster<'_, R>, $job: JobId, $now_s: f64, at: u8) -> f64 {
            $(if at == At::$name as u8 {
                return $value;
            })*
            f64::NAN
        }
    };
}

/// Least values. A workload has finite times of any sign, and no variable is infinite.
const ANY: f64 = -f64::MAX;
const ZERO: f64 = 0.0;
const ONE: f64 = 1.0;

variables! {
    cluster, job, now_s:
    submit_s ANY Constant cluster.submit_s(job);
    first_submit_s ANY Constant cluster.first_submit_s();
    estimate_s ZERO Constant cluster.estimate_s(job);
    requested_s ZERO Constant cluster.requested_s(job);
    procs ONE Constant f64::from(cluster.procs(job));
    area_proc_s ZERO Constant cluster.estimate_s(job) * f64::from(cluster.procs(job));
    priority ZERO Constant f64::from(cluster.priority(job));
    // Manifests and results count classes from 1.
    job_class ONE Constant f64::from(cluster.job_class(job)) + 1.0;
    machine_procs ONE Constant f64::from(cluster.machine().procs);
    now_s ANY Rises now_s;
    wait_s ZERO Rises now_s - cluster.submit_s(job);
    queue_length ZERO Varies f64::from(cluster.waiting_count());
    free_procs ZERO Varies f64::from(cluster.free());
}

/// The expression of a spec, and whether it has had a value for every job.
#[derive(Debug, Clone)]
pub(in crate::batch::policy) struct Expression {
    /// The name of its parameter.
    param: &'static str,
    formula: Formula,
    changes: bool,
    /// Bounds and direction of the value; `None` if a job may have no value.
    known: Option<Known>,
    /// The first job without a value.
    undefined: OnceCell<SimError>,
}

impl Expression {
    /// The expression of a choice.
    pub(super) fn of(choice: &Choice) -> Result<Expression, SimError> {
        let param = choice.component().params[0].name;
        let invalid = |error| SimError::Invalid(format!("`{param}` is no expression: {error}"));
        let formula = Formula::parse(choice.text(param), VARIABLES).map_err(invalid)?;
        let (changes, known) = (formula.changes(), formula.known(|at| KNOWN[usize::from(at)]));
        Ok(Expression { param, formula, changes, known, undefined: OnceCell::new() })
    }

    pub(super) fn has_value(&self) -> bool {
        self.known.is_some()
    }

    pub(super) fn never_rises(&self) -> bool {
        self.known.is_some_and(|known| matches!(known.trend, Trend::Constant | Trend::Falls))
    }

    #[inline]
    pub(super) fn changes(&self) -> bool {
        self.changes
    }

    /// The key of a waiting job. A job without a value is last until [`Expression::check`] ends the run.
    pub(super) fn key<R: Recorder>(&self, cluster: &Cluster<'_, R>, job: JobId, now_s: f64) -> f64 {
        let value = self.formula.value(|at| read(cluster, job, now_s, at));
        if value.is_nan() {
            self.undefined.get_or_init(|| self.no_value(cluster, job));
            return f64::INFINITY;
        }
        // One zero, because sorting tells two zeros apart.
        value + 0.0
    }

    #[cold]
    fn no_value<R: Recorder>(&self, cluster: &Cluster<'_, R>, job: JobId) -> SimError {
        let known =
            |at: &u8| format!("{} = {}", VARIABLES[usize::from(*at)].name, read(cluster, job, cluster.now_s(), *at));
        let reads: Vec<String> = self.formula.reads().iter().map(known).collect();
        let with =
            if reads.is_empty() { "and reads no variable".to_owned() } else { format!("with {}", reads.join(", ")) };
        SimError::Invalid(format!(
            "`{}` has no value (NaN) for job {} at {} s, {with}: bound what it divides, and what it takes roots and \
             logarithms of, as in max(estimate_s, 1)",
            self.param,
            cluster.job_id(job),
            cluster.now_s(),
        ))
    }

    /// Whether every job so far has had a value.
    ///
    /// # Errors
    /// [`SimError::Invalid`] with the first job that had none.
    pub(super) fn check(&self) -> Result<()> {
        self.undefined.get().map_or(Ok(()), |error| Err(Stop::new(error.clone())))
    }
}
