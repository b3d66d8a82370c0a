//! Whole datasets: deleting one, and giving one another name.
//!
//! Both go part by part, in any number of attempts: what an earlier attempt did is not found any more. Only parts are
//! touched; other files in an experiment's folder are their owner's.

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error as ObjectError, ObjectStoreExt};
use powersweep_results::layout;

use super::StoreError;
use super::encoding::check_name;
use super::objects::{Objects, private, unavailable};
use crate::records::Table;

impl Objects {
    /// See [`super::Store::erase_dataset`].
    pub async fn erase_dataset(&self, experiment: &str) -> Result<(), StoreError> {
        check_name(experiment)?;
        for table in Table::ALL {
            for part in self.parts(&layout::table_dir(experiment, table.name())).await? {
                self.remove(&part).await?;
            }
            for upload in self.parts(&private(&["staging", "upload", experiment, table.name()])).await? {
                self.remove(&upload).await?;
            }
        }
        Ok(())
    }

    /// See [`super::Store::rename_dataset`].
    pub async fn rename_dataset(&self, from: &str, to: &str) -> Result<(), StoreError> {
        check_name(from)?;
        check_name(to)?;
        for table in Table::ALL {
            let (old, new) = (layout::table_dir(from, table.name()), layout::table_dir(to, table.name()));
            let parts = self.parts(&old).await?;
            for part in &parts {
                let name = part.filename().unwrap_or_default();
                match self.store.rename(part, &new.clone().join(name)).await {
                    Ok(()) | Err(ObjectError::NotFound { .. }) => {}
                    Err(error) => return Err(unavailable("move", part, error)),
                }
            }
            if let Some(part) = parts.first() {
                // After a power cut the state must not know a move that the folders do not.
                self.sync_folder(&new.clone().join(part.filename().unwrap_or_default())).await?;
                self.sync_folder(part).await?;
            }
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
