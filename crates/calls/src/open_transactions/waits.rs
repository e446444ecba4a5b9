//! Receives that wait in an open transaction. Room is set aside for what they may get, and they end before
//! the transaction does: what its end sends or gives back is for others.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// Longest time for which the end of a transaction waits for its receives. They end at once, unless nobody
/// looks after their calls.
const ENDING_MAX: Duration = Duration::from_secs(1);

/// The receives that wait in a transaction.
#[derive(Default)]
pub(crate) struct Waits {
    phase: watch::Sender<Phase>,
    /// Number of messages for which they have set room aside.
    reserved: watch::Sender<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// Receives may wait.
    #[default]
    Open,
    /// The transaction is being committed or rolled back.
    Ending,
    /// The transaction has ended.
    Ended,
}

impl Waits {
    /// Number of messages for which room is set aside.
    pub(crate) fn reserved(&self) -> usize {
        *self.reserved.borrow()
    }

    /// Sets room aside.
    pub(super) fn reserve(self: &Arc<Waits>, messages: usize) -> Reserved {
        self.reserved.send_modify(|reserved| *reserved += messages);
        Reserved { of: Arc::clone(self), messages }
    }

    /// Resolves when no receive may wait any more.
    pub(crate) async fn are_over(&self) {
        // Never an error: the sender is here.
        let _ = self.phase.subscribe().wait_for(|phase| *phase != Phase::Open).await;
    }

    /// True if the transaction has ended; waits while it is being committed or rolled back.
    pub(crate) async fn has_ended(&self) -> bool {
        let mut phase = self.phase.subscribe();
        phase.wait_for(|phase| *phase != Phase::Ending).await.is_ok_and(|phase| *phase == Phase::Ended)
    }

    /// Resolves when the transaction has ended, be it never.
    pub(super) async fn have_ended(&self) {
        // Never an error: the sender is here.
        let _ = self.phase.subscribe().wait_for(|phase| *phase == Phase::Ended).await;
    }

    /// Ends the receives, and waits until they have ended. Others may wait when the answer is dropped, unless
    /// the transaction has ended by then.
    pub(crate) async fn end_for_now(&self) -> Ending<'_> {
        let ending = Ending(self);
        self.phase.send_if_modified(|phase| replace(phase, Phase::Open, Phase::Ending));
        let mut reserved = self.reserved.subscribe();
        // What has not ended by then is given what it gets no more, and it goes back.
        let _ = timeout(ENDING_MAX, reserved.wait_for(|reserved| *reserved == 0)).await;
        ending
    }

    /// Ends the receives with the transaction.
    pub(super) fn end(&self) {
        self.phase.send_replace(Phase::Ended);
    }
}

/// Replaces a phase by the next; true: it was that one.
fn replace(phase: &mut Phase, before: Phase, next: Phase) -> bool {
    let is_before = *phase == before;
    if is_before {
        *phase = next;
    }
    is_before
}

/// The room that is set aside for the messages of a receive, until this is dropped.
pub(crate) struct Reserved {
    of: Arc<Waits>,
    messages: usize,
}

impl Reserved {
    /// Number of the messages.
    pub(crate) fn messages(&self) -> usize {
        self.messages
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.of.reserved.send_modify(|reserved| *reserved -= self.messages);
    }
}

/// The end of a transaction, or a commit that may do nothing: no receive waits.
pub(crate) struct Ending<'w>(&'w Waits);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.phase.send_if_modified(|phase| replace(phase, Phase::Ending, Phase::Open));
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn receives_end_before_the_end_of_their_transaction_is_gone_on_with() {
        let waits = Arc::new(Waits::default());
        let waiting = |waits: Arc<Waits>| async move {
            let reserved = waits.reserve(3);
            waits.are_over().await;
            drop(reserved);
            waits.has_ended().await
        };
        let ended = tokio::spawn(waiting(Arc::clone(&waits)));
        while waits.reserved() == 0 {
            tokio::task::yield_now().await;
        }
        let started = Instant::now();
        let ending = waits.end_for_now().await;
        assert!(waits.reserved() == 0 && started.elapsed() < ENDING_MAX && !ended.is_finished());
        drop(ending);
        assert!(!ended.await.unwrap(), "it goes on");
        let ended = tokio::spawn(waiting(Arc::clone(&waits)));
        let ending = waits.end_for_now().await;
        waits.end();
        drop(ending);
        assert!(ended.await.unwrap());
        waits.are_over().await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_end_is_not_waited_for_long() {
        let waits = Arc::new(Waits::default());
        let reserved = waits.reserve(1);
        let started = Instant::now();
        drop(waits.end_for_now().await);
        assert!((ENDING_MAX..2 * ENDING_MAX).contains(&started.elapsed()));
        drop(reserved);
        assert_eq!(waits.reserved(), 0);
    }
}
