//! `powersweep best`: the parameters with the best metrics, under conditions.

use powersweep::best::{BestOptions, FrontVolume, Goal};
use powersweep::block_on;
use powersweep_dataset::words::number;

use crate::args::BestArgs;
use crate::exit::{Failure, Outcome, failure};
use crate::framed::framed;
use crate::screen;

/// Shows the best combinations of parameters.
pub fn run(args: &BestArgs) -> Outcome {
    args.out.check()?;
    let options = options(args)?;
    let found = block_on(async { args.from.place()?.best(&args.experiment, &options).await })?;
    if let Some(why) = &found.why_none {
        if found.combinations == 0 {
            return screen::print(why);
        }
        return Err(failure!(Failure, "{why}"));
    }
    if !args.subject_to.is_empty() {
        screen::note(&format!("powersweep: {}", found.satisfying()));
    }
    if let Some(volume) = &found.volume {
        screen::note(&format!("powersweep: {}", shown(volume, &options)));
    }
    framed(&found.frame, 0, &args.out, &args.experiment)
}

/// The hypervolume in words.
fn shown(volume: &FrontVolume, options: &BestOptions) -> String {
    let goals = options.goals.iter().zip(&volume.reference);
    let reference: Vec<String> = goals.map(|(goal, value)| format!("{} {}", goal.column, number(*value))).collect();
    let of = format!("relative to {}", reference.join(", "));
    match volume.hypervolume {
        Some(found) => {
            let share = volume
                .share()
                .map_or_else(String::new, |share| format!(", {share:.4} of the box of the front's best values"));
            format!("the hypervolume of the front is {} {of}{share}", number(found))
        }
        None => format!("the front has too many points for its hypervolume {of}"),
    }
}

fn options(args: &BestArgs) -> Result<BestOptions, Failure> {
    let goal = |is_maximised: bool| move |column: &String| Goal { column: column.clone(), is_maximised };
    let goals: Vec<Goal> = args.minimise.iter().map(goal(false)).chain(args.maximise.iter().map(goal(true))).collect();
    if goals.is_empty() {
        return Err(failure!(
            Usage,
            "name a goal, such as --minimise energy_total_j or --maximise utilization_installed"
        ));
    }
    let (subject_to, only) = (args.subject_to.clone(), args.only.clone());
    Ok(BestOptions { goals, subject_to, only, by: args.by.clone(), top: args.top, reference: args.reference.clone() })
}
