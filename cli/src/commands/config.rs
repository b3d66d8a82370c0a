//! `powersweep config show`: the defaults of options, and where each comes from.

use std::path::PathBuf;

use clap::CommandFactory;
use serde_json::{Value as Json, json};

use crate::args::{Cli, ShowConfigArgs};
use crate::config::{Config, KEYS};
use crate::exit::Outcome;
use crate::{inputs, screen};

/// The value of a key without flags.
struct Shown {
    key: &'static str,
    /// `None` if the key has no value.
    value: Option<String>,
    origin: String,
}

/// Shows the value of every key.
pub fn show(args: &ShowConfigArgs, config: &Config) -> Outcome {
    let shown: Vec<Shown> = KEYS.iter().map(|key| value(key.name, config)).collect();
    if args.output.is_json() {
        return screen::print_json(to_json(&shown, config));
    }
    let mut table = screen::table();
    for Shown { key, value, origin } in &shown {
        let mut cells = vec![(*key).to_owned(), value.clone().unwrap_or_else(|| "not set".to_owned())];
        cells.extend(args.origin.then(|| origin.clone()));
        table.add_row(cells);
    }
    let mut text = table.to_string();
    if args.origin {
        text.push_str("\n\nfiles, the first with a key decides:");
        for (path, why_not) in &config.files {
            text.push_str(&format!("\n  {} ({})", path.display(), why_not.unwrap_or("read")));
        }
    }
    screen::print(&text)
}

fn to_json(shown: &[Shown], config: &Config) -> Json {
    let setting = |s: &Shown| json!({ "key": s.key, "value": s.value, "origin": s.origin });
    let file = |(path, why_not): &(PathBuf, Option<&str>)| json!({ "path": path.to_string_lossy(), "read": why_not.is_none() });
    json!({
        "settings": shown.iter().map(setting).collect::<Vec<Json>>(),
        "files": config.files.iter().map(file).collect::<Vec<Json>>(),
    })
}

/// The value of a key: from the environment, else from a file, else the default.
fn value(key: &'static str, config: &Config) -> Shown {
    let (variables, default) = option(&Cli::command(), key).unwrap_or_default();
    let set = variables
        .into_iter()
        .find_map(|name| Some((std::env::var(&name).ok().filter(|value| !value.is_empty())?, name)));
    if let Some((value, name)) = set {
        return Shown { key, value: Some(value), origin: format!("environment {name}") };
    }
    if let Some((name, choice)) = screen::color_variable().filter(|_| key == "color") {
        return Shown { key, value: Some(choice.to_owned()), origin: format!("environment {name}") };
    }
    if let Some(setting) = config.get(key) {
        return Shown { key, value: Some(setting.values.join(":")), origin: setting.origin.clone() };
    }
    let default = match key {
        "cache" => inputs::default_cache().map(|folder| folder.to_string_lossy().into_owned()),
        "color" => Some("auto".to_owned()),
        _ => default,
    };
    Shown { key, value: default, origin: "default".to_owned() }
}

/// The variables and the default of the first option with this id.
fn option(command: &clap::Command, key: &str) -> Option<(Vec<String>, Option<String>)> {
    let own = command.get_arguments().find(|arg| arg.get_id() == key).map(|arg| {
        let variable = arg.get_env().map(|name| name.to_string_lossy().into_owned());
        let defaults = arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
        (variable.into_iter().collect(), defaults)
    });
    own.or_else(|| command.get_subcommands().find_map(|inner| option(inner, key)))
}
