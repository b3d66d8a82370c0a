//! Logs, signals and modules of an artifact.

use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};

use powersweep_dataset::writing::cannot_write;
use powersweep_dataset::{Error, failure};
use powersweep_experiments::url::{is_url, public_name};
use powersweep_experiments::{Digest, FileRef, Manifest};
use powersweep_inputs::library::{Library, Origin};
use powersweep_results::part;

use super::archive::is_path;
use super::{INPUTS, StudiedInput};
use crate::inputs;
use crate::origin::another_file;

/// A file that a manifest names. If it may be passed on, it is copied into the artifact in `folder`. `with_logs`: logs and signals
/// may be.
pub(super) fn of(
    manifest: &Manifest,
    file: &FileRef,
    origin: &part::Origin,
    (library, with_logs): (&Library, bool),
    folder: &Path,
) -> Result<StudiedInput, Error> {
    let kind = match file.format {
        Some(_) => "log",
        None if manifest.modules().contains(&file.name) => "module",
        None => "signal",
    };
    // Rows of a module are of no use to a reviewer without it, and its author is that of the artifact.
    let is_packed = kind == "module" || with_logs;
    let name = public_name(&file.name);
    let stated = origin.log_digests.get(&file.name).cloned().unwrap_or_default();
    let mut input = StudiedInput {
        name: name.to_owned(),
        kind: kind.to_owned(),
        content_sha256: stated,
        file_sha256: file.sha256.map(|digest| digest.to_string()),
        ..StudiedInput::default()
    };
    if is_url(&file.place) {
        return Ok(input);
    }
    let found = match inputs::file(library, file) {
        Ok(found) => found,
        Err(error) if is_packed => return Err(error),
        Err(_) => return Ok(input),
    };
    if found.digest.to_string() != input.content_sha256 {
        let sentence = another_file(&found.origin, &found.digest, &input.content_sha256);
        return Err(failure!(Workload, "{sentence}"));
    }
    let Origin::File(path) = found.origin else { return Ok(input) };
    input.file = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let stored = File::open(&path).and_then(Digest::of_reader);
    let stored = stored.map_err(|error| failure!(Workload, "cannot read {}: {error}", path.display()))?;
    input.file_sha256 = Some(stored.to_string());
    if is_packed {
        input.path = Some(packed(file, &path, stored, folder)?);
    }
    Ok(input)
}

/// Copies a file to the place below `inputs/` that it has below the folder of its manifest. Returns its path.
fn packed(file: &FileRef, from: &Path, digest: Digest, folder: &Path) -> Result<String, Error> {
    let beside = below(&file.place).ok_or_else(|| {
        failure!(
            Usage,
            "{} is outside of the folder of the manifest: name it alone and give its folder with --traces, or move it there",
            file.place
        )
    })?;
    let name = from.file_name().unwrap_or_default();
    let path = Path::new(INPUTS).join(beside.with_file_name(name)).to_string_lossy().into_owned();
    if !is_path(&path) {
        return Err(failure!(Usage, "{path} cannot be in an artifact: use letters, digits, blanks, -, _ and ."));
    }
    let to = folder.join(&path);
    match File::open(&to).and_then(Digest::of_reader) {
        Ok(present) if present == digest => return Ok(path),
        Ok(_) => return Err(failure!(Usage, "two different files would be {path}: give them different names")),
        Err(_) => {}
    }
    let made = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::copy(from, &to));
    made.map_err(|error| cannot_write(&to, &error))?;
    Ok(path)
}

/// A relative path that stays below its folder, without `.`; `None` for any other.
pub(super) fn below(place: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in Path::new(place).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!path.as_os_str().is_empty()).then_some(path)
}

/// The files of an artifact, then those of the search path: for a manifest that may be a stranger's.
pub(super) fn library(folder: &Path, library: Library) -> Library {
    let inputs = folder.join(INPUTS);
    library.searched_first(inputs.clone()).with_base(inputs).below_base()
}
