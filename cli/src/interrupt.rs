//! Ctrl-C and SIGTERM: the first signal asks the program to end, the second ends it at once.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::{Exit, Kind};

/// A token that is cancelled by the first signal. Needs a tokio runtime.
pub fn token() -> CancellationToken {
    let token = CancellationToken::new();
    let cancelled = token.clone();
    // Both are registered now, so that a signal of the other kind counts as the second signal.
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
        tracing::warn!("no handler of signals: Ctrl-C and SIGTERM end this program at once");
        return token;
    };
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        cancelled.cancel();
        either(&mut interrupt, &mut terminate).await;
        std::process::exit(Exit::Of(Kind::Interrupted).code().into());
    });
    token
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
