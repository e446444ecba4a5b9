//! Messages in the hands of clients, as these were promised: nobody else gets one before its lease has ended,
//! or before the consumer that holds it has been without its leader for its time of grace, if that is sooner.
//! Until then its receipt settles it, and a consumer that comes back goes on with it under a new lease.

use std::collections::BTreeMap;

use sluice_engine::id::{ConsumerId, Receipt};
use sluice_engine::outcome::Delivery;

use super::calls::{CONSUMER_LEASE_MS, LEASE_MS};
use super::promised::{End, Starts};

/// End of a lease, or of a time of grace.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lease {
    /// Time before which it does not end.
    pub(super) until: End,
    /// Its end by the time of the log, in microseconds since the Unix epoch; 0: it is not known.
    pub(super) told_us: u64,
}

impl Lease {
    /// The lease of a receive or an extension that was asked for then.
    pub(super) fn asked(begun_us: u64, told_us: u64) -> Lease {
        Lease { until: End::after(begun_us, LEASE_MS * 1_000), told_us }
    }

    /// The one that ends first.
    pub(super) fn sooner(self, other: Lease) -> Lease {
        if other.until.is_before(self.until) { other } else { self }
    }
}

/// A delivery that a client has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) receipt: Receipt,
    pub(super) lease: Lease,
    /// The attached consumer that holds it; `None`: it was received.
    pub(super) holder: Option<ConsumerId>,
    /// True: an extension was asked for, which may come after other calls with this receipt.
    pub(super) is_extended: bool,
}

impl Hold {
    pub(super) fn new(receipt: Receipt, lease: Lease, holder: Option<ConsumerId>) -> Hold {
        Hold { receipt, lease, holder, is_extended: false }
    }

    /// An extension may be done without an answer; then a longer lease ends with it.
    pub(super) fn may_be_extended(&mut self, begun_us: u64) {
        self.lease = self.lease.sooner(Lease::asked(begun_us, 0));
        self.is_extended = true;
    }

    /// A consumer goes on with it, under a lease until then unless an extension came later.
    pub(super) fn is_resumed(&mut self, consumer: ConsumerId, until: End) {
        let lease = Lease { until, told_us: 0 };
        self.lease = if self.is_extended { self.lease.sooner(lease) } else { lease };
        self.holder = Some(consumer);
    }
}

/// A consumer that was attached.
#[derive(Clone, Copy, Debug)]
struct Attached {
    grace_us: u64,
    /// Latest time at which it is known to have been attached, in microseconds, and the same by the time of
    /// the log.
    since: (u64, u64),
}

/// All consumers that were attached, and the batches that gave them messages.
#[derive(Debug, Default)]
pub(super) struct Consumers {
    attached: BTreeMap<ConsumerId, Attached>,
    /// Times of the log that batches were proposed with, each with the time at which that was done first.
    proposed: BTreeMap<u64, u64>,
}

impl Consumers {
    /// Takes in that batches were proposed with these times of the log.
    pub(super) fn proposed(&mut self, times_us: Vec<u64>, now_us: u64) {
        for time_us in times_us {
            self.proposed.entry(time_us).or_insert(now_us);
        }
    }

    /// Takes in a consumer whose attachment was asked for then. False: there was one of its number.
    pub(super) fn add(&mut self, consumer: ConsumerId, grace_ms: u64, begun_us: u64) -> bool {
        let attached = Attached { grace_us: grace_ms * 1_000, since: (begun_us, 0) };
        self.attached.insert(consumer, attached).is_none()
    }

    /// The lease of a delivery to a consumer, which begins with the time of the batch that brings it.
    pub(super) fn give(&mut self, consumer: ConsumerId, delivery: &Delivery) -> Result<Lease, String> {
        let (told_us, lease_us) = (delivery.lease_until_us, CONSUMER_LEASE_MS * 1_000);
        let given_us = told_us.saturating_sub(lease_us);
        let begun_us = *self.proposed.get(&given_us).ok_or("a delivery belongs to no batch")?;
        let attached = self.attached.get_mut(&consumer).ok_or("a delivery to nobody")?;
        attached.since = attached.since.max((begun_us, given_us));
        Ok(Lease { until: End::after(begun_us, lease_us), told_us })
    }

    /// The lease of a message in somebody's hands, or the time of grace of its holder if that ends before.
    pub(super) fn early_us(&self, hold: &Hold, starts: &Starts, now_us: u64) -> u64 {
        let Lease { until, told_us } = match hold.holder.and_then(|holder| self.attached.get(&holder)) {
            Some(Attached { grace_us, since: (since_us, logged_us) }) => hold.lease.sooner(Lease {
                until: End::after(*since_us, *grace_us),
                told_us: if *logged_us == 0 { 0 } else { logged_us + grace_us },
            }),
            None => hold.lease,
        };
        starts.early_us(until, told_us, now_us)
    }
}
