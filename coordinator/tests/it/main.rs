//! Tests of the coordinator against real storage and real protocols.

// A test on a real object store is ignored where the variable with its address is not set, which `test_with` asks the
// compiler's environment. It does not tell Cargo: this does, so that the tests are compiled again when the variable changes.
const _: Option<&str> = option_env!("POWERSWEEP_TEST_S3");

mod bounds;
mod clients;
mod direct;
mod hostile;
mod links;
mod long_messages;
mod lost_answers;
mod metrics;
mod mutations;
mod reading;
mod storage_stalls;
mod store;
mod store_conditions;
mod store_crashes;
mod store_faults;
mod store_golden;
mod store_ill;
mod store_merges;
mod store_owner;
mod store_publish;
mod store_samples;
mod store_shared;
mod store_view;
mod store_writes;
