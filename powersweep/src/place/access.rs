//! Finding the access file of a coordinator.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use powersweep_coordinator::access::folders;
use powersweep_coordinator::store::Location;
use powersweep_dataset::{Error, Kind, failure};
use powersweep_proto::access::{Access, AccessError, Role, Source};

use crate::user;

/// The access file of a role: in a folder with such files, this file, or this access.
pub(super) fn given(source: &Source, role: Role) -> Source {
    match source {
        Source::File(folder) if folder.is_dir() => Source::File(folder.join(role.file_name())),
        source => source.clone(),
    }
}

/// The access file of a role beside the data, else the one in the user's configuration folder.
pub(super) fn find(location: &Location, role: Role) -> Result<Source, Error> {
    let mut closed = None;
    let beside = folders(location).into_iter().map(|folder| folder.join(role.file_name()));
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

/// The file of a role in the user's configuration folder: `$XDG_CONFIG_HOME/powersweep` or `~/.config/powersweep`.
pub(super) fn configured(role: Role) -> Option<PathBuf> {
    user::base_folder("XDG_CONFIG_HOME", ".config").map(|config| config.join("powersweep").join(role.file_name()))
}

/// The access folder of the data, which must be this user's.
pub fn folder(location: &Location) -> Result<PathBuf, Error> {
    let found = folders(location).into_iter().find(|folder| folder.is_dir());
    let folder = found.ok_or_else(|| {
        failure!(Usage, "no coordinator has served {location} yet: its access files are made by `powersweep serve`")
    })?;
    powersweep_proto::access::check_folder(&folder).map_err(|error| refused(&error))?;
    Ok(folder)
}

/// The access file of a role in the access folder.
pub fn read(folder: &Path, role: Role) -> Result<Access, Error> {
    Access::read(&folder.join(role.file_name())).map_err(|error| refused(&error))
}

/// An unusable access file as an error.
pub fn refused(error: &AccessError) -> Error {
    let kind = match error {
        error if error.is_refusal() => Kind::Refused,
        AccessError::Write { .. } => Kind::Storage,
        _ => Kind::Usage,
    };
    Error::new(kind, error.to_string())
}
