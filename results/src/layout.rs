//! Paths below the data root `DATA`.
//!
//! ```text
//! DATA/<experiment>/tasks/part-<uuid>.parquet      one row a finished task
//! DATA/<experiment>/jobs/part-<uuid>.parquet       one row a simulated job, on request
//! DATA/<experiment>/series/part-<uuid>.parquet     one row a point of a series, on request
//! DATA/<experiment>/failures/part-<uuid>.parquet   one row a failed attempt
//! DATA/<experiment>@left/<table>/                  rows of tasks that left the manifest
//! DATA/.powersweep/                                the coordinator's state
//! DATA/.powersweep/staging/                        uploads, and parts that are being written
//! DATA/.powersweep/shards/<experiment>/            the states of an experiment's shards, and what they agree on
//! ```
//!
//! A table's folder holds only complete `.parquet` files at any moment: analytics tools that read a folder fail on other
//! files. All paths are relative to `DATA`.

use object_store::path::Path;
use uuid::Uuid;

/// A part in the table's folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredPart {
    /// Its path below DATA.
    pub path: Path,
    /// Its size.
    pub bytes: u64,
}

/// Parts of a table that a state counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartCounts {
    /// Their number.
    pub parts: u64,
    /// The rows in them.
    pub rows: u64,
    /// Rows that belong to the table, are in no part and cannot be read.
    pub left_out: u64,
}

/// Name of the folder of the coordinator's state.
pub const STATE_FOLDER: &str = ".powersweep";

/// Folder of an experiment.
pub fn experiment_dir(experiment: &str) -> Path {
    Path::from_iter([experiment])
}

/// Name of the folder of an experiment's rows whose tasks left the manifest. No experiment can have this name.
pub fn left_name(experiment: &str) -> String {
    format!("{experiment}@left")
}

/// The experiment of a folder's name: that of [`left_name`], or the name itself.
pub fn base_name(folder: &str) -> &str {
    folder.strip_suffix("@left").unwrap_or(folder)
}

/// Folder of a table.
pub fn table_dir(experiment: &str, table: &str) -> Path {
    Path::from_iter([experiment, table])
}

/// Folder of the `tasks` table.
pub fn tasks_dir(experiment: &str) -> Path {
    table_dir(experiment, "tasks")
}

/// File name of a part. Ids are UUIDv7, so that names sort by time.
pub fn part_name(id: Uuid) -> String {
    format!("part-{}.parquet", id.hyphenated())
}

/// The id in a part's file name; `None` for any other name.
pub fn part_id(name: &str) -> Option<Uuid> {
    let id = name.strip_prefix("part-")?.strip_suffix(".parquet")?;
    Uuid::try_parse(id).ok().filter(|parsed| part_name(*parsed) == name)
}

/// Whether a file is a part of a table's folder: a Parquet file in the folder itself that is not hidden. Editors and systems
/// add hidden files and folders, such as `._x.parquet` and `.ipynb_checkpoints`, and Spark ignores names that begin with `_`.
pub fn is_part(folder: &Path, file: &Path) -> bool {
    let mut below = file.prefix_match(folder).into_iter().flatten();
    let (name, further) = (below.next(), below.next());
    name.is_some_and(|name| is_part_file(name.as_ref())) && further.is_none()
}

/// Whether a file of this name may be a part.
pub fn is_part_file(name: &str) -> bool {
    name.ends_with(".parquet") && !name.starts_with(['.', '_'])
}

/// Folder of the coordinator's state.
pub fn state_dir() -> Path {
    Path::from_iter([STATE_FOLDER])
}

/// Folder of the shards of all experiments.
pub fn shards_dir() -> Path {
    Path::from_iter([STATE_FOLDER, "shards"])
}

/// A shard's folder, or a file of all shards of an experiment.
pub fn shard_dir(experiment: &str, name: &str) -> Path {
    shards_dir().join(experiment).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_module_page() {
        let id = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);
        assert_eq!(
            tasks_dir("etinski2010").join(part_name(id)).as_ref(),
            "etinski2010/tasks/part-01900000-0000-7000-8000-000000000001.parquet"
        );
        assert_eq!(table_dir("a", "jobs").as_ref(), "a/jobs");
        assert_eq!(state_dir().as_ref(), ".powersweep");
        assert_eq!(shard_dir("a", "0-of-2").as_ref(), ".powersweep/shards/a/0-of-2");
        assert_eq!((left_name("a"), base_name("a@left"), base_name("a@1")), ("a@left".to_owned(), "a", "a@1"));
    }

    #[test]
    fn hidden_files_and_files_of_subfolders_are_no_parts() {
        let folder = table_dir("e", "tasks");
        let is = |name: &str| is_part(&folder, &Path::parse(format!("e/tasks/{name}")).expect("a path"));
        assert!(is("part-x.parquet") && is("00.parquet"));
        for name in
            ["._x.parquet", "_x.parquet", ".ipynb_checkpoints/x.parquet", "old/x.parquet", "x.txt", "x.parquet.crc"]
        {
            assert!(!is(name), "{name}");
        }
        assert!(!is_part(&folder, &Path::from("e/jobs/x.parquet")));
    }

    #[test]
    fn part_names_are_read_back() {
        let id = Uuid::from_u128(7);
        assert_eq!(part_id(&part_name(id)), Some(id));
        for name in ["part-.parquet", "part-x.parquet", "00.parquet", &format!("{}#1", part_name(id))] {
            assert_eq!(part_id(name), None, "{name}");
        }
    }
}
