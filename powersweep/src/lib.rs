//! powersweep as a library: sweeps in a data folder, in an object store or at a coordinator.
//!
//! A [`Place`] has experiments: [`Place::open`] takes a data folder or object store, [`Place::of_coordinator`] the access
//! file of a coordinator. The place decides who answers a request: a running coordinator, the shards of an experiment, or
//! the stored state. [`Place::run`] runs a sweep with a coordinator and a worker in this process.
//!
//! ```
//! use powersweep::{CompareOptions, Error, Files, Kind, Manifest, OrKind, Place, RunOptions, block_on};
//!
//! let text = r#"
//!     version = 1
//!     name = "gears"
//!     seeds = [1, 2, 3]
//!     workloads.synthetic = { source = "lublin", synthetic_jobs_count = 200 }
//!     policies.full-speed = { backfill = "easy" }
//!     policies.gears = { backfill = "easy", gear_rule = "bsld", bsld_threshold = 2 }
//! "#;
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let folder = folder.path().display().to_string();
//! block_on(async {
//!     let place = Place::open(folder);
//!     let manifest = Manifest::parse("gears.toml", text).or_kind(Kind::Usage)?;
//!     let mut running = place.run(&manifest, Files::default(), RunOptions::default()).await?;
//!     while let Some(progress) = running.next().await? {
//!         println!("{} of {} tasks", progress.experiment.done, progress.experiment.tasks);
//!     }
//!     assert_eq!(running.end().await?.done, 6);
//!     let options = CompareOptions { columns: vec!["energy_total_j".to_owned()], ..CompareOptions::default() };
//!     let found = place.compare("gears:policy=full-speed", "gears:policy=gears", &options).await?;
//!     let energy = found.groups[0].columns[0].comparison.expect("three pairs");
//!     println!("with gears {:.3} of the energy", energy.ratio.value);
//!     assert!(found.pairs == 3 && energy.ratio.value < 1.0);
//!     Ok(())
//! })?;
//! # Ok::<(), Error>(())
//! ```
//!
//! An [`Error`] has a kind, by which a caller can decide what to do. What a request says beside its answer goes to the
//! place's [`Notes`]. Requests are asynchronous; [`block_on`] runs them in a program without a runtime.

pub mod adopt;
pub mod allocation;
pub mod artifact;
mod batsim;
pub mod best;
pub mod calibrate;
pub mod compare;
pub mod conformance;
pub mod control;
pub mod derived;
pub mod doctor;
pub mod estimate;
pub mod events;
pub mod export;
pub mod farm;
pub mod find;
pub mod inputs;
pub mod launcher;
pub mod lp;
mod modules;
pub mod origin;
pub mod papers;
mod parallel;
pub mod place;
pub mod plan;
#[cfg(feature = "figures")]
pub mod plot;
pub mod policy_costs;
pub mod replicate;
pub mod report;
pub mod results;
pub mod run;
mod runtime;
pub mod sensitivity;
pub mod shaken;
pub mod simulate;
pub mod sql;
pub mod status;
pub mod study;
pub mod submit;
pub mod survey;
pub mod timeline;
pub mod user;
pub mod verify;

pub use best::{Best, BestOptions, FrontVolume, Goal};
pub use compare::{CompareOptions, Compared};
pub use derived::DerivedOptions;
pub use events::{Event, EventsOptions};
pub use export::{ExportColumns, ExportOptions};
pub use find::{FindOptions, Found, Search};
pub use inputs::Files;
pub use place::{Answerer, Place};
#[cfg(feature = "figures")]
pub use plot::{Chart, PlotOptions};
pub use powersweep_dataset::{Error, Kind, Notes, OrKind, failure};
pub use powersweep_engine::Value;
pub use powersweep_experiments::Manifest;
pub use powersweep_experiments::plain::plain;
pub use powersweep_results::Table;
pub use replicate::Replication;
pub use results::{GroupsOptions, RowsOptions};
pub use run::{Progress, RunOptions, Running, ShardOptions};
pub use runtime::{Runtime, block_on};
pub use sensitivity::{Sensitivity, SensitivityOptions};
pub use status::{Status, StatusOptions};
pub use study::{Study, StudyOptions};

/// Version and commit of this library.
pub const BUILD: &str = env!("POWERSWEEP_BUILD");

/// The program of the guide's page about the library.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
struct GuidePage;
