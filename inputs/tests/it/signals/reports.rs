//! Small files of signals that users reported: each was read wrongly, or refused with a sentence that was not true.

use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Decimal128Array, Float16Array, Float64Array, StringViewArray};
use arrow::datatypes::ArrowNativeType;

use crate::joblogs::parquet::file;
use crate::signals::{cleans, counts, read, reads, refused, time};

/// Hours to September, quarters of an hour from October on to a date, as the markets of Europe changed in 2025. Times that begin
/// with these texts are missing.
fn mixed(until: &str, missing: &[&str]) -> String {
    let mut text = "time,price (EUR/MWh)\n".to_owned();
    let mut at: jiff::Timestamp = "2025-01-01T00:00:00Z".parse().expect("a time");
    let change: jiff::Timestamp = "2025-10-01T00:00:00Z".parse().expect("a time");
    let end: jiff::Timestamp = format!("{until}T00:00:00Z").parse().expect("a time");
    while at < end {
        if !missing.iter().any(|missing| at.to_string().starts_with(missing)) {
            text += &format!("{at},{}\n", 40 + at.as_second() / 3600 % 24);
        }
        let minutes = if at < change { 60 } else { 15 };
        at = at.checked_add(jiff::SignedDuration::from_mins(minutes)).expect("a time");
    }
    text
}

#[test]
fn a_hole_is_found_although_the_step_changes() {
    let mixed_hole = || mixed("2026-01-01", &["2025-07-14"]);
    let refusal = refused(mixed_hole(), "quantity = 'price'");
    assert!(
        refusal.starts_with("no value at 2025-07-14T00:00:00Z; 24 missing in all, at the step of 3600 s: set `gaps`"),
        "{refusal}"
    );
    let series = read(mixed_hole(), "quantity = 'price'; gaps = 'hold'").expect("it is read");
    assert_eq!(counts(&series), "15360 read, 15360 kept, 24 time_filled");
    assert_eq!((time(&series, series.end_s).as_str(), series.facts.step_s), ("2026-01-01T00:00", Some(900.0)));
}

/// Holes soon behind the change, and at the change itself. In the third file no part of the new step lasts a week.
#[test]
fn a_hole_does_not_move_the_change_of_the_step() {
    for (until, missing, first, count) in [
        ("2026-01-01", &["2025-10-04T05"][..], "2025-10-04T05:00:00Z", 4),
        ("2026-01-01", &["2025-10-04T05:15", "2025-12-01T07:30"], "2025-10-04T05:15:00Z", 2),
        ("2025-10-10", &["2025-10-04T05:15"], "2025-10-04T05:15:00Z", 1),
        ("2026-01-01", &["2025-10-01T00:00"], "2025-09-30T23:15:00Z", 4),
        ("2026-01-01", &["2025-09-30T23", "2025-10-02T00:45"], "2025-09-30T23:00:00Z", 2),
    ] {
        let refusal = refused(mixed(until, missing), "quantity = 'price'");
        assert!(
            refusal.starts_with(&format!("no value at {first}; {count} missing in all, at the step of ")),
            "{refusal}"
        );
    }
}

#[test]
fn years_and_months_are_steps_of_the_calendar() {
    let yearly = "Datetime (UTC),carbon_g_per_kwh\n2019-01-01 00:00,309\n2020-01-01 00:00,300\n2021-01-01 00:00,301\n\
                  2022-01-01 00:00,302\n2023-01-01 00:00,303\n2024-01-01 00:00,304\n";
    let keys = "quantity = 'carbon'";
    assert_eq!(read(yearly, keys).expect("it is read").facts.step.as_deref(), Some("1 year"));
    assert!(reads(yearly, keys).ends_with("2024-01-01T00:00=304 until 2025-01-01T00:00"), "{}", reads(yearly, keys));
    // 2022 is no second of the simulated time.
    let years = "Entity,Year,Carbon intensity (g/kWh)\nA,2022,302\nA,2023,303\nA,2024,304\n";
    assert_eq!(
        reads(years, "quantity = 'carbon'; time_column = 'Year'; timezone = 'UTC'"),
        "2022-01-01T00:00=302 2023-01-01T00:00=303 2024-01-01T00:00=304 until 2025-01-01T00:00"
    );
    let months = |months: &[u32]| {
        let row = |month: &u32| format!("2023-{month:02}-01 00:00,{month}\n");
        "Datetime,carbon_g_per_kwh\n".to_owned() + &months.iter().map(row).collect::<String>()
    };
    let utc = "quantity = 'carbon'; timezone = 'UTC'";
    assert!(reads(months(&[9, 10, 11, 12]), utc).ends_with("until 2024-01-01T00:00"));
    let berlin = "quantity = 'carbon'; timezone = 'Europe/Berlin'";
    assert!(reads(months(&[8, 9, 10]), berlin).ends_with("2023-09-30T22:00=10 until 2023-10-31T23:00"));
    let refusal = refused(months(&[1, 2, 4, 5, 6]), utc);
    assert!(
        refusal.starts_with("no value at 2023-03-01T00:00:00Z; 1 missing in all, at the step of 1 month"),
        "{refusal}"
    );
    assert_eq!(cleans(months(&[1, 2, 4, 5, 6]), &format!("{utc}; gaps = 'hold'")).1, "5 read, 5 kept, 1 time_filled");
}

#[test]
fn times_may_be_the_ends_of_intervals() {
    let ends = "Interval End,LMP (USD/MWh)\n2025-03-03 08:00:00-06:00,10\n2025-03-03 09:00:00-06:00,20\n2025-03-03 10:00:00-06:00,30\n";
    let series = "2025-03-03T13:00=0.01 2025-03-03T14:00=0.02 2025-03-03T15:00=0.03 until 2025-03-03T16:00";
    assert_eq!(reads(ends, "quantity = 'price'"), series);
    assert_eq!(reads(ends, "quantity = 'price'; time_column = 'Interval End'"), series);
    assert_eq!(reads(ends.replace("Interval End", "time"), "quantity = 'price'; interval_time = 'end'"), series);
    let begins = reads(ends, "quantity = 'price'; interval_time = 'begin'");
    assert!(begins.starts_with("2025-03-03T14:00=0.01") && begins.ends_with("until 2025-03-03T17:00"), "{begins}");
    // Begins come first where a file has both.
    let both = "begin (UTC),end (UTC),price (EUR/MWh)\n2025-03-03 08:00,2025-03-03 09:00,10\n2025-03-03 09:00,2025-03-03 10:00,20\n";
    assert!(reads(both, "quantity = 'price'").starts_with("2025-03-03T08:00=0.01"));
    let uneven = "end,price EUR/kWh\n10,1\n20,2\n25,3\n40,4\n";
    assert!(refused(uneven, "quantity = 'price'").starts_with("`interval_time` does not fit the file"));
    let monthly = "month end (UTC),price EUR/kWh\n2023-02-01,1\n2023-03-01,2\n";
    assert_eq!(
        reads(monthly, "quantity = 'price'; time_column = 'month end (UTC)'"),
        "2023-01-01T00:00=1 2023-02-01T00:00=2 until 2023-03-01T00:00"
    );
}

#[test]
fn a_column_of_currencies_contradicts_one_unit() {
    let text = "time,price_per_mwh,currency\n2019-11-19T22:00:00Z,205,PLN\n2019-11-19T23:00:00Z,47,EUR\n2019-11-20T00:00:00Z,45,EUR\n";
    let refusal = refused(text, "quantity = 'price'; unit = 'PLN/MWh'");
    assert!(refusal.starts_with("line 3, column \"currency\": \"EUR\" follows \"PLN\""), "{refusal}");
    let one = text.replace("PLN", "EUR");
    assert_eq!(
        read(&one, "quantity = 'price'; unit = 'EUR/MWh'").expect("it is read").currency.as_deref(),
        Some("EUR")
    );
    let refusal = refused(one, "quantity = 'price'; unit = 'PLN/MWh'");
    assert!(refusal.contains("\"EUR\" is another currency than PLN, that of the unit"), "{refusal}");
}

#[test]
fn a_unit_that_contradicts_the_name_is_refused() {
    let text = "time,Price (SEK/MWh)\n0,500\n3600,600\n";
    let refusal = refused(text, "quantity = 'price'; unit = 'EUR/MWh'");
    assert!(
        refusal.starts_with("`unit` does not fit the file: \"EUR/MWh\" contradicts the name of the column"),
        "{refusal}"
    );
    let series = read(text, "quantity = 'price'; unit = '0.1 EUR/MWh'").expect("it is read");
    assert_eq!((series.values.clone(), series.currency.as_deref()), (vec![0.05, 0.06], Some("EUR")));
}

/// Units beside the values: in a column, once for the whole list, and for each list of Open-Meteo.
#[test]
fn a_unit_that_contradicts_the_file_is_refused() {
    let watttime = r#"{"data": [{"point_time": "2022-07-15T00:00:00+00:00", "value": 870.5},
        {"point_time": "2022-07-15T00:05:00+00:00", "value": 860}],
        "meta": {"region": "CAISO_NORTH", "signal_type": "co2_moer", "units": "lbs_co2_per_mwh"}}"#;
    let refusal = refused(watttime, "quantity = 'carbon'; unit = 'g/kWh'");
    assert!(
        refusal.contains("row 1, column \"units\": \"lbs_co2_per_mwh\" is another unit than \"g/kWh\""),
        "{refusal}"
    );
    let moer = read(watttime, "quantity = 'carbon'; unit = 'lb/MWh'").expect("it is read");
    assert_eq!(moer.values, [394.852_158_085, 390.089_438_2]);
    assert_eq!(read(watttime, "quantity = 'carbon'; unit = '1 g/kWh'").expect("it is read").values, [870.5, 860.0]);
    let column = "time,value,unit\n0,42,Eur/MWh\n3600,43,Eur/MWh\n";
    assert_eq!(reads(column, "quantity = 'price'; unit = 'EUR/MWh'"), "0s=0.042 3600s=0.043 until 7200s");
    for unit in ["EUR/kWh", "SEK/MWh"] {
        let refusal = refused(column, &format!("quantity = 'price'; unit = '{unit}'"));
        assert!(refusal.contains(&format!("\"Eur/MWh\" is another unit than \"{unit}\"")), "{refusal}");
    }
    let fahrenheit = super::forms::WEATHER.replace("null", "12");
    let refusal = refused(fahrenheit, "quantity = 'temperature'; unit = 'F'");
    assert!(refusal.contains("the unit \"°C\" of the file is another unit than \"F\""), "{refusal}");
}

const ENERGINET: &str = "TimeUTC;TimeDK;PriceArea;DayAheadPriceEUR;DayAheadPriceDKK\n\
                         2025-11-03 10:15:00;2025-11-03 11:15:00;DK1;75,59;564,5\n\
                         2025-11-03 10:00:00;2025-11-03 11:00:00;DK1;77,59;579,5\n\
                         2025-11-03 09:45:00;2025-11-03 10:45:00;DK1;78,59;587,5\n";

#[test]
fn prices_of_energinet() {
    let keys = "quantity = 'price'; column = 'DayAheadPriceEUR'; unit = 'EUR/MWh'";
    let series = read(ENERGINET, keys).expect("it is read");
    assert_eq!(
        (series.facts.times.as_str(), series.zone.as_deref()),
        ("UTC, by the name of the column of times", Some("DK1"))
    );
    let shown = "2025-11-03T09:45=0.07859 2025-11-03T10:00=0.07759 2025-11-03T10:15=0.07559 until 2025-11-03T10:30";
    assert_eq!(reads(ENERGINET, keys), shown);
    assert_eq!(reads(ENERGINET.replace("TimeUTC", "HourUTC").replace("TimeDK", "HourDK"), keys), shown);
    let danish = "quantity = 'price'; column = 'DayAheadPriceDKK'; unit = 'EUR/MWh'";
    assert!(refused(ENERGINET, danish).contains("\"EUR/MWh\" contradicts the name of the column"));
    let areas = ENERGINET
        .lines()
        .skip(1)
        .map(|row| format!("{row}\n{}\n", row.replace("DK1;75,59", "DK2;1").replace("DK1", "DK2")));
    let areas = format!("{}\n{}", ENERGINET.lines().next().expect("a header"), areas.collect::<String>());
    assert_eq!(
        refused(&areas, keys),
        "`zone` does not fit the file: the column \"PriceArea\" has several zones, and a signal is of one: set it to one of \
         \"DK1\", \"DK2\""
    );
    let one = cleans(&areas, &format!("{keys}; zone = 'DK1'"));
    assert_eq!(one, (shown.to_owned(), "6 read, 3 kept, 3 other_zone".to_owned()));
    assert!(refused(&areas, &format!("{keys}; zone = 'SE3'")).contains("no row is of the zone \"SE3\""));
    assert!(
        refused("time,price EUR/kWh\n0,1\n1,2\n", "quantity = 'price'; zone = 'SE3'").contains("`zone` does not fit")
    );
}

/// 2025-10-26 in Berlin, in quarters of an hour: 02:00 to 02:45 twice.
fn autumn() -> String {
    let quarters = |hour: u32| (0..4).map(move |quarter| format!("2025-10-26 {hour:02}:{:02}", quarter * 15));
    let times = [0, 1, 2, 2, 3, 4].into_iter().flat_map(quarters).enumerate();
    "time,price (EUR/MWh)\n".to_owned() + &times.map(|(price, time)| format!("{time},{price}\n")).collect::<String>()
}

#[test]
fn the_hour_twice_in_quarters() {
    let series = read(autumn(), "quantity = 'price'; timezone = 'Europe/Berlin'").expect("it is read");
    assert_eq!(counts(&series), "24 read, 24 kept");
    assert_eq!([series.times_s[0], series.end_s].map(|at| time(&series, at)), ["2025-10-25T22:00", "2025-10-26T04:00"]);
    assert!(series.values.windows(2).all(|pair| pair[0] < pair[1]));
    for zone in ["UTC", "Etc/GMT-1"] {
        let refusal = refused(autumn(), &format!("quantity = 'price'; timezone = '{zone}'"));
        assert!(refusal.contains("if it is the hour in which the clocks went back, set `timezone`"), "{refusal}");
    }
    // From the latest time on, as some publishers sort.
    let mut lines: Vec<String> = autumn().lines().map(str::to_owned).collect();
    lines[1..].reverse();
    let backwards = read(lines.join("\n"), "quantity = 'price'; timezone = 'Europe/Berlin'").expect("it is read");
    assert_eq!((backwards.times_s, backwards.values), (series.times_s, series.values));
}

/// Columns as polars writes them.
#[test]
fn string_views_decimals_and_dates() {
    let texts = |texts: &[&str]| -> ArrayRef { Arc::new(StringViewArray::from(texts.to_vec())) };
    let numbers = || -> ArrayRef { Arc::new(Float64Array::from(vec![100.0, 110.0])) };
    let times = texts(&["2025-03-03T08:00:00Z", "2025-03-03T09:00:00Z"]);
    let shown = "2025-03-03T08:00=100 2025-03-03T09:00=110 until 2025-03-03T10:00";
    let of =
        |time: &ArrayRef, value: ArrayRef| file(vec![("timestamp", Arc::clone(time)), ("carbon_intensity", value)]);
    assert_eq!(reads(of(&times, numbers()), "quantity = 'carbon'"), shown);
    let decimals = Decimal128Array::from(vec![1000, 1100]).with_precision_and_scale(10, 1).expect("a scale");
    assert_eq!(reads(of(&times, Arc::new(decimals)), "quantity = 'carbon'"), shown);
    // Two bytes each in a dictionary, as a short decimal of Python's.
    let halves = Float16Array::from_iter_values([100, 110].map(ArrowNativeType::usize_as));
    assert_eq!(reads(of(&times, Arc::new(halves)), "quantity = 'carbon'"), shown);
    // Texts without an offset are of no zone, unlike timestamps of Parquet.
    let local = of(&texts(&["2025-03-03 08:00", "2025-03-03 09:00"]), numbers());
    assert!(refused(&local, "quantity = 'carbon'").starts_with("row 1: the time \"2025-03-03 08:00\" has no offset"));
    let days: ArrayRef = Arc::new(Date32Array::from(vec![20_150, 20_151]));
    let dated = of(&days, numbers());
    assert_eq!(
        reads(dated, "quantity = 'carbon'; timezone = 'UTC'"),
        "2025-03-03T00:00=100 2025-03-04T00:00=110 until 2025-03-05T00:00"
    );
}

#[test]
fn units_of_money() {
    let of = |unit: &str| {
        let series = read(format!("time,price {unit}\n0,20\n3600,30\n"), "quantity = 'price'").expect("it is read");
        (series.values[0], series.currency)
    };
    assert_eq!(of("$/MWh"), (0.02, None));
    assert_eq!(of("p/kWh"), (0.2, Some("GBP".to_owned())));
    assert_eq!(of("öre/kWh"), (0.2, None));
}

#[test]
fn times_of_publishers() {
    let price =
        |column: &str, times: [&str; 2]| format!("{column},price (EUR/MWh)\n{},10\n{},20\n", times[0], times[1]);
    let shown = "2025-03-03T23:00=0.01 2025-03-04T00:00=0.02 until 2025-03-04T01:00";
    for times in [
        ["2025-03-03 11:00 PM", "2025-03-04 12:00 AM"],
        ["2025-03-03 23:00", "2025-03-03 24:00"],
        ["03.03.2025 23:00 - 04.03.2025 00:00", "04.03.2025 00:00 - 04.03.2025 01:00"],
        ["03/03/2025 23:00:00 - 04/03/2025 00:00:00", "04/03/2025 00:00:00 - 04/03/2025 01:00:00"],
    ] {
        assert_eq!(reads(price("MTU (UTC)", times), "quantity = 'price'"), shown, "{times:?}");
    }
}

#[test]
fn days_and_months_are_told_apart() {
    let refusal = refused("time (UTC),price (EUR/MWh)\n04/03/2025 00:00,10\n", "quantity = 'price'");
    assert!(refusal.contains("may begin with the day or with the month: write the year first"), "{refusal}");
}

#[test]
fn fixed_offsets_have_names_with_a_reversed_sign() {
    let text = "time,price (EUR/MWh)\n2025-03-04 00:00,10\n2025-03-04 01:00,20\n";
    let of = |zone: &str| refused(text, &format!("quantity = 'price'; timezone = '{zone}'"));
    for (zone, name) in
        [("UTC+2", "UTC+2 is \"Etc/GMT-2\""), ("GMT-05:00", "UTC-5 is \"Etc/GMT+5\""), ("+00:00", "\"UTC\"")]
    {
        assert!(of(zone).contains(name), "{}", of(zone));
    }
    assert!(!of("UTC+05:30").contains("Etc"));
    assert!(refused(text, "quantity = 'price'").contains("for a fixed offset such as UTC+1 to \"Etc/GMT-1\""));
}

#[test]
fn dates_and_hours_in_two_columns() {
    let text = |hours: &str, rows: &[(&str, &str)]| {
        let row = |(at, (date, hour)): (usize, &(&str, &str))| format!("{date},{hour},{at}\n");
        format!("Date,{hours},Price (CAD/MWh)\n") + &rows.iter().enumerate().map(row).collect::<String>()
    };
    let keys = "quantity = 'price'; timezone = 'Etc/GMT+5'";
    let shown = "2025-03-04T04:00=0 2025-03-04T05:00=0.001 until 2025-03-04T06:00";
    let ends = [("2025-03-03", "24"), ("2025-03-04", "1")];
    assert_eq!(reads(text("Hour", &ends), keys), shown);
    assert_eq!(reads(text("Hour Ending", &[("2025-03-03", "24:00"), ("2025-03-04", "01:00")]), keys), shown);
    assert_eq!(reads(text("Hour", &[("2025-03-03", "23"), ("2025-03-04", "0")]), keys), shown);
    let clocks = text("Time", &[("2025-03-03", "23:00"), ("2025-03-04", "00:00")]);
    assert_eq!(reads(&clocks, keys), shown);
    assert_eq!(reads(clocks.replace("Date,Time", "Datum,Uhrzeit").replace(":00", ":00:00"), keys), shown);
    let midday = text("Hour", &[("2025-03-03", "11"), ("2025-03-03", "12")]);
    assert!(
        refused(&midday, keys)
            .starts_with("`interval_time` does not fit the file: the column \"Hour\" may have begins")
    );
    assert!(reads(&midday, &format!("{keys}; interval_time = 'end'")).starts_with("2025-03-03T15:00=0"));
    let twelve = text("Time", &[("2025-03-03", "11:00 PM"), ("2025-03-04", "12:00 AM")]);
    assert_eq!(reads(&twelve, keys), shown);
    for hour in ["x", "25", "13:00 PM"] {
        let refusal = refused(text("Hour", &[("2025-03-03", hour)]), keys);
        assert_eq!(refusal, format!("line 2, column \"Hour\": \"{hour}\" is no hour from 0 to 24"));
    }
    let wrong_date = refused(text("Hour", &[("2025-02-30", "25")]), keys);
    assert!(wrong_date.starts_with("line 2, column \"Date\": \"2025-02-30\" is not a time"), "{wrong_date}");
}

#[test]
fn all_problems_of_columns_and_settings_are_reported() {
    let keys = "quantity = 'price'; time_column = 'when'; column = 'what'; unit = 'EUR'; timezone = 'Berlin'";
    let refusal = refused("time,a,b\n0,1,2\n", keys);
    for part in ["column \"when\"", "column \"what\"", "\"EUR\" is no unit", "time zone \"Berlin\""] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
}

#[test]
fn lists_in_json() {
    let uk = r#"{"data": [
        {"from": "2023-03-14T00:00Z", "to": "2023-03-14T00:30Z", "intensity": {"forecast": 100, "actual": 90, "index": "low"}},
        {"from": "2023-03-14T00:30Z", "to": "2023-03-14T01:00Z", "intensity": {"forecast": 110, "actual": 95, "index": "low"}},
        {"from": "2023-03-14T01:00Z", "to": "2023-03-14T01:30Z", "intensity": {"forecast": 120, "actual": null, "index": "low"}}]}"#;
    assert!(refused(uk, "quantity = 'carbon'").starts_with("several columns can be the values: set `column`"));
    assert_eq!(
        cleans(uk, "quantity = 'carbon'; column = 'intensity.actual'"),
        (
            "2023-03-14T00:00=90 2023-03-14T00:30=95 until 2023-03-14T01:00".to_owned(),
            "3 read, 2 kept, 1 empty_at_end".to_owned()
        )
    );
    let sdk = r#"[{"location": "eastus", "time": "2022-09-01T00:00:00+00:00", "rating": 300.5, "duration": "01:00:00"},
        {"location": "eastus", "time": "2022-09-01T01:00:00+00:00", "rating": 310, "duration": "01:00:00"}]"#;
    let series = read(sdk, "quantity = 'carbon'").expect("it is read");
    assert_eq!((series.values.clone(), series.zone.as_deref()), (vec![300.5, 310.0], Some("eastus")));
    let maps = r#"{"zone": "DE", "history": [{"zone": "DE", "carbonIntensity": 302, "datetime": "2018-04-25T18:00:00.000Z",
        "updatedAt": "2018-04-26T01:00:00.000Z", "isEstimated": false},
        {"zone": "DE", "carbonIntensity": 290, "datetime": "2018-04-25T19:00:00.000Z", "updatedAt": "2018-04-26T01:00:00.000Z"}]}"#;
    assert_eq!(reads(maps, "quantity = 'carbon'"), "2018-04-25T18:00=302 2018-04-25T19:00=290 until 2018-04-25T20:00");
    assert!(refused("[1, 2]", "quantity = 'carbon'").contains("a value of the list is no object"));
    assert!(refused("{\"data\": 3}", "quantity = 'carbon'").contains("it has none of the lists"));
}

#[test]
fn lines_before_the_header_are_counted() {
    let text = "sep=;\nPrices of the day\n\ntime;price (EUR/MWh)\n2025-03-03T08:00Z;1,5\n2025-03-03T09:00Z;2,5\n";
    assert_eq!(cleans(text, "quantity = 'price'").1, "4 read, 2 kept, 2 banner");
    let wrong = text.replace("2,5", "x");
    assert!(refused(wrong, "quantity = 'price'").starts_with("line 6, column"));
}

#[test]
fn rows_with_more_cells_than_the_header_make_it_no_banner() {
    let text = "time (UTC),price (EUR/MWh)\n2025-01-01 00:00,50,75\n2025-01-01 01:00,51,25\n";
    assert_eq!(refused(text, "quantity = 'price'"), "line 2 has 3 fields, and there are 2 columns");
}
