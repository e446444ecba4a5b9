//! State of consumers: queues, credit, and the messages that each of them holds.

use std::collections::{BTreeMap, BTreeSet};

use crate::hash::hash;
use crate::plant::{self, Plant};
use crate::query::ConsumerTotals;
use crate::queue::state::message::Message;
use crate::queue::state::sticky::StickyKeys;
use crate::queue::state::{ConsumerSlot, HoldSlot, MessageSlot, QueueSlot};
use crate::store::NIL;
use crate::store::hash_index::HashIndex;
use crate::store::list::{Link, Linked, List, PLACE};
use crate::store::slab::{Item, PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// The standing of a consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Standing {
    /// Messages are given to it while it has credit.
    Attached,
    /// Detached: it gets nothing more, and what it holds has a grace period.
    Detached,
    /// A consumer that receives by itself, under a name; known while it holds messages.
    Pulls,
}

impl Standing {
    fn from_u8(value: u8) -> Option<Standing> {
        [Standing::Attached, Standing::Detached, Standing::Pulls].get(usize::from(value)).copied()
    }
}

/// One of the queues of a consumer.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: Box<str>,
    /// Slot of the queue; `NIL`: there is none of this name.
    pub(crate) queue: QueueSlot,
    /// Number, among all deliveries to consumers, of the last one of this queue to this consumer; 0: none
    /// was.
    pub(crate) served: u64,
}

/// One consumer, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    /// Never given again.
    pub(crate) number: u64,
    /// Number of its namespace.
    pub(crate) namespace: u32,
    pub(crate) standing: Standing,
    pub(crate) name: Box<str>,
    /// Most messages that it holds at a time.
    pub(crate) credit: u32,
    pub(crate) in_flight: u32,
    /// 0: each queue's.
    pub(crate) lease_ms: u64,
    /// Time for which what it holds stays its own after a new epoch has detached it.
    pub(crate) grace_ms: u64,
    /// Since when it is known, in microseconds since the Unix epoch.
    pub(crate) since_us: u64,
    /// Detached: when what it holds goes back, in microseconds since the Unix epoch.
    pub(crate) grace_until_us: u64,
    /// Detached: the token up to which what it holds counts as an attempt when it goes back.
    pub(crate) reached: u64,
    /// Detached: how many, from the first that it holds on, have not been told so.
    pub(crate) ungraced: u32,
    /// True if sliced work on it is listed.
    pub(crate) working: bool,
    pub(crate) members: Box<[Member]>,
    /// Messages that it holds, in the order of delivery.
    pub(crate) holds: List<Hold, PLACE>,
    /// Messages that wait for its credit, since it has their keys.
    pub(crate) parked: List<Message, PLACE>,
    /// The next of these to be looked at since a queue is no longer sticky, from the last to the first;
    /// `NIL`: none.
    pub(crate) unpark_cursor: MessageSlot,
    next_vacant: Option<ConsumerSlot>,
}

impl Consumer {
    /// A consumer that holds nothing yet.
    pub(crate) fn new(number: u64, namespace: u32, standing: Standing, name: &str, now_us: u64) -> Consumer {
        Consumer {
            number,
            namespace,
            standing,
            name: name.into(),
            credit: 0,
            in_flight: 0,
            lease_ms: 0,
            grace_ms: 0,
            since_us: now_us,
            grace_until_us: 0,
            reached: 0,
            ungraced: 0,
            working: false,
            members: Box::default(),
            holds: List::default(),
            parked: List::default(),
            unpark_cursor: Slot::NIL,
            next_vacant: None,
        }
    }

    /// True if it may be given a message.
    pub(crate) fn has_credit(&self) -> bool {
        let more = u32::from(plant::is(Plant::ExceedCredit) && self.credit > 0);
        self.standing == Standing::Attached && self.in_flight < self.credit + more
    }
}

impl PlainItem for Consumer {
    const BLOCK: usize = 8;

    fn vacant(next: ConsumerSlot) -> Self {
        Consumer { next_vacant: Some(next), ..Consumer::new(0, NIL, Standing::Detached, "", 0) }
    }

    fn next_vacant(&self) -> Option<ConsumerSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.u64(self.number);
        out.u32(self.namespace);
        out.u8(self.standing as u8);
        out.name(&self.name);
        out.u32(self.credit);
        out.u32(self.in_flight);
        out.u64(self.lease_ms);
        out.u64(self.grace_ms);
        out.u64(self.since_us);
        out.u64(self.grace_until_us);
        out.u64(self.reached);
        out.u32(self.ungraced);
        out.bool(self.working);
        self.holds.write(out);
        self.parked.write(out);
        self.unpark_cursor.write(out);
        out.u8(self.members.len() as u8);
        for member in &self.members {
            out.name(&member.name);
            member.queue.write(out);
            out.u64(member.served);
        }
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let (number, namespace) = (reader.u64()?, reader.u32()?);
        let standing = Standing::from_u8(reader.u8()?)?;
        let mut consumer = Consumer::new(number, namespace, standing, reader.name()?, 0);
        consumer.credit = reader.u32()?;
        consumer.in_flight = reader.u32()?;
        consumer.lease_ms = reader.u64()?;
        consumer.grace_ms = reader.u64()?;
        consumer.since_us = reader.u64()?;
        consumer.grace_until_us = reader.u64()?;
        consumer.reached = reader.u64()?;
        consumer.ungraced = reader.u32()?;
        consumer.working = reader.bool()?;
        consumer.holds = List::read(reader)?;
        consumer.parked = List::read(reader)?;
        consumer.unpark_cursor = Slot::read(reader)?;
        let count = reader.u8()?;
        let member = |_| {
            Some(Member { name: reader.name()?.into(), queue: Slot::read(reader)?, served: reader.u64()? })
        };
        consumer.members = (0..count).map(member).collect::<Option<_>>()?;
        Some(consumer)
    }
}

/// One message in the hands of a consumer, or a vacant slot. A leased message has the slot in `generation`.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    /// `NIL`: vacant, and the next vacant slot is `link.next`.
    pub(crate) message: MessageSlot,
    pub(crate) consumer: ConsumerSlot,
    link: Link<Hold>,
}

const _: () = assert!(size_of::<Hold>() == 16);

impl Item for Hold {
    const BLOCK: usize = 64;

    fn vacant(next: HoldSlot) -> Self {
        Hold { message: Slot::NIL, consumer: Slot::NIL, link: Link { prev: Slot::NIL, next } }
    }

    fn next_vacant(&self) -> Option<HoldSlot> {
        (self.message == Slot::NIL).then_some(self.link.next)
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.message.write(out);
        self.consumer.write(out);
        self.link.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Hold { message: Slot::read(reader)?, consumer: Slot::read(reader)?, link: Link::read(reader)? })
    }
}

impl Linked<PLACE> for Hold {
    fn link(&self) -> Link<Hold> {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link<Hold> {
        &mut self.link
    }
}

/// When the turn of a consumer comes, among those of a queue that have credit: the first is next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Turn {
    /// Messages that the consumer holds, in a queue with `placement` `least_loaded`; else 0.
    pub(crate) load: u32,
    /// See [`Member::served`].
    pub(crate) served: u64,
    pub(crate) consumer: ConsumerSlot,
    /// Place of the queue among its members.
    pub(crate) at: u8,
}

/// A queue that does not exist, and the consumers that name it: its namespace's number and name, consumer,
/// and which member.
pub(crate) type Orphan = (u32, Box<str>, ConsumerSlot, u8);

/// All consumers.
#[derive(Debug, Default)]
pub(crate) struct AllConsumers {
    pub(crate) slots: Slab<Consumer, 64>,
    pub(crate) holds: Slab<Hold, 1024>,
    pub(crate) sticky: StickyKeys,
    /// Consumers ever known.
    pub(crate) given: u64,
    /// Deliveries ever made to those that are attached.
    pub(crate) served: u64,
    /// Totals of attached consumers. Derived.
    pub(crate) totals: ConsumerTotals,
    /// Index by number of namespace, and number. Derived.
    pub(crate) numbers: BTreeMap<(u32, u64), ConsumerSlot>,
    /// Index of those that pull, by namespace and name. Derived.
    pullers: HashIndex<Consumer>,
    /// Derived.
    pub(crate) orphans: BTreeSet<Orphan>,
    /// Queues that somebody has credit for again; empty between two records.
    pub(crate) woken: Vec<QueueSlot>,
    /// Consumers that have credit again, and something parked with them; empty between two records.
    pub(crate) credited: Vec<ConsumerSlot>,
}

fn puller_hash(namespace: u32, name: &str) -> u64 {
    hash(u64::from(namespace), name.as_bytes())
}

impl HeadPart for AllConsumers {
    fn write_head(&self, out: &mut Vec<u8>) {
        let AllConsumers {
            given,
            served,
            slots,
            holds,
            sticky,
            totals: _,
            numbers: _,
            pullers: _,
            orphans: _,
            woken: _,
            credited: _,
        } = self;
        out.u64(*given);
        out.u64(*served);
        slots.write_head(out);
        holds.write_head(out);
        sticky.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let given = reader.u64()?;
        let served = reader.u64()?;
        let slots = Slab::read_head(reader)?;
        let holds = Slab::read_head(reader)?;
        let sticky = StickyKeys::read_head(reader)?;
        Some(AllConsumers { given, served, slots, holds, sticky, ..AllConsumers::default() })
    }
}

impl AllConsumers {
    /// Gives a consumer its number and its slot.
    pub(crate) fn add(&mut self, mut consumer: Consumer) -> ConsumerSlot {
        self.given += 1;
        consumer.number = self.given;
        let slot = self.slots.insert(consumer);
        self.index(slot);
        slot
    }

    fn index(&mut self, slot: ConsumerSlot) {
        let consumer = self.slots.get(slot);
        self.numbers.insert((consumer.namespace, consumer.number), slot);
        match consumer.standing {
            Standing::Attached => {
                self.totals.attached += 1;
                self.totals.credit += u64::from(consumer.credit);
                self.totals.in_flight += u64::from(consumer.in_flight);
            }
            Standing::Pulls => self.pullers.insert(puller_hash(consumer.namespace, &consumer.name), slot),
            Standing::Detached => {}
        }
    }

    /// A consumer that is attached and has no credit is no longer.
    pub(crate) fn end_attachment(&mut self, slot: ConsumerSlot) {
        let consumer = self.slots.get_mut(slot);
        consumer.standing = Standing::Detached;
        self.totals.attached -= 1;
        self.totals.in_flight -= u64::from(consumer.in_flight);
    }

    /// Takes down what a consumer holds and may hold; gives whether it had credit before, and what it held.
    pub(crate) fn set_load(&mut self, slot: ConsumerSlot, in_flight: u32, credit: u32) -> (bool, u32) {
        let consumer = self.slots.get_mut(slot);
        let before = (consumer.has_credit(), consumer.in_flight);
        if consumer.standing == Standing::Attached {
            let totals = &mut self.totals;
            totals.in_flight = totals.in_flight - u64::from(consumer.in_flight) + u64::from(in_flight);
            totals.credit = totals.credit - u64::from(consumer.credit) + u64::from(credit);
        }
        (consumer.in_flight, consumer.credit) = (in_flight, credit);
        before
    }

    /// Forgets a consumer that is not attached, once it holds nothing and no work on it is listed.
    pub(crate) fn forget_unused(&mut self, slot: ConsumerSlot) {
        let consumer = self.slots.get(slot);
        if consumer.standing == Standing::Attached || consumer.in_flight > 0 || consumer.working {
            return;
        }
        let gone = self.slots.remove(slot);
        self.numbers.remove(&(gone.namespace, gone.number));
        if gone.standing == Standing::Pulls {
            self.pullers.remove(puller_hash(gone.namespace, &gone.name), slot);
        }
    }

    /// The one that pulls under this name.
    pub(crate) fn find_puller(&self, namespace: u32, name: &str) -> Option<ConsumerSlot> {
        self.pullers.find(puller_hash(namespace, name), |slot| {
            let consumer = self.slots.get(slot);
            consumer.namespace == namespace && *consumer.name == *name
        })
    }

    /// A message goes into the hands of a consumer; returns the slot of the hold.
    pub(crate) fn hold(&mut self, consumer: ConsumerSlot, message: MessageSlot) -> HoldSlot {
        let slot = self.holds.insert(Hold { message, consumer, link: Link::UNLINKED });
        self.slots.get_mut(consumer).holds.push_back(&mut self.holds, slot);
        slot
    }

    /// And out of them; returns whose they were.
    pub(crate) fn let_go(&mut self, hold: HoldSlot) -> ConsumerSlot {
        let consumer = self.holds.get(hold).consumer;
        self.slots.get_mut(consumer).holds.unlink(&mut self.holds, hold);
        self.holds.remove(hold);
        consumer
    }

    /// Derives the indexes after all slots were read.
    pub(crate) fn rebuild(&mut self) {
        let slots: Vec<_> = self.slots.iter().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.index(slot));
        self.sticky.rebuild();
    }
}
