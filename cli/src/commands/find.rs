//! `powersweep find`: a search that runs only the tasks that it needs.
//!
//! A search has an experiment of its own, with a manifest that is derived from the user's: it has the tasks that were asked
//! for so far. Each step adds tasks, so that every row stays; the next step follows from the rows alone. The same command
//! therefore continues after an interruption, and a repetition runs nothing.

#[cfg(feature = "figures")]
mod figure;
mod grid;
mod judge;
mod shown;

use powersweep::block_on;
use powersweep::place::{connection, stored};
use powersweep_dataset::Datasets;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use powersweep_dataset::Cell;
use powersweep_experiments::{Derivation, Manifest, Over};
use powersweep_proto::v1;
use powersweep_results::Table;
use tokio_util::sync::CancellationToken;

use self::grid::Grid;
use self::judge::{Progress, Question, Rows};
use super::{run, submit};
use crate::args::{FindArgs, RunArgs, SubmitArgs};
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::{inputs, interrupt, screen};
use powersweep_dataset::source::Source;
use powersweep_dataset::writing::write_whole;

/// First line of a derived manifest: a file without it is not overwritten.
const MARK: &str = "Written by `powersweep find`, which replaces this file.";

/// Column by which rows find their task.
const TASK_ID: &str = "task_id";

/// Without figures, says how to get them.
#[cfg(not(feature = "figures"))]
mod figure {
    use std::path::Path;

    use super::{Rows, Search};
    use crate::commands::plot::without_figures;
    use crate::exit::Failure;

    pub(super) fn check(_: &Path) -> Result<(), Failure> {
        Err(without_figures())
    }

    pub(super) fn draw(_: &Search<'_>, _: &Rows, _: &Path) -> Result<(), Failure> {
        Err(without_figures())
    }
}

/// Searches, and shows the answers.
pub fn run(args: &FindArgs) -> Outcome {
    shown::check(args)?;
    let axes = args.over.iter().map(|text| Over::parse(text)).collect::<Result<Vec<Over>, String>>();
    let axes = axes.map_err(|reason| failure!(Usage, "{reason}"))?;
    if let Some(twice) = (1..axes.len()).find(|at| axes[..*at].iter().any(|axis| axis.name == axes[*at].name)) {
        return Err(failure!(Usage, "--over names `{}` twice", axes[twice].name));
    }
    let search = Search::new(args, axes)?;
    let stop = Stop::new(&search)?;
    let mut ran = 0;
    for step in 1.. {
        stop.check()?;
        let rows = search.rows()?;
        let progress: Vec<Progress> =
            search.grid.groups.iter().map(|group| search.question.progress(&search.grid, group, &rows)).collect();
        let asked = search.asked(&progress);
        let missing = asked.iter().filter(|id| !rows.contains_key(*id)).count();
        if missing == 0 {
            return shown::show(&search, &rows, &progress, ran);
        }
        let candidates: usize = progress.iter().map(|progress| progress.needs.len()).sum();
        search.say(&format!(
            "step {step}: {} of {}; {} of {} have rows",
            screen::count(missing as u64, "task"),
            screen::count(candidates as u64, "candidate"),
            rows.len(),
            search.grid.tasks(),
        ));
        search.run(step, asked.into_iter().chain(rows.into_keys()).collect())?;
        ran += missing;
    }
    Ok(Exit::Done)
}

/// A signal that comes between two steps; the steps themselves take care of theirs. A command that waits for a coordinator
/// ends at once.
struct Stop(Option<(tokio::runtime::Runtime, CancellationToken)>);

impl Stop {
    fn new(search: &Search<'_>) -> Result<Stop, Failure> {
        if search.is_remote() {
            return Ok(Stop(None));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| failure!(Failure, "cannot start threads: {error}"))?;
        let token = runtime.block_on(async { interrupt::token() });
        Ok(Stop(Some((runtime, token))))
    }

    fn check(&self) -> Result<(), Failure> {
        match &self.0 {
            Some((_, token)) if token.is_cancelled() => {
                Err(failure!(Interrupted, "interrupted; finished tasks are kept. Run the same command to continue"))
            }
            _ => Ok(()),
        }
    }
}

/// A search under way.
struct Search<'a> {
    args: &'a FindArgs,
    original: Manifest,
    /// Name of the search's experiment.
    name: String,
    /// Where its manifest is kept.
    file: PathBuf,
    grid: Grid,
    question: Question,
}

impl<'a> Search<'a> {
    fn new(args: &'a FindArgs, axes: Vec<Over>) -> Result<Search<'a>, Failure> {
        let original = inputs::manifest(&args.manifest)?;
        let name = args.name.clone().unwrap_or_else(|| format!("{}-find", original.name()));
        let file = args.manifest_out.clone();
        let file = file.unwrap_or_else(|| inputs::folder_of(&args.manifest).join(format!("{name}.toml")));
        check_file(&file)?;
        let all = Derivation {
            name: &name,
            values: axes.iter().map(|axis| (axis.name, axis.values.clone())).collect(),
            ..Derivation::default()
        };
        let manifest = derived(args, &original, &all)?;
        let library = inputs::library_of(&args.manifest, &args.local.logs);
        let sweep = inputs::sweep(&manifest, &inputs::files(&manifest, &library, None)?.digests)?;
        let grid = Grid::of(&sweep, axes)?;
        if grid.groups.is_empty() {
            let names: Vec<&str> = grid.axes.iter().map(|axis| axis.name).collect();
            return Err(failure!(Usage, "no block of the manifest sets {} together", names.join(" and ")));
        }
        let question = Question::of(args, &grid)?;
        let search = Search { args, original, name, file, grid, question };
        if !args.local.quiet {
            search.grid.note_left_out();
        }
        Ok(search)
    }

    fn say(&self, text: &str) {
        if !self.args.local.quiet {
            screen::note(&format!("powersweep: {}: {text}", self.name));
        }
    }

    /// The ids of the tasks that the search needs next.
    fn asked(&self, progress: &[Progress]) -> HashSet<String> {
        let groups = self.grid.groups.iter().zip(progress);
        let tasks = groups.flat_map(|(group, progress)| {
            progress.needs.iter().flat_map(|(candidate, seeds)| group.tasks[*candidate].iter().take(*seeds))
        });
        tasks.map(|task| task.id.clone()).collect()
    }

    /// Whether a coordinator runs the tasks.
    fn is_remote(&self) -> bool {
        self.args.coordinator.coordinator.is_some() || self.args.coordinator.access.is_some()
    }

    /// Runs these tasks, as far as they have no rows.
    fn run(&self, step: u64, wanted: HashSet<String>) -> Result<(), Failure> {
        let comment = format!(
            "{MARK}\nIt has the tasks of a search in {}; `powersweep run` runs no other ones.",
            self.args.manifest
        );
        let derivation = Derivation { comment: &comment, name: &self.name, ..self.grid.derivation(&wanted) };
        let manifest = derived(self.args, &self.original, &derivation)?;
        write_whole(Some(&self.file), manifest.text().as_bytes())?;
        let (local, manifest) = (self.args.local.clone(), self.file.to_string_lossy().into_owned());
        if self.is_remote() {
            let args = SubmitArgs {
                manifest,
                coordinator: self.args.coordinator.clone(),
                data: local.data,
                logs: local.logs,
                dry_run: false,
                wait: true,
                priority: None,
                restart: false,
                replace: self.args.replace,
                step: Some(step),
            };
            return submit::run(&args).map(|_| ());
        }
        let args = RunArgs {
            manifest,
            local,
            listen: ([127, 0, 0, 1], 0).into(),
            take_over: false,
            restart: false,
            replace: self.args.replace,
            show: 0,
            step: Some(step),
        };
        run::run(&args).map(|_| ())
    }

    /// The rows of the grid that are there.
    fn rows(&self) -> Result<Rows, Failure> {
        let tasks = self.grid.groups.iter().flat_map(|group| &group.tasks).flatten();
        let known: HashSet<&str> = tasks.map(|task| task.id.as_str()).collect();
        block_on(async {
            let mut rows = Rows::new();
            let Some(datasets) = self.datasets().await? else { return Ok(rows) };
            let reading = datasets.read(&self.name, Table::Tasks).await?;
            let names: Vec<&str> =
                [TASK_ID].into_iter().chain(self.question.columns.iter().map(String::as_str)).collect();
            let source = Source::open(&datasets, &reading, &names, Vec::new()).await?;
            let take = |batch: &arrow::array::RecordBatch, found: &[usize]| {
                let column = |name: &&str| batch.column_by_name(name);
                let columns: Option<Vec<_>> = names.iter().map(column).collect();
                let Some(columns) = columns else { return Err(failure!(Storage, "the rows lack columns of tasks")) };
                for &row in found {
                    let mut cells = columns.iter().map(|column| Cell::of(column, row));
                    if let Some(Cell::Text(id)) = cells.next()
                        && known.contains(id.as_str())
                    {
                        rows.insert(id, cells.collect());
                    }
                }
                Ok(true)
            };
            source.each(take).await?;
            Ok(rows)
        })
    }

    /// Where the experiment's rows are; `None` if there is no such experiment yet.
    async fn datasets(&self) -> Result<Option<Datasets>, Failure> {
        if !self.is_remote() {
            let place = self.args.local.data.place();
            let is_there = stored::names(&place.location()?).await?.contains(&self.name);
            return is_there.then(|| place.datasets_here()).transpose();
        }
        let place = self.args.coordinator.place(&self.args.local.data)?;
        let mut farm = place.connect().await?;
        let request = v1::StatusRequest { experiment: self.name.clone(), ..Default::default() };
        match connection::status(&mut farm, request).await {
            Ok(_) => Ok(Some(place.datasets_at(&farm))),
            Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
            Err(status) => Err(connection::refused(&status)),
        }
    }
}

/// Refuses to overwrite a file that no search has written.
fn check_file(file: &Path) -> Result<(), Failure> {
    if !file.exists() || inputs::text(&file.to_string_lossy(), "manifest")?.starts_with(&format!("# {MARK}")) {
        return Ok(());
    }
    let place = file.display();
    Err(failure!(
        Usage,
        "{place} is not a file of `powersweep find`: choose another place with --name or --manifest-out"
    ))
}

/// The derived manifest, parsed.
fn derived(args: &FindArgs, original: &Manifest, derivation: &Derivation<'_>) -> Result<Manifest, Failure> {
    let text = original.derived(&args.manifest, derivation);
    let text = text.map_err(|errors| inputs::problems(&args.manifest, &errors))?;
    let name = format!("{} with the values of --over", args.manifest);
    Manifest::parse(&name, &text).map_err(|errors| inputs::problems(&name, &errors))
}
