//! Exact decimal numbers: a range with steps of 0.1 has exactly the decimal values that the manifest states.

/// `mantissa * 10^exponent`, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) mantissa: i128,
    pub(crate) exponent: i32,
}

/// Powers of ten that a `f64` holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

impl Decimal {
    /// Reads a TOML number (`12`, `-1_000.5`, `1e-3`). `None` if it is not finite or has too many digits for exact
    /// arithmetic (more than 30, or an exponent beyond 400).
    pub(crate) fn parse(text: &str) -> Option<Decimal> {
        let text: String = text.chars().filter(|c| *c != '_').collect();
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (text.as_str(), 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let fraction = fraction.trim_end_matches('0');
        if whole.len() + fraction.len() > 32 || exponent.unsigned_abs() > 400 {
            return None;
        }
        let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
        Some(Decimal { mantissa, exponent: exponent - i32::try_from(fraction.len()).ok()? })
    }

    /// The mantissa at a smaller or equal exponent; `None` on overflow.
    pub(crate) fn mantissa_at(self, exponent: i32) -> Option<i128> {
        if self.mantissa == 0 {
            return Some(0);
        }
        let shift = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        self.mantissa.checked_mul(10_i128.checked_pow(shift)?)
    }

    /// The nearest `f64`: the one that the decimal literal denotes.
    pub(crate) fn to_f64(self) -> f64 {
        let shift = self.exponent.unsigned_abs() as usize;
        if self.mantissa.unsigned_abs() <= 1 << 53 && shift < EXACT_POWERS.len() {
            // Both operands are exact, so the result is rounded only once.
            let mantissa = self.mantissa as f64;
            return if self.exponent < 0 { mantissa / EXACT_POWERS[shift] } else { mantissa * EXACT_POWERS[shift] };
        }
        format!("{}e{}", self.mantissa, self.exponent).parse().expect("an integer and an exponent form a number")
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_literals_exactly() {
        let cases = [("1", 1, 0), ("1.0", 1, 0), ("-1_000.50", -10005, -1), ("1e-3", 1, -3), ("2.5E+2", 25, 1)];
        for (text, mantissa, exponent) in cases {
            assert_eq!(Decimal::parse(text), Some(Decimal { mantissa, exponent }), "{text}");
        }
        for text in ["inf", "nan", "", "1e500", "123456789012345678901234567890123456"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_multiple_of_a_thousandth_equals_its_literal() {
        for mantissa in 0..30_000 {
            let literal: f64 = format!("{}.{:03}", mantissa / 1000, mantissa % 1000).parse().expect("a number");
            assert_eq!(Decimal { mantissa, exponent: -3 }.to_f64().to_bits(), literal.to_bits());
        }
    }

    #[test]
    fn large_mantissas_round_once() {
        let decimal = Decimal::parse("0.1234567890123456789012345").expect("few enough digits");
        assert_eq!(decimal.to_f64(), 0.123_456_789_012_345_68);
    }
}
