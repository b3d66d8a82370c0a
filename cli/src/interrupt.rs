//! Ctrl-C and SIGTERM: the first asks for an orderly end, a second Ctrl-C ends at once.

use tokio_util::sync::CancellationToken;

/// A token that is cancelled by the first signal. Needs a tokio runtime.
pub fn token() -> CancellationToken {
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        first_signal().await;
        cancelled.cancel();
        first_signal().await;
        // What is durable stays; the next run goes on from it.
        std::process::exit(crate::exit::Exit::Interrupted as i32);
    });
    token
}

async fn first_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
