//! The gamma distribution function.

/// Relative accuracy of the series and the continued fraction.
const EPSILON: f64 = 1e-15;
/// Greatest number of steps of both. They need about sqrt(shape) steps near the mean: far fewer for the model's constants.
const STEPS_MAX: usize = 10_000;
/// Replaces 0 in denominators of the continued fraction.
const TINY: f64 = 1e-300;

/// P(X <= x) of a gamma distribution with the given shape and scale (mean shape * scale): the regularised lower
/// incomplete gamma function at x/scale (Abramowitz & Stegun 1964, 6.5.29 below shape + 1, 6.5.31 above).
pub(crate) fn cdf(x: f64, shape: f64, scale: f64) -> f64 {
    let x = x / scale;
    if x <= 0.0 {
        return 0.0;
    }
    let front = libm::exp(shape * libm::log(x) - x - libm::lgamma(shape));
    if x < shape + 1.0 { front * series(x, shape) } else { 1.0 - front * fraction(x, shape) }
}

/// Sum over n of x^n / (shape (shape + 1) ... (shape + n)).
fn series(x: f64, shape: f64) -> f64 {
    let mut term = 1.0 / shape;
    let mut sum = term;
    for n in 1..STEPS_MAX {
        term *= x / (shape + n as f64);
        sum += term;
        if term < sum * EPSILON {
            break;
        }
    }
    sum
}

/// 1/(x + 1 - a - 1(1 - a)/(x + 3 - a - 2(2 - a)/(x + 5 - a - ...))), by Lentz's method (Thompson & Barnett 1986).
fn fraction(x: f64, shape: f64) -> f64 {
    let guard = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut b = x + 1.0 - shape;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / guard(b);
    let mut value = d;
    for n in 1..STEPS_MAX {
        let a = -(n as f64) * (n as f64 - shape);
        b += 2.0;
        d = 1.0 / guard(a * d + b);
        c = guard(b + a / c);
        value *= d * c;
        if (d * c - 1.0).abs() < EPSILON {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::cdf;

    #[test]
    fn agrees_with_closed_forms() {
        for x in [0.01_f64, 0.5, 1.0, 2.0, 3.5, 10.0, 40.0] {
            // Shape 1 is exponential, shape 3 Erlang, shape 1/2 the square of a normal.
            let erlang = 1.0 - (-x).exp() * (1.0 + x + x * x / 2.0);
            let cases = [(1.0, 1.0 - (-x).exp()), (3.0, erlang), (0.5, libm::erf(x.sqrt()))];
            for (shape, expected) in cases {
                let got = cdf(2.0 * x, shape, 2.0);
                assert!((got - expected).abs() < 1e-13, "shape {shape}, x {x}: {got} instead of {expected}");
            }
        }
        assert_eq!(cdf(-1.0, 2.0, 1.0), 0.0);
        assert_eq!(cdf(0.0, 2.0, 1.0), 0.0);
    }

    #[test]
    fn is_continuous_where_the_method_changes() {
        for shape in [0.7, 4.2, 312.0] {
            let at = shape + 1.0;
            let (below, above) = (cdf(at - 1e-12, shape, 1.0), cdf(at, shape, 1.0));
            assert!((above - below).abs() < 1e-11, "shape {shape}: {below} and {above}");
        }
    }
}
