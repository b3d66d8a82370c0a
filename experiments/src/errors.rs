//! Problems of a manifest or another TOML file, each with its place in the text.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::units::{converted, unit_in};

/// Every problem of a manifest (or of another TOML file of the project), in the order of the text. Final: the file must
/// be edited.
///
/// `Display` shows the problems in plain text (message, line, caret, expectation, help), for logs and replies.
#[derive(Debug, Clone)]
pub struct ManifestErrors {
    file: String,
    text: Arc<str>,
    problems: Vec<Problem>,
}

/// One problem of a manifest.
#[derive(Debug, Clone)]
pub struct Problem {
    span: Range<usize>,
    message: String,
    expected: String,
    help: Option<String>,
}

impl Problem {
    /// `message` says what is wrong. `expected` says what would be right at this place; it is shown at the caret.
    pub fn new(span: Range<usize>, message: impl Into<String>, expected: impl Into<String>) -> Problem {
        Problem { span, message: message.into(), expected: expected.into(), help: None }
    }

    /// A problem of TOML's syntax. A number with a unit, such as `12 h`, is one: the number in the unit of the key is offered.
    pub fn syntax(text: &str, error: &toml::de::Error) -> Problem {
        let span = error.span().unwrap_or_default();
        let place = bounded(&span, text).start;
        let line_start = text[..place].rfind('\n').map_or(0, |at| at + 1);
        let line = text[line_start..].lines().next().unwrap_or_default();
        let offered = line.split_once('=').and_then(|(key, value)| {
            let (key, value) = (key.trim(), value.split('#').next().unwrap_or_default().trim());
            let unit = unit_in(key)?;
            converted(value, unit).map(|number| format!("`{key}` is in {unit}: write {number}"))
        });
        Problem::new(span, "this is not TOML", error.message()).maybe_help(offered)
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
        for problem in &mut problems {
            problem.span = bounded(&problem.span, text);
        }
        problems.sort_by_key(|p| (p.span.start, p.span.end));
        problems.dedup_by(|a, b| a.span == b.span && a.message == b.message);
        ManifestErrors { file: file.to_string(), text: text.clone(), problems }
    }

    /// The problems, at least one, in the order of the text.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The text of `Display` in the colours of a terminal.
    pub fn coloured(&self) -> String {
        self.rendered(&Renderer::styled())
    }

    /// The name of the file as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    fn rendered(&self, renderer: &Renderer) -> String {
        let mut shown = String::new();
        for problem in &self.problems {
            let place = AnnotationKind::Primary.span(problem.span()).label(&problem.expected);
            let snippet = Snippet::source(&*self.text).path(&self.file).annotation(place);
            let mut report = Level::ERROR.primary_title(&problem.message).element(snippet);
            if let Some(help) = &problem.help {
                report = report.element(Level::HELP.message(help));
            }
            shown.push_str(&renderer.render(&[report]));
            shown.push('\n');
        }
        shown
    }
}

/// The span cut to the text and moved outwards to character boundaries.
fn bounded(span: &Range<usize>, text: &str) -> Range<usize> {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.ceil_char_boundary(span.end.clamp(start, text.len()));
    start..end
}

impl fmt::Display for ManifestErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rendered(&Renderer::plain()))
    }
}

impl std::error::Error for ManifestErrors {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

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
