//! Leases of held messages: when each is extended, and when it ends by this process's clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::stop::Stop;
use crate::worker::options::WorkerEvent;

/// Receipts of the held messages, shared by the worker and its session.
pub(super) type HeldReceipts = Arc<Mutex<BTreeSet<String>>>;

/// The reason why a lease was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Loss {
    /// The lease is over, or its message is gone.
    Over,
    /// Its message was cancelled: it may still be settled, in any way.
    Cancelled,
}

impl Loss {
    /// The loss that the server's error code for a receipt means; `None`: its handler has just settled it, or
    /// does so in a transaction that is being decided.
    pub(super) fn of(code: Option<&[u8]>) -> Option<Loss> {
        match code {
            Some(b"already_settled" | b"in_doubt") => None,
            Some(b"cancelled") => Some(Loss::Cancelled),
            _ => Some(Loss::Over),
        }
    }
}

/// A lease that this worker holds.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) id: String,
    pub(super) lost: Stop,
    /// Loss that the server has reported.
    pub(super) loss: Option<Loss>,
    extend_at: Instant,
    /// The server's clock may say so earlier, never later: the lease began before its answer came.
    ends_at: Instant,
}

/// Leases by receipt. There are as many as messages in hand, so a walk over them is short.
#[derive(Debug)]
pub(super) struct Leases {
    lease: Duration,
    held: BTreeMap<String, Lease>,
    /// The receipts of those that are not lost, for a session to be resumed with.
    shared: HeldReceipts,
}

impl Leases {
    pub(super) fn new(lease: Duration) -> Leases {
        Leases { lease, held: BTreeMap::new(), shared: HeldReceipts::default() }
    }

    /// Adds a lease that was given at `since` at the latest.
    pub(super) fn add(&mut self, receipt: &str, id: &str, since: Instant) {
        let (extend_at, ends_at) = (since + self.lease / 2, since + self.lease);
        let (id, lost) = (id.to_owned(), Stop::new());
        let lease = Lease { id, lost, loss: None, extend_at, ends_at };
        self.held.insert(receipt.to_owned(), lease);
        self.shared().insert(receipt.to_owned());
    }

    /// The receipts, for a session that is resumed.
    pub(super) fn to_resume(&self) -> &HeldReceipts {
        &self.shared
    }

    fn shared(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn remove(&mut self, receipt: &str) -> Option<Lease> {
        self.shared().remove(receipt);
        self.held.remove(receipt)
    }

    /// The signal that this lease is lost.
    pub(super) fn lost(&self, receipt: &str) -> Option<Stop> {
        self.held.get(receipt).map(|l| l.lost.clone())
    }

    /// Gives that signal; returns what there is to tell, the first time.
    pub(super) fn lose(&mut self, receipt: &str, loss: Loss) -> Option<WorkerEvent> {
        self.shared().remove(receipt);
        let lease = self.held.get_mut(receipt).filter(|l| !l.lost.is_stopped())?;
        lease.lost.stop();
        lease.loss = Some(loss);
        let id = lease.id.clone();
        Some(match loss {
            Loss::Over => WorkerEvent::LeaseLost(id),
            Loss::Cancelled => WorkerEvent::Cancelled(id),
        })
    }

    /// Time of the next extension, at half of a lease; lost leases are not extended.
    pub(super) fn next_extend(&self) -> Option<Instant> {
        self.kept().map(|l| l.extend_at).min()
    }

    /// Earliest end of a lease.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.kept().map(|l| l.ends_at).min()
    }

    /// Gives the signal of each lease that is over by now; tells whose they were.
    pub(super) fn end_due(&mut self, now: Instant) -> Vec<String> {
        let mut shared = self.shared();
        let over = self.held.iter().filter(|(_, lease)| lease.ends_at <= now && !lease.lost.is_stopped());
        over.map(|(receipt, lease)| {
            shared.remove(receipt);
            lease.lost.stop();
            lease.id.clone()
        })
        .collect()
    }

    fn kept(&self) -> impl Iterator<Item = &Lease> {
        self.held.values().filter(|l| !l.lost.is_stopped())
    }

    /// Receipts at half time; each is due again after a quarter of the lease, should this extend fail.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<String> {
        let (again, soon) = (now + self.lease / 4, now + self.lease / 8);
        let mut due = Vec::new();
        for (receipt, lease) in
            self.held.iter_mut().filter(|(_, l)| l.extend_at <= soon && !l.lost.is_stopped())
        {
            lease.extend_at = again;
            due.push(receipt.clone());
        }
        due
    }

    /// Notes that an extend which was sent at `since` has succeeded.
    pub(super) fn extended(&mut self, receipt: &str, since: Instant) {
        if let Some(lease) = self.held.get_mut(receipt) {
            lease.extend_at = since + self.lease / 2;
            lease.ends_at = since + self.lease;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_due_at_half_time_and_again_when_an_extend_fails() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut leases = Leases::new(Duration::from_secs(40));
        leases.add("a", "1", start);
        leases.add("b", "2", at(30));
        assert_eq!(leases.next_extend(), Some(at(20)));
        assert_eq!(leases.take_due(at(20)), ["a"]);
        assert_eq!(leases.next_extend(), Some(at(30)), "tried again before the lease ends");
        leases.extended("a", at(20));
        assert_eq!(leases.next_extend(), Some(at(40)));
        leases.remove("a");
        assert_eq!(leases.next_extend(), Some(at(50)));
    }

    #[test]
    fn what_its_handler_has_settled_is_no_loss() {
        assert_eq!(Loss::of(Some(b"already_settled")), None);
        assert_eq!(Loss::of(Some(b"in_doubt")), None, "its transaction is being decided");
        assert_eq!(Loss::of(Some(b"cancelled")), Some(Loss::Cancelled));
        assert_eq!([Loss::of(Some(b"lease_lost")), Loss::of(None)], [Some(Loss::Over); 2]);
    }

    #[test]
    fn a_lease_that_is_not_extended_in_time_is_over() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut leases = Leases::new(Duration::from_secs(40));
        leases.add("a", "1", start);
        leases.add("b", "2", at(5));
        leases.extended("a", at(20));
        assert_eq!(leases.next_end(), Some(at(45)));
        assert!(leases.end_due(at(44)).is_empty());
        assert_eq!(leases.end_due(at(45)), ["2"]);
        assert!(leases.shared().iter().eq(["a"]), "a session is not resumed with it");
        assert!(leases.lost("b").is_some_and(|lost| lost.is_stopped()));
        assert_eq!(leases.next_end(), Some(at(60)));
        assert!(leases.end_due(at(59)).is_empty(), "told once");
        assert!(leases.lose("b", Loss::Over).is_none(), "nor by the server's word");
    }
}
