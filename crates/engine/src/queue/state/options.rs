//! Keys and times that a message was sent with: a slot of its own for those that have any.

use crate::item::UniqueUntil;
use crate::limit::Cost;
use crate::queue::state::{
    ChangedSlot, ExpirySlot, FlowSlot, LaneSlot, LineSlot, OptionsSlot, OrderingSlot, OriginSlot,
    ResultsSlot, UniqueSlot,
};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// The keys of one message, each as the slot where what is known of the key lies; `NIL`: none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Among [`crate::queue::state::ordering::OrderingKeys`].
    pub(crate) ordering: OrderingSlot,
    /// Among [`crate::queue::state::fair::Lanes`].
    pub(crate) fair: LaneSlot,
    /// Among [`crate::queue::state::results::AllResults`].
    pub(crate) results: ResultsSlot,
    /// Among [`crate::queue::state::limit_key::KeyLines`].
    pub(crate) limit: LineSlot,
    /// Among [`crate::queue::state::changed::AllChanged`].
    pub(crate) changed: ChangedSlot,
    /// Among [`crate::queue::state::expiry::Expiries`].
    pub(crate) expiry: ExpirySlot,
    /// Among [`crate::queue::state::unique::UniqueKeys`].
    pub(crate) unique: UniqueSlot,
    /// When the unique key no longer counts, in microseconds since the Unix epoch.
    pub(crate) unique_ends_us: u64,
    /// The event that frees the unique key before.
    pub(crate) unique_until: UniqueUntil,
    /// Among [`crate::queue::state::origin::AllOrigins`].
    pub(crate) origin: OriginSlot,
    /// Among [`crate::queue::state::flow::Flows`].
    pub(crate) flow: FlowSlot,
    /// Share of its limit's rates that each delivery takes.
    pub(crate) cost: Cost,
    next_vacant: OptionsSlot,
    vacant: bool,
}

const _: () = assert!(size_of::<Options>() == 56);

/// Flags in a snapshot: the unique key counts until the end of its window; the cost is not 1.
const WINDOW: u8 = 1;
const HAS_COST: u8 = 2;

/// The keys of all messages that have some.
pub(crate) type AllOptions = Slab<Options, 1024>;

impl Options {
    /// None of them.
    pub(crate) fn none() -> Options {
        Options { vacant: false, ..Options::vacant(Slot::NIL) }
    }
}

impl PlainItem for Options {
    const BLOCK: usize = 64;

    fn vacant(next: OptionsSlot) -> Self {
        Options {
            ordering: Slot::NIL,
            fair: Slot::NIL,
            limit: Slot::NIL,
            results: Slot::NIL,
            changed: Slot::NIL,
            expiry: Slot::NIL,
            unique: Slot::NIL,
            unique_ends_us: 0,
            unique_until: UniqueUntil::Gone,
            origin: Slot::NIL,
            flow: Slot::NIL,
            cost: Cost::default(),
            next_vacant: next,
            vacant: true,
        }
    }

    fn next_vacant(&self) -> Option<OptionsSlot> {
        self.vacant.then_some(self.next_vacant)
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.ordering.write(out);
        self.fair.write(out);
        self.results.write(out);
        self.limit.write(out);
        self.changed.write(out);
        self.expiry.write(out);
        self.unique.write(out);
        out.u64(self.unique_ends_us);
        let has_cost = self.cost != Cost::default();
        let window = if self.unique_until == UniqueUntil::Window { WINDOW } else { 0 };
        out.u8(window | if has_cost { HAS_COST } else { 0 });
        self.origin.write(out);
        self.flow.write(out);
        if has_cost {
            out.u32(self.cost.0);
        }
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let mut options = Options {
            ordering: Slot::read(reader)?,
            fair: Slot::read(reader)?,
            results: Slot::read(reader)?,
            limit: Slot::read(reader)?,
            changed: Slot::read(reader)?,
            expiry: Slot::read(reader)?,
            unique: Slot::read(reader)?,
            unique_ends_us: reader.u64()?,
            ..Options::none()
        };
        let flags = reader.u8().filter(|&flags| flags <= WINDOW | HAS_COST)?;
        if flags & WINDOW != 0 {
            options.unique_until = UniqueUntil::Window;
        }
        options.origin = Slot::read(reader)?;
        options.flow = Slot::read(reader)?;
        if flags & HAS_COST != 0 {
            options.cost = Cost(reader.u32()?);
        }
        Some(options)
    }
}
