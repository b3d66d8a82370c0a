//! CSV of any origin. The setting `columns` says which column has which field, such as
//! `submit=arrival_time,run=length,cpus=cpus`.

use powersweep_experiments::signals::Word as _;

use crate::error::{Problem, Problems, shortened};
use crate::joblogs::Ledger;
use crate::joblogs::entry::Entries;
use crate::joblogs::formats::table::{Field, Plan};
use crate::joblogs::settings::{Settings, TimeUnit};
use crate::table::{Sheet, need};

pub(super) fn read(bytes: &[u8], settings: &Settings, ledger: &mut Ledger) -> Result<Entries, Problem> {
    let mut sheet = super::open(bytes, settings)?;
    let plan = plan(&sheet, settings)?;
    plan.read(&mut sheet, settings, ledger)
}

fn plan(sheet: &Sheet<'_>, settings: &Settings) -> Result<Plan, Problem> {
    let names = || sheet.names.iter().map(|name| shortened(name)).collect::<Vec<_>>().join(", ");
    let unfit = |reason: String| Problem::setting("columns", reason);
    let fields = || Field::ALL.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    let Some(columns) = &settings.columns else {
        let reason = format!(
            "it must say which column has which field, such as submit=COLUMN,run=COLUMN,{}=COLUMN; fields: {}; columns: {}",
            settings.procs.word(),
            fields(),
            names()
        );
        return Err(unfit(reason));
    };
    let mut plan = Plan::new(settings.time_unit.unwrap_or(TimeUnit::Seconds));
    let (mut problems, mut is_listed) = (Problems::default(), false);
    let mut set = |item: &str| {
        let (field, name) = item.split_once('=').ok_or_else(|| unfit(format!("{item:?} is not FIELD=COLUMN")))?;
        let found = Field::ALL.iter().find(|(_, known)| *known == field.trim());
        let (field, known) =
            found.ok_or_else(|| unfit(format!("there is no field {:?}; fields: {}", shortened(field), fields())))?;
        let column = need(&sheet.names, name.trim());
        // The columns are listed once, however many of them are not found.
        let column = column.map_err(|reason| match std::mem::replace(&mut is_listed, true) {
            true => unfit(reason),
            false => unfit(format!("{reason}; columns: {}", names())),
        })?;
        if plan.column(*field).is_some() {
            return Err(unfit(format!("the field `{known}` has two columns")));
        }
        plan.set(*field, column);
        Ok(())
    };
    columns.split(',').for_each(|item| {
        problems.take(set(item));
    });
    problems.finish()?;
    let size = settings.procs.word();
    let lacks = |fields: &[Field]| fields.iter().any(|field| plan.column(*field).is_none());
    let lacking = [
        (lacks(&[Field::Submit]), "the field `submit`, at which jobs arrive, has no column".to_owned()),
        (
            lacks(&[Field::Run]) && lacks(&[Field::Start, Field::End]),
            "neither the field `run` nor the fields `start` and `end` have columns".to_owned(),
        ),
        (lacks(&[Field::of(settings.procs)]), format!("the field `{size}`, which counts as processors, has no column")),
    ];
    for (_, reason) in lacking.into_iter().filter(|(is_lacking, _)| *is_lacking) {
        problems.take::<()>(Err(unfit(reason)));
    }
    problems.finish()?;
    Ok(plan)
}

#[cfg(test)]
mod tests;
