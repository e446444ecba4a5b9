//! Answers to callers after a record is applied.

use super::proposals::Pending;
use crate::api::Duplicates;
use crate::clock::Clock;
use crate::shard::Shard;
use crate::shard::request::{Answer, Operations, ReplyTo};
use crate::shard::store::Store;

impl<S: Store, C: Clock> Shard<S, C> {
    /// Answers everybody whom the last applied record concerns; `index` is its index, `is_own` tells whether
    /// it is the next of those in flight. Consumers are told of
    /// deliveries that they no longer have before the caller hears that this is done.
    #[inline]
    pub(in crate::shard) fn answer_record(&mut self, index: u64, is_own: bool) {
        if !self.outcome.ended.is_empty() {
            self.tell_ends();
        }
        if !self.outcome.events.is_empty() {
            self.tell_events(index);
        }
        if !self.outcome.locks.is_empty() {
            self.tell_locks();
        }
        if !self.outcome.changed_locks.is_empty() {
            let changed = std::mem::take(&mut self.outcome.changed_locks);
            self.tell_lock_changes(changed);
        }
        let concerns_consumers = self.outcome.concerns_consumers();
        if concerns_consumers {
            self.tell_consumers();
        }
        if is_own && let Some(pending) = self.leading.proposals.in_flight.pop_front() {
            self.complete(pending);
        }
        if concerns_consumers {
            self.hand_to_consumers();
        }
    }

    /// Puts the step's deliveries and events into their channels and feeds, and ends those whose queue or
    /// namespace is gone.
    pub(in crate::shard) fn hand_over(&mut self) {
        self.leading.consumers.flush();
        self.leading.feeds.flush();
        self.leading.tell_changes(self.engine.latest_document_change());
        if std::mem::take(&mut self.leading.queues_removed) {
            self.end_orphaned_waits();
            self.end_orphaned_feeds();
            self.end_orphaned_lock_watches();
            self.leading.wake_readers_of_changes();
        }
    }

    fn complete(&mut self, pending: Pending) {
        match pending {
            Pending::Internal | Pending::Owed(_) | Pending::Reply(ReplyTo::Nobody) => {}
            Pending::Tick => self.leading.proposals.tick_in_flight = false,
            Pending::Firing(number) => self.leading.schedules.done(number),
            Pending::Reply(reply) => reply.send(self.answer()),
            Pending::Removal(reply) => {
                reply.send(self.answer());
                self.leading.queues_removed = true;
            }
            Pending::Acquire(acquiring) => self.finish_acquiring(acquiring),
            Pending::Take(taking) => self.finish_taking(*taking),
            Pending::Attach(attaching) => self.finish_attaching(*attaching),
            Pending::Pull(waiter, claims) => self.finish_pull(waiter, &claims),
        }
    }

    fn answer(&mut self) -> Answer {
        let results = if self.outcome.results.iter().any(Result::is_err) {
            std::mem::take(&mut self.outcome.results)
        } else {
            Vec::new()
        };
        let duplicates = (!self.outcome.duplicates.is_empty()).then(|| {
            let ids = std::mem::take(&mut self.outcome.ids);
            Box::new(Duplicates { ids, items: std::mem::take(&mut self.outcome.duplicates) })
        });
        let (done, refused_at) = (&mut self.outcome.operations, self.outcome.refused_at);
        let is_transaction = !done.is_empty() || refused_at.is_some();
        let operations =
            is_transaction.then(|| Box::new(Operations { done: std::mem::take(done), refused_at }));
        let result = self.outcome.error.take().map_or(Ok(self.outcome.reply), Err);
        Answer { result, results, duplicates, operations }
    }
}
