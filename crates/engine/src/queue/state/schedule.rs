//! State of schedules: the message that is sent, and the next time.

use crate::core::namespace::NamespaceSlot;
use std::collections::{BTreeMap, BTreeSet};

use crate::id::BlobRef;
use crate::queue::state::ScheduleSlot;
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// A schedule of a namespace, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// Slot of its namespace.
    pub(crate) namespace: NamespaceSlot,
    /// Never given again; another one after each change of what the schedule does.
    pub(crate) number: u64,
    pub(crate) name: Box<str>,
    /// When it fires: the node's to read.
    pub(crate) spec: Box<[u8]>,
    /// Name of the queue that it sends to.
    pub(crate) queue: Box<str>,
    /// Content type, headers and payload of what it sends.
    pub(crate) blob: BlobRef,
    /// The other fields of what it sends, laid out like the item of a send.
    pub(crate) template: Box<[u8]>,
    /// When it fires next; 0: not at all.
    pub(crate) next_at_us: u64,
    pub(crate) paused: bool,
    pub(crate) created_at_us: u64,
    /// Messages sent at its instants.
    pub(crate) fired: u64,
    /// Instants at which a message with its unique key was there already.
    pub(crate) duplicates: u64,
    /// Instants at which the message was refused.
    pub(crate) refused: u64,
    /// The latest instant at which it sent or tried to; 0: none yet.
    pub(crate) last_at_us: u64,
    /// Sequence of the latest message that it sent; 0: none yet.
    pub(crate) last_sequence: u64,
    /// Code of the error with which its latest message was refused; empty: it was sent.
    pub(crate) last_error: Box<str>,
    next_vacant: Option<ScheduleSlot>,
}

impl Schedule {
    /// One that never fires.
    pub(crate) fn new(namespace: NamespaceSlot, name: &str, created_at_us: u64) -> Schedule {
        Schedule {
            namespace,
            name: name.into(),
            created_at_us,
            next_vacant: None,
            ..Schedule::vacant(Slot::NIL)
        }
    }
}

impl PlainItem for Schedule {
    const BLOCK: usize = 8;

    fn vacant(next: ScheduleSlot) -> Self {
        Schedule {
            namespace: Slot::NIL,
            number: 0,
            name: Box::default(),
            spec: Box::default(),
            queue: Box::default(),
            blob: BlobRef::EMPTY,
            template: Box::default(),
            next_at_us: 0,
            paused: false,
            created_at_us: 0,
            fired: 0,
            duplicates: 0,
            refused: 0,
            last_at_us: 0,
            last_sequence: 0,
            last_error: Box::default(),
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<ScheduleSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.namespace.write(out);
        out.u64(self.number);
        out.name(&self.name);
        out.bytes16(&self.spec);
        out.name(&self.queue);
        out.blob(self.blob);
        out.bytes16(&self.template);
        out.u64(self.next_at_us);
        out.bool(self.paused);
        out.u64(self.created_at_us);
        out.u64(self.fired);
        out.u64(self.duplicates);
        out.u64(self.refused);
        out.u64(self.last_at_us);
        out.u64(self.last_sequence);
        out.name(&self.last_error);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Schedule {
            namespace: Slot::read(reader)?,
            number: reader.u64()?,
            name: reader.name()?.into(),
            spec: reader.bytes16()?.into(),
            queue: reader.name()?.into(),
            blob: reader.blob()?,
            template: reader.bytes16()?.into(),
            next_at_us: reader.u64()?,
            paused: reader.bool()?,
            created_at_us: reader.u64()?,
            fired: reader.u64()?,
            duplicates: reader.u64()?,
            refused: reader.u64()?,
            last_at_us: reader.u64()?,
            last_sequence: reader.u64()?,
            last_error: reader.name()?.into(),
            next_vacant: None,
        })
    }
}

/// All schedules of a shard.
#[derive(Debug, Default)]
pub(crate) struct Schedules {
    pub(crate) slots: Slab<Schedule, 64>,
    /// The last number given.
    pub(crate) last_number: u64,
    /// Slots by number. Derived.
    numbers: BTreeMap<u64, ScheduleSlot>,
    /// Slots by the next time, of those that have one. Derived.
    due: BTreeSet<(u64, ScheduleSlot)>,
}

impl HeadPart for Schedules {
    fn write_head(&self, out: &mut Vec<u8>) {
        let Schedules { slots, last_number, numbers: _, due: _ } = self;
        slots.write_head(out);
        out.u64(*last_number);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let slots = Slab::read_head(reader)?;
        let last_number = reader.u64()?;
        Some(Schedules { slots, last_number, ..Schedules::default() })
    }
}

impl Schedules {
    pub(crate) fn insert(&mut self, schedule: Schedule) -> ScheduleSlot {
        let slot = self.slots.insert(schedule);
        self.index(slot);
        slot
    }

    pub(crate) fn remove(&mut self, slot: ScheduleSlot) -> Schedule {
        self.unindex(slot);
        self.slots.remove(slot)
    }

    /// Changes a schedule, its number and its next time included.
    pub(crate) fn change(&mut self, slot: ScheduleSlot, change: impl FnOnce(&mut Schedule)) {
        self.unindex(slot);
        change(self.slots.get_mut(slot));
        self.index(slot);
    }

    /// A number for a schedule that does something else from here on.
    pub(crate) fn new_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(crate) fn find(&self, number: u64) -> Option<ScheduleSlot> {
        self.numbers.get(&number).copied()
    }

    /// Schedules with a next time, by that time.
    pub(crate) fn by_time(&self) -> impl Iterator<Item = (u64, &Schedule)> + '_ {
        self.due.iter().map(|&(at_us, slot)| (at_us, self.slots.get(slot)))
    }

    fn index(&mut self, slot: ScheduleSlot) {
        let schedule = self.slots.get(slot);
        self.numbers.insert(schedule.number, slot);
        if schedule.next_at_us > 0 {
            self.due.insert((schedule.next_at_us, slot));
        }
    }

    fn unindex(&mut self, slot: ScheduleSlot) {
        let schedule = self.slots.get(slot);
        self.numbers.remove(&schedule.number);
        self.due.remove(&(schedule.next_at_us, slot));
    }

    /// Derives the indexes after all slots were read.
    pub(crate) fn rebuild(&mut self) {
        let slots: Vec<_> = self.slots.iter().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.index(slot));
    }

    /// Compares the indexes with the slots.
    pub(crate) fn recount(&self) -> Result<(), String> {
        let mut timed = 0;
        for (slot, schedule) in self.slots.iter() {
            let name = &schedule.name;
            if schedule.number > self.last_number || self.find(schedule.number) != Some(slot) {
                return Err(format!("schedule {name:?} is not found by its number {}", schedule.number));
            }
            if schedule.paused && schedule.next_at_us > 0 {
                return Err(format!("schedule {name:?} is paused and has a next time"));
            }
            if schedule.next_at_us > 0 {
                timed += 1;
                if !self.due.contains(&(schedule.next_at_us, slot)) {
                    return Err(format!("schedule {name:?} is not listed at its next time"));
                }
            }
        }
        if timed != self.due.len() || self.numbers.len() != self.slots.used() as usize {
            return Err(format!(
                "schedules listed: {} by time, {} by number",
                self.due.len(),
                self.numbers.len()
            ));
        }
        Ok(())
    }
}
