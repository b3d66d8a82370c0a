//! Ctrl-C and SIGTERM: the first asks for an orderly end, a second one ends at once.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled by the first signal. Needs a tokio runtime.
pub fn token() -> CancellationToken {
    let token = CancellationToken::new();
    let cancelled = token.clone();
    // Both signals are registered now, so that a second signal during the first is counted.
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
        tracing::warn!("signals cannot be handled here: they end this program at once");
        return token;
    };
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        cancelled.cancel();
        either(&mut interrupt, &mut terminate).await;
        // Durable rows stay; the next run continues from them.
        std::process::exit(crate::exit::Exit::Interrupted as i32);
    });
    token
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
