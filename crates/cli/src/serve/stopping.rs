//! The end of a server: signals, a failed journal, or removal from its cluster.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluice_node::Node;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::terminal::{CliError, Result};

/// Exit code when a second signal ends the process at once; shells use it for SIGINT.
const INTERRUPTED: i32 = 130;

/// Longest time for handing the leaderships of a node to others before it stops.
const HAND_OVER: Duration = Duration::from_secs(1);

/// Says when to stop, and why.
#[derive(Clone, Debug)]
pub(super) struct Stopping {
    begun: watch::Receiver<bool>,
    end: Arc<Mutex<Shutdown>>,
}

/// The cause of an end that nobody has asked this process for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// The journal has failed.
    Journal(String),
    /// The node was removed from its cluster.
    Removed,
    /// The node has got another number, under which it has to start.
    Renewed,
}

/// The reason and the time of the end.
#[derive(Debug, Default)]
struct Shutdown {
    since: Option<Instant>,
    failure: Option<Failure>,
}

impl Stopping {
    /// Starts to watch for signals and failures. `ended` resolves when the node of a cluster cannot go on.
    pub(super) fn watch(
        node: Node,
        ended: impl Future<Output = Failure> + Send + 'static,
    ) -> Result<Stopping> {
        let open =
            |kind| signal(kind).map_err(|e| CliError::failed(format!("cannot watch for signals: {e}")));
        let mut interrupt = open(SignalKind::interrupt())?;
        let mut terminate = open(SignalKind::terminate())?;
        let (begin, begun) = watch::channel(false);
        let stopping = Stopping { begun, end: Arc::default() };
        let end = Arc::clone(&stopping.end);
        tokio::spawn(async move {
            let failure = tokio::select! {
                _ = interrupt.recv() => announce_stop("SIGINT"),
                _ = terminate.recv() => announce_stop("SIGTERM"),
                reason = node.failed() => Some(Failure::Journal(reason)),
                failure = ended => Some(failure),
            };
            let second = async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                tracing::warn!("second signal: ending the process at once");
                std::process::exit(INTERRUPTED);
            };
            tokio::pin!(second);
            if failure.is_none() {
                tokio::select! {
                    () = node.hand_over(HAND_OVER) => {}
                    () = &mut second => {}
                }
            }
            *end.lock().unwrap_or_else(PoisonError::into_inner) =
                Shutdown { since: Some(Instant::now()), failure };
            begin.send_replace(true);
            second.await;
        });
        Ok(stopping)
    }

    /// Waits until the server is to stop.
    pub(super) fn begun(&self) -> impl Future<Output = ()> + 'static {
        let mut begun = self.begun.clone();
        async move {
            // An error means that the watching task is gone, which ends the server as well.
            let _ = begun.wait_for(|begun| *begun).await;
        }
    }

    /// The failure, if one has ended the server.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).failure.clone()
    }

    /// Time since the server began to stop.
    pub(super) fn elapsed(&self) -> Duration {
        let since = self.end.lock().unwrap_or_else(PoisonError::into_inner).since;
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

fn announce_stop(signal: &str) -> Option<Failure> {
    tracing::info!("{signal}: finishing running requests; a second signal ends the process at once");
    None
}
