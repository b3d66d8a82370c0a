//! The user of this process: the name, and the folders of the XDG specification.

use std::path::PathBuf;

/// Name of the user. It protects from mistakes, not from attacks: a user may set these variables.
pub fn name() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    named.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
}

/// A base folder of the XDG specification: the value of `variable`, else the folder `in_home` of `$HOME`. None if neither
/// path is absolute.
pub fn base_folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(in_home)))
}
