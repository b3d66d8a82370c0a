//! A search that runs only the tasks that it needs.
//!
//! A search has an experiment of its own, with a manifest that is derived from the user's: it has the tasks that were asked
//! for so far. Each step adds tasks, so that every row stays; the next step follows from the rows alone. The same search
//! therefore continues after an interruption, and a repetition runs nothing.

mod found;
pub(crate) mod grid;
mod judge;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use powersweep_dataset::frame::{is_cost, is_emission};
use powersweep_dataset::grouped::SIGNAL;
use powersweep_dataset::reading::Reading;
use powersweep_dataset::source::Source;
use powersweep_dataset::writing::write_whole;
use powersweep_dataset::{Cell, Condition, Datasets, Error, dependence, failure};
use powersweep_engine::seeds::{self, Dependence};
use powersweep_experiments::signals::{Quantity, Signal};
use powersweep_experiments::{Derivation, Manifest, Over};
use powersweep_inputs::library::Library;
use powersweep_proto::v1;
use powersweep_results::Table;
use tokio_util::sync::CancellationToken;

pub use self::found::{
    Found, FoundCandidate, FoundCondition, FoundException, FoundGoal, FoundGroup, FoundMeans, Values,
};
use self::grid::{Grid, Group};
use self::judge::{Progress, Question, Rows};
use crate::best::Goal;
use crate::derived::DerivedOptions;
use crate::inputs::{self, Files};
use crate::place::{Answerer, Place, connection, stored};
use crate::replicate::check_table;
use crate::run::{RunOptions, Running};
use crate::submit::{submission, upload_missing};

/// First line of a derived manifest: a file without it is not overwritten.
const MARK: &str = "Written by `powersweep find`, which replaces this file.";

/// The values of a derived manifest, in messages.
const SEARCHED: &str = "the searched values";

/// Column by which rows find their task.
const TASK_ID: &str = "task_id";

/// What is searched for, and how its tasks run.
#[derive(Clone, Default)]
pub struct FindOptions {
    /// Parameters and the values to choose from, in place of the manifest's.
    pub over: Vec<Over>,
    /// A parameter that is searched, or a metric of `tasks` or `accounts`, whose mean over the seeds counts.
    pub goal: Goal,
    /// Conditions on the mean of a metric, or on a parameter, such as `bsld_mean <= 5`.
    pub subject_to: Vec<String>,
    /// Labels of all workloads, from the shortest to the whole one: all candidates run on the first, the best quarter on the next.
    /// Empty: each workload has an answer of its own.
    pub rungs: Vec<String>,
    /// Name of the experiment that holds the tasks; by default the manifest's name with `-find`.
    pub name: Option<String>,
    /// Where the manifest of the tried tasks is kept; by default NAME.toml in the folder of the manifest.
    pub manifest_out: Option<PathBuf>,
    /// The manifest's name and files, and how tasks run.
    pub manifest: DerivedOptions,
}

/// A search under way.
pub struct Search {
    place: Place,
    options: FindOptions,
    original: Manifest,
    files: Files,
    /// Name of the search's experiment.
    name: String,
    /// Where its manifest is kept.
    file: PathBuf,
    grid: Grid,
    question: Question,
    rows: Rows,
    /// The state of the search in each group.
    progress: Vec<Progress>,
    /// Ids of the tasks that this search asked for.
    asked: HashSet<String>,
    /// Number of tasks that this search ran.
    ran: usize,
}

/// Tasks that a search needs next.
#[derive(Debug)]
pub struct Step {
    /// Number of its tasks without a row.
    pub tasks: usize,
    /// Number of the candidates that need tasks.
    pub candidates: usize,
    /// Number of tasks that have rows.
    pub rows: usize,
    /// Number of tasks of the full grid.
    pub grid: usize,
    wanted: HashSet<String>,
}

/// Who runs the tasks of a step.
pub enum StepRun {
    /// This process; [`Running::end`] must be called.
    Here(Box<Running>),
    /// A coordinator.
    AtCoordinator(Box<Waiting>),
}

impl StepRun {
    /// What the submit has found.
    pub fn submitted(&self) -> &v1::SubmitReply {
        match self {
            StepRun::Here(running) => running.submitted(),
            StepRun::AtCoordinator(waiting) => &waiting.submitted,
        }
    }
}

/// A step that a coordinator runs.
pub struct Waiting {
    place: Place,
    client: powersweep_proto::client::Client,
    submitted: v1::SubmitReply,
    stop: CancellationToken,
}

impl Waiting {
    /// Waits until the tasks have ended, and returns the last state of the experiment. Failed tasks are no error.
    ///
    /// # Errors
    /// The wait was stopped, or another command stopped the experiment.
    pub async fn end(self) -> Result<v1::ExperimentStatus, Error> {
        tokio::select! {
            ended = self.place.wait(self.client, &self.submitted.experiment) => ended,
            () = self.stop.cancelled() => Err(interrupted()),
        }
    }
}

impl Place {
    /// Begins a search: [`Search::next`] says which tasks it needs, [`Search::run`] runs them, [`Search::found`] has the
    /// answers. Blocks while the files of the manifest are read.
    ///
    /// # Errors
    /// A parameter, goal or condition is wrong, a file of the manifest cannot be read, or the file of the search's manifest is
    /// another one.
    pub fn find(&self, original: &Manifest, options: FindOptions) -> Result<Search, Error> {
        let axes = options.over.clone();
        if let Some(twice) = (1..axes.len()).find(|at| axes[..*at].iter().any(|axis| axis.name == axes[*at].name)) {
            return Err(failure!(
                Usage,
                "--over names `{}` twice: give all its values in one --over",
                axes[twice].name
            ));
        }
        if original.until().is_some() {
            return Err(failure!(
                Usage,
                "the manifest adds seeds until means are known, and a search adds seeds by itself: give `seeds` a list or a range"
            ));
        }
        let name = options.name.clone().unwrap_or_else(|| format!("{}-find", original.name()));
        let file = options.manifest_out.clone();
        let file = file.unwrap_or_else(|| inputs::folder_of(&options.manifest.file).join(format!("{name}.toml")));
        check_file(&file)?;
        let values = axes.iter().map(|axis| (axis.name, axis.values.clone())).collect();
        let derivation = Derivation { name: &name, values, ..Derivation::default() };
        let manifest = options.manifest.derive(original, &derivation, SEARCHED)?;
        let files = Files::read(&manifest, &options.manifest.library, Some(&options.manifest.logs), &self.notes)?;
        let grid = Grid::of(&inputs::sweep(&manifest, &files.digests)?, axes, &options.rungs)?;
        if grid.groups.is_empty() {
            let names: Vec<&str> = grid.axes.iter().map(|axis| axis.name).collect();
            return Err(failure!(Usage, "no block of the manifest sets {} together", names.join(" and ")));
        }
        let question = Question::of(&options.goal, &options.subject_to, &grid)?;
        if question.goal_axis.is_some() && !options.rungs.is_empty() {
            return Err(failure!(
                Usage,
                "--rungs is for a goal that is a metric: a parameter is searched by bisection"
            ));
        }
        check_table(question.table, original)?;
        check_one_signal(original, &question)?;
        Ok(Search {
            place: self.clone(),
            original: original.clone(),
            options,
            files,
            name,
            file,
            grid,
            question,
            rows: Rows::new(),
            progress: Vec::new(),
            asked: HashSet::new(),
            ran: 0,
        })
    }
}

impl Search {
    /// Name of the experiment that holds the tasks.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The groups in which a searched parameter does not vary: they take no part.
    pub fn left_out(&self) -> &[Values] {
        &self.grid.left_out
    }

    /// The searched parameters.
    pub fn axes(&self) -> &[Over] {
        &self.grid.axes
    }

    /// The tasks that the search needs next; `None` at its end.
    ///
    /// # Errors
    /// The search was stopped, or its rows cannot be read.
    pub async fn next(&mut self) -> Result<Option<Step>, Error> {
        if self.options.manifest.run.stop.is_cancelled() {
            return Err(interrupted());
        }
        let drawn;
        (self.rows, drawn) = self.read_rows().await?;
        self.grid.draw(&drawn);
        let progress = |group| self.question.progress(&self.grid, group, &self.rows);
        self.progress = self.grid.groups.iter().map(progress).collect();
        let groups = self.grid.groups.iter().zip(&self.progress);
        let tasks = groups.flat_map(|(group, progress)| {
            progress.needs.iter().flat_map(|(candidate, seeds)| group.tasks[*candidate].iter().take(*seeds))
        });
        let mut wanted: HashSet<String> = tasks.map(|task| task.id.clone()).collect();
        let lacking: Vec<&String> = wanted.iter().filter(|id| !self.rows.contains_key(*id)).collect();
        if lacking.iter().any(|id| self.asked.contains(*id)) {
            return Err(failure!(Usage, "tasks that have ended have no such row of `{}`", self.question.table));
        }
        let tasks = lacking.len();
        wanted.extend(self.rows.keys().cloned());
        let candidates = self.progress.iter().map(|progress| progress.needs.len()).sum();
        let step = Step { tasks, candidates, rows: self.rows.len(), grid: self.grid.tasks(), wanted };
        Ok((tasks > 0).then_some(step))
    }

    /// Begins to run the tasks of a step, as far as they have no rows: at the coordinator that was named or serves the data,
    /// else in this process.
    ///
    /// # Errors
    /// The manifest of the search cannot be written, or is refused.
    pub async fn run(&mut self, step: Step) -> Result<StepRun, Error> {
        self.asked.extend(step.wanted.iter().cloned());
        let comment = format!(
            "{MARK}\nIt has the tasks of a search in {}; `powersweep run` runs no other ones.",
            self.options.manifest.file
        );
        let derivation = Derivation { comment: &comment, name: &self.name, ..self.grid.derivation(&step.wanted) };
        let manifest = self.options.manifest.derive(&self.original, &derivation, SEARCHED)?;
        write_whole(Some(&self.file), manifest.source().as_bytes())?;
        let begun =
            begin(&self.place, &manifest, &self.files, &self.options.manifest.library, &self.options.manifest.run)
                .await?;
        self.ran += step.tasks;
        Ok(begun)
    }

    /// The rows of the grid that are there, and the dependence of the seeds of each draw from a log.
    async fn read_rows(&self) -> Result<(Rows, HashMap<String, Dependence>), Error> {
        let (mut rows, mut drawn) = (Rows::new(), HashMap::new());
        let own: Vec<&str> = self.question.columns.iter().map(String::as_str).collect();
        let counts = if self.grid.groups.iter().any(Group::is_drawn) { seeds::columns() } else { Vec::new() };
        let columns = [own.as_slice(), &counts].concat();
        let take = |id: String, mut cells: Vec<Cell>| {
            let counted = cells.split_off(own.len());
            if !counted.is_empty() {
                drawn.insert(id.clone(), dependence::of_cells(&counted));
            }
            add(rows.entry(id), cells, &own)
        };
        let (table, choosing) = (self.question.table, self.question.choosing());
        each_row_of_grid(&self.place, &self.name, &self.grid, table, &columns, choosing, take).await?;
        Ok((rows, drawn))
    }

    /// Where the experiment's rows are; `None` if there is no such experiment yet.
    pub async fn datasets(&self) -> Result<Option<Datasets>, Error> {
        datasets_of(&self.place, &self.name).await
    }
}

/// Begins to run the tasks of a manifest: at the coordinator that was named or serves the data, else in this process.
///
/// # Errors
/// The manifest is refused.
pub(crate) async fn begin(
    place: &Place,
    manifest: &Manifest,
    files: &Files,
    library: &Library,
    options: &RunOptions,
) -> Result<StepRun, Error> {
    let Answerer::Coordinator(mut client) = place.runner().await? else {
        return Ok(StepRun::Here(Box::new(place.run(manifest, files.clone(), options.clone()).await?)));
    };
    let request = v1::SubmitRequest { replace: options.replace, ..submission(manifest, files) };
    let submitted = client.submit(request).await.map_err(|status| connection::refused(&status))?.into_inner();
    upload_missing(&mut client, manifest, files, library, &submitted.missing_logs).await?;
    Ok(StepRun::AtCoordinator(Box::new(Waiting {
        place: place.clone(),
        client,
        submitted,
        stop: options.stop.clone(),
    })))
}

/// Where the rows of an experiment are; `None` if there is no such experiment yet.
pub(crate) async fn datasets_of(place: &Place, name: &str) -> Result<Option<Datasets>, Error> {
    let answerer = place.runner().await?;
    let Answerer::Coordinator(mut client) = answerer else {
        let is_there = stored::names(&place.location()?).await?.iter().any(|known| known == name);
        return is_there.then(|| place.datasets_here()).transpose();
    };
    let request = v1::StatusRequest { experiment: name.to_owned(), ..Default::default() };
    match connection::status(&mut client, request).await {
        Ok(_) => Ok(Some(place.datasets_at(&client))),
        Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
        Err(status) => Err(connection::refused(&status)),
    }
}

/// Calls `each` with the id and the cells of each row of a task of the grid; an experiment that does not exist yet has none.
pub(crate) async fn each_row_of_grid(
    place: &Place,
    name: &str,
    grid: &Grid,
    table: Table,
    columns: &[&str],
    choosing: Vec<Condition>,
    mut each: impl FnMut(String, Vec<Cell>) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(datasets) = datasets_of(place, name).await? else { return Ok(()) };
    let tasks = grid.groups.iter().flat_map(|group| &group.tasks).flatten();
    let known: HashSet<&str> = tasks.map(|task| task.id.as_str()).collect();
    let reading = datasets.read(name, table).await?;
    let of_grid = |id: String, cells| if known.contains(id.as_str()) { each(id, cells) } else { Ok(()) };
    each_row(&datasets, &reading, columns, choosing, of_grid).await
}

/// Calls `each` with the id of the task of each row and the cells of these columns.
pub(crate) async fn each_row(
    datasets: &Datasets,
    reading: &Reading,
    columns: &[&str],
    choosing: Vec<Condition>,
    mut each: impl FnMut(String, Vec<Cell>) -> Result<(), Error>,
) -> Result<(), Error> {
    let names = [&[TASK_ID], columns].concat();
    let source = Source::open(datasets, reading, &names, choosing).await?;
    let take = |batch: &RecordBatch, found: &[usize]| {
        let columns: Option<Vec<_>> = names.iter().map(|name| batch.column_by_name(name)).collect();
        let Some(columns) = columns else {
            return Err(failure!(
                Storage,
                "the rows of {} lack columns: another version of powersweep wrote them. Give the experiment another name",
                reading.experiment()
            ));
        };
        for &row in found {
            let mut cells = columns.iter().map(|column| Cell::of(column, row));
            if let Some(Cell::Text(id)) = cells.next() {
                each(id, cells.collect())?;
            }
        }
        Ok(true)
    };
    source.each(take).await
}

/// Adds a row of a task. A task has several rows in `accounts`, one for each signal: each column has a value in one.
pub(crate) fn add(row: Entry<'_, String, Vec<Cell>>, cells: Vec<Cell>, names: &[&str]) -> Result<(), Error> {
    let mut row = match row {
        Entry::Vacant(row) => {
            row.insert(cells);
            return Ok(());
        }
        Entry::Occupied(row) => row,
    };
    for ((known, cell), name) in row.get_mut().iter_mut().zip(cells).zip(names) {
        if known.is_null() {
            *known = cell;
        } else if !cell.is_null() && known.order(&cell).is_ne() {
            return Err(several(name));
        }
    }
    Ok(())
}

/// Refuses columns that would have values of several signals, before anything runs.
fn check_one_signal(manifest: &Manifest, question: &Question) -> Result<(), Error> {
    let choosing = question.choosing();
    let is_chosen = |signal: &&Signal| {
        choosing.iter().all(|condition| match condition.column == SIGNAL {
            true => condition.holds(&Cell::Text(signal.label.to_string())),
            false => condition.holds(&Cell::Int(signal.index as i64)),
        })
    };
    let signals: Vec<&Signal> = manifest.signals().iter().filter(is_chosen).collect();
    // The points of a design give a task one of the signals of their block.
    if signals.iter().any(|signal| !signal.points.is_empty()) {
        return Ok(());
    }
    let has_several = |name: &&String| {
        let quantity = match name.as_str() {
            name if is_emission(name) => Quantity::Carbon,
            name if is_cost(name) => Quantity::Price,
            _ => return false,
        };
        signals.iter().filter(|signal| signal.reading.quantity == quantity).count() > 1
    };
    question.columns.iter().find(has_several).map_or(Ok(()), |name| Err(several(name)))
}

fn several(column: &str) -> Error {
    failure!(
        Usage,
        "`{column}` has values of several signals: choose one by the condition signal=LABEL, and of a block with lists also by \
         signal_index=NUMBER"
    )
}

pub(crate) fn interrupted() -> Error {
    failure!(Interrupted, "interrupted; finished tasks are kept. Run the same command to continue")
}

/// Refuses to overwrite a file that no search has written.
fn check_file(file: &Path) -> Result<(), Error> {
    if !file.exists() || inputs::text(&file.to_string_lossy(), "manifest")?.starts_with(&format!("# {MARK}")) {
        return Ok(());
    }
    let hint = "give the search another name, or its manifest another place";
    Err(failure!(Usage, "{} is not a file of `powersweep find`: {hint}", file.display()))
}
