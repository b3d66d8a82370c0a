//! Scales of a plot: from values to whole units of the drawing, with round values as ticks.

use powersweep_dataset::words::number;

/// Beyond this ratio of the greatest to the smallest value, a scale is logarithmic.
const RATIO_LINEAR_MAX: f64 = 100.0;
/// Ticks of a linear scale, at most; some more on a logarithmic one.
const TICKS: f64 = 6.0;

/// A scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    least: f64,
    most: f64,
    pub(crate) is_log: bool,
    /// Units of the drawing at the two ends.
    from: f64,
    to: f64,
}

impl Scale {
    /// A scale of these values, which are finite.
    pub(crate) fn new((least, most): (f64, f64), from: f64, to: f64) -> Scale {
        let is_log = least > 0.0 && most / least > RATIO_LINEAR_MAX;
        // A single value is in the middle.
        let margin = if least == most { least.abs().max(1.0) / 2.0 } else { (most - least) / 50.0 };
        let (least, most) = if is_log { (least / 1.1, most * 1.1) } else { (least - margin, most + margin) };
        Scale { least, most, is_log, from, to }
    }

    /// A linear scale from 0 to the greatest of some amounts.
    pub(crate) fn of_amounts(greatest: f64, from: f64, to: f64) -> Scale {
        let most = if greatest > 0.0 { greatest * 1.05 } else { 1.0 };
        Scale { least: 0.0, most, is_log: false, from, to }
    }

    /// The place of a value.
    pub(crate) fn at(&self, value: f64) -> i32 {
        let share = match self.is_log {
            true => (value / self.least).ln() / (self.most / self.least).ln(),
            false => (value - self.least) / (self.most - self.least),
        };
        (self.from + share.clamp(0.0, 1.0) * (self.to - self.from)).round() as i32
    }

    /// Round values within the scale.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        let found = if self.is_log { self.powers() } else { self.steps() };
        found.into_iter().filter(|value| (self.least..=self.most).contains(value)).collect()
    }

    /// The place and the text of each tick, all in one notation.
    pub(crate) fn labels(&self) -> Vec<(i32, String)> {
        let ticks = self.ticks();
        let is_long = |tick: &f64| tick.abs() >= 1e6 || *tick != 0.0 && tick.abs() < 1e-3;
        let in_powers = ticks.iter().any(is_long);
        let text = |tick: f64| if in_powers && tick != 0.0 { power(tick) } else { number(tick) };
        ticks.into_iter().map(|tick| (self.at(tick), text(tick))).collect()
    }

    fn steps(&self) -> Vec<f64> {
        let rough = (self.most - self.least) / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.least / step).ceil();
        // The product of whole numbers and a step has fewer rounding errors than a sum of steps.
        (0..=TICKS as u32 * 2).map(|n| (first + f64::from(n)) * step).collect()
    }

    fn powers(&self) -> Vec<f64> {
        let (first, last) = (self.least.log10().floor() as i32, self.most.log10().ceil() as i32);
        let decades = (self.most / self.least).log10();
        // Every n-th power of ten, so that the labels do not meet.
        let every = (decades / TICKS).ceil().max(1.0) as usize;
        let factors: &[f64] = if decades < 3.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let powers = (first..=last).step_by(every).map(|power| 10f64.powi(power));
        powers.flat_map(|power| factors.iter().map(move |factor| factor * power)).collect()
    }
}

/// "1.25e7".
fn power(value: f64) -> String {
    let text = format!("{value:.3e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_a_scale_have_one_notation() {
        let labels = |span| Scale::new(span, 0.0, 100.0).labels().into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(labels((0.0, 1.25e7)), ["0", "5e6", "1e7"]);
        assert_eq!(labels((0.0, 0.8)), ["0", "0.2", "0.4", "0.6", "0.8"]);
    }

    #[test]
    fn ticks_are_round_and_within_the_scale() {
        assert_eq!(Scale::new((0.0, 10.0), 0.0, 100.0).ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(
            Scale::new((1.0, 900.0), 0.0, 100.0).ticks(),
            [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]
        );
        let wide = Scale::new((3.0, 3e12), 0.0, 100.0).ticks();
        assert!((4..=7).contains(&wide.len()) && wide.iter().all(|tick| tick.log10().fract() == 0.0), "{wide:?}");
        for span in [(5.0, 5.0), (0.0, 0.0), (-3e9, 2e-9), (1e300, 1.1e300), (-1e-300, 1e-300)] {
            let ticks = Scale::new(span, 0.0, 100.0).ticks();
            assert!((1..=16).contains(&ticks.len()), "{span:?}: {ticks:?}");
        }
    }

    #[test]
    fn values_are_within_the_drawing() {
        let down = Scale::new((1.0, 2.0), 100.0, 0.0);
        assert!(down.at(1.0) > down.at(2.0) && down.at(2.0) >= 0 && down.at(1.0) <= 100);
        assert_eq!(Scale::new((4.0, 4.0), 0.0, 100.0).at(4.0), 50);
        assert_eq!(Scale::new((1.0, 1e4), 0.0, 100.0).at(100.0), 50);
    }
}
