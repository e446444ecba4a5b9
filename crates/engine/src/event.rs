//! Events: what happens to messages, for those who watch. They follow from the log alone and are no part of
//! the state: the engine tells them while it is asked to, see [`crate::Engine::watch_events`].

use crate::id::{ConsumerId, MessageId, NamespaceId, QueueId};

macro_rules! kinds {
    ($($kind:ident $name:literal $meaning:literal;)*) => {
        /// Kind of an event.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum EventKind { $(#[doc = $meaning] $kind),* }

        impl EventKind {
            /// All of them, in the order of a message's life.
            pub const ALL: &[EventKind] = &[$(EventKind::$kind),*];

            /// The names used in every API, in the same order.
            pub const NAMES: &[&str] = &[$($name),*];
        }
    };
}

kinds! {
    Sent "sent" "A message came into being.";
    Delayed "delayed" "It waits for its time.";
    Due "due" "Its time has come.";
    Delivered "delivered" "A consumer has it.";
    Acked "acked" "Done.";
    Nacked "nacked" "Its attempt failed, its holder says.";
    Released "released" "Its holder gave it back, or was detached and has not come back.";
    Rejected "rejected" "Its holder never wants it again.";
    Expired "expired" "Its lease ended by itself.";
    Died "died" "It is a dead letter.";
    Redriven "redriven" "A dead letter is back.";
    Retried "retried" "A person had it not wait for its time.";
    Held "held" "It waits for a person.";
    Approved "approved" "A person let it go.";
    Changed "changed" "It has another priority, time, number of attempts, payload, or other tags.";
    Moved "moved" "It went to another queue.";
    Cancelled "cancelled" "It was cancelled, and is gone.";
    Dropped "dropped" "It is gone without having been done: at its end, or with its queue, by purge or deletion.";
}

impl EventKind {
    /// The name used in every API.
    pub fn name(self) -> &'static str {
        EventKind::NAMES[self as usize]
    }

    /// The one with this name.
    pub fn by_name(name: &str) -> Option<EventKind> {
        EventKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// Something that happened to a message, or to many of a queue at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Kind of the event.
    pub kind: EventKind,
    /// The namespace of the queue.
    pub namespace: NamespaceId,
    /// The queue that the message is in afterwards, or was in.
    pub queue: QueueId,
    /// Id of the message; `None`: many, see [`EventDetail::Many`].
    pub id: Option<MessageId>,
    /// The attempt that began, ended or has ended; 0: none.
    pub attempt: u16,
    /// Details of the event.
    pub detail: EventDetail,
}

/// Details of an event beside the message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventDetail {
    /// Nothing.
    None,
    /// End of its wait, in microseconds since the Unix epoch.
    Until(u64),
    /// The lease that began.
    Lease {
        /// When the lease ends, in microseconds since the Unix epoch.
        until_us: u64,
        /// Consumer that has it, if that has a name.
        consumer: Option<ConsumerId>,
    },
    /// Why, in the words of [`crate::query::MessageView::reason`], or `deleted`.
    Why(&'static str),
    /// The queue that it came from.
    From(QueueId),
    /// As many messages of the queue at once.
    Many {
        /// Number of messages.
        messages: u64,
        /// Why: `purged`, `deleted` (all dead letters), `queue_deleted`.
        why: &'static str,
        /// The queue's name, since it may be gone afterwards.
        name: Box<str>,
    },
}

/// For whom the engine tells what happens; no part of the state.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Watched(u8);

impl Watched {
    /// Ends of messages, for those who wait for results.
    pub(crate) const ENDS: u8 = 1;
    /// Events.
    pub(crate) const EVENTS: u8 = 2;

    pub(crate) fn set(&mut self, what: u8, watched: bool) {
        self.0 = if watched { self.0 | what } else { self.0 & !what };
    }

    /// True if anything is watched.
    #[inline(always)]
    pub(crate) fn any(self) -> bool {
        self.0 != 0
    }

    #[inline(always)]
    pub(crate) fn has(self, what: u8) -> bool {
        self.0 & what != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for &kind in EventKind::ALL {
            assert_eq!(EventKind::by_name(kind.name()), Some(kind));
        }
        assert_eq!(EventKind::by_name("Sent"), None);
    }
}
