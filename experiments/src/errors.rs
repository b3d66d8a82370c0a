//! Problems of a manifest or another TOML file, each with its place in the text.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

/// Every problem of a manifest (or of another TOML file of the project), in the order of the text. Final: the file must
/// be edited.
///
/// `Display` renders plain text (line, caret, expectation, help) for logs and replies; [`ManifestErrors::drawn`] draws
/// the same for a terminal.
#[derive(Debug, Clone)]
pub struct ManifestErrors {
    source: Arc<NamedSource<Arc<str>>>,
    problems: Vec<Problem>,
}

/// One problem of a manifest.
#[derive(Debug, Clone)]
pub struct Problem {
    source: Option<Arc<NamedSource<Arc<str>>>>,
    span: Range<usize>,
    message: String,
    expected: String,
    help: Option<String>,
}

impl Problem {
    /// `message` says what is wrong. `expected` says what would be right at this place; it is shown at the caret.
    pub fn new(span: Range<usize>, message: impl Into<String>, expected: impl Into<String>) -> Problem {
        Problem { source: None, span, message: message.into(), expected: expected.into(), help: None }
    }

    /// Adds a hint: the nearest valid name, or what to do.
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// Adds a hint if there is one.
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Problem {
        self.help = help.or(self.help);
        self
    }

    /// The problem in one sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The expectation at this place.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// A hint, such as the nearest valid name.
    pub fn hint(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The place: byte offsets into the manifest's text, on character boundaries.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

impl ManifestErrors {
    /// Sorts the problems by place and limits every span to the text.
    pub fn new(file: &str, text: &Arc<str>, mut problems: Vec<Problem>) -> ManifestErrors {
        let source = Arc::new(NamedSource::new(file, text.clone()));
        for problem in &mut problems {
            problem.span = bounded(&problem.span, text);
            problem.source = Some(source.clone());
        }
        problems.sort_by_key(|p| (p.span.start, p.span.end));
        problems.dedup_by(|a, b| a.span == b.span && a.message == b.message);
        ManifestErrors { source, problems }
    }

    /// The problems, at least one, in the order of the text.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The problems as drawings for a terminal, one below the other.
    pub fn drawn(&self) -> String {
        let drawings = self.problems.iter().map(|problem| format!("{:?}", miette::Report::new(problem.clone())));
        drawings.collect::<Vec<_>>().join("\n")
    }

    /// The name of the file as it was given.
    pub fn file(&self) -> &str {
        self.source.name()
    }
}

/// The span cut to the text and moved outwards to character boundaries.
fn bounded(span: &Range<usize>, text: &str) -> Range<usize> {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.ceil_char_boundary(span.end.clamp(start, text.len()));
    start..end
}

/// Line (from 1), column in characters (from 1) and the line's text.
fn place(text: &str, at: usize) -> (usize, usize, &str) {
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let end = text[at..].find('\n').map_or(text.len(), |i| at + i);
    let line = text[..at].matches('\n').count() + 1;
    (line, text[start..at].chars().count() + 1, text[start..end].trim_end_matches('\r'))
}

impl fmt::Display for ManifestErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.source.inner();
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            let (line, column, shown) = place(text, problem.span.start);
            let gutter = " ".repeat(line.to_string().len());
            // The caret line repeats tabs, so that the caret is below its character.
            let pad: String = shown.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let width = text[problem.span.clone()].lines().next().map_or(0, |l| l.chars().count()).max(1);
            writeln!(f, "error: {}", problem.message)?;
            writeln!(f, "{gutter}--> {}:{line}:{column}", self.file())?;
            writeln!(f, "{gutter} |")?;
            writeln!(f, "{line} | {shown}")?;
            writeln!(f, "{gutter} | {pad}{} {}", "^".repeat(width), problem.expected)?;
            if let Some(help) = &problem.help {
                writeln!(f, "{gutter} = help: {help}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for ManifestErrors {}

// `Display` shows all lines and carets, so there are no labels. `drawn` draws them instead.
impl Diagnostic for ManifestErrors {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|s| s as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = (self.span.start, self.span.len());
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some(self.expected.clone()), span))))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|h| Box::new(h) as Box<dyn fmt::Display>)
    }
}

/// A correct manifest of which no sweep can be made. Final until the logs are found or the manifest is edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// A log of the manifest has no digest.
    #[error("the digest of log `{log}` is missing: find the log first")]
    MissingDigest {
        /// The log as the manifest names it.
        log: String,
    },
    /// Two modules of different names are the same file, so that their tasks are the same.
    #[error("the policy modules `{first}` and `{second}` are the same file: keep one of them")]
    SameModule {
        /// Name of one module.
        first: String,
        /// Name of the other module.
        second: String,
    },
    /// Two logs of different names are the same file, and workloads differ in nothing else.
    #[error(
        "logs `{first}` and `{second}` are the same file, so workloads `{first_label}` and `{second_label}` give the same values"
    )]
    SameLog {
        /// Name of one log.
        first: String,
        /// Name of the other log.
        second: String,
        /// A workload block with the one log.
        first_label: String,
        /// A workload block with the other log.
        second_label: String,
    },
}
