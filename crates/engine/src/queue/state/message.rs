//! State of a message: a slot of 96 bytes that holds all that a plain message has.

use crate::core::wheel::Timed;
use crate::id::BlobRef;
use crate::query::State;
use crate::queue::state::{ConsumerSlot, ExtrasSlot, HoldSlot, MessageSlot, QueueSlot};
use crate::store::list::{Link, Linked, PLACE};
use crate::store::slab::{Item, Slab};
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// Links among all messages of a queue, by id.
pub(crate) const SIBLINGS: usize = 1;

/// The behaviour version since which messages that are held when they die stay in their queue, and are held
/// again by a redrive.
pub(crate) const UNAPPROVED_STAYS_SINCE: u16 = 17;

/// Bits of [`Message::marks`]; a message without any is linked to its siblings, and nothing else has to know
/// when it leaves.
pub(crate) mod mark {
    /// Listed in [`crate::queue::state::queue::Queue::arrived`] instead of being linked to its siblings.
    pub(crate) const ARRIVED: u8 = 1;
    /// The last one that [`crate::queue::state::trim::Trim`] has passed.
    pub(crate) const PASSED_LAST: u8 = 2;
    /// Listed among those that came back to waiting after the trim had passed them.
    pub(crate) const RETURNED: u8 = 4;
    /// Dead, and held when it died: a redrive holds it again. Stays when it is moved.
    pub(crate) const UNAPPROVED: u8 = 8;
    /// The index of its queue has postings of it.
    pub(crate) const POSTED: u8 = 16;
    /// Listed in [`crate::queue::state::search::SearchIndex::dirty`].
    pub(crate) const DIRTY: u8 = 32;
}

/// The reason why a message is dead or held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Reason {
    None,
    MaxAttempts,
    MaxDeliveries,
    Rejected,
    PayloadDamaged,
    Hold,
    Denied,
    ParentFailed,
    Expired,
    Overflow,
    MaxAge,
    Cancelled,
    NextStepRefused,
}

impl Reason {
    pub(crate) const ALL: [Reason; 13] = [
        Reason::None,
        Reason::MaxAttempts,
        Reason::MaxDeliveries,
        Reason::Rejected,
        Reason::PayloadDamaged,
        Reason::Hold,
        Reason::Denied,
        Reason::ParentFailed,
        Reason::Expired,
        Reason::Overflow,
        Reason::MaxAge,
        Reason::Cancelled,
        Reason::NextStepRefused,
    ];

    /// The word used in every API.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Reason::None => None,
            Reason::MaxAttempts => Some("max_attempts"),
            Reason::MaxDeliveries => Some("max_deliveries"),
            Reason::Rejected => Some("rejected"),
            Reason::PayloadDamaged => Some("payload_damaged"),
            Reason::Hold => Some("hold"),
            Reason::Denied => Some("denied"),
            Reason::ParentFailed => Some("parent_failed"),
            Reason::Expired => Some("expired"),
            Reason::Overflow => Some("overflow"),
            Reason::MaxAge => Some("max_age"),
            Reason::Cancelled => Some("cancelled"),
            Reason::NextStepRefused => Some("next_step_refused"),
        }
    }
}

/// The cause that blocks a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub(crate) enum BlockedBy {
    /// An earlier message with the same ordering key.
    OrderingKey,
    /// The limit of its queue, which its limit key has used up.
    Limit,
    /// Messages that it depends on.
    Parents,
    /// The consumer that has its ordering key, and no credit.
    Consumer,
}

impl BlockedBy {
    /// Number of causes.
    pub(crate) const COUNT: usize = 4;

    /// The word used in every API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            BlockedBy::OrderingKey => "ordering_key",
            BlockedBy::Limit => "limit",
            BlockedBy::Parents => "parents",
            BlockedBy::Consumer => "consumer",
        }
    }
}

/// All messages.
pub(crate) type Messages = Slab<Message, 4096>;

/// A message, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) sequence: u64,
    pub(crate) sent_at_us: u64,
    /// Delayed, blocked: when it becomes ready, or may. Leased: when the lease ends. Dead, held: since when.
    /// Done: until when it is kept; 0: for no certain time.
    pub(crate) time_us: u64,
    /// Fencing token of the latest delivery. Blocked by a consumer: its slot.
    pub(crate) token: u64,
    /// When the latest delivery began. Done: when it ended.
    pub(crate) started_at_us: u64,
    pub(crate) blob_index: u64,
    pub(crate) blob_item: u32,
    pub(crate) blob_len: u32,
    /// Slot of its queue.
    pub(crate) queue: QueueSlot,
    /// Slot of its optional fields; `NIL`: none.
    pub(crate) extras: ExtrasSlot,
    /// The queue's generation when it entered its state: see [`crate::queue::state::queue::Queue::is_stale`].
    /// Done: 1 when it is kept for its queue's sake, 0 while it is for its sender's. Leased: slot of the hold
    /// of its consumer; `NIL`: it has none.
    pub(crate) generation: u32,
    pub(crate) links: [Link<Message>; 2],
    /// Attempts begun.
    pub(crate) attempts: u16,
    /// 0: the queue's.
    pub(crate) max_attempts: u16,
    pub(crate) deliveries: u16,
    /// Delayed, leased: where in the wheel. Blocked: by what, as [`BlockedBy`].
    pub(crate) bucket: u16,
    /// `None`: vacant, and the next vacant slot is `links[PLACE].next`.
    pub(crate) state: Option<State>,
    pub(crate) priority: u8,
    pub(crate) reason: Reason,
    /// Its [`mark`]s.
    pub(crate) marks: u8,
}

const _: () = assert!(size_of::<Message>() == 96);

impl Message {
    /// A new message, in no state and on no list.
    #[inline(always)]
    pub(crate) fn new(
        queue: QueueSlot,
        sequence: u64,
        sent_at_us: u64,
        blob: BlobRef,
        priority: u8,
        max_attempts: u16,
    ) -> Message {
        Message {
            sequence,
            sent_at_us,
            time_us: 0,
            token: 0,
            started_at_us: 0,
            blob_index: blob.index,
            blob_item: blob.item,
            blob_len: blob.len,
            queue,
            extras: Slot::NIL,
            generation: 0,
            links: [Link::UNLINKED; 2],
            attempts: 0,
            max_attempts,
            deliveries: 0,
            bucket: 0,
            state: None,
            priority,
            reason: Reason::None,
            marks: 0,
        }
    }

    /// The cause that blocks a message.
    pub(crate) fn blocked_by(&self) -> Option<BlockedBy> {
        (self.state == Some(State::Blocked)).then_some(())?;
        match self.bucket {
            0 => Some(BlockedBy::OrderingKey),
            1 => Some(BlockedBy::Limit),
            2 => Some(BlockedBy::Parents),
            3 => Some(BlockedBy::Consumer),
            _ => None,
        }
    }

    /// Leased: the hold of its consumer; [`Slot::NIL`]: it has none.
    #[inline]
    pub(crate) fn hold(&self) -> HoldSlot {
        Slot::new(self.generation)
    }

    /// Notes the hold of its consumer.
    #[inline]
    pub(crate) fn set_hold(&mut self, hold: HoldSlot) {
        self.generation = hold.index();
    }

    /// Blocked by a consumer: which.
    pub(crate) fn parked_with(&self) -> ConsumerSlot {
        Slot::new(self.token as u32)
    }

    /// True if it has this [`mark`].
    #[inline]
    pub(crate) fn is_marked(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    /// Takes over one of the marks about the index of its queue; 0: none.
    pub(crate) fn set_posted(&mut self, mark: u8) {
        self.marks = self.marks & !(mark::POSTED | mark::DIRTY) | mark;
    }

    /// True if it waits, for whatever.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.state, Some(State::Delayed | State::Ready | State::Blocked | State::Held))
    }

    /// True if a finished message is kept for its queue's sake.
    pub(crate) fn is_retained(&self) -> bool {
        self.state == Some(State::Done) && self.generation == 1
    }

    /// True if it is on a timer.
    pub(crate) fn is_timed(&self) -> bool {
        match self.state {
            Some(State::Delayed | State::Leased) => true,
            Some(State::Done) => self.time_us != 0,
            _ => false,
        }
    }

    pub(crate) fn blob(&self) -> BlobRef {
        BlobRef { index: self.blob_index, item: self.blob_item, len: self.blob_len }
    }
}

impl<const K: usize> Linked<K> for Message {
    #[inline]
    fn link(&self) -> Link<Message> {
        self.links[K]
    }

    #[inline]
    fn link_mut(&mut self) -> &mut Link<Message> {
        &mut self.links[K]
    }
}

impl Timed for Message {
    #[inline]
    fn due_us(&self) -> u64 {
        self.time_us
    }

    #[inline]
    fn bucket(&self) -> u16 {
        self.bucket
    }

    #[inline]
    fn set_bucket(&mut self, bucket: u16) {
        self.bucket = bucket;
    }
}

impl Item for Message {
    const BLOCK: usize = 64;

    fn vacant(next: MessageSlot) -> Self {
        Message {
            sequence: 0,
            sent_at_us: 0,
            time_us: 0,
            token: 0,
            started_at_us: 0,
            blob_index: 0,
            blob_item: 0,
            blob_len: 0,
            queue: Slot::NIL,
            extras: Slot::NIL,
            generation: 0,
            links: [Link { prev: Slot::NIL, next }, Link::UNLINKED],
            attempts: 0,
            max_attempts: 0,
            deliveries: 0,
            bucket: 0,
            state: None,
            priority: 0,
            reason: Reason::None,
            marks: 0,
        }
    }

    fn next_vacant(&self) -> Option<MessageSlot> {
        if self.state.is_none() { Some(self.links[PLACE].next) } else { None }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let Some(state) = self.state else {
            out.u8(u8::MAX);
            self.links[PLACE].next.write(out);
            return;
        };
        out.u8(state as u8);
        for word in
            [self.sequence, self.sent_at_us, self.time_us, self.token, self.started_at_us, self.blob_index]
        {
            out.u64(word);
        }
        let [place, siblings] = self.links;
        for word in [
            self.blob_item,
            self.blob_len,
            self.queue.index(),
            self.extras.index(),
            self.generation,
            place.prev.index(),
            place.next.index(),
            siblings.prev.index(),
            siblings.next.index(),
        ] {
            out.u32(word);
        }
        for word in [self.attempts, self.max_attempts, self.deliveries, self.bucket] {
            out.u16(word);
        }
        out.u8(self.priority);
        out.u8(self.reason as u8);
        out.u8(self.marks);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let state = reader.u8()?;
        if state == u8::MAX {
            return Some(Message::vacant(Slot::read(reader)?));
        }
        Some(Message {
            state: Some(*State::ALL.get(usize::from(state))?),
            sequence: reader.u64()?,
            sent_at_us: reader.u64()?,
            time_us: reader.u64()?,
            token: reader.u64()?,
            started_at_us: reader.u64()?,
            blob_index: reader.u64()?,
            blob_item: reader.u32()?,
            blob_len: reader.u32()?,
            queue: Slot::read(reader)?,
            extras: Slot::read(reader)?,
            generation: reader.u32()?,
            links: [Link::read(reader)?, Link::read(reader)?],
            attempts: reader.u16()?,
            max_attempts: reader.u16()?,
            deliveries: reader.u16()?,
            bucket: reader.u16()?,
            priority: reader.u8()?,
            reason: *Reason::ALL.get(usize::from(reader.u8()?))?,
            marks: reader.u8()?,
        })
    }
}
