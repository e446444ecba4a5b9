//! The end of a transaction's time, which a test may move.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use super::{Open, OpenTransactions, Shared};

/// Time for which one stays open longer whose commit may take effect.
const CLOSING_STAYS: Duration = Duration::from_secs(60);

impl OpenTransactions {
    /// Has a transaction ended in a while, and no sooner.
    pub(super) fn end_after(&self, open: &Open, left: Duration) {
        let (shared, id) = (Arc::downgrade(&self.0), open.id.clone());
        let end = tokio::spawn(end_after(left, shared, id)).abort_handle();
        let former = open.end.lock().unwrap_or_else(PoisonError::into_inner).replace(end);
        former.inspect(AbortHandle::abort);
    }

    /// Lets all be so much closer to the end of their time, which a test moves: those that are there end.
    pub(crate) fn advance(&self, by: Duration) {
        let all: Vec<_> = self.0.open().by_id.values().cloned().collect();
        for open in all {
            let left = open.time_left().saturating_sub(by);
            *open.ends_at() = Instant::now() + left;
            if open.is_there() {
                self.end_after(&open, left);
            } else {
                self.end(&open.id);
            }
        }
    }
}

/// Waits, and ends a transaction; one whose commit may take effect stays for a while, for a repeat.
async fn end_after(ttl: Duration, shared: Weak<Shared>, id: String) {
    sleep(ttl).await;
    let find = || shared.upgrade().and_then(|shared| shared.open().by_id.get(&id).cloned());
    if find().is_some_and(|open| open.is_closing()) {
        sleep(CLOSING_STAYS).await;
    }
    if let Some(shared) = shared.upgrade() {
        shared.open().remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use sluice_engine::id::NamespaceId;

    use super::*;
    use crate::open_transactions::Led;

    const LED: Led = Led { namespace: NamespaceId::DEFAULT, epoch: 1 };

    #[tokio::test(start_paused = true)]
    async fn a_test_brings_their_ends_closer() {
        let all = OpenTransactions::default();
        let begin = |seconds| all.begin(LED, Duration::from_secs(seconds), "ann").unwrap();
        let (short, long, closing) = (begin(5), begin(50), begin(5));
        closing.set_closing(true);
        all.advance(Duration::from_secs(5));
        assert!(!all.is_open(&short.id) && all.is_open(&closing.id));
        assert_eq!(long.time_left(), Duration::from_secs(45));
        sleep(Duration::from_secs(46)).await;
        assert!(!all.is_open(&long.id) && all.is_open(&closing.id), "its commit may take effect");
        sleep(CLOSING_STAYS).await;
        assert!(!all.is_open(&closing.id));
    }
}
