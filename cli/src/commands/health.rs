//! `powersweep health`: a health check for containers without a shell.

use crate::args::HealthArgs;
use crate::exit::{Exit, Outcome, failure};
use powersweep::block_on;
use powersweep::place::connection;
use powersweep_proto::v1;

/// Succeeds if the coordinator answers and its storage works.
pub fn run(args: &HealthArgs) -> Outcome {
    block_on(async {
        let mut farm = args.coordinator.place(&args.data)?.connect().await?;
        let request = v1::StatusRequest { experiment: String::new(), max_failures: 0, ..Default::default() };
        let status = connection::status(&mut farm, request).await.map_err(|status| connection::refused(&status))?;
        if status.storage_stalled {
            return Err(failure!(
                Storage,
                "the coordinator takes no rows, since its storage is stalled: {}. `powersweep doctor` tests the storage",
                status.storage_reason
            ));
        }
        Ok(Exit::Done)
    })
}
