//! State that only the leader of a shard has: records that it proposes, callers that wait, and its timers.
//!
//! A replica that only follows applies the same records to the same state, and has none of this but the
//! callers of its last leadership whose records are not decided yet. On one node each shard leads from its
//! first step to its end.

mod advances;
mod answering;
pub mod begin;
mod consumers;
mod feeds;
mod lock_changes;
mod lock_waits;
mod proposals;
mod pulls;
mod result_waits;
mod schedules;
mod waiting_pulls;

use std::collections::BTreeMap;
use std::sync::Arc;

use sluice_engine::id::QueueId;
use tokio::sync::watch;

use super::Shard;
use super::store::Store;
use crate::api::EventOptions;
use crate::clock::Clock;
use crate::plant::{self, Plant};
use crate::shard::channel::DetachedBy;
use crate::shard::lock_watches::LockWatches;
use advances::Advances;
use consumers::Consumers;
use feeds::Feeds;
use lock_waits::LockWaits;
use proposals::Proposals;
use pulls::Pulls;
use result_waits::ResultWaits;
use schedules::Schedules;

pub(super) use proposals::refusal;

/// The leader's part of a shard.
#[derive(Debug)]
pub(super) struct Leading {
    /// Records proposed or to be proposed, and who waits for each.
    proposals: Proposals,
    /// Waiting receives, and the ready messages that receives in flight have claimed.
    pulls: Pulls,
    /// Waits for the end of a message.
    results: ResultWaits,
    /// Waits for locks.
    locks: LockWaits,
    /// Watchers of locks.
    lock_watches: Arc<LockWatches>,
    /// Upper limit of waiting pulls, of waits for results, and of those for locks.
    waiting_max: usize,
    /// Attached consumers and their delivery channels.
    consumers: Consumers,
    /// Feeds of events and their readers.
    feeds: Feeds,
    /// Revision of the last change of a document, for those who wait for the next one.
    changes: watch::Sender<u64>,
    /// Firings of schedules that are in flight.
    schedules: Schedules,
    /// Moves of the time that tests have asked for.
    advances: Advances,
    /// Names of queues, for deliveries and events.
    names: BTreeMap<QueueId, Arc<str>>,
    /// Queue and name of the last delivery of the record that is being applied.
    handed_name: Option<(QueueId, Arc<str>)>,
    /// True when queues with waiting pulls, or namespaces with feeds, may be gone.
    queues_removed: bool,
    /// True when nothing may wait any more: the shard is to stop.
    draining: bool,
}

impl Leading {
    pub(super) fn new(waiting_max: usize, events: EventOptions) -> Leading {
        Leading {
            proposals: Proposals::default(),
            pulls: Pulls::default(),
            results: ResultWaits::default(),
            locks: LockWaits::default(),
            lock_watches: LockWatches::new(events.readers),
            waiting_max,
            consumers: Consumers::default(),
            feeds: Feeds::new(events),
            changes: watch::Sender::new(0),
            schedules: Schedules::default(),
            advances: Advances::default(),
            names: BTreeMap::new(),
            handed_name: None,
            queues_removed: false,
            draining: false,
        }
    }

    /// Ends the leadership with the shard: whoever waits gets an answer, and nothing is proposed any more. To
    /// end it again does nothing.
    ///
    /// | who waits | answer |
    /// |---|---|
    /// | a command, or a consumer to be attached, whose record is in flight | `outcome_unknown` |
    /// | a wait for a lock | `outcome_unknown` |
    /// | a receive, a wait for a result, and a move of the time | `shutting_down` |
    /// | the reader of an attached consumer's channel | [`DetachedBy::ShardEnded`] |
    /// | a reader of events | [`super::feed::Heard::Ended`] |
    /// | a wait for a change of a document, and a watcher of a lock | it looks again |
    ///
    /// Whoever wants another answer for what is in flight waits until it is applied, as a stop does.
    fn end(&mut self) {
        self.proposals.end();
        self.end_waiting(DetachedBy::ShardEnded);
    }

    /// Ends the leadership while the shard goes on as a follower. Receives and waits for results have had
    /// their answers; channels and feeds end as in [`Leading::end`], with a reason of their own. Callers
    /// whose records are in flight wait on: see [`Shard::decide`].
    fn step_down(&mut self) {
        self.proposals.step_down();
        self.end_waiting(DetachedBy::SteppedDown);
    }

    fn end_waiting(&mut self, by: DetachedBy) {
        self.pulls.end();
        self.results.end();
        self.locks.end();
        self.lock_watches.end(|_| true);
        self.consumers.end(by);
        self.feeds.end();
        // Who waits for a change of the former one hears that there will be none.
        self.changes = watch::Sender::new(0);
        self.schedules = Schedules::default();
        self.advances.end();
    }

    /// Number of waiting pulls.
    pub(super) fn waiting_pulls(&self) -> usize {
        self.pulls.waiting.len()
    }

    /// Number of readers of events.
    pub(super) fn event_readers(&self) -> usize {
        self.feeds.readers()
    }

    /// Sender of the revision of the last change of a document.
    pub(super) fn changes(&self) -> &watch::Sender<u64> {
        &self.changes
    }

    /// Watchers of locks.
    pub(super) fn lock_watches(&self) -> &Arc<LockWatches> {
        &self.lock_watches
    }

    /// Tells the revision of the last change of a document to those who wait for the next one.
    fn tell_changes(&self, latest: u64) {
        if *self.changes.borrow() != latest {
            self.changes.send_replace(latest);
        }
    }

    /// Lets all who wait for a change of a document look again: their namespace may be gone.
    fn wake_readers_of_changes(&self) {
        self.changes.send_modify(|_| ());
    }

    /// Number of records that are proposed and not yet applied.
    pub(super) fn in_flight(&self) -> usize {
        self.proposals.in_flight.len()
    }

    /// True when another request may be taken in this step.
    pub(super) fn takes_more(&self) -> bool {
        self.proposals.take_more()
    }

    /// Notes that a message became ready in this queue.
    #[inline]
    pub(super) fn note_ready(&mut self, queue: QueueId) {
        self.pulls.note_ready(queue);
    }

    /// Number of bytes that are proposed and not yet applied.
    pub(super) fn in_flight_bytes(&self) -> usize {
        self.proposals.in_flight_bytes_sum
    }
}

/// A panic of the shard's thread ends the leadership here.
impl Drop for Leading {
    fn drop(&mut self) {
        self.end();
    }
}

impl<S: Store, C: Clock> Shard<S, C> {
    /// Ends the leadership of this shard, which ends: see [`Leading::end`].
    pub(super) fn end_leading(&mut self) {
        self.leading.end();
        self.watch_nothing();
    }

    /// Ends the leadership of this shard, which goes on: see [`Leading::step_down`]. Receives end empty and
    /// waits for results with the state of now, as they would at the end of their time. A receive that was
    /// about to be proposed anew hears that nothing was done.
    pub(super) fn step_down(&mut self) {
        if !plant::is(Plant::ForgetWaiters) {
            self.end_all_waits();
        }
        self.drop_unproposed();
        self.leading.step_down();
        self.watch_nothing();
    }

    fn watch_nothing(&mut self) {
        self.engine.watch_ends(false);
        self.engine.watch_events(false);
        self.engine.watch_locks(false);
    }

    /// The leader's part of a step: proposes what is due, ends waits that are over, serves waiting pulls, and
    /// hands the step's batch to the journal. True when there may be more to do at once.
    pub(super) fn lead(&mut self) -> bool {
        self.propose_tick();
        self.propose_firings();
        self.end_waits();
        self.end_awaits(self.monotonic_us);
        self.end_feeds();
        self.renew_lock_waits();
        self.detach_stalled();
        self.serve_woken();
        let worked = self.hold_damaged();
        self.propose_owed();
        self.answer_advances();
        self.propose_batch() || worked
    }

    /// Time without anything to do for a leader without requests, in microseconds; `None`: unlimited.
    pub(super) fn leading_idle_us(&self) -> Option<u64> {
        let proposals = &self.leading.proposals;
        let room = proposals.room_at_us.saturating_sub(self.monotonic_us);
        let timer = match self.engine.next_deadline() {
            Some(deadline) if !proposals.tick_in_flight => {
                Some(deadline.saturating_sub(self.now_us).max(room))
            }
            _ => None,
        };
        let firing = self.next_firing_us().map(|at_us| at_us.saturating_sub(self.now_us).max(room));
        let owed = if proposals.owed.is_empty() { None } else { Some(room) };
        let until = |end: Option<u64>| end.map(|end_us| end_us.saturating_sub(self.monotonic_us));
        let wait = until(self.leading.pulls.waiting.next_end_us());
        let results = until(self.leading.results.next_end_us());
        let locks = until(self.leading.locks.next_us());
        let feeds = until(self.leading.feeds.look_us());
        let look = self.leading.consumers.look_us().map(|at_us| at_us.saturating_sub(self.now_us));
        [timer, firing, owed, wait, results, locks, look, feeds].into_iter().flatten().min()
    }

    /// True when owed records could be proposed now.
    pub(super) fn owes(&self) -> bool {
        !self.leading.proposals.owed.is_empty() && !self.waits_for_room()
    }

    /// Removes a waiting pull, or a wait for a result or for locks, whose caller has gone.
    pub(super) fn cancel(&mut self, ticket: u64) {
        self.leading.pulls.waiting.cancel(ticket);
        self.cancel_await(ticket);
        self.cancel_acquiring(ticket);
    }

    /// Ends all waits, and lets nothing wait any more.
    pub(super) fn drain(&mut self) {
        if !std::mem::replace(&mut self.leading.draining, true) {
            self.detach_all();
        }
        self.end_all_waits();
    }

    /// Ends waiting receives empty, waits for results with the state of now, and those for locks with an
    /// unknown outcome.
    fn end_all_waits(&mut self) {
        while let Some(waiter) = self.leading.pulls.waiting.pop_any() {
            let _ = waiter.pull.reply.send(Ok(Vec::new()));
        }
        self.end_awaits(u64::MAX);
        self.leading.locks.end();
    }
}
