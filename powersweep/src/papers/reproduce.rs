//! Whole papers from our rows: their figures and tables as files, their claims beside ours, and one page of all.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use powersweep_claims::Shape;
use powersweep_dashboard::{Body, Reproduced, Shown, SweepSummary};
use powersweep_dataset::text::Sheet;
use powersweep_dataset::words::duration;
use powersweep_dataset::writing::{cannot_write, write_whole};
use powersweep_dataset::{Datasets, Error, Kind, OrKind};
use powersweep_experiments::Sweep;
use serde_json::json;

use super::Paper;
use super::check::Sweeps;
use super::presets::Chosen;
use crate::origin;
use crate::place::Place;
use crate::plot::{Drawing, Format};

/// A sweep of a paper that has run to its end.
#[derive(Debug, Clone)]
pub struct Ran {
    /// The name of the manifest in the paper.
    pub manifest: String,
    /// The sweep.
    pub sweep: Sweep,
    /// How long its missing tasks took (s).
    pub seconds: f64,
}

impl Place {
    /// Writes the figures and tables of a paper into a folder, and checks its claims. `ran`: the sweep of each manifest of the
    /// paper. `begins` gets each figure or table before it is drawn.
    ///
    /// # Errors
    /// Rows are missing, or a figure cannot be drawn or written.
    pub async fn reproduce(
        &self,
        paper: &Paper,
        ran: &[Ran],
        folder: &Path,
        begins: impl Fn(&Chosen),
    ) -> Result<Reproduced, Error> {
        paper.check_names()?;
        let sweeps: Sweeps = ran.iter().map(|ran| (ran.manifest.clone(), ran.sweep.clone())).collect();
        let checked = self.check(&paper.claims, &sweeps, false).await?;
        let folder = folder.join(&paper.name);
        std::fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
        let datasets = self.datasets_here()?;
        let experiments: BTreeSet<String> = ran.iter().map(|ran| ran.sweep.manifest().name().to_owned()).collect();
        let origin = json!(origin::of(&datasets, &experiments).await?);
        let names = ran.iter().map(|ran| (ran.manifest.clone(), ran.sweep.manifest().name().to_owned()));
        let mut shown = Vec::new();
        for preset in paper.presets.all() {
            let chosen = paper.preset(preset).in_experiments(names.clone());
            begins(&chosen);
            shown.push(write(&chosen, &datasets, &folder).await?);
        }
        let seen = |ran: &Ran| SweepSummary {
            manifest: ran.manifest.clone(),
            tasks: ran.sweep.index_count(),
            seconds: ran.seconds,
        };
        Ok(Reproduced {
            name: paper.name.clone(),
            title: checked.title,
            sweeps: ran.iter().map(seen).collect(),
            shown,
            claims: checked.claims,
            origin: format!("{origin:#}"),
        })
    }
}

/// The page of papers, which needs no other file. `took`: how long all of it took.
pub fn page(papers: &[Reproduced], took: Duration) -> String {
    let (now, took) = (chrono::Utc::now().format("%Y-%m-%d %H:%M UTC"), duration(took.as_secs_f64()));
    let made = format!("Made by powersweep {} on {now}, in {took}.", crate::BUILD);
    powersweep_dashboard::reproduction(&made, papers, &powersweep_figures::font_style_sheet())
}

/// Writes a figure or table, and returns it for the page.
async fn write(chosen: &Chosen, datasets: &Datasets, folder: &Path) -> Result<Shown, Error> {
    let preset = &chosen.preset;
    let (source, caption) = (preset.source(), preset.caption.clone());
    let write_file = |ending: &str, bytes: &[u8]| {
        let file = format!("{}.{ending}", preset.name);
        write_whole(Some(&folder.join(&file)), bytes)?;
        Ok::<String, Error>(format!("{}/{file}", chosen.paper))
    };
    if preset.shape == Shape::Table {
        let sheet = Sheet::of(&chosen.frame(datasets).await?);
        let file = write_file("md", sheet.markdown().as_bytes())?;
        let headings = sheet.columns.iter().map(|column| (column.heading(), column.is_numeric)).collect();
        let rows = (0..sheet.rows()).map(|row| sheet.row(row).collect()).collect();
        return Ok(Shown { source, caption, file, body: Body::Table(headings, rows) });
    }
    let look = powersweep_figures::Look::of(chosen.width());
    let mut drawing = Drawing::of(chosen.figure(datasets, &look).await?, source.clone());
    let svg = drawing.bytes(Format::Svg)?;
    write_file("svg", &svg)?;
    let file = write_file("pdf", &drawing.bytes(Format::Pdf)?)?;
    let body = Body::Drawing(String::from_utf8(svg).or_kind(Kind::Failure)?);
    Ok(Shown { source, caption, file, body })
}
