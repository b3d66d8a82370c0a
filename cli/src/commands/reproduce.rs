//! `powersweep reproduce`: whole papers as one page, with their figures, tables and claims beside ours.

use crate::args::ReproduceArgs;
use crate::exit::Outcome;

/// Runs the missing tasks of the papers, and writes their page.
#[cfg(feature = "figures")]
pub fn run(args: &ReproduceArgs) -> Outcome {
    reproduced::run(args)
}

/// Says how to get figures.
#[cfg(not(feature = "figures"))]
pub fn run(_: &ReproduceArgs) -> Outcome {
    Err(super::plot::without_figures())
}

#[cfg(feature = "figures")]
mod reproduced {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;
    use std::time::Instant;

    use powersweep::papers::Paper;
    use powersweep::plot::{Drawing, Format};
    use powersweep::{Place, PlotOptions, block_on, origin};
    use powersweep_claims::{Finding, Preset, Shape, Verdict, papers};
    use powersweep_dashboard::{Body, ClaimSeen, Reproduced, Shown, SweepSeen, reproduction};
    use powersweep_dataset::Datasets;
    use powersweep_dataset::text::Sheet;
    use powersweep_dataset::writing::{cannot_write, write_whole};
    use powersweep_experiments::Sweep;
    use powersweep_experiments::reading::unknown;
    use serde_json::json;

    use crate::args::ReproduceArgs;
    use crate::commands::check;
    use crate::exit::{Exit, Failure, Kind, OrKind, Outcome, failure};
    use crate::screen;

    /// Runs the missing tasks of the papers, and writes their page.
    pub fn run(args: &ReproduceArgs) -> Outcome {
        let known: Vec<&str> = papers::builtin().iter().map(|(name, _)| *name).collect();
        if let Some(other) = args.papers.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(failure!(Usage, "{}", unknown("paper", other, &known)));
        }
        let wanted = |name: &str| match args.papers.is_empty() {
            true => !papers::is_study(name),
            false => args.papers.iter().any(|paper| paper == name),
        };
        let began = Instant::now();
        let mut reproduced = Vec::new();
        for of in powersweep::papers::all()?.iter().filter(|paper| wanted(paper.name)) {
            reproduced.push(paper(args, of)?);
        }
        let now = chrono::Utc::now().format("%Y-%m-%d %H:%M UTC");
        let took = screen::duration(began.elapsed().as_secs_f64());
        let made = format!("Made by powersweep {} on {now}, in {took}.", powersweep::BUILD);
        let page = reproduction(&made, &reproduced, &powersweep_figures::font_style_sheet());
        write_whole(Some(&args.output.join("report.html")), page.as_bytes())?;
        let all = || reproduced.iter().flat_map(|paper| &paper.claims).filter(|claim| claim.is_demanded);
        let failed = all().filter(|claim| claim.is_failure).count();
        screen::note(&format!("powersweep: {} has the page", args.output.join("report.html").display()));
        match failed {
            0 => Ok(Exit::Done),
            _ => Err(failure!(ClaimFails, "{failed} of {} demanded claims fail", all().count())),
        }
    }

    fn paper(args: &ReproduceArgs, paper: &Paper) -> Result<Reproduced, Failure> {
        let Paper { name, claims, presets } = paper;
        let (mut sweeps, mut seen): (BTreeMap<String, Sweep>, Vec<SweepSeen>) = Default::default();
        for manifest in paper.manifests() {
            let begun = Instant::now();
            let sweep = check::swept(name, name, &manifest, &args.local)?;
            let seconds = begun.elapsed().as_secs_f64();
            seen.push(SweepSeen { manifest: manifest.clone(), tasks: sweep.index_count(), seconds });
            sweeps.insert(manifest, sweep);
        }
        let location = args.local.data.location()?;
        let findings = claims.check(&check::read_rows(claims, &sweeps, &location, false)?, false);
        let folder = args.output.join(name);
        std::fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
        let experiments: BTreeSet<String> = sweeps.values().map(|sweep| sweep.manifest().name().to_owned()).collect();
        block_on(async {
            let place = args.local.data.place();
            let datasets = place.datasets_here()?;
            let origin = origin::of(&datasets, &experiments).await?;
            let mut shown = Vec::new();
            for preset in presets.all() {
                if !args.local.quiet {
                    screen::note(&format!("{name}: {}", preset.source()));
                }
                shown.push(one(&place, &datasets, paper, preset, &folder).await?);
            }
            Ok(Reproduced {
                name: (*name).to_owned(),
                title: claims.title().to_owned(),
                sweeps: seen,
                shown,
                claims: findings.iter().map(claim).collect(),
                origin: screen::indented(&json!(origin)),
            })
        })
    }

    /// Writes a figure or table, and returns it for the page.
    async fn one(
        place: &Place,
        datasets: &Datasets,
        paper: &Paper,
        preset: &Preset,
        folder: &Path,
    ) -> Result<Shown, Failure> {
        let chosen = paper.preset(preset);
        let (source, caption) = (preset.source(), preset.caption.clone());
        let file = |ending: &str| format!("{}.{ending}", preset.name);
        if preset.shape == Shape::Table {
            let sheet = Sheet::of(&chosen.frame(datasets).await?);
            write_whole(Some(&folder.join(file("md"))), sheet.markdown().as_bytes())?;
            let headings = sheet.columns.iter().map(|column| (column.heading(), column.is_numeric)).collect();
            let rows = (0..sheet.rows()).map(|row| sheet.row(row).collect()).collect();
            return Ok(Shown {
                source,
                caption,
                file: format!("{}/{}", paper.name, file("md")),
                body: Body::Table(headings, rows),
            });
        }
        let figure = place.plot_preset(&chosen, &PlotOptions::default()).await?;
        let mut drawing = Drawing::of(figure, source.clone());
        let (svg, pdf) = (drawing.bytes(Format::Svg)?, drawing.bytes(Format::Pdf)?);
        write_whole(Some(&folder.join(file("svg"))), &svg)?;
        write_whole(Some(&folder.join(file("pdf"))), &pdf)?;
        let drawing = String::from_utf8(svg).or_kind(Kind::Failure)?;
        Ok(Shown { source, caption, file: format!("{}/{}", paper.name, file("pdf")), body: Body::Drawing(drawing) })
    }

    fn claim(finding: &Finding) -> ClaimSeen {
        let holds = finding.verdict == Verdict::Holds;
        ClaimSeen {
            text: finding.text.clone(),
            published: finding.published.clone(),
            ours: finding.ours.clone(),
            verdict: check::verdict(finding).to_owned(),
            source: finding.source.clone(),
            from: finding.from.clone(),
            is_demanded: finding.demanded,
            is_failure: finding.is_failure(),
            why: finding.why.clone().filter(|_| !holds).unwrap_or_default(),
        }
    }
}
