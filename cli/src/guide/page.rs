//! A page in Markdown as text for a terminal: filled to its width, with tables that fit and headings in bold.
//!
//! It knows what the guide uses: headings, paragraphs, lists, tables, fenced code, links, bold text and code.

use std::collections::BTreeSet;

use clap::builder::styling::{Reset, Style};
use comfy_table::LineStyle;

use super::{Topic, at};
use crate::screen;

/// Left margin of code and of tables.
const MARGIN: usize = 2;

/// The page of a topic, for lines of `width`; bold where `styled`.
pub fn rendered(topic: &Topic, width: usize, styled: bool) -> String {
    let mut page = Page { out: String::new(), in_list: false, width, styled };
    let mut lines = topic.text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("```") {
            let code: Vec<&str> = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")).collect();
            page.code(&code);
        } else if line.starts_with('|') {
            let mut rows = vec![line];
            rows.extend(std::iter::from_fn(|| lines.next_if(|line| line.starts_with('|'))));
            page.table(&rows);
        } else if line.starts_with('#') {
            page.heading(line);
        } else if !line.trim().is_empty() {
            let mut text = line.to_owned();
            while let Some(more) = lines.next_if(|line| continues(line)) {
                text.push(' ');
                text.push_str(more.trim());
            }
            page.paragraph(&text);
        }
    }
    page.links(topic);
    page.out
}

/// Whether a line belongs to the paragraph or the item before it.
fn continues(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && marker(line).is_none() && !["#", "|", "```"].iter().any(|start| line.starts_with(start))
}

/// The length of an item's mark: of `- ` or `1. `.
fn marker(line: &str) -> Option<usize> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let mark = if digits == 0 { "- " } else { ". " };
    line[digits..].starts_with(mark).then_some(digits + mark.len())
}

struct Page {
    out: String,
    /// Whether the last lines are an item of a list.
    in_list: bool,
    width: usize,
    styled: bool,
}

impl Page {
    fn heading(&mut self, line: &str) {
        self.gap();
        let text = plain(line);
        // Without bold letters, the marks show the level.
        let text = if self.styled { self.bold(text.trim_start_matches('#')) } else { text };
        self.filled(&text, 0, 0);
    }

    fn paragraph(&mut self, text: &str) {
        let outer = text.len() - text.trim_start().len();
        let own = marker(text.trim_start());
        // Items of a list stand together.
        if own.is_none() || !self.in_list {
            self.gap();
        }
        self.in_list = own.is_some();
        let text = self.inline(text.trim_start());
        self.filled(&text, outer, outer + own.unwrap_or(0));
    }

    fn code(&mut self, lines: &[&str]) {
        self.gap();
        for line in lines {
            let line = format!("{:MARGIN$}{line}", "");
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }

    fn table(&mut self, rows: &[&str]) {
        self.gap();
        let mut table = screen::table();
        let style = table.style().header_separator(LineStyle::none().fill('-'));
        table.load_style(style).set_width(u16::try_from(self.width).unwrap_or(u16::MAX));
        let is_rule = |cells: &[String]| cells.iter().all(|cell| cell.bytes().all(|byte| b"-: ".contains(&byte)));
        let mut rows = rows.iter().map(|row| cells(row)).filter(|cells| !is_rule(cells));
        table.set_header(rows.next().unwrap_or_default());
        for row in rows {
            table.add_row(row);
        }
        for line in table.to_string().lines() {
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }

    /// The topics that the page links to.
    fn links(&mut self, topic: &Topic) {
        let targets = topic.text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        let names: BTreeSet<&str> =
            targets.filter_map(|target| at(&resolved(topic.path, target))).map(|linked| linked.name).collect();
        let others: Vec<&str> = names.into_iter().filter(|name| *name != topic.name).collect();
        if !others.is_empty() {
            self.gap();
            self.filled(&format!("See also: powersweep help {}", others.join(" | ")), 0, 2);
        }
    }

    /// An empty line, unless the page begins here.
    fn gap(&mut self) {
        self.in_list = false;
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn bold(&self, text: &str) -> String {
        if !self.styled {
            return text.to_owned();
        }
        // Each word has its own style, so that a line never ends inside one.
        let word = |word: &str| match word {
            "" => String::new(),
            word => format!("{}{word}{Reset}", Style::new().bold()),
        };
        text.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }

    /// Text without the marks of links, of bold text and of emphasis; code keeps its marks.
    fn inline(&self, text: &str) -> String {
        let (mut out, mut is_bold) = (String::new(), false);
        for (at, piece) in plain(text).split('`').enumerate() {
            if at > 0 {
                out.push('`');
            }
            if at % 2 == 1 {
                out.push_str(piece);
                continue;
            }
            for (at, part) in piece.split("**").enumerate() {
                is_bold ^= at > 0;
                let part = part.replace('*', "");
                out.push_str(&if is_bold { self.bold(&part) } else { part });
            }
        }
        out
    }

    /// Adds words in lines of the width: the first line after `first` blanks, the others after `next`.
    fn filled(&mut self, text: &str, first: usize, next: usize) {
        let mut line = " ".repeat(first);
        let mut used = first;
        let mut is_empty = true;
        for word in text.split_whitespace() {
            let width = visible(word);
            if !is_empty && used + 1 + width > self.width {
                self.out.push_str(&line);
                self.out.push('\n');
                (line, used, is_empty) = (" ".repeat(next), next, true);
            }
            if !is_empty {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            (used, is_empty) = (used + width, false);
        }
        self.out.push_str(&line);
        self.out.push('\n');
    }
}

/// The cells of a table's row. `\|` stands for a bar in a cell.
fn cells(row: &str) -> Vec<String> {
    const BAR: &str = "\u{0}";
    let row = row.replace("\\|", BAR);
    let inner = row.trim().trim_start_matches('|');
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(|cell| plain(cell.trim()).replace("**", "").replace(BAR, "|")).collect()
}

/// Text with links as their texts; the address of another server follows in brackets.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        // Brackets in code are no link, nor are those with other brackets in between.
        let is_code = out.matches('`').count() % 2 == 1;
        let link = after.split_once("](").and_then(|(label, end)| Some((label, end.split_once(')')?)));
        match link.filter(|(label, _)| !is_code && !label.contains(['[', ']'])) {
            Some((label, (target, end))) => {
                out.push_str(label);
                if target.contains("://") && target != label {
                    out.push_str(&format!(" ({target})"));
                }
                rest = end;
            }
            None => {
                out.push('[');
                rest = after;
            }
        }
    }
    out + rest
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

/// The width of a word on the terminal.
fn visible(word: &str) -> usize {
    let mut parts = word.split('\u{1b}');
    let before = parts.next().map_or(0, |part| part.chars().count());
    // An escape sequence ends with `m`.
    before + parts.map(|part| part.split_once('m').map_or(0, |(_, text)| text.chars().count())).sum::<usize>()
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
