//! Administrative acts: once begun, they are finished and taken down, whatever becomes of those who asked for
//! them.

use std::future::{Future, pending};
use std::panic::resume_unwind;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The acts under way; each counts as a request in flight besides, which bounds their number.
#[derive(Debug)]
pub(crate) struct Acts {
    /// Every act has a receiver of it.
    under_way: watch::Sender<()>,
}

impl Acts {
    /// None yet.
    pub(crate) fn new() -> Acts {
        Acts { under_way: watch::channel(()).0 }
    }

    /// Begins an act, which goes on when its caller is gone.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        act: impl Future<Output = T> + Send + 'static,
    ) -> StartedAct<T> {
        let under_way = self.under_way.subscribe();
        StartedAct(tokio::spawn(async move {
            let _under_way = under_way;
            act.await
        }))
    }

    /// Resolves when no act is under way.
    pub(crate) async fn ended(&self) {
        self.under_way.closed().await;
    }
}

/// An act that was begun.
#[derive(Debug)]
pub(crate) struct StartedAct<T>(JoinHandle<T>);

impl<T> StartedAct<T> {
    /// Waits for the act and returns its outcome.
    pub(crate) async fn outcome(self) -> T {
        match self.0.await {
            Ok(outcome) => outcome,
            // As if it had run here.
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The runtime ends, and this task with it.
            Err(_) => pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::Notify;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn an_act_ends_without_its_caller_and_is_waited_for() {
        let (acts, go_on, done) = (Acts::new(), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (may, did) = (Arc::clone(&go_on), Arc::clone(&done));
        let begun = acts.begin(async move {
            may.notified().await;
            did.notify_one();
        });
        assert!(timeout(Duration::ZERO, begun.outcome()).await.is_err(), "the caller goes away");
        assert!(timeout(Duration::ZERO, acts.ended()).await.is_err(), "the act does not");
        go_on.notify_one();
        done.notified().await;
        acts.ended().await;
    }

    #[tokio::test]
    async fn the_caller_that_stays_gets_the_outcome() {
        assert_eq!(Acts::new().begin(async { 7 }).outcome().await, 7);
    }
}
