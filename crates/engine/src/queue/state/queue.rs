//! State of a queue: settings, counters, and the ends of its lists.

use std::collections::BTreeSet;

use crate::core::namespace::NamespaceSlot;
use crate::query::{Counters, State};
use crate::queue::state::consumer::Turn;
use crate::queue::state::fair::Fair;
use crate::queue::state::message::{BlockedBy, Message, SIBLINGS};
use crate::queue::state::redrive::Redrive;
use crate::queue::state::trim::Trim;
use crate::queue::state::{
    ConsumerSlot, LimitSlot, LineSlot, MessageSlot, PRIORITIES, QueueSlot, SearchSlot,
};
use crate::settings::{QueuePatch, QueueSettings};
use crate::store::NIL;
use crate::store::list::{List, PLACE};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// Ready messages: one list per priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ready {
    /// One bit per priority: not empty.
    pub(crate) occupied: u16,
    pub(crate) lists: [List<Message, PLACE>; PRIORITIES],
}

impl Ready {
    /// The highest priority that has a message.
    #[inline]
    pub(crate) fn highest(&self) -> Option<usize> {
        self.occupied.checked_ilog2().map(|priority| priority as usize)
    }
}

/// All queues.
pub(crate) type Queues = Slab<Queue, 64>;

/// A queue, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// Its number; never reused.
    pub(crate) number: u32,
    /// Slot of its namespace.
    pub(crate) namespace: NamespaceSlot,
    pub(crate) name: Box<str>,
    pub(crate) settings: QueueSettings,
    pub(crate) created_at_us: u64,
    pub(crate) counters: Counters,
    /// The bytes behind `counters.states`.
    pub(crate) bytes: [u64; State::COUNT],
    pub(crate) ready: Ready,
    /// Where ready messages stand from the first one with a fair key on, instead of on the lists of `ready`.
    pub(crate) fair: Option<Box<Fair>>,
    pub(crate) held: List<Message, PLACE>,
    /// Numbers of blocked messages, by what blocks them: [`BlockedBy`].
    pub(crate) blocked_by: [u64; BlockedBy::COUNT],
    /// Slot of the limit that it follows; `NIL`: none.
    pub(crate) limit: LimitSlot,
    /// The first of the lines of limit keys that have not followed it to another limit; `NIL`: all have.
    pub(crate) lines_cursor: LineSlot,
    /// In the order of dying, therefore by generation.
    pub(crate) dead: List<Message, PLACE>,
    /// All messages by id, the leftovers of a purge included.
    pub(crate) all: List<Message, SIBLINGS>,
    /// Sequences of those that have come from other queues later than messages with higher ids; they are not
    /// on that list. Derived.
    pub(crate) arrived: BTreeSet<u64>,
    /// Sequences of dead and held messages, stale ones included, so that few among many are listed fast.
    /// Derived.
    pub(crate) parked: BTreeSet<u64>,
    /// End and sequence of the finished messages that are kept for the queue's sake. Derived.
    pub(crate) done: BTreeSet<(u64, u64)>,
    /// Generation of what is ready, delayed, blocked or held; a purge begins a new one.
    pub(crate) waiting_generation: u32,
    /// Generation of dying messages; redriving or deleting all dead letters begins a new one.
    pub(crate) dead_generation: u32,
    /// Dead letters of earlier generations are deleted.
    pub(crate) dead_deleted_below: u32,
    /// Dead letters of earlier generations are being redriven.
    pub(crate) dead_redriven_below: u32,
    /// The redrive at a rate, if one runs.
    pub(crate) redrive: Redrive,
    /// The next message that a running purge looks at; `NIL`: none runs.
    pub(crate) purge_cursor: MessageSlot,
    /// The last id that a running purge looks at.
    pub(crate) purge_until: u64,
    /// The first id that a running purge has not looked at among those that have arrived; 0: it looks at
    /// none.
    pub(crate) purge_arrived: u64,
    /// Where its oldest waiting messages are looked for, when it is too long.
    pub(crate) trim: Trim,
    /// Consumers that are attached to it, and which of their members it is. Derived.
    pub(crate) consumers: BTreeSet<(ConsumerSlot, u8)>,
    /// Turns of those consumers that have credit, in order. Derived.
    pub(crate) turns: BTreeSet<Turn>,
    /// The index of its messages; `NIL`: it has none. Derived.
    pub(crate) search: SearchSlot,
    /// True if giving its messages to consumers goes on as sliced work.
    pub(crate) delivering: bool,
    /// True if sliced work on it is listed.
    pub(crate) working: bool,
    pub(crate) deleted: bool,
    /// The next vacant slot, if this one is vacant.
    next_vacant: Option<QueueSlot>,
}

impl Queue {
    pub(crate) fn new(number: u32, namespace: NamespaceSlot, name: &str, now_us: u64) -> Queue {
        Queue {
            number,
            namespace,
            name: name.into(),
            settings: QueueSettings::default(),
            created_at_us: now_us,
            counters: Counters::default(),
            bytes: [0; State::COUNT],
            ready: Ready::default(),
            fair: None,
            held: List::default(),
            blocked_by: [0; BlockedBy::COUNT],
            limit: Slot::NIL,
            lines_cursor: Slot::NIL,
            dead: List::default(),
            all: List::default(),
            arrived: BTreeSet::new(),
            parked: BTreeSet::new(),
            done: BTreeSet::new(),
            waiting_generation: 0,
            dead_generation: 0,
            dead_deleted_below: 0,
            dead_redriven_below: 0,
            redrive: Redrive::default(),
            purge_cursor: Slot::NIL,
            purge_until: 0,
            purge_arrived: 0,
            trim: Trim::default(),
            consumers: BTreeSet::new(),
            turns: BTreeSet::new(),
            search: Slot::NIL,
            delivering: false,
            working: false,
            deleted: false,
            next_vacant: None,
        }
    }

    /// True if a message is gone already, for all who ask, and only waits to be swept.
    #[inline]
    pub(crate) fn is_stale(&self, message: &Message) -> bool {
        self.deleted
            || match message.state {
                Some(State::Ready | State::Delayed | State::Held | State::Blocked) => {
                    message.generation != self.waiting_generation
                }
                Some(State::Dead) => message.generation < self.dead_deleted_below,
                Some(State::Leased | State::Done) => false,
                None => true,
            }
    }

    /// Attempts that a message of this queue may have.
    #[inline]
    pub(crate) fn max_attempts(&self, message: &Message) -> u16 {
        if message.max_attempts == 0 { self.settings.max_attempts } else { message.max_attempts }
    }

    /// Messages in any state.
    pub(crate) fn messages(&self) -> u64 {
        self.counters.states.iter().sum()
    }

    fn numbers(&self) -> [u32; 7] {
        [
            self.number,
            self.namespace.index(),
            self.waiting_generation,
            self.dead_generation,
            self.dead_deleted_below,
            self.dead_redriven_below,
            self.purge_cursor.index(),
        ]
    }
}

impl PlainItem for Queue {
    const BLOCK: usize = 4;

    fn vacant(next: QueueSlot) -> Self {
        Queue { next_vacant: Some(next), ..Queue::new(NIL, Slot::NIL, "", 0) }
    }

    fn next_vacant(&self) -> Option<QueueSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.name(&self.name);
        self.numbers().into_iter().for_each(|number| out.u32(number));
        self.settings.write(out);
        out.u64(self.created_at_us);
        self.counters.write_head(out);
        self.bytes.iter().for_each(|&bytes| out.u64(bytes));
        self.ready.lists.iter().for_each(|list| list.write(out));
        self.held.write(out);
        self.dead.write(out);
        self.all.write(out);
        out.u64(self.purge_until);
        out.u64(self.purge_arrived);
        out.bool(self.working);
        out.bool(self.deleted);
        self.blocked_by.iter().for_each(|&count| out.u64(count));
        self.limit.write(out);
        self.lines_cursor.write(out);
        self.redrive.write(out);
        self.trim.write(out);
        out.bool(self.delivering);
        out.bool(self.fair.is_some());
        if let Some(fair) = &self.fair {
            fair.write(out);
        }
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let name = reader.name()?;
        let number = reader.u32()?;
        let namespace = Slot::read(reader)?;
        let mut queue = Queue::new(number, namespace, name, 0);
        queue.waiting_generation = reader.u32()?;
        queue.dead_generation = reader.u32()?;
        queue.dead_deleted_below = reader.u32()?;
        queue.dead_redriven_below = reader.u32()?;
        queue.purge_cursor = Slot::read(reader)?;
        queue.settings = read_settings(reader)?;
        queue.created_at_us = reader.u64()?;
        queue.counters = Counters::read_head(reader)?;
        queue.bytes = read_by_state(reader)?;
        for (priority, list) in queue.ready.lists.iter_mut().enumerate() {
            *list = List::read(reader)?;
            queue.ready.occupied |= u16::from(!list.is_empty()) << priority;
        }
        queue.held = List::read(reader)?;
        queue.dead = List::read(reader)?;
        queue.all = List::read(reader)?;
        queue.purge_until = reader.u64()?;
        queue.purge_arrived = reader.u64()?;
        queue.working = reader.bool()?;
        queue.deleted = reader.bool()?;
        for count in &mut queue.blocked_by {
            *count = reader.u64()?;
        }
        queue.limit = Slot::read(reader)?;
        queue.lines_cursor = Slot::read(reader)?;
        queue.redrive = Redrive::read(reader)?;
        queue.trim = Trim::read(reader)?;
        queue.delivering = reader.bool()?;
        if reader.bool()? {
            let fair = Fair::read(reader)?;
            for (priority, ring) in fair.rings.iter().enumerate() {
                queue.ready.occupied |= u16::from(ring.head != Slot::NIL) << priority;
            }
            queue.fair = Some(Box::new(fair));
        }
        Some(queue)
    }
}

impl HeadPart for Counters {
    fn write_head(&self, out: &mut Vec<u8>) {
        let c = self;
        c.states.iter().for_each(|&count| out.u64(count));
        for count in [
            c.bytes,
            c.sent,
            c.delivered,
            c.acked,
            c.nacked,
            c.released,
            c.rejected,
            c.expired,
            c.died,
            c.redriven,
            c.dropped,
            c.replies_lost,
            c.cancelled,
            c.moved_in,
            c.moved_out,
        ] {
            out.u64(count);
        }
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Counters {
            states: read_by_state(reader)?,
            bytes: reader.u64()?,
            sent: reader.u64()?,
            delivered: reader.u64()?,
            acked: reader.u64()?,
            nacked: reader.u64()?,
            released: reader.u64()?,
            rejected: reader.u64()?,
            expired: reader.u64()?,
            died: reader.u64()?,
            redriven: reader.u64()?,
            dropped: reader.u64()?,
            replies_lost: reader.u64()?,
            cancelled: reader.u64()?,
            moved_in: reader.u64()?,
            moved_out: reader.u64()?,
        })
    }
}

/// A figure per state.
fn read_by_state(reader: &mut Reader<'_>) -> Option<[u64; State::COUNT]> {
    let mut figures = [0; State::COUNT];
    for figure in &mut figures {
        *figure = reader.u64()?;
    }
    Some(figures)
}

fn read_settings(reader: &mut Reader<'_>) -> Option<QueueSettings> {
    let mut settings = QueueSettings::default();
    settings.change(&QueuePatch::read(reader)?);
    Some(settings)
}
