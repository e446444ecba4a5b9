//! Serving pulls: a receive is proposed for at most the ready messages that no other pull has claimed in
//! flight.

use std::collections::BTreeMap;
use std::sync::Arc;

use sluice_engine::command::{Command, Receive};
use sluice_engine::id::QueueId;
use sluice_engine::outcome::Delivery;
use sluice_engine::settings::QueuePatch;
use sluice_engine::{Engine, Error};
use sluice_journal::Class;
use sluice_record::write_record;
use smallvec::SmallVec;

use super::proposals::Pending;
use super::waiting_pulls::{Claims, QueueIds, WaitingPull, WaitingPulls};
use crate::clock::Clock;
use crate::shard::Shard;
use crate::shard::delivery::{Given, read_given, release};
use crate::shard::request::Pull;
use crate::shard::store::Store;

/// Upper limit of names kept; deleted queues leave theirs behind, so that the table is emptied at this
/// length.
const NAMES_MAX: usize = 100_000;
/// Wait suggested to the caller of a refused pull, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// Waiting pulls, and claims of pulls in flight.
#[derive(Debug, Default)]
pub(super) struct Pulls {
    pub(super) waiting: WaitingPulls,
    /// Number of ready messages of each queue that pulls in flight have claimed.
    claims: BTreeMap<QueueId, u64>,
    /// Queues whose waiting pulls are to be served in this step.
    woken: Vec<QueueId>,
    /// Newest queue in which a message became ready.
    newest_queue: Option<QueueId>,
    /// True when that changed since the last step.
    queue_appeared: bool,
}

impl Pulls {
    /// Answers every waiting pull, and drops all claims.
    pub(super) fn end(&mut self) {
        let mut ended = std::mem::take(self);
        while let Some(waiter) = ended.waiting.pop_any() {
            let _ = waiter.pull.reply.send(Err(Error::ShuttingDown {}));
        }
    }

    /// Notes that a message became ready in this queue.
    #[inline]
    pub(in crate::shard) fn note_ready(&mut self, queue: QueueId) {
        self.queue_appeared |= self.newest_queue < Some(queue);
        self.newest_queue = self.newest_queue.max(Some(queue));
        self.wake(queue);
    }

    /// Marks a queue whose waiting pulls are to be served in this step.
    #[inline]
    fn wake(&mut self, queue: QueueId) {
        if self.waiting.waits_for(queue) && !self.woken.contains(&queue) {
            self.woken.push(queue);
        }
    }
}

impl<S: Store, C: Clock> Shard<S, C> {
    pub(in crate::shard) fn take_pull(&mut self, pull: Box<Pull>) {
        // Its cancellation may have overtaken it.
        if pull.reply.is_closed() {
            return;
        }
        let until_us = self.monotonic_us + pull.wait_us;
        let mut waiter = WaitingPull { queues: QueueIds::new(), pull, until_us };
        match self.resolve(&waiter.pull) {
            Ok(Resolved::Known(queues)) => {
                waiter.queues = queues;
                self.serve_or_wait(waiter);
            }
            Ok(Resolved::Created) => self.propose_pull(waiter, Claims::new()),
            Err(error) => {
                let _ = waiter.pull.reply.send(Err(error));
            }
        }
    }

    /// True when a pull is served at once, as far as is known before its record is applied.
    pub(in crate::shard) fn is_served_at_once(&self, pull: &Pull) -> bool {
        let ids = queue_ids(&self.engine, pull);
        ids.len() == pull.queues.len() && ids.iter().any(|queue| self.unclaimed(*queue) > 0)
    }

    /// Checks that all queues of a pull exist or may be made, so that nothing is written where it would wait
    /// in vain.
    fn admit_queues(&self, pull: &Pull) -> Result<(), Error> {
        self.engine.admits_queues(pull.namespace, pull.queues.iter().map(|(name, _)| &**name))
    }

    /// Finds the queues of a pull. Proposes the creation of missing ones, so that the pull that follows in
    /// the same batch finds them.
    fn resolve(&mut self, pull: &Pull) -> Result<Resolved, Error> {
        let ids = queue_ids(&self.engine, pull);
        if ids.len() == pull.queues.len() {
            return Ok(Resolved::Known(ids));
        }
        self.admit_queues(pull)?;
        let missing = pull
            .queues
            .iter()
            .filter(|(name, _)| self.engine.queue_id(pull.namespace, name).is_none())
            .map(|(name, _)| name);
        for name in missing {
            let create = Command::QueueSet {
                namespace: pull.namespace,
                queue: name,
                patch: QueuePatch::default(),
                create: true,
            };
            write_record(&mut self.leading.proposals.batch, &create);
            self.leading.proposals.batch_pending.push((Class::Growing, Pending::Internal));
        }
        Ok(Resolved::Created)
    }

    fn serve_or_wait(&mut self, waiter: WaitingPull) {
        let claims = self.claim(&waiter);
        if !claims.is_empty() {
            return self.propose_pull(waiter, claims);
        }
        if self.leading.draining || waiter.until_us <= self.monotonic_us {
            let _ = waiter.pull.reply.send(Ok(Vec::new()));
        } else if self.leading.pulls.waiting.len() >= self.leading.waiting_max {
            let overloaded = Error::Overloaded { what: "receives", retry_after_ms: RETRY_AFTER_MS };
            let _ = waiter.pull.reply.send(Err(overloaded));
        } else {
            self.leading.pulls.waiting.push(waiter);
        }
    }

    /// Claims ready messages that nobody has claimed, up to what the pull asks for.
    fn claim(&mut self, waiter: &WaitingPull) -> Claims {
        let mut wanted = waiter.pull.max_messages;
        let mut claims = Claims::new();
        for &queue in &waiter.queues {
            let free = self.unclaimed(queue).min(wanted.into()) as u32;
            if free > 0 {
                *self.leading.pulls.claims.entry(queue).or_default() += u64::from(free);
                claims.push((queue, free));
                wanted -= free;
            }
        }
        claims
    }

    /// Estimate of the payload bytes of the messages claimed last.
    fn claimed_bytes(&self, claims: &[(QueueId, u32)]) -> u64 {
        let bytes = claims.iter().map(|(queue, count)| {
            let claimed = self.leading.pulls.claims.get(queue).copied().unwrap_or(0);
            let count = u64::from(*count);
            self.engine.next_bytes(*queue, claimed.saturating_sub(count), count)
        });
        bytes.sum()
    }

    fn unclaimed(&self, queue: QueueId) -> u64 {
        let claimed = self.leading.pulls.claims.get(&queue).copied().unwrap_or(0);
        self.engine.ready_count(queue).saturating_sub(claimed)
    }

    /// Drops claims: others may wait for these messages.
    pub(super) fn unclaim(&mut self, claims: &[(QueueId, u32)]) {
        for (queue, count) in claims {
            if let Some(claimed) = self.leading.pulls.claims.get_mut(queue) {
                *claimed -= u64::from(*count);
                if *claimed == 0 {
                    self.leading.pulls.claims.remove(queue);
                }
            }
            self.leading.pulls.wake(*queue);
        }
    }

    fn propose_pull(&mut self, waiter: WaitingPull, claims: Claims) {
        let pull = &waiter.pull;
        // A pull with nothing claimed follows the creation of its queues, to report on names that are
        // refused.
        let max_messages = claims.iter().map(|(_, count)| u64::from(*count)).sum::<u64>().max(1);
        let room = pull
            .room
            .as_ref()
            .map_or(Some(pull.max_bytes), |room| room.take(max_messages, self.claimed_bytes(&claims)));
        let Some(room) = room else {
            self.unclaim(&claims);
            let overloaded = Error::Overloaded { what: "unread answers", retry_after_ms: RETRY_AFTER_MS };
            let _ = waiter.pull.reply.send(Err(overloaded));
            return;
        };
        let queues: SmallVec<[(&str, u16); 4]> =
            pull.queues.iter().map(|(name, weight)| (&**name, *weight)).collect();
        let receive = Command::Receive(Receive {
            namespace: pull.namespace,
            queues: &queues,
            max_messages: max_messages as u32,
            max_bytes: pull.max_bytes.min(room),
            lease_ms: pull.lease_ms,
            consumer: &pull.consumer,
        });
        write_record(&mut self.leading.proposals.batch, &receive);
        drop(queues);
        self.leading.proposals.batch_pending.push((Class::Draining, Pending::Pull(waiter, claims)));
    }

    /// Completes a pull after its receive is applied: hands out the deliveries, or lets it wait again.
    pub(super) fn finish_pull(&mut self, mut waiter: WaitingPull, claims: &[(QueueId, u32)]) {
        self.unclaim(claims);
        if let Some(error) = self.outcome.error.take() {
            let _ = waiter.pull.reply.send(Err(error));
        } else if self.outcome.deliveries.is_empty() {
            if let Some(room) = &waiter.pull.room {
                room.put_back();
            }
            if self.follows() {
                let _ = waiter.pull.reply.send(Ok(Vec::new()));
                return;
            }
            // Others may have made the last queues that there may be.
            if let Err(error) = self.admit_queues(&waiter.pull) {
                let _ = waiter.pull.reply.send(Err(error));
                return;
            }
            waiter.queues = queue_ids(&self.engine, &waiter.pull);
            self.serve_or_wait(waiter);
        } else {
            self.hand_out(waiter);
        }
    }

    fn hand_out(&mut self, waiter: WaitingPull) {
        let mut given = Vec::with_capacity(self.outcome.deliveries.len());
        self.leading.handed_name = None;
        for i in 0..self.outcome.deliveries.len() {
            let delivery = self.outcome.deliveries[i];
            given.push(self.given(delivery));
        }
        if let Err(orphans) = waiter.pull.reply.send(Ok(given)) {
            self.give_back(&orphans);
        }
    }

    /// A delivery with its bytes, or with where they are.
    pub(super) fn given(&mut self, delivery: Delivery) -> Given {
        let queue = self.name_to_hand_out(delivery.queue);
        read_given(&self.engine, &mut self.store, delivery, queue)
    }

    /// The caller has gone: its messages return to their queues, and the attempt does not count.
    fn give_back(&mut self, orphans: &[Given]) {
        let Some(first) = orphans.first() else { return };
        let namespace = first.delivery.receipt.id.namespace;
        let items: Vec<_> = orphans.iter().map(|given| release(given.delivery.receipt)).collect();
        self.owe(&Command::Settle { namespace, items: &items });
    }

    /// A queue's name for a delivery. Several of one record share a copy of their own: their reader counts
    /// its references down on another thread, and with a count that all records had in common the two would
    /// wait for each other.
    fn name_to_hand_out(&mut self, queue: QueueId) -> Arc<str> {
        if self.outcome.deliveries.len() + self.outcome.pushed.len() < 2 {
            return self.name_of(queue);
        }
        if let Some((named, name)) = &self.leading.handed_name
            && *named == queue
        {
            return Arc::clone(name);
        }
        let name: Arc<str> = self.engine.queue_name(queue).unwrap_or_default().into();
        self.leading.handed_name = Some((queue, Arc::clone(&name)));
        name
    }

    pub(super) fn name_of(&mut self, queue: QueueId) -> Arc<str> {
        if let Some(name) = self.leading.names.get(&queue) {
            return Arc::clone(name);
        }
        if self.leading.names.len() >= NAMES_MAX {
            self.leading.names.clear();
        }
        let name: Arc<str> = self.engine.queue_name(queue).unwrap_or_default().into();
        self.leading.names.insert(queue, Arc::clone(&name));
        name
    }

    pub(super) fn end_waits(&mut self) {
        while let Some(waiter) = self.leading.pulls.waiting.pop_ended(self.monotonic_us) {
            let _ = waiter.pull.reply.send(Ok(Vec::new()));
        }
    }

    /// Pulls that wait for a queue that is gone end empty; their next one finds, or makes, the queue of that
    /// name. With its namespace gone there will be none.
    pub(super) fn end_orphaned_waits(&mut self) {
        let engine = &self.engine;
        for waiter in self.leading.pulls.waiting.take_if(|queue| engine.queue_name(queue).is_none()) {
            let namespace = waiter.pull.namespace;
            let end = match engine.namespace(namespace) {
                Some(_) => Ok(Vec::new()),
                None => Err(namespace.not_found()),
            };
            let _ = waiter.pull.reply.send(end);
        }
    }

    /// A queue that some pull names may exist by now.
    fn line_up_again(&mut self) {
        for mut waiter in self.leading.pulls.waiting.take_incomplete() {
            waiter.queues = queue_ids(&self.engine, &waiter.pull);
            self.serve_or_wait(waiter);
        }
    }

    /// Serves those who wait for queues in which messages have become ready.
    pub(super) fn serve_woken(&mut self) {
        if std::mem::take(&mut self.leading.pulls.queue_appeared) {
            self.line_up_again();
        }
        while let Some(queue) = self.leading.pulls.woken.pop() {
            while self.unclaimed(queue) > 0
                && let Some(waiter) = self.leading.pulls.waiting.pop(queue)
            {
                self.serve_or_wait(waiter);
            }
        }
    }
}

enum Resolved {
    Known(QueueIds),
    Created,
}

fn queue_ids(engine: &Engine, pull: &Pull) -> QueueIds {
    pull.queues.iter().filter_map(|(name, _)| engine.queue_id(pull.namespace, name)).collect()
}
