//! Pages that show a farm in a browser, for `powersweep dashboard`.
//!
//! This crate renders pages and guards them. It has no knowledge of gRPC and files: the command gives it a [`Farm`].
//! Any number of open pages costs the coordinator one request a second for each experiment that is looked at: pages
//! share what [`looks`] keeps. Rows are read in the background, at intervals that bound the cost ([`slow`]).
//!
//! A page is a function from the state to HTML without scripts of its own. The server sends that HTML again when it
//! changes, and htmx morphs it into the open page. Every link is relative and every page has the same depth, and the
//! server looks only at the last segment of a path: so pages work under any prefix of a proxy.

mod address;
mod assets;
mod bins;
mod dots;
mod guard;
mod looks;
mod pages;
mod plot;
mod report;
mod reproduction;
#[cfg(test)]
mod samples;
mod scale;
mod server;
mod slow;

use std::fs::File;

use async_trait::async_trait;
use powersweep_dataset::activity::Activity;
use powersweep_dataset::survey::{Choice, Survey};
use powersweep_dataset::writing::Encoding;
use powersweep_proto::v1;

pub use self::pages::{
    ColumnHeader, CompareQuery, Difference, Launched, LaunchedAllocation, PAGE_ROWS, RowsPage, RowsQuery,
};
pub use self::report::{Report, report};
pub use self::reproduction::{Body, Reproduced, Shown, SweepSummary, reproduction};
pub use self::server::{ListenError, Listening, Options, Place};

/// The farm that the pages show. Errors are texts for people; a later call may succeed.
#[async_trait]
pub trait Farm: Send + Sync + 'static {
    /// The state of the farm; without experiments if there is none of the name.
    async fn status(&self, request: v1::StatusRequest) -> Result<v1::StatusReply, String>;

    /// Changes an experiment.
    async fn control(&self, request: v1::ControlRequest) -> Result<v1::ControlReply, String>;

    /// Some rows of an experiment.
    async fn rows(&self, ask: &RowsQuery) -> Result<RowsPage, String>;

    /// What all rows of an experiment show. `last`: the last answer, whose rows need not be read again.
    async fn survey(&self, experiment: &str, choice: &Choice, last: Option<&Survey>) -> Result<Survey, String>;

    /// When the tasks of an experiment ran. `last`: the last answer, whose rows need not be read again.
    async fn activity(&self, experiment: &str, last: Option<&Activity>) -> Result<Activity, String>;

    /// Two sets of rows, compared.
    async fn compare(&self, ask: &CompareQuery) -> Result<Difference, String>;

    /// The manifest of the last part of an experiment; `None` before the first one.
    async fn manifest(&self, experiment: &str) -> Result<Option<String>, String>;

    /// A file with all rows that a page of rows chooses from, in its columns and order. The file has no name.
    async fn download(&self, ask: &RowsQuery, encoding: Encoding) -> Result<File, String>;

    /// The script and the last output of an allocation of the launcher.
    async fn output(&self, allocation: &str) -> Result<String, String>;

    /// What the launcher of a batch system has written, where this process can read its folder.
    async fn launched(&self) -> Option<Launched>;
}
