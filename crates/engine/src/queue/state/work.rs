//! Work that is done in slices.

use std::collections::VecDeque;

use crate::core::namespace::NamespaceSlot;
use crate::queue::state::{ConsumerSlot, LimitSlot, QueueSlot, SearchSlot};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// Something that still has work to be done, by slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    Queue(QueueSlot),
    Namespace(NamespaceSlot),
    /// The keys of a limit.
    Limit(LimitSlot),
    /// The lines of limit keys of a queue.
    LimitLines(QueueSlot),
    /// Giving messages of a queue to consumers.
    Deliver(QueueSlot),
    /// Deliveries to a consumer that has credit again, or returns of one that was detached.
    Consumer(ConsumerSlot),
    /// An index of messages, which is cleared.
    Search(SearchSlot),
}

/// In order.
impl HeadPart for VecDeque<Work> {
    fn write_head(&self, out: &mut Vec<u8>) {
        out.u32(self.len() as u32);
        for work in self {
            let (kind, slot) = match work {
                Work::Queue(slot) => (0, slot.index()),
                Work::Namespace(slot) => (1, slot.index()),
                Work::Limit(slot) => (3, slot.index()),
                Work::LimitLines(slot) => (5, slot.index()),
                Work::Deliver(slot) => (17, slot.index()),
                Work::Consumer(slot) => (18, slot.index()),
                Work::Search(slot) => (19, slot.index()),
            };
            out.u8(kind);
            out.u32(slot);
        }
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let mut work = VecDeque::new();
        for _ in 0..reader.u32()? {
            let kind = reader.u8()?;
            let slot = reader.u32()?;
            work.push_back(match kind {
                0 => Work::Queue(Slot::new(slot)),
                1 => Work::Namespace(Slot::new(slot)),
                3 => Work::Limit(Slot::new(slot)),
                5 => Work::LimitLines(Slot::new(slot)),
                17 => Work::Deliver(Slot::new(slot)),
                18 => Work::Consumer(Slot::new(slot)),
                19 => Work::Search(Slot::new(slot)),
                _ => return None,
            });
        }
        Some(work)
    }
}
