//! A session: the pushes of a queue as long as its consumer is attached.
//!
//! What is delivered waits in one line, in the order of delivery, from which a free turn takes the next. What
//! was cancelled leaves the line; what stands in it when the session ends goes back. So nothing begins that
//! should not, and it is one place that decides what does.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use sluice_engine::Receipt;
use sluice_engine::command::Attach;
use sluice_engine::push::PushView;
use sluice_node::{Consumer, Delivered, Event};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::answer::Verdict;
use crate::budget::Share;
use crate::held::{Held, give_back};
use crate::hold::{self, Turns};
use crate::pusher::{Ended, Pusher};

/// Messages that are held for each push at a time, so that none waits for a commit of the log.
const HELD_PER_PUSH: u32 = 4;
/// Pause before a queue without room looks whether there is some.
const ROOM_PAUSE: Duration = Duration::from_millis(500);
/// Pause after a consumer could not be attached, or was lost.
const PAUSE: Duration = Duration::from_secs(1);
/// Time for pushes on their way when a session ends; those that are left then go back to their queue.
const FINISH_TIME: Duration = Duration::from_secs(5);
/// Name of the consumer, for those who look.
const CONSUMER: &str = "webhook";
/// Longest hold in which what is held stays in hand.
const KEPT_HOLD_MAX: Duration = Duration::from_secs(10);
/// Time by which a lease is longer than all that a message may wait for here.
const LEASE_MARGIN: Duration = Duration::from_secs(30);
/// Time for settlements on their way when a session ends.
const SETTLE_TIME: Duration = Duration::from_secs(5);
/// Least time that is left of a lease behind the time-out of a push that begins.
const LEASE_LEFT: Duration = Duration::from_secs(5);

/// The end of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// A stop, as it was told.
    Stopped,
    /// The endpoint is gone, and the queue's pushes are paused, or it has another endpoint by now.
    Gone,
    /// The consumer could not be attached, was lost, or was given another queue's messages.
    Lost,
}

/// Pushes until it is told to stop, or the endpoint is gone: one session after the other.
pub(crate) async fn push_all(pusher: Arc<Pusher>, mut stop: watch::Receiver<bool>) {
    let mut until = Instant::now();
    loop {
        let may_begin = async {
            sleep_until(until).await;
            pusher.hold.wait(pusher.node.clock()).await;
        };
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            () = may_begin => {}
        }
        if let Some(mut session) = Session::begin(&pusher).await {
            let end = session.run(&mut stop).await;
            if session.finish(end).await != End::Lost {
                return;
            }
        }
        until = Instant::now() + PAUSE;
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that whoever stops it is gone.
    let _ = stop.wait_for(|stopping| *stopping).await;
}

/// The next reason to look whether a push may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// An event of the consumer, or the end of a push.
    Event,
    /// A time, or any of these.
    At(Instant),
    /// None: the consumer gets nothing more.
    Detached,
}

/// A message that waits for its turn.
struct Waiting {
    message: Delivered,
    held: Held,
}

/// A push that has ended, with the bytes that it held and the round in which it began.
struct Pushed {
    ended: Ended,
    held: Held,
    bytes: u64,
    round: u32,
}

/// The pushes of a queue as long as its consumer is attached.
struct Session<'p> {
    pusher: &'p Arc<Pusher>,
    consumer: Consumer,
    /// In the order of delivery.
    waiting: VecDeque<Waiting>,
    pushes: JoinSet<Pushed>,
    /// Settlements on their way.
    settling: JoinSet<()>,
    share: Share,
    turns: Turns,
    credit: u32,
    /// True from a hold on for which nothing is kept in hand, until it is over.
    lets_go: bool,
    /// Token of the latest delivery.
    reached: u64,
    /// Tokens of deliveries that are yet to come and that were cancelled.
    cancelled: BTreeSet<u64>,
    /// The push that has ended the session.
    last: Option<Pushed>,
}

impl<'p> Session<'p> {
    /// Attaches a consumer. `None`: that is not possible now.
    async fn begin(pusher: &'p Arc<Pusher>) -> Option<Session<'p>> {
        let turns = Turns::new(pusher.view.concurrency, pusher.hold.is_on_trial());
        let credit = if turns.is_on_trial() { 1 } else { full_credit(&pusher.view) };
        let attach = Attach {
            namespace: pusher.view.namespace,
            name: CONSUMER,
            queues: &[&*pusher.view.name],
            credit,
            lease_ms: lease(pusher.timeout()),
            grace_ms: (pusher.timeout() + FINISH_TIME).as_millis() as u64,
        };
        let consumer = pusher.node.attach(&attach).await.ok()?;
        Some(Session {
            pusher,
            consumer,
            waiting: VecDeque::new(),
            pushes: JoinSet::new(),
            settling: JoinSet::new(),
            share: pusher.shared.budget.share(),
            turns,
            credit,
            lets_go: false,
            reached: 0,
            cancelled: BTreeSet::new(),
            last: None,
        })
    }

    /// Pushes what the consumer is given, until one of the ends.
    async fn run(&mut self, stop: &mut watch::Receiver<bool>) -> End {
        loop {
            while self.settling.try_join_next().is_some() {}
            self.follow_hold().await;
            // What was awaited, here or at the end of a push, may have taken long.
            if *stop.borrow() {
                return End::Stopped;
            }
            let next = self.begin_pushes();
            let most = usize::from(self.pusher.view.concurrency);
            let room = self.share.room();
            let listens = room > 0 || next == Next::Detached;
            let at = match next {
                Next::At(at) => Some(at),
                // Nobody tells that others have given room.
                _ if !listens => Some(Instant::now() + ROOM_PAUSE),
                Next::Event | Next::Detached => None,
            };
            tokio::select! {
                biased;
                () = stopped(stop) => return End::Stopped,
                bytes = self.consumer.ready(most, room), if listens => {
                    // Others may have taken the room meanwhile.
                    let may_take = next == Next::Detached || bytes == 0 || self.share.room() > 0;
                    if may_take && let Some(end) = self.take_event(most, bytes, stop).await {
                        return end;
                    }
                }
                Some(pushed) = self.pushes.join_next() => {
                    let mut ended = Some(pushed);
                    while let Some(pushed) = ended {
                        // One that panicked has given its message back.
                        let Ok(pushed) = pushed else { return End::Lost };
                        if let Some(end) = self.end_push(pushed).await {
                            return end;
                        }
                        ended = self.pushes.try_join_next();
                    }
                }
                () = sleep_until(at.unwrap_or_else(Instant::now)), if at.is_some() => {}
            }
        }
    }

    /// Ends the session, with its consumer. What waits goes back at once; pushes on their way have some time
    /// to end, and go back otherwise. Returns the end, which one of these may have changed.
    async fn finish(self, mut end: End) -> End {
        let Session { pusher, consumer, waiting, mut pushes, mut settling, last, .. } = self;
        // What goes back would come to it again: its end alone may be recorded after a settlement.
        let no_credit = pusher.node.credit(pusher.view.namespace, consumer.id(), 0);
        let _ = timeout(SETTLE_TIME, no_credit).await;
        drop(consumer);
        settling.spawn(give_back(waiting.into_iter().map(|waiting| waiting.held).collect()));
        if let Some(Pushed { ended, held, .. }) = last {
            settling.spawn(Arc::clone(pusher).settle(ended, held));
        }
        let finishing = async {
            while let Some(pushed) = pushes.join_next().await {
                let Ok(Pushed { ended, held, .. }) = pushed else { continue };
                match &ended.verdict {
                    Verdict::Later { delay, .. } => pusher.hold.extend(pusher.node.clock(), *delay),
                    Verdict::Gone { .. } if end != End::Gone => {
                        if pusher.pause().await {
                            end = End::Gone;
                        }
                    }
                    Verdict::Taken | Verdict::Failed { .. } | Verdict::Gone { .. } => {}
                }
                settling.spawn(Arc::clone(pusher).settle(ended, held));
            }
        };
        let _ = timeout(FINISH_TIME, finishing).await;
        // Ends the others, whose messages go back as they are dropped.
        pushes.shutdown().await;
        let settled = async { while settling.join_next().await.is_some() {} };
        let _ = timeout(SETTLE_TIME, settled).await;
        end
    }

    /// Sets the credit as the endpoint is held or on trial, and gives back what is not to be kept.
    async fn follow_hold(&mut self) {
        self.lets_go &= self.pusher.hold_pause().is_some();
        let wanted = self.wanted_credit();
        if wanted != self.credit {
            let Pusher { node, view, .. } = &**self.pusher;
            // Where that is not possible now it is done later.
            if node.credit(view.namespace, self.consumer.id(), wanted).await.is_ok() {
                self.credit = wanted;
            }
        }
        if self.lets_go {
            let all = self.waiting.drain(..).collect();
            self.give_back(all);
        }
    }

    fn wanted_credit(&self) -> u32 {
        match (self.lets_go, self.turns.is_on_trial()) {
            (true, _) => 0,
            (false, true) => self.credit.max(self.turns.now() as u32),
            (false, false) => full_credit(&self.pusher.view),
        }
    }

    /// Begins as many pushes as may begin now.
    fn begin_pushes(&mut self) -> Next {
        match self.consumer.cancelled() {
            Some(receipts) => self.forget(&receipts),
            None => return Next::Detached,
        }
        self.give_back_late();
        if let Some(pause) = self.pusher.hold_pause() {
            return Next::At(Instant::now() + pause);
        }
        while !self.waiting.is_empty() && self.pushes.len() < self.turns.now() {
            if let Err(at) = self.pusher.pace() {
                return Next::At(at);
            }
            if let Some(Waiting { message, held }) = self.waiting.pop_front() {
                let (pusher, round) = (Arc::clone(self.pusher), self.turns.round());
                let bytes = message.blob.len() as u64;
                self.pushes.spawn(async move {
                    let ended = pusher.push(message).await;
                    Pushed { ended, held, bytes, round }
                });
            }
        }
        if self.credit == self.wanted_credit() {
            Next::Event
        } else {
            Next::At(Instant::now() + hold::CLOCK_PAUSE)
        }
    }

    /// Takes in the event that is ready, at most so many messages and bytes; returns the end if it is one.
    async fn take_event(
        &mut self,
        messages: usize,
        bytes: u64,
        stop: &mut watch::Receiver<bool>,
    ) -> Option<End> {
        let bytes = bytes.min(self.share.room());
        // Others see it before it is read.
        self.share.take(bytes);
        let event = tokio::select! {
            biased;
            () = stopped(stop) => return Some(End::Stopped),
            event = self.consumer.take_ready(messages, bytes) => event,
        };
        self.share.give(bytes);
        match event {
            Ok(Some(Event::Delivered(messages))) => (!self.take(messages)).then_some(End::Lost),
            Ok(Some(Event::Cancelled(receipts))) => {
                self.forget(&receipts);
                None
            }
            Ok(None) => None,
            Ok(Some(Event::Detached(_))) | Err(_) => Some(End::Lost),
        }
    }

    /// Takes in messages; false: some are another queue's, which has the name of this one by now.
    fn take(&mut self, messages: Vec<Delivered>) -> bool {
        let view = &self.pusher.view;
        let (mut are_own, mut cancelled) = (true, Vec::new());
        for message in messages {
            let receipt = message.delivery.receipt;
            self.reached = receipt.token;
            self.share.take(message.blob.len() as u64);
            are_own &= message.delivery.queue == view.queue;
            let held = Held::new(self.pusher.node.clone(), view.namespace, receipt);
            match self.cancelled.remove(&receipt.token) {
                true => cancelled.push(Waiting { message, held }),
                false => self.waiting.push_back(Waiting { message, held }),
            }
        }
        self.give_back(cancelled);
        are_own
    }

    /// Gives back those that were cancelled and have not begun. The pushes of others go on: their settlements
    /// tell that they came too late.
    fn forget(&mut self, receipts: &[Receipt]) {
        if receipts.is_empty() {
            return;
        }
        let yet_to_come = receipts.iter().filter(|receipt| receipt.token > self.reached);
        self.cancelled.extend(yet_to_come.map(|receipt| receipt.token));
        let tokens: BTreeSet<u64> = receipts.iter().map(|receipt| receipt.token).collect();
        let is_cancelled = |waiting: &Waiting| tokens.contains(&waiting.message.delivery.receipt.token);
        let (cancelled, kept): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(is_cancelled);
        self.waiting = kept.into();
        self.give_back(cancelled);
    }

    /// Gives back those whose leases could end before their pushes do. All leases have the same length, so
    /// they are the first in the line.
    fn give_back_late(&mut self) {
        let needed = (self.pusher.timeout() + LEASE_LEFT).as_micros() as u64;
        let now_us = self.pusher.node.clock().now_ms() * 1_000;
        let is_late = |waiting: &Waiting| waiting.message.delivery.lease_until_us < now_us + needed;
        let late = self.waiting.iter().take_while(|waiting| is_late(waiting)).count();
        let late = self.waiting.drain(..late).collect();
        self.give_back(late);
    }

    fn give_back(&mut self, these: Vec<Waiting>) {
        if these.is_empty() {
            return;
        }
        self.share.give(these.iter().map(|waiting| waiting.message.blob.len() as u64).sum());
        self.settling.spawn(give_back(these.into_iter().map(|waiting| waiting.held).collect()));
    }

    /// Takes in the end of a push, and settles it.
    async fn end_push(&mut self, pushed: Pushed) -> Option<End> {
        self.share.give(pushed.bytes);
        match &pushed.ended.verdict {
            Verdict::Later { delay, .. } => {
                self.pusher.hold.extend(self.pusher.node.clock(), *delay);
                let is_again = self.turns.held(pushed.round) == hold::Told::Again;
                self.lets_go |= is_again || *delay > KEPT_HOLD_MAX;
            }
            Verdict::Gone { .. } => {
                let end = if self.pusher.pause().await { End::Gone } else { End::Lost };
                self.last = Some(pushed);
                return Some(end);
            }
            Verdict::Taken | Verdict::Failed { .. } => {
                if self.turns.answered(pushed.round) && !self.turns.is_on_trial() {
                    self.pusher.hold.end();
                }
            }
        }
        self.settling.spawn(Arc::clone(self.pusher).settle(pushed.ended, pushed.held));
        None
    }
}

/// The lease of a message that may wait for the pushes before it, in milliseconds.
fn lease(timeout: Duration) -> u64 {
    (timeout * HELD_PER_PUSH + LEASE_MARGIN).as_millis() as u64
}

/// Messages that are held. With a rate they are no more than begin within a second.
fn full_credit(view: &PushView) -> u32 {
    let most = u32::from(view.concurrency) * HELD_PER_PUSH;
    if view.rate == 0 { most } else { most.min(view.rate) }
}

#[cfg(test)]
mod tests {
    use sluice_engine::settings::QueuePatch;

    use super::*;
    use crate::budget::{HELD_BYTES_ALWAYS, HELD_BYTES_MAX, HELD_BYTES_OF_ALL_MAX};
    use crate::shared::Shared;
    use crate::target::Target;
    use crate::tests::{Bed, options};

    #[tokio::test]
    async fn a_session_that_was_told_to_stop_begins_no_push() {
        let url = "http://127.0.0.1:1/";
        let paused = QueuePatch { push_paused: Some(true), ..QueuePatch::default() };
        let bed = Bed::new(url, paused, options("127.0.0.0/8")).await;
        bed.send("m").await;
        let view = bed.node.pushes(0).await.unwrap().pop().unwrap();
        let shared = Arc::new(Shared::new(options("127.0.0.0/8")));
        let target = Target::parse(url).unwrap();
        let pusher = Arc::new(Pusher::new(bed.node.clone(), shared, Default::default(), view, target));
        let mut session = Session::begin(&pusher).await.unwrap();
        let Ok(Event::Delivered(messages)) = session.consumer.next(1, HELD_BYTES_MAX).await else {
            panic!("a message")
        };
        assert!(session.take(messages));
        let (_stop, mut stopping) = watch::channel(true);
        assert_eq!(session.run(&mut stopping).await, End::Stopped);
        assert_eq!((session.pushes.len(), session.waiting.len()), (0, 1));
    }

    #[tokio::test]
    async fn where_others_hold_all_bytes_one_large_message_is_taken_at_a_time() {
        let url = "http://127.0.0.1:1/";
        let paused = QueuePatch { push_paused: Some(true), ..QueuePatch::default() };
        let bed = Bed::new(url, paused, options("127.0.0.0/8")).await;
        for _ in 0..3 {
            bed.send(&"a".repeat(HELD_BYTES_ALWAYS as usize)).await;
        }
        let view = bed.node.pushes(0).await.unwrap().pop().unwrap();
        let shared = Arc::new(Shared::new(options("127.0.0.0/8")));
        let mut others = shared.budget.share();
        others.take(HELD_BYTES_OF_ALL_MAX);
        let target = Target::parse(url).unwrap();
        let pusher = Arc::new(Pusher::new(bed.node.clone(), shared, Default::default(), view, target));
        let mut session = Session::begin(&pusher).await.unwrap();
        let (_stop, mut stop) = watch::channel(false);
        let bytes = session.consumer.ready(9, HELD_BYTES_MAX).await;
        assert!(session.take_event(9, bytes, &mut stop).await.is_none());
        assert_eq!((session.waiting.len(), session.share.room()), (1, 0));
        others.give(HELD_BYTES_OF_ALL_MAX);
        let bytes = session.consumer.ready(9, session.share.room()).await;
        assert!(session.take_event(9, bytes, &mut stop).await.is_none());
        assert_eq!(session.waiting.len(), 3);
        // What was ready is gone.
        assert!(session.take_event(9, 1, &mut stop).await.is_none());
    }

    #[test]
    fn a_lease_outlives_all_that_a_message_waits_for() {
        for ms in [100, 15_000, 300_000] {
            let timeout = Duration::from_millis(ms);
            let waits = timeout * HELD_PER_PUSH + LEASE_LEFT + KEPT_HOLD_MAX;
            assert!(lease(timeout) > waits.as_millis() as u64 + 10_000);
            assert!(lease(timeout) <= sluice_engine::limits::LEASE_MS_MAX);
        }
    }
}
