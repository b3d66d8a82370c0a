//! Requests in a program that has no asynchronous runtime.

use std::future::Future;

use powersweep_dataset::{Error, failure};

/// Runs asynchronous requests to their end. `work` itself runs on the calling thread.
pub fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    Runtime::start()?.block_on(work)
}

/// Threads for several requests, and for what goes on between them, such as a [`Study`](crate::Study).
pub struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system starts none.
    pub fn start() -> Result<Runtime, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failure!(Failure, "the system starts no threads for this process: {error}. Lower --slots, or raise the limit of processes (`ulimit -u`)"))?;
        Ok(Runtime(Some(runtime)))
    }

    /// Runs a request to its end on the calling thread.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("it is dropped at the end alone").block_on(work)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // Background tasks must not delay the end of the program.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
