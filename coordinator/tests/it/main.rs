//! Tests of the coordinator against real storage and real protocols.

mod direct;
mod hostile;
mod long_messages;
mod lost_answers;
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
mod store_speed;
mod store_view;
mod store_writes;
