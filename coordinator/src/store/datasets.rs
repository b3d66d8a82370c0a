//! Deletes and renames whole datasets.
//!
//! Both work part by part and can be repeated: a further attempt lists only the parts that an earlier one did not delete
//! or move. Only files that have the name of a part are deleted, only files that are read as parts are moved, and folders
//! that are empty without them are removed: other files in an experiment's folder stay. Where one of the folders is a link,
//! nothing is deleted or moved: the files behind a link may belong to another user.
//!
//! Between listing the parts and deleting or moving them, a store makes sure that it is still the owner. A process may
//! be suspended between the two steps, and a newer owner may publish parts of the next experiment of the name: those are
//! not in the list.

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error as ObjectError, ObjectStoreExt};
use powersweep_results::Table;
use powersweep_results::layout;

use super::StoreError;
use super::encoding::check_name;
use super::objects::{Objects, blocking, unavailable};

/// The renaming of a dataset.
#[derive(Debug, Default)]
pub struct Moves {
    /// Old and new path of each part.
    parts: Vec<(Path, Path)>,
    /// A path in each folder to sync.
    folders: Vec<Path>,
    /// The old names of the folders.
    from: [String; 2],
}

impl Objects {
    /// The parts and uploads of an experiment, and the parts of its rows that left.
    pub async fn dataset(&self, experiment: &str) -> Result<Vec<Path>, StoreError> {
        let mut objects = self.left_parts(experiment).await?;
        for table in Table::ALL {
            objects.extend(self.named_parts(&layout::table_dir(experiment, table.name())).await?);
            if self.directory.is_none() {
                objects.extend(self.parts(&self.inbox().join(experiment).join(table.name())).await?);
            }
            objects.extend(self.parts(&self.private(&["staging", "upload", experiment, table.name()])).await?);
        }
        Ok(objects)
    }

    /// The parts of an experiment's rows that left.
    pub async fn left_parts(&self, experiment: &str) -> Result<Vec<Path>, StoreError> {
        self.refuse_links(experiment).await?;
        let mut objects = Vec::new();
        for table in Table::ALL {
            objects.extend(self.named_parts(&layout::table_dir(&layout::left_name(experiment), table.name())).await?);
        }
        Ok(objects)
    }

    /// The objects in a table's folder that have the name of a part. Users put files of other names there.
    async fn named_parts(&self, folder: &Path) -> Result<Vec<Path>, StoreError> {
        let mut parts = self.parts(folder).await?;
        parts.retain(|path| path.filename().and_then(layout::part_id).is_some());
        Ok(parts)
    }

    /// Refuses an experiment one of whose folders is a link.
    pub async fn refuse_links(&self, experiment: &str) -> Result<(), StoreError> {
        check_name(experiment)?;
        let (Some(data), Some(private)) = (self.directory.clone(), self.private_folder()) else { return Ok(()) };
        let names = [experiment.to_owned(), layout::left_name(experiment)];
        let link = blocking(move || {
            let uploads = private.join("staging/upload").join(&names[0]);
            let places = names.iter().map(|name| data.join(name)).chain([uploads]);
            let mut folders = places.flat_map(|place| {
                let tables = Table::ALL.map(|table| place.join(table.name()));
                [place].into_iter().chain(tables)
            });
            folders.find(|folder| std::fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink()))
        });
        link.await.map_or(Ok(()), |link| Err(StoreError::Link { path: link.display().to_string() }))
    }

    /// Deletes the listed objects of a dataset, and its empty folders.
    pub async fn erase(&self, experiment: &str, objects: &[Path]) -> Result<(), StoreError> {
        for object in objects {
            self.remove(object).await?;
        }
        self.remove_empty_folders([layout::left_name(experiment), experiment.to_owned()]).await;
        Ok(())
    }

    /// Removes the folders of these datasets. A folder with other files stays.
    async fn remove_empty_folders(&self, names: [String; 2]) {
        let Some(data) = self.directory.clone() else { return };
        let of_name = |name: &String| {
            let tables = Table::ALL.map(|table| layout::table_dir(name, table.name()));
            let folders = tables.into_iter().chain([layout::experiment_dir(name)]);
            folders.map(|folder| data.join(folder.as_ref())).collect::<Vec<_>>()
        };
        let folders = names.iter().map(of_name).collect::<Vec<_>>().concat();
        blocking(move || {
            for folder in folders {
                let _ = std::fs::remove_dir(folder);
            }
        })
        .await;
    }

    /// The moves that rename a dataset.
    pub async fn moves(&self, from: &str, to: &str) -> Result<Moves, StoreError> {
        self.refuse_links(from).await?;
        self.refuse_links(to).await?;
        let (left_from, left_to) = (layout::left_name(from), layout::left_name(to));
        let mut moves = Moves { from: [left_from.clone(), from.to_owned()], ..Moves::default() };
        let folders = [(from, to), (&left_from, &left_to)];
        for ((from, to), table) in folders.into_iter().flat_map(|folder| Table::ALL.map(|table| (folder, table))) {
            let (old, new) = (layout::table_dir(from, table.name()), layout::table_dir(to, table.name()));
            let parts = self.parts(&old).await?;
            // An earlier attempt may have ended after it moved parts and before it synced the folders.
            if !parts.is_empty() || !self.parts(&new).await?.is_empty() {
                moves.folders.extend([new.clone().join("part"), old.join("part")]);
            }
            let target = |part: &Path| new.clone().join(part.filename().unwrap_or_default());
            moves.parts.extend(parts.into_iter().map(|part| (part.clone(), target(&part))));
        }
        Ok(moves)
    }

    /// Moves the listed parts.
    pub async fn rename(&self, moves: &Moves) -> Result<(), StoreError> {
        for (from, to) in &moves.parts {
            match self.store.rename(from, to).await {
                Ok(()) | Err(ObjectError::NotFound { .. }) => {}
                Err(error) => return Err(unavailable("move", from, error)),
            }
        }
        // The state must not record a move that a power failure could undo.
        for folder in &moves.folders {
            self.sync_folder(folder).await?;
        }
        self.remove_empty_folders(moves.from.clone()).await;
        Ok(())
    }

    /// The Parquet objects in a folder itself, but for hidden ones.
    pub(crate) async fn parts(&self, folder: &Path) -> Result<Vec<Path>, StoreError> {
        let found: Vec<_> =
            self.store.list(Some(folder)).try_collect().await.map_err(|error| unavailable("list", folder, error))?;
        let paths = found.into_iter().map(|object| object.location);
        Ok(paths.filter(|path| layout::is_part(folder, path)).collect())
    }
}
