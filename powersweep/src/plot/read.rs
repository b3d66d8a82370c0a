//! Rows of a figure: columns of one table, and columns of `tasks` beside them.

use powersweep_dataset::column::is_numeric;
use powersweep_dataset::grouped::{FooterFacts, collected};
use powersweep_dataset::source::{conditions, type_of};
use powersweep_dataset::{Condition, Datasets, Error, Frame, Rows};
use powersweep_experiments::reading::add_new;
use powersweep_figures::Look;
use powersweep_results::Table as Stored;

use super::{PlotOptions, titles};

/// The table that has a column, of those that a figure may be of.
pub(super) fn table_of(column: &str) -> Stored {
    let has = |table: &Stored| table.schema().column_with_name(column).is_some();
    [Stored::Tasks, Stored::Jobs, Stored::Series].into_iter().find(has).unwrap_or(Stored::Tasks)
}

/// A request for a figure of an experiment's rows.
pub(super) struct Request<'a> {
    pub(super) datasets: &'a Datasets,
    pub(super) experiment: &'a str,
    pub(super) options: &'a PlotOptions,
    pub(super) look: &'a Look,
    pub(super) facts: &'a FooterFacts,
}

impl Request<'_> {
    /// The rows of a table that satisfy all conditions. `measures` that have no numbers become axes.
    pub(super) async fn read(
        &self,
        table: Stored,
        axes: &[&str],
        measures: &[&str],
        more: &[Condition],
    ) -> Result<Rows, Error> {
        let mut only = conditions(table, &self.options.only)?;
        only.extend_from_slice(more);
        let has_numbers = |name: &&str| type_of(table, name).is_ok_and(|of| is_numeric(&of));
        let (measures, named): (Vec<&str>, Vec<&str>) = measures.iter().copied().partition(has_numbers);
        let mut all: Vec<&str> = Vec::new();
        add_new(&mut all, axes.iter().copied().chain(named));
        let reading = self.datasets.read(self.experiment, table).await?;
        self.facts.say_unmeasured(self.datasets, table);
        let rows = collected(self.datasets, &reading, self.facts, [&all, &measures], only).await?;
        reading.check_table()?;
        Ok(rows)
    }

    /// The labels, components and parameters that have several values in the experiment, and the seed.
    pub(super) fn varying(&self) -> Vec<String> {
        let found = self.facts.candidates.iter();
        found.filter(|column| column.distinguishes()).map(|column| column.name.clone()).collect()
    }
}

/// Some columns of all rows, in the order of the tasks.
pub(super) fn frame(rows: &Rows, names: &[&str]) -> Result<Frame, Error> {
    Ok(Frame::of(rows.frame(names)?.columns().map(|column| titles::titled(&column))))
}
