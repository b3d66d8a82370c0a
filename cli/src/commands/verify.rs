//! `powersweep verify`: simulates some finished tasks again and compares their rows bit for bit.

use std::time::Instant;

use powersweep::block_on;
use powersweep::verify::{Verified, VerifyOptions};

use crate::args::VerifyArgs;
use crate::exit::{Outcome, failure};
use crate::{inputs, screen};

/// Differences that are shown.
const SHOWN: usize = 20;

/// Simulates a random sample of tasks again.
pub fn run(args: &VerifyArgs) -> Outcome {
    let began = Instant::now();
    let parsed = |file: &String| inputs::parse(file, &inputs::text(file, "manifest")?);
    let manifest = args.manifest.as_ref().map(parsed).transpose()?;
    let library = inputs::library_of(args.manifest.as_deref().unwrap_or_default(), &args.logs);
    let options = VerifyOptions { tasks: args.tasks, sample_seed: args.sample_seed, manifest, library };
    let found = block_on(async { args.from.place()?.verify(&args.experiment, &options).await })?;
    let sample = screen::count(found.rows as u64, "task");
    let sample = format!("{} of {sample} of {} ran again", found.tasks, args.experiment);
    let sample = format!("{sample}, chosen by --sample-seed {}", found.sample_seed);
    if found.foreign > 0 {
        let foreign = screen::count(found.foreign as u64, "row");
        screen::note(&format!(
            "powersweep: {foreign} are of an earlier manifest, which is not known, and were not compared; give it with --manifest"
        ));
    }
    match (found.differing.len(), found.equal) {
        (0, 0) => Err(failure!(
            Failure,
            "no row could be compared: no task of the rows is one of the manifest. Give the manifest that made them by --manifest"
        )),
        (0, equal) => {
            let (rows, time) = (screen::count(equal as u64, "row"), screen::duration(began.elapsed().as_secs_f64()));
            screen::print(&format!("{sample}: {rows} equal in every column, bit for bit ({time})"))
        }
        (differing, _) => {
            screen::print(&differences(&found))?;
            Err(failure!(ClaimFails, "{sample}: {differing} rows differ"))
        }
    }
}

fn differences(found: &Verified) -> String {
    let mut table = screen::table();
    table.set_header(["task", "column", "stored", "now"]);
    let all = found.differing.iter().flat_map(|(index, columns)| columns.iter().map(move |column| (index, column)));
    for (index, of) in all.clone().take(SHOWN) {
        table.add_row([&index.to_string(), &of.column, &of.stored, &of.now]);
    }
    match all.count().saturating_sub(SHOWN) {
        0 => table.to_string(),
        more => format!("{table}\n… and {more} more differences"),
    }
}
