//! `powersweep health`: a health check for containers without a shell.

use crate::args::HealthArgs;
use crate::client;
use crate::exit::{Exit, Outcome, failure};
use powersweep_proto::access::Role;
use powersweep_proto::v1;

/// Succeeds if the coordinator answers and its storage works.
pub fn run(args: &HealthArgs) -> Outcome {
    let address = client::address(&args.coordinator, &args.data, Role::Client)?;
    client::block_on(async {
        let mut farm = client::connect(&address).await?;
        let request = v1::StatusRequest { experiment: String::new(), max_failures: 0, ..Default::default() };
        let status = client::status(&mut farm, request).await.map_err(|status| client::refused(&status))?;
        if status.storage_stalled {
            return Err(failure!(Storage, "storage stalled: {}", status.storage_reason));
        }
        Ok(Exit::Done)
    })
}
