//! `powersweep calibrate`: a log against a meter.

use crate::sandbox::Sandbox;

/// Jobs of nodes: submit, start and run time (s), nodes, watts, GHz.
const JOBS: [(u32, u32, u32, u32, &str, &str); 5] = [
    (0, 0, 600, 1, "250", "2.0"),
    (0, 60, 900, 3, "", ""),
    (30, 300, 600, 1, "280", "2.2"),
    (60, 660, 300, 4, "", ""),
    (90, 720, 480, 1, "300", "2.2"),
];

/// 10 nodes: 100 W idle, 250 W busy, losses of 10%.
fn meter() -> String {
    let mut text = "seconds,facility_w\n".to_owned();
    for step in 0..20 {
        let at_s = step * 60;
        let running = JOBS.iter().filter(|(_, start, run, ..)| (*start..start + run).contains(&at_s));
        let (mut idle, mut watts) = (10, 0.0);
        for (.., nodes, power_w, _) in running {
            idle -= nodes;
            watts += power_w.parse().unwrap_or(250.0 * f64::from(*nodes));
        }
        text.push_str(&format!("{at_s},{}\n", 1.1 * (watts + 100.0 * f64::from(idle))));
    }
    text
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut table = "s,b,r,n,p,f\n".to_owned();
    for (submit, start, run, nodes, power_w, ghz) in JOBS {
        table.push_str(&format!("{submit},{},{run},{nodes},{power_w},{ghz}\n", start - submit));
    }
    sandbox.write("jobs.csv", &table);
    sandbox.write("meter.csv", meter());
    let columns = "submit=s,wait=b,run=r,nodes=n,power_w=p,ghz=f";
    let import = ["import", "csv", "./jobs.csv", "--columns", columns, "--procs", "nodes", "-o", "jobs.swf"];
    sandbox.run(&[&import[..], &["--machine-procs", "10"]].concat()).exits(0);
    sandbox
}

#[test]
fn a_meter_gives_the_watts_of_the_machine() {
    let sandbox = sandbox();
    let calibrate = ["calibrate", "./jobs.swf", "--meter", "./meter.csv"];
    let shown = [
        "5 jobs, 3 with a measured power",
        "[platforms.fitted]",
        "the same at 2.2 GHz, 2 jobs",
        "beta from 2 to 2.2 GHz",
        "fitted",
    ];
    sandbox.run(&calibrate).exits(0).prints(&shown);
    let found = sandbox.run(&[&calibrate[..], &["--steps", "steps.csv", "--json"]].concat()).exits(0).json();
    let value = |name: &str| found["values"][name]["value"].as_f64().expect("a number");
    for (name, known) in [("idle_w", 100.0), ("busy_w", 250.0), ("loss_factor", 1.1)] {
        assert!((value(name) - known).abs() < 1e-6 * known, "{name}: {found}");
    }
    // 600 s at 2.0 GHz against 600 s and 480 s at 2.2 GHz, of jobs with one node each.
    let beta = &found["betas"][0];
    assert_eq!((&beta["jobs_count"], &beta["groups_count"]), (&3.into(), &1.into()), "{found}");
    let factor = 600.0 / (600.0_f64 * 480.0).sqrt();
    assert!(beta["beta"].as_f64().is_some_and(|beta| (beta - (factor - 1.0) / 0.1).abs() < 1e-9), "{found}");
    assert!(found["nad"].as_f64().is_some_and(|nad| nad < 1e-9), "{found}");
    let steps = std::fs::read_to_string(sandbox.path("steps.csv")).expect("written");
    assert_eq!(steps.lines().count(), 21, "{steps}");
    // A stated value is kept.
    let kept = sandbox.run(&[&calibrate[..], &["--idle-w", "90", "--json"]].concat()).exits(0).json();
    assert_eq!(
        (&kept["values"]["idle_w"]["value"], &kept["values"]["idle_w"]["from"]),
        (&90.0.into(), &"stated".into())
    );
}

/// A meter in watts whose column says kilowatts gives a loss factor of 1,100.
#[test]
fn a_loss_factor_that_is_no_pue_is_said() {
    let sandbox = sandbox();
    sandbox.write("kw.csv", meter().replace("facility_w", "facility_kw"));
    let said =
        "`pue` is below 1 or above 10, which a signal refuses: are the unit and the time zone of the meter right?";
    let shown = |meter: &str| sandbox.run(&["calibrate", "./jobs.swf", "--meter", meter]).exits(0).stdout;
    assert!(shown("./kw.csv").contains(said), "{}", shown("./kw.csv"));
    assert!(!shown("./meter.csv").contains(said), "{}", shown("./meter.csv"));
}

#[test]
fn what_is_missing_is_said() {
    let sandbox = sandbox();
    let meter = ["--meter", "./meter.csv"];
    sandbox.write("dates.csv", "time,facility_w\n2024-01-08T09:00:00Z,5\n2024-01-08T09:10:00Z,5\n");
    let run = |log: &str, meter: &[&str]| sandbox.run(&[&["calibrate", log], meter].concat());
    run("./jobs.swf", &["--meter", "./dates.csv"]).exits(4).says(&["no UnixStartTime"]);
    sandbox.write("bare.csv", "seconds,w\n0,5\n60,5\n");
    run("./jobs.swf", &["--meter", "./bare.csv"]).exits(4).says(&["set --meter-unit"]);
    sandbox.write("late.csv", "seconds,facility_w\n50000,5\n50060,5\n50120,5\n");
    run("./jobs.swf", &["--meter", "./late.csv"]).exits(4).says(&["no step of the meter is within the span"]);
    sandbox.write("unknown.swf", "; MaxProcs: 8\n1 0 -1 60 4 -1 -1 4 90 -1 1 1 1 -1 1 -1 -1 -1\n");
    run("./unknown.swf", &meter).exits(4).says(&["when jobs started is not known"]);
    run("./jobs.swf", &[&meter[..], &["--idle-w", "-1"]].concat()).exits(2).says(&["a number from 0"]);
    run("./jobs.swf", &[&meter[..], &["--procs", "3"]].concat()).exits(4).says(&["the machine has 3"]);
}
