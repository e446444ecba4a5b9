//! The origin of a message that died in another queue.

use crate::queue::state::OriginSlot;
use crate::queue::state::message::Reason;
use crate::store::slab::{PlainItem, Slab};
use crate::wire::{Put, Reader};

/// The queue in which a message died last, and why; or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// Name of the queue, which may be gone.
    pub(crate) queue: Box<str>,
    pub(crate) reason: Reason,
    pub(crate) died_at_us: u64,
    next_vacant: Option<OriginSlot>,
}

/// The origins of all messages that have one.
pub(crate) type AllOrigins = Slab<Origin, 1024>;

impl Origin {
    pub(crate) fn new(queue: Box<str>, reason: Reason, died_at_us: u64) -> Origin {
        Origin { queue, reason, died_at_us, next_vacant: None }
    }
}

impl PlainItem for Origin {
    const BLOCK: usize = 32;

    fn vacant(next: OriginSlot) -> Self {
        Origin { next_vacant: Some(next), ..Origin::new(Box::default(), Reason::None, 0) }
    }

    fn next_vacant(&self) -> Option<OriginSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.name(&self.queue);
        out.u8(self.reason as u8);
        out.u64(self.died_at_us);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let queue = reader.name()?.into();
        let reason = *Reason::ALL.get(usize::from(reader.u8()?))?;
        Some(Origin::new(queue, reason, reader.u64()?))
    }
}
