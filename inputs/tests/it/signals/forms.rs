//! Forms of files: what each is known by, its columns, and what is refused.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use powersweep_experiments::signals::Form;

use crate::signals::{cleans, counts, read, reads, refused, shown};

const CARBON: &str = "quantity = 'carbon'";
const PRICE: &str = "quantity = 'price'";

/// Electricity Maps, as exported from 2022 to 2024.
pub(crate) const EXPORT: &str = "\
Datetime (UTC),Country,Zone Name,Zone Id,Carbon Intensity gCO₂eq/kWh (direct),Carbon Intensity gCO₂eq/kWh (LCA),\
Low Carbon Percentage,Renewable Percentage,Data Source,Data Estimated,Data Estimation Method\r
2023-01-01 00:00:00,Germany,Germany,DE,140.5,185.5,83.79,78.42,entsoe.eu,false,\r
2023-01-01 01:00:00,Germany,Germany,DE,140.25,185.25,83.85,78.93,\" entsoe.eu;  x.org\",True,ESTIMATED_FORECASTS_HIERARCHY\r
2023-01-01 02:00:00,Germany,Germany,DE,141,186,83.85,78.93,entsoe.eu; Electricity Maps Estimation,,\r
";

/// Electricity Maps, as exported since 2025.
pub(crate) const NEW_EXPORT: &str = "\
Datetime (UTC),Country,Zone name,Zone id,Carbon intensity gCO₂eq/kWh (direct),Carbon intensity gCO₂eq/kWh (Life cycle),\
Carbon-free energy percentage (CFE%),Renewable energy percentage (RE%),Data source,Data estimated,Data estimation method
2025-01-01 00:00:00,France,France,FR,20.5,33.25,94,25,entsoe.eu,false,
2025-01-01 01:00:00,France,France,FR,21.5,34.25,94,25,entsoe.eu,false,
";

/// Electricity Maps, as exported before 2022; CarbonCast and GAIA cut it to `datetime,carbon_intensity_avg`.
pub(crate) const OLD_EXPORT: &str = "\
datetime,created_at,updated_at,timestamp,zone_name,carbon_intensity_avg
2020-01-01T00:00:00+00:00,2021-06-17T09:27:00.12+00:00,2021-06-17T09:27:00.12+00:00,1577836800,US-CAL-CISO,332.5
2020-01-01T01:00:00+00:00,2021-06-17T10:16:13.84+00:00,2021-06-17T10:16:13.84+00:00,1577840400,US-CAL-CISO,363.25
";

#[test]
fn electricity_maps_of_every_year() {
    let series = read(EXPORT, CARBON).expect("it is read");
    assert_eq!(
        shown(&series),
        "2023-01-01T00:00=185.5 2023-01-01T01:00~185.25 2023-01-01T02:00~186 until 2023-01-01T03:00"
    );
    let facts = &series.facts;
    assert_eq!((facts.form, facts.flagged, facts.estimated_by_source), (Form::ElectricityMaps, 1, 1));
    assert_eq!((&*facts.time_column, &*facts.unit), ("Datetime (UTC)", "gCO₂eq/kWh"));
    assert_eq!(facts.column, "Carbon Intensity gCO₂eq/kWh (LCA)");
    assert_eq!((series.zone.as_deref(), series.facts.step_s), (Some("DE"), Some(3600.0)));
    assert_eq!(
        reads(EXPORT, "quantity = 'carbon'; column = 'direct'"),
        "2023-01-01T00:00=140.5 2023-01-01T01:00~140.25 2023-01-01T02:00~141 until 2023-01-01T03:00"
    );
    let new = "2025-01-01T00:00=33.25 2025-01-01T01:00=34.25 until 2025-01-01T02:00";
    for keys in
        ["", "form = 'electricity-maps'", "column = 'lifecycle'", "column = 'carbon intensity gCO₂eq/kWh (life cycle)'"]
    {
        assert_eq!(reads(NEW_EXPORT, &format!("{CARBON}; {keys}")), new);
    }
    assert_eq!(
        reads(NEW_EXPORT, "quantity = 'carbon'; column = 'direct'"),
        "2025-01-01T00:00=20.5 2025-01-01T01:00=21.5 until 2025-01-01T02:00"
    );
    let old = read(OLD_EXPORT, CARBON).expect("it is read");
    assert_eq!(shown(&old), "2020-01-01T00:00=332.5 2020-01-01T01:00=363.25 until 2020-01-01T02:00");
    assert_eq!((&*old.facts.time_column, &*old.facts.column), ("timestamp", "carbon_intensity_avg"));
    assert_eq!((old.zone.as_deref(), old.estimated.len()), (Some("US-CAL-CISO"), 0));
    let gaia = "datetime,carbon_intensity_avg\n2020-01-01T00:00:00+00:00,332.5\n2020-01-01T01:00:00+00:00,363.25\n";
    assert_eq!(reads(gaia, CARBON), shown(&old));
    let by_text = "quantity = 'carbon'; time_column = 'datetime'";
    assert_eq!(reads(OLD_EXPORT, by_text), shown(&old));
}

#[test]
fn exports_of_electricity_maps_that_are_refused() {
    assert_eq!(
        refused(OLD_EXPORT, "quantity = 'carbon'; column = 'direct'"),
        "there is no column of direct carbon intensities: set `column`. Columns: \"datetime\", \"created_at\", \
         \"updated_at\", \"timestamp\", \"zone_name\", \"carbon_intensity_avg\""
    );
    let two_zones = EXPORT.replacen("Germany,DE,141", "Germany,DK,141", 1);
    assert_eq!(
        refused(two_zones, CARBON),
        "`zone` does not fit the file: the column \"Zone Id\" has several zones, and a signal is of one: set it to one of \"DE\", \
         \"DK\""
    );
    let odd_flag = EXPORT.replacen("True", "perhaps", 1);
    assert_eq!(refused(odd_flag, CARBON), "line 3, column \"Data Estimated\": \"perhaps\" is neither true nor false");
    let local = EXPORT.replacen("Datetime (UTC)", "Datetime", 1);
    assert!(
        refused(local, CARBON)
            .starts_with("there is no column of times as Electricity Maps names them: set `time_column`. ")
    );
    assert!(
        refused("time,value\n0,1\n", "quantity = 'carbon'; form = 'electricity-maps'; time_column = 'time'")
            .starts_with(
                "there is no column of lifecycle carbon intensities: set `column`. Columns: \"time\", \"value\""
            )
    );
    assert!(refused(EXPORT, PRICE).starts_with("several columns can be the values: set `column`. Columns: "));
}

/// A Parquet file of these columns.
fn parquet(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    parquet_with(columns, WriterProperties::default())
}

/// A Parquet file of these columns, written in this way.
pub(crate) fn parquet_with(columns: Vec<(&str, ArrayRef)>, properties: WriterProperties) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("a writer");
    writer.write(&batch).expect("it is written");
    writer.close().expect("it is closed");
    bytes
}

/// 2022-01-01 00:00 and 01:00 UTC.
const HOURS_S: [i64; 2] = [1_640_995_200, 1_640_998_800];

fn hours_ms() -> ArrayRef {
    Arc::new(TimestampMillisecondArray::from_iter_values(HOURS_S.map(|s| s * 1_000)))
}

/// A file as OpenDC's.
pub(crate) fn opendc() -> Vec<u8> {
    parquet(vec![("timestamp", hours_ms()), ("carbon_intensity", Arc::new(Float64Array::from(vec![80.5, 120.25])))])
}

#[test]
fn opendc_parquet() {
    let expected = "2022-01-01T00:00=80.5 2022-01-01T01:00=120.25 until 2022-01-01T02:00";
    let series = read(opendc(), CARBON).expect("it is read");
    assert_eq!(shown(&series), expected);
    assert_eq!((series.facts.form, &*series.facts.times), (Form::OpenDc, "UTC, as OpenDC reads them"));
    assert_eq!((&*series.facts.unit, series.estimated.len()), ("g/kWh", 0));
    assert_eq!(reads(opendc(), "quantity = 'carbon'; form = 'opendc'; timezone = 'UTC'"), expected);
    let values: ArrayRef = Arc::new(Float32Array::from(vec![80.5, 120.25]));
    let times: [ArrayRef; 3] = [
        Arc::new(TimestampSecondArray::from_iter_values(HOURS_S)),
        Arc::new(TimestampMicrosecondArray::from_iter_values(HOURS_S.map(|s| s * 1_000_000)).with_timezone("UTC")),
        Arc::new(
            TimestampNanosecondArray::from_iter_values(HOURS_S.map(|s| s * 1_000_000_000)).with_timezone("+02:00"),
        ),
    ];
    for times in times {
        let named: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let columns = vec![("carbon_intensity", values.clone()), ("name", named), ("timestamp", times)];
        assert_eq!(reads(parquet(columns), CARBON), expected);
    }
    let prices: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None]));
    let other = parquet(vec![("at", hours_ms()), ("eur_per_mwh", prices)]);
    assert_eq!(
        cleans(&other, "quantity = 'price'; time_column = 'at'; column = 'eur_per_mwh'"),
        ("2022-01-01T00:00=0.005 until 2022-01-01T00:00".to_owned(), "2 read, 1 kept, 1 empty_at_end".to_owned())
    );
}

#[test]
fn parquet_that_is_refused() {
    assert_eq!(
        refused(opendc(), PRICE),
        "column \"carbon_intensity\" has no unit in its name: set `unit`, such as \"EUR/MWh\", \"USD/kWh\" or \"ct/kWh\""
    );
    assert_eq!(
        refused(opendc(), "quantity = 'carbon'; column = 'co2'"),
        "there is no column \"co2\": set `column`. Columns: \"timestamp\", \"carbon_intensity\""
    );
    assert_eq!(
        refused(opendc(), "quantity = 'carbon'; time_column = 'carbon_intensity'"),
        "no column of values is found: set `column`. Columns: \"timestamp\", \"carbon_intensity\""
    );
    assert_eq!(
        refused(opendc(), "quantity = 'carbon'; timezone = 'Europe/Berlin'"),
        "`timezone` does not fit the file: UTC, as OpenDC reads them, not Europe/Berlin; remove it"
    );
    let intensities: ArrayRef = Arc::new(Float64Array::from(vec![80.0, -1.0]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(HOURS_S.to_vec()));
    assert_eq!(
        refused(parquet(vec![("timestamp", numbers), ("carbon_intensity", intensities.clone())]), CARBON),
        "row 2, column \"carbon_intensity\": \"-1\" is a negative carbon intensity",
        "whole numbers are Unix times"
    );
    assert_eq!(
        refused(parquet(vec![("timestamp", hours_ms()), ("carbon_intensity", hours_ms())]), CARBON),
        "row 1, column \"carbon_intensity\": \"2022-01-01T00:00:00\" is not a number: leave the cell empty where there is no value"
    );
    assert_eq!(
        refused(parquet(vec![("timestamp", hours_ms()), ("carbon_intensity", intensities.clone())]), CARBON),
        "row 2, column \"carbon_intensity\": \"-1\" is a negative carbon intensity"
    );
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![Some(HOURS_S[0] * 1_000), None]));
    let refusal = refused(parquet(vec![("timestamp", times), ("carbon_intensity", intensities.clone())]), CARBON);
    assert!(refusal.starts_with("row 2, column \"timestamp\": \"\" is not a time"), "{refusal}");
    for (ms, sentence) in [
        (i64::MIN, "the file is damaged, or not Parquet: timestamp has an impossible time"),
        (-3_000_000_000_000, "row 1, column \"timestamp\": \"1874-12-07T18:40:00\" is not a time"),
    ] {
        let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![ms, 0]));
        let refusal = refused(parquet(vec![("timestamp", times), ("carbon_intensity", intensities.clone())]), CARBON);
        assert!(refusal.starts_with(sentence), "{refusal}");
    }
    let none: ArrayRef = Arc::new(Float64Array::from(Vec::<f64>::new()));
    let no_times: ArrayRef = Arc::new(TimestampMillisecondArray::from(Vec::<i64>::new()));
    assert_eq!(
        refused(parquet(vec![("timestamp", no_times), ("carbon_intensity", none)]), CARBON),
        "the file has no rows"
    );
    let whole = opendc();
    for length in [4, 100, whole.len() - 1] {
        let refusal = refused(&whole[..length], CARBON);
        assert!(refusal.starts_with("the file is damaged, or not Parquet: "), "{refusal}");
    }
}

/// Great Britain's National Grid ESO.
pub(crate) const UK: &str = "from,intensity.forecast,intensity.actual
2023-03-14T03:30Z,69,72
2023-03-14T04:00Z,72,
";

#[test]
fn csv_finds_the_columns_that_can_be_meant() {
    let forecast = "quantity = 'carbon'; column = 'intensity.forecast'";
    assert_eq!(reads(UK, forecast), "2023-03-14T03:30=69 2023-03-14T04:00=72 until 2023-03-14T04:30");
    assert_eq!(cleans(UK, "quantity = 'carbon'; column = 'intensity.actual'").1, "2 read, 1 kept, 1 empty_at_end");
    assert_eq!(
        refused(UK, CARBON),
        "several columns can be the values: set `column`. Columns: \"from\", \"intensity.forecast\", \"intensity.actual\""
    );
    // The only column of values, whatever its name.
    let watttime = "oootime,Caiso_North\n2023-06-08 00:00:00,425\n";
    let keys = "quantity = 'carbon'; unit = 'lb/MWh'; timezone = 'UTC'";
    assert_eq!(reads(watttime, keys), "2023-06-08T00:00=192.77675725 until 2023-06-08T00:00");
    // The only column of the quantity.
    let mixed = "start,end,station,price [EUR/MWh],load [MW]\n2023-01-01T00:00Z,2023-01-01T01:00Z,a,5,900\n";
    assert_eq!(reads(mixed, PRICE), "2023-01-01T00:00=0.005 until 2023-01-01T00:00");
    assert_eq!(reads(mixed, "quantity = 'cap'"), "2023-01-01T00:00=900000000 until 2023-01-01T00:00");
    // Of several columns of times the one of UTC.
    let both = "Datetime (Local),Datetime (UTC),Price (USD/MWh)\n2023-01-01 01:00+01:00,2023-01-01 00:00,5\n";
    assert_eq!(reads(both, PRICE), "2023-01-01T00:00=0.005 until 2023-01-01T00:00");
    let two = "start,time,price (EUR/MWh)\n0,5,1\n";
    assert_eq!(
        refused(two, PRICE),
        "several columns can be the times: set `time_column`. Columns: \"start\", \"time\", \"price (EUR/MWh)\""
    );
    assert_eq!(reads(two, "quantity = 'price'; time_column = 'START'"), "0s=0.001 until 0s");
}

#[test]
fn csv_of_other_separators_and_line_ends() {
    let german = "\u{feff}Datum von;Datum bis;Deutschland/Luxemburg [€/MWh]\r\n01.01.2023 00:00;01.01.2023 01:00;-5,17\r\n\
                  01.01.2023 01:00;01.01.2023 02:00;-1,07\r\n";
    assert_eq!(
        reads(german, "quantity = 'price'; timezone = 'Europe/Berlin'"),
        "2022-12-31T23:00=-0.00517 2023-01-01T00:00=-0.00107 until 2023-01-01T01:00"
    );
    let tabs = "\n\ntime\tprice EUR/kWh\n0\t1,5\n\n10\t\" 2,5 \"\n";
    assert_eq!(reads(tabs, PRICE), "0s=1.5 10s=2.5 until 20s");
    let quoted = "\"time\",\"price, \"\"day ahead\"\" (EUR/kWh)\"\n\"0\",\"1\"\n";
    let series = read(quoted, PRICE).expect("it is read");
    assert_eq!(series.facts.column, "price, \"day ahead\" (EUR/kWh)");
    // pandas writes an index without a name.
    let unnamed = ",price EUR/kWh\n2023-01-01 00:00:00+00:00,1\n";
    assert_eq!(
        refused(unnamed, PRICE),
        "no column of times is found: set `time_column`. Columns: \"\", \"price EUR/kWh\""
    );
    assert_eq!(reads(unnamed, "quantity = 'price'; time_column = ''"), "2023-01-01T00:00=1 until 2023-01-01T00:00");
}

/// One number that has no separator of thousands says what the separator of all is.
#[test]
fn three_decimals_are_read_where_the_separator_is_clear() {
    let read = "0s=1.25 1s=0.125 until 2s";
    for text in ["0;1.250\n1;0.125\n", "0;1,250\n1;,125\n"] {
        assert_eq!(reads(format!("time;price EUR/kWh\n{text}"), PRICE), read, "{text}");
    }
    assert_eq!(reads("time,price EUR/kWh\n0,1.250\n1,2.125\n", PRICE), "0s=1.25 1s=2.125 until 2s");
}

#[test]
fn csv_that_is_refused() {
    for (text, sentence) in [
        ("time,price EUR/kWh\n", "the file has a header and no rows"),
        ("time,price EUR/kWh\n0,1\n\n10\n", "line 4 has 1 field, and there are 2 columns: is the file cut?"),
        ("time,price EUR/kWh\n0,1,2\n", "line 2 has 3 fields, and there are 2 columns"),
        (
            "price EUR/kWh\n1\n",
            "the first line, \"price EUR/kWh\", names one column: a table has several, separated by commas, semicolons or \
             tabs",
        ),
        (
            "time;price EUR/kWh\n0;1.000,5\n",
            "line 2, column \"price EUR/kWh\": \"1.000,5\" has more than one separator: numbers have no separators of thousands",
        ),
        (
            "time\tprice EUR/kWh\n0\t1,250\n1\t0.5\n2\t1,100\n",
            "line 3: \"0.5\" has another separator than \"1,250\" (line 2): write numbers without \
             separators of thousands, or separate the columns by commas: then a point is decimal",
        ),
        (
            "time;price EUR/kWh\n0;7\n1;1.250\n2;-10.125\n",
            "line 3: \"1.250\" can have three decimals or a separator of thousands: write numbers without separators of \
             thousands, or separate the columns by commas: then a point is decimal",
        ),
        (
            "time,price EUR/kWh\n0,\"1,5\"\n",
            "line 2, column \"price EUR/kWh\": \"1,5\" has a comma: numbers have a decimal point where commas separate columns",
        ),
        ("a,b\n1,2\n", "no column of times is found: set `time_column`. Columns: \"a\", \"b\""),
        ("time,from\n1,2\n", "several columns can be the times: set `time_column`. Columns: \"time\", \"from\""),
        (
            "time,Price (EUR/MWh),price (eur/mwh)\n1,2,3\n",
            "several columns can be the values: set `column`. Columns: \"time\", \"Price (EUR/MWh)\", \"price (eur/mwh)\"",
        ),
    ] {
        assert_eq!(refused(text, PRICE), sentence);
    }
    let twice = "time,Price,price\n1,2,3\n";
    assert_eq!(
        refused(twice, "quantity = 'price'; column = 'PRICE'"),
        "several columns have the name \"PRICE\": set `column`. Columns: \"time\", \"Price\", \"price\""
    );
    assert_eq!(
        refused(twice, "quantity = 'price'; column = 'time'"),
        "\"time\" is the column of times: set `column`. Columns: \"time\", \"Price\", \"price\""
    );
    let latin = b"time,price \xe9\n0,1\n";
    assert_eq!(refused(latin, PRICE), "the names of the columns are not UTF-8: save the file as UTF-8");
    let cell = b"time,price EUR/kWh\n0,1\n5,\xe9\n";
    assert_eq!(refused(cell, PRICE), "line 3, column \"price EUR/kWh\": \"\u{fffd}\" is not UTF-8");
}

/// Lines are those of an editor, also after blank lines and cells of several lines.
#[test]
fn lines_are_counted_as_editors_do() {
    for text in [
        "time,price EUR/kWh\n0,1\n\n\n10,x\n",
        "time,price EUR/kWh\r\n0,1\r\n\r\n\r\n10,x\r\n",
        "\n\n\ntime,price EUR/kWh\n10,x\n",
        "time,price EUR/kWh,note\n0,1,\"a\nb\nc\"\n10,x,\n",
    ] {
        assert!(
            refused(text, PRICE).starts_with("line 5, column \"price EUR/kWh\": \"x\" is not a number"),
            "{text:?}"
        );
    }
}

/// Open-Meteo.
pub(crate) const WEATHER: &str = r#"{"latitude": 50.1, "utc_offset_seconds": 3600, "timezone": "Europe/Berlin",
    "hourly_units": {"time": "iso8601", "temperature_2m": "°C", "cloudcover": "%"},
    "hourly": {"time": ["2023-07-01T00:00", "2023-07-01T01:00", "2023-07-01T02:00"],
               "temperature_2m": [12.5, null, 11], "cloudcover": [90, 80, 70]}}"#;

#[test]
fn open_meteo_json() {
    let keys = "quantity = 'temperature'; gaps = 'interpolate'";
    let series = read(WEATHER, keys).expect("it is read");
    // The offset holds for the whole file, in summer too.
    assert_eq!(
        shown(&series),
        "2023-06-30T23:00=12.5 2023-07-01T00:00=11.75 2023-07-01T01:00=11 until 2023-07-01T02:00"
    );
    assert_eq!(counts(&series), "3 read, 3 kept, 1 value_filled");
    let facts = &series.facts;
    assert_eq!((facts.form, &*facts.times), (Form::OpenMeteo, "UTC+1 h, by `utc_offset_seconds`"));
    assert_eq!((&*facts.time_column, &*facts.column, &*facts.unit), ("time", "temperature_2m", "°C"));
    let unix =
        WEATHER.replacen("\"2023-07-01T00:00\", \"2023-07-01T01:00\", \"2023-07-01T02:00\"", "0, 1688169600, 3", 1);
    let unix = unix.replacen("[0, 1688169600, 3]", "[1688166000, 1688169600, 1688173200]", 1);
    // Unix times are of UTC whatever the offset.
    assert_eq!(reads(unix, keys), shown(&series));
    let fahrenheit = WEATHER.replacen("°C", "°F", 1).replacen("null", "32", 1);
    assert!(reads(fahrenheit, keys).contains(" 2023-07-01T00:00=0 "));
    let share = "quantity = 'cap-share'; column = 'cloudcover'";
    assert_eq!(
        reads(WEATHER, share),
        "2023-06-30T23:00=0.9 2023-07-01T00:00=0.8 2023-07-01T01:00=0.7 until 2023-07-01T02:00"
    );
}

#[test]
fn json_that_is_refused() {
    let keys = "quantity = 'temperature'";
    for (from, to, sentence) in [
        ("3600", "null", "the file has no `utc_offset_seconds` of a clock"),
        ("3600", "360000", "the file has no `utc_offset_seconds` of a clock"),
        (
            "\"hourly\":",
            "\"reason\": \"Parameter 'x' is unknown\", \"daily\":",
            "the file is not an answer of Open-Meteo: it has no hourly values (Parameter 'x' is unknown)",
        ),
        ("null, 11", "null", "the file is not an answer of Open-Meteo: it has 3 times and 2 values"),
        (
            "\"temperature_2m\": [",
            "\"temperature\": [",
            "there is no column \"temperature_2m\": set `column`. Columns: \"cloudcover\", \"temperature\", \"time\"",
        ),
        (
            "null",
            "-500",
            "row 2, column \"temperature_2m\": \"-500\" is -500 degrees Celsius, which no air has: is the unit \"°C\" right?",
        ),
        (
            "\"2023-07-01T01:00\"",
            "\"noon\"",
            "row 2, column \"time\": \"noon\" is not a time: times are dates from 1970 to 2200 such as 2023-01-31 14:00 (with an offset such as \
             +01:00 or Z, or without), Unix times, or seconds from the simulated time 0",
        ),
    ] {
        assert_eq!(refused(WEATHER.replacen(from, to, 1), keys), sentence);
    }
    assert!(
        refused(WEATHER, keys)
            .starts_with("no value at 2023-07-01T00:00:00Z; 1 row without a value in all: set `gaps`")
    );
    assert_eq!(
        refused(WEATHER, PRICE),
        "the column of values is not known: set `column`. Columns: \"cloudcover\", \"temperature_2m\", \"time\""
    );
    for timezone in ["Europe/Berlin", "UTC"] {
        assert_eq!(
            refused(WEATHER, &format!("{keys}; timezone = '{timezone}'")),
            format!("`timezone` does not fit the file: UTC+1 h, by `utc_offset_seconds`, not {timezone}; remove it")
        );
    }
    assert_eq!(
        refused(format!("[{WEATHER}]"), keys),
        "the file has answers for several places: a signal is of one place"
    );
    assert!(refused(&WEATHER[..200], keys).starts_with("the file is not an answer of Open-Meteo: EOF while parsing"));
    assert_eq!(refused(b"{\"\xff\": 1}", keys), "the file is not an answer of Open-Meteo: it is not UTF-8");
}

#[test]
fn files_of_other_kinds_are_named() {
    for (bytes, sentence) in [
        (&b""[..], "the file is empty"),
        (b" \n", "the file is empty"),
        (
            b"\x1f\x8b\x08",
            "the file is compressed by gzip: decompress it, or give it the ending .gz; if it has that ending, it was compressed twice",
        ),
        (
            b"\x28\xb5\x2f\xfd",
            "the file is compressed by zstd: decompress it, or give it the ending .zst; if it has that ending, it was compressed twice",
        ),
        (b"PK\x03\x04", "the file is a ZIP archive or a spreadsheet: unpack it, or save its table as CSV"),
        (b"\xff\xfet\0", "the file is text in UTF-16: save it as UTF-8"),
        (b"<html>", "the file is a web page or a document of XML, not a table: download the file itself"),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            "the file is a pointer of Git LFS, not the file itself: run `git lfs pull`",
        ),
    ] {
        assert_eq!(refused(bytes, CARBON), sentence);
    }
    for (bytes, form, sentence) in [
        (&opendc()[..], "csv", "`form` does not fit the file: \"csv\" is a table of text, which this file is not"),
        (
            &opendc()[..],
            "electricity-maps",
            "`form` does not fit the file: \"electricity-maps\" is a table of text, which this file is not",
        ),
        (UK.as_bytes(), "opendc", "`form` does not fit the file: \"opendc\" is Parquet, which this file is not"),
        (UK.as_bytes(), "open-meteo", "`form` does not fit the file: \"open-meteo\" is JSON, which this file is not"),
        (WEATHER.as_bytes(), "csv", "`form` does not fit the file: \"csv\" is a table of text, which this file is not"),
    ] {
        assert_eq!(refused(bytes, &format!("{CARBON}; form = '{form}'")), sentence);
    }
}
