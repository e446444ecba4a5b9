//! Consequences: what follows from a transition and is still to be done, in order.
//!
//! A consequence names what it concerns, and looks again at whether it still holds when its turn comes. What
//! lies in a slot that may be given to something else is listed at most once, by a flag of its own that keeps
//! the slot. A queue's slot is not kept: `Trim` of another queue in it finds nothing to do, or what that
//! queue has listed.

use std::collections::VecDeque;

use crate::id::{MessageId, NamespaceId};
use crate::queue::state::{LimitKeySlot, LimitSlot, OrderingSlot, ParentSlot, PendingSlot, QueueSlot};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// One thing that follows from a transition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Consequence {
    /// A message that waits past its end ends.
    End(MessageId),
    /// A message goes on, is held or is cancelled, as the ends of its parents say.
    Judge(MessageId),
    /// The children of a parent, by slot, are told of its end.
    TellChildren(ParentSlot),
    /// The next message of an ordering key, by slot, goes on.
    Activate(OrderingSlot),
    /// A pending send, by slot, is sent.
    Send(PendingSlot),
    /// The queues of a limit, by slot, are woken if it has room.
    Limit(LimitSlot),
    /// Messages that wait for a limit key, by slot, go on if it has room.
    LimitKey(LimitKeySlot),
    /// A queue, by slot, makes room for what it was sent.
    Trim(QueueSlot),
}

impl Consequence {
    /// True if what it concerns has a mark by which it is listed once.
    pub(crate) fn has_mark(self) -> bool {
        match self {
            Consequence::End(_) | Consequence::Judge(_) | Consequence::Trim(_) => false,
            Consequence::TellChildren(_)
            | Consequence::Activate(_)
            | Consequence::Send(_)
            | Consequence::Limit(_)
            | Consequence::LimitKey(_) => true,
        }
    }
}

/// Consequences that are still to be done, in order.
pub(crate) type Consequences = VecDeque<Consequence>;

/// In order.
impl HeadPart for Consequences {
    fn write_head(&self, out: &mut Vec<u8>) {
        out.u32(self.len() as u32);
        for consequence in self {
            let (kind, words): (u8, [u64; 2]) = match *consequence {
                Consequence::End(id) => (0, [id.namespace.0.into(), id.sequence]),
                Consequence::Judge(id) => (1, [id.namespace.0.into(), id.sequence]),
                Consequence::TellChildren(parent) => (2, [parent.index().into(), 0]),
                Consequence::Activate(key) => (3, [key.index().into(), 0]),
                Consequence::Send(pending) => (4, [pending.index().into(), 0]),
                Consequence::Limit(limit) => (5, [limit.index().into(), 0]),
                Consequence::LimitKey(key) => (6, [key.index().into(), 0]),
                Consequence::Trim(queue) => (7, [queue.index().into(), 0]),
            };
            out.u8(kind);
            words.into_iter().for_each(|word| out.u64(word));
        }
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let mut consequences = Consequences::new();
        for _ in 0..reader.u32()? {
            let kind = reader.u8()?;
            let (first, second) = (reader.u64()?, reader.u64()?);
            let slot = u32::try_from(first).ok()?;
            let id = MessageId { namespace: NamespaceId(slot), sequence: second };
            consequences.push_back(match kind {
                0 => Consequence::End(id),
                1 => Consequence::Judge(id),
                2 => Consequence::TellChildren(Slot::new(slot)),
                3 => Consequence::Activate(Slot::new(slot)),
                4 => Consequence::Send(Slot::new(slot)),
                5 => Consequence::Limit(Slot::new(slot)),
                6 => Consequence::LimitKey(Slot::new(slot)),
                7 => Consequence::Trim(Slot::new(slot)),
                _ => return None,
            });
        }
        Some(consequences)
    }
}
