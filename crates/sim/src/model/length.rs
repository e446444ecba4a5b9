//! Queues with a maximum length: sends beyond it are refused, or the oldest waiting messages are dropped. The
//! rules determine which messages are dropped; the engine chooses how many at a time, as long as it reports
//! that it goes on.

use sluice_engine::command::Deliver;
use sluice_engine::id::{MessageId, QueueId};
use sluice_engine::settings::Overflow;

use super::{Apply, Checked, ensure};
use super::{Message, MessagePlace, ModelState};

impl ModelState {
    /// Number and bytes of the messages of a queue that `is` accepts.
    fn size(&self, queue: QueueId, is: impl Fn(&Message) -> bool) -> (u64, u64) {
        let those = self.messages_of(queue).filter(|(_, message)| is(message));
        those.fold((0, 0), |(count, bytes), (_, message)| (count + 1, bytes + u64::from(message.blob.len)))
    }

    /// True when so many more messages and bytes fit into a queue that holds so many.
    pub(super) fn fits(&self, queue: QueueId, held: (u64, u64), more: (u64, u64)) -> bool {
        let settings = &self.queues[&queue].settings;
        let over = |most: u64, held: u64, more: u64| most > 0 && more > 0 && held + more > most;
        !over(settings.max_messages, held.0, more.0) && !over(settings.max_bytes, held.1, more.1)
    }

    /// True when a queue has a maximum length.
    pub(super) fn is_bounded(&self, queue: QueueId) -> bool {
        let settings = &self.queues[&queue].settings;
        settings.max_messages > 0 || settings.max_bytes > 0
    }

    /// True when so many messages and bytes fit into a queue as it is.
    pub(super) fn has_room(&self, queue: QueueId, messages: u64, bytes: u64) -> bool {
        let alive = |message: &Message| message.waits() || is_leased(message);
        self.fits(queue, self.size(queue, alive), (messages, bytes))
    }

    /// True when so many messages and bytes can be sent to a queue.
    pub(super) fn takes(&self, queue: QueueId, messages: u64, bytes: u64) -> bool {
        match self.queues[&queue].settings.overflow {
            Overflow::RefuseNew => self.has_room(queue, messages, bytes),
            Overflow::DeadLetterOldest => self.fits(queue, self.size(queue, is_leased), (messages, bytes)),
        }
    }

    /// True when a message sent with this delay would reach the queue's maximum age before it may be
    /// delivered.
    pub(super) fn outlives(&self, queue: QueueId, deliver: Deliver) -> bool {
        let max_age_us = self.queues[&queue].settings.max_age_ms * 1_000;
        let delay_us = match deliver {
            Deliver::Now => 0,
            Deliver::AfterMs(ms) => ms * 1_000,
            Deliver::AtUs(us) => us.saturating_sub(self.now_us),
        };
        max_age_us == 0 || delay_us < max_age_us
    }

    /// The message that is dropped first, if the queue is too long and drops its oldest.
    fn next_to_go(&self, queue: QueueId) -> Option<MessageId> {
        let settings = &self.queues.get(&queue)?.settings;
        let (messages, bytes) = self.size(queue, |message| message.waits() || is_leased(message));
        let over = |most: u64, held: u64| most > 0 && held > most;
        let too_long = over(settings.max_messages, messages) || over(settings.max_bytes, bytes);
        if !too_long || settings.overflow == Overflow::RefuseNew {
            return None;
        }
        self.messages_of(queue).find(|(_, message)| message.waits()).map(|(id, _)| *id)
    }
}

impl Apply<'_> {
    /// Notes a send to a queue, and takes over the messages that the engine has dropped for it.
    pub(super) fn make_room(&mut self, queue: QueueId) {
        while let Some(oldest) = self.next_gone(queue) {
            self.leaves_lane(oldest);
            self.die(oldest, "overflow");
        }
        // Messages are dropped at the end of the record: those that wait by then may be dropped, too.
        self.world.queues.get_mut(&queue).into_iter().for_each(|queue| queue.makes_room = true);
    }

    /// The next message to be dropped, if the engine has dropped it.
    fn next_gone(&self, queue: QueueId) -> Option<MessageId> {
        self.world.next_to_go(queue).filter(|oldest| self.has_made_room(*oldest))
    }

    fn note_length(&mut self, queue: QueueId) {
        let goes_on = self.world.next_to_go(queue).is_some();
        if let Some(queue) = self.world.queues.get_mut(&queue) {
            queue.makes_room = goes_on;
        }
    }

    /// True when the engine has dropped a message to make room.
    pub(super) fn has_made_room(&self, id: MessageId) -> bool {
        let message = &self.world.messages[&id];
        self.view(id).is_ok_and(|view| message.has_died(&view, Some("overflow")))
    }

    /// Takes over further drops in queues that are still too long; the engine must go on by itself while one
    /// is.
    pub(super) fn follow_length(&mut self) -> Checked {
        let making = self.world.queues.iter().filter(|(_, queue)| queue.makes_room);
        for queue in making.map(|(id, _)| *id).collect::<Vec<_>>() {
            // Whether timers have filled a lane before or after its other messages were dropped is the
            // engine's choice.
            while let Some(oldest) = self.next_gone(queue) {
                self.die(oldest, "overflow");
            }
            self.note_length(queue);
            let goes_on = self.engine.next_deadline().is_some_and(|next| next <= self.now_us);
            ensure!(
                goes_on || !self.world.queues[&queue].makes_room,
                "queue {queue:?} is too long, and {:?} stays",
                self.world.next_to_go(queue)
            );
        }
        Ok(())
    }
}

fn is_leased(message: &Message) -> bool {
    matches!(message.place, MessagePlace::Leased { .. })
}
