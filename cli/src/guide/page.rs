//! A page in Markdown as text for a terminal: filled to its width, with tables that fit and headings in bold.

use std::collections::BTreeSet;
use std::mem::take;

use clap::builder::styling::{Reset, Style};
use comfy_table::LineStyle;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use textwrap::{WordSeparator, WordSplitter, WrapAlgorithm};

use super::{Topic, at};
use crate::fitted::Table;
use crate::screen;

/// Left margin of code.
const MARGIN: usize = 2;

/// The page of a topic, for lines of `width`; bold where `styled`.
pub fn rendered(topic: &Topic, width: usize, styled: bool) -> String {
    let mut page = Page { width, styled, ..Page::default() };
    Parser::new_ext(topic.text, Options::ENABLE_TABLES).for_each(|event| page.add(event));
    let linked = page.targets.iter().filter_map(|target| at(&resolved(topic.path, target.split('#').next()?)));
    let names: BTreeSet<&str> = linked.map(|linked| linked.name).filter(|name| *name != topic.name).collect();
    if !names.is_empty() {
        let names: Vec<&str> = names.into_iter().collect();
        page.text = format!("See also: powersweep help {}", names.join(" | "));
        page.hanging = 2;
        page.block();
    }
    page.out
}

#[derive(Default)]
struct Page {
    out: String,
    width: usize,
    styled: bool,
    /// Text of the heading, paragraph, item or cell under way.
    text: String,
    is_bold: bool,
    is_code: bool,
    /// The next numbers of the open lists; none for a list without numbers.
    lists: Vec<Option<u64>>,
    /// The mark of an item that has no text yet.
    mark: String,
    /// Widths of the marks of the open items.
    indents: Vec<usize>,
    /// Further indent of the lines after the first.
    hanging: usize,
    /// Whether the last lines are an item of a list.
    after_item: bool,
    table: Option<Table>,
    row: Vec<String>,
    /// Where the text of the open link begins, and its target.
    link: (usize, String),
    /// Targets of all links.
    targets: Vec<String>,
}

impl Page {
    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.begin(tag),
            Event::End(tag) => self.end(tag),
            Event::SoftBreak | Event::HardBreak => self.text.push(' '),
            Event::Code(code) => self.words(&format!("`{code}`")),
            Event::Text(lines) if self.is_code => {
                let margin = " ".repeat(MARGIN + self.indents.iter().sum::<usize>());
                lines.lines().for_each(|line| self.line(&format!("{margin}{line}")));
            }
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.words(&text),
            _ => {}
        }
    }

    fn begin(&mut self, tag: Tag<'_>) {
        match tag {
            // Without bold letters, the marks show the level.
            Tag::Heading { level, .. } if !self.styled => self.text = "#".repeat(level as usize) + " ",
            Tag::Heading { .. } | Tag::Strong => self.is_bold = self.styled && self.table.is_none(),
            Tag::List(number) => {
                self.block();
                self.lists.push(number);
            }
            Tag::Item => {
                let number = self.lists.last_mut().and_then(Option::as_mut);
                self.mark = number.as_ref().map_or("- ".to_owned(), |number| format!("{number}. "));
                number.into_iter().for_each(|number| *number += 1);
                self.indents.push(self.mark.len());
            }
            Tag::CodeBlock(_) => {
                self.block();
                self.gap();
                self.is_code = true;
            }
            Tag::Table(_) => self.table = Some(screen::table()),
            Tag::Link { dest_url, .. } => self.link = (self.text.len(), dest_url.into_string()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match (tag, &mut self.table) {
            (TagEnd::Strong, _) => self.is_bold = false,
            (TagEnd::Heading(_) | TagEnd::Paragraph, _) => self.block(),
            (TagEnd::Item, _) => {
                self.block();
                self.indents.pop();
            }
            (TagEnd::List(_), _) => drop(self.lists.pop()),
            (TagEnd::CodeBlock, _) => self.is_code = false,
            (TagEnd::TableCell, _) => self.row.push(take(&mut self.text)),
            (TagEnd::TableHead, Some(table)) => drop(table.set_header(take(&mut self.row))),
            (TagEnd::TableRow, Some(table)) => drop(table.add_row(take(&mut self.row))),
            (TagEnd::Table, _) => self.table(),
            (TagEnd::Link, _) => {
                let (start, target) = take(&mut self.link);
                // The address of another server is worth reading.
                if target.contains("://") && target != self.text[start..] {
                    self.text.push_str(&format!(" ({target})"));
                }
                self.targets.push(target);
            }
            _ => {}
        }
    }

    /// Adds words to the text. Each bold word has its own style, so that a line never ends inside one.
    fn words(&mut self, words: &str) {
        let bold = Style::new().bold();
        let word = |word: &str| match self.is_bold && !word.is_empty() {
            true => format!("{bold}{word}{Reset}"),
            false => word.to_owned(),
        };
        self.text.push_str(&words.split(' ').map(word).collect::<Vec<_>>().join(" "));
    }

    /// Writes the text of a heading, a paragraph or an item, if there is one.
    fn block(&mut self) {
        self.is_bold = false;
        if self.text.is_empty() {
            return;
        }
        let (mark, indent) = (take(&mut self.mark), self.indents.iter().sum());
        let (first, next) = (format!("{mark:>indent$}"), " ".repeat(indent + self.hanging));
        // Items of a list stand together.
        if mark.is_empty() || !self.after_item {
            self.gap();
        }
        self.after_item = !mark.is_empty();
        let options = textwrap::Options::new(self.width)
            .initial_indent(&first)
            .subsequent_indent(&next)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation)
            .wrap_algorithm(WrapAlgorithm::FirstFit);
        textwrap::wrap(&take(&mut self.text), options).iter().for_each(|line| self.line(line));
    }

    /// An empty line, unless the page begins here.
    fn gap(&mut self) {
        self.after_item = false;
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn table(&mut self) {
        let Some(mut table) = self.table.take() else { return };
        self.gap();
        let style = table.style().header_separator(LineStyle::none().fill('-'));
        table.load_style(style).set_width(u16::try_from(self.width).unwrap_or(u16::MAX));
        table.to_string().lines().for_each(|line| self.line(line));
    }
}

/// A link's target below `docs/`, from the page that has the link.
fn resolved(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::TOPICS;

    const PAGE: Topic = Topic {
        name: "sample",
        path: "sub/sample.md",
        text: "# A `page`\n\nSome **bold words**, *one* and `a*` [link](../results.md#files) of\ntwo lines, see [x](https://x.org).\n\n\
               - first\n  goes on\n  1. inner\n\n```sh each=terminal\nrun [x](y)  # kept\n\n  more\n```\n\n\
               | key | meaning |\n|---|---|\n| `a\\|b` | [c](d.md) |\n",
    };

    #[test]
    fn marks_become_text() {
        let expected = "# A `page`\n\nSome bold words, one and `a*`\nlink of two lines, see x\n(https://x.org).\n\n- first goes on\n  1. inner\n\n  \
                        run [x](y)  # kept\n\n    more\n\n key    meaning\n----------------\n `a|b`  c\n\n\
                        See also: powersweep help\n  tables\n";
        assert_eq!(rendered(&PAGE, 30, false), expected);
    }

    #[test]
    fn styles_have_no_width() {
        let (with, without) = (rendered(&PAGE, 30, true), rendered(&PAGE, 30, false));
        let bold = format!("{}", Style::new().bold());
        assert!(with.contains(&format!("Some {bold}bold{Reset} {bold}words{Reset}, one and `a*`\n")), "{with}");
        let unstyled = with.replace(&bold, "").replace(&format!("{Reset}"), "");
        assert_eq!(format!("# {unstyled}"), without);
    }

    /// Code keeps its lines, and so do long words and tables of them.
    #[test]
    fn every_page_fits_a_terminal() {
        for topic in TOPICS {
            for width in [80, 110] {
                let text = rendered(topic, width, false);
                let is_wide = |line: &&str| {
                    line.chars().count() > width && !line.starts_with("  ") && line.trim_start().contains(' ')
                };
                let wide: Vec<&str> = text.lines().filter(is_wide).collect();
                assert!(wide.is_empty(), "{} at {width}: {wide:#?}", topic.name);
                assert!(!text.contains("](") || topic.text.contains("```"), "{}: a link is left\n{text}", topic.name);
            }
        }
    }
}
