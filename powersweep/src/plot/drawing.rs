//! Files of figures.

use std::time::{Duration, Instant};

use powersweep_dataset::{Error, failure};
use powersweep_figures::{Drawn, Engine, Figure, formats};

/// A figure that takes longer is stopped.
const DRAWING_MAX: Duration = Duration::from_secs(60);

/// The endings of files, with their formats.
const ENDINGS: [(&str, Format); 6] = [
    ("svg", Format::Svg),
    ("png", Format::Png),
    ("pdf", Format::Pdf),
    ("html", Format::Html),
    ("vl.json", Format::Spec),
    ("csv", Format::Csv),
];

/// The formats of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Vector drawing.
    Svg,
    /// Raster drawing of 300 dots per inch.
    Png,
    /// Vector drawing with embedded fonts, for papers.
    Pdf,
    /// A page that needs no network.
    Html,
    /// The Vega-Lite spec with its rows.
    Spec,
    /// The rows that are drawn.
    Csv,
}

impl Format {
    /// The format of a file's name, or of its ending alone: `waits.svg` or `svg`.
    pub fn of(name: &str) -> Result<Format, Error> {
        let has = |ending: &str| name.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        let found = ENDINGS.iter().find(|(ending, _)| has(ending)).map(|(_, format)| *format);
        found.ok_or_else(|| {
            let endings = ENDINGS.map(|(ending, _)| format!(".{ending}"));
            failure!(Usage, "the ending of {name} is none of {}", endings.join(" "))
        })
    }
}

/// A figure as files: it is drawn once, for the first format that needs it.
pub struct Drawing {
    figure: Figure,
    title: String,
    drawn: Option<Drawn>,
}

impl Drawing {
    /// Nothing is drawn yet. `title` is the title of an HTML page.
    pub fn of(figure: Figure, title: impl Into<String>) -> Drawing {
        Drawing { figure, title: title.into(), drawn: None }
    }

    /// The content of a file in a format.
    ///
    /// # Errors
    /// The figure cannot be drawn, or takes too long.
    pub fn bytes(&mut self, format: Format) -> Result<Vec<u8>, Error> {
        // Drawing also gives panels their width, which the spec and the page have.
        if self.drawn.is_none() && format != Format::Csv {
            self.drawn = Some(draw(&mut self.figure)?);
        }
        let svg = self.drawn.as_ref().map_or("", |drawn| &drawn.svg);
        let (spec, origin) = (self.figure.spec(), self.figure.origin());
        Ok(match format {
            Format::Svg => formats::svg(svg, origin).into_bytes(),
            Format::Png => formats::png(svg, origin)?,
            Format::Pdf => formats::pdf(svg, origin)?,
            Format::Html => formats::html(spec, &self.title).into_bytes(),
            Format::Spec => format!("{spec:#}\n").into_bytes(),
            Format::Csv => self.figure.csv()?,
        })
    }
}

fn draw(figure: &mut Figure) -> Result<Drawn, Error> {
    let until = Instant::now() + DRAWING_MAX;
    let engine = Engine::start(move || Instant::now() > until)?;
    let drawn = figure.draw(&engine)?;
    for warning in &drawn.warnings {
        tracing::warn!("{warning}");
    }
    Ok(drawn)
}
