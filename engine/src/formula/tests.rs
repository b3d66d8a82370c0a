use proptest::prelude::*;

use super::*;
use crate::rng::{Philox, Purpose};

const VARIABLES: &[Variable] = &[
    Variable { name: "x", changes: false },
    Variable { name: "y", changes: false },
    Variable { name: "now_s", changes: true },
];

/// Values of the variables.
const VALUES: [f64; 3] = [3.5, -2.0, 1e6];

fn formula(text: &str) -> Formula {
    Formula::parse(text, VARIABLES).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn value(text: &str) -> f64 {
    formula(text).value(|at| VALUES[usize::from(at)])
}

fn error(text: &str) -> String {
    Formula::parse(text, VARIABLES).expect_err(text).to_string()
}

#[test]
fn operators_bind_as_in_mathematics() {
    // What is written, and the same with all parentheses.
    for (text, whole) in [
        ("1 + 2 * 3", "1 + (2 * 3)"),
        ("1 - 2 - 3", "(1 - 2) - 3"),
        ("1 - 2 + 3", "(1 - 2) + 3"),
        ("8 / 4 / 2", "(8 / 4) / 2"),
        ("8 / 4 * 2", "(8 / 4) * 2"),
        ("2 * 3 ^ x", "2 * (3 ^ x)"),
        ("2 ^ 3 ^ x", "2 ^ (3 ^ x)"),
        ("-x ^ 2", "-(x ^ 2)"),
        ("2 ^ -x", "2 ^ (-x)"),
        ("2 ^ -x ^ 2", "2 ^ (-(x ^ 2))"),
        ("-x * y", "(-x) * y"),
        ("x * -y", "x * (-y)"),
        ("-x + y", "(-x) + y"),
        ("x - -y", "x - (-y)"),
        ("--x", "-(-x)"),
        ("x < y + 1", "x < (y + 1)"),
        ("x * 2 >= y - 1", "(x * 2) >= (y - 1)"),
        ("(x < y) == (y < x)", "((x < y) == (y < x))"),
        ("pow(x, y)", "x ^ y"),
        ("pow(x, 3)", "x ^ 3"),
        ("max(x < y, 1 + 2 * 3)", "max((x < y), (1 + (2 * 3)))"),
    ] {
        assert_eq!(formula(text).ops, formula(whole).ops, "{text}");
    }
    for (text, other) in [
        ("1 - (2 - 3)", "1 - 2 - 3"),
        ("(-x) ^ 2", "-x ^ 2"),
        ("(2 ^ 3) ^ x", "2 ^ 3 ^ x"),
        ("x / (y * 2)", "x / y * 2"),
        ("-(x * y)", "-x * y"),
        ("x + (y + 1)", "x + y + 1"),
    ] {
        assert_ne!(formula(text).ops, formula(other).ops, "{text}");
        assert_eq!(formula(text).to_string(), text);
    }
}

#[test]
fn operators_and_functions_have_their_values() {
    for (text, expected) in [
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("2.5e-3", 0.0025),
        ("1.e2", 100.0),
        ("1E+2", 100.0),
        ("x + y", 1.5),
        ("x - y", 5.5),
        ("x * y", -7.0),
        ("x / y", -1.75),
        ("x / 0", f64::INFINITY),
        ("x ^ 2", 12.25),
        ("y ^ 3", -8.0),
        ("4 ^ 0.5", 2.0),
        ("4 ^ -1", 0.25),
        ("x ^ 0", 1.0),
        ("-x", -3.5),
        ("x < y", 0.0),
        ("y < x", 1.0),
        ("x <= x", 1.0),
        ("x > x", 0.0),
        ("x >= x", 1.0),
        ("x == x", 1.0),
        ("x != x", 0.0),
        ("min(x, y)", -2.0),
        ("max(x, y)", 3.5),
        ("abs(y)", 2.0),
        ("sqrt(16)", 4.0),
        ("cbrt(-27)", -3.0),
        ("ln(exp(1))", 1.0),
        ("log2(8)", 3.0),
        ("log10(1000)", 3.0),
        ("exp(0)", 1.0),
        ("floor(y / 1.5)", -2.0),
        ("ceil(y / 1.5)", -1.0),
        ("if(x > y, x, y)", 3.5),
        ("if(x < y, x, y)", -2.0),
        ("if(y, 1, 2)", 1.0),
        ("if(x > 0, if(y > 0, 1, 2), 3)", 2.0),
        ("ln(0)", f64::NEG_INFINITY),
        ("now_s", 1e6),
    ] {
        assert_eq!(value(text).to_bits(), expected.to_bits(), "{text}: {}", value(text));
    }
    for (name, count, function) in Function::ALL {
        assert_eq!(function.signature(), (name, count));
    }
    for (at, (symbol, _, operator)) in Binary::ALL.into_iter().enumerate() {
        assert_eq!(operator as usize, at, "{symbol}");
    }
}

#[test]
fn whole_exponents_up_to_16_are_repeated_multiplications() {
    let x = 1.3;
    let at = |text: &str| formula(text).value(|_| x);
    assert_eq!(at("x ^ 3"), x * x * x);
    assert_eq!(at("x ^ 16"), (1..16).fold(x, |product, _| product * x));
    assert_ne!(at("x ^ 16"), libm::pow(x, 16.0), "the test tells the two apart");
    assert_eq!(at("x ^ 17"), libm::pow(x, 17.0));
    assert_eq!(at("x ^ 2.5"), libm::pow(x, 2.5));
    assert_eq!(at("x ^ (2 + 1)"), libm::pow(x, 3.0));
    assert_eq!(at("pow(x, 3.0)"), x * x * x);
}

#[test]
fn nan_stays_nan_unless_if_does_not_choose_it() {
    let nan = "(0 / 0)";
    for (symbol, ..) in Binary::ALL {
        assert!(value(&format!("{nan} {symbol} 1")).is_nan(), "{symbol}");
        assert!(value(&format!("1 {symbol} {nan}")).is_nan(), "{symbol}");
    }
    assert!(value(&format!("{nan} ^ 0")).is_nan() && value(&format!("-{nan} ^ 3")).is_nan());
    for (name, count, function) in Function::ALL.into_iter().filter(|(.., function)| *function != Function::If) {
        for place in 0..count {
            let values: Vec<&str> = (0..count).map(|at| if at == place { nan } else { "1" }).collect();
            assert!(value(&format!("{name}({})", values.join(", "))).is_nan(), "{function:?}");
        }
    }
    for (text, expected) in [("if(1, 5, 0 / 0)", 5.0), ("if(0, 0 / 0, 6)", 6.0)] {
        assert_eq!(value(text), expected);
    }
    assert!(value("if(0 / 0, 1, 2)").is_nan() && value("if(1, 0 / 0, 2)").is_nan() && value("sqrt(y)").is_nan());
}

#[test]
fn white_space_parentheses_and_spellings_of_numbers_do_not_count() {
    let whole = "max(x, 1) * 870 + y";
    for text in ["max(x,1)*870+y", " max ( x , 1 ) *\n\t870 + y\r\n", "((max((x), 1.0) * (8.7e2)) + y)", whole] {
        assert_eq!(formula(text).to_string(), whole);
    }
    assert_ne!(formula("870 * max(x, 1) + y").to_string(), whole, "the order of a sum or product counts");
    for (text, printed) in [
        ("1e7", "1e7"),
        ("12345678", "1.2345678e7"),
        ("9999999", "9999999"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-5"),
        ("000.10", "0.1"),
        ("0e5", "0"),
        ("x^2", "x ^ 2"),
        ("pow(x, y)", "x ^ y"),
        ("(x^2)^3", "(x ^ 2) ^ 3"),
        ("if(x<y,-x,(x))", "if(x < y, -x, x)"),
    ] {
        assert_eq!(formula(text).to_string(), printed);
    }
}

#[test]
fn errors_name_the_column_and_the_expectation() {
    for (text, message) in [
        ("", "at column 1, expected a number, a variable, a function, `-` or `(`, found the end"),
        ("  ", "at column 3, expected a number, a variable, a function, `-` or `(`, found the end"),
        ("1 +", "at column 4, expected a number, a variable, a function, `-` or `(`, found the end"),
        ("1 + * 2", "at column 5, expected a number, a variable, a function, `-` or `(`, found `*`"),
        ("+1", "at column 1, expected a number, a variable, a function, `-` or `(`, found `+`"),
        ("x y", "at column 3, expected an operator or the end, found `y`"),
        ("2x", "at column 2, expected an operator or the end, found `x`"),
        ("1e", "at column 2, expected an operator or the end, found `e`"),
        ("x)", "at column 2, expected an operator or the end, found `)`"),
        ("x = y", "at column 3, expected an operator or the end, found `=` (equality is `==`)"),
        ("x ≤ y", "at column 3, expected an operator or the end, found `≤`"),
        ("(x ≤ y)", "at column 4, expected an operator or `)`, found `≤`"),
        ("(x", "at column 3, expected an operator or `)`, found the end"),
        ("x < y < 3", "at column 7, expected parentheses around one of two comparisons, found `<`"),
        ("max x", "at column 5, expected `(`: `max` is a function, found `x`"),
        ("max(x)", "at column 6, expected an operator or `,` and value 2: `max` takes 2 values, found `)`"),
        ("max(x, y, 1)", "at column 9, expected an operator or `)`: `max` takes 2 values, found `,`"),
        ("abs()", "at column 5, expected a number, a variable, a function, `-` or `(`, found `)`"),
        ("abs(x", "at column 6, expected an operator or `)`: `abs` takes 1 value, found the end"),
        ("x(1)", "at column 2, expected an operator or the end, found `(`"),
        ("1e999", "at column 1, expected a number of at most 1.7e308, found `1e999`"),
        (".", "at column 1, expected a number, found `.`"),
        ("1..2", "at column 3, expected an operator or the end, found `.2`"),
        ("x +\n y z", "at line 2, column 4, expected an operator or the end, found `z`"),
    ] {
        assert_eq!(error(text), message, "{text}");
    }
    let unknown = error("1 + run_s");
    let functions = "min, max, abs, sqrt, cbrt, ln, log2, log10, exp, floor, ceil, if, pow";
    assert_eq!(
        unknown,
        format!("at column 5, expected a variable (x, y, now_s) or a function ({functions}), found `run_s`")
    );
    assert!(error(&"z".repeat(5000)).len() < 300);
}

#[test]
fn limits_are_errors_and_no_overflow() {
    let nested = |levels: usize, open: &str, close: &str| format!("{}x{}", open.repeat(levels), close.repeat(levels));
    for (open, close) in [("(", ")"), ("-", ""), ("abs(", ")"), ("-(", ")")] {
        let levels = DEPTH_MAX / open.replace("abs", "").len();
        assert!(Formula::parse(&nested(levels - 1, open, close), VARIABLES).is_ok(), "{open}");
        for levels in [levels, 1000, TEXT_MAX / 10] {
            let error = error(&nested(levels, open, close));
            assert!(error.contains("less nesting") || error.contains("at most"), "{error}");
        }
    }
    assert!(error(&"(".repeat(TEXT_MAX)).contains("less nesting: at most 64 levels"));
    assert!(
        error(&"(".repeat(TEXT_MAX + 1)).contains("at column 8193, expected the end: a formula has at most 8192 bytes")
    );
    assert!(error(&"é".repeat(TEXT_MAX)).contains("at most 8192 bytes"));
    let waiting = |values: usize| (1..values).fold("x".to_owned(), |text, _| format!("x - ({text})"));
    assert!(Formula::parse(&waiting(STACK), VARIABLES).is_ok());
    assert!(error(&waiting(STACK + 1)).contains("at most 32 values can wait"));
    assert!(error(&"2^".repeat(TEXT_MAX / 2)).contains("at most 32 values can wait"));
    let sum = |values: usize| vec!["x"; values].join("+");
    assert!(Formula::parse(&sum(OPS_MAX / 2), VARIABLES).is_ok());
    assert!(error(&sum(OPS_MAX / 2 + 1)).contains("at most 256 numbers, variables and operations"));
}

#[test]
fn a_text_of_the_greatest_length_can_be_read_again() {
    // Numbers of 24 characters, and parentheses where they are needed.
    let number = "1.2345678901234567e-300";
    let term = format!("({number} - -{number})");
    let longest = (1..OPS_MAX / 5).fold(term.clone(), |text, _| format!("{text} * {term}"));
    let printed = formula(&longest).to_string();
    assert!((TEXT_MAX / 3..=TEXT_MAX).contains(&printed.len()), "{}", printed.len());
    assert_eq!(formula(&printed), formula(&longest));
}

#[test]
fn a_formula_changes_with_the_variables_that_it_reads() {
    assert!(!formula("x + y").changes() && formula("x + if(1, 2, now_s)").changes());
    assert_eq!(formula("y * now_s + y").reads(), [1, 2]);
}

/// An expression in parentheses with its value, which is computed without the machine.
#[derive(Debug, Clone)]
struct Made {
    text: String,
    value: f64,
}

fn made() -> impl Strategy<Value = Made> {
    let number = prop_oneof![(0..20u32).prop_map(f64::from), 0.0..1e9f64, Just(1e300), Just(2.5e-7)];
    let leaf = prop_oneof![
        number.prop_map(|value| Made { text: format!("{value:e}"), value }),
        (0..VARIABLES.len()).prop_map(|at| Made { text: VARIABLES[at].name.to_owned(), value: VALUES[at] }),
    ];
    leaf.prop_recursive(6, 60, 3, |inner| {
        let (one, two) = (inner.clone(), (inner.clone(), inner.clone()));
        prop_oneof![
            one.prop_map(|a| Made { text: format!("(-{})", a.text), value: -a.value }),
            (two.clone(), 0..Binary::ALL.len()).prop_map(|((a, b), at)| {
                let (symbol, _, operator) = Binary::ALL[at];
                let whole = b.text.parse().ok().filter(|n: &f64| n.fract() == 0.0 && (2.0..17.0).contains(n));
                let value = match (operator, whole) {
                    (Binary::Power, Some(times)) => (1..times as u32).fold(a.value, |product, _| product * a.value),
                    _ => operator.of(a.value, b.value),
                };
                Made { text: format!("({} {symbol} {})", a.text, b.text), value }
            }),
            (two, inner, 0..Function::ALL.len()).prop_map(|((a, b), c, at)| {
                let (name, count, function) = Function::ALL[at];
                let texts = [a.text, b.text, c.text][..count].join(",");
                Made { text: format!("{name}({texts})"), value: function.of(a.value, b.value, c.value) }
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printing_and_reading_again_changes_neither_program_nor_value(made in made()) {
        let read = formula(&made.text);
        let value = read.value(|at| VALUES[usize::from(at)]);
        prop_assert!(value.to_bits() == made.value.to_bits() || value.is_nan() && made.value.is_nan(), "{}", value);
        let printed = read.to_string();
        prop_assert_eq!(&formula(&printed), &read, "{}", &printed);
        prop_assert_eq!(formula(&printed).to_string(), printed);
        let bare: String = read.to_string().split_whitespace().collect();
        prop_assert_eq!(formula(&bare), read);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_known_of_a_value_holds_at_all_times(
        made in made(),
        x in 0.0..10.0f64,
        y in -5.0..5.0f64,
        now_s in 0.0..1e6f64,
        later_s in 0.0..1e6f64,
    ) {
        let constant = |low, high| Known { low, high, trend: Trend::Constant };
        let variables = [constant(0.0, 10.0), constant(-5.0, 5.0), Known { trend: Trend::Rises, ..constant(0.0, f64::MAX) }];
        let formula = formula(&made.text);
        if let Some(known) = formula.known(|at| variables[usize::from(at)]) {
            let value_at = |now_s: f64| formula.value(|at| [x, y, now_s][usize::from(at)]);
            let (now, later) = (value_at(now_s), value_at(now_s + later_s));
            // Functions of `libm` round in any way.
            let rounding = |value: f64| if value.is_finite() { value.abs() * 1e-9 } else { 0.0 };
            for value in [now, later] {
                let (low, high) = (known.low - rounding(known.low), known.high + rounding(known.high));
                prop_assert!(low <= value && value <= high, "{}: {} in {:?}", made.text, value, known);
            }
            let holds = match known.trend {
                Trend::Constant => now == later,
                Trend::Rises => now <= later,
                Trend::Falls => now >= later,
                Trend::Varies => true,
            };
            prop_assert!(holds, "{}: {} and {} of {:?}", made.text, now, later, known);
        }
    }
}

#[test]
fn the_trend_of_common_orders_is_known() {
    let trend = |text: &str| {
        let known = |low, trend| Known { low, high: f64::MAX, trend };
        let variables = [known(0.0, Trend::Constant), known(-5.0, Trend::Constant), known(0.0, Trend::Rises)];
        formula(text).known(|at| variables[usize::from(at)]).map(|known| known.trend)
    };
    for (text, expected) in [
        ("-(now_s / max(x, 1)) ^ 3 * (x + 1)", Some(Trend::Falls)),
        ("-floor(now_s / 3600) * x", Some(Trend::Falls)),
        ("log10(max(x, 1)) - sqrt(now_s)", Some(Trend::Falls)),
        ("x / (1 + now_s)", Some(Trend::Falls)),
        ("min(x, now_s)", Some(Trend::Rises)),
        ("x ^ 2 + y", Some(Trend::Constant)),
        ("y * now_s", Some(Trend::Varies)),
        ("now_s - x * now_s", Some(Trend::Varies)),
        ("log10(1 + now_s)", Some(Trend::Varies)),
        ("now_s > 5", Some(Trend::Varies)),
        ("now_s / x", None),
        ("sqrt(9 - now_s)", None),
        ("ln(y)", None),
        ("x * x * x * now_s * (x * x * x - now_s)", None),
    ] {
        assert_eq!(trend(text), expected, "{text}");
    }
}

/// No text makes the parser panic, and a text that it reads can be printed, read again and evaluated.
#[test]
fn random_texts_are_read_or_refused() {
    const PIECES: [&str; 40] = [
        "(", "(", ")", ")", ",", "+", "-", "*", "/", "^", "<", "<=", ">", ">=", "==", "!=", "=", "!", " ", "\n", "x",
        "y", "now_s", "1", "0", "2.5", "1e5", "e", ".", "min(", "max(", "if(", "abs(", "ln(", "pow(", "sqrt", "z", "é",
        "\u{0}", "𝄞",
    ];
    let mut random = Philox::stream(1, Purpose::Shuffle);
    let mut below = |n: usize| ((random.uniform() * n as f64) as usize).min(n - 1);
    let mut read = 0;
    for _ in 0..100_000 {
        // A few pieces often make an expression, many test the limits.
        let count = [1, 3, 5, 8, 12, 400][below(6)];
        let text: String = (0..below(count + 1)).map(|_| PIECES[below(PIECES.len())]).collect();
        let Ok(formula) = Formula::parse(&text, VARIABLES) else { continue };
        read += 1;
        assert_eq!(self::formula(&formula.to_string()), formula, "{text}");
        let _ = formula.value(|at| VALUES[usize::from(at)]);
    }
    assert!((2_000..50_000).contains(&read), "{read} texts are expressions");
}
