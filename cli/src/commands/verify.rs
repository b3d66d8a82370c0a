//! `powersweep verify`: simulates some finished tasks again and compares their rows bit for bit.

use std::time::Instant;

use powersweep::artifact::is_artifact;
use powersweep::block_on;
use powersweep::verify::{Verified, VerifyOptions};

use crate::args::VerifyArgs;
use crate::exit::{Failure, Outcome, failure};
use crate::{inputs, screen};

/// Differences that are shown.
const SHOWN: usize = 20;

/// Simulates a random sample of tasks again.
pub fn run(args: &VerifyArgs) -> Outcome {
    if is_artifact(&args.experiment) {
        return super::artifact::verified(args);
    }
    if args.figures.is_some() {
        return Err(failure!(Usage, "only an artifact has figures: leave out --figures, or see `powersweep plot`"));
    }
    let began = Instant::now();
    let options = options(args)?;
    let found = block_on(async { args.from.place()?.verify(&args.experiment, &options).await })?;
    match (found.differing.len(), found.equal) {
        (0, 0) => {
            foreign(&found);
            Err(failure!(
                Failure,
                "no row could be compared: no task of the rows is one of the manifest. Give the manifest that made them by --manifest"
            ))
        }
        (0, _) => {
            let time = screen::duration(began.elapsed().as_secs_f64());
            screen::print(&format!("{} ({time})", summary(&args.experiment, &found)))
        }
        (differing, _) => {
            foreign(&found);
            screen::print(&differences(&found))?;
            let sampled = sampled(&args.experiment, &found);
            Err(failure!(ClaimFails, "{sampled}: {}", differing_rows(differing, "")))
        }
    }
}

/// The options of the command line.
pub(super) fn options(args: &VerifyArgs) -> Result<VerifyOptions, Failure> {
    let parsed = |file: &String| inputs::parse(file, &inputs::text(file, "manifest")?);
    let manifest = args.manifest.as_ref().map(parsed).transpose()?;
    let library = inputs::library_of(args.manifest.as_deref().unwrap_or_default(), &args.logs);
    Ok(VerifyOptions { tasks: args.tasks, sample_seed: args.sample_seed, manifest, library })
}

/// How many tasks ran again, and which.
fn sampled(name: &str, found: &Verified) -> String {
    let sample = screen::count(found.rows as u64, "task");
    format!("{} of {sample} of {name} ran again, chosen by --sample-seed {}", found.tasks, found.sample_seed)
}

/// The number of rows that ran again and are equal, in a sentence.
pub(super) fn summary(name: &str, found: &Verified) -> String {
    foreign(found);
    let equal = screen::count(found.equal as u64, "row");
    format!("{}: {equal} equal in every column, bit for bit", sampled(name, found))
}

/// Notes the rows that were not compared.
fn foreign(found: &Verified) {
    if found.foreign > 0 {
        let foreign = screen::count(found.foreign as u64, "row");
        screen::note(&format!(
            "powersweep: {foreign} are of an earlier manifest, which is not known, and were not compared; give it with --manifest"
        ));
    }
}

/// The number of rows that differ, in a sentence.
pub(super) fn differing_rows(count: usize, of: &str) -> String {
    format!("{}{of} {}", screen::count(count as u64, "row"), if count == 1 { "differs" } else { "differ" })
}

/// The columns that differ.
pub(super) fn differences(found: &Verified) -> String {
    let mut table = screen::table();
    table.set_header(["task", "column", "stored", "now"]);
    let all = found.differing.iter().flat_map(|(index, columns)| columns.iter().map(move |column| (index, column)));
    for (index, of) in all.clone().take(SHOWN) {
        table.add_row([&index.to_string(), &of.column, &of.stored, &of.now]);
    }
    match all.count().saturating_sub(SHOWN) {
        0 => table.to_string(),
        more => format!("{table}\n… and {}", screen::count(more as u64, "more difference")),
    }
}
