//! Quantiles of Student's t distribution.

/// The t with P(|T| <= t) = `confidence` for `dof` degrees of freedom, to 12 digits.
///
/// `confidence` lies in [0, 1), `dof` is 1 or more. By bisection on the finite sums for whole degrees of freedom
/// (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4).
pub fn t_quantile(confidence: f64, dof: u32) -> f64 {
    assert!((0.0..1.0).contains(&confidence) && dof > 0, "t({confidence}; {dof}) is not defined");
    let (mut low, mut high) = (0.0, 1.0);
    while within(high, dof) < confidence && high < 1e12 {
        high *= 2.0;
    }
    while high - low > 1e-13 * high {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if within(middle, dof) < confidence { low = middle } else { high = middle }
    }
    high
}

/// P(|T| <= t).
fn within(t: f64, dof: u32) -> f64 {
    let n = f64::from(dof);
    let (sin, cos) = (t / libm::sqrt(n + t * t), libm::sqrt(n) / libm::sqrt(n + t * t));
    let odd = dof % 2 == 1;
    let mut sum = 0.0;
    let mut term = if odd { cos } else { 1.0 };
    for j in 0..dof / 2 {
        sum += term;
        let k = 2.0 * f64::from(j) + if odd { 2.0 } else { 1.0 };
        term *= cos * cos * (k / (k + 1.0));
    }
    if odd { (libm::atan(t / libm::sqrt(n)) + sin * sum) * std::f64::consts::FRAC_2_PI } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::t_quantile;

    #[test]
    fn quantiles_equal_printed_tables() {
        // Two-sided quantiles with the digits of printed tables.
        for (confidence, dof, expected) in [
            (0.5, 1, 1.0),
            (0.95, 1, 12.706_204_736),
            (0.99, 1, 63.656_741),
            (0.95, 2, 4.302_652_730),
            (0.99, 3, 5.840_909),
            (0.9, 4, 2.131_846_79),
            (0.95, 29, 2.045_229_64),
            (0.99, 30, 2.749_995_65),
            (0.99, 31, 2.744_041_9),
            (0.95, 31, 2.039_513_4),
            (0.95, 1000, 1.962_339_08),
        ] {
            let t = t_quantile(confidence, dof);
            assert!((t - expected).abs() < 2e-7 * expected, "t({confidence}; {dof}) = {t}, not {expected}");
        }
        assert!(t_quantile(0.0, 5) < 1e-12);
    }
}
