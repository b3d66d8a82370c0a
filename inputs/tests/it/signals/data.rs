//! Files of publishers: each is read, or refused with a sentence that is right about it.
//!
//! `POWERSWEEP_SIGNALS` names their folder, which is not part of the repository.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use powersweep_inputs::signals::Series;

use crate::signals::{counts, read, time};

/// Each file with its quantity. Below it, its series in a sentence, or the beginning of its refusal: without settings, then
/// with the keys above the sentence. Means are those of the folder's `README.md`, or were computed without these readers.
const TABLE: &str = r#"
carbon-electricitymaps/CA-ON_2023_hourly.csv.gz carbon
    8760 from 2023-01-01T00:00 by 3600 s: first 50.720, mean 72.847, CA-ON, estimated 13+0; 8760 read, 8760 kept
  column = 'direct'
    8760 from 2023-01-01T00:00 by 3600 s: first 30.050, mean 46.938, CA-ON, estimated 13+0; 8760 read, 8760 kept
carbon-electricitymaps/DE-LU_2023_hourly.csv.gz carbon
    8760 from 2023-01-01T00:00 by 3600 s: first 185.80, mean 366.97, DE, estimated 30+0; 8760 read, 8760 kept
  column = 'direct'
    8760 from 2023-01-01T00:00 by 3600 s: first 140.51, mean 307.66, DE, estimated 30+0; 8760 read, 8760 kept
carbon-electricitymaps/DE-LU_2024_hourly.csv.gz carbon
    8784 from 2024-01-01T00:00 by 3600 s: first 177.74, mean 332.07, DE, estimated 64+0; 8784 read, 8784 kept
  column = 'direct'
    8784 from 2024-01-01T00:00 by 3600 s: first 133.10, mean 273.93, DE, estimated 64+0; 8784 read, 8784 kept
carbon-electricitymaps/GB_2023_hourly.csv.gz carbon
    8760 from 2023-01-01T00:00 by 3600 s: first 91.440, mean 187.53, GB, estimated 20+3; 8760 read, 8760 kept
  column = 'direct'
    8760 from 2023-01-01T00:00 by 3600 s: first 62.550, mean 128.56, GB, estimated 20+3; 8760 read, 8760 kept
carbon-electricitymaps/IN-WE_2023_hourly.csv.gz carbon
    8760 from 2023-01-01T00:00 by 3600 s: first 775.35, mean 749.17, IN-WE, estimated 8760+0; 8760 read, 8760 kept
  column = 'direct'
    8760 from 2023-01-01T00:00 by 3600 s: first 717.28, mean 691.12, IN-WE, estimated 8760+0; 8760 read, 8760 kept
carbon-electricitymaps/SG_2022_hourly.csv.gz carbon
    8760 from 2022-01-01T00:00 by 3600 s: first 494.23, mean 491.52, SG, estimated 722+19; 8760 read, 8760 kept
  column = 'direct'
    8760 from 2022-01-01T00:00 by 3600 s: first 374.49, mean 372.36, SG, estimated 722+19; 8760 read, 8760 kept
carbon-electricitymaps/US-CAL-CISO_2022_hourly.csv.gz carbon
    8760 from 2022-01-01T00:00 by 3600 s: first 273.77, mean 262.32, US-CAL-CISO, estimated 8+2; 8760 read, 8760 kept
  column = 'direct'
    8760 from 2022-01-01T00:00 by 3600 s: first 209.52, mean 196.05, US-CAL-CISO, estimated 8+2; 8760 read, 8760 kept
carbon-electricitymaps/US-CAL-CISO_2023_hourly.csv.gz carbon
    8760 from 2023-01-01T00:00 by 3600 s: first 309.75, mean 260.75, US-CAL-CISO, estimated 2+1; 8760 read, 8760 kept
  column = 'direct'
    8760 from 2023-01-01T00:00 by 3600 s: first 238.69, mean 193.96, US-CAL-CISO, estimated 2+1; 8760 read, 8760 kept
carbon-electricitymaps/ZA_2024_hourly.csv.gz carbon
    8784 from 2024-01-01T00:00 by 3600 s: first 680.47, mean 713.09, ZA, estimated 618+0; 8784 read, 8784 kept
  column = 'direct'
    8784 from 2024-01-01T00:00 by 3600 s: first 629.25, mean 656.72, ZA, estimated 618+0; 8784 read, 8784 kept
carbon-electricitymaps-2024-vintage/BR_2023_hourly.csv.gz carbon
    8760 from 2023-01-01T00:00 by 3600 s: first 55.360, mean 83.055, BR, estimated 241+0; 8760 read, 8760 kept
carbon-electricitymaps-2024-vintage/ES_2022_hourly.csv.gz carbon
    8760 from 2022-01-01T00:00 by 3600 s: first 175.54, mean 219.28, ES, estimated 124+3; 8760 read, 8760 kept
carbon-electricitymaps-2024-vintage/NO_2022_hourly.csv.gz carbon
    8760 from 2022-01-01T00:00 by 3600 s: first 63.030, mean 38.120, NO, estimated 14+0; 8760 read, 8760 kept
carbon-electricitymaps-2024-vintage/US-CAL-CISO_2022_hourly.csv.gz carbon
    8760 from 2022-01-01T00:00 by 3600 s: first 274.07, mean 261.28, US-CAL-CISO, estimated 8+2; 8760 read, 8760 kept
carbon-electricitymaps-2024-vintage/US-CAL-CISO_2023_hourly.csv.gz carbon
    8760 from 2023-01-01T00:00 by 3600 s: first 285.41, mean 261.16, US-CAL-CISO, estimated 3+1; 8760 read, 8760 kept
carbon-electricitymaps-wide/CarbonScaler_data-sample_first6cols.csv carbon
    24 from 2020-01-01T00:00 by 3600 s: first 332.39, mean 309.29, US-CAL-CISO; 24 read, 24 kept
carbon-opendc/2022-01-01_2022-12-31_BE.parquet carbon
    8736 from 2022-01-01T00:00 by 3600 s: first 29.001, mean 42.473; 8736 read, 8736 kept
carbon-opendc/2022-01-01_2022-12-31_DE.parquet carbon
    34944 from 2022-01-01T00:00 by 900 s: first 104.34, mean 273.72; 34944 read, 34944 kept
carbon-opendc/2022-01-01_2022-12-31_FR.parquet carbon
    refused: no value at 2022-04-16T13:00:00Z; 1 missing in all, at the step of 3600 s
  gaps = 'interpolate'
    8736 from 2022-01-01T00:00 by 3600 s: first 15.097, mean 24.074; 8735 read, 8735 kept, 1 time_filled
carbon-opendc/2022-01-01_2022-12-31_NL.parquet carbon
    34944 from 2022-01-01T00:00 by 900 s: first 164.52, mean 165.31; 34944 read, 34944 kept
carbon-opendc/2022-01-01_single_100.parquet carbon
    1 from 2022-01-01T00:00 by no step: first 100.00, mean 100.00; 1 read, 1 kept
carbon-opendc/2022-01-01_two_80_120.parquet carbon
    2 from 2022-01-01T00:00 by 600 s: first 80.000, mean 100.00; 2 read, 2 kept
carbon-opendc/CA-ON_2021-2024.parquet carbon
    35064 from 2021-01-01T00:00 by 3600 s: first 60.110, mean 67.372; 35064 read, 35064 kept
carbon-opendc/DE_2021-2024.parquet carbon
    35064 from 2021-01-01T00:00 by 3600 s: first 526.77, mean 403.20; 35064 read, 35064 kept
carbon-opendc/FR_2021-2024.parquet carbon
    35064 from 2021-01-01T00:00 by 3600 s: first 60.970, mean 56.482; 35064 read, 35064 kept
carbon-opendc/IS_2021-2024.parquet carbon
    35064 from 2021-01-01T00:00 by 3600 s: first 28.230, mean 27.808; 35064 read, 35064 kept
carbon-opendc/NO-NO1_2021-2024.parquet carbon
    35064 from 2021-01-01T00:00 by 3600 s: first 28.120, mean 28.468; 35064 read, 35064 kept
carbon-opendc/SE_2021-2024.parquet carbon
    35064 from 2021-01-01T00:00 by 3600 s: first 26.490, mean 25.435; 35064 read, 35064 kept
carbon-opendc/US-CAL-CISO_2021-2024.parquet carbon
    35064 from 2021-01-01T00:00 by 3600 s: first 317.31, mean 255.72; 35064 read, 35064 kept
carbon-opendc/m3sa_experiment1_co2.parquet carbon
    34944 from 2021-12-31T23:00 by 900 s: first 168.14, mean 165.32; 34944 read, 34944 kept
carbon-uk/national_fw48h_2023-03-14T0331Z.csv carbon
    refused: several columns can be the values: set `column`. Columns: "from", "intensity.forecast", "intensity.actual"
  column = 'intensity.forecast'
    96 from 2023-03-14T03:30 by 1800 s: first 69.000, mean 148.27; 96 read, 96 kept
  column = 'intensity.actual'
    refused: column "intensity.actual" has no value in any row
carbon-uk/national_pt24h_2023-03-15T0331Z.csv carbon
    refused: several columns can be the values: set `column`. Columns: "from", "intensity.forecast", "intensity.actual"
  column = 'intensity.forecast'
    48 from 2023-03-14T03:30 by 1800 s: first 72.000, mean 139.12; 48 read, 48 kept
  column = 'intensity.actual'
    45 from 2023-03-14T03:30 by 1800 s: first 78.000, mean 139.36; 48 read, 45 kept, 3 empty_at_end
carbon-uk/national_pt24h_2023-03-16T0331Z.csv carbon
    refused: several columns can be the values: set `column`. Columns: "from", "intensity.forecast", "intensity.actual"
  column = 'intensity.forecast'
    48 from 2023-03-15T03:30 by 1800 s: first 200.00, mean 183.81; 48 read, 48 kept
  column = 'intensity.actual'
    47 from 2023-03-15T03:30 by 1800 s: first 184.00, mean 181.15; 48 read, 47 kept, 1 empty_at_end
price-local/CA-ON_electricity_prices_2023.csv.gz price
    refused: line 2: the time "2023-01-01 00:00:00" has no offset
  timezone = 'America/Toronto'
    refused: line 1684: 2023-03-12T02:00:00 does not exist in America/Toronto, where the clocks went forward (1 row in all)
  timezone = 'Etc/GMT+5'
    8760 from 2023-01-01T05:00 by 3600 s: first 0.014420, mean 0.028569, CAD; 8760 read, 8760 kept
price-local/CL_electricity_prices_2023.csv.gz price
    refused: line 2: the time "2023-01-01 00:00:00" has no offset
  timezone = 'America/Santiago'
    refused: line 5883: 2023-09-03T00:00:00 does not exist in America/Santiago, where the clocks went forward (1 row in all)
  timezone = 'America/Santiago'; clock_change = 'repair'
    refused: line 1684: the time 2023-03-12T05:00:00Z (2023-03-12T02:00:00 in America/Santiago) occurs again with another value (2 rows in all)
  timezone = 'America/Santiago'; clock_change = 'repair'; duplicates = 'first'
    refused: no value at 2023-03-12T04:00:00Z (2023-03-12T01:00:00 in America/Santiago); 1 missing in all, at the step of 3600 s
  timezone = 'America/Santiago'; clock_change = 'repair'; duplicates = 'first'; gaps = 'hold'
    8760 from 2023-01-01T03:00 by 3600 s: first 214.71, mean 117.00, CLP; 8761 read, 8758 kept, 2 duplicate, 1 no_such_time, 1 time_filled, 1 second_of_two
price-local/DE-LU_electricity_prices_2023.csv.gz price
    refused: line 2: the time "2023-01-01 00:00:00" has no offset
  timezone = 'Europe/Berlin'
    refused: line 2020: 2023-03-26T02:00:00 does not exist in Europe/Berlin, where the clocks went forward (1 row in all)
  timezone = 'Europe/Berlin'; clock_change = 'repair'
    8760 from 2022-12-31T23:00 by 3600 s: first -0.0051700, mean 0.095175, EUR; 8760 read, 8759 kept, 1 no_such_time, 1 second_of_two
price-local/DE-LU_electricity_prices_2024.csv.gz price
    refused: line 2: the time "2024-01-01 00:00:00" has no offset
  timezone = 'Europe/Berlin'
    refused: line 2140: 2024-03-31T02:00:00 does not exist in Europe/Berlin, where the clocks went forward (1 row in all)
  timezone = 'Europe/Berlin'; clock_change = 'repair'
    refused: no value at 2024-01-30T23:00:00Z (2024-01-31T00:00:00 in Europe/Berlin); 24 missing in all, at the step of 3600 s
  timezone = 'Europe/Berlin'; clock_change = 'repair'; gaps = 'hold'
    8784 from 2023-12-31T23:00 by 3600 s: first 0.00010000, mean 0.078500, EUR; 8760 read, 8759 kept, 1 no_such_time, 24 time_filled, 1 second_of_two
price-local/FR_electricity_prices_2023.csv.gz price
    refused: line 2: the time "2023-01-01 00:00:00" has no offset
  timezone = 'Europe/Paris'
    refused: line 2020: 2023-03-26T02:00:00 does not exist in Europe/Paris, where the clocks went forward (1 row in all)
  timezone = 'Europe/Paris'; clock_change = 'repair'
    refused: no value at 2023-11-29T23:00:00Z (2023-11-30T00:00:00 in Europe/Paris); 24 missing in all, at the step of 3600 s
  timezone = 'Europe/Paris'; clock_change = 'repair'; gaps = 'interpolate'
    8760 from 2022-12-31T23:00 by 3600 s: first 0, mean 0.096696, EUR; 8736 read, 8735 kept, 1 no_such_time, 24 time_filled, 1 second_of_two
price-local/GB_electricity_prices_2020.csv.gz price
    refused: line 2: the time "2020-01-01 00:00:00" has no offset
  timezone = 'Europe/London'
    refused: line 2115: 2020-03-29T01:00:00 does not exist in Europe/London, where the clocks went forward (1 row in all)
  timezone = 'Europe/London'; clock_change = 'repair'
    refused: no value at 2020-04-29T23:00:00Z (2020-04-30T00:00:00 in Europe/London); 72 missing in all, at the step of 3600 s
  timezone = 'Europe/London'; clock_change = 'repair'; gaps = 'hold'
    8784 from 2020-01-01T00:00 by 3600 s: first 0.046940, mean 0.039552, EUR; 8712 read, 8711 kept, 1 no_such_time, 72 time_filled, 1 second_of_two
price-local/GB_electricity_prices_2021.csv.gz price
    refused: line 2: the time "2021-10-31 02:00:00" has no offset
  timezone = 'Europe/London'
    1 from 2021-10-31T02:00 by no step: first 0, mean 0, EUR; 1 read, 1 kept
  timezone = 'Europe/London'; clock_change = 'repair'
    1 from 2021-10-31T02:00 by no step: first 0, mean 0, EUR; 1 read, 1 kept
price-local/SG_electricity_prices_2023.csv.gz price
    refused: line 2: the time "2023-01-01 00:00:00" has no offset
  timezone = 'Asia/Singapore'
    8760 from 2022-12-31T16:00 by 3600 s: first 0.15862, mean 0.24757, SGD; 8760 read, 8760 kept
price-local/US-CAL-CISO_electricity_prices_2023.csv.gz price
    refused: line 2: the time "2022-12-31 08:00:00" has no offset
  timezone = 'America/Los_Angeles'
    refused: line 1700: 2023-03-12T02:00:00 does not exist in America/Los_Angeles, where the clocks went forward (1 row in all)
  timezone = 'UTC'
    8784 from 2022-12-31T08:00 by 3600 s: first 0.11078, mean 0.061535, USD; 8784 read, 8784 kept
price-utc/DE-LU_electricity_prices_2023.csv.gz price
    8760 from 2023-01-01T00:00 by 3600 s: first -0.0033622, mean 0.10257, USD; 8760 read, 8760 kept
price-utc/IN-WE_electricity_prices_2023.csv.gz price
    8760 from 2023-01-01T00:30 by 3600 s: first 0.045963, mean 0.061851, USD; 8760 read, 8760 kept
vessim/load_example.csv.gz cap-share
    refused: several columns can be the values: set `column`. Columns: "time", "trace_a", "trace_b", "trace_c", "trace_d", "trace_e", "trace_f", "trace_g", "trace_h"
  column = 'trace_a'
    refused: column "trace_a" has no unit in its name: set `unit`, such as "1" or "%"
  column = 'trace_a'; unit = '1'
    745 from 0s by 3600 s: first 0.10968, mean 0.44539; 745 read, 745 kept
vessim/solar_example.csv.gz cap-share
  unit = '1'
    refused: several columns can be the values: set `column`. Columns: "time", "Berlin", "Cape Town", "Hong Kong", "Lagos", "Mexico City", "Mumbai", "San Francisco", "Stockholm", "Sydney", "São Paulo"
  unit = '1'; column = 'Berlin'
    8352 from 0s by 300 s: first 0, mean 0.21878; 8352 read, 8352 kept
  unit = '1'; column = 'São Paulo'
    8352 from 0s by 300 s: first 0, mean 0.15938; 8352 read, 8352 kept
vessim/watttime_example.csv.gz carbon
    refused: column "Caiso_North" has no unit in its name: set `unit`, such as "g/kWh", "kg/MWh", or "lb/MWh" (WattTime's)
  unit = 'lb/MWh'
    refused: line 2: the time "2023-06-08 00:00:00" has no offset
  unit = 'lb/MWh'; timezone = 'America/Los_Angeles'
    8928 from 2023-06-08T07:00 by 300 s: first 192.78, mean 161.18; 8928 read, 8928 kept
  unit = 'lb/MWh'; timezone = 'UTC'
    8928 from 2023-06-08T00:00 by 300 s: first 192.78, mean 161.18; 8928 read, 8928 kept
weather/DE-LU_2023.json.gz temperature
    8760 from 2022-12-31T23:00 by 3600 s: first 12.900, mean 12.088; 8760 read, 8760 kept
  timezone = 'Europe/Berlin'
    refused: `timezone` does not fit the file: UTC+1 h, by `utc_offset_seconds`, not Europe/Berlin; remove it
README.md carbon
    refused: line 3 has 1 field, and there are 3 columns: is the file cut?
SHA256SUMS carbon
    refused: the first line, "70b7d4ef9a79c99132bfbe0cfe662fb98941497c25f015e524fca8042146…", names one column: a table has several, separated by commas, semicolons or tabs
"#;

/// The folder of the files.
fn folder() -> PathBuf {
    let folder = std::env::var_os("POWERSWEEP_SIGNALS").filter(|folder| !folder.is_empty());
    folder.expect("POWERSWEEP_SIGNALS names a folder, or is not set").into()
}

/// The content of a file, decompressed.
fn content(folder: &Path, name: &str) -> Vec<u8> {
    let bytes = std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    if !name.ends_with(".gz") {
        return bytes;
    }
    let mut content = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut content).expect("it is compressed by gzip");
    content
}

/// The files in a folder and its subfolders.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let entry = entry.expect("the entry can be read");
        let name = entry.file_name().into_string().expect("the name is UTF-8");
        if entry.path().is_dir() {
            names.extend(files(&entry.path()).into_iter().map(|file| format!("{name}/{file}")));
        } else {
            names.insert(name);
        }
    }
    names
}

/// A number with five digits.
fn rounded(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let whole = number.abs().log10().floor();
    format!("{number:.*}", (4.0 - whole).max(0.0) as usize)
}

/// A series in a sentence.
fn described(series: &Series) -> String {
    let Series { times_s, values, currency, zone, facts, estimated, .. } = series;
    let step = facts.step_s.map_or("no step".to_owned(), |step_s| format!("{step_s} s"));
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let mut text = format!(
        "{} from {} by {step}: first {}, mean {}",
        times_s.len(),
        time(series, times_s[0]),
        rounded(values[0]),
        rounded(mean)
    );
    for named in [currency, zone].into_iter().flatten() {
        text = format!("{text}, {named}");
    }
    if !estimated.is_empty() {
        text = format!("{text}, estimated {}+{}", facts.flagged, facts.estimated_by_source);
    }
    format!("{text}; {}", counts(series))
}

/// A file and a reading of it.
struct Entry {
    name: &'static str,
    keys: String,
    expected: &'static str,
}

fn table() -> Vec<Entry> {
    let (mut entries, mut file, mut keys) = (Vec::new(), ("", ""), "");
    for line in TABLE.lines().filter(|line| !line.is_empty()) {
        if let Some(expected) = line.strip_prefix("    ") {
            entries.push(Entry { name: file.0, keys: format!("quantity = '{}'; {keys}", file.1), expected });
        } else if let Some(next) = line.strip_prefix("  ") {
            keys = next;
        } else {
            (file, keys) = (line.split_once(' ').expect("a file and its quantity"), "");
        }
    }
    entries
}

#[test_with::env(POWERSWEEP_SIGNALS)]
#[test]
fn every_file_is_read_or_refused_with_a_right_sentence() {
    let folder = folder();
    let table = table();
    let listed: BTreeSet<String> = table.iter().map(|entry| entry.name.to_owned()).collect();
    assert_eq!(files(&folder), listed, "the table has the files of the folder");
    let mut wrong = Vec::new();
    for Entry { name, keys, expected } in &table {
        let (found, is_right) = match read(content(&folder, name), keys) {
            Ok(series) => {
                let found = described(&series);
                let is_right = found == *expected;
                (found, is_right)
            }
            Err(refusal) => {
                let found = refusal.replacen("x: ", "refused: ", 1);
                let is_right = found.starts_with(expected);
                (found, is_right)
            }
        };
        if !is_right {
            wrong.push(format!("{name}, {keys}:\n  {found}, expected\n  {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{} files, {} readings", listed.len(), table.len());
}

fn value_at(series: &Series, time_s: f64) -> Option<f64> {
    series.times_s.binary_search_by(|time| time.total_cmp(&time_s)).ok().map(|at| series.values[at])
}

/// Values of `a` and `b` at the times that both have.
fn common(a: &Series, b: &Series) -> Vec<(f64, f64)> {
    let pairs = a.times_s.iter().zip(&a.values).filter_map(|(time_s, value)| Some((*value, value_at(b, *time_s)?)));
    pairs.collect()
}

/// Files of one zone by different publishers have equal values at equal instants, which shows that clocks are right.
#[test_with::env(POWERSWEEP_SIGNALS)]
#[test]
fn publishers_agree_at_equal_instants() {
    let folder = folder();
    let series = |name: &str, keys: &str| read(content(&folder, name), keys).expect("it is read");
    // OpenDC's files are Electricity Maps' lifecycle intensities.
    for (maps, opendc) in [("DE-LU_2023", "DE"), ("DE-LU_2024", "DE"), ("CA-ON_2023", "CA-ON")] {
        let maps = series(&format!("carbon-electricitymaps/{maps}_hourly.csv.gz"), "quantity = 'carbon'");
        let opendc = series(&format!("carbon-opendc/{opendc}_2021-2024.parquet"), "quantity = 'carbon'");
        let pairs = common(&maps, &opendc);
        assert_eq!(pairs.len(), maps.values.len());
        assert!(pairs.iter().all(|(a, b)| (a - b).abs() <= 0.0051), "they are the same to two decimals");
    }
    // The same series, cut at other ends.
    let m3sa = series("carbon-opendc/m3sa_experiment1_co2.parquet", "quantity = 'carbon'");
    let netherlands = series("carbon-opendc/2022-01-01_2022-12-31_NL.parquet", "quantity = 'carbon'");
    let pairs = common(&m3sa, &netherlands);
    assert!(pairs.len() == 34_940 && pairs.iter().all(|(a, b)| a == b));
    // The file of UTC has 1.07764 times the mean of an hour and the hour before it.
    let local = series(
        "price-local/DE-LU_electricity_prices_2023.csv.gz",
        "quantity = 'price'; timezone = 'Europe/Berlin'; clock_change = 'repair'",
    );
    let utc = series("price-utc/DE-LU_electricity_prices_2023.csv.gz", "quantity = 'price'");
    let hours = utc.times_s.iter().zip(&utc.values);
    let differs = |(time_s, value): (&f64, &f64)| {
        let (now, before) = (value_at(&local, *time_s)?, value_at(&local, time_s - 3600.0)?);
        ((value - 1.07764 * 0.5 * (now + before)).abs() > 1e-6).then(|| time(&utc, *time_s))
    };
    let others: Vec<String> = hours.filter_map(differs).collect();
    // Each publisher repaired the hour that autumn repeats in its own way.
    assert_eq!(others, ["2023-10-29T00:00", "2023-10-29T01:00", "2023-10-29T02:00"]);
}
