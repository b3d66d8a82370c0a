//! Drawing a figure once or as rows arrive, and writing it as a file.

use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use powersweep::papers::Chosen;
use powersweep::plot::{Drawing, Figure, Format};
use powersweep::{Chart, Place, PlotOptions, Status, StatusOptions, block_on};
use powersweep_dataset::writing::write_whole;

use crate::args::PlotArgs;
use crate::commands::submit::end_of;
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::{interrupt, presets, screen};

/// Interval of the looks at the rows.
const INTERVAL: Duration = Duration::from_secs(2);

/// Draws a figure.
pub(super) fn draw(args: &PlotArgs) -> Outcome {
    let format = format(args)?;
    let wanted = Wanted::of(args)?;
    block_on(async {
        match args.watch {
            true => wanted.watch(format).await,
            false => wanted.write(wanted.figure().await?, format),
        }
    })
}

/// Draws a figure into a file, whose ending says the format.
pub fn write_figure(figure: Figure, output: &Path, title: &str) -> Result<(), Failure> {
    tell(&figure);
    let format = Format::of(&output.to_string_lossy())?;
    write_whole(Some(output), &Drawing::of(figure, title).bytes(format)?)
}

/// Prints the notes of the figure.
fn tell(figure: &Figure) {
    figure.notes().iter().for_each(|note| screen::note(&format!("powersweep: {note}")));
}

/// The format: of the option, else of the file's ending. A terminal shows none of them.
fn format(args: &PlotArgs) -> Result<Format, Failure> {
    match (&args.format, args.output.as_deref().filter(|output| *output != Path::new("-"))) {
        (None, Some(output)) => Format::of(&output.to_string_lossy()).map_err(|mut failure| {
            failure.message.push_str(": add --format");
            failure
        }),
        (_, None) if std::io::stdout().is_terminal() => {
            Err(failure!(Usage, "a terminal shows no figure: give a file with -o figure.svg, or use a pipe"))
        }
        (format, _) => Format::of(format.as_deref().unwrap_or("svg")),
    }
}

/// The figure that the arguments ask for.
struct Wanted<'a> {
    args: &'a PlotArgs,
    place: Place,
    what: What,
    options: PlotOptions,
}

enum What {
    Chart(Chart),
    OfPaper(Box<Chosen>),
}

impl<'a> Wanted<'a> {
    fn of(args: &'a PlotArgs) -> Result<Wanted<'a>, Failure> {
        let options = args.options()?;
        let what = match &args.preset {
            Some(preset) => What::OfPaper(Box::new(presets::choose(args.experiment(), preset)?)),
            None => What::Chart(args.chart(&options)?),
        };
        Ok(Wanted { args, place: args.from.place()?, what, options })
    }

    async fn figure(&self) -> Result<Figure, Failure> {
        match &self.what {
            What::Chart(chart) => self.place.plot(self.args.experiment(), chart, &self.options).await,
            What::OfPaper(chosen) => self.place.plot_preset(chosen, &self.options).await,
        }
    }

    /// Writes the file, and shows it if asked to.
    fn write(&self, figure: Figure, format: Format) -> Outcome {
        tell(&figure);
        self.write_file(figure, format)?;
        self.open()
    }

    fn write_file(&self, figure: Figure, format: Format) -> Result<(), Failure> {
        write_whole(self.args.output.as_deref(), &Drawing::of(figure, self.args.experiment()).bytes(format)?)
    }

    /// Shows the file where the user asked for it.
    fn open(&self) -> Outcome {
        if let Some(file) = self.args.output.as_ref().filter(|_| self.args.open) {
            start_viewer(file)?;
        }
        Ok(Exit::Done)
    }

    /// Writes the file whenever the rows have changed, until the experiment ends.
    async fn watch(&self, format: Format) -> Outcome {
        let experiment = match &self.what {
            What::Chart(_) => self.args.experiment(),
            What::OfPaper(chosen) => chosen.first_experiment(),
        };
        let asked = StatusOptions { experiment: Some(experiment.to_owned()), ..StatusOptions::default() };
        let stop = interrupt::token();
        let (mut last, mut told) = (None, None);
        loop {
            // Asked before the rows are read: the last look has the rows of all tasks.
            let status = self.place.status(&asked).await;
            let ended = status.ok().and_then(Status::into_first).and_then(|found| end_of(&found));
            match self.figure().await {
                Ok(figure) if last.as_ref() != Some(&figure) => {
                    if last.is_none() || ended.is_some() {
                        tell(&figure);
                    }
                    self.write_file(figure.clone(), format)?;
                    if last.replace(figure).is_none() {
                        self.open()?;
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
}

fn start_viewer(file: &Path) -> Result<(), Failure> {
    let viewer = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(viewer);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let wrong = |reason: String| failure!(Failure, "cannot show {} with {viewer}: {reason}", file.display());
    let ended = command.status().map_err(|error| wrong(error.to_string()))?;
    if ended.success() { Ok(()) } else { Err(wrong(ended.to_string())) }
}
