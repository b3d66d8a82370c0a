//! The description of an artifact in LaTeX: two pages with what forms of reviewers ask, such as those of SC, IEEE and ACM.

use std::collections::BTreeSet;
use std::fmt::Write;

use powersweep_dataset::text::latex_text;
use powersweep_dataset::words::{count, duration};

use super::{FIGURES, INPUTS, PAPER, ROWS, SCRIPT, SUMS, Study, VERDICTS, metadata, scripts};
use crate::papers::Checked;

/// Claims, figures, inputs and experiments that are listed: more would not fit on two pages.
const CLAIMS_MAX: usize = 14;
const FIGURES_MAX: usize = 10;
const INPUTS_MAX: usize = 6;
/// Longest sentence of a list (characters).
const SENTENCE_MAX: usize = 110;

/// The description. `bytes`: the size of the artifact.
pub(super) fn latex(study: &Study, checked: Option<&Checked>, bytes: u64) -> String {
    let authors: Vec<&str> = study.authors.iter().map(|author| metadata::author(author).0).collect();
    let mut page = format!(
        "% The artifact's description: pdflatex description.tex. Only packages of every LaTeX are used.\n\
         \\documentclass[10pt,twocolumn]{{article}}\n\\setlength{{\\textheight}}{{24cm}}\n\
         \\setlength{{\\textwidth}}{{17.5cm}}\n\\setlength{{\\topmargin}}{{-1.9cm}}\n\\setlength{{\\oddsidemargin}}{{-0.8cm}}\n\
         \\setlength{{\\parindent}}{{0pt}}\n\\setlength{{\\parskip}}{{3pt}}\n\\raggedright\n\\begin{{document}}\n\
         \\twocolumn[{{\\centering\\Large\\bfseries Artifact description and evaluation\\par\\medskip\n\
         \\normalsize\\mdseries {}\\par {}\\par\\bigskip}}]\n",
        tex(&study.title),
        tex(&authors.join(", "))
    );
    for (title, text) in sections(study, checked, bytes) {
        let _ = write!(page, "\n\\subsection*{{{title}}}\n{text}");
    }
    page + "\n\\end{document}\n"
}

fn sections(study: &Study, checked: Option<&Checked>, bytes: u64) -> Vec<(&'static str, String)> {
    let sum = |of: fn(&super::StudiedExperiment) -> u64| study.experiments.iter().map(of).sum::<u64>();
    let (tasks, done, failed) = (sum(|e| e.tasks), sum(|e| e.done), sum(|e| e.failed));
    let slot_s: f64 = study.experiments.iter().map(|experiment| experiment.slot_s).sum();
    let longest_s = study.experiments.iter().map(|experiment| experiment.longest_s).fold(0.0, f64::max);
    let sample = scripts::sample(study);
    // About as long as the sample of `reproduce.sh` took when its rows were made.
    let sampled = |e: &super::StudiedExperiment| e.slot_s / e.done.max(1) as f64 * sample.min(e.done) as f64;
    let sampled_s: f64 = study.experiments.iter().map(sampled).sum();
    let mut names: Vec<String> = study.experiments.iter().take(INPUTS_MAX).map(|e| tt(&e.name)).collect();
    if let Some(more) = study.experiments.len().checked_sub(INPUTS_MAX).filter(|more| *more > 0) {
        names.push(format!("and {more} more"));
    }
    let program = match study.has_program {
        true => format!("The program is in {}.", tt("bin/")),
        false => format!("{} builds an image with the program.", tt("Containerfile")),
    };
    let rows = format!(
        "One ZIP file with manifests, rows, {} and digests of the experiments {}: {}, of which {} a row{}. Rows are Parquet files in \
         {}, a data folder of powersweep. {} has SHA-256 of every file, {} is an RO-Crate 1.1.\n",
        match &study.paper {
            Some(_) if study.has_figures() => "claims, figures",
            Some(_) => "claims",
            None => "ledgers",
        },
        names.join(", "),
        count(tasks, "task"),
        if done == 1 { "1 has".to_owned() } else { format!("{done} have") },
        if failed > 0 { format!("; {failed} failed and are listed in {}", tt("failed/")) } else { String::new() },
        tt(ROWS),
        tt(SUMS),
        tt("ro-crate-metadata.json"),
    );
    let hardware = format!(
        "Any x86\\_64 or aarch64 machine with Linux; no accelerator, no cluster. One core is enough, more are used. The result of a \
         task does not depend on the machine: randomness comes from counters, functions are rounded alike everywhere, a simulation \
         has one thread.\n\nSoftware: powersweep ({}) simulated the rows. {program} There are no other libraries and no services.\n",
        tex(&metadata::versions(study).join(", ")),
    );
    let costs = format!(
        "\\begin{{itemize}}\\setlength{{\\itemsep}}{{0pt}}\n\\item Disk: {} for the artifact, and as much again while a ZIP is verified.\n\
         \\item Set-up: minutes; a build from the source takes some ten minutes.\n\
         \\item Check of the artifact: {} of each experiment, about {} of one core{}.\n\
         \\item All tasks again: about {} of one core; the longest took {}.\n\\end{{itemize}}\n",
        tex(&size(bytes)),
        match study.experiments.iter().all(|experiment| experiment.done >= sample) {
            true => count(sample, "task"),
            false => format!("up to {}", count(sample, "task")),
        },
        tex(&duration(sampled_s)),
        if study.has_figures() { ", and the figures" } else { "" },
        tex(&duration(slot_s)),
        tex(&duration(longest_s)),
    );
    let mut sections = vec![
        ("What it is", rows),
        ("Inputs", inputs(study)),
        ("Hardware and software", hardware),
        ("Time and disk", costs),
        ("Steps", steps(study)),
        ("Expected results", expected(study, checked)),
    ];
    if let Some(paper) = study.paper.as_ref().filter(|paper| !paper.figures.is_empty()) {
        sections.push(("Figures and the sentences that use them", figures(paper)));
    }
    sections.push(("Badges", badges(study, checked)));
    sections
}

fn inputs(study: &Study) -> String {
    let all: BTreeSet<(&str, &str, bool)> = study
        .experiments
        .iter()
        .flat_map(|experiment| &experiment.inputs)
        .map(|input| (input.name.as_str(), input.kind.as_str(), input.path.is_some()))
        .collect();
    if all.is_empty() {
        return "None: all workloads are generated from seeds.\n".to_owned();
    }
    let one = |(name, kind, is_here): &(&str, &str, bool)| {
        format!("\\item {kind} {}, {}", tt(name), if *is_here { "included" } else { "not included" })
    };
    let mut items: Vec<String> = all.iter().take(INPUTS_MAX).map(one).collect();
    items.extend(more(all.len(), INPUTS_MAX, "README.md"));
    let licence = study.logs_licence.as_ref();
    let licence = licence.map_or(String::new(), |licence| format!("Included under: {}. ", tex(licence)));
    format!(
        "{}{licence}Each has its SHA-256 in {}; a file that is not included must have these bytes, in a folder of {}.\n",
        list(&items),
        tt("study.json"),
        tt("POWERSWEEP_TRACES")
    )
}

fn steps(study: &Study) -> String {
    let mut items = vec![
        format!(
            "\\item Unpack the ZIP in an empty folder, or verify it as it came, under its own name: {}.",
            tt("powersweep verify FILE.zip")
        ),
        format!(
            "\\item {} compares all digests, simulates a sample of rows again and compares every bit{}.",
            tt(&format!("sh {SCRIPT}")),
            match &study.paper {
                Some(_) if study.has_figures() => ", says the verdict on each claim, and draws every figure again",
                Some(_) => ", says the verdict on each claim",
                None => "",
            }
        ),
    ];
    for experiment in study.experiments.iter().take(INPUTS_MAX) {
        let failed = match experiment.failed {
            0 => String::new(),
            1 => "; 1 task fails again, and it ends with code 3".to_owned(),
            more => format!("; {more} tasks fail again, and it ends with code 3"),
        };
        items.push(format!(
            "\\item All tasks of {}: {}, with a new folder of data{failed}.",
            tt(&experiment.name),
            tt(&format!("powersweep run {INPUTS}/{}.toml --traces {INPUTS}", experiment.name))
        ));
    }
    items.extend(more(study.experiments.len(), INPUTS_MAX, "README.md"));
    format!("\\begin{{enumerate}}\\setlength{{\\itemsep}}{{0pt}}\n{}\n\\end{{enumerate}}\n", items.join("\n"))
}

fn expected(study: &Study, checked: Option<&Checked>) -> String {
    let mut text = String::from(
        "No file differs; every simulated row is equal to the stored one in every column that does not depend on the run.\n",
    );
    let Some(checked) = checked else {
        if study.paper.is_some() {
            text += "Some tasks have no row, so that no claim is compared.\n";
        }
        return text;
    };
    let _ =
        writeln!(text, "{}. {} has each claim; the demanded ones are:", tex(&checked.counts.to_string()), tt(VERDICTS));
    let demanded: Vec<_> = checked.claims.iter().filter(|claim| claim.demanded).collect();
    let one = |claim: &&powersweep_claims::Finding| {
        let (text, ours) = (tex(&shortened(&claim.text)), tex(&claim.ours));
        format!("\\item {}: {text}; ours: {ours}; {}", tex(&claim.source), tex(claim.words))
    };
    let mut items: Vec<String> = demanded.iter().take(CLAIMS_MAX).map(one).collect();
    items.extend(more(demanded.len(), CLAIMS_MAX, VERDICTS));
    text + &list(&items)
}

fn figures(paper: &super::StudiedPaper) -> String {
    let one = |figure: &super::StudiedFigure| {
        let sources: BTreeSet<&str> = figure.used_by.iter().map(|used| used.source.as_str()).collect();
        let sources: Vec<String> = sources.into_iter().take(3).map(tex).collect();
        let uses = match figure.used_by.first() {
            Some(first) => format!("{}, such as ``{}''", sources.join("; "), tex(&shortened(&first.text))),
            None => "no claim names it".to_owned(),
        };
        format!("\\item {} ({}): {uses}", tex(&figure.shows), tt(&figure.name))
    };
    let mut items: Vec<String> = paper.figures.iter().take(FIGURES_MAX).map(one).collect();
    items.extend(more(paper.figures.len(), FIGURES_MAX, "README.md"));
    format!("Files are in {}, claims in {}.\n{}", tt(FIGURES), tt(PAPER), list(&items))
}

fn badges(study: &Study, checked: Option<&Checked>) -> String {
    let licence = study.licence.as_ref().map_or("not stated".to_owned(), |licence| tex(licence));
    let reproduced = match checked {
        Some(checked) => format!("all claims are computed again from the rows ({}).", tex(&checked.counts.to_string())),
        None => "rows are compared bit for bit.".to_owned(),
    };
    format!(
        "\\begin{{itemize}}\\setlength{{\\itemsep}}{{0pt}}\n\
         \\item Available: archive the ZIP under a permanent identifier, and state it here with its SHA-256. Licence: {licence}.\n\
         \\item Functional (evaluated): documented here and in {}, complete by {}, exercised by {}.\n\
         \\item Reproduced (results): {reproduced}\n\\end{{itemize}}\n",
        tt("README.md"),
        tt(SUMS),
        tt(SCRIPT)
    )
}

/// A sentence on the items that a list leaves out, with the file that has them.
fn more(all: usize, shown: usize, place: &str) -> Option<String> {
    let rest = all.checked_sub(shown).filter(|rest| *rest > 0)?;
    Some(format!("\\item and {rest} more in {}", tt(place)))
}

fn list(items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    format!("{{\\small\\begin{{itemize}}\\setlength{{\\itemsep}}{{0pt}}\n{}\n\\end{{itemize}}}}\n", items.join("\n"))
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= SENTENCE_MAX {
        return text.to_owned();
    }
    let words: String = text.chars().take(SENTENCE_MAX).collect();
    format!("{} ...", words.rsplit_once(' ').map_or(words.as_str(), |(before, _)| before))
}

fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes < 1 << 20 => format!("{} KiB", bytes.div_ceil(1 << 10)),
        bytes if bytes < 1 << 30 => format!("{} MiB", bytes.div_ceil(1 << 20)),
        bytes => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

/// A name in the letters of a typewriter, which may break at its ends of words.
fn tt(text: &str) -> String {
    let broken = tex(text).replace('/', "/\\allowbreak{}").replace("\\_", "\\_\\allowbreak{}");
    format!("\\texttt{{{broken}}}")
}

/// A text in LaTeX, in letters that every LaTeX knows.
fn tex(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| match c {
            '\u{2013}' | '\u{2014}' | '\u{2212}' => '-',
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{201c}' | '\u{201d}' => '"',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    let mut escaped = String::new();
    for c in latex_text(&plain).chars() {
        match c {
            '×' => escaped.push_str("$\\times$"),
            '≤' => escaped.push_str("$\\le$"),
            '≥' => escaped.push_str("$\\ge$"),
            'µ' => escaped.push_str("$\\mu$"),
            '|' => escaped.push_str("\\textbar{}"),
            '…' => escaped.push_str("\\ldots{}"),
            '²' => escaped.push_str("$^2$"),
            c if c.is_ascii() || ('\u{c0}'..='\u{17f}').contains(&c) => escaped.push(c),
            _ => escaped.push('?'),
        }
    }
    escaped
}
