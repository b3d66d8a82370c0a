//! Requests in a program that has no asynchronous runtime.

use std::future::Future;

use powersweep_dataset::{Error, failure};

/// Runs asynchronous requests to their end. `work` itself runs on the calling thread.
pub fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failure!(Failure, "the system starts no threads for this process: {error}. Lower --slots, or raise the limit of processes (`ulimit -u`)"))?;
    let result = runtime.block_on(work);
    // Background tasks must not delay the end of the program.
    runtime.shutdown_background();
    result
}
