//! Comparison with the published metrics of Gaussier, Glesser, Reis & Trystram (SC'15): EASY with predicted run times.
//!
//! A row of their table is one simulation: mean, maximum and root mean square of turnaround, slowdown and bounded slowdown.
use std::io::Read;

use powersweep_engine::workload::Workload;
use powersweep_engine::workload::swf::SwfLog;
use powersweep_engine::{JobRecord, Limits, Role, SimSpec};

use crate::logs;
use crate::specs::{Build, simulate};

/// A log of the study.
struct Case {
    name: &'static str,
    /// File with its jobs in the folder of the logs.
    file: &'static str,
    procs: i64,
    jobs: usize,
    /// Records that this version of the log lacks: number, submit, run, processors, requested time, user.
    added: &'static [[u32; 6]],
}

/// Published tables of the first three logs are in a folder beside the logs. `POWERSWEEP_SC15` names a folder with other tables.
const CASES: [Case; 5] = [
    Case { name: "KTH-SP2", file: "KTH-SP2-1996-2.1-cln", procs: 100, jobs: 28_481, added: &ADDED_TO_KTH },
    Case { name: "SDSC-SP2", file: "SDSC-SP2-1998-4.2-cln", procs: 128, jobs: 54_006, added: &ADDED_TO_SDSC },
    Case { name: "CTC-SP2", file: "CTC-SP2-1996-3.1-cln", procs: 338, jobs: 77_199, added: &[] },
    Case { name: "SDSC-BLUE", file: "SDSC-BLUE-2000-4.1-cln", procs: 1152, jobs: 232_542, added: &[] },
    Case { name: "CEA-curie", file: "CEA-Curie-2011-2.1-cln", procs: 80_640, jobs: 295_540, added: &[] },
];

const ADDED_TO_KTH: [[u32; 6]; 14] = [
    [1, 0, 97225, 56, 210_000, 1],
    [2, 327_952, 9382, 80, 14400, 2],
    [3, 327_998, 177, 84, 14400, 2],
    [4, 333_654, 140, 80, 14400, 3],
    [5, 508_960, 44155, 16, 53400, 4],
    [6, 534_471, 4850, 5, 48000, 5],
    [7, 555_144, 16882, 16, 52800, 6],
    [8, 555_281, 25237, 16, 52800, 6],
    [9, 587_036, 13714, 9, 14280, 7],
    [10, 587_112, 13197, 9, 14280, 7],
    [11, 588_361, 12, 10, 53400, 8],
    [12, 588_864, 20353, 5, 52200, 9],
    [13, 590_254, 3573, 16, 3600, 10],
    [14, 593_394, 16, 2, 60, 11],
];

const ADDED_TO_SDSC: [[u32; 6]; 7] = [
    [4, 399_264, 172_800, 5, 172_800, 199],
    [5, 427_130, 172_800, 5, 172_800, 199],
    [6, 494_829, 172_800, 5, 172_800, 199],
    [7, 495_154, 172_800, 5, 172_800, 199],
    [8, 506_793, 35968, 11, 36000, 160],
    [9, 522_378, 11872, 63, 43200, 131],
    [10, 559_483, 59965, 4, 64500, 162],
];

impl Case {
    /// The study's record filter, machine and order of arrival.
    fn rules(&self) -> Build {
        let build = Build::log()
            .text("arrival_ties", "job_id")
            .real("min_run_s", 1.0)
            .text("missing_estimate", "drop")
            .text("missing_procs", "drop")
            .text("wide_jobs", "drop")
            .int("procs", self.procs);
        match self.added {
            [] => build,
            added => {
                build.reals("added_records", &added.as_flattened().iter().copied().map(f64::from).collect::<Vec<f64>>())
            }
        }
    }

    fn workload(&self) -> Workload {
        let log: SwfLog = logs::read(logs::folder().join(format!("{}.swf.gz", self.file)));
        let mut workload = logs::workload(&self.rules().0, &log);
        workload.jobs.retain(|job| i64::from(job.procs) <= self.procs);
        assert_eq!(workload.jobs.len(), self.jobs, "{}", self.name);
        workload
    }
}

/// A row of the table: name, number of jobs, nine metrics, scheduler, corrector, predictor and the model's parameters.
struct Row<'t>(Vec<&'t str>);

impl<'t> Row<'t> {
    fn name(&self) -> &'t str {
        self.0[1]
    }

    fn jobs(&self) -> usize {
        self.0[2].parse().unwrap()
    }

    /// The metrics, without those that were not published.
    fn metrics(&self) -> [Option<f64>; 9] {
        std::array::from_fn(|at| self.0[3 + at].parse().ok())
    }

    fn is_learned(&self) -> bool {
        self.0[16] == "predictor_sgdlinear"
    }

    /// The simulation of the row.
    fn spec(&self, case: &Case) -> SimSpec {
        let [scheduler, corrector, predictor] = std::array::from_fn(|at| self.0[14 + at]);
        let (order, pass) = match scheduler {
            "easy_backfill_scheduler" | "easy_prediction_backfill_scheduler" => ("queue", "if-fits"),
            "easy_sjbf_scheduler" => ("sjf", "if-fits"),
            "easy_plus_plus_scheduler" => ("sjf", "always"),
            other => panic!("{other}"),
        };
        let corrector = match corrector {
            "NA" | "throw_an_error" | "reqtime" => "request",
            "tsafrir" => "increments",
            "recursive_doubling" => "doubling",
            other => panic!("{other}"),
        };
        let name = match predictor {
            "NA" | "predictor_reqtime" => "user",
            "predictor_clairvoyant" => "exact",
            "predictor_double_reqtime" => "scaled",
            "predictor_tsafrir" => "recent-average",
            "predictor_sgdlinear" => "sgd-linear",
            other => panic!("{other}"),
        };
        let build = case
            .rules()
            .text("event_order", "submit-first")
            .text("pass_at_submission", pass)
            .flag("pass_at_correction", false)
            .choose(Role::BackfillOrder, order)
            .choose(Role::Corrector, corrector)
            .choose(Role::Predictor, name);
        if !self.is_learned() {
            return build.0;
        }
        // Numbers of the name, because the table rounds none of them. The name has no characters that a file name cannot have.
        let number = |at: usize| self.0[at].parse::<f64>().unwrap();
        let weight = match self.name().split("_").find(|part| part.starts_with("predictorsgdlinear")) {
            Some(part) => part.rsplit('I').next().unwrap(),
            None => panic!("{}", self.name()),
        };
        let weight = match weight {
            "1" => "1",
            "5logrm" => "5+log(r/m)",
            "5logmr" => "5+log(m/r)",
            "11log1rm" => "11+log(1/(r*m))",
            "1logmr" => "1+log(m*r)",
            other => panic!("{other}"),
        };
        build
            .text("loss_over", self.0[17])
            .real("loss_over_factor", number(18))
            .text("loss_under", self.0[19])
            .real("loss_under_factor", number(20))
            .real("loss_threshold_s", number(21))
            .text("loss_weight", weight)
            .0
    }
}

/// The published table of a log, if its folder has it.
fn table(name: &str) -> Option<String> {
    let folder = std::env::var_os("POWERSWEEP_SC15").map_or_else(|| logs::folder().join("../sc15"), Into::into);
    let file = std::fs::File::open(folder.join(format!("{name}.metrics.txt.gz"))).ok()?;
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    Some(text)
}

/// The logs whose tables are there, with the tables.
fn cases() -> Vec<(&'static Case, String)> {
    let cases: Vec<_> = CASES.iter().filter_map(|case| Some((case, table(case.name)?))).collect();
    assert!(cases.len() >= 3, "the published tables of three logs are beside the logs");
    cases
}

/// The rows of a table that belong to the study's grid. The table of CEA-curie has others, without a scheduler.
fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    let lines = text.lines().skip(1).filter(|line| !line.is_empty());
    lines.map(|line| Row(line.split(' ').collect())).filter(|row| row.0[14] != "NA")
}

/// Mean, maximum and root mean square, with a sum of twice the precision.
fn moments(values: impl Iterator<Item = f64> + Clone) -> [f64; 3] {
    let sum = |values: &mut dyn Iterator<Item = f64>| {
        let (mut high, mut low) = (0.0_f64, 0.0);
        for value in values {
            let sum = high + value;
            let rest = sum - high;
            low += (high - (sum - rest)) + (value - rest);
            high = sum;
        }
        high + low
    };
    let count = values.clone().count() as f64;
    let squares = sum(&mut values.clone().map(|value| value * value));
    let maximum = values.clone().fold(f64::NEG_INFINITY, f64::max);
    [sum(&mut values.clone()) / count, maximum, (squares / count).sqrt()]
}

/// The nine metrics of the table over the first jobs that end.
fn metrics(rows: &[JobRecord], count: usize) -> [f64; 9] {
    let mut order: Vec<&JobRecord> = rows.iter().collect();
    // Jobs that end at one instant are in the order in which they started.
    order.sort_by(|a, b| a.finish_s.total_cmp(&b.finish_s).then(a.start_s.total_cmp(&b.start_s)));
    let jobs = || order[..count].iter();
    let turnaround = moments(jobs().map(|job| job.finish_s - job.submit_s));
    let slowdown = moments(jobs().map(|job| (job.finish_s - job.submit_s) / job.run_s));
    let bounded = moments(jobs().map(|job| ((job.finish_s - job.submit_s) / job.run_s.max(10.0)).max(1.0)));
    std::array::from_fn(|at| [turnaround, slowdown, bounded][at / 3][at % 3])
}

/// The jobs that had ended when the study's program stopped with an error: it knows 11 increments, and a job needed a twelfth.
fn ended_at_the_stop(rows: &[JobRecord]) -> Option<usize> {
    let twelfth = rows.iter().filter(|job| job.corrections_count == Some(12));
    let stop_s = twelfth.map(|job| job.start_s + job.predicted_s.unwrap() + 360_000.0).min_by(f64::total_cmp)?;
    Some(rows.iter().filter(|job| job.finish_s < stop_s).count())
}

/// The greatest relative difference of a row's metrics. A row with fewer jobs has the first ones that ended: the others were lost,
/// or the program had stopped.
fn difference(case: &Case, row: &Row<'_>, workload: &Workload) -> f64 {
    let mut jobs = Vec::new();
    simulate(&row.spec(case), workload, &Limits::NONE, Some(&mut jobs)).unwrap();
    assert_eq!(jobs.len(), case.jobs, "{}", case.name);
    if let Some(ended) = ended_at_the_stop(&jobs).filter(|_| row.name().ends_with("_tsafrir.swf.gz")) {
        // The few that lost their tail, too, have even fewer.
        assert!(row.jobs() <= ended && ended < case.jobs, "{} {}: {ended}", case.name, row.name());
    }
    let ours = metrics(&jobs, row.jobs());
    let differences =
        row.metrics().into_iter().zip(ours).filter_map(|(theirs, ours)| Some((ours - theirs?).abs() / theirs?));
    differences.fold(0.0, f64::max)
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn every_row_without_a_learned_model_is_equal_to_the_last_digit() {
    for (case, text) in cases() {
        let workload = case.workload();
        let mut compared = 0;
        for row in rows(&text).filter(|row| !row.is_learned()) {
            let difference = difference(case, &row, &workload);
            println!("{} {} {difference:e}", case.name, row.name());
            assert!(difference < 1e-13, "{} {}: {difference:e}", case.name, row.name());
            compared += 1;
        }
        assert_eq!(compared, 14, "{}", case.name);
    }
}

/// Learned rows that are drawn by a seed, of each log. `POWERSWEEP_ROWS` sets their number.
#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn learned_rows_are_equal_to_ten_digits() {
    let wanted: usize = std::env::var("POWERSWEEP_ROWS").map_or(6, |rows| rows.parse().unwrap());
    for (case, text) in cases() {
        let workload = case.workload();
        let rows: Vec<Row<'_>> = rows(&text).filter(Row::is_learned).collect();
        let (mut equal, mut state) = (0, 0x5c15_u64);
        for _ in 0..wanted {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let row = &rows[(state >> 33) as usize % rows.len()];
            let difference = difference(case, row, &workload);
            println!("{} {} {difference:e}", case.name, row.name());
            let is_published = row.metrics().iter().any(Option::is_some);
            equal += usize::from(difference < 1e-10 && is_published);
        }
        assert!(100 * equal >= 95 * wanted, "{}: {equal} of {wanted} rows are equal", case.name);
    }
}

/// Predictions and corrections of two learned models on KTH-SP2: the first 20 predictions, their sum over all jobs, corrected jobs,
/// corrections.
#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn predictions_on_kth_are_those_of_the_study() {
    let (case, text) = &cases()[0];
    let workload = case.workload();
    let first = [
        [1, 3468, 3675, 3833, 2832, 5384, 2093, 52800, 787, 6655, 4051, 3914, 256, 11, 5419, 399, 37605, 3510, 221, 2],
        [1, 3468, 3675, 3833, 1640, 3843, 67, 52800, 260, 3712, 1365, 1427, 85, 6, 2622, 152, 14456, 1663, 101, 5],
    ];
    let rows = [
        ("IsquareI100IsquareI1I0I5logmr_reqtime", first[0], 384_397_905, 402, 402),
        ("IsquareI1IabsI1I0I1logmr_tsafrir", first[1], 16_941_520, 24_525, 108_715),
    ];
    for (name, first, sum, corrected, corrections) in rows {
        let wanted = format!("easy_plus_plus_scheduler_predictorsgdlinear{name}.swf.gz");
        let row = self::rows(text).find(|row| row.name().ends_with(&wanted)).unwrap();
        let mut jobs = Vec::new();
        simulate(&row.spec(case), &workload, &Limits::NONE, Some(&mut jobs)).unwrap();
        let predicted = |job: &JobRecord| job.predicted_s.unwrap() as i64;
        let counts = || jobs.iter().map(|job| u64::from(job.corrections_count.unwrap()));
        assert_eq!(jobs[..20].iter().map(predicted).collect::<Vec<_>>(), first, "{name}");
        assert_eq!(jobs.iter().map(predicted).sum::<i64>(), sum, "{name}");
        assert_eq!(
            (counts().filter(|count| *count > 0).count(), counts().sum::<u64>()),
            (corrected, corrections),
            "{name}"
        );
    }
}
