//! Ratios as dots with their intervals, on one scale around no difference.

use maud::{Markup, html};
use powersweep_dataset::Interval;
use powersweep_dataset::words::endless;

/// Half of the width of a drawing (units), and where a dot at its end is.
const MIDDLE: f64 = 60.0;
const END: f64 = 54.0;
/// An interval that reaches farther than this multiple of the greatest difference is cut.
const CUT: f64 = 3.0;

/// A scale for some ratios: the same for all of them, so that they can be compared.
pub(crate) struct Dots {
    /// The difference at the end of the scale.
    most: f64,
}

impl Dots {
    /// The scale of these ratios.
    pub(crate) fn of<'a>(ratios: impl Iterator<Item = &'a Interval> + Clone) -> Dots {
        let greatest = |found: &mut dyn Iterator<Item = f64>| found.filter(|of| of.is_finite()).fold(0.0, f64::max);
        let of_values = greatest(&mut ratios.clone().map(|ratio| (ratio.value - 1.0).abs()));
        let ends = ratios.filter_map(|ratio| ratio.ends);
        let of_ends = greatest(&mut ends.flat_map(|(low, high)| [(low - 1.0).abs(), (high - 1.0).abs()]));
        let most = if of_values > 0.0 { of_ends.clamp(of_values, CUT * of_values) } else { of_ends };
        Dots { most: if most > 0.0 { most } else { 0.01 } }
    }

    /// "±12 %".
    pub(crate) fn reach(&self) -> String {
        format!("±{} %", powersweep_dataset::words::number(self.most * 100.0))
    }

    fn at(&self, ratio: f64) -> f64 {
        MIDDLE + ((ratio - 1.0) / self.most * END).clamp(-MIDDLE, MIDDLE)
    }

    /// The dot of a ratio. Its words are in the table or in the title of the cell.
    pub(crate) fn dot(&self, ratio: &Interval) -> Markup {
        html! {
            svg.dots viewBox="0 0 120 12" aria-hidden="true" {
                path.zero d="M60 0v12" {}
                @if let Some((low, high)) = ratio.ends { path.interval d=(format!("M{:.1} 6H{:.1}", self.at(low), self.at(high))) {} }
                circle.dot cx=(format!("{:.1}", self.at(ratio.value))) cy="6" r="3.4" {}
            }
        }
    }
}

/// "+2.0 %".
pub(crate) fn percent(ratio: f64) -> String {
    if ratio.is_finite() { format!("{:+.1} %", (ratio - 1.0) * 100.0) } else { endless(ratio).to_owned() }
}

/// "+1.2 % to +2.8 %"; empty without an interval.
pub(crate) fn ends(ratio: &Interval) -> String {
    ratio.ends.map_or_else(String::new, |(low, high)| format!("{} to {}", percent(low), percent(high)))
}

/// A ratio with its interval, for a title.
pub(crate) fn spoken(ratio: &Interval) -> String {
    let value = percent(ratio.value);
    if ratio.ends.is_none() { value } else { format!("{value}, 95% interval {}", ends(ratio)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_is_in_its_interval_and_every_interval_in_the_drawing() {
        let ratio = |value, ends| Interval { value, ends };
        let ratios = [ratio(1.1, Some((1.05, 1.2))), ratio(0.9, None), ratio(1.0, Some((0.0, f64::INFINITY)))];
        let dots = Dots::of(ratios.iter());
        assert_eq!(dots.reach(), "±30 %", "three times the greatest difference");
        let drawn = dots.dot(&ratios[0]).into_string();
        assert!(drawn.contains("M69.0 6H96.0") && drawn.contains("cx=\"78.0\""), "{drawn}");
        assert!(!dots.dot(&ratios[1]).into_string().contains("interval"));
        assert!(dots.dot(&ratios[2]).into_string().contains("M0.0 6H120.0"));
        assert_eq!(Dots::of([ratio(1.0, None)].iter()).reach(), "±1 %");
        assert_eq!(spoken(&ratios[0]), "+10.0 %, 95% interval +5.0 % to +20.0 %");
        assert_eq!(ends(&ratios[2]), "-100.0 % to ∞");
    }
}
