//! Whole datasets: deleting one, and giving one another name.
//!
//! Both go part by part, in any number of attempts: what an earlier attempt did is not found any more. Only parts are
//! touched, and folders that are empty without them; other files in an experiment's folder are their owner's.
//!
//! What is listed and what is done with it are two steps, and between them a store makes sure that it is still the owner.
//! A process that was suspended and taken over may wake in the middle: the next experiment of the name has parts by then,
//! and none of them is in its list.

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error as ObjectError, ObjectStoreExt};
use powersweep_results::layout;

use super::StoreError;
use super::encoding::check_name;
use super::objects::{Objects, blocking, private, unavailable};
use crate::records::Table;

/// The parts of a dataset on their way to another name.
#[derive(Debug, Default)]
pub struct Moves {
    /// From where to where.
    parts: Vec<(Path, Path)>,
    /// A path in each folder that has, or had, parts.
    folders: Vec<Path>,
}

impl Objects {
    /// The parts and staged uploads of an experiment.
    pub async fn dataset(&self, experiment: &str) -> Result<Vec<Path>, StoreError> {
        check_name(experiment)?;
        let mut objects = Vec::new();
        for table in Table::ALL {
            objects.extend(self.parts(&layout::table_dir(experiment, table.name())).await?);
            objects.extend(self.parts(&private(&["staging", "upload", experiment, table.name()])).await?);
        }
        Ok(objects)
    }

    /// Deletes what a dataset had when it was listed, and the folders that are empty then.
    pub async fn erase(&self, experiment: &str, objects: &[Path]) -> Result<(), StoreError> {
        for object in objects {
            self.remove(object).await?;
        }
        let Some(data) = self.directory().map(ToOwned::to_owned) else { return Ok(()) };
        let tables = Table::ALL.map(|table| layout::table_dir(experiment, table.name()));
        let folders = tables.into_iter().chain([layout::experiment_dir(experiment)]);
        let folders: Vec<_> = folders.map(|folder| data.join(folder.as_ref())).collect();
        blocking(move || {
            for folder in folders {
                // One that has something else, or is gone already, is no failure.
                let _ = std::fs::remove_dir(folder);
            }
        })
        .await;
        Ok(())
    }

    /// What giving a dataset another name takes.
    pub async fn moves(&self, from: &str, to: &str) -> Result<Moves, StoreError> {
        check_name(from)?;
        check_name(to)?;
        let mut moves = Moves::default();
        for table in Table::ALL {
            let (old, new) = (layout::table_dir(from, table.name()), layout::table_dir(to, table.name()));
            let parts = self.parts(&old).await?;
            // An earlier attempt may have ended between its moves and their folders' syncs.
            if !parts.is_empty() || !self.parts(&new).await?.is_empty() {
                moves.folders.extend([new.clone().join("part"), old.join("part")]);
            }
            let target = |part: &Path| new.clone().join(part.filename().unwrap_or_default());
            moves.parts.extend(parts.into_iter().map(|part| (part.clone(), target(&part))));
        }
        Ok(moves)
    }

    /// Moves the parts that were listed.
    pub async fn rename(&self, moves: &Moves) -> Result<(), StoreError> {
        for (from, to) in &moves.parts {
            match self.store.rename(from, to).await {
                Ok(()) | Err(ObjectError::NotFound { .. }) => {}
                Err(error) => return Err(unavailable("move", from, error)),
            }
        }
        // After a power cut the state must not know a move that the folders do not.
        for folder in &moves.folders {
            self.sync_folder(folder).await?;
        }
        Ok(())
    }

    /// The parts below a folder.
    async fn parts(&self, folder: &Path) -> Result<Vec<Path>, StoreError> {
        let found: Vec<_> =
            self.store.list(Some(folder)).try_collect().await.map_err(|error| unavailable("list", folder, error))?;
        let paths = found.into_iter().map(|object| object.location);
        Ok(paths.filter(|path| path.extension() == Some("parquet")).collect())
    }
}
