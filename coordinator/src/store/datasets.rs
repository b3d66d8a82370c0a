//! Deletes and renames whole datasets.
//!
//! Both work part by part and can be repeated: a further attempt lists only the parts that an earlier one did not delete
//! or move. Only parts are deleted or moved, and folders that are empty without them; other files in an experiment's
//! folder stay.
//!
//! Between listing the parts and deleting or moving them, a store makes sure that it is still the owner. A process may
//! be suspended between the two steps, and a newer owner may publish parts of the next experiment of the name: those are
//! not in the list.

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error as ObjectError, ObjectStoreExt};
use powersweep_results::Table;
use powersweep_results::layout;

use super::encoding::check_name;
use super::objects::{Objects, blocking, private, unavailable};
use super::{StoreError, inbox};

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
        if self.directory.is_none() {
            objects.extend(self.parts(&inbox::of_experiment(experiment)).await?);
        }
        for table in Table::ALL {
            objects.extend(self.parts(&layout::table_dir(experiment, table.name())).await?);
            objects.extend(self.parts(&private(&["staging", "upload", experiment, table.name()])).await?);
        }
        Ok(objects)
    }

    /// The parts of an experiment's rows that left.
    pub async fn left_parts(&self, experiment: &str) -> Result<Vec<Path>, StoreError> {
        check_name(experiment)?;
        let mut objects = Vec::new();
        for table in Table::ALL {
            objects.extend(self.parts(&layout::table_dir(&layout::left_name(experiment), table.name())).await?);
        }
        Ok(objects)
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
        check_name(from)?;
        check_name(to)?;
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

    /// The Parquet objects below a folder.
    pub(crate) async fn parts(&self, folder: &Path) -> Result<Vec<Path>, StoreError> {
        let found: Vec<_> =
            self.store.list(Some(folder)).try_collect().await.map_err(|error| unavailable("list", folder, error))?;
        let paths = found.into_iter().map(|object| object.location);
        Ok(paths.filter(|path| path.extension() == Some("parquet")).collect())
    }
}
