//! Points that another program chooses: it asks for points, and is told their metrics.
//!
//! A study is an experiment whose manifest has designs of listed points. The points that are asked for are added to the
//! manifest, in one submit for all that were asked for since the last one. A point is known by its values: one that was asked for
//! before, by this process or another, costs nothing. All that a study knows follows from the manifest and the rows that the coordinator or
//! the data folder has, so that it continues after the end of its process. Rows are read once, when they are new.

mod book;
mod farm;
mod options;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use powersweep_dataset::reading::ReadBefore;
use powersweep_dataset::rows::is_number;
use powersweep_dataset::source::{conditions, table_of, type_of};
use powersweep_dataset::{Cell, Condition, Error, Kind, failure};
use powersweep_experiments::{DesignPoints, Manifest, TEXT_MAX, with_lines};
use powersweep_proto::v1;
use powersweep_results::Table;

pub use self::book::ToldGroup;
use self::book::{Book, Rows};
use self::farm::Farm;
pub use self::options::{Asked, StudyOptions, Told, Wait};
use crate::find::{Values, add};
use crate::inputs::{self, Files};
use crate::place::Place;
use crate::plan;
use crate::replicate::check_table;
use crate::submit::{stopped, submission, upload_missing, why_waiting};

/// Interval of the looks at the status: the shortest after a change, then longer.
const INTERVAL_MIN: Duration = Duration::from_millis(5);
const INTERVAL_MAX: Duration = Duration::from_millis(500);
/// A reason why no task runs is told after this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// Rows that are worth a part. Unpublished rows are sent again at each look, and a part has some 200 kB beside its rows.
const PART_ROWS: u64 = 1_000;
/// Kinds of failures after which a task is not tried again.
const FINAL_KINDS: [v1::FailureKind; 2] = [v1::FailureKind::Spec, v1::FailureKind::Policy];

/// A study under way.
pub struct Study {
    place: Place,
    options: StudyOptions,
    original: Manifest,
    files: Files,
    farm: Farm,
    book: Book,
    table: Table,
    choosing: Vec<Condition>,
    rows: Rows,
    before: ReadBefore,
    ended_before: ReadBefore,
    failures_before: ReadBefore,
    /// Of tasks that failed, the last message, and whether they are not tried again.
    messages: HashMap<String, (String, bool)>,
    /// Tasks that have a row of `tasks` or count as failed for good, also if a retry gave them a row later. They may be of points
    /// that this process learns of later.
    ended: HashSet<String>,
    /// Generation of the manifest that has the submitted points; 0 before the first one.
    generation: u64,
    /// Numbers of done and failed tasks at the last look.
    counts: Option<(u64, u64)>,
    /// Why no task runs, since when, and whether a note has said so.
    waiting: Option<(String, Instant, bool)>,
    /// Whether notes have said the findings about the manifest.
    has_findings_said: bool,
    /// Points that the coordinator's manifest lacks.
    new: Vec<usize>,
    /// The point of each request.
    asked: Vec<usize>,
    /// Requests that were not answered, by their points.
    open: BTreeMap<usize, Vec<usize>>,
}

impl Place {
    /// Begins a study, or continues it: [`Study::ask`] takes points, [`Study::tell`] returns those that have ended. Without a
    /// coordinator, the tasks run in this process until [`Study::end`]. Blocks while the files of the manifest are read.
    ///
    /// # Errors
    /// The manifest has no design of listed points with a range for each parameter, a metric is unknown, a file cannot be
    /// read, or the experiment of this name belongs to another manifest.
    pub async fn study(&self, original: &Manifest, options: StudyOptions) -> Result<Study, Error> {
        let book = Book::of(original);
        check_designs(original, &options, &book)?;
        if options.metrics.is_empty() {
            return Err(failure!(Usage, "there is no metric: name columns of `tasks`, such as energy_total_j"));
        }
        let of_conditions = options.only.iter().map(|text| Condition::column_of(text));
        let table = table_of(options.metrics.iter().map(String::as_str).chain(of_conditions));
        for name in &options.metrics {
            if !is_number(&type_of(table, name)?) {
                return Err(failure!(Usage, "`{name}` has no numbers, so that it has no mean"));
            }
        }
        check_table(table, original)?;
        let choosing = conditions(table, &options.only)?;
        let files = Files::read(original, &options.manifest.library, Some(&options.manifest.logs), &self.notes)?;
        let farm = Farm::open(self, original.name(), &files, &options.manifest.run).await?;
        let mut study = Study {
            place: self.clone(),
            options,
            original: original.clone(),
            files,
            farm,
            book,
            table,
            choosing,
            rows: Rows::new(),
            before: ReadBefore::default(),
            ended_before: ReadBefore::default(),
            failures_before: ReadBefore::default(),
            messages: HashMap::new(),
            ended: HashSet::new(),
            generation: 0,
            counts: None,
            waiting: None,
            has_findings_said: false,
            new: Vec::new(),
            asked: Vec::new(),
            open: BTreeMap::new(),
        };
        let begun = study.begin().await;
        match begun {
            Ok(()) => Ok(study),
            Err(error) => {
                study.end().await?;
                Err(error)
            }
        }
    }
}

/// Refuses designs to which no points can be added.
fn check_designs(original: &Manifest, options: &StudyOptions, book: &Book) -> Result<(), Error> {
    let hint = "write [designs.NAME] with kind = \"points\" and points = \"\", and give parameters their ranges with \
                design = \"NAME\"";
    if book.designs.is_empty() {
        return Err(failure!(Usage, "{} has no design of listed points: {hint}", options.manifest.file));
    }
    let none = book.designs.iter().map(|design| (design.label().to_owned(), String::new())).collect();
    let Some(text) = with_lines(original.source(), &none) else {
        return Err(failure!(Usage, "a design of {} has no key `points`: {hint}", options.manifest.file));
    };
    options.manifest.parse(&text, "no points").map(drop)
}

impl Study {
    /// Name of the experiment.
    pub fn name(&self) -> &str {
        self.original.name()
    }

    /// The designs to which points can be added.
    pub fn designs(&self) -> &[DesignPoints] {
        &self.book.designs
    }

    /// The design of this name. Without a name, the only one.
    ///
    /// # Errors
    /// There is no such design, or there are several and none is named.
    pub fn design(&self, label: Option<&str>) -> Result<&DesignPoints, Error> {
        Ok(&self.book.designs[self.book.design(label)?])
    }

    /// The metrics.
    pub fn metrics(&self) -> &[String] {
        &self.options.metrics
    }

    /// Number of requests that were not answered.
    pub fn open_count(&self) -> usize {
        self.open.values().map(Vec::len).sum()
    }

    /// Number of points that the study knows: of this process, and of the experiment.
    pub fn points_count(&self) -> usize {
        self.book.entries.len()
    }

    /// Reads the points that the experiment has, and enters those of the manifest.
    async fn begin(&mut self) -> Result<(), Error> {
        self.read_stored().await?;
        self.book.enter_all(&self.original.clone()).map(|new| self.new.extend(new))
    }

    /// Enters the points of the manifest that the coordinator has, and finds their tasks.
    async fn read_stored(&mut self) -> Result<(), Error> {
        let Some(found) = self.farm.status(true).await? else {
            self.generation = 0;
            return Ok(());
        };
        let stored = Manifest::parse("the stored manifest", &found.manifest)
            .map_err(|errors| (self.options.manifest.problems)("the stored manifest", &errors))?;
        let new = self.book.enter_all(&stored)?;
        self.find_tasks(&new)?;
        self.generation = found.generation;
        self.counts = None;
        Ok(())
    }

    fn find_tasks(&mut self, points: &[usize]) -> Result<(), Error> {
        if points.is_empty() {
            return Ok(());
        }
        let manifest = self.manifest(&self.book.lines(points.iter().copied()))?;
        let sweep = inputs::sweep(&manifest, &self.files.digests)?;
        self.book.find_tasks(&sweep, points, &self.ended)
    }

    /// The manifest with these points.
    fn manifest(&self, lines: &BTreeMap<String, String>) -> Result<Manifest, Error> {
        let text = with_lines(self.original.source(), lines);
        let text = text.ok_or_else(|| failure!(Usage, "a design has no key `points`"))?;
        if text.len() > TEXT_MAX {
            let points = self.book.entries.len();
            return Err(failure!(
                Usage,
                "a manifest with its points has at most {TEXT_MAX} bytes, which {points} points exceed: give the manifest \
                 another name to begin a study beside this one"
            ));
        }
        self.options.manifest.parse(&text, "the asked points")
    }

    /// Asks for points; returns a number for each. Nothing runs before the next [`Study::tell`]. If one of the points is
    /// wrong, none is asked for.
    ///
    /// # Errors
    /// A parameter or value is wrong, which names it.
    pub fn ask(&mut self, points: &[Asked]) -> Result<Range<usize>, Error> {
        let checked = points.iter().map(|point| {
            let design = self.book.design(point.design.as_deref())?;
            Ok((design, self.book.checked(design, &point.values)?))
        });
        let checked = checked.collect::<Result<Vec<_>, Error>>()?;
        let first = self.asked.len();
        for (design, values) in checked {
            let (point, is_new) = self.book.enter(design, values);
            self.new.extend(is_new.then_some(point));
            self.open.entry(point).or_default().push(self.asked.len());
            self.asked.push(point);
        }
        Ok(first..self.asked.len())
    }

    /// Submits the points that were asked for, waits for points that have ended, and returns each request that they answer,
    /// once.
    ///
    /// # Errors
    /// The manifest is refused, another command stopped the experiment, or rows cannot be read. Points that were asked for stay
    /// so, and the next call continues.
    pub async fn tell(&mut self, wait: Wait) -> Result<Vec<Told>, Error> {
        let began = Instant::now();
        let mut pause = INTERVAL_MIN;
        loop {
            match self.step().await {
                Ok(true) => pause = INTERVAL_MIN,
                Ok(false) => {}
                Err(error) if error.kind == Kind::Network => self.farm.reconnect(&error).await?,
                Err(error) => return Err(error),
            }
            let ended: Vec<usize> = self.open.keys().copied().filter(|point| self.book.has_ended(*point)).collect();
            let count: usize = ended.iter().map(|point| self.open[point].len()).sum();
            let left = wait.limit.map(|limit| limit.saturating_sub(began.elapsed()));
            if count >= wait.least.min(self.open_count()) || left.is_some_and(|left| left.is_zero()) {
                let mut told: Vec<Told> = Vec::with_capacity(count);
                for point in ended {
                    let numbers = self.open.remove(&point).unwrap_or_default();
                    told.extend(numbers.into_iter().map(|number| Told { number: Some(number), ..self.told(point) }));
                }
                told.sort_by_key(|told| told.number);
                return Ok(told);
            }
            tokio::select! {
                () = tokio::time::sleep(left.map_or(pause, |left| left.min(pause))) => {}
                () = self.options.manifest.run.stop.cancelled() => {
                    return Err(failure!(Interrupted, "interrupted; finished tasks are kept. The same study continues"));
                }
            }
            pause = (pause * 3 / 2).min(INTERVAL_MAX);
        }
    }

    /// All points that have ended, also those of earlier processes.
    ///
    /// # Errors
    /// Rows cannot be read.
    pub async fn ended(&mut self) -> Result<Vec<Told>, Error> {
        self.look().await?;
        let ended = (0..self.book.entries.len()).filter(|point| self.book.has_ended(*point));
        Ok(ended.map(|point| self.told(point)).collect())
    }

    /// Ends what runs in this process: running tasks are handed back, and finished rows are published.
    ///
    /// # Errors
    /// The rows could not be published.
    pub async fn end(mut self) -> Result<(), Error> {
        if !self.farm.is_here() && self.generation > 0 {
            self.farm.flush().await?;
        }
        self.farm.end().await
    }

    /// Submits new points and reads new rows. Whether there were any.
    async fn step(&mut self) -> Result<bool, Error> {
        let has_new = !self.new.is_empty();
        if has_new {
            self.submit().await?;
        }
        Ok(self.look().await? || has_new)
    }

    /// The generation of the manifest that the coordinator has; 0 for none.
    async fn present_generation(&mut self) -> Result<u64, Error> {
        Ok(self.farm.status(false).await?.map_or(0, |found| found.generation))
    }

    /// Adds the new points to the manifest of the experiment.
    async fn submit(&mut self) -> Result<(), Error> {
        let (manifest, reply) = loop {
            let manifest = self.manifest(&self.book.lines(0..self.book.entries.len()))?;
            let is_unknown = |point: &usize| !self.book.entries[*point].is_placed;
            let unknown: Vec<usize> = self.new.iter().copied().filter(is_unknown).collect();
            self.find_tasks(&unknown)?;
            let (replace, edits) = (self.options.manifest.run.replace, Some(self.generation));
            let request =
                v1::SubmitRequest { replace, edits, more_follows: true, ..submission(&manifest, &self.files) };
            match self.farm.submit(request).await {
                Ok(reply) => break (manifest, reply),
                Err(error) if self.present_generation().await? == self.generation => return Err(error),
                // Another process has added points since the last submit: they stay.
                Err(_) => self.read_stored().await?,
            }
        };
        upload_missing(
            &mut self.farm.client,
            &manifest,
            &self.files,
            &self.options.manifest.library,
            &reply.missing_logs,
        )
        .await?;
        self.say_findings(&manifest)?;
        self.generation = reply.generation;
        self.counts = None;
        self.new.clear();
        Ok(())
    }

    /// Notes the findings of a plan once. They name no line: listed points move the lines of the manifest.
    fn say_findings(&mut self, manifest: &Manifest) -> Result<(), Error> {
        if !std::mem::replace(&mut self.has_findings_said, true) {
            let sweep = inputs::sweep(manifest, &self.files.digests)?;
            let found = plan::warnings(&sweep, &self.files.signals, &self.options.manifest.logs);
            found.iter().for_each(|warning| self.place.notes.say(&warning.finding()));
        }
        Ok(())
    }

    /// Reads the rows and failures that are new. Whether there are any.
    async fn look(&mut self) -> Result<bool, Error> {
        let Some(found) = self.farm.status(false).await? else { return Ok(false) };
        if let Some(error) = stopped(&found) {
            return Err(error);
        }
        self.note(why_waiting(&found));
        let failed = found.failed + found.quarantined;
        let counts = Some((found.done, failed));
        if self.counts == counts {
            return Ok(false);
        }
        self.read_rows().await?;
        if failed > 0 {
            self.read_failures(found.running == 0 && found.done + failed >= found.tasks).await?;
        }
        self.counts = counts;
        if found.rows_unpublished >= PART_ROWS {
            self.farm.flush().await?;
        }
        Ok(true)
    }

    /// Notes a reason why no task runs that lasts.
    fn note(&mut self, reason: String) {
        match &mut self.waiting {
            Some((known, since, is_said)) if *known == reason => {
                if !*is_said && !reason.is_empty() && since.elapsed() >= PATIENCE {
                    *is_said = true;
                    self.place.notes.say(&format!("waiting: {reason}"));
                }
            }
            waiting => *waiting = Some((reason, Instant::now(), false)),
        }
    }

    /// Reads the rows that are new, and which tasks have a row, whatever the conditions and the table of the metrics.
    async fn read_rows(&mut self) -> Result<(), Error> {
        let (book, ended) = (&mut self.book, &mut self.ended);
        let is_whole = self.table == Table::Tasks && self.choosing.is_empty();
        if !is_whole {
            let take = |id: String, _| {
                book.end_task(&id, ended);
                Ok(())
            };
            self.farm.each_new_row(Table::Tasks, &mut self.ended_before, &[], Vec::new(), take).await?;
        }
        let metrics: Vec<&str> = self.options.metrics.iter().map(String::as_str).collect();
        let rows = &mut self.rows;
        let take = |id: String, cells: Vec<Cell>| {
            if is_whole {
                book.end_task(&id, ended);
            }
            add(rows.entry(id), cells, &metrics)
        };
        self.farm.each_new_row(self.table, &mut self.before, &metrics, self.choosing.clone(), take).await
    }

    /// Reads why tasks failed. `is_complete`: no task is tried again.
    async fn read_failures(&mut self, is_complete: bool) -> Result<(), Error> {
        let messages = &mut self.messages;
        let take = |id: String, cells: Vec<Cell>| {
            if let [Cell::Text(kind), Cell::Text(message)] = &cells[..] {
                let is_final = FINAL_KINDS.iter().any(|known| known.word() == kind);
                messages.insert(id, (message.clone(), is_final));
            }
            Ok(())
        };
        let (before, columns) = (&mut self.failures_before, ["failure_kind", "message"]);
        self.farm.each_new_row(Table::Failures, before, &columns, Vec::new(), take).await?;
        let failed: Vec<(usize, String, String)> = self
            .book
            .tasks_of_open()
            .filter(|(_, id)| !self.ended.contains(*id))
            .filter_map(|(point, id)| {
                let (message, is_final) = self.messages.get(id)?;
                (*is_final || is_complete).then(|| (point, id.to_owned(), message.clone()))
            })
            .collect();
        for (point, id, message) in failed {
            self.book.end_task(&id, &mut self.ended);
            let entry = &mut self.book.entries[point];
            entry.failure.get_or_insert((message, 0)).1 += 1;
        }
        Ok(())
    }

    fn told(&self, point: usize) -> Told {
        let entry = &self.book.entries[point];
        let design = &self.book.designs[entry.design];
        let failure = entry.failure.as_ref().map(|(message, tasks)| match tasks {
            1 => message.clone(),
            _ => format!("{tasks} tasks failed, first: {message}"),
        });
        Told {
            number: None,
            design: design.label().to_owned(),
            values: Values(design.parameters().map(str::to_owned).zip(entry.values.iter().cloned()).collect()),
            groups: self.book.groups(point, &self.rows, self.options.metrics.len()),
            failure,
        }
    }
}
