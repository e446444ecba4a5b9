//! Keys and times that a message was sent with: a slot of its own for those that have any.

use crate::options::UniqueUntil;
use crate::store::NIL;
use crate::store::slab::{PlainSlot, Slab};
use crate::wire::{Put, Reader};

/// The keys of one message, each as the slot where what is known of the key lies; `NIL`: none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Among [`crate::queue::ordering::state::OrderingKeys`].
    pub(crate) ordering: u32,
    /// Among [`crate::queue::fair::state::Lanes`].
    pub(crate) fair: u32,
    /// Among [`crate::queue::message::results::AllResults`].
    pub(crate) results: u32,
    /// Among [`crate::queue::limit::key_state::KeyLines`].
    pub(crate) limit: u32,
    /// Among [`crate::queue::change::state::AllChanged`].
    pub(crate) changed: u32,
    /// Among [`crate::queue::expiry::state::Expiries`].
    pub(crate) expiry: u32,
    /// Among [`crate::queue::unique::state::UniqueKeys`].
    pub(crate) unique: u32,
    /// When the unique key no longer counts, in microseconds since the Unix epoch.
    pub(crate) unique_ends_us: u64,
    /// What frees the unique key before.
    pub(crate) unique_until: UniqueUntil,
    /// Among [`crate::queue::message::origin::AllOrigins`].
    pub(crate) origin: u32,
    /// Among [`crate::queue::flow::state::Flows`].
    pub(crate) flow: u32,
    next_vacant: Option<u32>,
}

/// The keys of all messages that have some.
pub(crate) type AllOptions = Slab<Options, 1024>;

impl Options {
    /// None of them.
    pub(crate) fn none() -> Options {
        Options { next_vacant: None, ..Options::vacant(NIL) }
    }
}

impl PlainSlot for Options {
    const BLOCK: usize = 64;

    fn vacant(next: u32) -> Self {
        Options {
            ordering: NIL,
            fair: NIL,
            limit: NIL,
            results: NIL,
            changed: NIL,
            expiry: NIL,
            unique: NIL,
            unique_ends_us: 0,
            unique_until: UniqueUntil::Gone,
            origin: NIL,
            flow: NIL,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<u32> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.u32(self.ordering);
        out.u32(self.fair);
        out.u32(self.results);
        out.u32(self.limit);
        out.u32(self.changed);
        out.u32(self.expiry);
        out.u32(self.unique);
        out.u64(self.unique_ends_us);
        out.bool(self.unique_until == UniqueUntil::Window);
        out.u32(self.origin);
        out.u32(self.flow);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Options {
            ordering: reader.u32()?,
            fair: reader.u32()?,
            results: reader.u32()?,
            limit: reader.u32()?,
            changed: reader.u32()?,
            expiry: reader.u32()?,
            unique: reader.u32()?,
            unique_ends_us: reader.u64()?,
            unique_until: if reader.bool()? { UniqueUntil::Window } else { UniqueUntil::Gone },
            origin: reader.u32()?,
            flow: reader.u32()?,
            next_vacant: None,
        })
    }
}
