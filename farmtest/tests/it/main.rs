//! End to end: the rows of the farm equal those of the engine, also under faults of coordinator and workers.
//!
//! The tests of the farm under faults, by promise: `simulation` has the logic under seeds of all faults at once; other tests
//! have what it models (storage, connections, processes). A new test comes into the lowest layer that has the fault.
//!
//! | promise | `coordinator/tests/it` | here and `worker/tests/it` | `cli/tests/it` |
//! |---|---|---|---|
//! | no acknowledged row is lost, none occurs twice | `store_crashes`, `store_publish` | | `fire::kills`, `kill`, `shard` |
//! | a row that was finished during an outage counts | | `hazards`, `agent` | `fire::network` |
//! | an end in good order runs no task again | `storage_stalls` | `agent` | `fire::drains`, `upgrade` |
//! | storage that fails stalls the farm until it works | `storage_stalls`, `store_crashes` | | `fire::disk`, `fire::s3` |
//! | a dataset has one owner | `store_owner`, `store_shared` | | `fire::{owners,shared_files,nfs}` |
//! | a reader sees each row once | `store_view`, `reading` | | `fire::edits`, `remote` |
//! | uploads arrive whole, from whom they may | `direct` | `direct` | `fire::s3::direct` |
//! | a task that hangs ends its worker, and runs elsewhere | | `hazards` | |
//! | no caller swells or stops the coordinator | `hostile`, `mutations`, `long_messages` | | `fire::crowd` |

mod farm;
mod hazards;
mod simulation;
mod sweeps;
mod undisturbed;
