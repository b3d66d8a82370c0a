//! Mutated texts: no panic, the ledger adds up, and the engine reads what is written.
//!
//! `POWERSWEEP_CASES` is the number of texts (default 3,000; a full run is 1,000,000); `POWERSWEEP_FUZZ_SEED` is the first
//! seed. A failure prints its seed and the text.

use std::panic::{AssertUnwindSafe, catch_unwind};

use powersweep_experiments::signals::Word as _;
use powersweep_inputs::joblogs::{Arrival, Format, Procs, Settings, TimeUnit, read};

use crate::joblogs::{check, defaults};

/// A random generator that a seed repeats (SplitMix64).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform below `n` (1 or more).
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Cells that readers often handle wrongly.
const NASTY: [&str; 40] = [
    "",
    " ",
    "0",
    "-1",
    "1e9",
    "nan",
    "inf",
    "9223372036854775807",
    "18446744073709551616",
    "4294967295",
    "1073741825",
    "999999999999",
    "Unknown",
    "None",
    "UNLIMITED",
    "Partition_Limit",
    "None assigned",
    "123.batch",
    "5.0",
    "7_[1-9]",
    "7_3",
    "7+1",
    "COMPLETED",
    "CANCELLED by 0",
    "RUNNING",
    "FOO",
    "2017-10-29T02:30:00",
    "2017-03-26T02:30:00",
    "2017-01-01T00:00:60",
    "2200-12-31T23:59:59",
    "1970-01-01T00:00:00",
    "1483228800",
    "2017-01-01T00:00:00+18:00",
    "99999-23:59:59",
    "00:00:00",
    "cpu=1073741824,node=1,gres/gpu:a=1073741824,gres/gpu:b=1",
    "cpu=",
    "a\u{300}\u{e0}\u{1f600}",
    "\u{661}",
    "\0",
];

/// The rows of a plausible dump of Slurm.
fn slurm(dice: &mut Dice) -> Vec<Vec<String>> {
    let header = "JobID|JobIDRaw|State|Submit|Eligible|Start|End|Elapsed|NCPUS|AllocCPUS|ReqCPUS|NNodes|AllocTRES|Timelimit|\
                  NodeList|ConsumedEnergyRaw|User|Partition|JobName";
    let split = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
    let mut rows = vec![split(header)];
    // Around the hour that Berlin's clocks showed twice.
    let first = 1_509_235_200;
    for id in 0..dice.below(6) {
        let submit = first + dice.below(10_000);
        let (start, elapsed) = (submit + dice.below(5_000), dice.below(9_000));
        let time = |seconds: usize| {
            let (day, second) = (29 + (seconds - first) / 86_400, (seconds - first) % 86_400);
            format!("2017-10-{day}T{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
        };
        let state = dice.pick(&["COMPLETED", "FAILED", "CANCELLED by 7", "TIMEOUT", "PREEMPTED", "RUNNING"]);
        let id = 1 + if dice.one_in(4) { id / 2 } else { id };
        let clock = format!("{:02}:{:02}:{:02}", elapsed / 3600, elapsed / 60 % 60, elapsed % 60);
        let cpus = 1 + dice.below(64);
        rows.push(split(&format!(
            "{id}|{id}|{state}|{}|{}|{}|{}|{clock}|{cpus}|{cpus}|{cpus}|1|cpu={cpus},node=1,gres/gpu=1|1-00:00:00|n1|5000|u{id}|p|j",
            time(submit),
            time(submit),
            time(start),
            time(start + elapsed),
        )));
    }
    rows
}

/// The records of a plausible accounting log of PBS, cut where values begin and end.
fn pbs(dice: &mut Dice) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for id in 0..=dice.below(6) {
        let submit = 1_453_756_297 + dice.below(10_000);
        let (start, cpus) = (submit + dice.below(5_000), 1 + dice.below(64));
        let end = start + dice.below(9_000);
        let id = format!("{}{}", 1 + id, dice.pick(&["", ".pbs", ".pbs", "[3].pbs", "[].pbs"]));
        let places = dice.pick(&["c1/0*13+c2/0*13", "n1/7+n1/6", "c1/0-3,5+c2/0-7", "h/0*0"]);
        let cells: [&str; 21] = [
            "01/26/2016 00:00:37;",
            dice.pick(&["E", "E", "E", "E", "Q", "S"]),
            ";",
            &id,
            ";user=ann queue=q jobname=a b ctime=",
            &submit.to_string(),
            " etime=",
            &submit.to_string(),
            " start=",
            &start.to_string(),
            " end=",
            &end.to_string(),
            " exec_host=",
            places,
            " exec_vnode=(c1:ncpus=13:ngpus=1)+(c2:ncpus=",
            &cpus.to_string(),
            ") Resource_List.nodes=1:ppn=",
            &cpus.to_string(),
            ":gpus=1 Resource_List.walltime=",
            "96:00:00",
            " Exit_status=0",
        ];
        rows.push(cells.map(str::to_owned).to_vec());
    }
    rows
}

/// A plausible table: a header, and rows with times from 0 or from 1970.
fn table(dice: &mut Dice, header: &str, row: fn(&mut Dice, usize, [usize; 3]) -> String) -> Vec<Vec<String>> {
    let split = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut rows = vec![split(header)];
    let base = dice.pick(&[0, 1_600_000_000]);
    for id in 0..dice.below(6) {
        let submit = base + dice.below(10_000);
        let start = submit + dice.below(5_000);
        let end = start + dice.below(9_000);
        let line = row(dice, id, [submit, start, end]);
        rows.push(split(&line));
    }
    rows
}

const CSV_COLUMNS: &str = "id=job,submit=s,start=b,end=e,run=r,limit=l,cpus=c,nodes=n,gpus=g,state=st,user=u";

fn csv(dice: &mut Dice) -> Vec<Vec<String>> {
    table(dice, "job,s,b,e,r,l,c,n,g,st,u", |dice, id, [submit, start, end]| {
        let state = dice.pick(&["COMPLETED", "done", "CANCELLED", "Running"]);
        let limit = dice.pick(&["", "90.5", "1:00:00"]);
        format!("{id},{submit},{start},{end},{},{limit},{},1,0.5,{state},ann", end - start, 1 + dice.below(9))
    })
}

fn helios(dice: &mut Dice) -> Vec<Vec<String>> {
    let header = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue";
    table(dice, header, |dice, id, [submit, start, end]| {
        let time = |seconds: usize| {
            let second = seconds % 86_400;
            format!("2017-10-29 {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
        };
        let state = dice.pick(&["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"]);
        format!("{id},u,v,8,48,1,{state},{},{},{},{},0", time(submit), time(start), time(end), end - start)
    })
}

fn alibaba(dice: &mut Dice) -> Vec<Vec<String>> {
    match dice.below(3) {
        0 => {
            let header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time";
            table(dice, header, |dice, id, [submit, start, end]| {
                let phase = dice.pick(&["Running", "Succeeded", "Failed", "Pending"]);
                format!("p{id},6500,1,1,{},,LS,{phase},{submit},{end},{start}", dice.pick(&[460, 1000]))
            })
        }
        1 => {
            let header =
                "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type";
            table(dice, header, |_, id, [submit, start, end]| format!("{id},5,A10,20,1,16,{submit},{},HP", end - start))
        }
        _ => {
            let header = "instance_sn,role,app_name,cpu_request,gpu_request,creation_time,scheduled_time,deletion_time";
            table(dice, header, |_, id, [submit, start, end]| format!("i{id},HN,a,12,1,{submit}.5,{start},{end}"))
        }
    }
}

/// Changes cells, rows and bytes.
fn mutated(dice: &mut Dice, mut rows: Vec<Vec<String>>, separator: &str) -> Vec<u8> {
    for _ in 0..dice.below(5) {
        let row = dice.below(rows.len());
        // A header changes rarely: without it, nothing else is read.
        if row == 0 && !separator.is_empty() && !dice.one_in(8) {
            continue;
        }
        let cell = dice.below(rows[row].len());
        match dice.below(8) {
            0 => rows[row].truncate(cell + 1),
            1 => {
                let copy = rows[row].clone();
                rows.push(copy);
            }
            2 => {
                let other = dice.below(rows.len());
                rows[row][cell] = rows[other].get(cell).cloned().unwrap_or_default();
            }
            3 => rows[row].insert(cell, "x".to_owned()),
            _ => rows[row][cell] = dice.pick(&NASTY).to_owned(),
        }
    }
    let end = dice.pick(&["\n", "\n", "\r\n", "\n\n", "|\n"]);
    let mut text = rows.iter().map(|row| row.join(separator)).collect::<Vec<_>>().join(end).into_bytes();
    if dice.one_in(3) {
        for _ in 0..=dice.below(3) {
            let at = dice.below(text.len().max(1));
            if at == text.len() {
                break;
            }
            match dice.below(4) {
                0 => text.truncate(at + 1),
                1 => text[at] = dice.next() as u8,
                2 => text.insert(at, dice.next() as u8),
                _ => {
                    text.remove(at);
                    text.push(b'\n');
                }
            }
        }
    }
    text
}

fn settings(dice: &mut Dice, format: Format) -> Settings {
    let is_table = !matches!(format, Format::Slurm | Format::Pbs | Format::OpenDc);
    // A zone that no time needs is refused.
    let has_local = !matches!(format, Format::Pbs | Format::OpenDc | Format::Alibaba | Format::Pm100);
    let zone = dice.pick(&[Some("Europe/Berlin"), Some("UTC"), Some("America/New_York"), None]);
    Settings {
        timezone: zone.filter(|_| has_local || dice.one_in(8)).map(str::to_owned),
        procs: dice.pick(Procs::WORDS).0,
        arrival: dice.pick(Arrival::WORDS).0,
        columns: (format == Format::Csv).then(|| CSV_COLUMNS.to_owned()),
        time_unit: Some(dice.pick(TimeUnit::WORDS).0).filter(|_| is_table && dice.one_in(3)),
        power_step_s: dice.one_in(2).then_some(30),
        ..defaults(format)
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn dumps_of_slurm() {
    run(Format::Slurm, |dice| text(dice, slurm, "|"));
}

#[test]
fn accounting_logs_of_pbs() {
    run(Format::Pbs, |dice| text(dice, pbs, ""));
}

#[test]
fn tables_of_csv() {
    run(Format::Csv, |dice| text(dice, csv, ","));
}

#[test]
fn tables_of_helios() {
    run(Format::Helios, |dice| text(dice, helios, ","));
}

#[test]
fn tables_of_alibaba() {
    run(Format::Alibaba, |dice| text(dice, alibaba, ","));
}

fn text(dice: &mut Dice, plausible: fn(&mut Dice) -> Vec<Vec<String>>, separator: &str) -> Vec<u8> {
    let rows = plausible(dice);
    mutated(dice, rows, separator)
}

/// Reads generated files.
pub(crate) fn run(format: Format, file: impl Fn(&mut Dice) -> Vec<u8>) {
    let (cases, first) = (number("POWERSWEEP_CASES", 3_000), number("POWERSWEEP_FUZZ_SEED", 1));
    let (mut refused, mut jobs) = (0, 0);
    for seed in first..first + cases {
        let mut dice = Dice(seed);
        let settings = settings(&mut dice, format);
        let text = file(&mut dice);
        let outcome = catch_unwind(AssertUnwindSafe(|| match read(&text, "mutated", &settings) {
            Ok(log) => {
                check(&log);
                Ok(log.records.len())
            }
            Err(error) => Err(error.to_string()),
        }));
        match outcome {
            Ok(Ok(found)) => jobs += found,
            Ok(Err(message)) => {
                refused += 1;
                assert!(message.starts_with("mutated: ") && message.len() < 2_000, "seed {seed}: {message}");
            }
            Err(_) => panic!("POWERSWEEP_FUZZ_SEED={seed} fails:\n{}", String::from_utf8_lossy(&text)),
        }
    }
    println!("{}: {cases} texts, {refused} refused, {jobs} jobs", format.word());
    assert!(
        cases < 100 || (refused > cases / 20 && refused < cases * 19 / 20 && jobs > 0),
        "{refused} refused, {jobs} jobs"
    );
}
