//! Tasks that ran again, in words: for `powersweep verify` of an experiment and of an artifact.

use powersweep::verify::{Verified, VerifyOptions};

use crate::args::VerifyArgs;
use crate::exit::Failure;
use crate::{inputs, screen};

/// Differences that are shown.
const SHOWN: usize = 20;

/// The options of the command line.
pub(super) fn options(args: &VerifyArgs) -> Result<VerifyOptions, Failure> {
    let parsed = |file: &String| inputs::parse(file, &inputs::text(file, "manifest")?);
    let manifest = args.manifest.as_ref().map(parsed).transpose()?;
    let library = inputs::library_of(args.manifest.as_deref().unwrap_or_default(), &args.logs);
    Ok(VerifyOptions { tasks: args.tasks, sample_seed: args.sample_seed, manifest, library })
}

/// How many tasks ran again, and which.
pub(super) fn sampled(name: &str, found: &Verified) -> String {
    let sample = screen::count(found.rows as u64, "task");
    format!("{} of {sample} of {name} ran again, chosen by --sample-seed {}", found.tasks, found.sample_seed)
}

/// The number of rows that ran again and are equal, in a sentence.
pub(super) fn summary(name: &str, found: &Verified) -> String {
    note_rest(found);
    format!("{}: {}", sampled(name, found), found.equal_rows())
}

/// Notes the rows that were not compared, and the tasks without one.
pub(super) fn note_rest(found: &Verified) {
    found.not_compared.iter().for_each(|sentence| screen::note(&format!("powersweep: {sentence}")));
    if found.foreign > 0 {
        let foreign = screen::count(found.foreign as u64, "row");
        screen::note(&format!(
            "powersweep: not compared: {foreign} of another manifest than the known one; give theirs with --manifest"
        ));
    }
    if found.missing > 0 {
        let missing = screen::count(found.missing, "task");
        screen::note(&format!("powersweep: without a row in the file: {missing} of its manifest"));
    }
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
