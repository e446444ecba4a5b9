//! Attached consumers: each has a channel for its deliveries.
//!
//! The deliveries of a step are gathered, and each channel is filled and woken once a step. A consumer that
//! is detached takes its channel with it; deliveries that were not taken are released, and the attempt does
//! not count.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_engine::id::{ConsumerId, NamespaceId, Receipt};
use sluice_engine::limits::SLICE_ITEMS;
use sluice_engine::outcome::{Delivery, Reply};
use sluice_journal::Class;

use super::proposals::Pending;
use crate::clock::Clock;
use crate::shard::Shard;
use crate::shard::channel::{Channel, DetachedBy, Handed, Unread};
use crate::shard::release;
use crate::shard::request::{Attaching, unexpected};
use crate::shard::store::Store;

/// Upper limit of the time before the end of a lease from which a message is too late to take, in
/// microseconds; a quarter of the lease if that is less.
const LATE_US_MAX: u64 = 2_000_000;
/// Shortest time between two searches for readers that do not read, in microseconds.
const LOOK_PAUSE_US: u64 = 250_000;

/// An attached consumer, with its part of the current step.
#[derive(Debug)]
struct Attached {
    namespace: NamespaceId,
    grace_ms: u64,
    channel: Arc<Channel>,
    /// True when its reader does not read: it is about to be detached.
    stalled: bool,
    handed: Vec<Unread>,
    cancelled: Vec<Receipt>,
}

/// All attached consumers.
#[derive(Debug, Default)]
pub(super) struct Consumers {
    attached: FxHashMap<ConsumerId, Attached>,
    /// Consumers with deliveries or cancellations of this step.
    touched: Vec<ConsumerId>,
    /// Time of the log of the next search for readers that do not read, in microseconds; `None`: there is
    /// nothing to read.
    look_us: Option<u64>,
    /// Time of the last search.
    looked_us: u64,
}

impl Consumers {
    fn touch(&mut self, consumer: ConsumerId) -> Option<&mut Attached> {
        let attached = self.attached.get_mut(&consumer)?;
        if attached.handed.is_empty() && attached.cancelled.is_empty() {
            self.touched.push(consumer);
        }
        Some(attached)
    }

    /// Schedules a search at that time, or as soon as one is allowed.
    fn look_by(&mut self, late_us: u64) {
        let at_us = late_us.max(self.looked_us + LOOK_PAUSE_US);
        self.look_us = Some(self.look_us.map_or(at_us, |look_us| look_us.min(at_us)));
    }

    /// Ends every channel: its reader hears that nothing more will come, and why.
    pub(super) fn end(&mut self, by: DetachedBy) {
        for attached in std::mem::take(self).attached.into_values() {
            drop(attached.channel.end(by));
        }
    }

    /// Time of the log of the next search for readers that do not read, in microseconds.
    pub(super) fn look_us(&self) -> Option<u64> {
        self.look_us
    }

    /// Puts the step's deliveries and cancellations into the channels.
    pub(super) fn flush(&mut self) {
        for consumer in self.touched.drain(..) {
            if let Some(attached) = self.attached.get_mut(&consumer) {
                attached.channel.put(&mut attached.handed, &mut attached.cancelled);
            }
        }
    }
}

impl<S: Store, C: Clock> Shard<S, C> {
    pub(in crate::shard) fn take_attaching(&mut self, attaching: Box<Attaching>) {
        if self.leading.draining {
            return attaching.refuse(&Error::ShuttingDown {});
        }
        self.leading.proposals.batch.append(&attaching.record);
        self.leading.proposals.batch_pending.push((Class::Draining, Pending::Attach(attaching)));
    }

    /// Completes an attachment after its record is applied.
    pub(super) fn finish_attaching(&mut self, attaching: Attaching) {
        let Attaching { namespace, grace_ms, channel, reply, .. } = attaching;
        let consumer = match (self.outcome.error.take(), self.outcome.reply) {
            (None, Reply::Consumer { consumer }) => consumer,
            (error, other) => {
                let _ = reply.send(Err(error.unwrap_or_else(|| unexpected(&other))));
                return;
            }
        };
        let has_reader = channel.open(consumer);
        if !self.leads() {
            // The epoch that comes next detaches it: that of another leader, or of this node when it leads
            // again before the record of its last leadership is applied.
            drop(channel.end(DetachedBy::SteppedDown));
            let _ = reply.send(Ok(consumer));
            return;
        }
        if !has_reader {
            self.owe(&Command::Detach { namespace, consumer, grace_ms: 0, reached: 0 });
        } else if self.leading.draining {
            self.owe(&Command::Detach { namespace, consumer, grace_ms, reached: 0 });
        }
        let (handed, cancelled) = (Vec::new(), Vec::new());
        let attached = Attached { namespace, grace_ms, channel, stalled: false, handed, cancelled };
        self.leading.consumers.attached.insert(consumer, attached);
        let _ = reply.send(Ok(consumer));
    }

    /// Hands out the deliveries of the last applied record. Without an epoch of this node they are the
    /// leader's to hand out, or nobody's: the next epoch detaches all consumers.
    #[cold]
    pub(super) fn hand_to_consumers(&mut self) {
        if !self.leads() {
            return;
        }
        self.leading.handed_name = None;
        for at in 0..self.outcome.pushed.len() {
            let (consumer, delivery) = self.outcome.pushed[at];
            self.hand_to(consumer, delivery);
        }
    }

    /// Tells consumers of deliveries that the last applied record took from them. Precedes the answer to the
    /// caller, who may rely on it.
    pub(super) fn tell_consumers(&mut self) {
        for (consumer, receipt) in self.outcome.cancelled.drain(..) {
            if let Some(attached) = self.leading.consumers.touch(consumer) {
                attached.cancelled.push(receipt);
            }
        }
        for at in 0..self.outcome.detached.len() {
            let gone = self.leading.consumers.attached.remove(&self.outcome.detached[at]);
            if let Some(mut attached) = gone {
                attached.channel.put(&mut attached.handed, &mut attached.cancelled);
                let by = match attached.stalled {
                    true => DetachedBy::Stalled,
                    false if self.leading.draining => DetachedBy::Draining,
                    false => DetachedBy::Asked,
                };
                let unread: Vec<_> = attached.channel.end(by).collect();
                self.give_back_unread(attached.namespace, &unread);
            }
        }
    }

    fn hand_to(&mut self, consumer: ConsumerId, delivery: Delivery) {
        let has_room = self.leading.consumers.touch(consumer).map(|attached| attached.channel.has_room());
        let handed = match has_room {
            // Nobody reads what it gets.
            None => {
                let namespace = delivery.receipt.id.namespace;
                return self.owe(&Command::Detach { namespace, consumer, grace_ms: 0, reached: 0 });
            }
            Some(false) => Handed::Bare(delivery),
            Some(true) => Handed::Given(self.given(delivery)),
        };
        if let Some(attached) = self.leading.consumers.attached.get_mut(&consumer) {
            attached.channel.count_in(&handed);
            let lease_us = delivery.lease_until_us.saturating_sub(self.engine.time_us());
            let late_us = delivery.lease_until_us - (lease_us / 4).min(LATE_US_MAX);
            attached.handed.push(Unread { late_us, handed });
            self.leading.consumers.look_by(late_us);
        }
    }

    /// Detaches consumers whose readers let leases come near their end: nobody works on what is not read, so
    /// that it must not count as an attempt, and others should have it.
    pub(super) fn detach_stalled(&mut self) {
        if self.leading.consumers.look_us.is_none_or(|look_us| look_us > self.now_us) {
            return;
        }
        self.leading.consumers.looked_us = self.now_us;
        self.leading.consumers.look_us = None;
        let mut stalled = Vec::new();
        let mut next_us = u64::MAX;
        for (consumer, attached) in &mut self.leading.consumers.attached {
            match attached.channel.late_us() {
                Some(late_us) if late_us <= self.now_us && !attached.stalled => {
                    attached.stalled = true;
                    stalled.push((*consumer, attached.namespace, attached.grace_ms));
                }
                Some(late_us) if late_us > self.now_us => next_us = next_us.min(late_us),
                _ => {}
            }
        }
        if next_us < u64::MAX {
            self.leading.consumers.look_by(next_us);
        }
        stalled.sort_unstable();
        if let Some((first, ..)) = stalled.first() {
            let (consumers, first) = (stalled.len(), first.0);
            tracing::warn!(consumers, first, "consumers do not read what they are given: they are detached");
        }
        for (consumer, namespace, grace_ms) in stalled {
            self.owe(&Command::Detach { namespace, consumer, grace_ms, reached: 0 });
        }
    }

    /// Releases deliveries that were not read; the attempts do not count.
    fn give_back_unread(&mut self, namespace: NamespaceId, unread: &[Handed]) {
        for slice in unread.chunks(SLICE_ITEMS) {
            let items: Vec<_> = slice.iter().map(|handed| release(handed.delivery().receipt)).collect();
            self.owe(&Command::Settle { namespace, items: &items });
        }
    }

    /// Detaches all consumers; they keep what they hold for their grace period.
    pub(super) fn detach_all(&mut self) {
        let mut consumers: Vec<_> = self.leading.consumers.attached.iter().collect();
        consumers.sort_unstable_by_key(|(consumer, _)| **consumer);
        let detach = |(consumer, attached): (&ConsumerId, &Attached)| {
            (attached.namespace, *consumer, attached.grace_ms)
        };
        let consumers: Vec<_> = consumers.into_iter().map(detach).collect();
        for (namespace, consumer, grace_ms) in consumers {
            self.owe(&Command::Detach { namespace, consumer, grace_ms, reached: 0 });
        }
    }
}
