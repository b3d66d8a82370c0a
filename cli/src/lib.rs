//! The program `powersweep` as a library: [`main`] dispatches to one file in `commands/` for each command. The binary calls
//! it, and so does the Python module, which also takes [`defaults`] of options and [`exit`] codes.

// Only `main` and the modules that are `pub` are exported; `pub` elsewhere means visible to the other modules.
#![allow(unreachable_pub)]

mod args;
mod commands;
mod config;
pub mod defaults;
mod examples;
pub mod exit;
mod fitted;
mod framed;
mod guide;
mod inputs;
mod interrupt;
mod launch_plan;
mod ledgers;
mod log;
mod pager;
mod presets;
mod program;
pub mod quantities;
mod rows_command;
mod screen;
mod signals;
#[cfg(test)]
mod tests;
mod warnings;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ColorChoice, CommandFactory, FromArgMatches, ValueEnum};
use powersweep_experiments::plain::is_plain_name;
use powersweep_launch::System;

use crate::args::{AccessCommand, Cli, Command, ConfigCommand, LaunchCommand, SiteCommand, TraceCommand};
use crate::config::Config;
use crate::exit::{Exit, Failure, Outcome, failure};

/// Runs a command line, whose first argument is the name of the program, and returns the exit code. `--help` and a wrong
/// command line end the process. `program` starts this program again: by default the executable of this process.
pub fn main(arguments: Vec<OsString>, program: Option<PathBuf>) -> u8 {
    program::set(program, arguments.get(1..).unwrap_or_default());
    match run(arguments) {
        Ok(exit) => exit.code(),
        Err(failure) => {
            screen::ending(&failure);
            Exit::Of(failure.kind).code()
        }
    }
}

fn run(arguments: Vec<OsString>) -> Outcome {
    let early = color_flag(arguments.iter().cloned());
    screen::choose_color(early, None);
    let config = Config::read(&screen::notes());
    let configured = config.as_ref().ok().and_then(Config::color);
    // A broken configuration does not hide `--help`.
    let command = config::forgiving(Cli::command());
    let command = config.as_ref().map_or_else(|_| command.clone(), |config| config.apply(command.clone()));
    let command = command.color(screen::choose_color(early, configured));
    let matches = command.try_get_matches_from(&arguments);
    let matches = matches.unwrap_or_else(|error| leave(&with_tip(error, &arguments), &arguments));
    refuse_empty(&arguments)?;
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| leave(&error, &arguments));
    screen::choose_color(cli.color, configured);
    let config = config?;
    log::start(&cli, screen::has_color(&std::io::stderr()));
    install_tls();
    // A command that takes the token at its start answers signals from then on.
    if !matches!(cli.command, Command::Run(_) | Command::Serve(_) | Command::Worker(_) | Command::Dashboard(_)) {
        interrupt::watch();
    }
    dispatch(&cli.command, &config)
}

/// Ends the process with the help that was asked for, or with an error of the command line. The error quotes the command
/// line and variables: without colours, if a terminal would take part of them for commands.
fn leave(error: &clap::Error, arguments: &[OsString]) -> ! {
    let variables = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("POWERSWEEP_"));
    let mut quoted = arguments.iter().cloned().chain(variables.map(|(_, value)| value));
    if quoted.all(|text| is_plain_name(&text.to_string_lossy())) || !error.use_stderr() {
        error.exit();
    }
    screen::note(error.render().to_string().trim_end());
    std::process::exit(error.exit_code())
}

/// The options whose value is a list.
const LISTS: [&str; 7] = ["--columns", "--by", "--stat", "--x", "--log", "--free", "--kind"];

/// An error of the command line, with a tip where a variable has the wrong value, or the values of a list are separated by
/// blanks, and the usage of its command.
fn with_tip(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let extra = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(extra)) => extra.clone(),
        _ => String::new(),
    };
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue).cloned()
        && !words.iter().any(|word| word.contains(&value))
        && let Some((name, _)) = std::env::vars()
            .find(|(name, set)| name.starts_with("POWERSWEEP_") && set.split([',', ':']).any(|one| one == value))
    {
        let tip = format!("this is the value of the variable {name}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    let lists = words.iter().enumerate().filter(|(_, word)| LISTS.contains(&word.as_str()));
    for (at, option) in lists.filter(|_| error.kind() == ErrorKind::UnknownArgument && !extra.starts_with('-')) {
        let values: Vec<&str> = words[at + 1..]
            .iter()
            .take_while(|word| !word.starts_with('-'))
            .map(|word| word.trim_matches(','))
            .collect();
        if values.contains(&extra.trim_matches(',')) {
            let tip = format!(
                "the values of {option} are separated by commas, without blanks: {option} {}",
                values.join(",")
            );
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
            break;
        }
    }
    if error.kind() == ErrorKind::MissingRequiredArgument {
        // The parser's own usage has the options that variables set, as if they were required.
        let mut command = Cli::command();
        command.build();
        let named = words.iter().skip(1).fold(&mut command, |of, word| match of.find_subcommand(word).is_some() {
            true => of.find_subcommand_mut(word).expect("it was found"),
            false => of,
        });
        let usage = named.render_usage();
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    }
    error
}

/// Refuses an empty argument, such as `--x ""`, which each command would read in its own way.
fn refuse_empty(arguments: &[OsString]) -> Result<(), Failure> {
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    let is_empty = |word: &str| word.is_empty() || word.starts_with("--") && word.find('=') == Some(word.len() - 1);
    let found = words.windows(2).find(|two| is_empty(&two[1]));
    found.map_or(Ok(()), |two| Err(failure!(Usage, "no value in `{} {}`: give one, or leave it out", two[0], two[1])))
}

/// One TLS provider for gRPC, object stores and downloads. Only the first call has an effect.
fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The value of `--color` before the command line is parsed: the parser's own messages follow it, too.
fn color_flag(arguments: impl Iterator<Item = OsString>) -> Option<ColorChoice> {
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let mut arguments = arguments.take_while(|argument| argument != "--");
    let mut choice = None;
    while let Some(argument) = arguments.next() {
        let value = match argument.strip_prefix("--color") {
            Some("") => arguments.next(),
            Some(value) => value.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        choice = value.and_then(|value| ColorChoice::from_str(&value, false).ok()).or(choice);
    }
    choice
}

fn dispatch(command: &Command, config: &Config) -> Outcome {
    match command {
        Command::Run(args) => commands::run::run(args),
        Command::Shard(args) => commands::shard::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Plan(args) => commands::plan::run(args),
        Command::Simulate(args) => commands::simulate::run(args),
        Command::Lp(args) => commands::lp::run(args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Worker(args) => commands::worker::run(args),
        Command::Submit(args) => commands::submit::run(args),
        Command::Status(args) => commands::status::run(args),
        Command::Dashboard(args) => commands::dashboard::run(args),
        Command::Pause(args) => commands::control::pause(args),
        Command::Resume(args) => commands::control::resume(args),
        Command::Cancel(args) => commands::control::cancel(args),
        Command::Retry(args) => commands::control::retry(args),
        Command::Priority(args) => commands::control::priority(args),
        Command::Flush(args) => commands::control::flush(args),
        Command::Prune(args) => commands::control::prune(args),
        Command::Delete(args) => commands::control::delete(args),
        Command::PrepareUpgrade(args) => commands::control::prepare_upgrade(args),
        Command::Results(args) => commands::results::run(args),
        Command::Compare(args) => commands::compare::run(args),
        Command::Best(args) => commands::best::run(args),
        Command::Sensitivity(args) => commands::sensitivity::run(args),
        Command::Find(args) => commands::find::run(args),
        Command::Verify(args) => commands::verify::run(args),
        Command::Sql(args) => commands::sql::run(args),
        Command::Export(args) => commands::export::run(args),
        Command::Artifact(args) => commands::artifact::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Reproduce(args) => commands::reproduce::run(args),
        Command::Plot(args) => commands::plot::run(args),
        Command::Timeline(args) => commands::timeline::run(args),
        Command::Events(args) => commands::events::run(args),
        Command::Adopt(args) => commands::adopt::run(args),
        Command::Schema => commands::schema::run(),
        Command::Policies(args) => commands::policies::run(args),
        Command::Columns(args) => commands::columns::run(args),
        Command::Trace(TraceCommand::Info { log, sha256, logs, output }) => {
            commands::trace::info(log, *sha256, logs, *output)
        }
        Command::Calibrate(args) => commands::calibrate::run(args),
        Command::Import(args) => commands::import::run(args),
        Command::Config(ConfigCommand::Show(args)) => commands::config::show(args, config),
        Command::Help(args) => commands::help::run(args, config),
        Command::Completions { shell } => commands::completions::run(*shell),
        Command::Man(args) => commands::man::run(args),
        Command::Health(args) => commands::health::run(args),
        Command::Conformance(args) => commands::conformance::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Launch(LaunchCommand::Slurm(args)) => commands::launch::workers(System::Slurm, args),
        Command::Launch(LaunchCommand::Pbs(args)) => commands::launch::workers(System::Pbs, args),
        Command::Launch(LaunchCommand::Status(args)) => commands::launch::status(args),
        Command::Launch(LaunchCommand::Log(args)) => commands::launch::log(args),
        Command::Launch(LaunchCommand::Stop(args)) => commands::launch::stop(args),
        Command::Site(SiteCommand::Init(args)) => commands::site::init(args),
        Command::Access(AccessCommand::Show(args)) => commands::access::show(args),
        Command::Access(AccessCommand::Rotate(args)) => commands::access::rotate(args),
        Command::Access(AccessCommand::Export(args)) => commands::access::export(args),
        Command::Access(AccessCommand::Add(args)) => commands::access::add(args),
        Command::Access(AccessCommand::Revoke(args)) => commands::access::revoke(args),
    }
}
