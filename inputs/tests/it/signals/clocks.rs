//! Clocks: times with offsets, of UTC, of a zone whose clocks change, and from the simulated time 0.

use crate::signals::{cleans, read, reads, refused};

const BERLIN: &str = "quantity = 'price'; timezone = 'Europe/Berlin'";
const REPAIRED: &str = "quantity = 'price'; timezone = 'Europe/Berlin'; clock_change = 'repair'";

/// A file of prices with these times on one day, at 0, 1, 2 and so on.
fn prices(times: &[&str]) -> String {
    let rows = times.iter().enumerate().map(|(price, time)| format!("{time},{price}\n"));
    "time,price EUR/kWh\n".to_owned() + &rows.collect::<String>()
}

fn on(day: &str, times: &[&str]) -> String {
    let times: Vec<String> = times.iter().map(|time| format!("{day} {time}")).collect();
    prices(&times.iter().map(String::as_str).collect::<Vec<_>>())
}

const SPRING: &str = "2023-03-26";
const AUTUMN: &str = "2023-10-29";

#[test]
fn local_times_become_instants() {
    let summer = on("2023-07-01", &["00:00", "01:00"]);
    assert_eq!(reads(&summer, BERLIN), "2023-06-30T22:00=0 2023-06-30T23:00=1 until 2023-07-01T00:00");
    let winter = on("2023-01-01", &["00:00", "01:00"]);
    assert_eq!(reads(&winter, BERLIN), "2022-12-31T23:00=0 2023-01-01T00:00=1 until 2023-01-01T01:00");
    let facts = |keys: &str| read(&winter, keys).expect("it is read").facts.times;
    assert_eq!(facts(BERLIN), "local times of Europe/Berlin");
    assert_eq!(facts("quantity = 'price'; timezone = 'utc'"), "UTC, by `timezone`");
    // The sign of these names is the opposite of the usual one.
    let fixed = "quantity = 'price'; timezone = 'Etc/GMT-1'";
    assert_eq!(reads(&summer, fixed), "2023-06-30T23:00=0 2023-07-01T00:00=1 until 2023-07-01T01:00");
}

#[test]
fn times_without_offset_need_a_zone() {
    assert_eq!(
        refused(on("2023-01-01", &["00:00"]), "quantity = 'price'"),
        "line 2: the time \"2023-01-01 00:00\" has no offset and the file names no zone, so it could be UTC or the time of \
         any local clock: set `timezone` to an IANA name such as \"Europe/Berlin\", to \"UTC\", or for a \
         fixed offset such as UTC+1 to \"Etc/GMT-1\""
    );
    assert_eq!(
        refused(on("2023-01-01", &["00:00"]), "quantity = 'price'; timezone = 'CET/CEST'"),
        "`timezone` does not fit the file: there is no time zone \"CET/CEST\"; names are IANA's, such as \"Europe/Berlin\""
    );
}

#[test]
fn the_hour_that_spring_skips() {
    // Right: 01:00 is followed by 03:00, an hour later.
    let right = on(SPRING, &["00:00", "01:00", "03:00"]);
    assert_eq!(
        cleans(&right, BERLIN),
        (
            "2023-03-25T23:00=0 2023-03-26T00:00=1 2023-03-26T01:00=2 until 2023-03-26T02:00".to_owned(),
            "3 read, 3 kept".to_owned()
        )
    );
    let wrong = on(SPRING, &["01:00", "02:00", "02:30", "03:00"]);
    assert_eq!(
        refused(&wrong, BERLIN),
        "line 3: 2023-03-26T02:00:00 does not exist in Europe/Berlin, where the clocks went forward (2 rows in all): set \
         `clock_change = \"repair\"` to drop such rows; if the file's clock never changes, name a zone without clock changes, \
         such as \"Etc/GMT-1\" for UTC+1"
    );
    assert_eq!(
        cleans(&wrong, REPAIRED),
        (
            "2023-03-26T00:00=0 2023-03-26T01:00=3 until 2023-03-26T02:00".to_owned(),
            "4 read, 2 kept, 2 no_such_time".to_owned()
        )
    );
    let hours = on(SPRING, &["01:00", "02:00", "03:00"]);
    let fixed = "quantity = 'price'; timezone = 'Etc/GMT-1'";
    assert_eq!(reads(&hours, fixed), "2023-03-26T00:00=0 2023-03-26T01:00=1 2023-03-26T02:00=2 until 2023-03-26T03:00");
}

#[test]
fn the_hour_that_autumn_repeats() {
    let right = on(AUTUMN, &["01:00", "02:00", "02:00", "03:00"]);
    assert_eq!(
        cleans(&right, BERLIN),
        (
            "2023-10-28T23:00=0 2023-10-29T00:00=1 2023-10-29T01:00=2 2023-10-29T02:00=3 until 2023-10-29T03:00"
                .to_owned(),
            "4 read, 4 kept".to_owned()
        )
    );
    // Half hours: the clocks show 02:00 and 02:30, then both again.
    let halves = on(AUTUMN, &["01:30", "02:00", "02:30", "02:00", "02:30", "03:00"]);
    assert_eq!(
        reads(&halves, BERLIN),
        "2023-10-28T23:30=0 2023-10-29T00:00=1 2023-10-29T00:30=2 2023-10-29T01:00=3 2023-10-29T01:30=4 2023-10-29T02:00=5 \
         until 2023-10-29T02:30"
    );
    let once = on(AUTUMN, &["01:00", "02:00", "03:00"]);
    assert_eq!(
        refused(&once, BERLIN),
        "line 3: the clocks of Europe/Berlin showed 2023-10-29T02:00:00 twice, where they went back, and the file has it \
         once (1 row in all): set `clock_change = \"repair\"` to use the value for both; if the file's clock never changes, \
         name a zone without clock changes, such as \"Etc/GMT-1\" for UTC+1"
    );
    assert_eq!(
        cleans(&once, REPAIRED),
        (
            "2023-10-28T23:00=0 2023-10-29T00:00=1 2023-10-29T01:00=1 2023-10-29T02:00=2 until 2023-10-29T03:00"
                .to_owned(),
            "3 read, 3 kept, 1 second_of_two".to_owned()
        )
    );
}

/// The rows of one day with these hours, at 0, 1, 2 and so on.
fn hours(column: &str, day: &str, hours: &[u8]) -> String {
    let rows = hours.iter().enumerate().map(|(price, hour)| format!("{day},{hour},{price}\n"));
    format!("Date,{column},price EUR/kWh\n") + &rows.collect::<String>()
}

/// An hour of a day is a number of an interval: hour 3 begins at 02:00.
#[test]
fn numbered_hours_on_days_of_clock_change() {
    let all: Vec<u8> = (1..=24).collect();
    for column in ["Hour", "Hour Ending"] {
        let autumn = [&[1, 2, 3], &all[2..]].concat();
        let (series, rows) = cleans(hours(column, AUTUMN, &autumn), BERLIN);
        assert!(
            series.starts_with(
                "2023-10-28T22:00=0 2023-10-28T23:00=1 2023-10-29T00:00=2 2023-10-29T01:00=3 2023-10-29T02:00=4 "
            ),
            "{series}"
        );
        assert!(series.ends_with("2023-10-29T22:00=24 until 2023-10-29T23:00"), "{series}");
        assert_eq!(rows, "25 read, 25 kept");
        let spring = [&[1, 2], &all[3..]].concat();
        let (series, rows) = cleans(hours(column, SPRING, &spring), BERLIN);
        assert!(series.starts_with("2023-03-25T23:00=0 2023-03-26T00:00=1 2023-03-26T01:00=2 "), "{series}");
        assert!(series.ends_with("2023-03-26T21:00=22 until 2023-03-26T22:00"), "{series}");
        assert_eq!(rows, "23 read, 23 kept");
    }
    // Every third hour: the interval is longer than an hour.
    let thirds = hours("Hour", "2023-01-01", &[3, 6, 9, 12, 15, 18, 21, 24]);
    assert!(reads(&thirds, BERLIN).starts_with("2022-12-31T23:00=0 2023-01-01T02:00=1 "));
}

#[test]
fn a_time_of_the_repeated_hour_more_than_twice_is_a_duplicate() {
    let thrice = on(AUTUMN, &["01:00", "02:00", "02:00", "02:00", "03:00"]);
    assert_eq!(
        refused(&thrice, BERLIN),
        "line 5: the time 2023-10-29T01:00:00Z (2023-10-29T02:00:00 in Europe/Berlin) occurs again with another value (1 row \
         in all): set `duplicates` to \"first\", \"last\" or \"mean\" to accept them"
    );
    let first = format!("{BERLIN}; duplicates = 'first'");
    assert_eq!(cleans(&thrice, &first).1, "5 read, 4 kept, 1 duplicate");
}

#[test]
fn a_file_may_begin_or_end_in_the_repeated_hour() {
    let begins = on(AUTUMN, &["02:00", "03:00"]);
    assert!(refused(&begins, BERLIN).contains("twice"));
    assert_eq!(
        cleans(&begins, REPAIRED),
        (
            "2023-10-29T00:00=0 2023-10-29T01:00=0 2023-10-29T02:00=1 until 2023-10-29T03:00".to_owned(),
            "2 read, 2 kept, 1 second_of_two".to_owned()
        )
    );
    let ends = on(AUTUMN, &["01:00", "02:00", "02:00"]);
    assert_eq!(reads(&ends, BERLIN), "2023-10-28T23:00=0 2023-10-29T00:00=1 2023-10-29T01:00=2 until 2023-10-29T02:00");
}

/// An empty value is not the value of a second hour: the second hour is a gap as the first is.
#[test]
fn repairs_do_not_repeat_empty_values() {
    let empty = on(AUTUMN, &["00:00", "01:00", "02:00", "03:00", "04:00"]).replace("02:00,2", "02:00,");
    assert!(
        refused(&empty, REPAIRED)
            .starts_with("no value at 2023-10-29T00:00:00Z (2023-10-29T02:00:00 in Europe/Berlin)")
    );
    assert_eq!(
        cleans(&empty, &format!("{REPAIRED}; gaps = 'hold'")),
        (
            "2023-10-28T22:00=0 2023-10-28T23:00=1 2023-10-29T00:00=1 2023-10-29T01:00=1 2023-10-29T02:00=3 \
             2023-10-29T03:00=4 until 2023-10-29T04:00"
                .to_owned(),
            "5 read, 5 kept, 1 value_filled, 1 time_filled".to_owned()
        )
    );
    // At the end, the row is dropped, and nothing is added.
    let last = on(AUTUMN, &["00:00", "01:00", "02:00"]).replace("02:00,2", "02:00,");
    assert_eq!(
        cleans(&last, REPAIRED),
        (
            "2023-10-28T22:00=0 2023-10-28T23:00=1 until 2023-10-29T00:00".to_owned(),
            "3 read, 2 kept, 1 empty_at_end".to_owned()
        )
    );
}

#[test]
fn times_with_offsets_need_no_zone() {
    let market = prices(&[
        "2023-11-05 00:00:00-05:00",
        "2023-11-05 01:00:00-05:00",
        "2023-11-05 01:00:00-06:00",
        "2023-11-05 02:00:00-06:00",
    ]);
    assert_eq!(
        reads(&market, "quantity = 'price'"),
        "2023-11-05T05:00=0 2023-11-05T06:00=1 2023-11-05T07:00=2 2023-11-05T08:00=3 until 2023-11-05T09:00"
    );
    assert_eq!(
        refused(&market, "quantity = 'price'; timezone = 'America/Chicago'"),
        "`timezone` does not fit the file: its times need no zone (the times have offsets); remove it"
    );
}

#[test]
fn utc_is_known_by_the_name_of_the_column() {
    let utc = "Datetime (UTC),Price (EUR/MWh)\n2023-01-01 00:00:00,5\n";
    let series = read(utc, "quantity = 'price'").expect("it is read");
    assert_eq!(series.facts.times, "UTC, by the name of the column of times");
    assert_eq!(reads(utc, "quantity = 'price'; timezone = 'UTC'"), "2023-01-01T00:00=0.005 until 2023-01-01T00:00");
    assert_eq!(
        refused(utc, BERLIN),
        "`timezone` does not fit the file: UTC, by the name of the column of times, not Europe/Berlin; remove it"
    );
}

#[test]
fn numbers_are_unix_times_or_offsets() {
    let keys = "quantity = 'price'";
    let numbered = |numbers: &[&str]| reads(prices(numbers), keys);
    assert_eq!(numbered(&["0", "300"]), "0s=0 300s=1 until 600s");
    assert_eq!(numbered(&["-1.5", "0", "1.5"]), "-1.5s=0 0s=1 1.5s=2 until 3s");
    assert_eq!(numbered(&["1577836800", "1577840400"]), "2020-01-01T00:00=0 2020-01-01T01:00=1 until 2020-01-01T02:00");
    assert_eq!(
        numbered(&["1577836800000", "1577840400000"]),
        "2020-01-01T00:00=0 2020-01-01T01:00=1 until 2020-01-01T02:00"
    );
    let facts = |numbers: &[&str]| read(prices(numbers), keys).expect("it is read").facts.times;
    assert_eq!(facts(&["0"]), "seconds from the simulated time 0");
    assert_eq!(facts(&["1577836800"]), "Unix times (s)");
    assert_eq!(facts(&["1577836800000"]), "Unix times (ms)");
    assert!(refused(prices(&["0"]), BERLIN).contains("its times need no zone (seconds from the simulated time 0)"));
}

#[test]
fn times_of_a_file_are_of_one_kind() {
    let keys = "quantity = 'price'; timezone = 'UTC'";
    for (times, sentence) in [
        (
            ["2023-01-01 00:00", "2023-01-01 01:00Z"],
            "line 3, column \"time\": \"2023-01-01 01:00Z\" is another kind of time than the first, \"2023-01-01 00:00\"",
        ),
        (["0", "2023-01-01"], "line 3, column \"time\": \"2023-01-01\" is another kind of time than the first, \"0\""),
        (["2023-01-01", "5"], "line 3, column \"time\": \"5\" is another kind of time than the first, \"2023-01-01\""),
        (
            ["500000000", "500003600"],
            "line 2, column \"time\": \"500000000\" is neither a Unix time nor seconds from the simulated time 0",
        ),
        (["1577836800", "1577836800000"], "line 3, column \"time\": \"1577836800000\" is not a time from 1970 to 2200"),
        (["9000000000", "9000003600"], "line 2, column \"time\": \"9000000000\" is not a time from 1970 to 2200"),
        (
            ["0", "9000000000"],
            "line 3, column \"time\": \"9000000000\" is more than 200 years from the simulated time 0",
        ),
    ] {
        assert_eq!(refused(prices(&times), keys), sentence);
    }
    assert!(
        refused(prices(&["01/02/2023 00:00"]), keys)
            .starts_with("line 2, column \"time\": \"01/02/2023 00:00\" may begin with the day or with the month")
    );
    assert!(refused(prices(&["20230102"]), keys).contains("is not a time"));
}
