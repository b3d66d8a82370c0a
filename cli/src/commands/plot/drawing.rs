//! Drawing a figure once or as rows arrive, and writing it as a file.

use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use powersweep_figures::{Engine, Figure, Look, Width, formats};
use powersweep_proto::v1;

use super::kinds::{Wanted, refused};
use super::read::Source;
use crate::args::{FigureFormat, FigureWidth, PlotArgs};
use crate::commands::status;
use crate::commands::submit::end_of;
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::stored::{self, Tables};
use crate::writing::Output;
use crate::{client, interrupt, screen};

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
    let format = format(args)?;
    let wanted = Wanted { args, look: look(args)? };
    client::block_on(async {
        let tables = stored::tables(&args.from).await?;
        match args.watch {
            true => watch(&wanted, &tables, format).await,
            false => {
                let (figure, notes) = wanted.figure(&source(args, &tables)).await?;
                tell(&figure, &notes);
                write(&written(figure, format, args)?, args)?;
                open(args)
            }
        }
    })
}

fn source<'a>(args: &'a PlotArgs, tables: &'a Tables) -> Source<'a> {
    Source { tables, experiment: &args.experiment, only: &args.only }
}

/// The format: of the option, else of the file's ending. A terminal shows none of them.
fn format(args: &PlotArgs) -> Result<FigureFormat, Failure> {
    let Some(output) = &args.output else {
        if std::io::stdout().is_terminal() {
            return Err(failure!(Usage, "a terminal shows no figure: give a file with -o figure.svg, or use a pipe"));
        }
        return Ok(args.format.unwrap_or(FigureFormat::Svg));
    };
    let name = output.to_string_lossy();
    let ending = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| *format);
    args.format.or(ending).ok_or_else(|| {
        let endings: Vec<&str> = ENDINGS.iter().map(|(ending, _)| *ending).collect();
        failure!(Usage, "the ending of {name} is none of {}: add --format", endings.join(" "))
    })
}

fn look(args: &PlotArgs) -> Result<Look, Failure> {
    let look = Look::of(match args.width {
        FigureWidth::Column => Width::Column,
        FigureWidth::Page => Width::Page,
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

/// The bytes of the file.
fn written(mut figure: Figure, format: FigureFormat, args: &PlotArgs) -> Result<Vec<u8>, Failure> {
    if format == FigureFormat::Csv {
        return figure.csv().map_err(refused);
    }
    let until = Instant::now() + DRAWING_MAX;
    let engine = Engine::start(move || Instant::now() > until).map_err(refused)?;
    // Drawing also gives panels their width, which the spec and the page have.
    let drawn = figure.draw(&engine).map_err(refused)?;
    for warning in &drawn.warnings {
        tracing::warn!("{warning}");
    }
    match format {
        FigureFormat::Svg => Ok(drawn.svg.into_bytes()),
        FigureFormat::Png => formats::png(&drawn.svg).map_err(refused),
        FigureFormat::Pdf => formats::pdf(&drawn.svg).map_err(refused),
        FigureFormat::Html => Ok(formats::html(figure.spec(), &args.experiment).into_bytes()),
        FigureFormat::Spec => Ok(format!("{}\n", screen::indented(figure.spec())).into_bytes()),
        FigureFormat::Csv => figure.csv().map_err(refused),
    }
}

fn write(bytes: &[u8], args: &PlotArgs) -> Result<(), Failure> {
    let mut out = Output::open(args.output.as_deref())?;
    out.write(bytes)?;
    out.finish()
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
async fn watch(wanted: &Wanted<'_>, tables: &Tables, format: FigureFormat) -> Outcome {
    let args = wanted.args;
    let stop = interrupt::token();
    let (mut last, mut told) = (None, None);
    loop {
        // Asked before the rows are read: the last look has the rows of all tasks.
        let request = v1::StatusRequest { experiment: args.experiment.clone(), ..Default::default() };
        let status = status::experiment(&args.from.coordinator, &args.from.data, request).await;
        let ended = status.ok().flatten().and_then(|found| end_of(&found));
        match wanted.figure(&source(args, tables)).await {
            Ok((figure, notes)) if last.as_ref() != Some(&figure) => {
                if last.is_none() || ended.is_some() {
                    tell(&figure, &notes);
                }
                write(&written(figure.clone(), format, args)?, args)?;
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
