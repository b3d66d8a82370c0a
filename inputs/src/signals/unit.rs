//! Units of values.

use powersweep_experiments::signals::{Quantity, Word as _, words};

use crate::error::Problem;

/// Grams of a pound.
const POUND_G: f64 = 453.592_37;

/// How values of a file are converted to the unit of their quantity: g/kWh, currency/kWh, W, degrees Celsius.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unit {
    /// The unit as it was written.
    pub text: String,
    /// Currency of a price, where the unit says it: three capital letters.
    pub currency: Option<String>,
    /// Whether a number before the unit states a factor.
    pub has_factor: bool,
    // Value in the unit of the quantity = (value * scale - zero) * factor / divisor, with the decimal point moved by `places`.
    scale: f64,
    zero: f64,
    factor: f64,
    divisor: f64,
    places: i32,
}

impl Unit {
    /// The unit of this text, such as `EUR/MWh`, or `0.087 EUR/MWh` for values of another currency; `None` if it is no unit of
    /// the quantity.
    pub(crate) fn parse(quantity: Quantity, text: &str) -> Option<Unit> {
        let text = text.trim();
        if let Some((factor, unit)) = text.split_once(' ')
            && let Ok(scale) = factor.parse::<f64>()
        {
            let unit =
                Unit::parse(quantity, unit).filter(|unit| !unit.has_factor && scale.is_finite() && scale > 0.0)?;
            return Some(Unit { text: text.to_owned(), has_factor: true, scale, ..unit });
        }
        let unit = |zero, factor, divisor, places| Unit {
            text: text.to_owned(),
            currency: None,
            has_factor: false,
            scale: 1.0,
            zero,
            factor,
            divisor,
            places,
        };
        let moved = |places| unit(0.0, 1.0, 1.0, places);
        let lower = text.to_lowercase().replace('₂', "2").replace("_per_", "/");
        match quantity {
            Quantity::Carbon => {
                let (mass, places) = per_energy(&lower)?;
                let (factor, of_mass) = mass_g(&mass)?;
                Some(unit(0.0, factor, 1.0, of_mass + places))
            }
            Quantity::Price => {
                let (currency, places) = per_energy(&lower)?;
                let (of_money, currency) = money(&currency)?;
                Some(Unit { currency, ..moved(of_money + places) })
            }
            // Nobody caps a machine in milliwatts, but an error of a factor of 10^9 should not pass.
            Quantity::Cap if text == "mW" => None,
            Quantity::Cap => {
                let places = match lower.as_str() {
                    "w" => 0,
                    "kw" => 3,
                    "mw" => 6,
                    "gw" => 9,
                    _ => return None,
                };
                Some(moved(places))
            }
            Quantity::CapShare => match lower.as_str() {
                "1" | "share" => Some(moved(0)),
                "%" | "percent" => Some(moved(-2)),
                _ => None,
            },
            Quantity::Temperature => match lower.trim_start_matches(['°', ' ']).trim_start_matches("deg") {
                "c" | "celsius" => Some(moved(0)),
                "f" | "fahrenheit" => Some(unit(32.0, 1.0, 1.8, 0)),
                "k" | "kelvin" => Some(unit(273.15, 1.0, 1.0, 0)),
                _ => None,
            },
        }
    }

    /// The unit of the setting `unit`.
    pub(crate) fn of_setting(quantity: Quantity, text: &str) -> Result<Unit, Problem> {
        Unit::parse(quantity, text).ok_or_else(|| {
            let of = if quantity == Quantity::Carbon { "carbon intensity" } else { quantity.word() };
            let reason = format!("{text:?} is no unit of a {of}, such as {}", Unit::examples(quantity));
            Problem::setting("unit", reason)
        })
    }

    /// The unit in the name of a column: in brackets, as a word with `/` or `_per_`, or as the last word after `_`.
    pub(crate) fn in_name(quantity: Quantity, name: &str) -> Option<Unit> {
        let brackets = name.split(['(', '[']).skip(1).filter_map(|part| part.split([')', ']']).next());
        let words = name.split([' ', '(', ')', '[', ']', ',']).filter(|word| word.contains('/'));
        let per = name.to_lowercase().replace("_per_", "/");
        let per = per.split(['_', ' ']).find(|word| word.contains('/')).map(str::to_owned);
        let last = name.rsplit_once('_').map(|(_, last)| last.to_uppercase());
        // `cap_1` is the first of several caps, not a share.
        let last = last.filter(|last| *last != "1");
        let last = last.filter(|_| matches!(quantity, Quantity::Cap | Quantity::CapShare | Quantity::Temperature));
        brackets.chain(words).chain(per.as_deref()).chain(last.as_deref()).find_map(|text| Unit::parse(quantity, text))
    }

    /// A value in the unit of the quantity.
    pub(crate) fn convert(&self, value: f64) -> f64 {
        with_point_moved((value * self.scale - self.zero) * self.factor / self.divisor, self.places)
    }

    /// Whether the name of a column states another unit or another currency, and no factor says that this is meant.
    pub(crate) fn contradicts(&self, quantity: Quantity, name: &str) -> bool {
        let is_other = Unit::in_name(quantity, name).is_some_and(|stated| self.differs(&stated));
        is_other || !self.has_factor && quantity == Quantity::Price && self.is_not_in(currency_in_name(name))
    }

    /// Whether a unit that the file states converts values otherwise or is of another currency, and no factor says that this is
    /// meant.
    pub(crate) fn differs(&self, stated: &Unit) -> bool {
        let conversion = |unit: &Unit| (unit.zero, unit.factor, unit.divisor, unit.places);
        !self.has_factor && (conversion(stated) != conversion(self) || self.is_not_in(stated.currency.as_deref()))
    }

    fn is_not_in(&self, currency: Option<&str>) -> bool {
        self.currency.as_deref().zip(currency).is_some_and(|(ours, other)| ours != other)
    }

    /// Units of this quantity, for messages.
    pub(crate) fn examples(quantity: Quantity) -> &'static str {
        match quantity {
            Quantity::Carbon => "\"g/kWh\", \"kg/MWh\", or \"lb/MWh\" (WattTime's)",
            Quantity::Price => "\"EUR/MWh\", \"USD/kWh\" or \"ct/kWh\"",
            Quantity::Cap => "\"W\", \"kW\" or \"MW\"",
            Quantity::CapShare => "\"1\" or \"%\"",
            Quantity::Temperature => "\"C\", \"F\" or \"K\"",
        }
    }
}

/// A value with its decimal point moved to the right. The digits stay: 214.07 by -3 is the number nearest to 0.21407, which a
/// quotient of the rounded 214.07 may miss.
fn with_point_moved(value: f64, places: i32) -> f64 {
    // The shortest digits that stand for the value are those of the file, up to 15 of them.
    if places == 0 { value } else { format!("{value}e{places}").parse().unwrap_or(value) }
}

/// The mass or money above the bar, and the places by which the energy below the bar moves the decimal point.
fn per_energy(lower: &str) -> Option<(String, i32)> {
    let plain: String = lower.chars().filter(|c| !c.is_whitespace()).collect();
    let (above, below) = plain.split_once('/')?;
    let places = match below.strip_suffix('e').unwrap_or(below) {
        "kwh" => 0,
        "mwh" => -3,
        "gwh" => -6,
        _ => return None,
    };
    Some((above.to_owned(), places))
}

/// The factor and the places of the decimal point from a mass to grams.
fn mass_g(text: &str) -> Option<(f64, i32)> {
    let gases = ["co2eq", "co2-eq", "co2e", "co2"];
    match gases.into_iter().find_map(|gas| text.strip_suffix(gas)).unwrap_or(text).trim_end_matches('_') {
        "g" => Some((1.0, 0)),
        "kg" => Some((1.0, 3)),
        "t" => Some((1.0, 6)),
        "lb" | "lbs" => Some((POUND_G, 0)),
        _ => None,
    }
}

/// The places of the decimal point to the currency's unit, and the currency where it is stated.
fn money(text: &str) -> Option<(i32, Option<String>)> {
    match text {
        // Several countries have dollars, crowns and yen or yuan of their own.
        "$" | "kr" | "¥" => Some((0, None)),
        "ct" | "cent" | "cents" | "c" | "¢" | "öre" | "øre" | "ore" => Some((-2, None)),
        "p" | "pence" => Some((-2, Some("GBP".to_owned()))),
        "zł" => Some((0, Some("PLN".to_owned()))),
        "€" => Some((0, Some("EUR".to_owned()))),
        "£" => Some((0, Some("GBP".to_owned()))),
        _ if text.len() == 3 && text.bytes().all(|b| b.is_ascii_lowercase()) && mass_g(text).is_none() => {
            Some((0, Some(text.to_uppercase())))
        }
        _ => None,
    }
}

/// Greatest carbon intensity (g/kWh): old coal plants emit 1,500, and an error of a factor of 1000 is above it.
const CARBON_MAX: f64 = 10_000.0;
/// Greatest amount of a price (currency/kWh) of currencies whose market limits are below 20/kWh.
const PRICE_MAX: f64 = 100.0;
const PRICED_IN: [&str; 8] = ["EUR", "USD", "GBP", "CHF", "AUD", "CAD", "NZD", "SGD"];
/// Other currencies that names of columns have.
const OTHERS: [&str; 12] = ["DKK", "SEK", "NOK", "PLN", "CZK", "HUF", "RON", "BGN", "JPY", "CNY", "INR", "BRL"];
/// Of other currencies.
const ANY_PRICE_MAX: f64 = 1e6;
/// Greatest cap (W): a hundred of the largest machines.
const CAP_MAX: f64 = 1e10;
/// Least and greatest temperature (degrees Celsius), beyond those measured on Earth.
const TEMPERATURES: std::ops::RangeInclusive<f64> = -100.0..=60.0;

/// The currency that is a word of a column's name, such as `DayAheadPriceDKK`.
fn currency_in_name(name: &str) -> Option<&'static str> {
    let words = words(name);
    PRICED_IN
        .iter()
        .chain(&OTHERS)
        .copied()
        .find(|currency| words.iter().any(|word| word.eq_ignore_ascii_case(currency)))
}

/// Why a converted value is impossible.
pub(crate) fn objection(quantity: Quantity, unit: &Unit, value: f64) -> Option<String> {
    let absurd = |per: &str, max: f64| format!("is {value} {per}, beyond {max}: is the unit {:?} right?", unit.text);
    match quantity {
        _ if !value.is_finite() => Some("is not a finite number".to_owned()),
        Quantity::Carbon if value < 0.0 => Some("is a negative carbon intensity".to_owned()),
        Quantity::Carbon if value > CARBON_MAX => Some(absurd("g/kWh", CARBON_MAX)),
        Quantity::Price => {
            let known = unit.currency.as_deref().is_some_and(|currency| PRICED_IN.contains(&currency));
            let max = if known { PRICE_MAX } else { ANY_PRICE_MAX };
            let amount = unit.currency.as_deref().map_or("per kWh".to_owned(), |currency| format!("{currency}/kWh"));
            (value.abs() > max).then(|| absurd(&amount, max))
        }
        Quantity::Cap if value < 0.0 => Some("is a negative power".to_owned()),
        Quantity::Cap if value > CAP_MAX => Some(absurd("W", CAP_MAX)),
        Quantity::CapShare if !(0.0..=1.0).contains(&value) => {
            Some(format!("is a share of {value}, which is not between 0 and 1: is the unit {:?} right?", unit.text))
        }
        Quantity::Temperature if !TEMPERATURES.contains(&value) => {
            Some(format!("is {value} degrees Celsius, which no air has: is the unit {:?} right?", unit.text))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(quantity: Quantity, unit: &str, value: f64) -> f64 {
        Unit::parse(quantity, unit).unwrap_or_else(|| panic!("{unit} is a unit")).convert(value)
    }

    #[test]
    fn values_are_converted() {
        for unit in ["g/kWh", "gCO₂eq/kWh", "kg/MWh", "kg CO2e/MWh", "t/GWh"] {
            assert_eq!(converted(Quantity::Carbon, unit, 185.8), 185.8, "{unit}");
        }
        assert_eq!(converted(Quantity::Carbon, "lb CO2/MWh", 1000.0), 453.59237);
        assert_eq!(converted(Quantity::Carbon, "t/MWh", 0.4), 400_000.0 / 1000.0);
        assert_eq!(converted(Quantity::Price, "EUR/MWh", -5.17), -0.00517);
        assert_eq!(converted(Quantity::Price, "ct/kWh", 31.5), 0.315);
        assert_eq!(converted(Quantity::Price, "$/MWh", 40.0), 0.04);
        for unit in ["p/kWh", "öre/kWh", "Øre / kWh", "c/kWh", "¢/kWh"] {
            assert_eq!(converted(Quantity::Price, unit, 31.5), 0.315, "{unit}");
        }
        assert_eq!(converted(Quantity::Price, "0.5 EUR/MWh", 40.0), 0.02);
        assert_eq!(converted(Quantity::Temperature, "0.1 C", 215.0), 21.5);
        assert_eq!(converted(Quantity::Cap, "MW", 1.5), 1_500_000.0);
        assert_eq!(converted(Quantity::CapShare, "%", 80.0), 0.8);
        assert_eq!(converted(Quantity::CapShare, "1", 0.8), 0.8);
        assert_eq!(converted(Quantity::Temperature, "°F", 212.0), 100.0);
        assert_eq!(converted(Quantity::Temperature, "K", 273.15), 0.0);
    }

    /// 214.07 is no double, nor is its thousandth: a quotient of rounded numbers is not always the number nearest to 0.21407.
    #[test]
    fn a_value_equals_its_digits_in_the_other_unit() {
        let price = |unit, value| converted(Quantity::Price, unit, value);
        assert_eq!(price("EUR/MWh", 214.07), price("EUR/kWh", 0.21407));
        for hundredths in -50_000..400_000 {
            let per_mwh: f64 = format!("{hundredths}e-2").parse().unwrap();
            let per_kwh: f64 = format!("{hundredths}e-5").parse().unwrap();
            assert_eq!(price("EUR/MWh", per_mwh).to_bits(), per_kwh.to_bits(), "{per_mwh} {per_kwh}");
        }
        for (quantity, unit, value, equal) in [
            (Quantity::Price, "ct/kWh", 31.57, 0.3157),
            (Quantity::Price, "ct/MWh", 21407.0, 0.21407),
            (Quantity::Price, "EUR/GWh", 214_070.1, 0.2140701),
            (Quantity::Carbon, "kg/kWh", 0.29, 290.0),
            (Quantity::Carbon, "t/MWh", 0.57, 570.0),
            (Quantity::Carbon, "g/MWh", 214.07, 0.21407),
            (Quantity::Cap, "kW", 1.13, 1130.0),
            (Quantity::Cap, "MW", 8.2, 8_200_000.0),
            (Quantity::CapShare, "%", 0.57, 0.0057),
        ] {
            assert_eq!(converted(quantity, unit, value), equal, "{value} {unit}");
        }
    }

    #[test]
    fn currencies_are_those_of_the_unit() {
        for (unit, currency) in [
            ("p/kWh", "GBP"),
            ("0.087 EUR/MWh", "EUR"),
            ("EUR/MWh", "EUR"),
            ("eur/kWh", "EUR"),
            ("€/MWh", "EUR"),
            ("£/MWh", "GBP"),
            ("CLP/MWhe", "CLP"),
        ] {
            assert_eq!(Unit::parse(Quantity::Price, unit).unwrap().currency.as_deref(), Some(currency), "{unit}");
        }
        for unit in ["ct/kWh", "$/MWh", "öre/kWh"] {
            assert_eq!(Unit::parse(Quantity::Price, unit).unwrap().currency, None);
        }
    }

    #[test]
    fn a_name_contradicts_a_unit() {
        let is_contradicted =
            |unit, name| Unit::parse(Quantity::Price, unit).unwrap().contradicts(Quantity::Price, name);
        for (unit, name) in [
            ("EUR/MWh", "Price (EUR/MWh)"),
            ("EUR/MWh", "DayAheadPriceEUR"),
            ("EUR/MWh", "Price"),
            ("ct/kWh", "price ct/kWh"),
            ("0.087 EUR/MWh", "Price (SEK/MWh)"),
            ("$/MWh", "LMP (USD/MWh)"),
        ] {
            assert!(!is_contradicted(unit, name), "{unit} {name}");
        }
        for (unit, name) in
            [("EUR/kWh", "Price (EUR/MWh)"), ("SEK/MWh", "Price (EUR/MWh)"), ("EUR/MWh", "DayAheadPriceDKK")]
        {
            assert!(is_contradicted(unit, name), "{unit} {name}");
        }
    }

    #[test]
    fn other_units_are_refused() {
        for (quantity, unit) in [
            (Quantity::Carbon, "EUR/MWh"),
            (Quantity::Carbon, "g"),
            (Quantity::Price, "lbs/MWh"),
            (Quantity::Price, "EUR"),
            (Quantity::Cap, "mW"),
            (Quantity::Cap, "kWh"),
            (Quantity::CapShare, "W"),
            (Quantity::Temperature, "R"),
        ] {
            assert_eq!(Unit::parse(quantity, unit), None, "{unit}");
        }
    }

    #[test]
    fn units_in_names_of_columns() {
        let found = |quantity, name| Unit::in_name(quantity, name).map(|unit| unit.text);
        for (quantity, name, unit) in [
            (Quantity::Carbon, "Carbon Intensity gCO₂eq/kWh (direct)", "gCO₂eq/kWh"),
            (Quantity::Carbon, "carbon_g_per_kwh", "g/kwh"),
            (Quantity::Price, "Price (EUR/MWh)", "EUR/MWh"),
            (Quantity::Price, "Deutschland/Luxemburg [€/MWh]", "€/MWh"),
            (Quantity::Price, "price_usd_per_mwh", "usd/mwh"),
            (Quantity::Cap, "cap_kw", "KW"),
            (Quantity::Cap, "Limit [MW]", "MW"),
            (Quantity::CapShare, "cap_percent", "PERCENT"),
            (Quantity::Temperature, "temperature_2m (°C)", "°C"),
        ] {
            assert_eq!(found(quantity, name).as_deref(), Some(unit), "{name}");
        }
        for name in ["Caiso_North", "intensity.forecast", "Price", "Berlin/Potsdam"] {
            assert_eq!(found(Quantity::Carbon, name), None, "{name}");
            assert_eq!(found(Quantity::Price, name), None, "{name}");
        }
    }
}
