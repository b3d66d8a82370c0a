//! The power model of Etinski et al. 2010: dynamic power A*f*V^2 and static power alpha*V.
use super::Model;
use crate::spec::{Choice, Component, Default, Param, Role, Type};

/// Description of the model.
pub const COMPONENT: Component = Component {
    role: Role::Power,
    name: "etinski",
    version: 1,
    source: "Etinski et al. 2010, eqs. 3 and 4",
    doc: "Busy power by gear: A*f*V^2 + alpha*V. Idle power: the same at the lowest gear, with a smaller activity A.",
    params: &[
        Param {
            name: "power_top_w",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: false, unlimited: false },
            unit: "W",
            default: Default::Real(1.0),
            doc: "Watts of a busy processor at the top gear; 1 gives energy in processor-seconds at the top gear.",
        },
        Param {
            name: "static_share",
            ty: Type::Real { min: 0.0, max: 0.999, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Real(0.25),
            doc: "Static share of a busy processor's power at the top gear.",
        },
        Param {
            name: "activity_ratio",
            ty: Type::Real { min: 1.0, max: f64::MAX, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Real(2.5),
            doc: "Activity factor of a busy processor over that of an idle one.",
        },
    ],
    ..Component::BATCH
};

/// Evaluates `P(g) = A*f*V^2 + alpha*V` (Etinski eqs. 3 and 4) for gears of equal count and at least one, with A = 1 and
/// alpha so that the static share at the top gear is `static_share`; then scales to `power_top_w` at the top. An idle
/// processor is at the lowest gear, with the activity divided by `activity_ratio`.
pub(crate) fn model(choice: &Choice, ghz: &[f64], volts: &[f64]) -> Model {
    let share = choice.real("static_share");
    let top = ghz.len() - 1;
    let alpha = share / (1.0 - share) * ghz[top] * volts[top];
    let power = |activity: f64, g: usize| activity * ghz[g] * volts[g] * volts[g] + alpha * volts[g];
    let scale = choice.real("power_top_w") / power(1.0, top);
    let mut busy_w: Vec<f64> = (0..ghz.len()).map(|g| power(1.0, g) * scale).collect();
    // Exact by definition; the quotient may have a rounding error.
    busy_w[top] = choice.real("power_top_w");
    let idle_w = power(1.0 / choice.real("activity_ratio"), 0) * scale;
    Model { busy_w: vec![busy_w], time_factors: Vec::new(), idle_w }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_give_the_published_shares() {
        let ghz = [0.8, 1.1, 1.4, 1.7, 2.0, 2.3];
        let volts = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5];
        let model = model(&Choice::new(&COMPONENT), &ghz, &volts);
        assert_eq!(model.busy_w(0, 5), 1.0);
        // f V^2 + 1.15 V over 6.9, and an idle processor at 21.3% of the top power.
        for g in 0..6 {
            assert!((model.busy_w(0, g) - (ghz[g] * volts[g] * volts[g] + 1.15 * volts[g]) / 6.9).abs() < 1e-12);
        }
        assert!((model.idle_w - (0.8 / 2.5 + 1.15) / 6.9).abs() < 1e-12);
    }

    #[test]
    fn watts_scale_with_the_top_power() {
        let mut choice = Choice::new(&COMPONENT);
        choice.set("power_top_w", crate::spec::Value::Real(95.0)).unwrap();
        let scaled = model(&choice, &[1.0, 2.0], &[1.0, 1.2]);
        let unit = model(&Choice::new(&COMPONENT), &[1.0, 2.0], &[1.0, 1.2]);
        assert_eq!(scaled.busy_w(0, 1), 95.0);
        assert!((scaled.idle_w - 95.0 * unit.idle_w).abs() < 1e-12);
    }
}
