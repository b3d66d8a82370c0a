//! Statistics of a log before any rule, for `powersweep trace info`: they help to choose slices and rules.
use super::swf::{Record, SwfLog};

/// Statistics of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogFacts {
    /// Name of the file.
    pub file: String,
    /// The header's keys and values in file order.
    pub header: Vec<(String, String)>,
    /// Counts and sums.
    pub totals: LogTotals,
    /// Distributions by name; a name ends in its unit (`run_s`). Distributions without a value are left out.
    pub spreads: Vec<(&'static str, Spread)>,
}

crate::record! {
/// Counts and sums over the records of a log. "Usable" records have a submit and a run time: the default rules keep them.
/// The size of a job is its requested processors, else the allocated ones, else 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LogTotals {
    /// Data records.
    pub records_count: u64,
    /// Records with a submit and a run time.
    pub usable_count: u64,
    /// Processors of the machine by the header: MaxProcs, else MaxNodes.
    pub machine_procs: Option<u32>,
    /// Unix time (s) of the log's second 0, by the header.
    pub unix_start_s: Option<i64>,
    /// Least job number.
    pub job_id_min: Option<i64>,
    /// Greatest job number.
    pub job_id_max: Option<i64>,
    /// Least submit time (s of the log).
    pub submit_first_s: Option<f64>,
    /// Greatest submit time (s of the log).
    pub submit_last_s: Option<f64>,
    /// Greatest submit + wait + run time (s of the log); wait counts as 0 where the log has none.
    pub end_last_s: Option<f64>,
    /// Records whose submit time is below that of the record before.
    pub submit_descents_count: u64,
    /// Work of the usable records: sum of size x run time (proc-seconds).
    pub work_proc_s: f64,
    /// Offered load: work / (machine_procs x (submit_last_s - submit_first_s)).
    pub offered_load: Option<f64>,
    /// Greatest size.
    pub procs_max: u32,
    /// Records wider than the machine of the header.
    pub wide_count: u64,
    /// Records without a submit time, and partial executions (status 2 to 4) beside the record of their whole job.
    pub missing_submit_count: u64,
    /// Records without a wait time.
    pub missing_wait_count: u64,
    /// Records without a run time: cancelled before they started.
    pub missing_run_count: u64,
    /// Records without allocated processors.
    pub missing_procs_allocated_count: u64,
    /// Records without requested processors.
    pub missing_procs_requested_count: u64,
    /// Records without any processor count.
    pub missing_procs_count: u64,
    /// Records without a requested time.
    pub missing_requested_time_count: u64,
    /// Records with a run time of 0.
    pub zero_run_count: u64,
    /// Records with a measured power.
    pub measured_power_count: u64,
    /// Records with samples of their measured power.
    pub power_samples_count: u64,
    /// Records whose run time is above their requested time.
    pub overrun_count: u64,
    /// Records with a status outside the 0..=5 of the format (and not -1).
    pub odd_status_count: u64,
    /// Different users.
    pub users_count: u64,
    /// Different groups.
    pub groups_count: u64,
    /// Different queues.
    pub queues_count: u64,
}
}

crate::record! {
/// A distribution. A quantile is the linear interpolation between order statistics, as in the results (type 7 of Hyndman
/// & Fan 1996).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Values.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Least.
    pub min: f64,
    /// 10% quantile.
    pub p10: f64,
    /// 25% quantile.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// 75% quantile.
    pub p75: f64,
    /// 90% quantile.
    pub p90: f64,
    /// 99% quantile.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}
}

impl Spread {
    /// The distribution of finite values; `None` without a value.
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        let (Some(last), sum) = (values.len().checked_sub(1), values.iter().sum::<f64>()) else { return None };
        values.sort_unstable_by(f64::total_cmp);
        let quantile = |share: f64| {
            let position = share * last as f64;
            let (low, high) = (values[position as usize], values[(position as usize + 1).min(last)]);
            low + (high - low) * position.fract()
        };
        Some(Spread {
            count: values.len() as u64,
            mean: sum / values.len() as f64,
            min: values[0],
            p10: quantile(0.10),
            p25: quantile(0.25),
            p50: quantile(0.50),
            p75: quantile(0.75),
            p90: quantile(0.90),
            p99: quantile(0.99),
            max: values[last],
        })
    }
}

/// The size of a record by the default rules.
fn size(record: &Record) -> u32 {
    let known = [record.procs_requested, record.procs_allocated].into_iter().find(|n| *n > 0);
    known.map_or(1, |n| n.unsigned_abs())
}

impl LogFacts {
    /// The statistics of a log.
    pub fn of(log: &SwfLog) -> LogFacts {
        LogFacts {
            file: log.file.clone(),
            header: log.header.fields.clone(),
            totals: LogTotals::of(log),
            spreads: spreads(&log.records),
        }
    }
}

impl LogTotals {
    fn of(log: &SwfLog) -> LogTotals {
        let records = &log.records;
        let count = |test: fn(&Record) -> bool| records.iter().filter(|r| test(r)).count() as u64;
        let machine_procs = log.header.procs();
        let submits = || records.iter().map(|r| r.submit_s).filter(|s| *s >= 0.0);
        let submit_first_s = submits().min_by(f64::total_cmp);
        let submit_last_s = submits().max_by(f64::total_cmp);
        let usable = || records.iter().filter(|r| r.submit_s >= 0.0 && r.run_s >= 0.0);
        let work_proc_s: f64 = usable().map(|r| f64::from(size(r)) * r.run_s).sum();
        let capacity = machine_procs.zip(submit_last_s.zip(submit_first_s)).map(|(p, (b, a))| f64::from(p) * (b - a));
        LogTotals {
            records_count: records.len() as u64,
            usable_count: usable().count() as u64,
            machine_procs,
            unix_start_s: log.header.unix_start_s(),
            job_id_min: records.iter().map(|r| r.id).min(),
            job_id_max: records.iter().map(|r| r.id).max(),
            submit_first_s,
            submit_last_s,
            end_last_s: usable().map(|r| r.submit_s + r.wait_s.max(0.0) + r.run_s).max_by(f64::total_cmp),
            submit_descents_count: records.windows(2).filter(|w| w[1].submit_s < w[0].submit_s).count() as u64,
            work_proc_s,
            offered_load: capacity.filter(|c| *c > 0.0).map(|c| work_proc_s / c),
            procs_max: records.iter().map(size).max().unwrap_or(0),
            wide_count: records.iter().filter(|r| machine_procs.is_some_and(|p| size(r) > p)).count() as u64,
            missing_submit_count: count(|r| r.submit_s < 0.0),
            missing_wait_count: count(|r| r.wait_s < 0.0),
            missing_run_count: count(|r| r.run_s < 0.0),
            missing_procs_allocated_count: count(|r| r.procs_allocated <= 0),
            missing_procs_requested_count: count(|r| r.procs_requested <= 0),
            missing_procs_count: count(|r| r.procs_allocated <= 0 && r.procs_requested <= 0),
            missing_requested_time_count: count(|r| r.requested_s <= 0.0),
            zero_run_count: count(|r| r.run_s == 0.0),
            measured_power_count: log.powers.len() as u64,
            power_samples_count: log.power_series.count() as u64,
            overrun_count: count(|r| r.requested_s > 0.0 && r.run_s > r.requested_s),
            odd_status_count: count(|r| !(-1..=5).contains(&r.status)),
            users_count: distinct(records, |r| r.user),
            groups_count: distinct(records, |r| r.group),
            queues_count: distinct(records, |r| r.queue),
        }
    }
}

/// Number of distinct known labels.
fn distinct(records: &[Record], label: fn(&Record) -> i32) -> u64 {
    let labels: std::collections::BTreeSet<i32> = records.iter().map(label).filter(|l| *l >= 0).collect();
    labels.len() as u64
}

/// The distributions in order of display.
fn spreads(records: &[Record]) -> Vec<(&'static str, Spread)> {
    let usable = || records.iter().filter(|r| r.submit_s >= 0.0 && r.run_s >= 0.0);
    let mut submits: Vec<f64> = usable().map(|r| r.submit_s).collect();
    submits.sort_unstable_by(f64::total_cmp);
    let all = [
        ("run_s", usable().map(|r| r.run_s).collect()),
        ("requested_s", usable().map(|r| r.requested_s).filter(|t| *t > 0.0).collect()),
        (
            "requested_per_run",
            usable().filter(|r| r.requested_s > 0.0 && r.run_s > 0.0).map(|r| r.requested_s / r.run_s).collect(),
        ),
        ("size_procs", usable().map(|r| f64::from(size(r))).collect()),
        ("interarrival_s", submits.windows(2).map(|w| w[1] - w[0]).collect()),
        ("wait_s", usable().map(|r| r.wait_s).filter(|w| *w >= 0.0).collect()),
    ];
    all.into_iter().filter_map(|(name, values): (_, Vec<f64>)| Some((name, Spread::of(values)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::swf;

    #[test]
    fn facts_of_a_small_log() {
        let text = "; MaxProcs: 4\n; UnixStartTime: 7\n\
                    3 10 5 100 4 -1 -1 8 200 -1 1 3 1 -1 1 -1 -1 -1\n\
                    5 0 -1 50 2 -1 -1 -1 20 -1 9 3 1 -1 2 -1 -1 -1\n\
                    9 30 -1 0 -1 -1 -1 -1 -1 -1 -1 -1 2 -1 2 -1 -1 -1\n\
                    4 -1 -1 -1 0 -1 -1 0 0 -1 -1 4 2 -1 2 -1 -1 -1\n";
        let facts = LogFacts::of(&swf::parse(text.as_bytes(), "x.swf").expect("reads"));
        let wanted = LogTotals {
            records_count: 4,
            usable_count: 3,
            machine_procs: Some(4),
            unix_start_s: Some(7),
            job_id_min: Some(3),
            job_id_max: Some(9),
            submit_first_s: Some(0.0),
            submit_last_s: Some(30.0),
            end_last_s: Some(115.0),
            submit_descents_count: 2,
            work_proc_s: 900.0,
            offered_load: Some(900.0 / 120.0),
            procs_max: 8,
            wide_count: 1,
            missing_submit_count: 1,
            missing_wait_count: 3,
            missing_run_count: 1,
            missing_procs_allocated_count: 2,
            missing_procs_requested_count: 3,
            missing_procs_count: 2,
            missing_requested_time_count: 2,
            zero_run_count: 1,
            measured_power_count: 0,
            power_samples_count: 0,
            overrun_count: 1,
            odd_status_count: 1,
            users_count: 2,
            groups_count: 2,
            queues_count: 2,
        };
        assert_eq!(facts.totals, wanted);
        let names: Vec<_> = facts.spreads.iter().map(|(n, s)| (*n, s.count)).collect();
        assert_eq!(
            names,
            [
                ("run_s", 3),
                ("requested_s", 2),
                ("requested_per_run", 2),
                ("size_procs", 3),
                ("interarrival_s", 2),
                ("wait_s", 1)
            ]
        );
        assert_eq!(
            facts.header,
            [("MaxProcs".to_owned(), "4".to_owned()), ("UnixStartTime".to_owned(), "7".to_owned())]
        );
    }

    #[test]
    fn quantiles_interpolate_between_values() {
        let spread = Spread::of((0..=100).rev().map(f64::from).collect()).expect("has values");
        assert_eq!((spread.count, spread.mean, spread.min, spread.max), (101, 50.0, 0.0, 100.0));
        assert_eq!(
            [spread.p10, spread.p25, spread.p50, spread.p75, spread.p90, spread.p99],
            [10.0, 25.0, 50.0, 75.0, 90.0, 99.0]
        );
        assert_eq!(Spread::of(vec![4.0, 1.0, 3.0, 2.0]).map(|s| (s.p25, s.p50)), Some((1.75, 2.5)));
        assert_eq!(Spread::of(vec![]), None);
        assert_eq!(Spread::of(vec![4.0]).map(|s| (s.p10, s.p99)), Some((4.0, 4.0)));
    }

    #[test]
    fn facts_of_an_empty_log() {
        let facts = LogFacts::of(&swf::parse(b"", "x").expect("reads"));
        assert_eq!(facts.totals, LogTotals::default());
        assert!(facts.spreads.is_empty());
    }
}
