//! Drawing a figure once or as rows arrive, and writing it as a file.

use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use powersweep::{Status, StatusOptions, block_on};
use powersweep_dataset::Datasets;
use powersweep_dataset::writing::write_whole;
use powersweep_figures::{Drawn, Engine, Figure, Look, Width, formats};

use super::kinds::{Wanted, refused};
use super::read::Source;
use crate::args::{FigureFormat, FigureWidth, PlotArgs};
use crate::commands::submit::end_of;
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::{interrupt, presets, screen};

/// A figure that takes longer is stopped.
const DRAWING_MAX: Duration = Duration::from_secs(60);
/// Interval of the looks at the rows.
const INTERVAL: Duration = Duration::from_secs(2);

/// The endings of files, with their formats.
const ENDINGS: [(&str, FigureFormat); 6] = [
    (".svg", FigureFormat::Svg),
    (".png", FigureFormat::Png),
    (".pdf", FigureFormat::Pdf),
    (".html", FigureFormat::Html),
    (".vl.json", FigureFormat::Spec),
    (".csv", FigureFormat::Csv),
];

/// Draws a figure.
pub(super) fn run(args: &PlotArgs) -> Outcome {
    if args.presets {
        return presets::list(Some(args.experiment()).filter(|name| !name.is_empty()));
    }
    let format = format(args)?;
    let wanted = Wanted::of(args)?;
    block_on(async {
        let datasets = args.from.place()?.datasets().await?;
        match args.watch {
            true => watch(&wanted, &datasets, format).await,
            false => {
                let (figure, notes) = wanted.drawn(&source(args, &datasets)).await?;
                tell(&figure, &notes);
                write_whole(args.output.as_deref(), &written(figure, format, args.experiment())?)?;
                open(args)
            }
        }
    })
}

impl<'a> Wanted<'a> {
    fn of(args: &'a PlotArgs) -> Result<Wanted<'a>, Failure> {
        let chosen = args.preset.as_ref().map(|preset| presets::choose(args.experiment(), preset)).transpose()?;
        let look = look(args, chosen.as_ref().is_some_and(|chosen| chosen.preset.wide))?;
        Ok(Wanted { args, look, chosen })
    }
}

/// A figure with its rows, for a caller in this process.
pub struct Drawing {
    figure: Figure,
    args: PlotArgs,
}

impl Drawing {
    /// Reads the rows that the arguments ask for.
    pub fn new(args: PlotArgs) -> Result<Drawing, Failure> {
        let wanted = Wanted::of(&args)?;
        let figure = block_on(async {
            let datasets = args.from.place()?.datasets().await?;
            let (figure, notes) = wanted.drawn(&source(&args, &datasets)).await?;
            tell(&figure, &notes);
            Ok(figure)
        })?;
        Ok(Drawing { figure, args })
    }

    /// The figure in a format, which is an ending without its dot, or in the format of the ending of a file's name.
    pub fn bytes(&self, ending: &str) -> Result<Vec<u8>, Failure> {
        let format = format_of(Path::new(&format!("figure.{ending}")))?;
        written(self.figure.clone(), format, self.args.experiment())
    }
}

fn source<'a>(args: &'a PlotArgs, datasets: &'a Datasets) -> Source<'a> {
    Source { datasets, experiment: args.experiment(), only: &args.only }
}

/// The format: of the option, else of the file's ending. A terminal shows none of them.
fn format(args: &PlotArgs) -> Result<FigureFormat, Failure> {
    let Some(output) = &args.output else {
        if std::io::stdout().is_terminal() {
            return Err(failure!(Usage, "a terminal shows no figure: give a file with -o figure.svg, or use a pipe"));
        }
        return Ok(args.format.unwrap_or(FigureFormat::Svg));
    };
    match args.format {
        Some(format) => Ok(format),
        None => format_of(output).map_err(|mut failure| {
            failure.message.push_str(": add --format");
            failure
        }),
    }
}

/// The format that the ending of a file says.
pub fn format_of(output: &Path) -> Result<FigureFormat, Failure> {
    let name = output.to_string_lossy();
    let ending = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| *format);
    ending.ok_or_else(|| {
        let endings: Vec<&str> = ENDINGS.iter().map(|(ending, _)| *ending).collect();
        failure!(Usage, "the ending of {name} is none of {}", endings.join(" "))
    })
}

/// Draws a figure into a file, whose ending says the format.
pub fn write_figure(figure: Figure, output: &Path, title: &str) -> Result<(), Failure> {
    tell(&figure, &[]);
    write_whole(Some(output), &written(figure, format_of(output)?, title)?)
}

fn look(args: &PlotArgs, is_wide: bool) -> Result<Look, Failure> {
    let look = Look::of(match args.width {
        Some(FigureWidth::Page) => Width::Page,
        None if is_wide => Width::Page,
        Some(FigureWidth::Column) | None => Width::Column,
    });
    let Some(file) = &args.style else { return Ok(look) };
    let wrong = |error: &dyn std::fmt::Display| failure!(Usage, "{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let style = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    look.with_style(style).map_err(|error| wrong(&error))
}

/// What the user should know about the figure.
fn tell(figure: &Figure, notes: &[String]) {
    for note in notes.iter().chain(figure.notes()) {
        screen::note(&format!("powersweep: {note}"));
    }
}

/// The bytes of a file with the figure. `title` is the title of an HTML page.
fn written(mut figure: Figure, format: FigureFormat, title: &str) -> Result<Vec<u8>, Failure> {
    if format == FigureFormat::Csv {
        return figure.csv().map_err(refused);
    }
    let drawn = drawn(&mut figure)?;
    encoded(&figure, &drawn, format, title)
}

/// Draws a figure, which may then be encoded in several formats.
pub fn drawn(figure: &mut Figure) -> Result<Drawn, Failure> {
    let until = Instant::now() + DRAWING_MAX;
    let engine = Engine::start(move || Instant::now() > until).map_err(refused)?;
    // Drawing also gives panels their width, which the spec and the page have.
    let drawn = figure.draw(&engine).map_err(refused)?;
    for warning in &drawn.warnings {
        tracing::warn!("{warning}");
    }
    Ok(drawn)
}

/// A drawn figure in a format. `title` is the title of an HTML page.
pub fn encoded(figure: &Figure, drawn: &Drawn, format: FigureFormat, title: &str) -> Result<Vec<u8>, Failure> {
    match format {
        FigureFormat::Svg => Ok(formats::svg(&drawn.svg, figure.origin()).into_bytes()),
        FigureFormat::Png => formats::png(&drawn.svg, figure.origin()).map_err(refused),
        FigureFormat::Pdf => formats::pdf(&drawn.svg, figure.origin()).map_err(refused),
        FigureFormat::Html => Ok(formats::html(figure.spec(), title).into_bytes()),
        FigureFormat::Spec => Ok(format!("{}\n", screen::indented(figure.spec())).into_bytes()),
        FigureFormat::Csv => figure.csv().map_err(refused),
    }
}

/// Shows the file where the user asked for it.
fn open(args: &PlotArgs) -> Outcome {
    if let Some(file) = args.output.as_ref().filter(|_| args.open) {
        start_viewer(file)?;
    }
    Ok(Exit::Done)
}

fn start_viewer(file: &Path) -> Result<(), Failure> {
    let viewer = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(viewer);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let wrong = |reason: String| failure!(Failure, "cannot show {} with {viewer}: {reason}", file.display());
    let ended = command.status().map_err(|error| wrong(error.to_string()))?;
    if ended.success() { Ok(()) } else { Err(wrong(ended.to_string())) }
}

/// Writes the file whenever the rows have changed, until the experiment ends.
async fn watch(wanted: &Wanted<'_>, datasets: &Datasets, format: FigureFormat) -> Outcome {
    let args = wanted.args;
    let place = args.from.place()?;
    let stop = interrupt::token();
    let (mut last, mut told) = (None, None);
    loop {
        // Asked before the rows are read: the last look has the rows of all tasks.
        let experiment = Some(wanted.experiment().to_owned());
        let status = place.status(&StatusOptions { experiment, ..StatusOptions::default() }).await;
        let ended = status.ok().and_then(Status::into_first).and_then(|found| end_of(&found));
        match wanted.drawn(&source(args, datasets)).await {
            Ok((figure, notes)) if last.as_ref() != Some(&figure) => {
                if last.is_none() || ended.is_some() {
                    tell(&figure, &notes);
                }
                write_whole(args.output.as_deref(), &written(figure.clone(), format, args.experiment())?)?;
                if last.replace(figure).is_none() {
                    open(args)?;
                }
            }
            Ok(_) => {}
            Err(failure) if ended.is_some() => return Err(failure),
            // There may be no rows yet, or parts were replaced while they were read.
            Err(failure) if told.as_ref() != Some(&failure.message) => {
                screen::note(&format!("powersweep: no figure yet: {}", failure.message));
                told = Some(failure.message);
            }
            Err(_) => {}
        }
        if let Some(ended) = ended {
            return ended;
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(Exit::Done),
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}
