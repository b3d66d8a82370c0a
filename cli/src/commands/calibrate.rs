//! `powersweep calibrate`: jobs as they ran against a meter, and the watts of the machine that fit.

use chrono::DateTime;
use powersweep::calibrate::{Replay, replay};
use powersweep_dataset::calibration::{Calibration, Stated, Value};
use powersweep_dataset::writing::{refuse_input, write_whole};
use powersweep_engine::account::J_PER_KWH;
use powersweep_experiments::FileRef;
use serde_json::{Value as Json, json};

use crate::args::CalibrateArgs;
use crate::exit::{Outcome, failure};
use crate::{inputs, screen};

/// A message about a meter's file, with options in place of the keys that a signal has in a manifest.
fn named_by_options(message: String) -> String {
    let options = [
        ("`time_column`", "--meter-time-column"),
        ("`column`", "--meter-column"),
        ("`unit`", "--meter-unit"),
        ("`timezone`", "--meter-timezone"),
        (
            "`gaps` to \"hold\" (the value before; for files that list only changes) or \"interpolate\" to fill them",
            "--hold-gaps",
        ),
    ];
    options.into_iter().fold(message, |message, (key, option)| message.replace(key, option))
}

/// Replays a log against a meter, and shows what fits.
pub fn run(args: &CalibrateArgs) -> Outcome {
    if let Some(steps) = &args.steps {
        refuse_input(steps, &[&args.log, &args.meter])?;
    }
    let library = inputs::library(&args.logs);
    let format = inputs::format(&library, &args.log)?;
    let log = inputs::parsed(format, &inputs::log(&library, format, &args.log, args.sha256)?)?;
    let bytes = inputs::file(&library, &FileRef::plain(&args.meter, args.meter_sha256))?;
    let series = powersweep_inputs::signals::read(&bytes.bytes, &args.meter, &args.reading())
        .map_err(|error| failure!(Workload, "{}", named_by_options(error.to_string())))?;
    let stated = Stated { idle_w: args.idle_w, busy_w: args.busy_w, loss_factor: args.loss_factor };
    let found = replay(&log, &series, args.procs, stated, [&args.log, &args.meter])?;
    if let Some(path) = &args.steps {
        write_whole(Some(path), steps_csv(&found.found).as_bytes())?;
    }
    match args.shown.is_json() {
        true => screen::print_json(to_json(&found)),
        false => screen::print(&to_text(&found)),
    }
}

/// The values with names and units.
fn values(found: &Calibration) -> [(&'static str, Value); 3] {
    [("idle_w", found.idle_w), ("busy_w", found.busy_w), ("loss_factor", found.loss_factor)]
}

/// The energies with names.
fn energies(found: &Calibration) -> [(&'static str, f64); 6] {
    let energies = found.energies;
    [
        ("measured_jobs", energies.measured_jobs_j),
        ("model_jobs", energies.model_jobs_j),
        ("idle", energies.idle_j),
        ("losses", energies.losses_j),
        ("simulated", energies.simulated_j),
        ("meter", energies.meter_j),
    ]
}

fn to_json(replay: &Replay) -> Json {
    let found = &replay.found;
    let values: serde_json::Map<String, Json> = values(found)
        .into_iter()
        .map(|(name, v)| {
            (name.to_owned(), json!({ "value": v.value, "standard_error": v.error, "from": v.from.word() }))
        })
        .collect();
    let energies: serde_json::Map<String, Json> =
        energies(found).into_iter().map(|(name, energy_j)| (format!("{name}_j"), json!(energy_j))).collect();
    let errors = found.errors;
    json!({
        "jobs_count": replay.jobs,
        "power_measured_jobs_count": replay.measured,
        "left_out_count": replay.left_out,
        "machine_procs": replay.procs,
        "steps_count": found.steps.len(),
        "steps_outside_count": replay.outside,
        "from_s": found.steps.first().map(|step| step.step.from_s),
        "to_s": found.steps.last().map(|step| step.step.to_s),
        "values": values,
        "measured_proc_w": found.measured_proc_w,
        "by_frequency": replay
            .frequencies
            .iter()
            .map(|one| json!({ "ghz": one.ghz, "jobs_count": one.jobs, "proc_w": one.energy_j / one.proc_s }))
            .collect::<Vec<_>>(),
        "betas": replay
            .betas
            .iter()
            .map(|(queue, one)| {
                json!({
                    "queue": queue,
                    "ghz": one.ghz,
                    "top_ghz": one.top_ghz,
                    "groups_count": one.groups,
                    "jobs_count": one.jobs,
                    "beta": one.beta,
                    "standard_error": one.error,
                })
            })
            .collect::<Vec<_>>(),
        "bias_w": errors.bias_w,
        "bias_share": errors.bias_share,
        "rmse_w": errors.rmse_w,
        "mape": errors.mape,
        "nad": errors.nad,
        "energies": energies,
        "platform": platform(found, replay.procs),
    })
}

/// A number with six significant digits.
fn shown(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    rounded.to_string()
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.3} %", 100.0 * share))
}

fn to_text(replay: &Replay) -> String {
    let found = &replay.found;
    let mut fit = screen::table();
    fit.set_header(["value", "", "standard error", "from"]);
    for (name, value) in values(found) {
        let error = value.error.map_or_else(String::new, shown);
        fit.add_row([name.to_owned(), shown(value.value), error, value.from.word().to_owned()]);
    }
    if let Some(proc_w) = found.measured_proc_w {
        let name = "measured power of a processor (W)".to_owned();
        fit.add_row([name, shown(proc_w), String::new(), "mean of jobs".to_owned()]);
    }
    for one in &replay.frequencies {
        let name = format!("the same at {} GHz, {}", one.ghz, screen::count(one.jobs, "job"));
        fit.add_row([name, shown(one.energy_j / one.proc_s), String::new(), "mean of jobs".to_owned()]);
    }
    for (queue, one) in &replay.betas {
        let of_queue = if *queue > 0 { format!(", queue {queue}") } else { String::new() };
        let name = format!("beta from {} to {} GHz{of_queue}", one.ghz, one.top_ghz);
        let jobs = format!("{} in {}", screen::count(one.jobs, "job"), screen::count(one.groups, "group"));
        fit.add_row([name, shown(one.beta), one.error.map_or_else(String::new, shown), jobs]);
    }
    let errors = found.errors;
    let mut quality = screen::table();
    quality.set_header(["simulated against meter", ""]);
    quality.add_row(["bias".to_owned(), format!("{} W, {}", shown(errors.bias_w), percent(Some(errors.bias_share)))]);
    quality.add_row(["RMSE".to_owned(), format!("{} W", shown(errors.rmse_w))]);
    quality.add_row(["MAPE".to_owned(), percent(errors.mape)]);
    quality.add_row(["NAD".to_owned(), percent(errors.nad)]);
    let mut balance = screen::table();
    balance.set_header(["energy", "kWh", "share of the meter"]);
    for (name, energy_j) in energies(found) {
        let share = (found.energies.meter_j > 0.0).then(|| energy_j / found.energies.meter_j);
        balance.add_row([name.to_owned(), shown(energy_j / J_PER_KWH), percent(share)]);
    }
    let time = |at_s: f64| {
        let calendar = replay.unix_start_s.and_then(|start_s| DateTime::from_timestamp(start_s + at_s as i64, 0));
        calendar.map_or_else(|| format!("second {at_s}"), |time| time.format("%Y-%m-%d %H:%M UTC").to_string())
    };
    let span = found.steps.first().zip(found.steps.last());
    let span = span.map_or_else(String::new, |(first, last)| {
        format!(" from {} to {}", time(first.step.from_s), time(last.step.to_s))
    });
    format!(
        "{}, {} with a measured power; {} left out without start, run time or processors\n{}{span}; {} outside of the jobs\n\
         {fit}\n{quality}\n{balance}\n{}",
        screen::count(replay.jobs, "job"),
        replay.measured,
        screen::count(replay.left_out, "record"),
        screen::count(found.steps.len() as u64, "step"),
        replay.outside,
        platform(found, replay.procs)
    )
}

/// The platform for a manifest.
fn platform(found: &Calibration, procs: u32) -> String {
    // Without jobs of the model, a busy processor draws what the measured ones drew.
    let has_model_jobs = found.energies.model_jobs_j > 0.0;
    let busy_w = found.measured_proc_w.filter(|_| !has_model_jobs).unwrap_or(found.busy_w.value);
    let mut text = format!(
        "[platforms.fitted]\npower = \"stated\"\nprocs = {procs}\ngears_ghz = [1]\nbusy_w = [{busy_w}]\nidle_w = {}\n",
        found.idle_w.value
    );
    if found.loss_factor.value != 1.0 {
        text.push_str(&format!("# `pue` of [signals.NAME]: {}\n", found.loss_factor.value));
    }
    // The limits of the key `pue`.
    if !(1.0..=10.0).contains(&found.loss_factor.value) {
        text.push_str(
            "# `pue` is below 1 or above 10, which a signal refuses: are the unit and the time zone of the meter right?\n",
        );
    }
    if found.idle_w.value > busy_w {
        text.push_str("# `idle_w` is above `busy_w`, which a platform refuses: state one of them\n");
    }
    text
}

fn steps_csv(found: &Calibration) -> String {
    let mut text = "from_s,to_s,meter_w,simulated_w,measured_jobs_w,measured_procs,model_procs,idle_procs\n".to_owned();
    for compared in &found.steps {
        let (step, load) = (compared.step, compared.load);
        text.push_str(&format!(
            "{},{},{},{},{},{},{},{}\n",
            step.from_s,
            step.to_s,
            step.mean_w,
            compared.simulated_w,
            load.measured_w,
            load.measured_procs,
            load.model_procs,
            load.idle_procs
        ));
    }
    text
}
