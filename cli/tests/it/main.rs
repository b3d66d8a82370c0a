//! The real binary, run as a user runs it.

// Tests that need files are ignored where the variable with their folder is not set, which `test_with` asks the compiler's
// environment. It does not tell Cargo: these do, so that the tests are compiled again when a variable changes.
const _: [Option<&str>; 2] = [option_env!("POWERSWEEP_TRACES"), option_env!("POWERSWEEP_PYTHON")];

mod access;
mod answers;
mod batsim;
mod calibrate;
mod check;
mod clients;
mod config;
mod dashboard;
mod dashboard_rows;
mod doctor;
mod documents;
mod edits;
mod escapes;
mod events;
mod farm;
mod files;
mod find;
mod fire;
mod formats;
mod groups;
mod help;
mod imports;
mod inputs;
mod kill;
mod kubernetes;
mod launch;
mod launch_pbs;
mod life;
mod limits;
mod lp;
mod modules;
mod one_task;
mod operator;
mod outputs;
mod paths;
mod places;
mod places_of_files;
mod plan;
mod plot;
mod presets;
mod random;
mod remote;
mod rows;
mod runs;
mod sandbox;
mod shard;
mod showing;
mod signals;
mod sweeps;
mod tables;
mod terminal;
mod timeline;
mod upgrade;
