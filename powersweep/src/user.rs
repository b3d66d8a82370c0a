//! The user of this process: the name, and the folders of the XDG specification.

use std::path::{Path, PathBuf};

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

/// A path in which `~/` at the beginning is the folder of `$HOME`, as in a shell.
pub fn expanded(path: &Path) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.into(),
    }
}
