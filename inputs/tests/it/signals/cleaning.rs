//! Order, duplicates, ends, gaps, units and the ledger.

use std::sync::Arc;

use powersweep_inputs::ledger::Rule as _;
use powersweep_inputs::signals::Loaded;

use crate::signals::{cleans, counts, read, reads, refused, signal};

const PRICE: &str = "quantity = 'price'";

/// A file of prices with these rows: seconds from the simulated time 0 and prices.
fn prices(rows: &str) -> String {
    format!("time,price EUR/kWh\n{}\n", rows.replace(' ', "\n"))
}

/// The series of such a file, and its ledger.
#[track_caller]
fn cleaned(rows: &str, keys: &str) -> (String, String) {
    cleans(prices(rows), &format!("{PRICE}; {keys}"))
}

fn both(series: &str, ledger: &str) -> (String, String) {
    (series.to_owned(), ledger.to_owned())
}

#[test]
fn times_that_go_back_are_refused() {
    assert_eq!(
        refused(prices("0,1 20,2 10,3"), PRICE),
        "line 4: the time 10 s is before the time of the row above: sort the rows by time"
    );
    let dates = "time (UTC),price EUR/kWh\n2023-01-01,1\n2023-01-03,1\n2023-01-02,2\n";
    assert_eq!(
        refused(dates, PRICE),
        "line 4: the time 2023-01-02T00:00:00Z is before the time of the row above: sort the rows by time"
    );
}

#[test]
fn each_rule_has_the_line_of_its_first_row() {
    let rows = prices("0, 10,1 10,1 20, 30,1 50,2 60,2 70,");
    let series = read(rows, "quantity = 'price'; gaps = 'hold'").expect("it is read");
    let lines: Vec<_> =
        series.ledger.rules().map(|(rule, count)| (rule.name(), count.rows, count.first_line)).collect();
    let expected = [
        ("empty_at_start", 1, 2),
        ("empty_at_end", 1, 9),
        ("equal_duplicate", 1, 4),
        ("value_filled", 1, 5),
        // A time without a row has the line of the row before it.
        ("time_filled", 1, 6),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn equal_duplicates_are_dropped() {
    assert_eq!(cleaned("0,1 0,1 0,1.0 10,2", ""), both("0s=1 10s=2 until 20s", "4 read, 2 kept, 2 equal_duplicate"));
}

#[test]
fn other_duplicates_need_a_rule() {
    let rows = "0,1 10,2 10,4 10,9 20,5 20,6";
    assert_eq!(
        refused(prices(rows), PRICE),
        "line 4: the time 10 s occurs again with another value (3 rows in all): set `duplicates` to \"first\", \"last\" or \
         \"mean\" to accept them"
    );
    for (rule, series, ledger) in [
        ("first", "0s=1 10s=2 20s=5 until 30s", "6 read, 3 kept, 3 duplicate"),
        ("last", "0s=1 10s=9 20s=6 until 30s", "6 read, 3 kept, 3 duplicate"),
        ("mean", "0s=1 10s=5 20s=5.5 until 30s", "6 read, 3 kept, 3 duplicate, 2 averaged"),
    ] {
        assert_eq!(cleaned(rows, &format!("duplicates = '{rule}'")), both(series, ledger));
    }
}

/// A row without a value is not one of the values of its time.
#[test]
fn a_value_beats_an_empty_cell_of_the_same_time() {
    for rule in ["first", "last", "mean"] {
        let keys = format!("duplicates = '{rule}'");
        assert_eq!(
            cleaned("0,1 10, 10,4 20,5", &keys),
            both("0s=1 10s=4 20s=5 until 30s", "4 read, 3 kept, 1 duplicate")
        );
        assert_eq!(
            cleaned("0,1 10,4 10, 20,5", &keys),
            both("0s=1 10s=4 20s=5 until 30s", "4 read, 3 kept, 1 duplicate")
        );
        let empty = "0,1 10, 10, 20,5";
        let filled = format!("{keys}; gaps = 'hold'");
        assert_eq!(
            cleaned(empty, &filled),
            both("0s=1 10s=1 20s=5 until 30s", "4 read, 3 kept, 1 equal_duplicate, 1 value_filled")
        );
    }
    assert!(refused(prices("0,1 10, 10,4 20,5"), PRICE).contains("the time 10 s occurs again with another value"));
}

#[test]
fn rows_without_a_value_at_the_ends_are_dropped() {
    assert_eq!(
        cleaned("0, 10, 20,2 30,3 40,", ""),
        both("20s=2 30s=3 until 40s", "5 read, 2 kept, 2 empty_at_start, 1 empty_at_end")
    );
    assert_eq!(refused(prices("0, 10,"), PRICE), "column \"price EUR/kWh\" has no value in any row");
}

#[test]
fn missing_times_need_a_rule() {
    let rows = "0,0 10,1 20,2 60,6 70,7";
    assert_eq!(
        refused(prices(rows), PRICE),
        "no value at 30 s; 3 missing in all, at the step of 10 s: set `gaps` to \"hold\" (the value before; for files that \
         list only changes) or \"interpolate\" to fill them"
    );
    assert_eq!(
        cleaned(rows, "gaps = 'hold'"),
        both("0s=0 10s=1 20s=2 30s=2 40s=2 50s=2 60s=6 70s=7 until 80s", "5 read, 5 kept, 3 time_filled")
    );
    assert_eq!(
        cleaned(rows, "gaps = 'interpolate'"),
        both("0s=0 10s=1 20s=2 30s=3 40s=4 50s=5 60s=6 70s=7 until 80s", "5 read, 5 kept, 3 time_filled")
    );
}

#[test]
fn missing_values_need_a_rule() {
    let rows = "0,0 10, 20,4 30,4";
    assert!(refused(prices(rows), PRICE).starts_with("no value at 10 s; 1 row without a value in all: set `gaps`"));
    assert_eq!(
        cleaned(rows, "gaps = 'hold'"),
        both("0s=0 10s=0 20s=4 30s=4 until 40s", "4 read, 4 kept, 1 value_filled")
    );
    assert_eq!(
        cleaned(rows, "gaps = 'interpolate'"),
        both("0s=0 10s=2 20s=4 30s=4 until 40s", "4 read, 4 kept, 1 value_filled")
    );
    let all = "0,0 10, 20,4 30,4 50,8";
    assert!(
        refused(prices(all), PRICE)
            .starts_with("no value at 10 s; 1 missing in all, at the step of 10 s, and 1 row without a value:")
    );
    assert_eq!(
        cleaned(all, "gaps = 'interpolate'"),
        both("0s=0 10s=2 20s=4 30s=4 40s=6 50s=8 until 60s", "5 read, 5 kept, 1 value_filled, 1 time_filled")
    );
}

#[test]
fn filled_values_are_estimates_where_the_file_says_which_are() {
    let header = "Datetime (UTC),Zone Id,Carbon Intensity gCO₂eq/kWh (LCA),Data Estimated";
    let rows = "2023-01-01 00:00,DE,100,false\n2023-01-01 01:00,DE,200,true\n2023-01-01 02:00,DE,,false\n\
                2023-01-01 04:00,DE,400,false\n2023-01-01 05:00,DE,400,false\n";
    let series = read(format!("{header}\n{rows}"), "quantity = 'carbon'; gaps = 'hold'").expect("it is read");
    assert_eq!(
        crate::signals::shown(&series),
        "2023-01-01T00:00=100 2023-01-01T01:00~200 2023-01-01T02:00~200 2023-01-01T03:00~200 2023-01-01T04:00=400 \
         2023-01-01T05:00=400 until 2023-01-01T06:00"
    );
    assert_eq!(counts(&series), "5 read, 5 kept, 1 value_filled, 1 time_filled");
    assert_eq!(series.facts.flagged, 1);
}

/// A step is regular if more than half of the steps have it. Times without a regular step lack none, and how long the last
/// value holds is unknown.
#[test]
fn changes_at_uneven_times() {
    assert_eq!(cleaned("0,1 10,2 25,3 99,4", ""), both("0s=1 10s=2 25s=3 99s=4 until 99s", "4 read, 4 kept"));
    assert_eq!(cleaned("0,1 10,2 20,3 34,4", ""), both("0s=1 10s=2 20s=3 34s=4 until 34s", "4 read, 4 kept"));
    assert!(refused(prices("0,1 10,2 20,3 40,4"), PRICE).starts_with("no value at 30 s; 1 missing in all"));
    assert_eq!(cleaned("5,1", ""), both("5s=1 until 5s", "1 read, 1 kept"));
    assert!(
        refused(prices("0,1 10, 25,3 99,4"), PRICE).starts_with("no value at 10 s; 1 row without a value in all: set")
    );
}

/// Steps that are no multiples of the most common one are those of a list of changes, unless they are few.
#[test]
fn a_common_step_of_changes_is_no_regular_step() {
    let (series, _) = cleaned("0,1 6,2 9,3 15,4 21,5 24,1", "");
    assert!(series.ends_with("until 24s"), "{series}");
    let mut rows: Vec<String> = (0..20).map(|at| format!("{},1", 10 * at)).collect();
    rows.push("195,2".to_owned());
    let (series, _) = cleaned(&rows.join(" "), "");
    assert!(series.ends_with("until 205s"), "{series}");
}

#[test]
fn filled_gaps_have_a_limit() {
    let far = prices("0,1 1,2 2,3 3,4 1e8,5");
    assert!(refused(&far, PRICE).starts_with("no value at 4 s; 99999996 missing in all, at the step of 1 s"));
    assert_eq!(
        refused(&far, &format!("{PRICE}; gaps = 'hold'")),
        "the signal has more than 10000000 times, the limit for signals, because of its gaps: cut the file where it has none"
    );
}

/// A file of one value.
fn one(column: &str, value: &str) -> String {
    format!("time,{column}\n0,{value}\n")
}

#[test]
fn values_are_converted_to_the_unit_of_the_quantity() {
    for (column, value, keys, converted) in [
        ("price (EUR/MWh)", "-5.17", "quantity = 'price'", "-0.00517"),
        ("price (EUR/MWh)", "5", "quantity = 'price'; unit = '1 EUR/kWh'", "5"),
        ("tariff", "31.5", "quantity = 'price'; unit = 'ct/kWh'", "0.315"),
        ("moer", "1000", "quantity = 'carbon'; unit = 'lb/MWh'", "453.59237"),
        ("carbon_intensity", "80", "quantity = 'carbon'", "80"),
        ("limit [MW]", "1.5", "quantity = 'cap'", "1500000"),
        ("cap_kw", "2", "quantity = 'cap'", "2000"),
        ("cap", "0.8", "quantity = 'cap-share'; unit = '1'", "0.8"),
        ("cap", "80", "quantity = 'cap-share'; unit = '%'", "0.8"),
        ("cap (%)", "80", "quantity = 'cap-share'", "0.8"),
        ("cap_percent", "55", "quantity = 'cap-share'", "0.55"),
        ("cap_share", "0", "quantity = 'cap-share'", "0"),
        ("limit [1]", "1", "quantity = 'cap-share'", "1"),
        ("temperature (°F)", "212", "quantity = 'temperature'; unit = '1 K'", "-61.14999999999998"),
        ("temperature (°F)", "32", "quantity = 'temperature'", "0"),
    ] {
        assert_eq!(reads(one(column, value), keys), format!("0s={converted} until 0s"), "{column}");
    }
    let currency = |unit: &str| {
        let keys = format!("quantity = 'price'; unit = '{unit}'");
        read(one("price", "1"), &keys).expect("it is read").currency
    };
    assert_eq!(currency("EUR/MWh").as_deref(), Some("EUR"));
    assert_eq!(currency("ct/kWh"), None);
}

#[test]
fn units_that_are_not_known_are_refused() {
    for (column, keys, sentence) in [
        (
            "price",
            "quantity = 'price'",
            "column \"price\" has no unit in its name: set `unit`, such as \"EUR/MWh\", \"USD/kWh\" or \"ct/kWh\"",
        ),
        // A number after the name is no unit.
        (
            "cap_1",
            "quantity = 'cap-share'",
            "column \"cap_1\" has no unit in its name: set `unit`, such as \"1\" or \"%\"",
        ),
        (
            "cap",
            "quantity = 'cap-share'; unit = 'kW'",
            "`unit` does not fit the file: \"kW\" is no unit of a cap-share, such as \"1\" or \"%\"",
        ),
        (
            "cap",
            "quantity = 'cap'; unit = '%'",
            "`unit` does not fit the file: \"%\" is no unit of a cap, such as \"W\", \"kW\" or \"MW\"",
        ),
        (
            "price",
            "quantity = 'price'; unit = '%/MWh'",
            "`unit` does not fit the file: \"%/MWh\" is no unit of a price, such as \"EUR/MWh\", \"USD/kWh\" or \"ct/kWh\"",
        ),
    ] {
        assert_eq!(refused(one(column, "1"), keys), sentence);
    }
}

#[test]
fn impossible_values_are_refused() {
    for (column, value, quantity, reason) in [
        ("carbon_intensity", "-1", "carbon", "is a negative carbon intensity"),
        ("carbon_intensity", "10001", "carbon", "is 10001 g/kWh, beyond 10000: is the unit \"g/kWh\" right?"),
        ("price EUR/kWh", "101", "price", "is 101 EUR/kWh, beyond 100: is the unit \"EUR/kWh\" right?"),
        ("price EUR/kWh", "-101", "price", "is -101 EUR/kWh, beyond 100: is the unit \"EUR/kWh\" right?"),
        ("cap_w", "-1", "cap", "is a negative power"),
        ("cap_gw", "11", "cap", "is 11000000000 W, beyond 10000000000: is the unit \"GW\" right?"),
        (
            "cap_share",
            "80",
            "cap-share",
            "is a share of 80, which is not between 0 and 1: is the unit \"SHARE\" right?",
        ),
        ("cap (%)", "-1", "cap-share", "is a share of -0.01, which is not between 0 and 1: is the unit \"%\" right?"),
        (
            "temperature (K)",
            "20",
            "temperature",
            "is -253.14999999999998 degrees Celsius, which no air has: is the unit \"K\" right?",
        ),
        ("price EUR/kWh", "nan", "price", "is not a finite number"),
        ("price EUR/kWh", "1e999", "price", "is not a finite number"),
        ("price EUR/kWh", "n/a", "price", "is not a number: leave the cell empty where there is no value"),
    ] {
        let refusal = refused(one(column, value), &format!("quantity = '{quantity}'"));
        assert_eq!(refusal, format!("line 2, column {column:?}: {value:?} {reason}"));
    }
}

/// The value at simulated time 0 of a signal on the time of a workload that begins at this calendar time, or why there is none.
fn at_0(text: &str, keys: &str, unix_start_s: Option<i64>) -> Result<Option<f64>, String> {
    let loaded = Loaded { signal: signal(keys), series: Arc::new(read(text, keys).expect("it is read")) };
    loaded.place(unix_start_s).map(|(placed, _)| placed.at(0.0)).map_err(|error| error.to_string())
}

#[test]
fn series_lie_on_the_time_of_a_workload() {
    let day = "time (UTC),price EUR/kWh\n2023-01-01 00:00,1\n2023-01-01 01:00,2\n";
    let second_hour_s = 1_672_534_800;
    assert_eq!(at_0(day, PRICE, Some(second_hour_s)), Ok(Some(2.0)));
    assert_eq!(at_0(day, PRICE, Some(second_hour_s + 3600)), Ok(None));
    let anchored = format!("{PRICE}; anchor = '2023-01-01'");
    assert_eq!(at_0(day, &anchored, None), Ok(Some(1.0)));
    assert_eq!(at_0(day, &anchored, Some(second_hour_s)), Ok(Some(1.0)));
    assert_eq!(
        at_0(day, PRICE, None),
        Err("the signal `x` is on calendar time, and the workload does not state when it began: set `anchor` in [signals.x]"
            .to_owned())
    );
    // Seconds from the simulated time 0 need no calendar.
    assert_eq!(at_0(&prices("-10,1 0,2"), PRICE, None), Ok(Some(2.0)));
    assert_eq!(at_0(&prices("-10,1 0,2"), PRICE, Some(second_hour_s)), Ok(Some(2.0)));
}

/// A log of another year takes the values of a calendar that nobody chose.
#[test]
fn a_signal_of_another_time_says_which_values_come_first() {
    let day = "time (UTC),price EUR/kWh\n2023-01-01 00:00,1\n2023-01-01 01:00,2\n";
    let said = |keys: &str, unix_start_s: Option<i64>| {
        let loaded = Loaded { signal: signal(keys), series: Arc::new(read(day, keys).expect("it is read")) };
        loaded.elsewhere(unix_start_s, 0.0)
    };
    let hour_s = 3_600;
    let after_s = 1_672_531_200 + 3 * hour_s;
    let wraps = format!("{PRICE}; beyond = 'wrap'");
    let found = said(&wraps, Some(after_s)).expect("it repeats");
    assert!(
        found.ends_with(
            "begins at 2023-01-01T03:00:00Z: it repeats, so that its values of 2023-01-01T01:00:00Z come first"
        ),
        "{found}"
    );
    let held = said(&format!("{PRICE}; beyond = 'hold'"), Some(after_s)).expect("it holds");
    assert!(held.ends_with("its last value holds there"), "{held}");
    assert_eq!(said(&wraps, Some(after_s - 2 * hour_s)), None);
    assert_eq!(said(&format!("{wraps}; anchor = '2023-01-01'"), Some(after_s)), None);
    assert_eq!((said(PRICE, Some(after_s)), said(&wraps, None)), (None, None));
}

/// What holds beyond a file changes nothing within it: the line to the last of uneven times is there.
#[test]
fn values_between_uneven_points_are_those_of_the_line() {
    for beyond in ["error", "hold", "wrap"] {
        let keys = format!("{PRICE}; sample = 'point'; beyond = '{beyond}'");
        let series = Arc::new(read(prices("0,10 1000,20 4000,40"), &keys).expect("it is read"));
        let (placed, _) = Loaded { signal: signal(&keys), series }.place(None).expect("it has intervals");
        assert_eq!([1000.0, 2500.0, 3250.0].map(|at_s| placed.at(at_s)), [20.0, 30.0, 35.0].map(Some), "{beyond}");
    }
}

#[test]
fn a_last_value_without_an_end_must_hold() {
    let at = |rows: &str, beyond: &str| at_0(&prices(rows), &format!("{PRICE}; beyond = '{beyond}'"), None);
    let single = "the file x of the signal `x` has a single time, so that nobody knows how long its value holds: set beyond = \
                  \"hold\" in [signals.x] to make it a constant";
    for beyond in ["error", "wrap"] {
        assert_eq!(at("0,1", beyond), Err(single.to_owned()));
        // `plan` says it before a task fails.
        let keys = format!("{PRICE}; beyond = '{beyond}'");
        let loaded =
            Loaded { signal: signal(&keys), series: Arc::new(read(prices("0,1"), &keys).expect("it is read")) };
        assert_eq!(loaded.check(None, (0.0, 1.0)).map_err(|error| error.to_string()), Err(single.to_owned()));
        // Of times without a regular step, the last one ends the series.
        assert_eq!(at("-99,4 -20,3 0,2", beyond), Ok(if beyond == "wrap" { Some(4.0) } else { None }));
        assert_eq!(at("-20,3 0,2 99,4", beyond), Ok(Some(2.0)));
    }
    assert_eq!(at("0,1", "hold"), Ok(Some(1.0)));
    assert_eq!(at("-99,4 -20,3 0,2", "hold"), Ok(Some(2.0)));
}
