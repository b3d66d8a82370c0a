//! Measured power and run times by gear, in one table or a table for each class of jobs.
use super::{Model, Table, table_problems};
use crate::spec::{Choice, Component, Default, Param, Role, Type};

const WATTS: Type = Type::Reals { min: 1e-9, max: 1e12 };

/// Description of the model.
pub const COMPONENT: Component = Component {
    role: Role::Power,
    name: "table",
    version: 1,
    source: "Zhang et al. 2014, Table III, eqs. 2 and 3",
    doc: "Power and run time by gear, measured on a whole machine, in one table or a table for each class of jobs.",
    params: &[
        Param {
            name: "table_power_w",
            ty: WATTS,
            unit: "W",
            default: Default::Reals(&[24442.19, 27170.10, 30123.53, 34981.00, 37486.77, 44434.47, 49890.20]),
            doc: "Power of `table_nodes` busy processors at each of `gears_ghz` (Table III: xRAGE at 1.2, 1.5, 1.8, 2.1, \
                  2.4, 2.7 and 3.0 GHz); the tables of several classes of jobs follow each other.",
        },
        Param {
            name: "table_time_s",
            ty: WATTS,
            unit: "s",
            default: Default::Reals(&[1525.61, 1239.06, 1007.50, 867.55, 772.18, 706.77, 640.97]),
            doc: "Run time at each of `gears_ghz` (Table III); only its ratio to the time at the top gear matters. The \
                  tables of several classes of jobs follow each other.",
        },
        Param {
            name: "table_nodes",
            ty: Type::Int { min: 1, max: 1 << 30 },
            unit: "procs",
            default: Default::Int(150),
            doc: "Processors that drew `table_power_w`.",
        },
        Param {
            name: "table_power",
            ty: Type::OneOf(&["measured", "proportional"]),
            unit: "",
            default: Default::Text("measured"),
            doc: "Power below the top gear: measured, or f/F of that at the top gear (eq. 2).",
        },
        Param {
            name: "table_time",
            ty: Type::OneOf(&["measured", "proportional", "beta"]),
            unit: "",
            default: Default::Text("measured"),
            doc: "Run time below the top gear: measured, F/f times that at the top gear (eq. 3), or by the platform's \
                  `beta` or `class_betas`.",
        },
        Param {
            name: "idle_fraction",
            ty: Type::Real { min: 0.0, max: 1.0, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Real(0.3),
            doc: "Power of an idle processor over that of a busy one at the top gear (the greatest of all classes); not \
                  published.",
        },
    ],
    ..Component::BATCH
};

/// The model for gears of these frequencies, for a choice without [`problems`].
pub(crate) fn model(choice: &Choice, ghz: &[f64]) -> Model {
    let top = ghz.len() - 1;
    let nodes = choice.int("table_nodes") as f64;
    let measured = choice.text("table_power") == "measured";
    let watts = |table: &[f64]| -> Vec<f64> {
        let power = |g: usize| if measured { table[g] } else { table[top] * (ghz[g] / ghz[top]) };
        (0..ghz.len()).map(|g| power(g) / nodes).collect()
    };
    let busy_w: Vec<Vec<f64>> = choice.reals("table_power_w").chunks(ghz.len()).map(watts).collect();
    let measured = |table: &[f64]| table.iter().map(|time_s| time_s / table[top]).collect();
    let time_factors = match choice.text("table_time") {
        "measured" => choice.reals("table_time_s").chunks(ghz.len()).map(measured).collect(),
        "proportional" => vec![ghz.iter().map(|ghz_of| ghz[top] / ghz_of).collect()],
        _ => Vec::new(),
    };
    let greatest_w = busy_w.iter().map(|table| table[top]).fold(0.0, f64::max);
    Model { busy_w, time_factors, idle_w: choice.real("idle_fraction") * greatest_w }
}

/// Problems of the tables with a number of gears, in sentences that name the parameters. `betas`: number of classes in
/// the platform's `class_betas`.
pub(crate) fn problems(choice: &Choice, gears: usize, betas: Option<usize>) -> Vec<String> {
    let power = Table { name: "table_power_w", values: choice.reals("table_power_w"), ascends: true };
    let time = Table { name: "table_time_s", values: choice.reals("table_time_s"), ascends: false };
    // Only measured run times use their table.
    let timed = choice.text("table_time") == "measured";
    let tables = [power, time];
    table_problems(if timed { &tables } else { &tables[..1] }, gears, betas)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::spec::Value;

    const GHZ: [f64; 7] = [1.2, 1.5, 1.8, 2.1, 2.4, 2.7, 3.0];

    fn choice(set: &[(&str, Value)]) -> Choice {
        let mut choice = Choice::new(&COMPONENT);
        for (name, value) in set {
            choice.set(name, value.clone()).unwrap();
        }
        choice
    }

    #[test]
    fn the_default_is_table_iii() {
        let choice = choice(&[]);
        assert!(problems(&choice, 7, None).is_empty());
        let model = model(&choice, &GHZ);
        // The paper's normalised columns, rounded to two digits.
        let time = [2.38, 1.93, 1.57, 1.35, 1.20, 1.10, 1.00];
        let power = [0.49, 0.54, 0.60, 0.70, 0.75, 0.89, 1.00];
        for g in 0..7 {
            assert!((model.time_factor(0, g).unwrap() - time[g]).abs() < 0.0051);
            assert!((model.busy_w(0, g) * 150.0 / 49890.20 - power[g]).abs() < 0.0051);
        }
        assert!((model.idle_w - 0.3 * 49890.20 / 150.0).abs() < 1e-9);
        assert_eq!(model.job_classes(), 1);
    }

    #[test]
    fn proportional_power_and_time_have_the_published_errors() {
        let measured = model(&choice(&[]), &GHZ);
        let text = |name| (name, Value::Text("proportional".to_owned()));
        let model = model(&choice(&[text("table_power"), text("table_time")]), &GHZ);
        let error = |of: &dyn Fn(&Model, usize) -> f64| {
            (0..7).map(|g| (of(&model, g) / of(&measured, g) - 1.0).abs()).sum::<f64>() / 7.0
        };
        // Section IV.B: 5.59% and 5.37% "relative to Figure 2"; how the average is taken is not said.
        let (power, time) = (error(&|m, g| m.busy_w(0, g)), error(&|m, g| m.time_factor(0, g).unwrap()));
        assert!((0.03..0.08).contains(&power) && (0.03..0.08).contains(&time), "{power} {time}");
        assert_eq!(model.time_factor(0, 0), Some(3.0 / 1.2));
    }

    #[test]
    fn classes_have_tables_of_their_own() {
        let two = choice(&[
            ("table_power_w", Value::Reals(vec![10.0, 20.0, 30.0, 40.0])),
            ("table_time_s", Value::Reals(vec![3.0, 1.0])),
            ("table_nodes", Value::Int(10)),
            ("idle_fraction", Value::Real(0.5)),
        ]);
        assert!(problems(&two, 2, None).is_empty());
        let model = model(&two, &[1.0, 2.0]);
        assert_eq!((model.job_classes(), model.busy_w(1, 0), model.idle_w), (2, 3.0, 2.0));
        assert_eq!((model.time_factor(0, 0), model.time_factor(1, 0)), (Some(3.0), Some(3.0)));
    }

    #[test]
    fn the_problem_names_the_wrong_table() {
        let wrong = |set: &[(&str, Value)], gears, betas| problems(&choice(set), gears, betas).join("; ");
        assert!(wrong(&[], 6, None).contains("`table_power_w` has 7 values for 6 gears"));
        assert!(wrong(&[("table_power_w", Value::Reals(vec![2.0, 1.0]))], 2, None).contains("must not descend"));
        assert!(
            wrong(&[("table_time_s", Value::Reals(vec![1.0; 14]))], 7, Some(3)).contains("give one for each, or one")
        );
    }
}
