//! Finding the access file of a coordinator.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use powersweep_coordinator::access::folders;
use powersweep_proto::access::{Access, AccessError, Role, Source};

use crate::args::{CoordinatorArgs, DataArgs};
use crate::exit::{Failure, Kind, failure};
use crate::{inputs, screen};

/// Largest access file that is read from standard input (bytes).
const STDIN_BYTES_MAX: u64 = 64 << 10;

/// The access file of the command line, else the access file of the data, else the file in the user's configuration
/// folder.
pub fn find(args: &CoordinatorArgs, data: &DataArgs, role: Role) -> Result<Source, Failure> {
    if let Some(given) = &args.access {
        return match given.as_os_str() == "-" {
            true => from_stdin(),
            false if given.is_dir() => Ok(Source::File(given.join(role.file_name()))),
            false => Ok(Source::File(given.clone())),
        };
    }
    let location = data.location()?;
    let mut closed = None;
    let beside = folders(&location).into_iter().map(|folder| folder.join(role.file_name()));
    for file in beside.chain(configured(role)) {
        match std::fs::metadata(&file) {
            Ok(_) => return Ok(Source::File(file)),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => closed = closed.or(Some(file)),
            Err(_) => {}
        }
    }
    Err(match closed.map(|file| Access::read(&file)) {
        Some(Err(error)) => refused(&error),
        _ => failure!(
            Network,
            "there is no access file of a coordinator, neither for {location} nor in {}\nstart a coordinator on this data \
             with `powersweep serve`, or give --data, or --access with a file from `powersweep access export`",
            configured(role).map_or_else(|| "~/.config/powersweep".to_owned(), |file| file.display().to_string())
        ),
    })
}

fn from_stdin() -> Result<Source, Failure> {
    if std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        screen::note("powersweep: paste the join line, then press Enter and Ctrl-D");
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(STDIN_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| failure!(Usage, "cannot read the access from standard input: {error}"))?;
    let access = Access::parse(&text, "standard input").map_err(|error| refused(&error))?;
    Ok(Source::Given(Box::new(access)))
}

/// The file of a role in the user's configuration folder: `$XDG_CONFIG_HOME/powersweep` or `~/.config/powersweep`.
pub fn configured(role: Role) -> Option<PathBuf> {
    inputs::base_folder("XDG_CONFIG_HOME", ".config").map(|config| config.join("powersweep").join(role.file_name()))
}

/// The access folder of the data, which must be this user's.
pub fn folder(data: &DataArgs) -> Result<PathBuf, Failure> {
    let location = data.location()?;
    let found = folders(&location).into_iter().find(|folder| folder.is_dir());
    let folder = found.ok_or_else(|| {
        failure!(Usage, "no coordinator has served {location} yet: its access files are made by `powersweep serve`")
    })?;
    powersweep_proto::access::check_folder(&folder).map_err(|error| refused(&error))?;
    Ok(folder)
}

/// The access file of a role in the access folder.
pub fn read(folder: &Path, role: Role) -> Result<Access, Failure> {
    Access::read(&folder.join(role.file_name())).map_err(|error| refused(&error))
}

/// An unusable access file as a failure.
pub fn refused(error: &AccessError) -> Failure {
    let exit = match error {
        error if error.is_refusal() => Kind::Refused,
        AccessError::Write { .. } => Kind::Storage,
        _ => Kind::Usage,
    };
    Failure::new(exit, error.to_string())
}
