//! The loss of a prediction, and the weight of a job in it.
use crate::spec::Choice;

/// The curve of the loss over the error on one side.
#[derive(Debug, Clone, Copy)]
enum Curve {
    Abs,
    Square,
    Exp,
}

/// The curve on one side with its factor.
#[derive(Debug, Clone, Copy)]
struct Side {
    curve: Curve,
    factor: f64,
}

/// Weight of a job in the loss.
#[derive(Debug, Clone, Copy)]
enum Weight {
    One,
    LongNarrow,
    ShortWide,
    SmallArea,
    LargeArea,
}

/// The loss.
#[derive(Debug, Clone)]
pub(super) struct Loss {
    over: Side,
    under: Side,
    threshold_s: f64,
    weight: Weight,
}

/// The slope of the loss over the prediction: the slope over the weight of feature x is `before * x * after * weight`, with the
/// products from left to right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slope {
    pub(super) before: f64,
    pub(super) after: f64,
    pub(super) weight: f64,
}

impl Side {
    fn of(choice: &Choice, curve: &str, factor: &str) -> Side {
        let curve = match choice.text(curve) {
            "abs" => Curve::Abs,
            "square" => Curve::Square,
            _ => Curve::Exp,
        };
        Side { curve, factor: choice.real(factor) }
    }

    /// The slope at an error, without sign (s).
    fn slope(self, error_s: f64, weight: f64) -> Slope {
        let (before, after) = match self.curve {
            Curve::Abs => (self.factor, 1.0),
            Curve::Square => (self.factor * 2.0, error_s),
            Curve::Exp => (self.factor, pxfm::f_exp(self.factor * error_s)),
        };
        Slope { before, after, weight }
    }
}

impl Loss {
    pub(super) fn of(choice: &Choice) -> Loss {
        Loss {
            over: Side::of(choice, "loss_over", "loss_over_factor"),
            under: Side::of(choice, "loss_under", "loss_under_factor"),
            threshold_s: choice.real("loss_threshold_s"),
            weight: match choice.text("loss_weight") {
                "1" => Weight::One,
                "5+log(r/m)" => Weight::LongNarrow,
                "5+log(m/r)" => Weight::ShortWide,
                "11+log(1/(r*m))" => Weight::SmallArea,
                _ => Weight::LargeArea,
            },
        }
    }

    /// The weight of a job with `procs` procs and a run time of `run_s`.
    pub(super) fn weight(&self, procs: f64, run_s: f64) -> f64 {
        let run_s = run_s.max(1.0);
        match self.weight {
            Weight::One => 1.0,
            Weight::LongNarrow => 5.0 + pxfm::f_log(run_s / procs),
            Weight::ShortWide => 5.0 + pxfm::f_log(procs / run_s),
            Weight::SmallArea => 11.0 + pxfm::f_log(1.0 / (run_s * procs)),
            Weight::LargeArea => 1.0 + pxfm::f_log(procs * run_s),
        }
    }

    /// The slope for a predicted and a true run time, of a job with a weight; `None` if it is 0. Differences are rounded in the
    /// order of the study's program.
    pub(super) fn slope(&self, predicted_s: f64, run_s: f64, weight: f64) -> Option<Slope> {
        let error_s = predicted_s - run_s;
        if error_s > self.threshold_s {
            Some(self.over.slope(error_s - self.threshold_s, weight))
        } else if error_s < self.threshold_s {
            Some(self.under.slope(self.threshold_s - predicted_s + run_s, -weight))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    /// Correctly rounded values, from 200 bits. The functions of most libraries are one last bit away in each of them.
    #[test]
    fn functions_round_correctly() {
        let angle = |second: f64| std::f64::consts::TAU * second / 86_400.0;
        assert_eq!([pxfm::f_cos(angle(1631.0)), pxfm::f_cos(angle(1771.0))], [0.9929741160604417, 0.9917179282269017]);
        assert_eq!([pxfm::f_log(3.0), pxfm::f_log(14.0)], [1.0986122886681098, 2.6390573296152584]);
        assert_eq!([pxfm::f_exp(0.019), pxfm::f_exp(0.0221)], [1.0191816486174081, 1.0223460139602747]);
    }
}
