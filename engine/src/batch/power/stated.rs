//! Watts of busy and idle processors, stated directly.
use super::{Model, Table, table_problems};
use crate::spec::{Choice, Component, Default, Param, Role, SimSpec, Type};

const MAX_W: f64 = 1e12;

/// Description of the model.
pub const COMPONENT: Component = Component {
    role: Role::Power,
    name: "stated",
    version: 1,
    doc: "Watts of a busy processor at each gear and of an idle one, as they were measured or specified. `beta` scales run \
          times; `asleep_w`, `off_w` and `wake_w` are the watts of processors that sleep, switch off or wake.",
    params: &[
        Param {
            name: "busy_w",
            ty: Type::Reals { min: 0.0, max: MAX_W },
            unit: "W",
            default: Default::Required,
            doc: "Power of a busy processor at each of `gears_ghz`; the tables of several classes of jobs follow each \
                  other.",
        },
        Param {
            name: "idle_w",
            ty: Type::Real { min: 0.0, max: MAX_W, min_allowed: true, unlimited: false },
            unit: "W",
            default: Default::Required,
            doc: "Power of an idle processor; at most that of a busy one at the lowest gear.",
        },
        Param {
            name: "watts_of_procs",
            ty: Type::Int { min: 1, max: 1 << 30 },
            unit: "procs",
            default: Default::Int(1),
            doc: "Processors that together draw `busy_w`, `idle_w`, `asleep_w`, `off_w` and `wake_w`: 1 for watts of a \
                  processor, the processors of a node for watts of a node.",
        },
    ],
    ..Component::BATCH
};

/// Processors that draw the stated watts together; 1 with another model.
pub(crate) fn watts_of_procs(spec: &SimSpec) -> f64 {
    spec.choice(Role::Power).opt_int("watts_of_procs").unwrap_or(1) as f64
}

/// The model for a number of gears, for a choice without [`problems`].
pub(crate) fn model(choice: &Choice, gears: usize) -> Model {
    let procs = choice.int("watts_of_procs") as f64;
    let each_w = |table: &[f64]| table.iter().map(|busy_w| busy_w / procs).collect();
    Model {
        busy_w: choice.reals("busy_w").chunks(gears).map(each_w).collect(),
        time_factors: Vec::new(),
        idle_w: choice.real("idle_w") / procs,
    }
}

/// Problems of the watts with a number of gears, in sentences that name the parameters. `betas`: number of classes in the
/// platform's `class_betas`.
pub(crate) fn problems(choice: &Choice, gears: usize, betas: Option<usize>) -> Vec<String> {
    // A manifest without the two is refused because of them.
    let (Some(busy_w), Some(idle_w)) = (choice.opt_reals("busy_w"), choice.opt_real("idle_w")) else {
        return Vec::new();
    };
    let mut problems = table_problems(&[Table { name: "busy_w", values: busy_w, ascends: true }], gears, betas);
    let least_w = busy_w.iter().copied().fold(f64::INFINITY, f64::min);
    if idle_w > least_w {
        problems.push(format!(
            "`idle_w` is {idle_w} and `busy_w` {least_w} at the lowest gear: an idle processor draws no more than a busy one"
        ));
    }
    problems
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::spec::Value;

    fn choice(busy_w: &[f64], idle_w: f64, procs: i64) -> Choice {
        let mut choice = Choice::new(&COMPONENT);
        choice.set("busy_w", Value::Reals(busy_w.to_vec())).unwrap();
        choice.set("idle_w", Value::Real(idle_w)).unwrap();
        choice.set("watts_of_procs", Value::Int(procs)).unwrap();
        choice
    }

    #[test]
    fn watts_of_a_node_are_shared_by_its_procs() {
        let of_node = choice(&[300.0, 400.0, 320.0, 420.0], 200.0, 100);
        assert_eq!(problems(&of_node, 2, None), Vec::<String>::new());
        let model = model(&of_node, 2);
        assert_eq!((model.busy_w(0, 1), model.busy_w(1, 0), model.idle_w), (4.0, 3.2, 2.0));
        assert_eq!((model.job_classes(), model.time_factor(0, 0)), (2, None));
    }

    #[test]
    fn the_problem_names_the_wrong_watts() {
        let wrong = |busy_w: &[f64], idle_w| problems(&choice(busy_w, idle_w, 1), 2, None).join("; ");
        assert!(wrong(&[5.0], 1.0).contains("`busy_w` has 1 values for 2 gears"));
        assert!(wrong(&[5.0, 4.0], 1.0).contains("`busy_w` must not descend"));
        assert!(wrong(&[4.0, 9.0], 5.0).contains("`idle_w` is 5 and `busy_w` 4 at the lowest gear"));
        assert_eq!(wrong(&[4.0, 9.0], 4.0), "");
    }
}
