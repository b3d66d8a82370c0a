//! `powersweep best`: the parameters with the best metrics, under conditions.

use std::collections::BTreeSet;

use powersweep::block_on;
use powersweep_dataset::best::{Goal, front};
use powersweep_dataset::grouped::{FooterFacts, collected};
use powersweep_dataset::scan::SEED;
use powersweep_dataset::source::conditions;
use powersweep_dataset::{Condition, Frame, Stat, grouped};
use powersweep_results::Table;

use crate::args::BestArgs;
use crate::exit::{Failure, Outcome, failure};
use crate::framed::framed;
use crate::screen;

/// Shows the best combinations of parameters.
pub fn run(args: &BestArgs) -> Outcome {
    args.out.check()?;
    let goals = goals(args)?;
    let subject = conditions(Table::Tasks, &args.subject_to)?;
    block_on(async {
        let datasets = args.from.place()?.datasets().await?;
        let reading = datasets.read(&args.experiment, Table::Tasks).await?;
        let known = FooterFacts::read(&datasets, &args.experiment).await?;
        let by: Vec<&str> = match args.by.is_empty() {
            true => {
                let chosen =
                    known.candidates.iter().filter(|candidate| candidate.distinguishes() && candidate.name != SEED);
                chosen.map(|candidate| candidate.name.as_str()).collect()
            }
            false => args.by.iter().map(|name| name.trim()).collect(),
        };
        let columns = goals.iter().map(|goal| &goal.column).chain(subject.iter().map(|condition| &condition.column));
        let mut seen = BTreeSet::new();
        let measures: Vec<&str> =
            columns.map(String::as_str).filter(|name| !by.contains(name) && seen.insert(*name)).collect();
        let only = conditions(Table::Tasks, &args.only)?;
        let rows = collected(&datasets, &reading, &known, [&by, &measures], only).await?;
        let all = grouped(&rows, &by, &[Stat::Mean, Stat::Interval(95)])?;
        if rows.is_empty() {
            return screen::print(if args.only.is_empty() { "no rows yet" } else { "no row has these values" });
        }
        let satisfied = satisfied(&all, &subject)?;
        let feasible = all.kept(|row| satisfied.iter().all(|condition| condition[row]));
        let (count, of) = (feasible.rows(), all.rows());
        if count == 0 {
            return Err(infeasible(&all, &subject, &satisfied)?);
        }
        if !subject.is_empty() {
            let of = screen::count(of as u64, "combination");
            screen::note(&format!("powersweep: {count} of {of} satisfy the conditions"));
        }
        let found = match &goals[..] {
            [goal] => feasible.sorted(&goal.column, goal.is_maximised)?.part(0, args.top),
            goals => feasible.picked(&front(&feasible, goals)?),
        };
        framed(&found, 0, &args.out, &args.experiment)
    })
}

fn goals(args: &BestArgs) -> Result<Vec<Goal>, Failure> {
    let goal = |is_maximised: bool| move |column: &String| Goal { column: column.trim().to_owned(), is_maximised };
    let goals: Vec<Goal> = args.minimise.iter().map(goal(false)).chain(args.maximise.iter().map(goal(true))).collect();
    if goals.is_empty() {
        return Err(failure!(
            Usage,
            "name a goal, such as --minimise energy_total_j or --maximise utilization_installed"
        ));
    }
    Ok(goals)
}

/// For each condition, whether each row satisfies it: by its mean, or by its parameter.
fn satisfied(all: &Frame, subject: &[Condition]) -> Result<Vec<Vec<bool>>, Failure> {
    let of = |condition: &Condition| {
        let column = all.column(&condition.column)?;
        Ok((0..column.len()).map(|row| condition.holds(&column.cell(row))).collect())
    };
    subject.iter().map(of).collect()
}

/// Why no combination is left: for each condition, how many satisfy it, and the range of its column.
fn infeasible(all: &Frame, subject: &[Condition], satisfied: &[Vec<bool>]) -> Result<Failure, Failure> {
    let mut text = format!("none of {} satisfies the conditions", screen::count(all.rows() as u64, "combination"));
    for (condition, rows) in subject.iter().zip(satisfied) {
        let column = all.column(&condition.column)?;
        let values = (0..column.len()).filter_map(|row| column.cell(row).number());
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), v| (l.min(v), m.max(v)));
        let count = rows.iter().filter(|holds| **holds).count();
        let range = match least <= most {
            true => format!(" lies between {} and {}", screen::number(least), screen::number(most)),
            false => String::new(),
        };
        text += &format!("\n{}{range}: its condition holds for {count}", condition.column);
    }
    Ok(failure!(Failure, "{text}"))
}
