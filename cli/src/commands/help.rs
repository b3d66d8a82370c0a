//! `powersweep help`: the help of a command, or a page of the guide.

use std::io;

use clap::builder::StyledStr;
use clap::{Command, CommandFactory};
use powersweep_experiments::reading::hint;

use crate::args::{Cli, HelpArgs};
use crate::config::Config;
use crate::exit::{Outcome, failure};
use crate::guide::{self, Topic};
use crate::{pager, screen};

/// The width of a page where it is on no terminal.
const WIDTH: usize = 80;

/// The width of a page on a wide terminal, as in `--help`.
const WIDTH_MAX: usize = 110;

/// Shows the help of the program, of a command, or a page.
pub fn run(args: &HelpArgs, config: &Config) -> Outcome {
    let mut program = config.apply(Cli::command());
    program.build();
    if args.words.is_empty() {
        return screen::print_styled(&format!("{}\n{}", shown(&program.render_long_help()), topics()));
    }
    if let Some(command) = command(&mut program, &args.words) {
        let help = shown(&command.render_long_help());
        // A page may have the file name of a command.
        let page = format!("{}.md", args.words.join("-"));
        let guide = guide::TOPICS.iter().find(|topic| topic.path == page);
        let guide = guide.map(|topic| format!("\nGuide: powersweep help {}\n", topic.name)).unwrap_or_default();
        return screen::print_styled((help + &guide).trim_end());
    }
    let name = args.words.join("-");
    match guide::topic(&name) {
        Some(topic) => pager::show(&page(topic)),
        None => Err(failure!(Usage, "{}", unknown_topic(&program, &args.words.join(" "), &name))),
    }
}

/// The command that these words name.
fn command<'a>(program: &'a mut Command, words: &[String]) -> Option<&'a mut Command> {
    words.iter().try_fold(program, |command, word| command.find_subcommand_mut(word))
}

fn page(topic: &Topic) -> String {
    let width = screen::table().width().map_or(WIDTH, usize::from);
    guide::rendered(topic, width.min(WIDTH_MAX), screen::has_color(&io::stdout()))
}

/// The list of all topics.
fn topics() -> String {
    let mut text = "Guide, shown by `powersweep help TOPIC`:".to_owned();
    let mut table = screen::table();
    for section in guide::contents() {
        for (at, (topic, about)) in section.topics.into_iter().enumerate() {
            let title = if at == 0 { section.title } else { "" };
            table.add_row([format!("  {title}"), topic.name.to_owned(), about.to_owned()]);
        }
    }
    text.push_str(&format!("\n{table}"));
    text
}

/// Help with its styles, if standard output has styles.
fn shown(help: &StyledStr) -> String {
    if screen::has_color(&io::stdout()) { help.ansi().to_string() } else { help.to_string() }
}

/// The error about words that name neither a command nor a topic.
fn unknown_topic(program: &Command, words: &str, name: &str) -> String {
    let commands = program.get_subcommands().map(Command::get_name);
    let known = commands.chain(guide::TOPICS.iter().map(|topic| topic.name));
    let hint = hint(name, known).map_or_else(String::new, |hint| format!("{hint} "));
    format!("unknown command or topic `{words}`; {hint}`powersweep help` lists all of them")
}
