//! A consumer of a session: hands on what it is given.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sluice_calls::hot::{Consumer, DetachedBy, Event};
use sluice_engine::id::ConsumerId;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::encode;
use super::outbox::Outbox;

/// Most messages of a frame, and most bytes, though at least one message.
const MESSAGES_MAX: usize = 256;
const BYTES_MAX: u64 = 256 << 10;

/// A consumer that is attached, as its session knows it.
#[derive(Debug)]
pub(super) struct AttachedConsumer {
    pub(super) id: ConsumerId,
    end: Arc<End>,
}

/// The state of a consumer's end.
#[derive(Debug, Default)]
struct End {
    /// The client has asked for it.
    asked: AtomicBool,
    /// True once it gets no more messages.
    reached: AtomicBool,
}

impl AttachedConsumer {
    /// Begins to hand on. It ends when the consumer is detached, or when `ended` says so of the session.
    /// `moved` is told when the consumer is detached because another node leads.
    pub(super) fn begin(
        number: u32,
        consumer: Consumer,
        outbox: &Arc<Outbox>,
        ended: watch::Receiver<bool>,
        moved: Arc<Notify>,
        tasks: &mut JoinSet<()>,
    ) -> AttachedConsumer {
        while tasks.try_join_next().is_some() {}
        let end = Arc::new(End::default());
        let attached = AttachedConsumer { id: consumer.id(), end: Arc::clone(&end) };
        let outbox = Arc::clone(outbox);
        tasks.spawn(async move {
            if hand_on(number, consumer, outbox, ended, &end).await == Some(DetachedBy::SteppedDown) {
                moved.notify_one();
            }
            end.reached.store(true, Ordering::Relaxed);
        });
        attached
    }

    /// Notes whether the client has asked to detach it; then no Detached frame is sent.
    pub(super) fn asks_to_end(&self, asked: bool) {
        self.end.asked.store(asked, Ordering::Relaxed);
    }

    /// True until it is known to be detached.
    pub(super) fn is_live(&self) -> bool {
        !self.end.reached.load(Ordering::Relaxed)
    }
}

/// Hands on until the end; tells by whom the consumer was detached, if it was.
async fn hand_on(
    number: u32,
    mut consumer: Consumer,
    outbox: Arc<Outbox>,
    mut ended: watch::Receiver<bool>,
    end: &End,
) -> Option<DetachedBy> {
    loop {
        let next = async {
            let bytes = consumer.ready(MESSAGES_MAX, BYTES_MAX).await;
            let room = outbox.room_for(bytes).await;
            (room, consumer.next(MESSAGES_MAX, bytes).await)
        };
        // The room is kept until what it is for stands in the outbox.
        let (_room, event) = tokio::select! {
            biased;
            // An error means that the session is gone, which is ended as well.
            _ = ended.wait_for(|ended| *ended) => break,
            next = next => next,
        };
        match event {
            Ok(Event::Delivered(messages)) => {
                let receipts = messages.iter().map(|message| message.delivery.receipt);
                outbox.add_deliveries(number, receipts, |out| encode::deliveries(out, number, &messages));
            }
            Ok(Event::Cancelled(receipts)) => {
                outbox.add(|out| encode::cancellations(out, number, &receipts));
            }
            Ok(Event::Detached(by)) => {
                // Of draining, and that another node leads, the whole session hears.
                let is_told = matches!(by, DetachedBy::Draining | DetachedBy::SteppedDown);
                if !is_told && !end.asked.load(Ordering::Relaxed) {
                    outbox.add(|out| encode::detached(out, number));
                }
                // What it holds, and what is on its way, stays the client's for its time of grace.
                return Some(by);
            }
            Err(_) => {
                outbox.add(|out| encode::detached(out, number));
                break;
            }
        }
    }
    consumer.abandon(outbox.unsent(number));
    None
}
