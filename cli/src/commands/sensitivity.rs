//! `powersweep sensitivity`: which parameters move a metric.

use powersweep::block_on;
use powersweep::sensitivity::{Sensitivity, SensitivityOptions};
use powersweep_dataset::text::Sheet;

use crate::args::{RowFormat, SensitivityArgs};
use crate::exit::{Exit, Outcome};
use crate::framed::{encoding, sheets, written};
use crate::screen;

/// Points without a value that are named on the screen.
const SHOWN: usize = 10;

/// Shows how much each parameter moves the metrics.
pub fn run(args: &SensitivityArgs) -> Outcome {
    args.out.check()?;
    let SensitivityArgs { of, design, by, only, ranges, .. } = args;
    let (of, design, by) = (of.clone(), design.clone(), by.clone());
    let options = SensitivityOptions { of, design, by, only: only.clone(), ranges: ranges.clone() };
    let found = block_on(async { args.from.place()?.sensitivity(&args.experiment, &options).await })?;
    if let Some(encoding) = encoding(args.out.format()) {
        written(found.frame().batch(), encoding, 0, &args.out, &args.experiment)?;
    } else {
        let tables: Vec<(&str, Sheet)> =
            found.of_metrics().iter().map(|(metric, frame)| (*metric, Sheet::of(frame))).collect();
        sheets(&tables, &args.out)?;
    }
    if args.out.format() == RowFormat::Table {
        screen::print(&format!("\n{}", found.said()))?;
    } else if !found.missing.is_empty() || !found.refused.is_empty() {
        screen::note(&format!("powersweep: {}", found.said()));
    }
    note_missing(&found, &args.experiment);
    Ok(Exit::Done)
}

/// Names the points without a value.
fn note_missing(found: &Sensitivity, experiment: &str) {
    let lines = found.missing.iter().take(SHOWN).map(|missing| format!("  {}", missing.said()));
    let mut text: Vec<String> = lines.collect();
    if text.is_empty() {
        return;
    }
    if found.missing.len() > SHOWN {
        text.push(format!("  and {} more", found.missing.len() - SHOWN));
    }
    if found.missing.iter().any(|missing| !missing.has_rows) {
        text.push(format!("`powersweep results {experiment} --table failures` says which tasks failed, and why."));
    }
    screen::note(&text.join("\n"));
}
