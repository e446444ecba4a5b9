//! What ends a server: signals, and a failed journal.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use sluice_node::Node;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cli::{CliError, Result};

/// Exit code when a second signal ends the process at once, as shells give it for SIGINT.
const INTERRUPTED: i32 = 130;

/// Tells when to stop, and why.
#[derive(Clone, Debug)]
pub(super) struct Stopping {
    begun: watch::Receiver<bool>,
    failure: Arc<Mutex<Option<String>>>,
}

impl Stopping {
    /// Watches from now on.
    pub(super) fn watch(node: Node) -> Result<Stopping> {
        let open =
            |kind| signal(kind).map_err(|e| CliError::failed(format!("cannot watch for signals: {e}")));
        let mut interrupt = open(SignalKind::interrupt())?;
        let mut terminate = open(SignalKind::terminate())?;
        let (begin, begun) = watch::channel(false);
        let stopping = Stopping { begun, failure: Arc::default() };
        let failure = Arc::clone(&stopping.failure);
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => tracing::info!("SIGINT: finishing what is in flight; once more ends at once"),
                _ = terminate.recv() => tracing::info!("SIGTERM: finishing what is in flight; once more ends at once"),
                reason = node.failed() => {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
                }
            }
            begin.send_replace(true);
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            tracing::warn!("second signal: ending at once");
            std::process::exit(INTERRUPTED);
        });
        Ok(stopping)
    }

    /// Resolves when the server is to stop.
    pub(super) fn begun(&self) -> impl Future<Output = ()> + 'static {
        let mut begun = self.begun.clone();
        async move {
            // An error means that nobody watches any more, which ends the server as well.
            let _ = begun.wait_for(|begun| *begun).await;
        }
    }

    /// Why the journal failed, if that is what ended the server.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
