//! The keys of a configuration file. A new key is one line in [`KEYS`].

use std::path::Path;

use powersweep::user;
use powersweep_experiments::reading::integer;
use toml::de::DeValue;

use crate::args::SLOTS_MAX;
use crate::quantities::bytes;

/// The key of the colours, which the parser of the command line needs, too.
pub const COLOR: &str = "color";

/// A key: the id of the options whose default it sets.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A file or folder.
    Path,
    /// A list of folders.
    Paths,
    /// A folder, or the URL of an object store.
    Place,
    /// The address of a coordinator.
    Address,
    /// A number of bytes.
    Size,
    /// A number of slots.
    Slots,
    /// When to colour.
    Color,
}

/// Every key.
pub const KEYS: &[Key] = &[
    Key { name: "data", kind: Kind::Place },
    Key { name: "coordinator", kind: Kind::Address },
    Key { name: "access", kind: Kind::Path },
    Key { name: "traces", kind: Kind::Paths },
    Key { name: "cache", kind: Kind::Path },
    Key { name: "cache_size", kind: Kind::Size },
    Key { name: "slots", kind: Kind::Slots },
    Key { name: "workload_memory", kind: Kind::Size },
    Key { name: COLOR, kind: Kind::Color },
];

impl Key {
    /// The equal texts of the command-line option, or the expected kind of value. Relative paths start in `folder`.
    pub fn texts(&self, value: &DeValue<'_>, folder: &Path) -> Result<Vec<String>, &'static str> {
        let text = value.as_str().filter(|text| !text.is_empty());
        let at = |path: &str| folder.join(user::expanded(path.as_ref())).to_string_lossy().into_owned();
        let one = match self.kind {
            Kind::Path => text.map(at).ok_or("a path"),
            Kind::Paths => return paths(value, at).ok_or("a list of paths without `:`, such as [\"logs\"]"),
            Kind::Place => {
                let place = text.map(|text| if text.contains("://") { text.to_owned() } else { at(text) });
                place.ok_or("a path or the URL of an object store")
            }
            Kind::Address => {
                let is_address =
                    |text: &&str| text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
                text.filter(is_address).map(str::to_owned).ok_or("an address such as \"head:7450\"")
            }
            Kind::Size => size(value).ok_or("a number of bytes such as \"20GiB\""),
            Kind::Slots => {
                let slots = value.as_integer().and_then(integer).filter(|slots| (0..=SLOTS_MAX.into()).contains(slots));
                slots.map(|slots| slots.to_string()).ok_or("an integer from 0 to 1024")
            }
            Kind::Color => {
                let choice = text.filter(|text| ["auto", "always", "never"].contains(text));
                choice.map(str::to_owned).ok_or("\"auto\", \"always\" or \"never\"")
            }
        };
        one.map(|text| vec![text])
    }
}

/// The paths of a list. The option `--traces` and its variable separate paths by `:`.
fn paths(value: &DeValue<'_>, at: impl Fn(&str) -> String) -> Option<Vec<String>> {
    let one = |path: &str| Some(at(path)).filter(|path| !path.is_empty() && !path.contains(':'));
    value.as_array()?.iter().map(|item| item.get_ref().as_str().and_then(one)).collect()
}

fn size(value: &DeValue<'_>) -> Option<String> {
    let text = match value.as_integer() {
        Some(number) => integer(number)?.to_string(),
        None => value.as_str()?.to_owned(),
    };
    bytes(&text).is_ok().then_some(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn has(command: &clap::Command, key: &str) -> bool {
        command.get_arguments().any(|arg| arg.get_id() == key) || command.get_subcommands().any(|inner| has(inner, key))
    }

    #[test]
    fn every_key_is_an_option() {
        for key in KEYS {
            assert!(has(&Cli::command(), key.name), "{}", key.name);
        }
    }
}
